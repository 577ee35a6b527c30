"""The worker: leases submissions, runs them, has them scored, and records how they ended.

Any process may be killed at any moment. When a worker dies, its lease ends and another worker continues; a dead scorer
is started again; an unreachable database is waited for. Every step is idempotent.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import IntegrityError

from proctor.core import ConfigurationError, InfrastructureError, InputError
from proctor.runs import LEASE_S, beating, delete_runs, revise_benchmark
from proctor_challenge.challenge import Challenge, SealedPart
from proctor_challenge.containers import BoxReport, Executor, executor_of
from proctor_challenge.descriptions import DESCRIBED, RULED
from proctor_challenge.execution import ALL_GPUS, EndedError, StoppedError, run_submission
from proctor_challenge.queue import KINDS, OUTAGES, Leased, SubmissionLease, advance, claim, expire, give_back, held_by
from proctor_challenge.schema import boards, events, results, submissions
from proctor_challenge.scorer import ScorerError, ScorerProcess
from proctor_challenge.scoring import ScorerChangedError, keep_result, known_scorer, rerun_all
from proctor_challenge.settings import Kind
from proctor_challenge.states import SubmissionState
from proctor_challenge.submissions import StaleError
from proctor_web import newest_change, utc_text

RULINGS = ("withdraw team", "readmit team", "set eligible", "disqualify", "reinstate", DESCRIBED, RULED)
"""The actions, as the trail names them, after which boards are published again."""

POLL_S = 2.0
_MAX_OUTAGE_S = 600.0  # of the database; a longer one ends the worker
_TRIES, _REST_S = 3, 5.0  # after infrastructure errors
_ASKED = "order_seed"  # a setting of runs that the engine asked in a submission's own order

_S = SubmissionState
T = TypeVar("T")


def worker_name() -> str:
    """A unique name: this machine, this process, and random digits."""
    return f"{socket.gethostname()[:100]}/{os.getpid()}/{secrets.token_hex(4)}"


@dataclass
class Worker:
    """Works on the submissions of one challenge, one at a time. `kinds` are the kinds that it can run; `log` receives a
    line for each step."""

    challenge: Challenge
    executor: Executor
    scorer: ScorerProcess
    kinds: Sequence[Kind]
    name: str = field(default_factory=worker_name)
    lease_s: float = LEASE_S
    poll_s: float = POLL_S
    gpu: str = ALL_GPUS
    log: Callable[[str], None] = lambda _: None
    _fingerprint: str = ""
    _published: dict[str, tuple[tuple[str, int], int]] = field(default_factory=dict)

    async def work(self, stop: asyncio.Event, *, once: bool = False) -> int:
        """Works until `stop` is set, or with `once` until the queue is empty; returns the number of submissions. Raises
        `ScorerChangedError` when its scorer is not the one that produced the latest results."""
        self._fingerprint = await self.scorer.fingerprint()
        await self._write(self._check_scorer)
        await self._remove_left()
        count = 0
        while not stop.is_set():
            await self._write(lambda connection: expire(connection, self.challenge.clock(connection)))
            leased = await self._write(self._claimed)
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

    def _say(self, leased: Leased, text: str) -> None:
        self.log(" ".join(f"submission {leased.submission}: {text}".split())[:500])

    def _check_scorer(self, connection: Connection) -> None:
        known_scorer(connection, self._fingerprint, self.challenge.clock(connection))

    def _claimed(self, connection: Connection) -> Leased | None:
        """The next submission. A claim whose commit was not confirmed comes first. The ladder compares each result with
        the earlier ones of its team, so these must be there."""
        self._check_scorer(connection)
        ladders = [phase.name for phase in self.challenge.settings.phases if phase.results.rule == "ladder"]
        given: dict[str, Any] = {"kinds": self.kinds, "in_order": ladders}
        held = held_by(connection, self.name)
        return held or claim(connection, self.name, self.challenge.clock(connection), self.lease_s, **given)

    async def _serve(self, leased: Leased, stop: asyncio.Event) -> None:
        """Completes one submission, or gives it back."""
        self._say(leased, f"{leased.system} in {leased.phase}")
        lease = SubmissionLease(self.challenge, leased, self.lease_s)
        task, cut = asyncio.create_task(self._steps(leased, stop, lease)), asyncio.Event()

        def end() -> None:
            if not task.done():
                cut.set()
                task.cancel()

        with beating(lease, partial(asyncio.get_running_loop().call_soon_threadsafe, end)):
            try:
                await task
            except StaleError as error:
                self._say(leased, str(error))
            except asyncio.CancelledError:
                if not cut.is_set():  # the worker itself was cancelled
                    await self._give_back(leased, counted=False)
                    raise
                self._say(leased, "cancelled, or leased by another worker")
            except ScorerChangedError:
                raise
            except Exception as error:  # noqa: BLE001 - one submission that finds a bug must not stop the others
                self._say(leased, f"{type(error).__name__}: {error}")
                await self._give_back(leased)

    async def _steps(self, leased: Leased, stop: asyncio.Event, lease: SubmissionLease) -> None:
        try:
            if not leased.scoring:
                await self._collect_answers(leased, stop, lease)
            figures, fingerprint = await self.scorer.score(leased)
            clock = self.challenge.clock
            await self._write(
                lambda connection: keep_result(connection, leased, figures, fingerprint, clock(connection))
            )
        except EndedError as end:
            self._say(leased, f"{end.state}: {end}")
            await self._advance(leased, end.state, reason=end.reason, log=end.report.model_dump(mode="json"))
        except ScorerError as error:
            self._say(leased, str(error))
            await self._advance(leased, _S.SCORER_FAULT, reason="scorer_fault")
        except StoppedError:
            await self._give_back(leased, counted=False)
        except ScorerChangedError:
            await self._give_back(leased, counted=False)
            raise
        except (InputError, InfrastructureError, ConfigurationError) as error:
            self._say(leased, str(error))
            await self._give_back(leased)
        else:
            self._say(leased, "scored")

    async def _collect_answers(self, leased: Leased, stop: asyncio.Event, lease: SubmissionLease) -> None:
        """Runs an image until all answers are stored. The scorer reads those of a file."""
        report_columns: dict[str, Any] = {}
        if leased.kind == "image":
            await self._advance(leased, _S.RUNNING)
            report, digest = await self._run(leased, stop, lease)
            report_columns = {"log": report.model_dump(mode="json"), "image_digest": digest}
        await self._advance(leased, _S.SCORING, **report_columns)

    async def _run(self, leased: Leased, stop: asyncio.Event, lease: SubmissionLease) -> tuple[BoxReport, str]:
        """Runs an image; after an infrastructure error again, from where it stopped."""
        given: dict[str, Any] = {"stop": stop, "gpu": self.gpu, "on_progress": lease.report}
        for attempt in range(1, _TRIES):
            try:
                return await run_submission(self.challenge, leased, self.executor, **given)
            except (InputError, InfrastructureError) as error:
                if stop.is_set():
                    raise
                self._say(leased, f"{error}; again in {_REST_S * attempt:g} s")
                await asyncio.sleep(_REST_S * attempt)
        return await run_submission(self.challenge, leased, self.executor, **given)

    async def _advance(self, leased: Leased, after: SubmissionState, **more: Any) -> None:
        await self._write(
            lambda connection: advance(connection, leased, after, self.challenge.clock(connection), **more)
        )

    async def _give_back(self, leased: Leased, *, counted: bool = True) -> None:
        clock = self.challenge.clock
        with suppress(StaleError):  # given back already, or the lease has ended
            await self._write(lambda connection: give_back(connection, leased, clock(connection), counted=counted))

    async def _publish_due(self) -> None:
        """Publishes the boards of phases whose results are newer, with a few retries; also those that a killed worker
        left."""
        for phase, newest in (await self._write(partial(_unpublished, self.challenge))).items():
            known, tries = self._published.get(phase, (newest, 0))
            tries = tries if known == newest else 0
            if tries < _TRIES:
                try:
                    await self.scorer.publish(phase)
                    tries = _TRIES
                except ScorerError as error:
                    tries += 1
                    self.log(f"the boards of {phase} are as before: {error}")
                self._published[phase] = (newest, tries)

    async def _remove_left(self) -> None:
        """Removes containers that dead workers of this machine may have left: those whose lease ended."""
        host = self.name.split("/", maxsplit=1)[0]

        def left(connection: Connection) -> list[int]:
            dead = (events.c.reason.in_(("requeued", "lost")), events.c.worker.startswith(f"{host}/", autoescape=True))
            free = ~submissions.c.state.in_((_S.LEASED, _S.RUNNING))
            query = select(submissions.c.id).join(events, events.c.submission == submissions.c.id)
            return list(connection.execute(query.where(*dead, free).distinct()).scalars())

        for submission in await self._write(left):
            await self.executor.remove_left(f"{self.challenge.label}/{submission}")

    async def _write(self, change: Callable[[Connection], T]) -> T:
        """Makes a change in a transaction of its own, and repeats it when the database is unreachable."""
        rest, ends, conflicts = 0.05, time.monotonic() + _MAX_OUTAGE_S, 0
        while True:
            try:
                return await asyncio.to_thread(self._write_once, change)
            except IntegrityError:  # another process wrote the same at the same moment
                conflicts += 1
                if conflicts == _TRIES:
                    raise
            except OUTAGES:
                if time.monotonic() > ends:
                    raise
            await asyncio.sleep(rest)
            rest = min(2.0, 2 * rest)

    def _write_once(self, change: Callable[[Connection], T]) -> T:
        with self.challenge.writing() as connection:
            return change(connection)


def _unpublished(challenge: Challenge, connection: Connection) -> dict[str, tuple[str, int]]:
    """The phases with results, rulings, or a passed date of descriptions that are newer than their boards, each with the
    time of the newest one and the number of results."""
    last, number = func.max(results.c.at), func.count()
    query = select(submissions.c.phase, last, number).join(submissions, submissions.c.id == results.c.submission)
    newest = {row[0]: (row[1], row[2]) for row in connection.execute(query.group_by(submissions.c.phase))}
    ruled = newest_change(connection, RULINGS)
    due = {one.name: one.description.due for one in challenge.settings.phases if one.description.holds(challenge.now())}
    passed = {phase: utc_text(at) for phase, at in due.items() if at is not None}
    newest = {phase: (max(at, ruled, passed.get(phase, "")), count) for phase, (at, count) in newest.items()}
    query = select(boards.c.phase, func.max(boards.c.at)).group_by(boards.c.phase)
    shown = {row[0]: row[1] for row in connection.execute(query)}
    return {phase: known for phase, known in newest.items() if shown.get(phase, "") <= known[0]}


@dataclass(frozen=True)
class WorkPlan:
    """The options of a worker. The executor `process` takes answer files only, since it can't isolate an uploaded
    image; `once` ends the worker when the queue is empty."""

    folder: Path
    store: str | None = None
    executor: str = "podman"
    gpu: str = ALL_GPUS
    once: bool = False


async def work_on_folder(
    folder: Path,
    store: str | None,
    executor: str,
    gpu: str,
    once: bool,
    stop: asyncio.Event,
    log: Callable[[str], None],
) -> int:
    """`work_on` for `proctor worker DIR`."""
    return await work_on(WorkPlan(folder, store, executor, gpu, once), stop, log)


async def work_on(plan: WorkPlan, stop: asyncio.Event, log: Callable[[str], None]) -> int:
    """Works for a challenge until `stop` is set; returns the number of submissions. Raises `InputError` for an invalid
    folder, `ConfigurationError` without the executor's program, and `ScorerChangedError`."""
    executor, kinds = executor_named(plan.executor)
    challenge = Challenge.open(plan.folder, "worker", store=plan.store, create=False)
    scorer = ScorerProcess(plan.folder, plan.store, tell=log)
    try:
        worker = Worker(challenge, executor, scorer, kinds, gpu=plan.gpu, log=log)
        return await worker.work(stop, once=plan.once)
    finally:
        scorer.close()
        challenge.close()


def rerun(folder: Path, why: str, store: str | None = None) -> tuple[int, int]:
    """Queues all submissions without a result from this installation's scorer for rescoring; returns its version and
    the number of submissions. Corrected references are written to the stores of answers, and files are read again.
    Workers of the former version end."""
    scorer, challenge = ScorerProcess(folder, store), Challenge.open(folder, "organiser", store=store, create=False)
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
    """Writes corrected references to the store of a phase, and keeps only the runs that were asked: files are read
    again, since their reader may have changed, and so are the baselines' answers."""
    benchmark = sealed.benchmark(phase)
    with sealed.store(phase) as store:
        if benchmark.name in store.benchmark_names():
            delete_runs(store, [run for run in store.runs(benchmark.name) if _ASKED not in run.settings])
            revise_benchmark(store, benchmark)


def executor_named(name: str) -> tuple[Executor, tuple[Kind, ...]]:
    """An executor and the kinds of submissions that it can run. Raises `UsageError` for an unknown name, and
    `ConfigurationError` when its program is missing."""
    executor = executor_of(name)
    if name == "process":
        return executor, ("file",)
    if shutil.which(name) is None:
        raise ConfigurationError(f"found no {name}, expected it in PATH; --executor process takes answer files alone")
    return executor, KINDS
