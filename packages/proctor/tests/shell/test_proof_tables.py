"""`reproduce` and `verify` as tables: how many are in each state, which differ, and what is said beside them."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.core import Verified, VerifiedFigure
from proctor.runs import ReproducedAnswer, Reproduction
from proctor.shell.reproduction import ReproductionTable, VerificationTable, _safe


def answer(system: str, item: str, state: str, *media: str, reason: str = "") -> ReproducedAnswer:
    return ReproducedAnswer(system, "video", item, Reproduction(state), 3, reason, media)


ANSWERS = (
    answer("a", "q1", "same"),
    answer("a", "q2", "same", "clip.mp4", "other.mp4"),
    answer("a", "q3", "different", "clip.mp4", reason="picture 2"),
    answer("a", "q4", "different", reason="picture 1"),
    answer("b", "q1", "unrecorded", "third.mp4"),
    answer("b", "q2", "unreadable", reason="no such file"),
    answer("b", "q3", "same", "other.mp4"),
)


def texts(table: Any) -> list[list[str]]:
    return [[one.label for one in table.columns], *table.texts]


def test_answers_made_again() -> None:
    runs, wrong = (table := ReproductionTable(ANSWERS)).tables
    assert (runs.title, wrong.title) == ("What was shown, made again", "Not the same")
    assert texts(runs) == [
        ["System", "Condition", "Answers", "Same", "Different", "Unrecorded", "Unreadable"],
        ["a", "video", "4", "2", "2", "0", "0"],
        ["b", "video", "3", "1", "0", "1", "1"],
    ]
    assert texts(wrong) == [
        ["Item", "System", "Condition", "Found"],
        ["q3", "a", "video", "picture 2 (clip.mp4 is another file now)"],
        ["q4", "a", "video", "picture 1"],
        ["q2", "b", "video", "no such file"],
    ]
    assert table.notes == (
        "Other files than before, with the same pictures: clip.mp4, other.mp4.",
        "1 answer without a record of what was shown: imported, or from before it was kept.",
    )
    assert not table.ok
    assert table.rows[1] == {
        "system": "a",
        "condition": "video",
        "item": "q2",
        "state": "same",
        "pictures": 3,
        "reason": "",
        "media": ["clip.mp4", "other.mp4"],
        "repetition": 0,
    }


def test_answers_that_are_all_the_same() -> None:
    table = ReproductionTable(ANSWERS[:1])
    assert table.ok
    assert len(table.tables) == 1
    assert table.notes == ()
    assert not ReproductionTable(()).ok


@pytest.mark.parametrize("count", [20, 21])
def test_the_first_twenty_that_differ_are_listed(count: int) -> None:
    found = ReproductionTable(tuple(answer("a", f"q{number}", "different") for number in range(count))).tables[1]
    assert found.title == ("Not the same" if count == 20 else "Not the same, the first 20 of 21")
    assert len(found.rows) == 20


def test_names_of_folders() -> None:
    assert [_safe(name) for name in ("a/b", "..", "x: y", "é-1_2.3", "")] == ["a_b", "_", "x_ y", "é-1_2.3", "_"]
    assert _safe("x" * 100) == "x" * 80


FIGURES = (
    ("one", VerifiedFigure("accuracy", "table 2", 0.5, 0.5)),
    ("one", VerifiedFigure("recall", "table 2", 0.6, 0.75)),
    ("one", VerifiedFigure("score", "table 3", 0.7, 0.5, 0.01, "counted twice")),
    ("two", VerifiedFigure("accuracy", "table 1", 0.8, None, explained="not at hand")),
    ("two", VerifiedFigure("rank", "table 1", 0.9, 0.9, explained="not needed")),
)


def test_published_figures() -> None:
    counts, differing = (table := VerificationTable(FIGURES)).tables
    assert (counts.title, differing.title) == (table.title, "Different")
    assert texts(counts) == [
        ["Benchmark", "Figures", "Same", "Explained", "Absent", "Different"],
        ["one", "3", "1", "1", "0", "1"],
        ["two", "2", "1", "0", "1", "0"],
    ]
    assert texts(differing) == [
        ["Benchmark", "Figure", "Published", "Ours", "State", "Reason"],
        ["one", "recall", "0.600", "0.750", "different", ""],
        ["one", "score", "0.700", "0.500", "explained", "counted twice"],
    ]
    shown = [(row["ours"], row["difference"], row["state"], row["reason"]) for row in table.rows]
    assert shown == [
        (0.5, 0.0, "same", ""),
        (0.75, pytest.approx(0.15), "different", ""),
        (0.5, pytest.approx(-0.2), "explained", "counted twice"),
        (None, None, "absent", ""),
        (0.9, 0.0, "same", ""),
    ]
    assert [(row["benchmark"], row["figure"], row["source"], row["published"]) for row in table.rows[:2]] == [
        ("one", "accuracy", "table 2", 0.5),
        ("one", "recall", "table 2", 0.6),
    ]


@pytest.mark.parametrize(
    ("rows", "ok"), [((0, 2, 3, 4), True), ((0, 1), False), ((2, 3), False), ((3,), False), ((), False)]
)
def test_whether_all_is_well(rows: tuple[int, ...], ok: bool) -> None:
    """Something was compared, and nothing is different."""
    table = VerificationTable(tuple(FIGURES[row] for row in rows))
    assert table.ok is ok
    assert {one.state for _, one in table.figures} <= set(Verified)


def test_what_is_missing_is_said() -> None:
    (note,) = VerificationTable((), ("focus",)).notes
    assert note.startswith("focus: no folder holds ")
