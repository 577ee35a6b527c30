"""Runs an image on the questions of a phase: a submission on the hidden ones, or a participant's own image on the
public ones.

The answers of a submission become a run `TEAM#NUMBER` in the sealed store of the phase. The ordinary engine asks, and
continues where an earlier worker stopped.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from pydantic import JsonValue

from proctor import core
from proctor.api import load
from proctor.runs import Limits, Outcome, PlanOptions, RunTakenError, Store, Tally
from proctor.shell import SingleRun, plan_single
from proctor_challenge.challenge import Challenge
from proctor_challenge.containers import BoxedSystem, BoxError, BoxLimits, BoxReport, Executor, examine
from proctor_challenge.queue import Leased
from proctor_challenge.settings import CHALLENGE_FILE, Budget, Phase, Resources, read_challenge
from proctor_challenge.states import SubmissionState

ALL_GPUS = "nvidia.com/gpu=all"
"""All GPUs of a machine, by the container device interface (CDI)."""

ONE_AT_A_TIME = Limits(concurrency=1, give_up_after=10**9)
"""A container gets one question after another, and itself decides when it is given up (`BoxError`)."""

_TAKEN_S, _TAKEN_TRIES = 2.0, 60  # an earlier worker on another machine counts as gone after a minute
_MAX_FAILURES = 5  # in a row
_LOG_LINES = 20
_EXAMPLES = 3


def boxed_system(
    name: str, executor: Executor, image: str, phase: Phase, limits: BoxLimits, *, seed: int, label: str
) -> BoxedSystem:
    """An image as a system with the time budget of a phase."""
    budget = phase.budget
    return BoxedSystem(
        name, executor, image, limits, question_s=budget.question_s, startup_s=budget.startup_s, seed=seed, label=label
    )


class EndedError(core.ProctorError):
    """The submission itself failed: it ends in `state` with `reason`; `report` says what happened."""

    def __init__(self, state: SubmissionState, reason: str, message: str, report: BoxReport) -> None:
        super().__init__(message)
        self.state, self.reason, self.report = state, reason, report


class StoppedError(core.ProctorError):
    """The worker was stopped before all questions were asked; the answers so far are kept."""


async def run_submission(
    challenge: Challenge,
    leased: Leased,
    executor: Executor,
    *,
    stop: asyncio.Event,
    gpu: str = ALL_GPUS,
    on_progress: Callable[[dict[str, int]], None] = lambda _: None,
) -> tuple[BoxReport, str]:
    """Asks an image the questions that it has not answered yet; returns the report for its team and the image's digest.

    Once `stop` is set, the question in progress is completed and no other is asked. `gpu` is the CDI device of the
    container when the challenge provides one. `on_progress` receives the counts by status after each answer.

    Raises `EndedError` when the container crashed or was never ready, `StoppedError` when the worker was stopped, and
    `InputError` or `InfrastructureError` when the machine or the challenge is at fault: then it may be run again.
    """
    phase, sealed = challenge.phase(leased.phase), challenge.sealed
    benchmark = await asyncio.to_thread(sealed.benchmark, leased.phase)
    digest = await _load(challenge, leased, executor)
    limits = challenge.settings.resources.limits(gpu)
    label = f"{challenge.label}/{leased.submission}/{leased.fence}"
    system = boxed_system(leased.system, executor, digest, phase, limits, seed=leased.seed, label=label)
    try:
        with sealed.store(leased.phase) as store:
            # Conditions draw the same for all submissions; only the order differs. The container measures the time.
            options = PlanOptions(order_seed=leased.seed)
            cache = sealed.sealed_folder / "cache" if phase.hidden else None
            single = plan_single(store, benchmark, system, phase.condition, options, scorers=(), cache_dir=cache)
            if single.to_ask:
                await _ask(single, system, stop, on_progress)
            counts = Counter(answer.status for answer in store.answers(single.run).values())
    except BoxError as error:
        state, reason = (SubmissionState.TIMED_OUT, "timed_out") if error.late else (SubmissionState.CRASHED, "crashed")
        raise EndedError(state, reason, str(error), system.report(public=not phase.hidden)) from error
    finally:
        await executor.unload(digest)
    report = system.report(public=not phase.hidden)
    return report.model_copy(update={"counts": dict(sorted(counts.items()))}), digest


async def _load(challenge: Challenge, leased: Leased, executor: Executor) -> str:
    """Loads the uploaded image and returns its digest; containers that an earlier worker left are removed."""
    await executor.remove_left(f"{challenge.label}/{leased.submission}")
    try:
        return await executor.load(challenge.uploads / leased.upload)
    except core.InputError as error:
        raise EndedError(SubmissionState.CRASHED, "load", str(error), BoxReport()) from error


async def _ask(
    single: SingleRun, system: BoxedSystem, stop: asyncio.Event, on_progress: Callable[[dict[str, int]], None]
) -> None:
    halt = asyncio.Event()  # set with `stop`, or after too many infrastructure errors

    def changed(tally: Tally) -> None:
        on_progress({status.value: count for status, count in tally.by_status.items() if count})
        if tally.failures_in_a_row >= _MAX_FAILURES:
            halt.set()

    async def follow() -> None:
        await stop.wait()
        halt.set()

    try:
        await system.__aenter__()
    except BoxError:
        raise
    except core.ConfigurationError as error:  # the executor can't start this image
        raise BoxError(str(error), late=False) from error
    following = asyncio.create_task(follow())
    try:
        outcome = await _execute(single, halt, changed)
    finally:
        following.cancel()
        await system.__aexit__()
    if outcome.failed:
        failed = core.count_of(outcome.failed, "question")
        raise core.InfrastructureError(f"{system.name}: {failed} failed: {outcome.tally.last_reason}")
    if outcome.remaining:
        raise StoppedError(f"{system.name}: {core.count_of(outcome.remaining, 'question')} left")


async def _execute(single: SingleRun, stop: asyncio.Event, on_change: Callable[[Tally], None]) -> Outcome:
    """Waits while the process of an earlier lease still holds the run. Raises `InfrastructureError` when that never
    ends."""
    for _ in range(_TAKEN_TRIES):
        with suppress(RunTakenError):
            return await single.ask(ONE_AT_A_TIME, stop=stop, on_change=on_change)
        await asyncio.sleep(_TAKEN_S)
    raise core.InfrastructureError("found the run of the submission in the hands of another process, expected it free")


@dataclass(frozen=True)
class Trial:
    """What a participant tries an image on: the public questions of a `phase` (by default the first that has some) of
    the challenge in `folder`. Without a challenge.yaml, the folder holds files of a `benchmark`, with `media`. `limit`
    is the number of questions to ask."""

    folder: Path
    phase: str = ""
    benchmark: str = ""
    track: str = ""
    media: Path | None = None
    limit: int | None = None
    seed: int = 0
    gpu: str | None = None

    def read(self) -> tuple[core.Benchmark, Phase, Resources]:
        """The questions, their phase, and the resources of the container. Raises `UsageError` for a missing benchmark
        or an unknown phase, and `InputError` for a challenge without public questions."""
        if not (self.folder / CHALLENGE_FILE).is_file():
            return self._without_challenge()
        settings = read_challenge(self.folder)
        public = {phase.name: phase for phase in settings.phases if phase.questions}
        if not public:
            raise core.InputError(
                self.folder / CHALLENGE_FILE,
                found="no phase with public questions",
                expected="one (`questions:`), or --benchmark and a folder of questions without this file",
            )
        name = self.phase or next(iter(public))
        if name not in public:
            expected = f"one with public questions: {', '.join(public)}"
            raise core.UsageError(f"--phase {name!r} has no public questions: choose {expected}.")
        phase = public[name]
        data = self.folder / phase.questions
        media = self.media or (self.folder / phase.media if phase.media else data)
        return load(settings.benchmark, data, media, track=settings.track), phase, settings.resources

    def _without_challenge(self) -> tuple[core.Benchmark, Phase, Resources]:
        if not self.benchmark:
            raise core.UsageError(
                f"{self.folder} holds no {CHALLENGE_FILE}, so that its benchmark must be named: --benchmark {' or '.join(core.BENCHMARKS.names())}"
            )
        found = load(self.benchmark, self.folder, self.media, track=self.track)
        budget = Budget() if found.budget_s is None else Budget(question_s=found.budget_s)
        phase = Phase(name="try", questions=str(self.folder), condition=found.conditions[0], budget=budget)
        return found, phase, Resources(gpu=self.gpu is not None)


async def try_image(
    trial: Trial, executor: Executor, image: str, *, on_change: Callable[[Tally], None] = lambda _: None
) -> core.PluginReport:
    """Asks an image exactly as a challenge does, and reports everything. `image` is a name or digest, an archive, or a
    program for the executor `process`. `ok` is False when the container crashed or was not ready, and when an answer
    was late or an error. Raises `ConfigurationError` for an image that is not there."""
    benchmark, phase, resources = trial.read()
    archived = executor.name != "process" and await asyncio.to_thread(Path(image).is_file)
    image = await executor.load(Path(image)) if archived else image
    limits, label = resources.limits(trial.gpu or ALL_GPUS), f"proctor-try/{os.getpid()}"
    system = boxed_system("image", executor, image, phase, limits, seed=trial.seed, label=label)
    problem = ""
    try:
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder) / "answers.sqlite")
            options = PlanOptions(limit=trial.limit, order_seed=trial.seed)
            single = plan_single(store, benchmark, system, phase.condition, options)
            try:
                async with system:
                    await single.ask(ONE_AT_A_TIME, on_change=on_change)
            except BoxError as error:
                problem = str(error)
            answers = store.answers(single.run)
            scores = [row.value for row in store.score_rows(single.run, metric=benchmark.headline)]
            store.close()
    finally:
        if archived:
            await executor.unload(image)
    box = system.report(public=True)
    return _trial_report(benchmark, phase, box, answers, scores, problem)


def _trial_report(
    benchmark: core.Benchmark,
    phase: Phase,
    box: BoxReport,
    answers: Mapping[str, core.Answer],
    scores: Sequence[float],
    problem: str,
) -> core.PluginReport:
    score = sum(scores) / len(scores) if scores else None
    failed = bool(problem or box.counts.get(core.Status.TIMED_OUT) or box.counts.get(core.Status.ERROR))
    unreadable = [
        answer.problem
        for _, answer in sorted(answers.items())
        if answer.status is core.Status.ANSWERED and answer.parsed is None
    ]
    lines = [f"{phase.name}: {core.count_of(len(answers), 'question')} under {phase.condition}"]
    lines += [f"{status.value}: {count}" for status, count in sorted(box.counts.items())]
    if unreadable:
        examples = "; ".join(list(dict.fromkeys(unreadable))[:_EXAMPLES])
        lines.append(f"unreadable: {core.count_of(len(unreadable), 'answer')}, such as: {examples}")
    lines += _resource_lines(phase.budget, box, answers)
    if score is not None:
        metric = next((one for one in benchmark.metrics if one.name == benchmark.headline), core.ACCURACY)
        lines.append(f"{metric.label}: {core.value(metric, score)} of {core.count_of(len(scores), 'scored answer')}")
    lines += [f"error: {name}, {core.count_of(times, 'time')}" for name, times in box.errors.items()]
    lines += [problem] if problem else []
    if failed:
        lines += [f"| {line}" for line in core.clean(box.log).splitlines()[-_LOG_LINES:]]
    json: dict[str, JsonValue] = {
        "phase": phase.name,
        "questions": len(answers),
        "ended": problem,
        benchmark.headline: score,
        "container": box.model_dump(mode="json"),
    }
    return core.PluginReport(json, tuple(lines), ok=not failed)


def _resource_lines(budget: Budget, box: BoxReport, answers: Mapping[str, core.Answer]) -> list[str]:
    times = [answer.timing.model_s for answer in answers.values() if answer.timing is not None]
    lines = [] if box.startup_s is None else [f"ready after {box.startup_s} s of {budget.startup_s:g} s"]
    if times:
        half, longest = core.seconds(median(times)), core.seconds(max(times))
        lines.append(f"a question: {half} s (median), {longest} s (most) of {budget.question_s:g} s")
    if box.peak_memory is not None:
        lines.append(f"memory: {box.peak_memory / 2**20:.0f} MB at most")
    return lines


async def examine_machine(executor: Executor, folder: Path | None, gpu: str | None = None) -> core.PluginReport:
    """Whether this machine can run the containers of the challenge in a folder (None: with the default limits)."""
    resources = Resources(gpu=bool(gpu)) if folder is None else read_challenge(folder).resources
    checks = await examine(executor, resources.limits(gpu or ALL_GPUS))
    failed = [check for check in checks if check.ok is False]
    summary = f"{core.count_of(len(failed), 'check')} failed." if failed else "Containers run here, and are held."
    return core.PluginReport(
        [asdict(check) for check in checks], (*(check.line for check in checks), summary), ok=not failed
    )
