"""Answers and ratings that a spreadsheet changed: dates, times, texts that it cut, and ids with zeros before them."""

from __future__ import annotations

import csv
import datetime as dt
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from pydantic import JsonValue

import proctor
from proctor.audits import read_ratings
from proctor.core import Answer, Frame, InputError, input_text, lost_text, read_sheet
from proctor.interchange.export_source import shown_text
from proctor.media import ShownRecord
from proctor.reports.blocks import recorded_figure
from proctor_build.annotators.tables import Cells, read_rows
from tests.support.lamp_benchmark import lamps
from tests.support.program import proctor as program

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
    rows: list[list[Any]] = [[IDS[0], dt.date(2026, 2, 1)], [IDS[1], CUT], [IDS[2], "no"], [IDS[3], dt.time(1, 5)]]
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


def test_no_header_is_a_formula(tmp_path: Path) -> None:
    """A facet's name comes from a table by anyone, and is a header of what is exported and printed."""
    name = '=HYPERLINK("http://x",1)'
    file = tmp_path / "own.json"
    asked = [{"id": n, "question": "Is it on?", "answer": "yes", "patient": n, name: str(int(n) % 2)} for n in "123456"]
    file.write_text(json.dumps(asked))
    said = tmp_path / "said.csv"
    said.write_text("id,answer\n" + "".join(f"{n},yes\n" for n in "123456"))
    made = proctor.import_answers(file, said, name="m", store=tmp_path / "s.db")
    made.export(tmp_path / "rows.csv")
    header = next(csv.reader((tmp_path / "rows.csv").read_text().splitlines()))
    assert f"'{name}" in header
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in header)
    by = f'"{name.replace(chr(34), chr(34) * 2)}"'  # quoted, as in CSV, since it has a comma
    done = program("results", "own", "--store", tmp_path / "s.db", "--by", by, "--system", "m")
    assert done.returncode == 0, done.stderr
    assert "hyperlink" in done.stdout.casefold()
    figure = recorded_figure("f", "F", "<svg/>", "c", [{name: str(number)} for number in range(200)])
    assert figure.csv.splitlines()[0].startswith("\"'=")


def test_an_archive_is_called_one(tmp_path: Path) -> None:
    for name, content, found in (
        ("answers.jsonl", b"PK\x03\x04" + bytes(range(256)), "a ZIP archive"),
        ("a.json", b"\x1f\x8b\x08" + bytes(range(128, 256)), "a gzip archive"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError) as caught:
            input_text(tmp_path / name)
        assert str(caught.value).endswith(f"{name}: found {found}, expected the file itself: unpack it first")


def test_where_nothing_was_shown_no_hash_of_nothing_is_exported() -> None:
    shown: list[JsonValue] = [
        ShownRecord.of([]).model_dump(mode="json"),
        ShownRecord.of([Frame(b"one", 0.0, "A")]).model_dump(mode="json"),
    ]
    assert shown_text(Answer(item_id="q", extra={"shown": shown[:1]})) == ""
    assert len(json.loads(shown_text(Answer(item_id="q", extra={"shown": shown})))) == 1


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
