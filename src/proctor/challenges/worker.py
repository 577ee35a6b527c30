"""The worker: leases submissions from the store, runs them, has them marked, and writes down how they ended.

Whatever is killed, at whatever moment: the worker's lease ends and another one goes on; a scorer is started again; a
database that is away is waited for. Every step can be done twice: the second time changes nothing.
 A worker and a rerun for the shell: the folder opened, the executor chosen by name, all closed at the end."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError

from proctor.challenges.boards import Figures
from proctor.challenges.challenge import Challenge, SealedPart
from proctor.challenges.execution import EndedError, Running, StoppedError, run_submission
from proctor.challenges.marking import ScorerChangedError, keep_result, known_scorer, rerun_all
from proctor.challenges.queue import KINDS, LEASE_S, Leased, advance, beat, claim, expire, give_back, held_by
from proctor.challenges.schema import boards, events, results, submissions
from proctor.challenges.scorer import ScorerError, ScorerProcess
from proctor.challenges.settings import Kind
from proctor.challenges.states import SubmissionState
from proctor.challenges.submissions import StaleError
from proctor.containers import BoxReport, Executor, executor_of
from proctor.core import ConfigurationError, InfrastructureError, InputError
from proctor.runs import delete_runs, revise_benchmark
from proctor.web import newest_change

RULINGS = ("withdraw team", "readmit team", "set eligible", "disqualify", "reinstate")
"""What organisers do, by its name in the trail, after which boards are made again."""

POLL_S = 2.0
_BEATS = 4  # a lease
_AWAY_S = 600.0  # a database that is away for longer ends the worker
_TRIES, _REST_S = 3, 5.0  # of a run, where the machine was at fault
_AWAY = (OperationalError, InterfaceError)

_S = SubmissionState
T = TypeVar("T")


class SubmissionScorer(Protocol):
    """Who marks: `ScorerProcess`."""

    async def mark(self, leased: Leased) -> tuple[Figures, str]:
        """The figures of a submission, and the fingerprint of what marked it. Raises `ScorerError`."""

    async def publish(self, phase: str) -> None:
        """Makes a phase's boards. Raises `ScorerError`."""

    async def fingerprint(self) -> str:
        """Of what marks. Raises `ScorerError`."""


def worker_name() -> str:
    """This machine, this process, and a draw: no two workers ever have one name."""
    return f"{socket.gethostname()[:100]}/{os.getpid()}/{secrets.token_hex(4)}"


