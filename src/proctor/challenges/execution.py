"""A leased image is asked: its answers become a run `TEAM#NUMBER` in the sealed store of the phase, by the ordinary
engine, which goes on where an earlier worker stopped. A participant's image on a participant's machine: asked the public questions exactly as a challenge asks the hidden
ones, with everything shown."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeVar

from pydantic import JsonValue

from proctor.api import load
from proctor.challenges.challenge import Challenge
from proctor.challenges.queue import Leased
from proctor.challenges.settings import CHALLENGE_FILE, Budget, Phase, Resources, read_challenge
from proctor.challenges.states import SubmissionState
from proctor.containers import BoxedSystem, BoxError, BoxReport, Executor, examine
from proctor.core import (
    Answer,
    Benchmark,
    ConfigurationError,
    InfrastructureError,
    InputError,
    PluginReport,
    ProctorError,
    Status,
    UsageError,
    clean,
    count_of,
    seconds,
)
from proctor.media import Excerpts, MediaLibrary
from proctor.metrics import code_scorers
from proctor.runs import Limits, Plan, PlanOptions, Run, RunTakenError, Store, Tally, execute, plan

_TAKEN_S, _TAKEN_TIMES = 2.0, 60  # an earlier worker on another machine counts as gone after a minute
_FAILED_IN_A_ROW = 5
_NEVER = 10**9

T = TypeVar("T")


class EndedError(ProctorError):
    """The submission came to an end that is its own: `state` and `reason` say which, `report` what happened."""

    def __init__(self, state: SubmissionState, reason: str, told: str, report: BoxReport) -> None:
        super().__init__(told)
        self.state, self.reason, self.report = state, reason, report


class StoppedError(ProctorError):
    """The worker was told to stop before all questions were asked; what was answered is kept."""


@dataclass(frozen=True)
class Running:
    """How a submission is run: `told` hears of the counts by status after each answer; `stop`, once set, lets the
    answer under way come in and asks no more; `gpu` is the device (CDI) that containers get where the challenge gives
    one."""

    executor: Executor
    told: Callable[[dict[str, int]], None] = lambda _: None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    gpu: str = "nvidia.com/gpu=all"


async def run_submission(challenge: Challenge, leased: Leased, running: Running) -> tuple[BoxReport, str]:
    """Asks what an image has not answered yet; the report for its team, and the image's digest.

    Raises `EndedError` where it crashed or was never ready, `StoppedError` where the worker was to stop, and
    `InputError` or `InfrastructureError` where the machine or the challenge is at fault: then it may be run again.
    """
    sealed = challenge.sealed
    benchmark = await asyncio.to_thread(sealed.benchmark, leased.phase)
    digest = await _loaded(challenge, leased, running.executor)
    try:
        with sealed.store(leased.phase) as store:
            run, report = await _asked(challenge, leased, store, benchmark, digest, running)
            counts = Counter(answer.status for answer in store.answers(run).values())
    finally:
        await running.executor.unload(digest)
    return report.model_copy(update={"counts": dict(sorted(counts.items()))}), digest


async def _loaded(challenge: Challenge, leased: Leased, executor: Executor) -> str:
    """The digest of the uploaded image, on this machine now; boxes that an earlier worker left are gone."""
    await executor.remove_left(f"{challenge.label}/{leased.submission}")
    try:
        return await executor.load(challenge.uploads / leased.upload)
    except InputError as error:
        raise EndedError(SubmissionState.CRASHED, "load", str(error), BoxReport()) from error


async def _asked(
    challenge: Challenge, leased: Leased, store: Store, benchmark: Benchmark, digest: str, running: Running
) -> tuple[Run, BoxReport]:
    """Asks the questions that have no answer yet, one at a time, in the submission's own order."""
    phase = challenge.phase(leased.phase)
    system = BoxedSystem(
        leased.system,
        running.executor,
        digest,
        challenge.settings.resources.limits(running.gpu),
        question_s=phase.budget.question_s,
        startup_s=phase.budget.startup_s,
        seed=leased.seed,
        label=f"{challenge.label}/{leased.submission}/{leased.fence}",
    )
    library = MediaLibrary(
        benchmark.media_root,
        cache_dir=challenge.sealed.place / "cache" if phase.hidden else None,
        excerpts=Excerpts(benchmark.excerpts),
    )
    # Conditions draw the same for all submissions: only the order is each one's own. The box measures the time.
    options = PlanOptions(order_seed=leased.seed)
    planned = plan(store, benchmark, [system], [phase.condition], library, scorers=(), options=options)
    try:
        if planned.to_ask:
            await _ask(store, planned, system, running)
    except BoxError as error:
        state, reason = (SubmissionState.TIMED_OUT, "timed_out") if error.late else (SubmissionState.CRASHED, "crashed")
        raise EndedError(state, reason, str(error), system.report(public=not phase.hidden)) from error
    return planned.runs[0], system.report(public=not phase.hidden)


