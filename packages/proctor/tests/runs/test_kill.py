"""`kill -9` at 20 random moments of a run through the command line, resumed each time: every item is
answered once, none is lost, and none that was recorded is paid again."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from proctor.core import Answer, InputError, Status, generator
from proctor.results import Options, results
from proctor.runs import BASELINES, Run, Store
from tests.support.faulty_server import FaultyServer
from tests.support.forked import Program
from tests.support.program import start_proctor, wait_for
from tests.support.text_folder import answer_tray, item_of, write_text_folder

ITEMS = 500
KILLS = 20
CONCURRENCY = 8
LATENCY_S = 0.08  # so that one run without kills takes about 5 s
AT_START = range(0, 15, 3)  # these kills come soon after the start, whatever the process does then
PATIENCE_S = 600.0  # a guard, no property


@dataclass(frozen=True)
class Killed:
    """What was on disk when a process was gone, and how many requests had come until then."""

    recorded: dict[str, Answer]
    requests: int


def start(folder: Path, store: Path, server: FaultyServer) -> Program:
    return start_proctor(
        "run", "simulated", "--data", folder, "--store", store, "--condition", "text-only",
        "--model", "local", "--base-url", server.url, "--concurrency", str(CONCURRENCY),
    )  # fmt: skip


def kill(process: Program) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "the run ended before it was killed"


def on_disk(store: Path, copy: Path) -> dict[str, Answer]:
    """The answers in a copy of the files as they were left, so that looking repairs nothing."""
    copy.mkdir()
    for file in store.parent.glob(f"{store.name}*"):
        shutil.copy(file, copy)
    try:
        opened = Store(copy / store.name, create=False)
    except InputError:  # killed before there was a store
        return {}
    run = own_run(opened)
    answers = {} if run is None else opened.answers(run)
    opened.close()
    return answers


def own_run(store: Store) -> Run | None:
    if "simulated" not in store.benchmark_names():
        return None
    return next((run for run in store.runs("simulated") if run.system == "local"), None)


def test_a_run_killed_20_times_asks_every_item_and_pays_none_twice(tmp_path: Path) -> None:
    folder, path = write_text_folder(tmp_path / "data", ITEMS), tmp_path / "runs.db"
    rng = generator(20, "kill")
    moments = sorted(int(count) for count in rng.choice(range(5, ITEMS - 20), KILLS, replace=False))
    killed: list[Killed] = []
    with FaultyServer(answer_tray, latency_s=LATENCY_S) as server:
        for number, moment in enumerate(moments):
            server.holds_after = max(moment, server.count) + CONCURRENCY  # nobody ends before the kill
            process = start(folder, path, server)
            if number in AT_START:
                time.sleep(float(rng.uniform(0.0, 1.5)))
            else:
                wait_for(lambda moment=moment: server.count >= moment, process)  # type: ignore[misc]
                time.sleep(float(rng.uniform(0.0, LATENCY_S)))
            kill(process)
            recorded = on_disk(path, tmp_path / f"after-{number}")
            killed.append(Killed(recorded, server.count))
        server.release()
        last = start(folder, path, server)
        said, complained = last.communicate(timeout=PATIENCE_S)
        requests = [item_of(request) for request in server.requests]
    assert last.returncode == 0, complained
    assert f"{ITEMS - len(killed[-1].recorded)} answered" in said

    store = Store(path, create=False)
    assert_all_are_answered_once(store)
    assert_none_was_paid_twice(killed, requests)
    assert_nothing_recorded_was_lost(killed, store)
    assert_the_kills_hit(killed)


def assert_all_are_answered_once(store: Store) -> None:
    run = own_run(store)
    assert run is not None
    assert store.count_answers(run) == (ITEMS, 0)
    assert {answer.status for answer in store.answers(run).values()} == {Status.ANSWERED}
    (row,) = results(store, "simulated", Options(systems=("local",), draws=200)).rows
    assert (row.value, row.n, row.answered, row.unscored, row.missing) == (1.0, ITEMS, ITEMS, 0, 0)
    floor = [one for one in store.runs("simulated") if one.system in BASELINES]
    assert {one.system for one in floor} >= {"random", "majority"}
    assert [store.count_answers(one) for one in floor] == [(ITEMS, 0)] * len(floor)


def assert_none_was_paid_twice(killed: list[Killed], requests: list[str]) -> None:
    for state in killed:
        again = state.recorded.keys() & set(requests[state.requests :])
        assert not again, f"asked again after they were recorded: {sorted(again)}"
    assert set(requests) == {f"q{number:03d}" for number in range(ITEMS)}
    paid = Counter(requests)
    lost_in_flight = sum(paid.values()) - ITEMS
    assert 0 < lost_in_flight <= KILLS * CONCURRENCY


def assert_nothing_recorded_was_lost(killed: list[Killed], store: Store) -> None:
    run = own_run(store)
    assert run is not None
    final = store.answers(run)
    for earlier, later in pairwise(killed):
        assert earlier.recorded.keys() <= later.recorded.keys()
    for state in killed:
        assert {item: final[item] for item in state.recorded} == state.recorded


def assert_the_kills_hit(killed: list[Killed]) -> None:
    """They came at different stages, and most of them while answers were under way."""
    counts = [len(state.recorded) for state in killed]
    assert len(set(counts)) >= KILLS // 2
    assert counts[-1] > ITEMS / 2
    under_way = [state.requests > len(state.recorded) for state in killed]
    assert sum(under_way) >= KILLS // 2
