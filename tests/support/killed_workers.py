"""A challenge at work while its processes are killed: two workers with their scorers and containers, and the process
that takes submissions in. What must hold afterwards is looked up in the database and in what the containers were
asked."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from proctor.core import InputError, generator
from proctor_challenge.boards import Figures
from proctor_challenge.challenge import Access, Challenge
from proctor_challenge.queue import Leased, expire
from proctor_challenge.schema import events, submissions
from proctor_challenge.scorer import ScorerProcess, Scoring
from proctor_challenge.scoring import rerun_all
from proctor_challenge.states import PhaseState, set_phase
from proctor_challenge.submissions import HandIn, HandInError, hand_in, settle
from proctor_challenge.worker import Worker
from tests.support.challenge_counts import ENDS, check_counts, times_scored
from tests.support.forked import _context
from tests.support.hosted import team
from tests.support.hosted_work import TrustingExecutor, image, publish_count, same_code, score_by_count

LEASE_S = 1.0
QUESTIONS = 10
HANGS_S = 600.0  # a guard, no property
WORKERS = 2
TARGETS = ("worker", "box", "scorer", "server")


def score_slowly(challenge: Challenge, leased: Leased) -> Figures:
    """Says who scores, and takes a while about it, so that it can be killed."""
    (challenge.folder / "scorers" / str(os.getpid())).touch()
    time.sleep(0.03)
    return score_by_count(challenge, leased)


SLOW = Scoring(score_slowly, publish_count, same_code)


class StandbyScorer(ScorerProcess):
    """Its processes are forked beforehand, while this one has a single thread: a fork beside other threads may inherit
    a lock that nobody opens."""

    def __init__(self, folder: Path, store: str | None, scoring: Scoring, ready: int = 12) -> None:
        super().__init__(folder, store, scoring, context="fork")
        self._ready = []
        for _ in range(ready):
            super()._started()
            assert self._process is not None
            self._ready.append((self._process, self._pipe))
            self._process = None

    def _started(self) -> tuple[BaseProcess, Connection]:
        if self._process is None or not self._process.is_alive():
            self.close()
            self._process, self._pipe = self._ready.pop()
        return self._process, self._pipe

    def end(self) -> None:
        """Ends all of them."""
        self.close()
        for process, _ in self._ready:
            process.kill()
            process.join()


def run_worker(
    folder: Path, store: str | None, executor: type[TrustingExecutor] = TrustingExecutor, *, once: bool = False
) -> None:
    """A worker's process."""
    scorer = StandbyScorer(folder, store, SLOW)
    challenge = _opened(folder, "worker", store)
    worker = Worker(challenge, executor(), scorer, ("file", "image"), lease_s=LEASE_S, poll_s=0.05)
    try:
        asyncio.run(worker.work(asyncio.Event(), once=once))
    finally:
        scorer.end()


def run_desk(folder: Path, store: str | None, pipe: Connection) -> None:
    """The process that takes submissions in: answers each with its id once it is kept, and with "" once it is settled,
    or with why not."""
    challenge = _opened(folder, "web", store)
    while True:
        try:
            entry = pipe.recv()
        except EOFError:
            return
        try:
            with challenge.writing() as connection:
                made = hand_in(connection, challenge, entry)
            pipe.send(made)
            with challenge.writing() as connection:
                settle(connection, challenge, made)
            pipe.send("")
        except (HandInError, OperationalError) as error:
            pipe.send(str(error))


def _opened(folder: Path, access: Access, store: str | None) -> Challenge:
    """Opens it; where the database is away, like what starts a service, again."""
    while True:
        with suppress(InputError):
            return Challenge.open(folder, access, store=store, same_user=True)
        time.sleep(0.02)


