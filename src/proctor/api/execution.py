"""Answers: of systems that are asked (`load`, and `run` with its async twin), and recorded ones (`import_answers`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import ValidationError

from proctor.api.access import ModelAccess, SystemLike, build_systems, checked
from proctor.api.exchange import form_of, read_foreign
from proctor.api.exchange_options import ImportOptions
from proctor.api.option_texts import conditions_of, size_in_bytes
from proctor.api.options import RunOptions, filled, listed
from proctor.api.sources import (
    Evaluation,
    excerpts_as,
    existing_store,
    known_columns,
    known_media,
    media_at,
    open_store,
    recalled,
    remember,
    remembered_at,
    sync_twin,
)
from proctor.core import (
    BENCHMARKS,
    Benchmark,
    FilesOrigin,
    InputError,
    UsageError,
    benchmark_path,
    count_of,
    reader_of,
    reader_of_paths,
    refusal,
)

if TYPE_CHECKING:
    from proctor.core import BenchmarkReader, Item, RecordedAnswers, System
    from proctor.media import MediaLibrary
    from proctor.models import BatchFolder
    from proctor.runs import Outcome, Plan, PlanOptions, RunEstimate, Store, Tally

BLIND = "text-only"


def load(
    benchmark: str | Path,
    data: str | Path | None = None,
    media: str | Path | None = None,
    *,
    track: str = "",
    seed: int = 0,
    columns: Mapping[str, str | Sequence[str]] | None = None,
) -> Benchmark:
    """A benchmark's items from the folder with its own files; `media` is the folder of its videos or images.

    Your own questions need no name: `benchmark` is the path of a folder or a file (CSV, JSON, JSON Lines, Excel,
    Parquet) with them, and `columns` says by field which column holds it, where its name does not. `Benchmark.reading`
    says how they were understood.

    Raises `InputError` that names the file and the place (all faults of your own questions are its notes), and
    `UnknownNameError` that lists the benchmarks.
    """
    folder, path = media_at(media), benchmark_path(benchmark) if data is None else None
    if path is not None:
        return _read(reader_of_paths(), FilesOrigin(path, columns=as_lists(columns)), folder, seed)
    reader = reader_of(str(benchmark), track)
    if data is None:
        raise UsageError("--data", f"the folder with the files of {benchmark}")
    return _read(reader, FilesOrigin(Path(data), track, as_lists(columns)), folder, seed)


def _read(reader: BenchmarkReader, origin: FilesOrigin, media: Path | None, seed: int) -> Benchmark:
    reader = reader.with_columns(origin.columns) if origin.columns else reader
    try:
        return replace(reader.load(origin.data, media, seed=seed), origin=origin)
    except ValidationError as error:  # of an item that a reader, perhaps another package's, did not check itself
        raise refusal(origin.data, "", error) from error


def as_lists(columns: Mapping[str, str | Sequence[str]] | None) -> dict[str, list[str]]:
    """Columns by field, each a list."""
    return {name: [one] if isinstance(one, str) else list(one) for name, one in (columns or {}).items()}


@dataclass(frozen=True)
class Arranged:
    """A run of which all is read and checked that can be before a store is touched."""

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
        """Whether weights are read in this process."""
        return any(client.spec.is_local for client in self.access.opened)

    async def estimate(self) -> list[RunEstimate]:
        """What would be asked and sent (see `RunEstimate`); nothing is asked, and nothing written."""
        from proctor.runs import estimate_runs

        store = existing_store(self.options["store"])
        async with self.access.closing():
            return estimate_runs(store, self.benchmark, self.systems, self.conditions, self.library, self.plan)

    async def prepare(self) -> PreparedRun:
        """The run in its store: servers are there, baselines have answered."""
        from proctor.metrics import code_scorers
        from proctor.runs import add_baselines, plan

        await self.access.check_servers()
        given, loaded, opened = self.options, self.benchmark, open_store(self.options["store"])
        scorers = code_scorers(loaded)
        planned = plan(opened, loaded, self.systems, self.conditions, self.library, scorers=scorers, options=self.plan)
        remember(opened, loaded)
        if given["share"]:
            from proctor.api.working import place

            place(self, opened, planned)
        if given["baselines"]:
            await add_baselines(opened, loaded, scorers, seed=given["seed"])
        notes = (*loaded.reading, *self._warnings(), *plan_notes(planned), *baseline_notes(loaded))
        return PreparedRun(self, opened, planned, notes)

    def _warnings(self) -> list[str]:
        """What a person should look at before pictures go out."""
        from proctor.media import CONDITIONS

        sees = any(CONDITIONS.get(condition).sees for condition in self.conditions)
        found = self.library.warnings(self.benchmark.items) if sees else []
        items = self.benchmark.counted(all_items=self.plan.all_items)
        silent = sum(not item.sounding for item in items)
        unseen = [name for name in self.conditions if not CONDITIONS.get(name).shows and CONDITIONS.get(name).sees]
        asked = count_of(len(items), "question")
        found += [f"{name}: no sound in {silent} of {asked}" for name in unseen if silent]
        return found + (self._seen_before(items) if sees else [])

    def _seen_before(self, items: Sequence[Item]) -> list[str]:
        """Which of the media trained weights know already."""
        from proctor.models import seen_media

        told = []
        for client in self.access.opened:
            seen = seen_media(client.name.partition(":")[2]) if client.spec.is_local else None
            if seen is None or not seen.trained | seen.chosen:
                continue
            of = {item.id: {self.library.identity(one.source) for one in item.media} for item in items}
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
    """A run that only has to be asked. `notes` say what is left out."""

    arranged: Arranged
    store: Store
    plan: Plan
    notes: tuple[str, ...]

    async def ask(self, stop: asyncio.Event | None, on_change: Callable[[Tally], None]) -> Evaluation:
        """Asks what is left to ask, and closes the connections to models."""
        from proctor.runs import ItemClaims, Limits, execute

        options = self.arranged.options
        limits = Limits(
            options["concurrency"],
            self.arranged.plan.budget_s,
            options["give_up_after"],
            timed=self.arranged.access.batch is None,
        )
        async with self.arranged.access.closing():
            claims = ItemClaims(self.store) if options["share"] else None
            outcome = await execute(self.store, self.plan, limits, stop=stop, on_change=on_change, claims=claims)
        return self.evaluation(outcome)

    def evaluation(self, outcome: Outcome) -> Evaluation:
        """What came of it, in words too."""
        counts = [f"{count} {status.value}" for status, count in outcome.tally.by_status.items() if count]
        nothing = "no reply is there yet" if outcome.tally.pending else "nothing left to ask"
        asked = f"Asked {outcome.tally.done}: {', '.join(counts) or nothing}; in {self.store.shown}"
        runs, name = tuple(self.plan.runs), self.arranged.benchmark.name
        return Evaluation(
            self.store, name, runs, outcome, self.notes, (asked, *self._by_batch(outcome), *self._waiting())
        )

    def _by_batch(self, outcome: Outcome) -> list[str]:
        """Whose replies are awaited, and where the requests stand."""
        batch, pending = self.arranged.access.batch, outcome.tally.pending
        if batch is None or not pending:
            return []
        new = f", new requests in {', '.join(one.name for one in batch.written)}" if batch.written else ""
        return [f"Replies to come by {batch.folder}: {pending}{new}"]

    def _waiting(self) -> list[str]:
        """What a judge has to score, with the command."""
        free = {item.id: item for job in self.plan.jobs for item in job.items if item.answer.kind == "free_text"}
        ruled = {name for name, item in free.items() if item.reference is not None and item.reference.criteria}
        own, told = self.arranged.benchmark.judge, []
        for count, judge in ((len(ruled), "criteria"), (len(free) - len(ruled), "three-level" if ruled else own)):
            command = f"proctor score {self.arranged.benchmark.name} --model PROVIDER:MODEL"
            command += f"{f' --judge {judge}' if judge else ''} --store {self.store.shown}"
            what = "with criteria" if judge == "criteria" else "in free text"
            if count:
                told.append(f"{count_of(count, 'question')} {what}: a judge has to score the answers ({command})")
        return told


def arrange(
    benchmark: str | Path | Benchmark,
    system: SystemLike | Sequence[SystemLike] | None = None,
    **options: Unpack[RunOptions],
) -> Arranged:
    """The first part of `run`, which `proctor run` does in steps to show what it will do."""
    from proctor.runs import PlanOptions, chosen_items

    given = filled("run", RunOptions, options)
    under, access = conditions_of(given["conditions"]), ModelAccess(given)
    if given["batch"] is not None:
        access.batch = _batch(given, listed(system))
    if isinstance(benchmark, str) and benchmark in BENCHMARKS.names():
        built = build_systems(benchmark, listed(system), given, access)
        loaded = loaded_as(benchmark, given)
        if any(item.sounding for item in loaded.items):
            built = build_systems(benchmark, listed(system), given, access, sounding=True)
    else:  # which may bring a prompt
        loaded = loaded_as(benchmark, given)
        if loaded.prompt is not None and not given["prompt"] and listed(given["model"]) and not listed(system):
            given["prompt"] = str(loaded.prompt)
        sounding = any(item.sounding for item in loaded.items)
        built = build_systems(loaded.name, listed(system), given, access, sounding=sounding)
    budget_s = loaded.budget_s if given["budget_s"] is None else given["budget_s"]
    if access.batch is not None and budget_s is not None:
        raise UsageError("--batch", "no budget: nobody knows what a reply took", found=f"one of {budget_s:g} s")
    chosen = PlanOptions(
        seed=given["seed"],
        all_items=given["all_items"],
        limit=given["limit"],
        budget_s=budget_s,
        skip_broken=given["skip_broken"],
    )
    library = library_as(loaded, given)
    if not chosen.skip_broken:
        need_media(loaded, chosen_items(loaded, chosen), library, under)
    return Arranged(loaded, built, under, library, chosen, access, given, tuple(listed(system)))


def _batch(given: RunOptions, systems: Sequence[SystemLike]) -> BatchFolder:
    from proctor.models import BatchFolder

    if systems:
        raise UsageError("--batch", "models alone", found="--system")
    if given["share"]:
        raise UsageError("--batch", "one process", found="--share")
    return BatchFolder(Path(str(given["batch"])))


async def run_async(
    benchmark: str | Path | Benchmark,
    system: SystemLike | Sequence[SystemLike] | None = None,
    **options: Unpack[RunOptions],
) -> Evaluation:
    """Asks a benchmark's items of systems and models under conditions; call it again to go on where it stopped.

    `benchmark` is what `load` returned, a name with its `data` and `media` folders, or the path of your own questions.
    `system` is one or several of: a function (see `proctor.system`), `path/to/file.py:function`, the name of a built-in
    system or a method, a `System`. `model` is one or several models, `conditions` are what they may see. Baselines that
    need no media are asked beside.

    Raises `InputError` before anything is asked where something is missing or does not fit, and `ConfigurationError`
    for a model that can't be asked. The command is `proctor run`. `run` works in a notebook; in async code await
    `run_async`.
    """
    prepared = await arrange(benchmark, system, **options).prepare()
    given = prepared.arranged.options
    return await prepared.ask(given["stop"], given["on_change"])


run = sync_twin(run_async)


async def import_answers_async(
    benchmark: str | Path | Benchmark, path: str | Path, **options: Unpack[ImportOptions]
) -> Evaluation:
    """Answers that were recorded elsewhere, in the benchmark's own format or another program's (`form`), kept as the
    system `name`; of a file that names its systems and holds people's ratings (MEDIQA-EVAL), all systems, and ratings
    as scores by `human:RATER`; with `scorer` an automatic scorer's scores of answers in the store.

    Importing the same answers again changes nothing. Raises `InputError` with file and place for a file that can't be
    read. The command is `proctor import`.
    """
    from proctor.media import CONDITIONS
    from proctor.metrics import code_scorers
    from proctor.runs import add_baselines, check_given_name, import_answers, import_systems

    given = filled("import_answers", ImportOptions, options)
    name, condition, path = given["name"], given["condition"], Path(path)
    if given["scorer"]:
        return _import_scores(benchmark, path, given["scorer"], given["store"])
    if condition:
        CONDITIONS.get(condition)
    loaded = loaded_as(benchmark, given)
    track = loaded.origin.track if loaded.origin else given["track"]
    reader = reader_of(loaded.name, track) if loaded.name in BENCHMARKS.names() else reader_of_paths()
    form = form_of(path, given["form"], reader)
    if reader.ratings and not form:
        if name:
            raise UsageError("--name", "none: the file names its systems", found=repr(name))
        found = reader.read_ratings(path, loaded, answers_only=given["answers_only"])
        for one in found:
            check_given_name(one.system)
        opened, under = open_store(given["store"]), condition or "video"
        runs = await import_systems(opened, loaded, found, condition=under)
        notes = tuple(f"{one.system}: {line}" for one in found for line in one.notes)
        done = tuple(
            f"{count_of(len(one.answers), 'answer')} with {count_of(len(one.scores), 'rating')} as {one.system} / {under} "
            f"in {opened.shown}"
            for one in found
        )
    else:
        if given["answers_only"]:
            raise UsageError("--answers-only", f"no: files of {loaded.name} hold no ratings", found="it")
        recorded = read_foreign(path, form, loaded, given) if form else _own_recorded(reader, path, loaded, name)
        name = name or recorded.system
        if not name:
            raise UsageError("--name", "one: the file does not name its system")
        check_given_name(name)
        if condition and recorded.condition and condition != recorded.condition:
            expected = f"{recorded.condition}, as the files' names say"
            raise InputError(path, "--condition", found=condition, expected=expected)
        under = condition or recorded.condition or "video"
        scorers, opened = code_scorers(loaded), open_store(given["store"])
        runs = [await import_answers(opened, loaded, recorded, name=name, condition=under, scorers=scorers)]
        await add_baselines(opened, loaded, scorers, seed=given["seed"])
        kept = f"{count_of(len(recorded.answers), 'answer')} and {count_of(len(recorded.votes), 'judgement')}"
        done = (f"{kept} as {name} / {under} in {opened.shown}",)
        notes = (*loaded.reading, *baseline_notes(loaded), *recorded.notes, *_doubts(loaded, recorded, form))
    remember(opened, loaded)
    return Evaluation(opened, loaded.name, tuple(runs), None, notes, done)


import_answers = sync_twin(import_answers_async)


def _doubts(benchmark: Benchmark, recorded: RecordedAnswers, form: str) -> list[str]:
    """What may be wrong with answers from elsewhere, though each of them can be read."""
    keys = {
        item.id: item.answer.write(item.reference.answer)
        for item in benchmark.items
        if item.reference is not None and item.reference.answer is not None
    }
    told = []
    if len(recorded.answers) > 4 and all(one.text.strip() == keys.get(one.item_id) for one in recorded.answers):
        told.append("All answers are the references word for word: are they of the right column (--answer-column)?")
    seed = benchmark.seeds.get("options")
    if form and seed is not None:
        told.append(
            f"The options stand here in an order shuffled by seed {seed}: recorded letters must name that order"
        )
    return told


def _own_recorded(reader: BenchmarkReader, path: Path, benchmark: Benchmark, name: str) -> RecordedAnswers:
    """Answers in the benchmark's own format."""
    if not name:
        raise UsageError("--name", "one: the file does not name its system")
    try:
        return reader.read_recorded(path, benchmark)
    except InputError as error:
        if path.is_file():
            error.add_note(
                "A file of another program, or a plain table of ids and answers: --from (proctor list formats)"
            )
        raise


