"""The floor beside every system: asked once, completed where it was cut short, left alone where it is another's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from proctor.core import Status
from proctor.metrics import AccuracyScorer
from proctor.runs import BASELINES, Options, Run, Store, add_baselines, results
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
