"""Answers and ratings that a spreadsheet changed: dates, times, texts that it cut, and ids with zeros before them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import proctor
from proctor.audits.ratings import read_ratings
from proctor.construction.annotators.decisions import Cells, read_rows
from proctor.core import InputError, lost_text, read_sheet
from tests.support.lamp_benchmark import lamps

IDS = [item.id for item in lamps().items]
CUT = "I compare. Answer: A is tempting. ".ljust(32_767, "x")


def workbook(file: Path, *rows: list[Any], formats: dict[str, str] | None = None) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in rows:
        sheet.append(row)
    for cell, form in (formats or {}).items():
        sheet[cell].number_format = form
    book.save(file)
    return file


@pytest.mark.parametrize("form", ["vlmevalkit", "table"])
def test_a_date_and_a_cut_text_are_no_answers(form: str, tmp_path: Path) -> None:
    head = ["index", "prediction"] if form == "vlmevalkit" else ["id", "prediction"]
    rows = [[IDS[0], dt.date(2026, 2, 1)], [IDS[1], CUT], [IDS[2], "no"], [IDS[3], dt.time(1, 5)]]
    file = workbook(tmp_path / "a.xlsx", head, *rows, formats={"B2": "dd/mm/yyyy", "B5": "h:mm"})
    made = proctor.import_answers(lamps(), file, store=":memory:", name="m", form=form)
    found = {name: (str(one.status), one.reason) for name, one in made.store.answers(made.runs[0]).items()}
    assert found == {
        IDS[0]: ("failed", "a date (2026-02-01), as a spreadsheet makes it of other texts"),
        IDS[1]: ("failed", "32,767 characters, where a spreadsheet cuts a text"),
        IDS[2]: ("answered", ""),
        IDS[3]: ("failed", "a time: 1:05 (kept as 1 h 5 min)"),
    }
    assert "3 failed, for example: a date (2026-02-01), as a spreadsheet makes it of other texts" in made.notes


def test_characters_beyond_16_bits_count_twice() -> None:
    """An emoji is two of a cell's 32,767 units: 16,000 of them and 767 letters are a full cell."""
    full = "\N{STETHOSCOPE}" * 16_000 + "a" * 767
    assert lost_text(full) == "32,767 characters, where a spreadsheet cuts a text"
    assert lost_text(full[:-1]) == lost_text(full + "a") == lost_text("a" * 32_768) == ""


def test_a_csv_that_excel_saved_is_cut_alike(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"id,prediction\n{IDS[0]},{CUT}\n{IDS[1]},{CUT}x\n")
    made = proctor.import_answers(lamps(), file, store=":memory:", name="m")
    found = made.store.answers(made.runs[0])
    assert [str(found[name].status) for name in IDS[:2]] == ["failed", "answered"]  # a longer one was never in Excel


def test_ids_keep_the_zeros_that_are_shown(tmp_path: Path) -> None:
    file = workbook(tmp_path / "a.xlsx", ["id", "x"], [7, 7], [1234, 0], formats={"A2": "000", "A3": "000", "B3": "0"})
    assert [row.cells for row in read_sheet(file).rows] == [{"id": "007", "x": 7}, {"id": "1234", "x": 0}]


def test_ratings_and_decisions_refuse_a_date_where_a_text_was_written(tmp_path: Path) -> None:
    head = ["item", "system", "rater", "value", "candidate"]
    for cell, column, told in (
        (dt.date(2026, 2, 1), 5, "column 'candidate': found a date (2026-02-01)"),
        (CUT, 5, "column 'candidate': found 32,767 characters, where a spreadsheet cuts a text"),
        (dt.date(2026, 3, 4), 1, "column 'item': found a date (2026-03-04)"),
        (dt.date(2026, 1, 1), 4, "column 'value': found a date (2026-01-01)"),
    ):
        row: list[Any] = ["q1", "m", "anna", 1, "liver"]
        row[column - 1] = cell
        with pytest.raises(InputError) as caught:
            read_ratings(workbook(tmp_path / "r.xlsx", head, row))
        assert f"r.xlsx: row 2, {told}" in str(caught.value)

    def read(cells: Cells) -> str:
        return cells.text("id")

    with pytest.raises(InputError, match=r"row 2, column 'id': found a date \(2026-02-01\)"):
        read_rows(workbook(tmp_path / "d.xlsx", ["id"], [dt.date(2026, 2, 1)]), ["id"], read)
