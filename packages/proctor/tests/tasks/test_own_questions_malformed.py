"""Malformed spreadsheets and folders: every fault is listed in one go, with row and column, and nothing is written."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import proctor

Build = Callable[[Path], None]
HEAD = "id,question,answer,option A,option B,video,start,end,patient\n"
GOOD = "g1,Is it on?,A,yes,no,a.mp4,0,5,p1\n"


def sheet(text: str | bytes, name: str = "questions.csv") -> Build:
    """A folder with one file."""

    def build(folder: Path) -> None:
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return build


def rows(*lines: str) -> Build:
    """A CSV file with the usual header, a good row and these."""
    return sheet(HEAD + GOOD + "".join(f"{line}\n" for line in lines))


def book(*cells: tuple[Any, ...], merge: str = "", more: str = "", clock: str = "") -> Build:
    """A workbook with the header id, question, answer, start, video, patient."""

    def build(folder: Path) -> None:
        import openpyxl

        made = openpyxl.Workbook()
        page: Any = made.active
        for row in (("id", "question", "answer", "start", "video", "patient"), *cells):
            page.append(row)
        if merge:
            page.merge_cells(merge)
        if clock:
            page[clock].number_format = "h:mm"
        if more:
            made.create_sheet(more).append(("id", "question"))
        made.save(folder / "questions.xlsx")

    return build


def settings(text: str) -> Build:
    """A good file of questions with a benchmark.yaml."""

    def build(folder: Path) -> None:
        rows()(folder)
        (folder / "benchmark.yaml").write_text(text)

    return build


def zip_bomb(folder: Path) -> None:
    """Says that it holds 4 GB, as one that does would."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 1000)
    raw = bytearray(out.getvalue())
    entry = raw.index(b"PK\x01\x02")
    raw[entry + 24 : entry + 28] = (4_000 * 2**20).to_bytes(4, "little")
    (folder / "questions.xlsx").write_bytes(raw)


def lying_bomb(folder: Path) -> None:
    """Says that it holds less than it does."""
    book(("q1", "Is it on?", "yes", 0, "a.mp4", "p1"))(folder)
    raw = bytearray((folder / "questions.xlsx").read_bytes())
    entry = raw.index(b"PK\x01\x02")
    while entry >= 0:
        raw[entry + 24 : entry + 28] = (10).to_bytes(4, "little")
        entry = raw.find(b"PK\x01\x02", entry + 1)
    (folder / "questions.xlsx").write_bytes(raw)


def entity_bomb(folder: Path) -> None:
    book(("q1", "Is it on?", "yes", 0, "a.mp4", "p1"))(folder)
    raw, out = (folder / "questions.xlsx").read_bytes(), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            if name == "xl/workbook.xml":
                content = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]>' + content
            after.writestr(name, content)
    (folder / "questions.xlsx").write_bytes(out.getvalue())


def empty_book(folder: Path) -> None:
    import openpyxl

    openpyxl.Workbook().save(folder / "questions.xlsx")


def broken_part(folder: Path) -> None:
    """A workbook whose list of sheets is no XML: lxml, where it is installed, has an error of its own for it."""
    book(("q1", "Is it on?", "yes", 0, "a.mp4", "p1"))(folder)
    raw, out = (folder / "questions.xlsx").read_bytes(), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            after.writestr(name, b"<workbook <>" if name == "xl/workbook.xml" else before.read(name))
    (folder / "questions.xlsx").write_bytes(out.getvalue())


def media_link(folder: Path) -> None:
    rows("q2,Is it on?,A,yes,no,link.mp4,0,5,p1")(folder)
    (folder.parent / "secret.mp4").write_bytes(b"")
    (folder / "link.mp4").symlink_to(folder.parent / "secret.mp4")


def folder_link(folder: Path) -> None:
    rows("q2,Is it on?,A,yes,no,frames,,,p1")(folder)
    (folder.parent / "outside").mkdir()
    (folder.parent / "outside" / "f1.png").write_bytes(b"")
    (folder / "frames").symlink_to(folder.parent / "outside")


