"""Who owns a run: whatever processes do (stopped, continued, killed, with numbers and host names of others, with clocks that
differ, with a store that is away), nothing is asked twice but what was under way, and nothing counts that is not on disk."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from sqlalchemy import Connection, text

from proctor.core import Answer, InputError, Item, generator
from proctor.metrics import AccuracyScorer
from proctor.runs import Limits, Run, RunLostError, Store, Tally, evaluation_content, run_leases
from proctor.runs.database import StoreAwayError, machine_time
from proctor.runs.engine import Job, ask_all
from proctor.runs.journal import UnwrittenError
from proctor.runs.run_leases import state_of, this_process
from proctor.runs.unwritten import add_unwritten
from tests.runs.test_engine import Scripted
from tests.runs.test_store import a_benchmark
from tests.support.means import missing
from tests.support.postgres import binaries, restartable_postgres
from tests.support.pretended_processes import CONCURRENCY, PretendedProcess, World, pretended_world
from tests.support.toy_run import BlindView
from tests.support.virtual_time import run_in_virtual_time, until

ITEMS = 8
SCHEDULES = 240
LOCATIONS = ("boot/one", "boot/two")  # two PID namespaces of one machine, with one host name
AHEAD = (-86400.0, -90.0, 0.0, 90.0, 86400.0)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An empty store to copy, and the content of one whose run nobody disturbed."""
    folder = tmp_path_factory.mktemp("leases")
    store = Store(folder / "empty.db")
    store.add_benchmark(a_benchmark(ITEMS))
    store.start_run("toy", "scripted", "video", {})
    store.close()
    whole = Store(folder / "whole.db")
    whole.add_benchmark(a_benchmark(ITEMS))
    run = whole.start_run("toy", "scripted", "video", {})
    system = Scripted(lambda item: Answer(item_id=item.id, text="2"))
    asyncio.run(ask_all([Job(run, system, whole.items("toy"), lambda _: BlindView(), (AccuracyScorer(),))], whole))
    content = json.dumps(asdict(evaluation_content(whole, "toy")))
    whole.close()
    return folder / "empty.db", content


def disturb(world: World, draws: np.random.Generator, kind: str) -> None:
    """Starts, stops, continues and kills processes, and takes the store away, at drawn moments."""
    for _ in range(int(draws.integers(6, 14))):
        living = world.living()
        stopped = [one for one in living if one.stopped]
        event = str(draws.choice(["start", "stop", "continue", "kill", "away"], p=[0.35, 0.25, 0.2, 0.1, 0.1]))
        if event == "start" or not living:
            row, pid = str(draws.choice(LOCATIONS)), int(draws.integers(7, 9))
            if not any((one.who.location, one.who.pid) == (row, pid) for one in living):
                shares = kind == "shared" or (kind == "mixed" and draws.random() < 0.5)
                world.start(row, pid, ahead=float(draws.choice(AHEAD)), shares=shares)
        elif event == "stop":
            _one_of(draws, living).stopped = True
        elif event == "continue" and stopped:
            _one_of(draws, stopped).stopped = False
        elif event == "kill":
            _one_of(draws, living).dead = True
        elif event == "away":
            world.away_until = world.now + float(draws.uniform(1, 200))
        world.pass_time(float(draws.choice([3.0, 20.0, 75.0])))


def _one_of(draws: np.random.Generator, processes: list[PretendedProcess]) -> PretendedProcess:
    return processes[int(draws.integers(len(processes)))]


