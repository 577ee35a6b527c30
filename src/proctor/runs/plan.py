"""From names to jobs: what a run still has to ask, what that takes, and the baselines beside every system.

Everything is checked that can be checked before the first call is paid.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from pydantic import JsonValue

from proctor.core import (
    AudioClip,
    Benchmark,
    ConfigurationError,
    InputError,
    Item,
    NeedsReferences,
    ProctorError,
    Scorer,
    System,
    VideoClip,
    count_of,
    generator,
)
from proctor.media import CONDITIONS, MediaLibrary, MediaProblem, viewer
from proctor.runs.database import RunTakenError
from proctor.runs.engine import Job, Limits, Tally, ask_all
from proctor.runs.settings import changed_settings, same_run
from proctor.runs.sharing import ItemClaims
from proctor.runs.store import ORACLE, Run, Store
from proctor.runs.table import BASELINES
from proctor.systems import build_system


@dataclass(frozen=True)
class PlanOptions:
    """`limit` takes the first items only; `all_items` also those that do not count; `skip_broken` leaves out
    the items whose media are broken, where they are an error else; `left_out` are those that are broken where a run was
    planned that is joined here. `order_seed` draws the order in which items are
    asked, instead of video by video; it is recorded with the run."""

    seed: int = 0
    all_items: bool = False
    limit: int | None = None
    budget_s: float | None = None
    skip_broken: bool = False
    order_seed: int | None = None
    left_out: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Plan:
    """What is to be asked, and what was found on the way; `problems` are those of the broken media for which
    `left_out` items are not asked."""

    jobs: list[Job]
    runs: list[Run]
    settled: int
    unsupported: dict[str, int]
    problems: tuple[MediaProblem, ...] = ()
    left_out: int = 0

    @property
    def to_ask(self) -> int:
        """Items to be asked over all jobs."""
        return sum(len(job.items) for job in self.jobs)


def plan(
    store: Store,
    benchmark: Benchmark,
    systems: Sequence[System],
    conditions: Sequence[str],
    library: MediaLibrary,
    *,
    scorers: Sequence[Scorer],
    options: PlanOptions | None = None,
) -> Plan:
    """The jobs of every system under every condition.

    Items go out video by video, so that each is decoded once and servers can reuse a common prefix. Raises
    `InputError` before anything is written: unknown conditions, missing or broken media, other settings or
    items under a name that the store knows.
    """
    options = options or PlanOptions()
    chosen = chosen_items(benchmark, options)
    _check_sound(benchmark, systems, conditions, options)
    shown, problems = _showable(benchmark, conditions, library, options)
    items = [item for item in chosen if item.id in shown]
    if not items:
        raise InputError(
            benchmark.name, found=f"no item whose media can be read; the first: {problems[0]}", expected="at least one"
        )
    store.add_benchmark(benchmark)
    asking = _Asking(store, benchmark, items, tuple(shown.values()), library, tuple(scorers), options)
    jobs: list[Job] = []
    settled = 0
    unsupported: dict[str, int] = {}
    for system in systems:
        mine = asking.supported(system)
        if len(mine) < len(items):
            unsupported[system.name] = len(items) - len(mine)
        for condition in conditions:
            jobs.append(job := asking.job(system, condition, mine))
            settled += len(mine) - len(job.items)
    runs = [job.run for job in jobs]
    return Plan(jobs, runs, settled, unsupported, tuple(problems), len(chosen) - len(items))


def join(
    store: Store,
    benchmark: Benchmark,
    runs: Sequence[Run],
    systems: Sequence[System],
    library: MediaLibrary,
    *,
    scorers: Sequence[Scorer],
    options: PlanOptions,
    has: Callable[[Sequence[Item]], bool] = lambda _: True,
) -> Plan:
    """What has still to be asked of runs that another machine planned with these options; `has` says whether this one
    has all media of some items.

    Raises `InputError` where what is here would not ask as the run's settings say.
    """
    whole = tuple(chosen_items(benchmark, replace(options, limit=None)))
    items, by_name = chosen_items(benchmark, options), {system.name: system for system in systems}
    asking, jobs = _Asking(store, benchmark, items, whole, library, tuple(scorers), options), []
    for run in runs:
        place, condition = f"run of {run.system} under {run.condition}", CONDITIONS.get(run.condition)
        if run.system not in by_name:
            raise InputError(store.shown, place, found=f"an order for {', '.join(by_name)}", expected="one for it")
        system = by_name[run.system]
        mine = asking.settings(system, run.condition)
        if not same_run(run.settings, mine):
            found = f"other settings here ({changed_settings(run.settings, mine)})"
            raise InputError(store.shown, place, found=found, expected="the run's own")
        job = asking.job(system, run.condition, asking.supported(system))
        borrowed = whole if condition.borrows else ()
        jobs.append(replace(job, has=partial(_has, has, borrowed)) if condition.sees else job)
    return Plan(jobs, [job.run for job in jobs], 0, {})


def _has(has: Callable[[Sequence[Item]], bool], borrowed: Sequence[Item], item: Item) -> bool:
    return has([item, *borrowed])


@dataclass(frozen=True)
class _Asking:
    """What the jobs of a plan share: the `items` to ask, the `others` whose media a condition may borrow, and how."""

    store: Store
    benchmark: Benchmark
    items: Sequence[Item]
    others: Sequence[Item]
    library: MediaLibrary
    scorers: Sequence[Scorer]
    options: PlanOptions

    def supported(self, system: System) -> list[Item]:
        """The items that a system answers, once it has learned what it learns from all that count."""
        if isinstance(system, NeedsReferences):
            system.learn(self.benchmark.counted(all_items=self.options.all_items))
        return [item for item in self.items if system.supports(item)]

    def settings(self, system: System, condition: str) -> dict[str, JsonValue]:
        """Those of its run."""
        options = self.options
        drawn: dict[str, JsonValue] = {} if options.order_seed is None else {"order_seed": options.order_seed}
        return run_settings(system, self.library, condition, seed=options.seed, budget_s=options.budget_s) | drawn

    def job(self, system: System, condition: str, mine: Sequence[Item]) -> Job:
        """What one run has still to ask of these items."""
        run = self.store.start_run(self.benchmark.name, system.name, condition, self.settings(system, condition))
        known = self.store.settled(run)
        left = [item for item in mine if item.id not in known]
        view = viewer(left, condition, self.library, seed=self.options.seed, others=self.others)
        return Job(run, system, left, view, self.scorers, skip_broken=self.options.skip_broken)


def _check_sound(
    benchmark: Benchmark, systems: Sequence[System], conditions: Sequence[str], options: PlanOptions
) -> None:
    """Raises `ConfigurationError` for a condition that makes no sense for these items, and for a system that says that
    it takes no sound where sound belongs to the questions."""
    items = benchmark.counted(all_items=options.all_items)
    for name in conditions:
        why = CONDITIONS.get(name).unfit(items)
        if why:
            raise ConfigurationError(f"condition {name!r} makes no sense for {benchmark.name}: {why}")
    hearing = [name for name in conditions if CONDITIONS.get(name).sees and CONDITIONS.get(name).hears]
    sounding = [item for item in items if item.sounding]
    for system in [one for one in systems if hearing and getattr(one, "takes_sound", None) is False]:
        mine = [item for item in sounding if system.supports(item)]
        if mine:
            raise ConfigurationError(
                f"{system.name} takes no sound, which belongs to {count_of(len(mine), 'question')} of {benchmark.name} "
                f"under {hearing[0]}: use --condition muted, or a system that takes it (google:…, "
                f"openai-chat:gpt-audio, "
                "an OpenAI-compatible server with --base-url, a function with a parameter sounds)"
            )


def chosen_items(benchmark: Benchmark, options: PlanOptions) -> list[Item]:
    """The items that a run asks, in the order in which it asks them: that of their media, or one that is drawn."""
    items = benchmark.counted(all_items=options.all_items)
    if options.order_seed is None:
        items = in_media_order(items)[: options.limit]
    else:
        by_id = sorted(items, key=lambda item: item.id)
        items = [by_id[one] for one in generator(options.order_seed, "order of items").permutation(len(by_id))]
        items = items[: options.limit]
    items = [item for item in items if item.id not in options.left_out]
    if not items:
        raise InputError(benchmark.name, found="no items", expected="at least one item that counts")
    return items


def _showable(
    benchmark: Benchmark, conditions: Sequence[str], library: MediaLibrary, options: PlanOptions
) -> tuple[dict[str, Item], list[MediaProblem]]:
    """By id the items whose media may be shown, and what is wrong with those of the others. Where a condition
    borrows from other items, these are all that count, whatever the limit."""
    seen = [CONDITIONS.get(condition) for condition in conditions]
    borrowing = any(condition.borrows for condition in seen)
    items = chosen_items(benchmark, replace(options, limit=None) if borrowing else options)
    problems: list[MediaProblem] = []
    if options.skip_broken and any(condition.sees for condition in seen):
        problems = library.problems(items)
    elif any(condition.sees for condition in seen):
        library.check(items)
    broken = {item_id for problem in problems for item_id in problem.item_ids}
    return {item.id: item for item in items if item.id not in broken}, problems


def in_media_order(items: Iterable[Item]) -> list[Item]:
    """Video by video, from its start to its end: what one question shows, the next one shows again."""
    return sorted(items, key=_by_media)


def _by_media(item: Item) -> tuple[tuple[str, float, float], ...]:
    return tuple(
        (medium.source, medium.start, float("inf") if medium.end is None else medium.end)
        if isinstance(medium, VideoClip | AudioClip)
        else (medium.source, 0.0, 0.0)
        for medium in item.media
    )


def run_settings(
    system: System, library: MediaLibrary, condition: str, *, seed: int, budget_s: float | None = None
) -> dict[str, JsonValue]:
    """Everything that changes a run's answers, as it is recorded with the run."""
    media: dict[str, JsonValue] = library.settings.model_dump(mode="json") if CONDITIONS.get(condition).sees else {}
    return {
        "system": system.settings,
        "media": media,
        "seed": seed,
        "budget_s": budget_s,
        ORACLE: isinstance(system, NeedsReferences),
    }


