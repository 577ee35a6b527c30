"""A run with several repetitions that is killed (SIGKILL) at drawn moments and resumed, and what must hold afterwards."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from proctor.core import Answer, InputError, Status, generator
from proctor.runs import Run, Store, check_store
from tests.support.faulty_server import FaultyServer, Request
from tests.support.forked import Program
from tests.support.program import start_proctor, wait_for
from tests.support.text_folder import answer_tray, item_of, write_text_folder

CONCURRENCY = 8
LATENCY_S = 0.04
PATIENCE_S = 600.0  # a guard, no property

Key = tuple[str, int]
"""An item and a repetition."""


@dataclass(frozen=True)
class Killed:
    """How often a run was killed, how many answers it has, and how many requests were paid again."""

    kills: int
    answers: int
    again: int
    seconds: float


def asked(request: Request) -> Key:
    """What a request asked for: its seed tells the repetition."""
    return item_of(request), int(request.body.get("seed") or 0)


def own_run(store: Store, benchmark: str, system: str) -> Run | None:
    if benchmark not in store.benchmark_names():
        return None
    return next((run for run in store.runs(benchmark) if run.system == system), None)


def on_disk(url: str) -> dict[Key, Answer]:
    try:
        store = Store(url, create=False)
    except InputError:  # killed before there was a store
        return {}
    run = own_run(store, "simulated", "local")
    numbers = [] if run is None else store.repetitions(run)
    found = {(item, n): one for n in numbers if run for item, one in store.answers(run, n).items()}
    store.close()
    return found


def kill(process: Program) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "the run ended before it was killed"


def kill_run(url: str, folder: Path, *, items: int, repeats: int, kills: int, seed: int = 5) -> Killed:
    """Kills a run in the store at this address, resumes it each time, and checks: every repetition of every item is answered
    once, none is lost, and none that was recorded is paid again."""
    started = time.monotonic()
    data = write_text_folder(folder / "data", items)
    rng = generator(seed, "kill repeats")
    moments = sorted(int(one) for one in rng.choice(range(5, items * repeats - 20), kills, replace=False))
    states: list[tuple[dict[Key, Answer], int]] = []

    def start(server: FaultyServer) -> Program:
        return start_proctor(
            "run", "simulated", "--data", data, "--store", url, "--condition", "text-only", "--repeats", str(repeats),
            "--model", "local", "--base-url", server.url, "--concurrency", str(CONCURRENCY),
        )  # fmt: skip

    with FaultyServer(answer_tray, latency_s=LATENCY_S) as server:
        for moment in moments:
            server.holds_after = max(moment, server.count) + CONCURRENCY  # nobody ends before the kill
            process = start(server)
            wait_for(lambda moment=moment: server.count >= moment, process)  # type: ignore[misc]
            time.sleep(float(rng.uniform(0.0, LATENCY_S)))
            kill(process)
            states.append((on_disk(url), server.count))
        server.release()
        last = start(server)
        _, complained = last.communicate(timeout=PATIENCE_S)
        requests = [asked(request) for request in server.requests]
    assert last.returncode == 0, complained

    final = on_disk(url)
    every = {(f"q{number:03d}", repetition) for number in range(items) for repetition in range(repeats)}
    assert final.keys() == every
    assert {one.status for one in final.values()} == {Status.ANSWERED}
    for recorded, count in states:
        assert not recorded.keys() & set(requests[count:]), "asked again after they were recorded"
        assert {key: final[key] for key in recorded} == recorded, "nothing recorded was lost or replaced"
    assert set(requests) == every
    assert 0 < len(requests) - len(every) <= kills * CONCURRENCY, "only what was under way is paid again"
    assert Counter(requests).most_common(1)[0][1] > 1
    for recorded, _ in states:  # whole repetitions first
        numbers = Counter(number for _, number in recorded)
        begun = max(numbers, default=0)
        lacking = sum(items - numbers[number] for number in range(begun))
        assert lacking <= CONCURRENCY, numbers
    store = Store(url, create=False)
    run = own_run(store, "simulated", "local")
    assert run is not None
    assert store.settled_repetitions(run) == dict.fromkeys(range(repeats), items)
    assert [len(store.scored(run, "code", number)) for number in range(repeats)] == [items] * repeats
    assert list(check_store(store)) == []
    store.close()
    return Killed(kills, len(every), len(requests) - len(every), time.monotonic() - started)