@pytest.mark.parametrize("kind", ["alone", "shared", "mixed"])
@pytest.mark.parametrize("seed", range(SCHEDULES // 3))
def test_nothing_is_asked_twice_but_what_was_under_way(
    kind: str, seed: int, undisturbed: tuple[Path, str], tmp_path: Path
) -> None:
    empty, content = undisturbed
    path, draws = tmp_path / "runs.db", generator(seed, "leases", kind)
    path.write_bytes(empty.read_bytes())
    with pretended_world(path, draws, skewed=seed % 3 == 2, unconfirmed=0.05 * (seed % 2)) as world:
        disturb(world, draws, kind)
        world.away_until = 0.0
        for one in world.processes:
            one.stopped = False
        world.pass_time(100_000.0)
        run = world.look.runs("toy")[0]
        for row in ("boot/last", "boot/last again", "boot/at last"):  # a run that gave up is started again
            if len(world.look.settled(run)) < ITEMS:
                world.start(row, 1, ahead=0.0, shares=False)
                world.pass_time(100_000.0)
        assert world.violations == []
        assert world.living() == []
        assert json.dumps(asdict(evaluation_content(world.look, "toy"))) == content
        for one in world.processes:
            counted = 0 if one.tally is None else one.tally.done
            assert counted <= world.stored_of(one), f"process {one.number}"
        lost = [one for one in world.processes if len(one.asked) > world.stored_of(one)]
        assert all(len(one.asked) - world.stored_of(one) <= most_lost(world, one) for one in lost)


def most_lost(world: World, one: PretendedProcess) -> int:
    """Of a run alone, each task loses what it had under way (and with a clock of its own once more); of a shared one, each
    time that its claims end, which is as often as others' clocks want."""
    often = len(one.asked) if world.skewed else ITEMS
    return often if one.shares else CONCURRENCY * (1 + world.skewed)


def a_store(path: Path) -> tuple[Store, Run, Scripted]:
    store = Store(path)
    store.add_benchmark(a_benchmark(ITEMS))
    return (
        store,
        store.start_run("toy", "scripted", "video", {}),
        Scripted(lambda one: Answer(item_id=one.id, text="2")),
    )


def asking(store: Store, run: Run, system: Scripted) -> Tally:
    left = [item for item in store.items("toy") if item.id not in store.settled(run)]
    job = Job(run, system, left, lambda _: BlindView(), (AccuracyScorer(),))
    return run_in_virtual_time(ask_all([job], store, limits=Limits(concurrency=2)))


def test_an_owner_that_lost_its_run_writes_nothing_and_ends_with_one_line(tmp_path: Path) -> None:
    store, run, system = a_store(tmp_path / "runs.db")

    def robbed(item: Item) -> Answer:
        with store.writing() as connection:
            connection.execute(text("update runs set owner = 'another'"))
        return Answer(item_id=item.id, text="2")

    system.act = robbed
    with pytest.raises(RunLostError) as lost:
        asking(store, run, system)
    assert str(lost.value) == (
        f"{store.shown}: run of scripted under video: found that another process took it over while this one gave no sign "
        "of life, expected one process a run: answers on disk stay, and that process asks the others"
    )
    assert len(system.asked) <= 2
    assert store.count_answers(run) == (0, 0)
    store.close()


def test_what_another_process_answered_between_plan_and_lease_is_not_asked(tmp_path: Path) -> None:
    store, run, system = a_store(tmp_path / "runs.db")
    job = Job(run, system, store.items("toy"), lambda _: BlindView(), ())
    store.write(run, [(Answer(item_id="q0", text="2"), [])])
    tally = asyncio.run(ask_all([job], store))
    assert (tally.total, tally.done, sorted(system.asked)) == (7, 7, [f"q{number}" for number in range(1, 8)])
    store.close()


@pytest.mark.parametrize("seconds", [30.0, 90.0])
def test_a_store_that_is_locked_for_a_while_ends_no_run(seconds: float, tmp_path: Path) -> None:
    store, run, system = a_store(tmp_path / "runs.db")
    with mock.patch.object(store, "writing", LockedFor(store, seconds).writing):
        tally = asking(store, run, system)
    assert (tally.done, len(system.asked), store.count_answers(run)) == (ITEMS, ITEMS, (ITEMS, 0))
    store.close()


class LockedFor:
    """A store that is locked from its second transaction on."""

    def __init__(self, store: Store, seconds: float) -> None:
        self.own, self.seconds, self.ends = store.writing, seconds, -1.0

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        if time.monotonic() < self.ends:
            time.sleep(20.0)  # so long SQLite itself waits
            raise StoreAwayError("runs.db", found="database is locked", expected="a store that can be written")
        self.ends = time.monotonic() + self.seconds if self.ends < 0.0 else self.ends
        with self.own() as connection:
            yield connection


def test_what_the_store_never_takes_lies_beside_it_until_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-7hQ2mZ9xLw41")
    store, run, system = a_store(tmp_path / "runs.db")
    system.act = lambda item: Answer(item_id=item.id, text="2", reason="your key is sk-proj-7hQ2mZ9xLw41")
    locked = LockedFor(store, 1e9)
    with mock.patch.object(store, "writing", locked.writing), pytest.raises(UnwrittenError) as unwritten:
        asking(store, run, system)
    kept = tmp_path / "runs.db-unwritten.jsonl"
    assert str(unwritten.value) == (
        "runs.db: found database is locked, expected a store that can be written; the next proctor run adds 2 answers kept "
        f"in {kept}"
    )
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [(one["system"], one["answer"]["item_id"]) for one in lines] == [("scripted", name) for name in system.asked]
    assert "7hQ2mZ9xLw41" not in kept.read_text()
    with store.owning([run]):  # a process that is at work leaves it there
        assert add_unwritten(store, run) == 0
    store.write(run, [(Answer(item_id=system.asked[0], text="1"), [])])  # settled meanwhile: it stays as it is
    assert add_unwritten(store, run) == 2
    assert not kept.exists()
    assert {name: one.text for name, one in store.answers(run).items()} == dict(zip(system.asked, "12", strict=True))
    store.close()


def test_a_line_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    store, run, _ = a_store(tmp_path / "runs.db")
    file = tmp_path / "runs.db-unwritten.jsonl"
    file.write_text('{"benchmark": "toy"')
    with pytest.raises(
        InputError, match=r"runs.db-unwritten.jsonl: line 1: found .* delete the line to go on without it"
    ):
        add_unwritten(store, run)
    assert file.exists()
    store.close()


def test_a_process_with_a_clock_of_its_own_has_the_machines_time(monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time()
    assert abs(machine_time() - real) < 60
    for ahead in (-86400.0, -90.0, 90.0, 86400.0):
        monkeypatch.setattr("proctor.runs.database.time.time", lambda ahead=ahead: real + ahead)
        assert abs(machine_time() - real) < 60


def test_a_process_is_known_by_its_start_and_only_in_its_own_namespace() -> None:
    here = this_process()
    assert state_of(here) == "running"
    assert state_of(replace(here, started="1")) == "gone"  # another one had its number
    assert state_of(replace(here, location="another boot/1")) == "unknown"
    with subprocess.Popen(["sleep", "600"]) as child:
        who = replace(here, pid=child.pid, started=run_leases._status(child.pid)[1])
        os.kill(child.pid, signal.SIGSTOP)
        until(lambda: run_leases._status(child.pid)[0] == "T")
        assert state_of(who) == "unknown"
        child.kill()
        child.wait()
        assert state_of(who) == "gone"


def asking_really(store: Store, run: Run, system: Scripted) -> Tally:
    job = Job(run, system, store.items("toy"), lambda _: BlindView(), (AccuracyScorer(),))
    return asyncio.run(ask_all([job], store, limits=Limits(concurrency=1)))


def test_a_server_that_is_restarted_ends_no_run() -> None:
    programs = binaries()
    if programs is None:
        missing("no PostgreSQL server here (Debian: apt-get install postgresql)")
        return
    with restartable_postgres(programs) as (server, restart):
        store = Store(f"{server}/postgres")
        store.add_benchmark(a_benchmark(ITEMS))
        run = store.start_run("toy", "scripted", "video", {})
        system = Scripted(lambda item: Answer(item_id=item.id, text="2"))

        def act(item: Item) -> Answer:
            if len(system.asked) in {3, 6}:
                restart()
            return Answer(item_id=item.id, text="2")

        system.act = act
        tally = asking_really(store, run, system)
        assert (tally.done, len(system.asked), store.count_answers(run)) == (ITEMS, ITEMS, (ITEMS, 0))
        store.close()