@dataclass(frozen=True)
class Outcome:
    """What became of a plan: the tally, and how many answers of its runs stay failed or unasked."""

    tally: Tally
    failed: int
    remaining: int


async def execute(
    store: Store,
    plan: Plan,
    limits: Limits,
    *,
    stop: asyncio.Event | None = None,
    on_change: Callable[[Tally], None] = lambda _: None,
    claims: ItemClaims | None = None,
) -> Outcome:
    """Asks what a plan has left to ask, with `claims` beside other workers (see `ask_all`). Errors come out one by one, not as a group: a `ProctorError`
    as it is, a store that can't be written as an `InputError`."""
    try:
        tally = await ask_all(plan.jobs, store, limits=limits, stop=stop, on_change=on_change, claims=claims)
    except* ProctorError as errors:
        raise _first(errors) from None
    return Outcome(tally, sum(store.count_answers(run)[1] for run in plan.runs), tally.remaining)


def _first(group: ExceptionGroup[Exception]) -> Exception:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first


PICTURE_TOKENS = 300
"""About what models count for a picture of 512 pixels: between 85 and 800, by provider."""
_SOUND_TOKENS = 32  # for a second of sound, as Google counts; others count 10 to 25
_PROMPT_TOKENS = 150  # what stands around a question in the prompts that come along
_LETTERS = 4  # of English text in a token