@dataclass
class Storm:
    """One storm: who was killed how often, and what came of it."""

    executor: ClassVar[type[TrustingExecutor]] = TrustingExecutor

    folder: Path
    store: str | None
    restart: Callable[[], None] | None = None
    seed: int = 0
    team_count: int = 6
    killed: Counter[str] = field(default_factory=Counter)
    acknowledged: set[int] = field(default_factory=set)
    states: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    asked_again: int = 0
    lost_once: int = 0

    def rage(self, targets: Sequence[str]) -> None:
        """Kills these, one after another, at drawn moments while submissions come in and are worked on; then lets the
        rest be done, and checks all that must hold."""
        begun = time.monotonic()
        (self.folder / "scorers").mkdir()
        self.draws = generator(self.seed, "storm")
        self.challenge = Challenge.open(self.folder, "organiser", store=self.store)
        with self.challenge.writing() as connection:
            set_phase(connection, "test", PhaseState.OPEN, self.challenge.now(), checks=())
        self.names = {team(self.challenge, f"Team {n}"): f"Team {n}" for n in range(self.team_count)}
        self.teams = list(self.names)
        self.images = [self._image(number) for number in range(3)]
        self.workers = [self._worker() for _ in range(WORKERS)]
        self._start_server()
        try:
            for number, target in enumerate(targets):
                self._hand_in(number)
                self._strike(target)
            self._until(lambda: self._kept(self._open) == 0)
        finally:
            self._kill_all()
        self._finish()
        self.seconds = time.monotonic() - begun

    def check(self) -> None:
        """Nothing is stuck, no quota is lost, nothing is scored twice, no question is asked again without need."""
        self.states = check_counts(self.challenge)
        assert set(self.states) <= ENDS - {"scorer_fault"}, self.states
        with self.challenge.reading() as connection:
            rows = connection.execute(select(submissions)).mappings().all()
            requeued = connection.execute(select(events.c.id).where(events.c.reason.in_(("requeued", "lost")))).all()
        self.lost_once = len(requeued)
        assert self.acknowledged <= {row["id"] for row in rows}
        assert all((row["attempted"], row["scored"]) == (0, 0) for row in rows if row["state"] == "lost")
        scored = {row["id"] for row in rows if row["state"] == "scored"}
        assert times_scored(self.challenge) == Counter(scored)
        asked = Counter(self.folder.joinpath("asked.log").read_text().splitlines())
        self.asked_again = sum(asked.values()) - len(asked)
        assert self.asked_again <= sum(self.killed.values()) + self.lost_once  # what was under way
        with self.challenge.sealed.store("test") as store:
            counts = {run.system: store.count_answers(run) for run in store.runs("focus")}
        systems = {f"{self.names[row['team']]}#{row['number']}" for row in rows if row["state"] == "scored"}
        assert {counts[one] for one in systems} == {(QUESTIONS, 0)}
        assert not [label for label in labelled().values() if label.startswith(f"{self.challenge.label}/")]

    # -- what happens

    def _strike(self, target: str) -> None:
        time.sleep(float(self.draws.uniform(0.0, 0.15)))
        if target == "database":
            assert self.restart is not None
            self.restart()
        elif target == "worker":
            which = int(self.draws.integers(WORKERS))
            _kill(self.workers[which])
            self.workers[which] = self._worker()
        elif target == "server":
            self._strike_server()
        else:
            self._until(lambda: self._strike_child(target))
        self.killed[target] += 1

    def _strike_server(self) -> None:
        self._say(len(self.teams) - 1)
        self._kill_server()
        self._start_server()

    def _strike_child(self, target: str) -> bool:
        """Kills one of the containers, or of the scorers that score; whether there was one."""
        if target == "box":
            pids = [pid for pid, label in labelled().items() if label.startswith(f"{self.challenge.label}/")]
        else:
            pids = [int(file.name) for file in (self.folder / "scorers").iterdir()]
            for file in (self.folder / "scorers").iterdir():
                file.unlink()
        for pid in self.draws.permutation(np.array(pids, dtype=int)):
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
                return True
        if self._kept(self._open) == 0:  # so that there is something to kill
            self._hand_in(int(self.draws.integers(1000)))
        return False

    def _hand_in(self, number: int) -> None:
        """One more submission of a team, unless enough of them wait."""
        if self._kept(self._open) <= 2 * WORKERS:
            self._send(number)

    def _send(self, number: int) -> None:
        """Where the process that takes it in is killed meanwhile, nobody knows what became of it."""
        pipe = self.desk[1]
        with suppress(EOFError, BrokenPipeError, ConnectionResetError):
            self._say(number)
            while (answer := pipe.recv()) != "":
                if isinstance(answer, str):
                    return
                self.acknowledged.add(answer)

    def _say(self, number: int) -> None:
        of, upload = self.teams[number % len(self.teams)], self.images[number % len(self.images)]
        with suppress(BrokenPipeError):
            self.desk[1].send(HandIn(of, 1, "test", "image", upload, 1, "entry"))

    def _finish(self) -> None:
        """What a killed server left is cancelled after a quarter of an hour; what could not be scored is scored; what
        the dead left on the machine is removed."""
        with self.challenge.writing() as connection:
            expire(connection, self.challenge.now() + timedelta(hours=1))
            rerun_all(connection, "f" * 64, "", self.challenge.now())
        last = self._started(run_worker, self.folder, self.store, self.executor, once=True)
        last.join(HANGS_S)
        assert last.exitcode == 0

    # -- processes

    def _worker(self) -> BaseProcess:
        return self._started(run_worker, self.folder, self.store, self.executor)

    def _start_server(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        self.desk: tuple[BaseProcess, Connection] = (self._started(run_desk, self.folder, self.store, theirs), ours)
        theirs.close()

    def _kill_server(self) -> None:
        _kill(self.desk[0])

    def _started(self, target: Callable[..., None], *given: Any, **more: Any) -> BaseProcess:
        process = _context().Process(target=target, args=given, kwargs=more)
        process.start()
        return process

    def _kill_all(self) -> None:
        for process in self.workers:
            _kill(process)
        self._kill_server()

    def _open(self) -> int:
        """How many submissions wait or are worked on."""
        going = submissions.c.state.in_(("queued", "leased", "running", "scoring"))
        with self.challenge.reading() as connection:
            return len(connection.execute(select(submissions.c.id).where(going)).all())

    def _kept(self, look: Callable[[], int]) -> int:
        while True:
            with suppress(OperationalError):
                return look()
            time.sleep(0.02)

    def _until(self, happened: Callable[[], bool]) -> None:
        ends = time.monotonic() + HANGS_S
        while not happened():
            assert time.monotonic() < ends, check_counts(self.challenge)
            time.sleep(0.005)

    def _image(self, number: int) -> str:
        """A program that says of each question for which submission it was asked, and takes a while about it."""
        code = f"label = os.environ['PROCTOR_BOX'].split()[0].rpartition('/')[0]\nopen({str(self.folder / 'asked.log')!r}, 'a').write(label + ' ' + question['id'] + chr(10))\ntime.sleep(0.01)"
        return image(self.folder, code, f"# {number}")


def labelled() -> dict[int, str]:
    """The label of each program that runs as a box on this machine."""
    found, score = dict[int, str](), b"PROCTOR_BOX="
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            for one in (process / "environ").read_bytes().split(b"\0"):
                if one.startswith(score):
                    found[int(process.name)] = one.removeprefix(score).decode().partition(" ")[0]
    return found


def _kill(process: BaseProcess) -> None:
    process.kill()
    process.join()