@dataclass
class Worker:
    """Works for one challenge, one submission at a time; start several for more. `kinds` are those that it can run,
    `said` is told what happens, a line each."""

    challenge: Challenge
    executor: Executor
    scorer: SubmissionScorer
    kinds: Sequence[Kind]
    name: str = field(default_factory=worker_name)
    lease_s: float = LEASE_S
    poll_s: float = POLL_S
    gpu: str = "nvidia.com/gpu=all"
    said: Callable[[str], None] = lambda _: None
    _fingerprint: str = ""
    _published: dict[str, tuple[tuple[str, int], int]] = field(default_factory=dict)

    async def work(self, stop: asyncio.Event, *, once: bool = False) -> int:
        """Works until it is told to stop, or with `once` until nothing waits; how many submissions it had. Raises
        `ScorerChangedError` where its code marks otherwise than what marked before."""
        self._fingerprint = await self.scorer.fingerprint()
        await self._kept(self._check_scorer)
        await self._remove_left()
        count = 0
        while not stop.is_set():
            await self._kept(lambda connection: expire(connection, self.challenge.now()))
            leased = await self._kept(self._claimed)
            if leased is not None:
                count += 1
                await self._serve(leased, stop)
            await self._publish_due()
            if leased is None and once:
                break
            if leased is None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), self.poll_s)
        return count

    def _check_scorer(self, connection: Connection) -> None:
        """Raises `ScorerChangedError` where this worker's scorer is not the newest one: it is to be started again."""
        known_scorer(connection, self._fingerprint, self.challenge.now())

    def _claimed(self, connection: Connection) -> Leased | None:
        """The next one; first what is leased already, where a claim was not confirmed."""
        self._check_scorer(connection)
        held = held_by(connection, self.name)
        return held or claim(connection, self.name, self.challenge.now(), self.lease_s, kinds=self.kinds)

    async def _serve(self, leased: Leased, stop: asyncio.Event) -> None:
        """Takes one submission to its end, or gives it back."""
        self.said(f"submission {leased.submission}: {leased.system} in {leased.phase}")
        pulse = _Pulse(self.challenge, leased, self.lease_s)
        task = asyncio.create_task(self._steps(leased, stop, pulse))
        with pulse.beating(task):
            try:
                await task
            except StaleError as error:
                self.said(f"submission {leased.submission}: {error}")
            except asyncio.CancelledError:
                if not pulse.lost:  # the worker itself is to end
                    await self._give_back(leased, counted=False)
                    raise
                self.said(f"submission {leased.submission}: cancelled, or leased by another worker")
            except ScorerChangedError:
                raise
            except Exception as error:  # noqa: BLE001 - one submission that finds a bug must not stop the others
                self.said(" ".join(f"submission {leased.submission}: {type(error).__name__}: {error}".split())[:500])
                await self._give_back(leased)

    async def _steps(self, leased: Leased, stop: asyncio.Event, pulse: _Pulse) -> None:
        try:
            if not leased.marking:
                await self._answered(leased, stop, pulse)
            figures, fingerprint = await self.scorer.mark(leased)
            await self._kept(
                lambda connection: keep_result(connection, leased, figures, fingerprint, self.challenge.now())
            )
        except EndedError as end:
            self.said(f"submission {leased.submission}: {end.state}: {end}")
            await self._advance(leased, end.state, reason=end.reason, log=end.report.model_dump(mode="json"))
        except ScorerError as error:
            self.said(f"submission {leased.submission}: {error}")
            await self._advance(leased, _S.SCORER_FAULT, reason="scorer_fault")
        except StoppedError:
            await self._give_back(leased, counted=False)
        except ScorerChangedError:
            await self._give_back(leased, counted=False)
            raise
        except (InputError, InfrastructureError, ConfigurationError) as error:
            self.said(f"submission {leased.submission}: {error}")
            await self._give_back(leased)
        else:
            self.said(f"submission {leased.submission}: scored")

    async def _answered(self, leased: Leased, stop: asyncio.Event, pulse: _Pulse) -> None:
        """Until all its answers are there: those of a file are read by the scorer."""
        shown: dict[str, Any] = {}
        if leased.kind == "image":
            await self._advance(leased, _S.RUNNING)
            report, digest = await self._run(leased, stop, pulse)
            shown = {"log": report.model_dump(mode="json"), "image_digest": digest}
        await self._advance(leased, _S.SCORING, **shown)

    async def _run(self, leased: Leased, stop: asyncio.Event, pulse: _Pulse) -> tuple[BoxReport, str]:
        """Runs it; where the machine is at fault, again a little later, from where it was."""
        for rest in range(1, _TRIES + 1):
            mine = asyncio.Event()
            forward = asyncio.create_task(_forward(stop, mine))
            try:
                running = Running(self.executor, pulse.tell, mine, self.gpu)
                return await run_submission(self.challenge, leased, running)
            except (InputError, InfrastructureError) as error:
                if rest == _TRIES or stop.is_set():
                    raise
                self.said(f"submission {leased.submission}: {error}; again in {_REST_S * rest:g} s")
                await asyncio.sleep(_REST_S * rest)
            finally:
                forward.cancel()
        raise InfrastructureError("unreachable")

    async def _advance(self, leased: Leased, after: SubmissionState, **more: Any) -> None:
        await self._kept(lambda connection: advance(connection, leased, after, self.challenge.now(), **more))

    async def _give_back(self, leased: Leased, *, counted: bool = True) -> None:
        with suppress(StaleError):  # the second time, or too late
            await self._kept(lambda connection: give_back(connection, leased, self.challenge.now(), counted=counted))

    async def _publish_due(self) -> None:
        """Boards of phases that have newer results than boards: also those of a worker that was killed in between. What
        fails is tried again, a few times."""
        for phase, newest in (await self._kept(_unpublished)).items():
            known, tries = self._published.get(phase, (newest, 0))
            if known != newest:
                tries = 0
            if tries < _TRIES:
                try:
                    await self.scorer.publish(phase)
                    tries = _TRIES
                except ScorerError as error:
                    tries += 1
                    self.said(f"the boards of {phase} are as before: {error}")
                self._published[phase] = (newest, tries)

    async def _remove_left(self) -> None:
        """Kills the containers of this machine's workers whose leases ended: they died, and may have left some."""
        host = self.name.split("/", maxsplit=1)[0]

        def left(connection: Connection) -> list[int]:
            dead = (events.c.reason.in_(("requeued", "lost")), events.c.worker.startswith(f"{host}/", autoescape=True))
            free = ~submissions.c.state.in_((_S.LEASED, _S.RUNNING))
            query = select(submissions.c.id).join(events, events.c.submission == submissions.c.id)
            return list(connection.execute(query.where(*dead, free).distinct()).scalars())

        for submission in await self._kept(left):
            await self.executor.remove_left(f"{self.challenge.label}/{submission}")

    async def _kept(self, change: Callable[[Connection], T]) -> T:
        """Makes a change in a transaction of its own; waits for a database that is away, and then makes it again."""
        rest, ends, same = 0.05, time.monotonic() + _AWAY_S, 0
        while True:
            try:
                return await asyncio.to_thread(self._written, change)
            except IntegrityError:  # somebody wrote the same at the same moment
                same += 1
                if same == _TRIES:
                    raise
            except _AWAY:
                if time.monotonic() > ends:
                    raise
            await asyncio.sleep(rest)
            rest = min(2.0, 2 * rest)

    def _written(self, change: Callable[[Connection], T]) -> T:
        with self.challenge.writing() as connection:
            return change(connection)


