"""Planning runs: which items are asked, in which order, what is left, unsupported items, the estimated cost, and the
baselines beside every system.

Everything that can be checked is checked before the first paid call.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

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
    admit_settings,
    code_hash,
    count_of,
    generator,
    origin_of,
)
from proctor.media import CONDITIONS, Condition, ConditionContext, MediaLibrary, MediaProblem, count_at_rate, viewer
from proctor.runs.controls import begin_session, end_session, rejected_items
from proctor.runs.database import outlasting
from proctor.runs.engine import Job, Limits, ask_all
from proctor.runs.run_identity import (
    BASELINES,
    CODE_HASHES,
    REPEATS,
    UNSUPPORTED,
    changed_settings,
    listed_items,
    same_run,
    scorer_settings,
)
from proctor.runs.run_leases import RunTakenError
from proctor.runs.served import sight_found
from proctor.runs.store import ORACLE, Run, Store
from proctor.runs.tally import Tally
from proctor.runs.unwritten import add_unwritten
from proctor.systems import build_system

if TYPE_CHECKING:
    from proctor.runs.item_leases import ItemClaims


@dataclass(frozen=True)
class PlanOptions:
    """`limit` takes only the first items; `all_items` includes items that do not count; `skip_broken` leaves out items with
    broken media instead of raising; `left_out` are the items that were broken where a joined run was planned.
    `order_seed` draws the order of items, instead of video by video, and is recorded with the run. Each item is answered
    `repeats` times: no part of a run's settings, so that a run can be given more later."""

    seed: int = 0
    all_items: bool = False
    limit: int | None = None
    budget_s: float | None = None
    skip_broken: bool = False
    order_seed: int | None = None
    left_out: frozenset[str] = frozenset()
    repeats: int = 1


@dataclass(frozen=True)
class Plan:
    """The jobs, one for each repetition of a run and the first ones first, and what was found on the way: `settled`
    answers, `unsupported` items by system, items that can't be shown (`unable`) by condition and reason, and the
    `problems` of the broken media of `left_out` items. `added` is the
    number of answers that an earlier run could not write (`runs.unwritten`), `more` that of runs with more repetitions
    than were asked for, by the highest number of these."""

    jobs: list[Job]
    settled: int = 0
    unsupported: dict[str, int] = field(default_factory=dict)
    unable: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    problems: tuple[MediaProblem, ...] = ()
    left_out: int = 0
    added: int = 0
    more: Mapping[int, int] = field(default_factory=dict)

    @property
    def runs(self) -> list[Run]:
        """The runs of the jobs, each once."""
        return [run for run, _ in self.expected]

    @property
    def expected(self) -> list[tuple[Run, int]]:
        """The runs, each with how many answers it has once nothing of its jobs is left to ask."""
        runs = {job.run.id: job.run for job in self.jobs}
        return [(run, sum(job.answers for job in self.jobs if job.run.id == number)) for number, run in runs.items()]

    @property
    def to_ask(self) -> int:
        """The number of answers to ask for over all jobs."""
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

    Items are asked video by video, so that each video is decoded once and servers can reuse a common prefix. Raises
    `InputError` before anything is written, for unknown conditions, missing or broken media, and other settings or items
    under a known name.
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
    asking = _Asking(store, benchmark, items, tuple(shown.values()), library, tuple(scorers), options)
    for condition in conditions:
        asking.check_shown(condition)
    store.add_benchmark(benchmark)
    jobs: list[Job] = []
    settled = added = 0
    unsupported: dict[str, int] = {}
    more: dict[int, int] = {}
    for system in systems:
        supported = asking.supported(system)
        if len(supported) < len(items):
            unsupported[system.name] = len(items) - len(supported)
        for condition in conditions:
            mine = asking.shown(supported, condition)
            added += add_unwritten(store, run := asking.run(system, condition))
            for repetition in range(options.repeats):
                jobs.append(job := asking.job(system, condition, mine, repetition))
                settled += len(mine) - len(job.items)
            if (there := store.count_repetitions(run)) > options.repeats:
                more[there] = more.get(there, 0) + 1
    jobs.sort(key=lambda job: job.repetition)
    unable = {name: counts for name in conditions if (counts := asking.unable_counts(name))}
    return Plan(jobs, settled, unsupported, unable, tuple(problems), len(chosen) - len(items), added, more)


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
    """The outstanding jobs of runs that another machine planned with these options. `has` says whether this machine has
    all media of some items.

    Raises `InputError` if systems, settings or the benchmark's scorers here differ from the run's.
    """
    for scorer in benchmark.scorers:
        _refuse_other_scorer(store, benchmark.name, scorer)
    whole = tuple(chosen_items(benchmark, replace(options, limit=None)))
    items, by_name = chosen_items(benchmark, options), {system.name: system for system in systems}
    asking, jobs = _Asking(store, benchmark, items, whole, library, tuple(scorers), options), []
    for run in runs:
        location, condition = f"run of {run.system} under {run.condition}", CONDITIONS.get(run.condition)
        if run.system not in by_name:
            raise InputError(store.shown, location, found=f"an order for {', '.join(by_name)}", expected="one for it")
        system = by_name[run.system]
        mine = asking.settings(system, run.condition)
        if not same_run(run.settings, mine):
            found = f"other settings here ({changed_settings(run.settings, mine)})"
            raise InputError(store.shown, location, found=found, expected="the run's own")
        borrowed = whole if condition.borrows else ()
        never = listed_items(run.settings)
        asked = [item for item in asking.supported(system) if item.id not in never]
        for repetition in range(options.repeats):
            job = asking.job(system, run.condition, asked, repetition)
            jobs.append(replace(job, has=partial(_has, has, borrowed)) if condition.sees else job)
    return Plan(sorted(jobs, key=lambda job: job.repetition))