async def _ask(store: Store, planned: Plan, system: BoxedSystem, running: Running) -> None:
    def changed(tally: Tally) -> None:
        running.told({status.value: count for status, count in tally.by_status.items() if count})
        if tally.failures_in_a_row >= _FAILED_IN_A_ROW:
            running.stop.set()

    try:
        await system.__aenter__()
    except BoxError:
        raise
    except ConfigurationError as error:  # the executor can't start this image
        raise BoxError(str(error), late=False) from error
    try:
        limits = Limits(concurrency=1, give_up_after=_NEVER)
        outcome = await _once_free(lambda: execute(store, planned, limits, stop=running.stop, on_change=changed))
    finally:
        await system.__aexit__()
    if outcome.failed:
        failed = count_of(outcome.failed, "question")
        raise InfrastructureError(f"{system.name}: {failed} failed: {outcome.tally.last_reason}")
    if outcome.remaining:
        raise StoppedError(f"{system.name}: {count_of(outcome.remaining, 'question')} left")


async def _once_free(action: Callable[[], Awaitable[T]]) -> T:
    """Waits where the process of an earlier lease still holds the run. Raises `InfrastructureError` where it goes on
    doing so."""
    for _ in range(_TAKEN_TIMES):
        try:
            return await action()
        except RunTakenError:
            await asyncio.sleep(_TAKEN_S)
    raise InfrastructureError("found the run of the submission in the hands of another process, expected it free")


ALL_GPUS = "nvidia.com/gpu=all"
"""By the container device interface, all that a machine has."""

_LOG_LINES = 20
_EXAMPLES = 3


@dataclass(frozen=True)
class Trial:
    """What to try: the public questions of a `phase` (the first that has some) of the challenge in `folder`; where that
    has no challenge.yaml, the files of a `benchmark` there, with `media`. `limit` asks the first questions alone."""

    folder: Path
    phase: str = ""
    benchmark: str = ""
    track: str = ""
    media: Path | None = None
    limit: int | None = None
    seed: int = 0
    gpu: str | None = None

    def read(self) -> tuple[Benchmark, Phase, Resources]:
        """The questions, and how they are asked. Raises `UsageError` where the folder says too little."""
        if not (self.folder / CHALLENGE_FILE).is_file():
            if not self.benchmark:
                raise UsageError("--benchmark", f"that of the files in {self.folder}, which holds no {CHALLENGE_FILE}")
            found = load(self.benchmark, self.folder, self.media, track=self.track)
            phase = Phase(name="try", questions=str(self.folder), condition=found.conditions[0], budget=_budget(found))
            return found, phase, Resources(gpu=self.gpu is not None)
        settings = read_challenge(self.folder)
        public = {one.name: one for one in settings.phases if one.questions}
        name = self.phase or next(iter(public), "")
        if name not in public:
            raise UsageError(
                "--phase", f"one with public questions: {', '.join(public) or 'there is none'}", found=name
            )
        phase = public[name]
        where = self.folder / phase.questions
        media = self.media or (self.folder / phase.media if phase.media else where)
        return load(settings.benchmark, where, media, track=settings.track), phase, settings.resources


def _budget(benchmark: Benchmark) -> Budget:
    return Budget() if benchmark.budget_s is None else Budget(question_s=benchmark.budget_s)


async def examine_machine(executor: Executor, folder: Path | None, gpu: str | None = None) -> PluginReport:
    """Whether this machine can hold the containers of the challenge in a folder (None: with the usual limits)."""
    resources = Resources(gpu=bool(gpu)) if folder is None else read_challenge(folder).resources
    found = await examine(executor, resources.limits(gpu or ALL_GPUS))
    failed = [one for one in found if one.ok is False]
    ended = f"{count_of(len(failed), 'check')} failed." if failed else "Containers run here, and are held."
    return PluginReport([asdict(one) for one in found], (*(one.line for one in found), ended), ok=not failed)