class _Pulse:
    """Beats for a lease from a thread of its own, so that nothing the worker does keeps it waiting. Where the lease is
    lost, or the submission was cancelled, the task is cancelled: `lost`."""

    def __init__(self, challenge: Challenge, leased: Leased, lease_s: float) -> None:
        self.lost = False
        self._challenge, self._leased, self._lease_s = challenge, leased, lease_s
        self._counts: dict[str, int] | None = None
        self._done = threading.Event()

    def tell(self, counts: dict[str, int]) -> None:
        """The counts by status that the next beat writes down."""
        self._counts = counts

    @contextmanager
    def beating(self, task: asyncio.Task[None]) -> Iterator[None]:
        """Beats inside the block, for a task of this event loop."""
        given = (task, asyncio.get_running_loop())
        thread = threading.Thread(target=self._beat_on, args=given, name="proctor-pulse", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join()

    def _beat_on(self, task: asyncio.Task[None], loop: asyncio.AbstractEventLoop) -> None:
        rest = self._lease_s / _BEATS
        while not self._done.wait(rest):
            rest = self._lease_s / _BEATS
            try:
                with self._challenge.writing() as connection:
                    beat(connection, self._leased, self._challenge.now(), self._lease_s, self._counts)
            except StaleError:
                loop.call_soon_threadsafe(self._lose, task)
                return
            except _AWAY:
                rest = min(1.0, rest)  # it is still ours until somebody else ends it

    def _lose(self, task: asyncio.Task[None]) -> None:
        if not task.done():
            self.lost = True
            task.cancel()


async def _forward(stop: asyncio.Event, to: asyncio.Event) -> None:
    await stop.wait()
    to.set()


def _unpublished(connection: Connection) -> dict[str, tuple[str, int]]:
    """Phases with results or organisers' rulings that are newer than their boards, each with the newest one's moment and
    the number of results."""
    last, number = func.max(results.c.at), func.count()
    query = select(submissions.c.phase, last, number).join(submissions, submissions.c.id == results.c.submission)
    newest = {row[0]: (row[1], row[2]) for row in connection.execute(query.group_by(submissions.c.phase))}
    ruled = newest_change(connection, RULINGS)
    newest = {phase: (max(at, ruled), count) for phase, (at, count) in newest.items()}
    query = select(boards.c.phase, func.max(boards.c.at)).group_by(boards.c.phase)
    shown = {row[0]: row[1] for row in connection.execute(query)}
    return {phase: known for phase, known in newest.items() if shown.get(phase, "") <= known[0]}


_ASKED = "order_seed"  # a setting of runs that the engine asked in a submission's own order


@dataclass(frozen=True)
class WorkPlan:
    """How a worker works: `process` takes files of answers alone, since it could not keep an uploaded image away from
    the machine; `once` ends it when nothing waits."""

    folder: Path
    store: str | None = None
    executor: str = "podman"
    gpu: str = "nvidia.com/gpu=all"
    once: bool = False


async def work_on(plan: WorkPlan, stop: asyncio.Event, said: Callable[[str], None]) -> int:
    """Works for a challenge until it is told to stop; how many submissions it had. Raises `InputError` for a folder
    that does not fit or can't be opened, `ConfigurationError` without the executor's program, `ScorerChangedError`."""
    executor, kinds = executor_named(plan.executor)
    challenge = Challenge.open(plan.folder, "worker", store=plan.store)
    scorer = ScorerProcess(plan.folder, plan.store)
    try:
        worker = Worker(challenge, executor, scorer, kinds, gpu=plan.gpu, said=said)
        return await worker.work(stop, once=plan.once)
    finally:
        scorer.close()
        challenge.close()


def rerun(folder: Path, why: str, store: str | None = None) -> tuple[int, int]:
    """Has all submissions that this program's scorer has not marked marked by it; its version, and how many wait.
    References that were corrected come into the stores of answers, and files are read again. Workers of the former
    version end."""
    scorer, challenge = ScorerProcess(folder, store), Challenge.open(folder, "organiser", store=store)
    try:
        fingerprint = asyncio.run(scorer.fingerprint())
        for phase in challenge.settings.phases:
            _bring_up_to_date(challenge.sealed, phase.name)
        with challenge.writing() as connection:
            return rerun_all(connection, fingerprint, why, challenge.now())
    finally:
        scorer.close()
        challenge.close()


def _bring_up_to_date(sealed: SealedPart, phase: str) -> None:
    """Corrected references into the store of a phase. Only what was asked stays: answers of files are read again, since
    how a reader takes them may have changed, and baselines that were told the references answer again."""
    benchmark = sealed.benchmark(phase)
    with sealed.store(phase) as store:
        if benchmark.name in store.benchmark_names():
            delete_runs(store, [one for one in store.runs(benchmark.name) if _ASKED not in one.settings])
            revise_benchmark(store, benchmark)


def executor_named(name: str) -> tuple[Executor, tuple[Kind, ...]]:
    """An executor, and which submissions it can run. Raises `UsageError` for an unknown name, and `ConfigurationError`
    where its program is not there."""
    executor = executor_of(name)
    if name == "process":
        return executor, ("file",)
    if shutil.which(name) is None:
        raise ConfigurationError(f"found no {name}, expected it in PATH; --executor process takes answer files alone")
    return executor, KINDS
