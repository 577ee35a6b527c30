"""Results of runs whose items were answered several times, by hand: what was not asked, and scores of later repetitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core import ACCURACY, Answer, Benchmark, FailedPolicy, Item, Reference, Score, Status
from proctor.core.formats import BinaryFormat
from proctor.results import Options, results
from proctor.results.results import Result
from proctor.runs import Store

RIGHT, WRONG, FAILED, NOT_ASKED = 1.0, 0.0, Status.FAILED, None
Given = float | Status | None


def stored(path: Path, rows: list[list[Given]], *, scorer: str = "code", unscored: tuple[int, ...] = ()) -> Store:
    """A run of as many items as there are rows, each with what became of its repetitions; no scores in the repetitions
    `unscored`."""
    items = tuple(
        Item(id=f"q{number}", group=f"v{number}", question="?", answer=BinaryFormat(), reference=Reference(answer=True))
        for number in range(len(rows))
    )
    store = Store(path / "runs.db")
    store.add_benchmark(Benchmark("toy", "Toy", items, (ACCURACY,), "accuracy"))
    run = store.start_run("toy", "model", "video", {"repeats": len(rows[0])})
    for repetition in range(len(rows[0])):
        written = []
        for item, row in zip(items, rows, strict=True):
            given, key = row[repetition], {"item_id": item.id, "repetition": repetition}
            if given is None:
                continue
            if isinstance(given, Status):
                written.append((Answer(**key, status=given, reason="HTTP 500"), []))
                continue
            scores = [Score(**key, metric="accuracy", value=given, scorer=scorer)]
            written.append((Answer(**key, text="yes", parsed=given == RIGHT), [] if repetition in unscored else scores))
        store.write(run, written)
    return store


def row_of(store: Store, policy: FailedPolicy | None = None) -> Result:
    (row,) = results(store, "toy", Options(failed=policy)).rows
    return row


def test_a_repetition_that_the_run_did_not_come_to_makes_it_incomplete(tmp_path: Path) -> None:
    store = stored(tmp_path, [[RIGHT, RIGHT, RIGHT], [RIGHT, WRONG, NOT_ASKED], [WRONG, RIGHT, NOT_ASKED]])
    row = row_of(store)
    assert row.missing == 2
    # excluded: 1, 1/2, 1/2 of 3 items; wrong: 1, 1/3, 1/3
    assert (row.if_excluded, row.if_wrong) == (pytest.approx(2 / 3), pytest.approx(5 / 9))
    assert row_of(store, FailedPolicy.WRONG).value == pytest.approx(5 / 9)


def test_a_whole_repetition_that_was_never_begun_is_missing_for_each_item(tmp_path: Path) -> None:
    row = row_of(stored(tmp_path, [[RIGHT, NOT_ASKED], [WRONG, NOT_ASKED]]))
    assert (row.missing, row.if_excluded, row.if_wrong) == (2, 0.5, 0.25)


def test_a_repetition_that_failed_counts_as_one_of_them(tmp_path: Path) -> None:
    row = row_of(stored(tmp_path, [[RIGHT, FAILED], [RIGHT, RIGHT]]))
    assert (row.failed, row.if_excluded, row.if_wrong) == (1, 1.0, 0.75)


def test_a_complete_run_has_one_number(tmp_path: Path) -> None:
    row = row_of(stored(tmp_path, [[RIGHT, WRONG], [RIGHT, RIGHT]]))
    assert (row.value, row.missing, row.failed, row.policy) == (0.75, 0, 0, "")


def test_scores_of_a_later_repetition_alone_are_shown(tmp_path: Path) -> None:
    store = stored(tmp_path, [[RIGHT, RIGHT], [RIGHT, WRONG]], scorer="judge", unscored=(0,))
    (row,) = [one for one in results(store, "toy").rows if one.scorer == "judge"]
    assert (row.value, row.unscored) == (0.5, 2)
