"""The whole way from somebody's own questions to a report, with each answer format, kind of medium and kind of file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import openpyxl
import pandas as pd
import pytest
from PIL import Image

import proctor
from proctor.media import from_jpegs
from tests.support.faulty_server import FaultyServer, Request
from tests.support.medical_files import dicom
from tests.support.program import proctor as shell

HEAD = ("id", "question", "answer", "format", "unit", "tolerance", "criteria", "A", "B", "C", "file", "start", "end", "kind")  # fmt: skip
Row = tuple[str, ...]


def row(name: str, answer: str, form: str = "", file: str = "a.mp4", kind: str = "video", **more: str) -> Row:
    """One question: its answer, the format where it is declared, and what it shows."""
    known = {"id": name, "question": f"What is right in {name}?", "answer": answer, "format": form, "file": file}
    return tuple({"kind": kind, **known, **more}.get(column, "") for column in HEAD)


THREE = {"A": "liver", "B": "spleen", "C": "aorta"}
ROWS = (
    row("choice", "B", **THREE),
    row("choice-by-text", "aorta", file="b.mp4", start="0", end="0:01", **THREE),
    row("choices", "A, C", file="c.mp4", **THREE),
    row("order", "C > A > B", **THREE),
    row("binary", "yes", file="b.mp4"),
    row("count", "3", file="c.mp4"),
    row("percentage", "40 %"),
    row("number", "8", unit="cm", tolerance="0.5", file="b.mp4"),
    row("number-in-its-cell", "3.5 cm", tolerance="5 %", file="c.mp4"),
    row("time", "0:01", tolerance="1"),
    row("interval", "0:00-0:01", file="b.mp4"),
    row("intervals", "0:00-0:01; 0:01-0:02", "interval", file="c.mp4"),
    row("box", "100, 100, 400, 400", "box", file="scene.png", kind="image"),
    row("boxes", "100, 100, 400, 400; 500, 500, 900, 900", "boxes", file="scene.png", kind="image"),
    row("point", "500, 500", "point", tolerance="20", file="scene.png", kind="image"),
    row("scale", "4", "scale"),
    row("preference", "A", "preference", file="a.mp4; b.mp4", kind="two videos"),
    row("short", "gall bladder | gallbladder", "short text", file="c.mp4"),
    row("frames", "2", file="frames", kind="frames"),
    row("dicom", "no", file="ct.dcm#window=40/400", kind="dicom"),
    row("nifti", "no", file="brain.nii.gz#axial=1", kind="nifti"),
    row("free", "The probe moves towards the feet.", "free text"),
    row("rubric", "", "free text", criteria="5: names the spleen\n-3: advises surgery", file="b.mp4"),
)
FREE = {"free", "rubric"}
KEYS = {one[0]: one[2].split("|")[0].strip() for one in ROWS}


def media(folder: Path) -> None:
    """Three clips of two seconds, a picture, a folder of frames, a DICOM file and a NIfTI volume."""
    folder.mkdir()
    for index, name in enumerate(("a.mp4", "b.mp4", "c.mp4")):
        shades = [Image.new("RGB", (64, 48), (60 * index, 20 * step, 90)) for step in range(5)]
        (folder / name).write_bytes(from_jpegs((step / 2, jpeg(shade)) for step, shade in enumerate(shades)))
    Image.new("RGB", (64, 48), (200, 30, 30)).save(folder / "scene.png")
    (folder / "frames").mkdir()
    for index in range(2):
        Image.new("RGB", (32, 32), (0, 100 * index, 0)).save(folder / "frames" / f"{index}.png")
    values = np.arange(64, dtype="int16").reshape(8, 8)
    dicom(folder / "ct.dcm", values)
    nibabel.save(nibabel.Nifti1Image(np.stack([values] * 3, axis=2), np.eye(4)), folder / "brain.nii.gz")


def jpeg(picture: Any) -> bytes:
    """A picture as JPEG."""
    out = BytesIO()
    picture.save(out, "JPEG")
    return out.getvalue()


def _csv(folder: Path, delimiter: str = ",", name: str = "questions.csv") -> None:
    with (folder / name).open("w", newline="", encoding="utf-8") as out:
        csv.writer(out, delimiter=delimiter).writerows([HEAD, *ROWS])


def _records() -> list[dict[str, str]]:
    return [dict(zip(HEAD, one, strict=True)) for one in ROWS]


def _workbook(folder: Path) -> None:
    book = openpyxl.Workbook()
    for one in (HEAD, *ROWS):
        book.active.append(list(one))
    book.save(folder / "questions.xlsx")


def _hugging_face(folder: Path) -> None:
    (folder / "data").mkdir()
    pd.DataFrame(_records()).to_parquet(folder / "data" / "test-00000-of-00001.parquet")


FILES: Mapping[str, Callable[[Path], Any]] = {
    "CSV": _csv,
    "CSV with semicolons": lambda folder: _csv(folder, ";"),
    "TSV": lambda folder: _csv(folder, "\t", "questions.tsv"),
    "JSON": lambda folder: (folder / "questions.json").write_text(json.dumps(_records())),
    "JSON Lines": lambda folder: (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, _records()))),
    "Excel": _workbook,
    "Parquet": lambda folder: pd.DataFrame(_records()).to_parquet(folder / "questions.parquet"),
    "Hugging Face": _hugging_face,
}


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The questions as CSV, with their media and two systems in a file: one knows the answers, one says the same to
    all."""
    folder = tmp_path_factory.mktemp("whole") / "mine"
    folder.mkdir()
    media(folder / "media")
    _csv(folder)
    lines = [f"KEYS = {KEYS!r}", "def knows(item):", "    return 'Answer: ' + (KEYS[item.id] or 'The spleen.')"]
    (folder / "systems.py").write_text("\n".join([*lines, "def same(question):", "    return 'Answer: B'", ""]))
    return folder