def _import_scores(
    benchmark: str | Path | Benchmark, path: Path, scorer: str, store: Store | str | Path | None
) -> Evaluation:
    from proctor.runs import add_recorded_scores, answer_keys

    name = benchmark.name if isinstance(benchmark, Benchmark) else str(benchmark)
    reader = reader_of(name)
    if not reader.ratings:
        raise UsageError("--scorer", f"none: files of {name} hold no scores", found=repr(scorer))
    opened = open_store(store, create=False)
    found = reader.read_scores(path, answer_keys(opened, name))
    added = add_recorded_scores(opened, name, scorer, found.scores)
    notes = tuple(f"{scorer}: {line}" for line in found.notes)
    return Evaluation(
        opened,
        name,
        tuple(opened.runs(name)),
        None,
        notes,
        (f"{count_of(added, 'score')} by {scorer} in {opened.shown}",),
    )


def loaded_as(benchmark: str | Path | Benchmark, given: Any) -> Benchmark:
    """A benchmark as it is, or read from its files; what a store remembers of these completes what is given."""
    media, columns, seed = media_at(given.get("media"), given.get("cache")), given["columns"], given["seed"]
    if isinstance(benchmark, Benchmark):
        if given["data"] is not None:
            benchmark = replace(benchmark, origin=FilesOrigin(Path(given["data"]), given["track"], as_lists(columns)))
        return benchmark if media is None else replace(benchmark, media_root=media)
    name, path = str(benchmark), benchmark_path(benchmark) if given["data"] is None else None
    if path is None:
        data, remembered, track = recalled(name, given["store"], given["data"], media, given["track"])
        if given["data"] is not None or name in BENCHMARKS.names():
            remembered = media_at(remembered, given.get("cache"))
            return load(name, data, remembered, track=track, seed=seed, columns=columns)
        path = Path(data)  # your own questions, by the name in the store
    known = remembered_at(given["store"], path)
    media = media or media_at(known_media(known, path), given.get("cache"))
    return load(path, media=media, seed=seed, columns=columns or known_columns(known))


