"""Evidence in your own questions: windows and boxes in cells, what is refused, and that no file without answers has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import proctor
from proctor.core import Benchmark, Evidence, EvidenceBox, EvidenceWindow, InputError
from proctor.tasks.questions.writers import write_questions

HEAD = "id,question,answer,media,start,end,patient,evidence_windows,evidence_boxes\n"


def read(folder: Path, rows: str, head: str = HEAD) -> Benchmark:
    folder.mkdir(exist_ok=True)
    (folder / "questions.csv").write_text(head + rows)
    for name in ("a.mp4", "b.png", "c.png"):
        (folder / name).write_bytes(b"")
    return proctor.load(folder)


def faults(folder: Path, rows: str) -> list[str]:
    with pytest.raises(InputError) as told:
        read(folder, rows)
    notes = getattr(told.value, "__notes__", []) or [str(told.value)]
    return [line.replace(f"{folder}/", "") for line in notes]


def test_windows_and_boxes_of_a_video(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        'q1,?,yes,a.mp4,,,p1,12-15.5; 1:05 to 1:10,"0.1, 0.2, 0.3, 0.4 @ 12-13; .5 .5 .25 .25 @ 0:14-15 s"\n'
        "q2,?,yes,a.mp4,,,p1,,\n"
        "q3,?,yes,a.mp4,10,20,p1,8 – 12,\n",
    )
    first, second, third = found.items
    assert first.evidence == Evidence(
        windows=(EvidenceWindow(start=12, end=15.5), EvidenceWindow(start=65, end=70)),
        boxes=(
            EvidenceBox(x=0.1, y=0.2, width=0.3, height=0.4, start=12, end=13),
            EvidenceBox(x=0.5, y=0.5, width=0.25, height=0.25, start=14, end=15),
        ),
    )
    assert second.evidence is None
    assert third.evidence == Evidence(windows=(EvidenceWindow(start=8, end=12),))
    assert all("evidence" not in name for name in (*found.facets, *first.tags))


def test_boxes_of_stills_name_the_picture(tmp_path: Path) -> None:
    (item,) = read(tmp_path, 'q1,?,yes,b.png; c.png,,,p1,,"#2 0.1, 0.2, 0.3, 0.4"\n').items
    assert item.evidence == Evidence(boxes=(EvidenceBox(medium=1, x=0.1, y=0.2, width=0.3, height=0.4),))


def test_evidence_as_objects(tmp_path: Path) -> None:
    row = {
        "id": "q1",
        "question": "?",
        "answer": "yes",
        "media": "a.mp4",
        "patient": "p1",
        "evidence_windows": [{"start": 3, "end": 4.5}],
    }
    (tmp_path / "questions.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "a.mp4").write_bytes(b"")
    (item,) = proctor.load(tmp_path).items
    assert item.evidence == Evidence(windows=(EvidenceWindow(start=3, end=4.5),))


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ("12,", "column 'evidence_windows': found '12', expected a window as \"12-15.5\""),
        ("15-12,", "found '15-12', expected a window that ends at 12 s, not after its start at 15 s"),
        ("now-then,", "found 'now-then', expected a window as"),
        ("#0 1-2,", "found '#0 1-2', expected the number of a medium from 1 on"),
        ("#2 1-2,", "found '#2 1-2', expected a window of one of the item's media (0 to 0), not of 1"),
        (',"0.1, 0.2, 0.3"', "column 'evidence_boxes': found '0.1, 0.2, 0.3', expected a box as"),
        (',"0.8, 0.2, 0.3, 0.4 @ 1-2"', "expected a region inside the frame (0 to 1)"),
        (',"10, 20, 30, 40 @ 1-2"', "expected"),
        (',"0.1, 0.2, 0.3, 0.4"', "expected a start and an end of the box of the video 'a.mp4'"),
        (',"0.1, 0.2, 0.3, 0.4 @ soon"', "found 'soon', expected a box as"),
        pytest.param("1-2" + "; 1-2" * 20_000 + ",", "expected at most 20,000 of them", id="too many"),
    ],
)
def test_what_is_no_evidence_is_refused_in_one_line(tmp_path: Path, cells: str, told: str) -> None:
    (line, *more) = faults(tmp_path, f"q1,?,yes,a.mp4,,,p1,{cells}\nq2,?,yes,a.mp4,,,p1,1-2,\n")
    assert told in line
    assert "row 2" in line
    assert more == []


def test_what_is_handed_out_without_answers_has_none(tmp_path: Path) -> None:
    read(tmp_path / "own", 'q1,?,yes,a.mp4,,,p1,1-2,"0.1 0.2 0.3 0.4 @ 3-4"\nq2,?,no,a.mp4,,,p1,3-4,\n')
    for name, references in (("with", True), ("without", False)):
        out = tmp_path / name
        out.mkdir()
        write_questions(tmp_path / "own", out, ["q1", "q2"], references=references)
        text = (out / "questions.jsonl").read_text()
        assert ("evidence" in text) is references
        assert "0.1" in text or not references
    own = proctor.load(tmp_path / "own").items
    (tmp_path / "with" / "a.mp4").write_bytes(b"")
    assert [item.evidence for item in proctor.load(tmp_path / "with").items] == [item.evidence for item in own]