@dataclass(frozen=True)
class RunEstimate:
    """One system under one condition: items that are answered `already`, `items` to ask, and about what they take.

    `pictures` is an upper bound; `tokens` are of the input. Both are 0 for systems that ask no model, and of a method
    with several calls an item they are those of one call.
    """

    system: str
    condition: str
    already: int
    items: int
    pictures: int
    tokens: int

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return asdict(self)


def estimate_runs(
    store: Store | None,
    benchmark: Benchmark,
    systems: Sequence[System],
    conditions: Sequence[str],
    library: MediaLibrary,
    options: PlanOptions,
) -> list[RunEstimate]:
    """Nothing is asked and nothing written. Raises `InputError` for clips that do not lie within their video."""
    items = chosen_items(benchmark, options)
    _check_sound(benchmark, systems, conditions, options)
    seen = any(CONDITIONS.get(name).sees for name in conditions)
    pictures = {item.id: _pictures(item, library) for item in items} if seen else {}
    spoken = {item.id: _sound_seconds(item, library) for item in items} if seen else {}
    stored = store.runs(benchmark.name) if store is not None and benchmark.name in store.benchmark_names() else []
    runs = {(run.system, run.condition): run for run in stored}
    found = []
    for system in systems:
        asks = "model" in system.settings
        for condition in conditions:
            run = runs.get((system.name, condition))
            done = store.settled(run) if store is not None and run is not None else set()
            mine = [item for item in items if system.supports(item)]
            left = [item for item in mine if item.id not in done]
            under = CONDITIONS.get(condition)
            shown = sum(pictures[item.id] for item in left) if under.sees and under.shows and asks else 0
            heard = sum(spoken[item.id] for item in left) if under.sees and under.hears and asks else 0.0
            words = sum(_words(item) for item in left) if asks else 0
            tokens = words + shown * PICTURE_TOKENS + math.ceil(heard * _SOUND_TOKENS)
            found.append(RunEstimate(system.name, condition, len(mine) - len(left), len(left), shown, tokens))
    return found