def library_as(benchmark: Benchmark, given: Any) -> MediaLibrary:
    """The benchmark's media as options (see `ShownOptions`) have them shown."""
    from proctor.media import MediaLibrary, MediaSettings

    settings = checked(
        MediaSettings,
        fps=given["fps"],
        max_frames=given["max_frames"],
        max_side=given["max_side"],
        overlay=given["overlay"],
    )
    size = given["cache_size"]
    return MediaLibrary(
        benchmark.media_root,
        settings,
        given["cache"],
        cache_bytes=size_in_bytes(size) if isinstance(size, str) else size,
        excerpts=excerpts_as(benchmark.excerpts, given["media_as"]),
    )


def need_media(benchmark: Benchmark, items: Sequence[Item], library: MediaLibrary, conditions: Sequence[str]) -> None:
    """Raises `InputError` that says which media are missing, with a note on how to get them, before anything is
    asked."""
    from proctor.media import CONDITIONS, shown_place

    if not any(CONDITIONS.get(condition).sees for condition in conditions):
        return
    missing = library.missing(items)
    if not missing:
        return
    needed = {medium.source for item in items for medium in item.media}
    some = f"{', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}"
    error = InputError(
        "--media" if library.root is None else shown_place(library.root),
        found=f"{len(needed) - len(missing)} of {count_of(len(needed), 'media file')}, missing {some}",
        expected=f"all of them, or --condition {BLIND}",
    )
    if benchmark.origin is not None:
        reader = reader_of(benchmark.name) if benchmark.name in BENCHMARKS.names() else reader_of_paths()
        error.add_note(reader.media_help(benchmark.origin.data, missing))
    raise error


def plan_notes(planned: Plan) -> tuple[str, ...]:
    """What a person should know before the first item is asked."""
    notes = [str(problem) for problem in planned.problems]
    if planned.left_out:
        notes.append(f"{count_of(planned.left_out, 'item')} left out: broken or missing media.")
    for system, count in planned.unsupported.items():
        notes.append(f"{system} skipped {count_of(count, 'item')}: unsupported answer format.")
    if planned.settled:
        notes.append(f"{count_of(planned.settled, 'answer')} there already; {planned.to_ask} to ask.")
    return tuple(notes)


def baseline_notes(benchmark: Benchmark) -> tuple[str, ...]:
    """Which baselines do not stand in the tables, and why."""
    from proctor.runs import skipped_baselines

    skipped = skipped_baselines(benchmark)
    named = ", ".join(f"{name} ({reason})" for name, reason in skipped.items())
    return (f"Baselines skipped: {named}.",) if skipped else ()
