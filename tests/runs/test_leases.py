"""Who owns a run: whatever processes do (stopped, continued, killed, with numbers and host names of others, with clocks that
differ, with a store that is away), nothing is asked twice but what was under way, and nothing counts that is not on disk."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from proctor.core import Answer, generator
from proctor.metrics import AccuracyScorer
from proctor.runs import Store, evaluation_content
from proctor.runs.engine import Job, ask_all
from tests.runs.test_engine import Scripted
from tests.runs.test_store import a_benchmark
from tests.support.pretended_processes import CONCURRENCY, PretendedProcess, World, pretended_world
from tests.support.toy_run import BlindView

ITEMS = 8
SCHEDULES = 240
PLACES = ("boot/one", "boot/two")  # two PID namespaces of one machine, with one host name
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
            place, pid = str(draws.choice(PLACES)), int(draws.integers(7, 9))
            if not any((one.who.place, one.who.pid) == (place, pid) for one in living):
                shares = kind == "shared" or (kind == "mixed" and draws.random() < 0.5)
                world.start(place, pid, ahead=float(draws.choice(AHEAD)), shares=shares)
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
        for place in ("boot/last", "boot/last again", "boot/at last"):  # a run that gave up is started again
            if len(world.look.settled(run)) < ITEMS:
                world.start(place, 1, ahead=0.0, shares=False)
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
    time that its claims end."""
    return ITEMS if one.shares else CONCURRENCY * (1 + world.skewed)