def _refuse_other_scorer(store: Store, benchmark: str, scorer: Scorer) -> None:
    now = scorer_settings(scorer)
    before = store.card(benchmark).scorers.get(scorer.name, now)
    if not same_run(before, now):
        found = f"other settings here ({changed_settings(before, now)})"
        raise InputError(store.shown, f"scores by {scorer.name}", found=found, expected="those of where it was planned")


def _has(has: Callable[[Sequence[Item]], bool], borrowed: Sequence[Item], item: Item) -> bool:
    return has([item, *borrowed])


@dataclass(frozen=True)
class _Asking:
    """What the jobs of a plan share: the `items` to ask, and the `others` whose media a condition may borrow."""

    store: Store
    benchmark: Benchmark
    items: Sequence[Item]
    others: Sequence[Item]
    library: MediaLibrary
    scorers: Sequence[Scorer]
    options: PlanOptions
    _unable: dict[tuple[str, str], str] = field(default_factory=dict)
    _bare: dict[str, Item] = field(default_factory=dict)

    def unable(self, item: Item, condition: str) -> str:
        """Why an item can't be shown under a condition; "" where it can, and where its media can't be read: then it is not
        asked, or its run says so."""
        key = condition, item.id
        if key not in self._unable:
            self._unable[key] = why_unable(item, condition, self.library, seed=self.options.seed)
        return self._unable[key]

    def shown(self, items: Sequence[Item], condition: str) -> list[Item]:
        """The items that can be shown under a condition."""
        if type(CONDITIONS.get(condition)).unable is Condition.unable:
            return list(items)  # it shows every item
        return [item for item in items if not self.unable(item, condition)]

    def check_shown(self, condition: str) -> None:
        """Raises `InputError` if no item can be shown under a condition."""
        if not self.shown(self.items, condition):
            counts = self.unable_counts(condition)
            found = "; ".join(f"{count_of(count, 'item')}: {why}" for why, count in counts.items())
            raise InputError(self.benchmark.name, f"condition {condition!r}", found=found, expected="an item to ask")

    def unable_counts(self, condition: str) -> dict[str, int]:
        """How many of the items can't be shown, by the reason."""
        if len(self.shown(self.items, condition)) == len(self.items):
            return {}
        return dict(Counter(why for item in self.items if (why := self.unable(item, condition))))

    def supported(self, system: System) -> list[Item]:
        """The items that a system answers, after learning from all items that count, if it does learn."""
        if isinstance(system, NeedsReferences):
            system.learn(self.benchmark.counted(all_items=self.options.all_items))
        return _supported(system, self.items, self._bare)

    def settings(self, system: System, condition: str) -> dict[str, JsonValue]:
        """The settings of a system's run."""
        options = self.options
        more: dict[str, JsonValue] = {} if options.order_seed is None else {"order_seed": options.order_seed}
        more |= {REPEATS: options.repeats} if options.repeats > 1 else {}
        every = self.benchmark.items
        asked = [] if system.name in BASELINES else self.shown(_supported(system, every, self._bare), condition)
        if never := unsupported_items(system, every, asked):
            more[UNSUPPORTED] = never
        settings = run_settings(system, self.library, condition, seed=options.seed, budget_s=options.budget_s)
        return settings | more | sight_found(system.settings, self.library.cache_dir)

    def run(self, system: System, condition: str) -> Run:
        """The run of a system, new or to be resumed."""
        return self.store.start_run(self.benchmark.name, system.name, condition, self.settings(system, condition))

    def job(self, system: System, condition: str, mine: Sequence[Item], repetition: int = 0) -> Job:
        """The outstanding items of one repetition of a run."""
        run = self.run(system, condition)
        known = self.store.settled(run, repetition)
        left = [item for item in mine if item.id not in known]
        view = viewer(left, condition, self.library, seed=self.options.seed, others=self.others)
        skip = self.options.skip_broken
        return Job(
            run,
            system,
            left,
            view,
            self.scorers,
            skip_broken=skip,
            settled=len(known) + (0 if repetition else self._beyond(run)),
            paid=self.store.paid_in_vain(run, repetition),
            rejected=rejected_items(self.store, run, repetition),
            repetition=repetition,
        )

    def _beyond(self, run: Run) -> int:
        """The number of answers of later repetitions than were asked for: with these the answers of all jobs add up to those
        of the run."""
        counts = self.store.settled_repetitions(run)
        return sum(count for number, count in counts.items() if number >= self.options.repeats)


