"""Answers that are letters of options which nobody wrote down are a fault: no model could choose one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import proctor
from proctor.core import InputError


def check(folder: Path, text: str, settings: str = "") -> tuple[bool, list[str], list[str]]:
    """Whether there are no faults, the faults, and how the questions were read."""
    file = folder / "questions.csv"
    file.write_text(text, encoding="utf-8")
    (folder / "benchmark.yaml").write_text(settings)
    found = proctor.check(file)
    faults = [f"row {row['row']}, {row['column']}: {row['found']}, {row['expected']}" for row in found.rows]
    return found.ok, faults, list(found.notes)


@pytest.mark.parametrize("answer", ["A", "b", "(C)", "D.", "Option B", '"A, C"', "B and D", "[A]"])
def test_letters_alone_are_a_fault(answer: str, tmp_path: Path) -> None:
    ok, faults, _ = check(tmp_path, f"Question,Correct answer,patient\nWhich plane?,{answer},p\n")
    assert not ok
    assert faults == [
        (
            "row 2, Correct answer: single letters in row 2, and no columns of options, the options too, in columns A, B, "
            "C …; or a column 'format' that says preference or short text"
        )
    ]
    with pytest.raises(InputError, match="single letters in row 2, and no columns of options"):
        proctor.load(tmp_path / "questions.csv")


def test_all_rows_are_named_once(tmp_path: Path) -> None:
    rows = "".join(f"Which plane?,{letter},p{row}\n" for row, letter in enumerate("ABCDABCDA"))
    _, faults, _ = check(tmp_path, f"question,answer,patient\n{rows}")
    assert len(faults) == 1
    assert "single letters in rows 2, 3, 4, 5, 6 …, and no columns of options" in faults[0]


def test_a_row_that_lacks_its_options_is_a_fault(tmp_path: Path) -> None:
    text = "question,answer,A,B,patient\nWhich?,A,liver,spleen,p\nWhich?,B,,,p\nWhat is it?,It is the aorta.,,,p\n"
    _, faults, _ = check(tmp_path, text)
    assert [fault.partition(",")[0] for fault in faults] == ["row 3"]
    assert "no options there" in faults[0]


def test_a_fault_of_the_options_is_told_alone(tmp_path: Path) -> None:
    text = "question,answer,A,B,patient\nWhich?,A,liver,spleen,p\nWhich?,B,liver,liver,p\nWhich?,A,liver,,p\n"
    _, faults, _ = check(tmp_path, text)
    assert [fault.partition(": ")[2].partition(",")[0] for fault in faults] == ["the option 'liver' twice", "1 option"]


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("question,answer,A,B,patient\nWhich?,A,liver,spleen,p\n", ""),
        ("question,answer,format,patient\nWhich is better?,A,preference,p\n", ""),
        ("question,answer,format,patient\nWhich blood group?,B,short text,p\n", ""),
        ("question,answer,patient\nWhich blood group?,B,p\n", "format: short_text\n"),
        ("question,answer,patient\nWhat?,a red disc,p\nWhere?,in the middle,p\nWhich scorer?,B,p\n", ""),
        ("question,answer,patient\nWhich vitamin?,vitamin C,p\n", ""),
    ],
)
def test_what_is_meant_so_is_none(text: str, settings: str, tmp_path: Path) -> None:
    ok, faults, _ = check(tmp_path, text, settings)
    assert (ok, faults) == (True, [])


def test_a_letter_among_texts_is_asked_about(tmp_path: Path) -> None:
    text = "question,answer,patient\nWhat?,It is a disc.,p\nWhere?,It is in the middle.,p\nWhich scorer?,B,p\n"
    _, _, notes = check(tmp_path, text)
    assert (
        "Read as free text, which a judge must score: row 4. If row 4 is a choice, add columns for the options."
        in notes
    )
