"""The three kinds of leases (whole runs, items among workers, submissions) under `kill -9` and `SIGSTOP`: a process is
struck while it holds one and works, another process takes over. On both databases, nothing is lost, nothing is done
twice but what was under way, and a former holder that comes back writes nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, select, text

from proctor.core import Answer, Item, View
from proctor.runs import ItemClaims, Limits, Run, RunLostError, RunTakenError, Store, beating, leases, run_leases
from proctor.runs.engine import Job, ask_all
from proctor_challenge.challenge import Challenge
from proctor_challenge.queue import SubmissionLease, advance, claim, expire
from proctor_challenge.schema import events, submissions
from proctor_challenge.states import SubmissionState
from proctor_challenge.submissions import StaleError, settle
from tests.runs.test_store import a_benchmark
from tests.support.forked import _context
from tests.support.hosted import challenge_folder, handed_in, opened, team
from tests.support.toy_run import BlindView
from tests.support.virtual_time import until

UNITS = 12
STRUCK = 5
"""The unit of the first process (from 1) that it is struck in."""

LOST = 3
LEASE_S = 1.0
SETTINGS = """
title: Trays
benchmark: simulated
phases:
  - name: test
    questions: public/test
    sealed: sealed/test
    condition: text-only
    accepts: [file, image]
    quota: {scored: 20, attempted: 20}