def _check_sound(
    benchmark: Benchmark, systems: Sequence[System], conditions: Sequence[str], options: PlanOptions
) -> None:
    """Raises `ConfigurationError` for a condition that does not fit these items, and for a system without sound where
    sound belongs to the questions."""
    items = benchmark.counted(all_items=options.all_items)
    for name in conditions:
        why = CONDITIONS.get(name).unfit(items)
        if why:
            raise ConfigurationError(f"condition {name!r} makes no sense for {benchmark.name}: {why}")
    hearing = [name for name in conditions if CONDITIONS.get(name).sees and CONDITIONS.get(name).hears]
    sounding = [item for item in items if item.sounding]
    for system in [one for one in systems if hearing and getattr(one, "takes_sound", None) is False]:
        mine = _supported(system, sounding, {})
        if mine:
            raise ConfigurationError(
                f"{system.name} takes no sound, which belongs to {count_of(len(mine), 'question')} of {benchmark.name} "
                f"under {hearing[0]}: use --condition muted, or a system that takes it (google:…, "
                f"openai-chat:gpt-audio, "
                "an OpenAI-compatible server with --base-url, a function with a parameter sounds)"
            )


def _supported(system: System, items: Sequence[Item], bare: dict[str, Item]) -> list[Item]:
    """The items that a system answers. Code from outside Proctor is asked without references and evidence, unless it is an
    oracle baseline; `bare` keeps such items by id, since copies take time."""
    if isinstance(system, NeedsReferences) or not origin_of(system):
        return [item for item in items if system.supports(item)]
    for item in items:
        if item.id not in bare:
            bare[item.id] = item.without_answer()
    return [item for item in items if system.supports(bare[item.id])]


def why_unable(item: Item, condition: str, library: MediaLibrary, *, seed: int) -> str:
    """Why an item can't be shown under a condition (see `Condition.unable`); "" if its media can't be read."""
    try:
        return CONDITIONS.get(condition).unable(ConditionContext(item, (), seed, library, whole=True))
    except InputError:
        return ""