def questions_link(folder: Path) -> None:
    (folder.parent / "secret.csv").write_text(HEAD + GOOD)
    (folder / "questions.csv").symlink_to(folder.parent / "secret.csv")


def two_tables(folder: Path) -> None:
    for name in ("first.csv", "second.jsonl"):
        (folder / name).write_text(HEAD + GOOD)


def many(folder: Path) -> None:
    lines = (f"q{n},,yes,p{n % 100}\n" for n in range(20_000))
    (folder / "questions.csv").write_text("id,question,answer,patient\nfirst,Is it on?,yes,p1\n" + "".join(lines))


def broken_parquet(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "test-00000-of-00001.parquet").write_bytes(b"PAR1 and nothing else PAR1")


def empty_frames(folder: Path) -> None:
    rows("q2,Is it on?,A,yes,no,frames,,,p1")(folder)
    (folder / "frames").mkdir()


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "questions.csv")


CASES: dict[str, tuple[Build, list[tuple[str, str]]]] = {
    "merged cells": (
        book(("q1", "Is it on?", "yes", 0, "a.mp4", "p1"), ("q2", None, "no", 0, "a.mp4", "p1"), merge="B2:B3"),
        [("row 2, column 'question'", "merged cells"), ("row 3, column 'question'", "nothing")],
    ),
    "a date for a time": (
        book(("q1", "Is it on?", "yes", dt.date(2026, 5, 1), "a.mp4", "p1")),
        [("row 2, column 'start'", "'2026-05-01'")],
    ),
    "a clock kept as hours and minutes": (
        book(("q1", "Is it on?", "yes", dt.time(1, 5), "a.mp4", "p1"), clock="D2"),
        [("row 2, column 'start'", "'1:05 (kept as 1 h 5 min)'")],
    ),
    "an answer that became a date": (
        book(("q1", "How many?", dt.date(2026, 1, 2), 0, "a.mp4", "p1")),
        [("row 2, column 'answer'", "a date, 2026-01-02")],
    ),
    "formulas, and error values": (
        book(("q1", "=A1", "yes", "=1+1", "a.mp4", "p1"), ("q2", "Is it on?", "#N/A", 0, "a.mp4", "p1")),
        [
            ("row 2, column 'question'", "a formula (=A1)"),
            ("row 2, column 'start'", "a formula (=1+1)"),
            ("row 2, column 'question'", "nothing"),
            ("row 3, column 'answer'", "the error value #N/A"),
            ("row 3, column 'answer'", "nothing"),
        ],
    ),
    "two sheets": (
        book(("q1", "Is it on?", "yes", 0, "a.mp4", "p1"), more="Other"),
        [("", "2 sheets (Sheet, Other)")],
    ),
    "an empty workbook": (empty_book, [("", "an empty workbook")]),
    "a zip bomb": (zip_bomb, [("", "4,000 MB in 1 part when unpacked")]),
    "a zip bomb that lies": (lying_bomb, [("", "no readable workbook")]),
    "an entity bomb": (entity_bomb, [("", "a document type in xl/workbook.xml")]),
    "a workbook with a broken part": (broken_part, [("", "no readable workbook")]),
    "no workbook at all": (sheet(b"PK\x03\x04 and nothing else", "questions.xlsx"), [("", "no readable workbook")]),
    "an old workbook": (sheet(b"\xd0\xcf\x11\xe0", "questions.xls"), [("", "no table of questions")]),
    "decimal commas between commas": (
        rows('q2,Is it on?,A,yes,no,a.mp4,"0,5","4,5",p1'),
        [("row 3, column 'start'", "'0,5'"), ("row 3, column 'end'", "'4,5'")],
    ),
    "semicolons in one row": (rows("q2;Is it on?;A;yes;no;a.mp4;0;5;p1"), [("row 3", "1 column")]),
    "Excel's serial times": (
        rows("q2,Is it on?,A,yes,no,a.mp4,0.0451736111,0.0486111111,p1"),
        [("row 3, column 'start'", "'0.0451736111'"), ("row 3, column 'end'", "'0.0486111111'")],
    ),
    "times that are none": (
        rows("q2,Is it on?,A,yes,no,a.mp4,1:75,soon,p1", "q3,Is it on?,A,yes,no,a.mp4,-1,01.02.2026,p1"),
        [
            ("row 3, column 'start'", "'1:75'"),
            ("row 3, column 'end'", "'soon'"),
            ("row 4, column 'start'", "'-1'"),
            ("row 4, column 'end'", "'01.02.2026'"),
        ],
    ),
    "an end before its start": (rows("q2,Is it on?,A,yes,no,a.mp4,5,0:03,p1"), [("row 3, column 'end'", "'0:03'")]),
    "times without a video": (rows("q2,Is it on?,A,yes,no,,5,9,p1"), [("row 3, column 'start'", "'0 files'")]),
    "ids twice, thrice, and none": (
        rows("g1,Is it on?,A,yes,no,a.mp4,,,p1", "g1,Is it?,B,yes,no,a.mp4,,,p1", ",Is it?,B,yes,no,a.mp4,,,p1"),
        [
            ("row 3, column 'id'", "'g1' again (row 2)"),
            ("row 4, column 'id'", "'g1' again (row 2)"),
            ("row 5, column 'id'", "nothing"),
        ],
    ),
    "missing files": (
        rows(
            "q2,Is it on?,A,yes,no,b.mp4,,,p1",
            "q3,Is it on?,A,yes,no,c.png; d.png,,,p1",
            "q4,Is it on?,A,yes,no,frames,,,p1",
        ),
        [
            ("row 3, column 'video'", "no file 'b.mp4'"),
            ("row 4, column 'video'", "no file 'c.png'"),
            ("row 4, column 'video'", "no file 'd.png'"),
            ("row 5, column 'video'", "'frames'"),
        ],
    ),
    "paths that climb out": (
        rows(
            "q2,Is it on?,A,yes,no,../a.mp4,,,p1", "q3,Is it on?,A,yes,no,/etc/passwd,,,p1",
            "q4,Is it on?,A,yes,no,C:\\a.mp4,,,p1", "q5,Is it on?,A,yes,no,x/../../a.mp4,,,p1", "q6,Is it on?,A,yes,no,~/a.mp4,,,p1",
        ),
        [
            ("row 3, column 'video'", "'../a.mp4'"),
            ("row 4, column 'video'", "'/etc/passwd'"),
            ("row 5, column 'video'", "'C:\\\\a.mp4'"),
            ("row 6, column 'video'", "'x/../../a.mp4'"),
            ("row 7, column 'video'", "'~/a.mp4'"),
        ],
    ),
    "addresses for files": (
        rows("q2,Is it on?,A,yes,no,https://example.org/a.mp4,,,p1", "q3,Is it on?,A,yes,no,file:///etc/passwd,,,p1"),
        [("row 3, column 'video'", "'https://example.org/a.mp4'"), ("row 4, column 'video'", "'file:///etc/passwd'")],
    ),
    "a link to a file outside": (
        media_link, [("row 3, column 'video'", "'link.mp4, a link that leads out of the media folder'")],
    ),
    "a link to a folder outside": (folder_link, [("row 3, column 'video'", "'frames, a link that leads out of it'")]),
    "a link to the questions": (questions_link, [("", "a link that leads out of the folder")]),
    "a folder without images": (empty_frames, [("row 3, column 'video'", "'frames with 0'")]),
    "a file that is no medium": (
        rows("q2,Is it on?,A,yes,no,questions.csv,,,p1"), [("row 3, column 'video'", "'questions.csv'")],
    ),
    "answers outside the options": (
        rows("q2,Is it on?,C,yes,no,a.mp4,,,p1", "q3,Is it on?,maybe,yes,no,a.mp4,,,p1", "q4,Is it on?,1,yes,no,a.mp4,,,p1"),
        [("row 3, column 'answer'", "'C'"), ("row 4, column 'answer'", "'maybe'"), ("row 5, column 'answer'", "'1'")],
    ),
    "options twice, one alone, a gap": (
        rows("q2,Is it on?,A,yes,Yes,a.mp4,,,p1", "q3,Is it on?,A,yes,,a.mp4,,,p1", "q4,Is it on?,B,,no,a.mp4,,,p1"),
        [
            ("row 3, column 'option A'", "the option 'yes' twice"),
            ("row 4, column 'option A'", "1 option"),
            ("row 5, column 'option A'", "nothing"),
        ],
    ),
    "questions and answers that are empty": (
        rows("q2,,A,yes,no,a.mp4,,,p1", "q3,Is it on?, ,yes,no,a.mp4,,,p1"),
        [("row 3, column 'question'", "nothing"), ("row 4, column 'answer'", "nothing")],
    ),
    "everything wrong in one row": (
        rows(",,C,yes,yes,../a.mp4,x,1:99,p1"),
        [
            ("row 3, column 'id'", "nothing"),
            ("row 3, column 'question'", "nothing"),
            ("row 3, column 'start'", "'x'"),
            ("row 3, column 'end'", "'1:99'"),
            ("row 3, column 'video'", "'../a.mp4'"),
            ("row 3, column 'option A'", "the option 'yes' twice"),
        ],
    ),
    "20,000 rows, each with a fault": (many, [(f"row {n + 3}, column 'question'", "nothing") for n in range(20_000)]),
    "ragged rows": (
        rows("q2,Is it on?,A", "q3,Is it on?,A,yes,no,a.mp4,,,p1,more", "q4,Is it on?,A,yes,no,a.mp4,,,p1,,"),
        [("row 3", "3 columns"), ("row 4", "10 columns")],
    ),
    "a column without a name": (
        sheet("id,question,answer,,patient\nq1,Is it on?,yes,,p1\nq2,Is it on?,yes,what?,p1\n"),
        [("row 3", "'what?' in a column without a name")],
    ),
    "two columns of one name": (
        sheet("id,question,answer,answer,patient\nq1,Is it on?,yes,no,p1\n"),
        [("row 1, column 'answer'", "2 columns of this name")],
    ),
    "two columns for one field": (
        sheet("id,question,answer,correct answer,patient\nq1,Is it on?,yes,no,p1\n"),
        [("row 1", "the columns 'answer' and 'correct answer'")],
    ),
    "no column for the question": (
        sheet("id,what,answer,patient\nq1,Is it on?,yes,p1\n"),
        [("row 1", "no column for the question among 'id', 'what', 'answer', 'patient'")],
    ),
    "no column for the answer": (sheet("id,question,patient\nq1,Is it on?,p1\n"), [("row 1", "no column for the right answer")]),
    "no group and no media": (
        sheet("id,question,answer\nq1,Is it on?,yes\nq2,Is it on?,yes\n"), [("row 2", ("no group, and no media to take "
                                                                                      "it from"))],
    ),
    "another encoding": (
        sheet("id,question,answer,patient\nq1,Größe?,groß,p1\nq2,Is it on?,yes,p1\n".encode("cp1252")),
        [("row 2, column 'question'", "'Größe?', which is not UTF-8"), ("row 2, column 'answer'", "'groß', which is not UTF-8")],
    ),
    "UTF-16 without its mark": (sheet("id,question\n".encode("utf-16-le")), [("row 1", "a zero byte")]),
    "half of UTF-16": (sheet(b"\xff\xfei\x00d"), [("", "broken UTF-16-LE at byte 2")]),
    "broken quotes": (rows('q2,"Is it "on"?,A,yes,no,a.mp4,,,p1'), [("row 3", ("broken quotes (',' expected after "
                                                                              "'\"')"))]),
    "mixed languages and directions, wrong answers": (
        sheet("id,سؤال,الجواب,خيارات,患者\nq1,ما هذا؟,\u202eج\u202c,كبد; طحال,一\nq2,这是什么？,肾,肝；脾,二\n"),
        [("row 2, column 'الجواب'", "'ج'"), ("row 3, column 'الجواب'", "'肾'")],
    ),
    "nothing below the header": (sheet("id,question,answer\n\n"), [("", "no rows")]),
    "an empty file": (sheet(b" \n"), [("", "an empty file")]),
    "no file of questions": (lambda folder: None, [("", "no table of questions")]),
    "two files of questions": (two_tables, [("", "2 tables (first.csv, second.jsonl)")]),
    "a pipe": (pipe, [("", "no regular file")]),
    "broken JSON lines": (
        sheet('{"question": "Is it on?", "answer": "yes", "patient": 1}\n{"question": \n[1]\n"x"\n', "questions.jsonl"),
        [("row 2", "the end of the line: it is cut off"), ("row 3", "a list"), ("row 4", "'x'")],
    ),
    "JSON that is no list": (sheet('{"a": 1}', "questions.json"), [("", "no list of objects")]),
    "objects where texts belong": (
        sheet(json.dumps([{"question": {"en": "Is it on?"}, "answer": "yes", "patient": "p1"}]), "questions.json"),
        [("row 1, column 'question'", "a dict, {'en': 'Is it on?'}")],
    ),
    "a broken dataset": (broken_parquet, [("", "no readable Parquet file")]),
    "unknown settings, and wrong ones": (
        settings("titel: x\nbudget_s: soon\nheadline: acuracy\nbuckets: [ward]\nquestions: ../q.csv\n"),
        [("column 'budget_s'", "'soon'"), ("column 'titel'", "a field that is not known")],
    ),
    "settings that name what is not there": (
        settings("headline: acuracy\nbuckets: [ward]\nconditions: [vidio]\nprompt: ../ask.j2\n"),
        [
            ("column 'buckets'", "'ward'"),
            ("column 'conditions'", "'vidio'"),
            ("column 'headline'", "'acuracy'"),
            ("column 'prompt'", "'../ask.j2'"),
        ],
    ),
    "settings that are no YAML": (settings("a: [1\n"), [("row 2", "expected ',' or ']', but got '<stream end>'")]),
    "settings that grow": (settings("a: &a [1, 2]\nb: [*a, *a]\n"), [("", "an alias (*name)")]),
    "a file of questions outside": (settings("questions: ../q.csv\n"), [("column 'questions'", "'../q.csv'")]),
}  # fmt: skip