def _pictures(item: Item, library: MediaLibrary) -> int:
    """How many pictures the view of an item holds at most."""
    count = 0
    for medium in item.pictured:
        if isinstance(medium, VideoClip):
            start, end = library.span(medium)
            wanted = math.ceil((end - start) * library.settings.fps)
            count += min(library.settings.max_frames, max(1, wanted))
        else:
            count += 1
    return count


def _sound_seconds(item: Item, library: MediaLibrary) -> float:
    return sum(end - start for start, end in map(library.sound_span, item.sounding))


def _words(item: Item) -> int:
    text = [item.question, *item.options, item.answer.instruction(item.options)]
    return _PROMPT_TOKENS + sum(len(one) for one in text) // _LETTERS


_CONDITION = "text-only"
_AT_ONCE = Limits(concurrency=256)
"""Baselines wait for nothing but the disk: at most this many of their answers share a transaction."""


def skipped_baselines(benchmark: Benchmark, *, seed: int = 0) -> dict[str, str]:
    """The baselines that answer none of the items, each with the reason."""
    items = benchmark.counted()
    known = any(item.reference is not None for item in items)
    skipped = {}
    for name in BASELINES:
        system = build_system(name, seed=seed)
        if not any(system.supports(item) for item in items):
            skipped[name] = "unsupported answer format"
        elif isinstance(system, NeedsReferences) and not known:
            system.learn(items)
            if not any(system.supports(item) for item in items):
                skipped[name] = "no references"
    return skipped


async def add_baselines(store: Store, benchmark: Benchmark, scorers: Sequence[Scorer], *, seed: int = 0) -> list[str]:
    """Runs the baselines on all items that count, as any system is run, as far as the store has not their answers yet.

    They take seconds and cost nothing. Returns the names of those that were asked. A run of that name with other
    settings (another seed) stays as it is, and so does one that another process has at work; one that was cut short is
    completed.
    """
    items = benchmark.counted()
    asking = _Asking(store, benchmark, items, items, MediaLibrary(None), tuple(scorers), PlanOptions(seed=seed))
    known = {run.system: run.settings for run in store.runs(benchmark.name) if run.condition == _CONDITION}
    added = []
    for name in BASELINES:
        system = build_system(name, seed=seed)
        settings = asking.settings(system, _CONDITION)
        mine = asking.supported(system) if known.get(name, settings) == settings else []
        if mine and (job := asking.job(system, _CONDITION, mine)).items:
            with suppress(RunTakenError):
                await execute(store, Plan([job], [job.run], 0, {}), _AT_ONCE)
                added.append(name)
    return added
