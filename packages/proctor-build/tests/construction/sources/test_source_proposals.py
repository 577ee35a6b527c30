"""Proposals and the tables in which people decide on them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from proctor.core import InputError, Region
from proctor.media import TextOverlay
from proctor_build.pipeline import SourceVideo
from proctor_build.sources.copies import unused_of
from proctor_build.sources.proposals import (
    COLUMNS,
    Decision,
    Proposal,
    merged,
    outside_spans,
    read_decisions,
    read_labels,
    text_proposals,
    write_decisions,
)

REGION = Region(x=0.1, y=0.8, width=0.3, height=0.1)


def test_spans_reach_further_at_both_ends_and_join() -> None:
    """Flags at 1 and 4 s, padded by 1 s: 0 to 2 and 3 to 5; one at 5.5 joins the second; the video ends at 6."""
    times = [0.0, 1.0, 2.0, 3.0, 4.0, 5.5]
    scores = np.array([0.1, 0.9, 0.2, 0.2, 0.6, 0.7])
    spans = outside_spans(times, scores, 0.6, pad_s=1.0, end=6.0)
    assert [(one.start, one.end, one.score) for one in spans] == [(0.0, 2.0, 0.9), (3.0, 6.0, 0.7)]
    assert outside_spans(times, scores, 0.95, pad_s=1.0, end=6.0) == []


def test_text_has_space_around_it() -> None:
    found = text_proposals([TextOverlay(REGION, 2.0, 4.0, 0.8)], pad_s=1.0, end=4.5)[0]
    assert (found.start, found.end) == (1.0, 4.5)
    assert found.region == Region(x=0.075, y=0.775, width=0.35, height=0.15)


def test_decisions_survive_new_proposals(tmp_path: Path) -> None:
    """Decided rows and people's own stay; what they cover is not proposed again; undecided proposals are replaced."""
    seen = Proposal(kind="outside", start=0.0, end=4.0, score=0.9)
    mine = Decision("v1", Proposal(kind="face", start=7.0, end=8.0, region=REGION), how="blur")
    there = [
        Decision("v1", seen, "reject", "blur", "A. B.", "is the bag"),
        Decision("v1", Proposal(kind="outside", start=20.0, end=22.0, score=0.7)),
        mine,
    ]
    new = {
        "v1": [
            Proposal(kind="outside", start=1.0, end=5.0, score=0.95),
            Proposal(kind="outside", start=30.0, end=31.0, score=0.6),
            Proposal(kind="text", start=1.0, end=5.0, region=REGION, score=0.6),
        ],
        "v0": [Proposal(kind="text", start=0.0, end=5.0, region=REGION, score=0.6)],
    }
    rows = merged(there, new)
    assert [(one.source, one.what.kind, one.what.start, one.decision, one.how) for one in rows] == [
        ("v1", "outside", 0.0, "reject", "blur"),
        ("v1", "text", 1.0, "", "black"),
        ("v1", "face", 7.0, "", "blur"),
        ("v1", "outside", 30.0, "", "blur"),
        ("v0", "text", 0.0, "", "black"),
    ]
    file = tmp_path / "decisions.csv"
    write_decisions(file, rows)
    assert read_decisions(file, ["v0", "v1"]) == rows
    assert merged(rows, new) == rows


def test_no_cell_of_decisions_is_a_formula_and_all_come_back(tmp_path: Path) -> None:
    what = Proposal(kind="face", start=0.5, end=2.0, region=REGION, score=None)
    row = Decision("-v1", what, by="@ada", note='=HYPERLINK("http://a.test")')
    file = tmp_path / "decisions.csv"
    write_decisions(file, [row])
    (cells,) = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))[1:]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == []
    assert read_decisions(file, ["-v1"]) == [row]


def test_a_table_without_rows_and_no_table_are_no_decisions(tmp_path: Path) -> None:
    assert read_decisions(tmp_path / "none.csv", []) == []
    write_decisions(tmp_path / "d.csv", [])
    assert read_decisions(tmp_path / "d.csv", []) == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("v9,text,0,1,,,,,,,,,", "row 2, column 'source': found 'v9', expected one of v1"),
        ("v1,text,5,1,,,,,,,,,", "row 2, column 'end': found 1, expected seconds after the start at 5"),
        ("v1,text,x,1,,,,,,,,,", "row 2, column 'start': found 'x', expected a number"),
        ("v1,text,0,nan,,,,,,,,,", "row 2, column 'end': found 'nan', expected a number"),
        ("v1,text,0,1,0.5,0,,1,,,,,", "row 2, column 'width': found '', expected a number"),
        ("v1,text,0,1,0.5,0,0.8,1,,,,,", "a region inside the frame"),
        ("v1,text,0,1,,,,,,yes,,me,", "row 2, column 'decision': found 'yes', expected one of nothing, accept, reject"),
        ("v1,text,0,1,,,,,,accept,,,", "row 2, column 'by': found nothing, expected who decided to accept"),
        (
            "v1,text,0,1,,,,,,accept,pixelate,me,",
            "row 2, column 'how': found 'pixelate', expected one of nothing, blur",
        ),
        ("v1,text,0,1,0,0,1,1,,accept,remove,me,", "a region can't be removed"),
        ("v1,,0,1,,,,,,accept,,me,", "row 2, column 'kind'"),
        ("v1,text,0,1", "row 2: found 4 columns, expected 13 columns"),
    ],
)
def test_a_fault_in_a_table_is_one_line_with_its_place(tmp_path: Path, row: str, fault: str) -> None:
    file = tmp_path / "decisions.csv"
    file.write_text(",".join(COLUMNS) + "\n" + row + "\n")
    with pytest.raises(InputError) as raised:
        read_decisions(file, ["v1"])
    assert fault in str(raised.value)


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("\ufeffsource,start,end,shows\nv1,0,2,room\nv1,2,1,inside\nv1,3,4,inside\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_labels(file, ["v1"])
    assert "row 2, column 'shows': found 'room', expected one of inside, outside" in str(raised.value)
    assert [note.partition("row")[2] for note in raised.value.__notes__] == [
        " 3, column 'end': found 1, expected seconds after the start at 2"
    ]


def test_what_a_source_does_not_use_is_black_and_its_times_stay() -> None:
    source = SourceVideo(id="v", video="v.mp4", start=2.0, end=8.0, region=Region(x=0, y=0.1, width=1, height=0.9))
    hidden = unused_of(source, 10.0)
    assert [(one.start, one.end, one.region and one.region.height) for one in hidden] == [
        (0.0, 2.0, None),
        (8.0, None, None),
        (0.0, None, 0.1),
    ]
    assert unused_of(SourceVideo(id="v", video="v.mp4"), 10.0) == ()