def files_in(folder: Path) -> dict[str, float]:
    return {str(one.relative_to(folder)): one.lstat().st_mtime for one in folder.rglob("*")}


@pytest.mark.parametrize(("build", "faults"), CASES.values(), ids=CASES)
def test_all_faults_are_listed_and_nothing_is_written(
    build: Build, faults: list[tuple[str, str]], tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    build(folder)
    (folder / "a.mp4").write_bytes(b"")
    before = files_in(tmp_path)
    done = proctor(
        "check", folder, "--format", "json", "--out", tmp_path / "preview.html", PROCTOR_CACHE=str(tmp_path / "cache")
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    found = json.loads(done.stdout)["faults"]
    shown = [(_row(one), one["found"]) for one in found]
    assert shown == faults
    assert all(one["expected"] and one["file"] for one in found)
    assert files_in(tmp_path) == before


def _row(fault: dict[str, Any]) -> str:
    parts = (f"row {fault['row']}" if fault["row"] else "", f"column {fault['column']!r}" if fault["column"] else "")
    return ", ".join(part for part in parts if part)


def test_there_are_forty_cases() -> None:
    assert len(CASES) >= 40


def test_many_faults_are_grouped_by_their_cause(tmp_path: Path) -> None:
    lines = "".join(f"q{n},Is it on?,C,yes,no,,,,p1\n" for n in range(2, 40))
    (tmp_path / "questions.csv").write_text(HEAD + lines + "q2,Is it on?,A,yes,no,,,,p1\n")
    done = proctor("check", tmp_path / "questions.csv")
    file = tmp_path / "questions.csv"
    assert done.stdout.splitlines() == [
        f"{file}: column 'answer': 38 times: found 'C', expected one of A, B, or the text of an option (rows 2–39)",
        f"{file}: row 40, column 'id': found 'q2' again (row 2), expected each id once",
        f"{file}: 39 faults; nothing was written.",
    ]
    again = proctor("run", file, "--system", "random", "--store", tmp_path / "runs.db")
    assert again.returncode == 1
    assert again.stderr.splitlines() == [
        *done.stdout.splitlines()[:2],
        f"proctor: {file}: found 39 faults, expected none (see above)",
    ]
    assert not (tmp_path / "runs.db").exists()
