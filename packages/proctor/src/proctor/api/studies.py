"""A study file is run: what is missing is asked and judged, and what it compares is compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from proctor import shell
from proctor.api.analysis import compare
from proctor.core import InputError
from proctor.shell import RunOptions, Study, filled, read_study, refuse_beside, study_path, sync_twin, time_span

if TYPE_CHECKING:
    from proctor.core import Benchmark
    from proctor.reports import ComparisonTable
    from proctor.runs import RunEstimate, Store
    from proctor.shell import Arranged, PreparedRun, Scored, StoredRuns

_OF_THE_CALL = {
    "store", "max_cost", "max_time", "concurrency", "give_up_after", "retries", "timeout_s", "cache", "cache_size",
    "on_change", "stop",
}  # fmt: skip
"""Options that may stand beside a study file: they change no answer."""

Ask = Callable[["PreparedRun"], Any]


@dataclass
class StudyResult:
    """What a call of a study did. `runs` are those of each benchmark and system, `scored` what judges gave, `comparisons` the
    comparisons that the file names, each with its `gate` in `data`, in its order. They are empty until nothing is missing:
    `remaining` answers are still to be asked, `failed` ones failed or have no verdict of a judge; `stopped` says why no more was
    asked."""

    study: Study
    store: Store
    runs: list[StoredRuns] = field(default_factory=list)
    scored: list[Scored] = field(default_factory=list)
    comparisons: list[ComparisonTable] = field(default_factory=list)
    remaining: int = 0
    failed: int = 0
    stopped: str = ""

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.remaining and not self.failed

    @property
    def exit_code(self) -> int:
        """0, or what the gates of the comparisons give together: 1 if one does not hold, 2 if one is undecided."""
        codes = {table.data.gate.exit_code for table in self.comparisons if table.data.gate is not None}
        return 1 if 1 in codes else max(codes, default=0)


@dataclass(frozen=True)
class ArrangedStudy:
    """A study whose file, data and systems are read and checked; nothing is asked or written yet. `parts` are the runs of each
    benchmark (by its position in the file) and system."""

    study: Study
    file: Path
    options: RunOptions
    benchmarks: tuple[Benchmark, ...]
    parts: tuple[tuple[int, Arranged], ...]

    async def estimates(self) -> list[tuple[str, list[RunEstimate]]]:
        """What would be asked of each benchmark."""
        found = [(self.benchmarks[row].name, await arranged.estimate()) for row, arranged in self.parts]
        return [(name, own) for name, own in found if own]

    async def make(self, ask: Ask | None = None, on_note: Callable[[str], None] = lambda _: None) -> StudyResult:
        """Asks what is missing (each run by `ask`), has judges score, and compares. `on_note` is called with notes."""
        from proctor.runs import record_study

        store = shell.open_store(self.options["store"])
        result, begun, spent = StudyResult(self.study, store), time.monotonic(), 0.0
        over, known = False, set[str]()
        for row, arranged in self.parts:
            limits = None if over else _left(self.options, spent, time.monotonic() - begun)
            if limits is None:
                result.stopped = result.stopped or "stopped: the limits of the study are reached"
                result.remaining += sum([one.items for one in await arranged.estimate()])
                continue
            prepared = await replace(arranged, options={**arranged.options, **limits, "store": store}).prepare()  # type: ignore[typeddict-item]
            record_study(store, self.benchmarks[row].name, self.study.study, self.study.sha256, self.study.body)
            for note in prepared.notes:
                if note not in known:
                    on_note(note)
            known.update(prepared.notes)
            made = await (ask(prepared) if ask else prepared.ask(self.options["stop"], self.options["on_change"]))
            result.runs.append(made)
            if made.outcome is not None:
                spent += made.outcome.tally.usage.cost_usd or 0.0
                result.remaining += made.outcome.remaining
                result.failed += made.outcome.failed
                why = made.outcome.tally.stopped or ("stopped" if made.outcome.remaining else "")
                result.stopped = result.stopped or why
                over = why.startswith("stopped")  # where one system gave up, the others are asked
        if result.complete:
            await self._judge(result, spent)
        if result.complete and not result.stopped:
            self._compare(result)
        return result

    async def _judge(self, result: StudyResult, spent: float) -> None:
        for judge in self.study.judges:
            for row, given in enumerate(self.study.benchmarks):
                if judge.benchmarks and (given.name or given.path) not in judge.benchmarks:
                    continue
                limits = _left({**self.options, "max_time": None}, spent, 0.0)
                if limits is None:
                    result.stopped = "stopped: the limits of the study are reached before all judges were asked"
                    return
                options: dict[str, Any] = {"judge": judge.judge, "model": judge.model, "repeats": judge.repetitions}
                options |= {"settings": judge.settings, "max_cost": limits["max_cost"], "stop": self.options["stop"]}
                options |= {"base_url": judge.base_url or None, "price": judge.price or None}
                scored = await shell.score_async(result.store, self.benchmarks[row].name, **options)
                result.scored.append(scored)
                result.failed += 0 if scored.tally is None else scored.tally.left
                spent += 0.0 if scored.paid is None else scored.paid.usage.cost_usd or 0.0

    def _compare(self, result: StudyResult) -> None:
        named = [given.name or given.path for given in self.study.benchmarks]
        for asked in self.study.comparisons:
            chosen = [row for row, name in enumerate(named) if asked.benchmark in {"", name}]
            for row in chosen:
                options: dict[str, Any] = {"systems": (asked.first, asked.second), "gate": asked.gate}
                options |= {"metrics": asked.metric or (), "seed": self.study.seed, "failed": self.study.failed or None}
                result.comparisons.append(compare(result.store, self.benchmarks[row].name, **options))


def _left(options: Any, spent: float, seconds: float) -> dict[str, Any] | None:
    """What is left of the limits; None where nothing is."""
    cost, span = options["max_cost"], time_span(options["max_time"])
    left = {"max_cost": None if cost is None else cost - spent, "max_time": None if span is None else span - seconds}
    return None if any(one is not None and one <= 1e-9 for one in left.values()) else left


def arrange_study(file: str | Path, **options: Unpack[RunOptions]) -> ArrangedStudy:
    """The first step of `run_study`: read and check everything."""
    file = Path(file)
    study = read_study(file)
    given = filled("run_study", RunOptions, options)
    known = filled("run_study", RunOptions, RunOptions())
    beside = {name: one for name, one in given.items() if name not in _OF_THE_CALL and one != known[name]}  # type: ignore[literal-required]
    refuse_beside(file, beside)
    for name, one in study.limits.model_dump().items():
        if one and given[name] == known[name]:  # type: ignore[literal-required]
            given[name] = one  # type: ignore[literal-required]
    if given["store"] is None and study.store:
        given["store"] = study_path(file.parent, study.store)
    loaded, parts = [], []
    for row, one in enumerate(study.benchmarks):
        loaded.append(_loaded(file.parent, study, row))
        media = study_path(file.parent, one.media) if one.media else ""
        parts += [(row, _arranged(loaded[-1], study, media, system, given)) for system in study.systems]
    names = [one.name for one in loaded]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise InputError(file, "benchmarks", found=f"{twice!r} twice", expected="questions of different names")
    return ArrangedStudy(study, file, given, tuple(loaded), tuple(parts))


def _loaded(folder: Path, study: Study, row: int) -> Benchmark:
    one = study.benchmarks[row]
    media = study_path(folder, one.media) if one.media else None
    if one.path:
        return shell.load(Path(study_path(folder, one.path)), media=media, seed=study.seed)
    data = study_path(folder, one.data) if one.data else None
    return shell.load(one.name, data, media, track=one.track, seed=study.seed)


def _arranged(benchmark: Benchmark, study: Study, media: str, system: Any, given: RunOptions) -> Arranged:
    options: dict[str, Any] = {name: one for name, one in given.items() if name in _OF_THE_CALL}
    options |= {"conditions": study.conditions, "repeats": study.repetitions, "seed": study.seed, "limit": study.limit}
    options |= {"settings": system.settings, "options": system.options, "name": system.name, "prompt": system.prompt}
    options |= {"base_url": system.base_url or None, "price": system.price or None, "media": media or None}
    options |= {"model": system.model} if system.model else {}
    return shell.arrange(benchmark, system.system or None, **options)


async def run_study_async(file: str | Path, **options: Unpack[RunOptions]) -> StudyResult:
    """Run a study file (YAML): its benchmarks, systems, conditions and repetitions, then its judges and comparisons. Does what is
    missing, so call it again to continue where it stopped.

    Beside the file only options that change no answer are taken: `store`, `max_cost`, `max_time`, `concurrency`,
    `give_up_after`, `retries`, `timeout_s`, `cache`, `cache_size`, `on_change`, `stop`. The file is recorded in the store under its hash, which the
    report names. Raises `InputError` with all problems of the file before anything is asked. The command is
    `proctor run study.yaml`; in async code await `run_study_async`.
    """
    return await arrange_study(file, **options).make()


run_study = sync_twin(run_study_async)
