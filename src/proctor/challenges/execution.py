"""A leased image is asked: its answers become a run `TEAM#NUMBER` in the sealed store of the phase, by the ordinary
engine, which goes on where an earlier worker stopped."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from proctor.challenges.challenge import Challenge
from proctor.challenges.queue import Leased
from proctor.challenges.states import SubmissionState
from proctor.containers import BoxedSystem, BoxError, BoxReport, Executor
from proctor.core import Benchmark, ConfigurationError, InfrastructureError, InputError, ProctorError, count_of
from proctor.media import Excerpts, MediaLibrary
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
