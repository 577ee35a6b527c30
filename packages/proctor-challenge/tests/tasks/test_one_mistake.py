"""A mistake that a whole file shares is named once, by `proctor check` and by a challenge's admission alike, and not by
its consequences for each of a thousand answers."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import proctor as python
from proctor.core import InputError
from proctor_challenge.admission import admission
from proctor_challenge.settings import Budget
from tests.support.program import proctor

ITEMS = [f"q{number}" for number in range(1, 13)]


@pytest.fixture
def focus(tmp_path: Path) -> Path:
    shown = {"videoID": "v1.mp4", "start_time": 0, "end_time": 60, "procedure_type": "resection", "question": "What?"}
    requests = [{"qID": name, **shown, "answer_format": "binary"} for name in ITEMS]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "requests.json").write_text(json.dumps(requests))
    return tmp_path / "data"


def _zip(text: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("answers.json", text)
    return packed.getvalue()


GOOD = [{"qID": name, "content": "yes", "latency": 1.5} for name in ITEMS]
OTHER_NAMES = [{"question_id": name, "answer": "yes", "time": 1.5} for name in ITEMS]
MISTAKES: dict[str, tuple[Any, str]] = {
    "other names": (
        OTHER_NAMES,
        "found entries with the fields question_id, answer, time, expected the fields qID, content and latency (in seconds)",
    ),
    "one other name": (
        [{"qID": name, "answer": "yes"} for name in ITEMS],
        "found entries with the fields qID, answer, expected the fields qID, content",
    ),
    "one of them right": ([*OTHER_NAMES, GOOD[0]], "found entries with the fields question_id, answer, time"),
    "milliseconds": (
        [{"qID": name, "content": "yes", "latency": 800 + 9 * row} for row, name in enumerate(ITEMS)],
        "found times with a median of 850 where 30 s are allowed (milliseconds?), expected seconds",
    ),
    "exact milliseconds": (
        [{"qID": name, "content": "yes", "latency": 800.25 + row} for row, name in enumerate(ITEMS)],
        "(milliseconds?), expected seconds",
    ),
    "a wrapped list": ({"answers": GOOD, "team": "a"}, "found the list under 'answers' in an object, expected the list itself"),
    "texts": ([*ITEMS], "found entries that are texts, expected objects with the fields qID"),
    "nothing": ([None] * len(ITEMS), "found entries that are null, expected objects with the fields qID"),
    "a table": ("qID,content\nq1,yes\nq2,no\n", "found a table with the columns qID, content, expected JSON"),
    "a table of semicolons": ("qID;content\nq1;yes\n", "found a table with the columns qID, content, expected JSON"),
    "lines": (
        "".join(json.dumps(one) + "\n" for one in GOOD),
        "found JSON lines, expected one JSON value: a list of these objects",
    ),
    "Python": (str(GOOD), "found single quotes, as Python prints objects, expected JSON"),
    "a page": ("<!DOCTYPE html><p>Sign in", "found a web page (HTML), expected JSON"),
    "a ZIP": (_zip(json.dumps(GOOD)), "found a ZIP archive, expected the file itself: unpack it first"),
    "gzip": (gzip.compress(json.dumps(GOOD).encode()), "found a gzip archive, expected the file itself: unpack it first"),
    "a workbook": (b"PK\x03\x04\x14\x00xl/workbook.xml\xff", "found an Excel workbook, expected text in UTF-8"),
    "a PDF": (b"%PDF-1.7\n\xff\xfe", "found a PDF, expected text in UTF-8"),
}  # fmt: skip


def _written(file: Path, content: Any) -> Path:
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_of_the_whole_file_is_one_line(kind: str, focus: Path, tmp_path: Path) -> None:
    content, told = MISTAKES[kind]
    file = _written(tmp_path / "answers.json", content)
    with pytest.raises(InputError) as caught:
        python.validate("focus", file, data=focus)
    assert told in str(caught.value)
    hosted = admission("focus", "procedure", focus, Budget(), file)
    assert hosted.problems == (str(caught.value),), "a hosted challenge says the same"
    with pytest.raises(InputError) as imported:
        python.import_answers("focus", file, data=focus, name="a", store=":memory:", form="")
    assert told in str(imported.value), "and so does an import"
    done = proctor("check", "focus", file, "--data", focus)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"proctor: {caught.value}\n")


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        [{"qID": name, "content": "yes"} for name in ITEMS],
        dict.fromkeys(ITEMS, "yes"),
        [{**one, "latency": 45.0} for one in GOOD],  # late, and nobody's milliseconds
        [{**one, "latency": 29.0 if row % 2 else 900} for row, one in enumerate(GOOD)],
    ],
)
def test_what_is_a_submission_stays_one(content: Any, focus: Path, tmp_path: Path) -> None:
    file = _written(tmp_path / "answers.json", content)
    assert python.validate("focus", file, data=focus).ok
    assert admission("focus", "procedure", focus, Budget(), file).problems == ()


def test_a_few_faults_are_still_told_one_by_one(focus: Path, tmp_path: Path) -> None:
    file = _written(tmp_path / "answers.json", [*OTHER_NAMES[:2], *GOOD[2:]])
    report = python.validate("focus", file, data=focus)
    assert not report.ok
    assert [line for line in report.shown if "no field 'qID'" in str(line)]


def test_the_track_that_was_assumed_is_said(focus: Path, tmp_path: Path) -> None:
    file = _written(tmp_path / "answers.json", GOOD)
    said = proctor("check", "focus", file, "--data", focus)
    assert "Checked as the procedure track, since none was named (--track frame, segment or procedure)." in said.stderr
    named = proctor("check", "focus", file, "--data", focus, "--track", "procedure")
    assert "none was named" not in named.stderr


def test_orders_under_other_names(tmp_path: Path) -> None:
    from proctor.tasks.clinicalskillqa.native import records
    from proctor.tasks.clinicalskillqa.submission import check_shared

    other = [{"item": f"i{number}", "sequence": ["A", "B"]} for number in range(9)]
    with pytest.raises(InputError, match="found entries with the fields item, sequence, expected the fields id, order"):
        check_shared(Path("a.json"), other)
    with pytest.raises(InputError, match="found entries with the fields id, sequence"):
        check_shared(Path("a.json"), [{"id": one["item"], "sequence": one["sequence"]} for one in other])
    wrapped = _written(tmp_path / "a.json", {"answers": other})
    with pytest.raises(InputError, match="found the list under 'answers' in an object"):
        records(wrapped, "predictions")


def test_own_questions_in_milliseconds(tmp_path: Path) -> None:
    rows = "".join(f"q{number},Is it on?,yes,p{number}\n" for number in range(1, 9))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "questions.csv").write_text(f"id,question,answer,patient\n{rows}")
    (tmp_path / "own" / "benchmark.yaml").write_text("budget_s: 5\n")
    given = "".join(f"q{number},yes,{900 + number}\n" for number in range(1, 9))
    file = _written(tmp_path / "answers.csv", f"id,answer,latency_s\n{given}")
    hosted = admission("own-questions", "", tmp_path / "own", Budget(question_s=5), file)
    assert len(hosted.problems) == 1
    assert "(milliseconds?), expected seconds" in hosted.problems[0]
