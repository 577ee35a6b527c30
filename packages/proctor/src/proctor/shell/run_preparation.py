"""The steps of a run before its first question: read and check everything, open the store, plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from proctor.core import (
    BENCHMARKS,
    Benchmark,
    InputError,
    UsageError,
    count_of,
    dollars,
    reader_or_default,
    store_word,
    thousands,
)
from proctor.shell.benchmarks import library_as, loaded_as, need_media, remember
from proctor.shell.model_options import RunOptions
from proctor.shell.option_values import conditions_of, time_span
from proctor.shell.options import filled, listed
from proctor.shell.stores import StoredRuns, existing_store, open_store
from proctor.shell.systems import ModelAccess, SystemLike, build_systems

if TYPE_CHECKING:
    from proctor.core import Item, System
    from proctor.media import MediaLibrary
    from proctor.models import BatchFolder
    from proctor.runs import Outcome, Plan, PlanOptions, RunEstimate, Store, Tally


@dataclass(frozen=True)
class Arranged:
    """A run whose input is read and checked. The store is not touched yet."""

    benchmark: Benchmark
    systems: list[System]
    conditions: tuple[str, ...]
    library: MediaLibrary
    plan: PlanOptions
    access: ModelAccess
    options: RunOptions
    named: tuple[SystemLike, ...] = ()

    @property
    def needs_gpu(self) -> bool:
        """Whether weights are loaded in this process."""
        return any(client.spec.is_local for client in self.access.opened)

    async def estimate(self) -> list[RunEstimate]:
        """Estimate what the run would ask and send (see `RunEstimate`), without asking or writing anything."""
        from proctor.runs import estimate_runs

        store = existing_store(self.options["store"])
        async with self.access.closing():
            return estimate_runs(store, self.benchmark, self.systems, self.conditions, self.library, self.plan)

    async def prepare(self) -> PreparedRun:
        """Open the store, check the servers and run the baselines."""
        from proctor.metrics import code_scorers
        from proctor.runs import add_baselines, plan

        await self.access.check_servers()
        given, loaded, opened = self.options, self.benchmark, open_store(self.options["store"])
        scorers = code_scorers(loaded)
        planned = plan(opened, loaded, self.systems, self.conditions, self.library, scorers=scorers, options=self.plan)
        remember(opened, loaded)
        if given["share"]:
            from proctor.shell.orders import store_order

            store_order(self, opened, planned)
        again, tested = list[str](), list[str]()
        if loaded.scorers:
            from proctor.runs import score_changed

            again = await score_changed(opened, loaded.name, loaded.scorers)
        if given["baselines"]:
            await add_baselines(opened, loaded, scorers, seed=given["seed"], planned=planned)
        if self.access.opened:
            from proctor.shell.sight_notes import sight_notes

            tested = sight_notes(self)
        notes = (
            *loaded.reading,
            *again,
            *self._warnings(),
            *tested,
            *self.repeat_notes(),
            *plan_notes(planned),
            *baseline_notes(loaded),
        )
        return PreparedRun(self, opened, planned, notes)

    def _warnings(self) -> list[str]:
        """Warnings about the media, to read before they are sent."""
        from proctor.media import CONDITIONS

        sees = any(CONDITIONS.get(condition).sees for condition in self.conditions)
        found = self.library.warnings(self.benchmark.items) if sees else []
        items = self.benchmark.counted(all_items=self.plan.all_items)
        silent = sum(not item.sounding for item in items)
        unseen = [name for name in self.conditions if not CONDITIONS.get(name).shows and CONDITIONS.get(name).sees]
        asked = count_of(len(items), "question")
        found += [f"{name}: no sound in {silent} of {asked}" for name in unseen if silent]
        return found + (self._seen_before(items) if sees else [])

    def repeat_notes(self) -> list[str]:
        """What repetitions at temperature 0 are: the model draws nothing."""
        if self.plan.repeats == 1:
            return []
        cold = sorted({client.name for client in self.access.opened if client.temperature == 0})
        return [
            f"{name}: temperature 0: repetitions measure the noise of the provider or the machine alone, not the spread of "
            "what the model would draw (--settings temperature=1)."
            for name in cold
        ]

    def _seen_before(self, items: Sequence[Item]) -> list[str]:
        """Warnings about media that local weights were trained on."""
        from proctor import models

        told = []
        for client in self.access.opened:
            seen = models.seen_media(client.name.partition(":")[2]) if client.spec.is_local else None
            if seen is None or not seen.trained | seen.chosen:
                continue
            of = {item.id: {self.library.identity(medium.source) for medium in item.media} for item in items}
            media = set[str]().union(*of.values())
            known = sum(bool(some & (seen.trained | seen.chosen)) for some in of.values())
            if known:
                told.append(
                    f"{client.name}: trained on {len(media & seen.trained)} of these {len(media)} media, and chosen by "
                    f"{len(media & seen.chosen)}: no evidence on {count_of(known, 'question')}"
                )
        return told


@dataclass(frozen=True)
class PreparedRun:
    """A run that is ready to start. `notes` say what is left out."""

    arranged: Arranged
    store: Store
    plan: Plan
    notes: tuple[str, ...]

    async def ask(self, stop: asyncio.Event | None, on_change: Callable[[Tally], None]) -> StoredRuns:
        """Ask what is not answered yet, and close the connections to models."""
        from proctor.runs import Limits, execute

        options = self.arranged.options
        limits = Limits(
            options["concurrency"],
            self.arranged.plan.budget_s,
            options["give_up_after"],
            timed=self.arranged.access.batch is None,
            max_cost_usd=options["max_cost"],
            max_time_s=time_span(options["max_time"]),
        )
        async with self.arranged.access.closing():
            claims = None
            if options["share"]:
                from proctor.runs import ItemClaims

                claims = ItemClaims(self.store)
            outcome = await execute(self.store, self.plan, limits, stop=stop, on_change=on_change, claims=claims)
        return self.stored_runs(outcome)

    def stored_runs(self, outcome: Outcome) -> StoredRuns:
        """The result of the run."""
        from proctor.runs import served_notes

        counts = [f"{count} {status.value}" for status, count in outcome.tally.by_status.items() if count]
        nothing = "no reply is there yet" if outcome.tally.pending else "nothing left to ask"
        asked = f"Asked {outcome.tally.done}: {', '.join(counts) or nothing}; in {self.store.shown}"
        name = self.arranged.benchmark.name
        stored = {run.id: run for run in self.store.runs(name)}  # with the models that answered
        runs = tuple(stored[run.id] for run in self.plan.runs)
        done = (asked, *served_notes(runs), *self._by_batch(outcome), *self._waiting())
        return StoredRuns(self.store, name, runs, outcome, self.notes, done, tuple(self._cost(outcome)))

    def _cost(self, outcome: Outcome) -> list[str]:
        """What this call cost, and what each run will cost that is not complete."""
        usage, loaded = outcome.tally.usage, self.arranged.benchmark
        if not usage.requests:
            return []
        from proctor.reports import cost_lines
        from proctor.results import load_items, run_costs

        cost = "unknown (no price is known: --price)" if usage.cost_usd is None else dollars(usage.cost_usd)
        tokens = f"{thousands(usage.input_tokens)} tokens in, {thousands(usage.output_tokens)} out"
        items = load_items(self.store, self.store.card(loaded.name), all_items=self.arranged.plan.all_items)
        costs = run_costs(self.store, self.plan.runs, items)
        return [f"Cost: {cost}; {tokens}.", *cost_lines([one for one in costs if one.answers < one.items])]

    def _by_batch(self, outcome: Outcome) -> list[str]:
        """How many replies of a batch are missing, and where new requests were written."""
        batch, pending = self.arranged.access.batch, outcome.tally.pending
        if batch is None or not pending:
            return []
        new = f", new requests in {', '.join(path.name for path in batch.written)}" if batch.written else ""
        return [f"Replies to come by {batch.folder}: {pending}{new}"]

    def _waiting(self) -> list[str]:
        """What a judge has to score, with the command to run."""
        free = {item.id: item for job in self.plan.jobs for item in job.items if item.answer.kind == "free_text"}
        ruled = {name for name, item in free.items() if item.reference is not None and item.reference.criteria}
        benchmark, told = self.arranged.benchmark, []
        own = benchmark.judge or (None if reader_or_default(benchmark.read_by).rubric_judge else "three-level")
        for count, judge in ((len(ruled), "criteria"), (len(free) - len(ruled), "three-level" if ruled else own)):
            command = f"proctor score {benchmark.name} --model PROVIDER:MODEL"
            command += f"{f' --judge {judge}' if judge else ''} --store {store_word(self.store.shown)}"
            what = "with criteria" if judge == "criteria" else "in free text"
            if count:
                told.append(f"{count_of(count, 'question')} {what}: a judge has to score the answers ({command})")
        return told


def arrange(
    benchmark: str | Path | Benchmark,
    system: SystemLike | Sequence[SystemLike] | None = None,
    **options: Unpack[RunOptions],
) -> Arranged:
    """The first step of `run`: read and check everything. `proctor run` takes the steps one by one to report on
    them."""
    from proctor.runs import PlanOptions, chosen_items

    given = filled("run", RunOptions, options)
    under, access = conditions_of(given["conditions"]), ModelAccess(given)
    if given["batch"] is not None:
        access.batch = _batch(given, listed(system))
    try:
        loaded = loaded_as(benchmark, given)
    except InputError:
        if isinstance(benchmark, str) and benchmark in BENCHMARKS.names():
            # An error in these is reported before one in the data.
            build_systems(benchmark, listed(system), given, access)
        raise
    if loaded.prompt is not None and not given["prompt"] and listed(given["model"]) and not listed(system):
        given["prompt"] = str(loaded.prompt)
    built = build_systems(loaded.read_by, listed(system), given, access, loaded.items, loaded.abstain)
    _check_limits(given, access)
    budget_s = loaded.budget_s if given["budget_s"] is None else given["budget_s"]
    if access.batch is not None and budget_s is not None:
        raise UsageError(
            f"--batch can't keep a budget ({budget_s:g} s): the time of a reply is unknown. Ask without --batch."
        )
    chosen = PlanOptions(
        seed=given["seed"],
        all_items=given["all_items"],
        limit=given["limit"],
        budget_s=budget_s,
        skip_broken=given["skip_broken"],
        repeats=given["repeats"],
    )
    library = library_as(loaded, given)
    if not chosen.skip_broken:
        need_media(loaded, chosen_items(loaded, chosen), library, under)
    return Arranged(loaded, built, under, library, chosen, access, given, tuple(listed(system)))


def _check_limits(given: RunOptions, access: ModelAccess) -> None:
    """Raises `UsageError` for a limit that can't be kept: an unreadable time, and a cost where a model is known to have no
    price. A model whose price turns out to be unknown stops the run at its first answer."""
    time_span(given["max_time"])
    if given["max_cost"] is None:
        return
    from proctor.models import is_compatible

    specs = [client.spec for client in access.opened]
    without = next((spec.name for spec in specs if spec.price is None and is_compatible(spec)), "")
    if without:
        raise UsageError(f"--max-cost needs the price of {without}. Give --price INPUT/OUTPUT.")


def _batch(given: RunOptions, systems: Sequence[SystemLike]) -> BatchFolder:
    from proctor.models import BatchFolder

    if systems:
        raise UsageError("--batch asks models alone. Leave --system out, or --batch.")
    if given["share"]:
        raise UsageError("--batch works in one process. Leave --share out, or --batch.")
    if given["max_cost"] is not None or given["max_time"] is not None:
        raise UsageError("--batch sends all requests at once. Leave --max-cost and --max-time out, or --batch.")
    return BatchFolder(Path(str(given["batch"])))


def plan_notes(planned: Plan) -> tuple[str, ...]:
    """Notes on items that are not asked, and on answers that are there already."""
    notes = [str(problem) for problem in planned.problems]
    if planned.left_out:
        notes.append(f"{count_of(planned.left_out, 'item')} left out: broken or missing media.")
    for system, count in planned.unsupported.items():
        notes.append(f"{system} skipped {count_of(count, 'item')}: unsupported answer format.")
    for condition, reasons in planned.unable.items():
        for why, count in reasons.items():
            notes.append(f"{condition}: {count_of(count, 'item')} unsupported: {why}.")
    if planned.added:
        notes.append(f"{count_of(planned.added, 'answer')} added that an earlier run could not write to the store.")
    for there, runs in sorted(planned.more.items()):
        repeats = 1 + max((job.repetition for job in planned.jobs), default=0)
        notes.append(
            f"{count_of(runs, 'run')} of {there} repetitions: --repeats {repeats} asks no more of them and takes none away."
        )
    if planned.settled:
        notes.append(f"{count_of(planned.settled, 'answer')} there already; {planned.to_ask} to ask.")
    return tuple(notes)


def baseline_notes(benchmark: Benchmark) -> tuple[str, ...]:
    """Which baselines are skipped, and why."""
    from proctor.runs import skipped_baselines

    skipped = skipped_baselines(benchmark)
    named = ", ".join(f"{name} ({reason})" for name, reason in skipped.items())
    return (f"Baselines skipped: {named}.",) if skipped else ()
