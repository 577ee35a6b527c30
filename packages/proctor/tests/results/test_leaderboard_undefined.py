"""A system for which a metric over many items is not defined has no rank, and takes none from the others."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.core import ACCURACY, Answer, Benchmark, FailedPolicy, Item, Reference, Status
from proctor.core.formats import BinaryFormat, ClassesFormat, CountFormat
from proctor.results import Leaderboard, Options, leaderboard
from proctor.runs import Store
from tests.support.program import within

ITEMS = 60
CLASSES = ClassesFormat(classes=("clip", "mesh"))


def stored(path: Path, answer: Any, truth: list[Any], said: dict[str, list[Any]]) -> Store:
    """Answers of systems to questions in ten groups; a `Status` instead of a value is how asking ended."""
    items = tuple(
        Item(id=f"q{k}", group=f"v{k % 10}", question="?", answer=answer, reference=Reference(answer=one))
        for k, one in enumerate(truth)
    )
    store = Store(path)
    store.add_benchmark(Benchmark("b", "B", items, (ACCURACY,), "accuracy", conditions=("video",)))
    for system, values in said.items():
        answers = [
            Answer(item_id=item.id, status=one)
            if isinstance(one, Status)
            else Answer(item_id=item.id, text="x", parsed=one)
            for item, one in zip(items, values, strict=True)
        ]
        store.write(store.start_run("b", system, "video", {}), [(one, []) for one in answers])
    return store


def board(store: Store, metric: str, failed: FailedPolicy | None = None) -> Leaderboard:
    return leaderboard(store, "b", condition="video", metric=metric, options=Options(draws=200, failed=failed))


def binary() -> tuple[list[bool], dict[str, list[Any]]]:
    rng = np.random.default_rng(2)
    truth = [bool(one) for one in rng.random(ITEMS) < 0.5]
    rates = {"good": 0.9, "mid": 0.7, "poor": 0.55}
    said = {name: [bool(one == (rng.random() < rate)) for one in truth] for name, rate in rates.items()}
    return truth, said | {"always yes": [True] * ITEMS}


def classes() -> tuple[list[list[str]], dict[str, list[Any]]]:
    rng = np.random.default_rng(3)
    truth = [[name for name in CLASSES.classes if rng.random() < 0.4] for _ in range(ITEMS)]
    said: dict[str, list[Any]] = {
        system: [[name for name in CLASSES.classes if (name in one) == (rng.random() < rate)] for one in truth]
        for system, rate in (("good", 0.9), ("mid", 0.7))
    }
    return truth, said | {"clips alone": [["clip"]] * ITEMS}


@pytest.mark.parametrize(
    ("answer", "made", "metric", "odd"),
    [(BinaryFormat(), binary, "mcc", "always yes"), (CLASSES, classes, "class_precision:mesh", "clips alone")],
)
def test_the_others_are_ranked_as_if_it_were_not_there(
    tmp_path: Path, answer: Any, made: Any, metric: str, odd: str
) -> None:
    truth, said = made()
    found = board(stored(tmp_path / "all.db", answer, truth, said), metric)
    without = {name: values for name, values in said.items() if name != odd}
    wanted = board(stored(tmp_path / "without.db", answer, truth, without), metric)
    *others, last = found.rows
    assert [asdict(row) for row in others] == [asdict(row) for row in wanted.rows]
    assert (found.items, found.left_out) == (wanted.items, wanted.left_out) == (ITEMS, 0)
    trials = 0 if made is classes else ITEMS  # a class that is never named has no trial of its precision
    assert (last.system, last.rank, last.value, last.n, last.undefined) == (odd, None, None, trials, True)
    assert not any(row.undefined for row in others)
    code, out = within("rank", "b", "--store", str(tmp_path / "all.db"), "--metric", metric)
    assert code == 0
    assert next(line for line in out.splitlines() if odd in line).split()[-2:] == ["not", "defined"]
    assert "such a system has no rank" in out


def test_where_no_system_has_a_value_none_has_a_rank(tmp_path: Path) -> None:
    """All references are alike: there is nothing that a cost could be normalised by."""
    rng = np.random.default_rng(0)
    said: dict[str, list[Any]] = {name: [int(one) for one in rng.integers(5, size=ITEMS)] for name in ("one", "other")}
    store = stored(tmp_path / "runs.db", CountFormat(), [3] * ITEMS, said)
    found = board(store, "normalised_cost")
    assert [(row.system, row.rank, row.undefined) for row in found.rows] == [("one", None, True), ("other", None, True)]
    code, out = within("rank", "b", "--store", store.shown, "--metric", "normalised_cost", "--format", "json")
    assert code == 0
    assert [row["value"] for row in json.loads(out)] == [None, None]


def test_an_incomplete_run_needs_a_value_at_both_ends(tmp_path: Path) -> None:
    """It says yes to all that it answers: with what it lacks at its worst it has a correlation, without it none. Where
    what it lacks is wrong, it is ranked."""
    truth, said = binary()
    said["always yes"][:6] = [Status.FAILED] * 6
    store = stored(tmp_path / "runs.db", BinaryFormat(), truth, said)
    both = {row.system: row for row in board(store, "mcc").rows}["always yes"]
    assert (both.rank, both.policy, both.if_excluded, both.undefined) == (None, "both", None, True)
    assert both.if_wrong is not None
    assert {row.system: row.rank for row in board(store, "mcc", FailedPolicy.WRONG).rows}["always yes"] == 4