"""


@dataclass(frozen=True)
class Process:
    """What a process of a test knows: the database, where it logs what it begins, and its name."""

    url: str
    folder: Path
    name: str

    async def do(self, unit: str) -> None:
        """Works on a unit. The first process never gets beyond the one that it is struck in, until that was handed on."""
        with (self.folder / "begun").open("a") as file:
            file.write(f"{self.name} {unit}\n")
        if self.name == "one" and len(begun(self.folder, "one")) == STRUCK:
            while not (self.folder / "handed on").exists():  # noqa: ASYNC110  (another process makes it)
                await asyncio.sleep(0.01)


def begun(folder: Path, name: str) -> list[str]:
    """The units that a process began, in their order."""
    log = folder / "begun"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.partition(" ")[2] for line in lines if line.startswith(f"{name} ")]


@dataclass(frozen=True)
class Kind:
    """A kind of lease: prepares its work, does it in a process (which exits with `LOST` if its lease was lost), and tells
    which process wrote which unit."""

    prepare: Callable[[str, Path], None]
    work: Callable[[Process], None]
    written: Callable[[str, Path], dict[str, str]]


# -- runs, and items of runs


class Asked:
    """A system that answers with the name of its process."""

    name = "scripted"

    def __init__(self, process: Process) -> None:
        self.process = process
        self.settings: dict[str, Any] = {}

    def supports(self, item: Item) -> bool:
        return bool(item.id)

    async def answer(self, item: Item, view: View) -> Answer:
        await self.process.do(item.id)
        return Answer(item_id=item.id, text=self.process.name)


@contextmanager
def the_run(url: str) -> Iterator[tuple[Store, Run]]:
    store = Store(url)
    yield store, store.start_run("toy", "scripted", "video", {})
    store.close()


def prepare_run(url: str, folder: Path) -> None:
    store = Store(url)
    store.add_benchmark(a_benchmark(UNITS))
    store.start_run("toy", "scripted", "video", {})
    store.close()


def ask(store: Store, run: Run, process: Process, claims: ItemClaims | None) -> None:
    job = Job(run, Asked(process), store.items("toy"), lambda _: BlindView(), ())
    asyncio.run(ask_all([job], store, limits=Limits(concurrency=1), claims=claims))


def ask_alone(process: Process) -> None:
    """As in a container of its own, so that nobody can look its process up."""
    leases.LEASE_S = LEASE_S
    run_leases._location = lambda _: process.name  # type: ignore[assignment]
    with the_run(process.url) as (store, run):
        while len(store.settled(run)) < UNITS:
            try:
                ask(store, run, process, None)
            except RunLostError:
                sys.exit(LOST)
            except RunTakenError:
                asyncio.run(asyncio.sleep(0.05))


def ask_shared(process: Process) -> None:
    with the_run(process.url) as (store, run):
        claims = ItemClaims(store, lease_s=LEASE_S)
        ask(store, run, process, claims)
        sys.exit(LOST if claims.stale else 0)


def answered(url: str, folder: Path) -> dict[str, str]:
    with the_run(url) as (store, run):
        return {name: answer.text for name, answer in store.answers(run).items()}


# -- submissions


def prepare_queue(url: str, folder: Path) -> None:
    challenge = opened(challenge_folder(folder, SETTINGS), store=url)
    mine = team(challenge)
    for _ in range(UNITS):
        made = handed_in(challenge, mine)
        with challenge.writing() as connection:
            assert settle(connection, challenge, made) == ""
    challenge.close()


def score_submissions(process: Process) -> None:
    challenge = Challenge.open(process.folder, "worker", store=process.url, same_user=True)
    sys.exit(LOST if asyncio.run(_work_off(challenge, process)) else 0)


async def _work_off(challenge: Challenge, process: Process) -> int:
    """How many leases were lost."""
    lost, clock = 0, challenge.clock
    while _open(challenge):
        with challenge.writing() as connection:
            expire(connection, clock(connection))
            leased = claim(connection, process.name, clock(connection), LEASE_S)
        if leased is None:
            await asyncio.sleep(0.05)
            continue
        try:
            with beating(SubmissionLease(challenge, leased, LEASE_S), lambda: None):
                with challenge.writing() as connection:
                    advance(connection, leased, SubmissionState.RUNNING, clock(connection))
                await process.do(str(leased.submission))
                for after in (SubmissionState.SCORING, SubmissionState.SCORED):
                    with challenge.writing() as connection:
                        advance(connection, leased, after, clock(connection))
        except StaleError:
            lost += 1
    return lost


def _open(challenge: Challenge) -> bool:
    unscored = select(submissions.c.id).where(submissions.c.state != SubmissionState.SCORED.value)
    with challenge.reading() as connection:
        return connection.execute(unscored.limit(1)).first() is not None


def scored(url: str, folder: Path) -> dict[str, str]:
    challenge = Challenge.open(folder, "organiser", store=url, same_user=True)
    query = select(events.c.submission, events.c.worker).where(events.c.after == SubmissionState.SCORED.value)
    with challenge.reading() as connection:
        rows = connection.execute(query).all()
    challenge.close()
    assert len({row.submission for row in rows}) == len(rows), "scored twice"
    return {str(row.submission): row.worker for row in rows}


KINDS = {
    "run": Kind(prepare_run, ask_alone, answered),
    "items": Kind(prepare_run, ask_shared, answered),
    "submissions": Kind(prepare_queue, score_submissions, scored),
}


def work(kind: str, process: Process) -> None:
    """A process of the test."""
    KINDS[kind].work(process)


def started(kind: str, process: Process) -> BaseProcess:
    made = _context().Process(target=work, args=(kind, process), daemon=True)
    made.start()
    return made


def strike(pid: int, fate: signal.Signals, url: str) -> None:
    """Kills or stops a process. One that is stopped within a transaction keeps its database locked, which no lease can
    help: it is stopped between two."""
    os.kill(pid, fate)
    while fate is signal.SIGSTOP and in_transaction(url):
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.01)
        os.kill(pid, fate)


def in_transaction(url: str) -> bool:
    """Whether another process is changing the database."""
    if "://" not in url:
        try:
            with closing(sqlite3.connect(url, timeout=0.0, isolation_level=None)) as connection:
                connection.execute("begin immediate").close()
        except sqlite3.OperationalError:
            return True
        return False
    engine = create_engine(url)
    others = text(
        "select count(*) from pg_stat_activity where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()"
    )
    with engine.connect() as connection:
        found = connection.execute(others).scalar_one()
    engine.dispose()
    return bool(found)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_holder_that_is_struck_hands_its_work_on_and_writes_nothing_more(
    kind: str, fate: signal.Signals, database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = str(tmp_path / "challenge.sqlite") if database == "sqlite" else request.getfixturevalue("postgres_url")
    KINDS[kind].prepare(url, tmp_path)
    first = started(kind, Process(url, tmp_path, "one"))
    until(lambda: len(begun(tmp_path, "one")) == STRUCK)
    assert first.pid is not None
    strike(first.pid, fate, url)
    second = started(kind, Process(url, tmp_path, "two"))
    second.join(600)
    assert second.exitcode == 0
    *done, under_way = begun(tmp_path, "one")
    (tmp_path / "handed on").touch()
    if fate is signal.SIGSTOP:
        os.kill(first.pid, signal.SIGCONT)
    first.join(600)
    assert first.exitcode == (-signal.SIGKILL if fate is signal.SIGKILL else LOST)
    written = KINDS[kind].written(url, tmp_path)
    assert len(written) == UNITS
    assert {unit for unit, who in written.items() if who == "one"} == set(done)
    assert written[under_way] == "two"
    again = Counter(begun(tmp_path, "one") + begun(tmp_path, "two"))
    assert again == Counter(dict.fromkeys(written, 1)) + Counter([under_way])