async def try_image(
    trial: Trial, executor: Executor, image: str, *, on_change: Callable[[Tally], None] = lambda _: None
) -> PluginReport:
    """Asks an image: its name or digest, an archive of it, or a program for the executor `process`. `ok` is False where
    it crashed, was not ready, or was late or in error on a question. Raises `ConfigurationError` where the image is not
    there."""
    asked = trial.read()
    if executor.name == "process" or not await asyncio.to_thread(Path(image).is_file):
        return await _try(trial, asked, executor, image, on_change)
    image = await executor.load(Path(image))
    try:
        return await _try(trial, asked, executor, image, on_change)
    finally:
        await executor.unload(image)


async def _try(
    trial: Trial,
    asked: tuple[Benchmark, Phase, Resources],
    executor: Executor,
    image: str,
    on_change: Callable[[Tally], None],
) -> PluginReport:
    benchmark, phase, resources = asked
    system = BoxedSystem(
        "image", executor, image, resources.limits(trial.gpu or ALL_GPUS),
        question_s=phase.budget.question_s, startup_s=phase.budget.startup_s, seed=trial.seed,
        label=f"proctor-try/{os.getpid()}",
    )  # fmt: skip
    ended = ""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "answers.sqlite")
        library = MediaLibrary(benchmark.media_root, excerpts=Excerpts(benchmark.excerpts))
        options = PlanOptions(limit=trial.limit, order_seed=trial.seed)
        planned = plan(
            store, benchmark, [system], [phase.condition], library, scorers=code_scorers(benchmark), options=options
        )
        try:
            async with system:
                await execute(store, planned, Limits(concurrency=1, give_up_after=10**9), on_change=on_change)
        except BoxError as error:
            ended = str(error)
        report = _Told(benchmark, phase, system.report(public=True), ended).report(planned.runs[0], store)
        store.close()
    return report


@dataclass(frozen=True)
class _Told:
    """What became of it, in words."""

    benchmark: Benchmark
    phase: Phase
    box: BoxReport
    ended: str

    def report(self, run: Run, store: Store) -> PluginReport:
        answers = store.answers(run)
        headline = store.score_rows(run, metric=self.benchmark.headline)
        score = sum(row.value for row in headline) / len(headline) if headline else None
        late, wrong = self.box.counts.get(Status.TIMED_OUT, 0), self.box.counts.get(Status.ERROR, 0)
        lines = [f"{self.phase.name}: {count_of(len(answers), 'question')} under {self.phase.condition}"]
        lines += [f"{status.value}: {count}" for status, count in sorted(self.box.counts.items())]
        lines += [f"unreadable: {line}" for line in _unreadable(answers)]
        lines += self._resources(answers)
        if score is not None:
            lines.append(f"{self.benchmark.headline}: {score:.3f} of {count_of(len(headline), 'marked answer')}")
        lines += [f"error: {name}, {count_of(times, 'time')}" for name, times in self.box.errors.items()]
        lines += [self.ended] if self.ended else []
        lines += (
            [f"| {line}" for line in clean(self.box.log).splitlines()[-_LOG_LINES:]]
            if late or wrong or self.ended
            else []
        )
        json: dict[str, JsonValue] = {
            "phase": self.phase.name,
            "questions": len(answers),
            "ended": self.ended,
            self.benchmark.headline: score,
            "container": self.box.model_dump(mode="json"),
        }
        return PluginReport(json, tuple(lines), ok=not (late or wrong or self.ended))

    def _resources(self, answers: Mapping[str, Answer]) -> list[str]:
        times = sorted(one.timing.model_s for one in answers.values() if one.timing is not None)
        lines = (
            [f"ready after {self.box.startup_s} s of {self.phase.budget.startup_s:g} s"]
            if self.box.startup_s is not None
            else []
        )
        if times:
            half, most = seconds(median(times)), seconds(times[-1])
            lines.append(f"a question: {half} s (median), {most} s (most) of {self.phase.budget.question_s:g} s")
        if self.box.peak_memory is not None:
            lines.append(f"memory: {self.box.peak_memory / 2**20:.0f} MB at most")
        return lines


def _unreadable(answers: Mapping[str, Answer]) -> list[str]:
    """How many answers can't be read, with examples of what is wrong."""
    found = [one.problem for _, one in sorted(answers.items()) if one.status is Status.ANSWERED and one.parsed is None]
    return [f"{count_of(len(found), 'answer')}, such as: {line}" for line in found[:_EXAMPLES]]