def unsupported_items(
    system: System, items: Sequence[Item], asked: Sequence[Item] | None = None
) -> dict[str, JsonValue]:
    """The questions that a run does not ask: answer `formats` of which it asks none, and the ids of other `items`, since the
    system does not support them, or its condition can't show them. `asked` are the others (None: all that the system
    supports). Empty if it asks all, and for a built-in baseline, of which its name says so."""
    if system.name in BASELINES:
        return {}
    left = {item.id for item in (_supported(system, items, {}) if asked is None else asked)}
    never = [item for item in items if item.id not in left]
    refused = {item.id for item in never}
    some = {item.answer.kind for item in items if item.id not in refused}
    found: dict[str, list[JsonValue]] = {
        "formats": [*sorted({item.answer.kind for item in never} - some)],
        "items": [item.id for item in never if item.answer.kind in some],
    }
    return {what: names for what, names in found.items() if names}


def chosen_items(benchmark: Benchmark, options: PlanOptions) -> list[Item]:
    """The items that a run asks, in its order: by media, or drawn."""
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
    """The items with usable media by id, and the problems of the others. If a condition borrows media of other items, all
    items that count are included, whatever the limit."""
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
    """Items video by video and by time, so that neighbouring questions share frames."""
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
    """The recorded settings of a run: everything that changes its answers."""
    shown = CONDITIONS.get(condition)
    media: dict[str, JsonValue] = library.settings.model_dump(mode="json") if shown.sees else {}
    code: dict[str, JsonValue] = {
        name: one for name, one in (("system", code_hash(system)), ("condition", code_hash(shown))) if one
    }
    more: dict[str, JsonValue] = {CODE_HASHES: code} if code else {}
    return {
        "system": admit_settings(system, system.settings),
        "media": media,
        "seed": seed,
        "budget_s": budget_s,
        ORACLE: isinstance(system, NeedsReferences),
        **more,
    }


@dataclass(frozen=True)
class Outcome:
    """The result of a plan: the tally, and the numbers of failed and of unasked items."""

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
    """Runs the jobs of a plan (see `ask_all`), and records what this session wants and how it ends. Raises the first
    `ProctorError` instead of an exception group."""
    ended = "interrupted"
    begin_session(store, plan.expected)
    try:
        tally = await ask_all(plan.jobs, store, limits=limits, stop=stop, on_change=on_change, claims=claims)
        ended = tally.stopped or ("stopped" if tally.remaining else "done")
    except* ProctorError as errors:
        ended = str(_first(errors))
        raise _first(errors) from None
    finally:
        with suppress(InputError):  # a store that can't be written has said so
            end_session(store, plan.runs, ended)
    failed = outlasting(lambda: sum(store.count_answers(run)[1] for run in plan.runs))
    return Outcome(tally, failed, tally.remaining)


def _first(group: ExceptionGroup[Exception]) -> Exception:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first


PICTURE_TOKENS = 300
"""The approximate number of tokens of a picture of 512 pixels; providers count 85 to 800."""
_SOUND_TOKENS = 32  # per second of sound, as Google counts; others count 10 to 25
_PROMPT_TOKENS = 150  # of the built-in prompts without the question
_LETTERS = 4  # per token of English text