@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_file_holds_the_same_questions(kind: str, questions: Path, tmp_path: Path) -> None:
    FILES[kind](tmp_path)
    read = proctor.load(tmp_path, media=questions / "media")
    assert read.items == proctor.load(questions).items
    assert [item.id for item in read.items] == [one[0] for one in ROWS]


def judged(request: Request) -> str:
    """What the judge's model says: criteria are met where the spleen is named, and every free text is right."""
    if "criteria_met" in request.text:
        return json.dumps({"explanation": "so", "criteria_met": "names the spleen" in request.text})
    return json.dumps({"score": 2, "error_type": "none", "explanation": "the same"})


def told(*arguments: str | Path, **environment: str) -> str:
    """What a command prints, which succeeds."""
    done = shell(*arguments, **environment)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    return done.stdout + done.stderr


def test_from_a_spreadsheet_to_a_report(questions: Path, tmp_path: Path) -> None:
    store, page = ("--store", tmp_path / "own.db"), tmp_path / "own.html"
    cache = {"PROCTOR_CACHE": str(tmp_path / "cache"), "OPENAI_API_KEY": "none"}
    systems = ("--system", f"{questions / 'systems.py'}:knows", "--system", f"{questions / 'systems.py'}:same")
    both = ("--condition", "video", "--condition", "text-only")
    checked = told("check", questions, "--out", tmp_path / "preview.html", **cache)
    assert f"{len(ROWS)} questions in " in checked
    preview = (tmp_path / "preview.html").read_text(encoding="utf-8")
    assert all(f"· {item.answer.kind} ·" in preview for item in proctor.load(questions).items)  # one of each format
    assert "no difference between systems can be significant" not in checked  # seven groups and more
    ran = told("run", questions, *systems, *both, *store, **cache)
    for line in ("with criteria", "in free text"):
        assert f"1 question {line}: a judge has to score the answers (proctor score mine" in ran
    with FaultyServer(judged) as server:
        for judge in ("criteria", "three-level"):
            asked = ("--judge", judge, "--model", "m", "--base-url", server.url)
            told("score", "mine", *asked, "--system", "knows", "--condition", "video", *store, **cache)
    rows = proctor.results(store[1], "mine", systems="knows", conditions="video", by="format").to_pandas()
    right = rows[rows["metric"] == "accuracy"].set_index("format")["value"]
    assert set(right.index) == {item.answer.kind for item in proctor.load(questions).items} - {"free_text"}
    assert (right == 1).all(), right
    assert set(rows[rows["metric"] == "criteria_score"]["value"]) == {1.0}
    for command in (("results",), ("compare", "--condition", "video"), ("rank",), ("reproduce",)):
        said = told(command[0], "mine", *command[1:], *store, **cache)
        assert said.strip(), command
    for name in ("choice", "rubric", "dicom"):
        shown = told("show", "mine", name, "--system", "knows", "--prompt", *store, **cache)
        assert f"What is right in {name}?" in shown
    told("report", "mine", *store, "--out", page, **cache)
    text = page.read_text(encoding="utf-8")
    assert all(f"What is right in {one[0]}?" in text for one in ROWS)
    assert "Which system is best, and how certain is that?" in text


def test_answers_from_another_tool_are_scored(questions: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.csv"
    lines: Sequence[Sequence[str]] = [("id", "prediction"), *KEYS.items()]
    with answers.open("w", newline="") as out:
        csv.writer(out).writerows([one for one in lines if one[0] not in FREE])
    made = proctor.import_answers(questions, answers, name="theirs", store=tmp_path / "s.db")
    (overall,) = [one for one in made.results() if one["metric"] == "accuracy"]
    assert (overall["value"], overall["n"]) == (1.0, len(ROWS) - len(FREE))
