"""The floor beside every system: asked once, completed where it was cut short, left alone where it is another's."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path

import pytest
from sqlalchemy import update

from proctor.core import Status
from proctor.media import MediaLibrary
from proctor.metrics import AccuracyScorer
from proctor.results import Options, results
from proctor.runs import BASELINES, Limits, PlanOptions, Run, Store, add_baselines, execute, plan, schema
from proctor.systems import build_system
from tests.support.ledger import LEDGER, ledger_benchmark

COUNTED = {line.item for line in LEDGER if line.kind == "count"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(ledger_benchmark())
    return store


def add(store: Store, seed: int = 0) -> list[str]:
    return asyncio.run(add_baselines(store, ledger_benchmark(), [AccuracyScorer()], seed=seed))


def floor(store: Store) -> dict[str, Run]:
    return {run.system: run for run in store.runs("ledger")}


def test_the_floor_is_asked_once(store: Store) -> None:
    asked = add(store)
    assert "random" in asked
    assert set(asked) <= set(BASELINES)
    assert floor(store).keys() == set(asked)
    assert {run.condition for run in floor(store).values()} == {"text-only"}
    answers = store.answers(floor(store)["random"])
    assert answers.keys() >= COUNTED
    assert {answer.status for answer in answers.values()} == {Status.ANSWERED}
    rows = results(store, "ledger", Options(systems=("random",), draws=100)).rows
    assert [(row.metric, row.n, row.missing) for row in rows if row.metric == "accuracy"] == [
        ("accuracy", len(COUNTED), 0)
    ]
    assert add(store) == []


def test_a_floor_that_was_cut_short_is_completed(store: Store) -> None:
    """As after a kill between naming the run and keeping its answers."""
    add(store)
    random = floor(store)["random"]
    whole = store.answers(random)
    other = Store(store.shown.replace("runs.db", "cut.db"))
    other.add_benchmark(ledger_benchmark())
    cut = other.start_run("ledger", "random", "text-only", random.settings)
    other.write(cut, [(whole["q0"], [])])
    assert "random" in add(other)
    now = other.answers(cut)
    assert {item: answer.parsed for item, answer in now.items()} == {
        item: answer.parsed for item, answer in whole.items()
    }
    assert now["q0"] == whole["q0"]


def test_a_run_with_other_settings_stays_as_it_is(store: Store) -> None:
    mine = store.start_run("ledger", "random", "text-only", {"seed": 99})
    assert "random" not in add(store)
    assert store.answers(mine) == {}


def test_baselines_are_runs_of_the_engine(store: Store) -> None:
    """Owned while they are asked, as every run is: one that another process has is left to it, the others are asked."""
    asked = add(store)
    assert all(answer.timing for answer in store.answers(floor(store)["random"]).values())
    other = Store(store.shown.replace("runs.db", "other.db"))
    other.add_benchmark(ledger_benchmark())
    taken = other.start_run("ledger", "random", "text-only", floor(store)["random"].settings)
    table = schema.runs
    with other.writing() as connection:
        owner = f"{'0' * 32} - 1 - {socket.gethostname()}-elsewhere"
        connection.execute(
            update(table).where(table.c.id == taken.id).values(owner=owner, owned_until=time.time() + 60)
        )
    assert add(other) == [name for name in asked if name != "random"]
    assert other.answers(taken) == {}


def test_a_baseline_and_a_run_of_that_name_answer_alike(store: Store, tmp_path: Path) -> None:
    """Also where only some items are asked, and asked video by video: both learn from all that count."""
    add(store)
    other = Store(tmp_path / "plain.db")
    systems = [build_system(name, seed=0) for name in floor(store)]
    options = PlanOptions(limit=5)
    planned = plan(other, ledger_benchmark(), systems, ["text-only"], MediaLibrary(None), scorers=(), options=options)
    asyncio.run(execute(other, planned, Limits()))
    for run in planned.runs:
        baseline = floor(store)[run.system]
        assert run.settings == baseline.settings
        known = {item: (one.status, one.parsed) for item, one in store.answers(baseline).items()}
        own = {item: (one.status, one.parsed) for item, one in other.answers(run).items()}
        assert own
        assert own == {item: known[item] for item in own}