@dataclass(frozen=True)
class RunEstimate:
    """One system under one condition: the numbers of answers that are there `already` and of those to ask for (`items`, with
    each repetition one), and their cost.

    `pictures` is an upper bound; `tokens` are input tokens. Both are 0 for systems without a model, and those of one call
    for methods with several calls per item. `input_usd` is their cost; None if the price is unknown.
    """

    system: str
    condition: str
    already: int
    items: int
    pictures: int
    tokens: int
    input_usd: float | None = None
    repetitions: int = 1

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data."""
        return asdict(self)


def estimate_runs(
    store: Store | None,
    benchmark: Benchmark,
    systems: Sequence[System],
    conditions: Sequence[str],
    library: MediaLibrary,
    options: PlanOptions,
) -> list[RunEstimate]:
    """Estimates runs; asks and writes nothing. Raises `InputError` for clips outside of their video."""
    items = chosen_items(benchmark, options)
    _check_sound(benchmark, systems, conditions, options)
    seen = any(CONDITIONS.get(name).sees for name in conditions)
    pictures = {item.id: _pictures(item, library) for item in items} if seen else {}
    spoken = {item.id: _sound_seconds(item, library) for item in items} if seen else {}
    stored = store.runs(benchmark.name) if store is not None and benchmark.name in store.benchmark_names() else []
    runs = {(run.system, run.condition): run for run in stored}
    found = []
    bare: dict[str, Item] = {}
    for system in systems:
        mine = _supported(system, items, bare)
        for condition in conditions:
            run = runs.get((system.name, condition))
            shown = [item for item in mine if not why_unable(item, condition, library, seed=options.seed)]
            left = shown * options.repeats if store is None or run is None else _left(store, run, shown, options)
            there, repeats = options.repeats * len(shown) - len(left), options.repeats
            estimate = RunEstimate(system.name, condition, there, len(left), 0, 0, repetitions=repeats)
            if "model" in system.settings:
                estimate = _with_tokens(estimate, left, pictures, spoken, getattr(system, "price", None))
            found.append(estimate)
    return found


def _left(store: Store, run: Run, items: Sequence[Item], options: PlanOptions) -> list[Item]:
    """The items that a run lacks, for each repetition."""
    done = [store.settled(run, repetition) for repetition in range(options.repeats)]
    return [item for known in done for item in items if item.id not in known]


def _with_tokens(
    estimate: RunEstimate,
    items: Sequence[Item],
    pictures: Mapping[str, int],
    spoken: Mapping[str, float],
    price: tuple[float, float] | None,
) -> RunEstimate:
    """The estimate of a system with a model, which is sent these items: with pictures, tokens, and their cost."""
    under = CONDITIONS.get(estimate.condition)
    shown = sum(pictures[item.id] for item in items) if under.sees and under.shows else 0
    heard = sum(spoken[item.id] for item in items) if under.sees and under.hears else 0.0
    words = sum(_words(item) for item in items)
    tokens = words + shown * PICTURE_TOKENS + math.ceil(heard * _SOUND_TOKENS)
    input_usd = None if price is None else price[0] * tokens / 1_000_000
    return replace(estimate, pictures=shown, tokens=tokens, input_usd=input_usd)


def _pictures(item: Item, library: MediaLibrary) -> int:
    """The largest number of pictures in the view of an item."""
    count = 0
    for medium in item.pictured:
        if isinstance(medium, VideoClip):
            start, end = library.span(medium)
            count += int(min(library.settings.max_frames, count_at_rate(start, end, library.settings.fps)))
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
"""Baselines wait only for the disk: up to this many of their answers share a transaction."""


def skipped_baselines(benchmark: Benchmark) -> dict[str, str]:
    """The baselines that answer none of the items, each with the reason."""
    items = benchmark.counted()
    known = any(item.reference is not None for item in items)
    skipped = {}
    for name in BASELINES:
        system = build_system(name, seed=0)
        if not any(system.supports(item) for item in items):
            skipped[name] = "unsupported answer format"
        elif isinstance(system, NeedsReferences) and not known:
            system.learn(items)
            if not any(system.supports(item) for item in items):
                skipped[name] = "no references"
    return skipped


async def add_baselines(
    store: Store, benchmark: Benchmark, scorers: Sequence[Scorer], *, seed: int = 0, planned: Plan | None = None
) -> list[str]:
    """Runs the baselines on all items that count, as far as the store lacks their answers; returns the names of those run.

    They take seconds and cost nothing. A run of that name with other settings (another seed), or of another process, is
    left as it is; an interrupted one is completed. What is `planned` is left to those who asked for it.
    """
    asked = {
        (job.run.id, item.id) for job in (planned.jobs if planned else ()) for item in job.items if not job.repetition
    }
    items = benchmark.counted()
    asking = _Asking(store, benchmark, items, items, MediaLibrary(None), tuple(scorers), PlanOptions(seed=seed))
    known = {run.system: run.settings for run in store.runs(benchmark.name) if run.condition == _CONDITION}
    added = []
    for name in BASELINES:
        system = build_system(name, seed=seed)
        settings = asking.settings(system, _CONDITION)
        mine = asking.supported(system) if same_run(known.get(name, settings), settings) else []
        if not mine:
            continue
        job = asking.job(system, _CONDITION, mine)
        if left := [item for item in job.items if (job.run.id, item.id) not in asked]:
            with suppress(RunTakenError):
                await execute(store, Plan([replace(job, items=left)]), _AT_ONCE)
                added.append(name)
    return added
