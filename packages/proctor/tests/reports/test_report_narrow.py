"""Analyses with next to nothing to show, and names that would break out: every picture is drawn, nothing is made up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from proctor.core import ACCURACY
from proctor.metrics import AccuracyScorer
from proctor.reports import write_pictures
from proctor.reports.figures import value_axis
from proctor.results import Analysis, analyse, write_tables
from proctor.runs import Store, import_answers
from proctor.stats import Resampling
from proctor.tasks.focus import READER

LEAVES = ("object_identification", "temporal_localization")
HOSTILE = (
    "<script>alert(1)</script>",
    "a" * 300,
    "$\\frac{1}{0}$ _^{",
    "=cmd|calc",
    "\u202eevil \u200b",
    "長い名前" * 20,
    "x\ny\tz",
    "\"&'<>",
)


def analysis(folder: Path, answers: dict[str, str], *, buckets: int = 4, videos: int = 6) -> Analysis:
    """Each system says to 48 yes-or-no questions, whose answer is yes, what stands behind its name: y, n or a gap."""
    numbers = range(48)
    requests = [
        {
            "qID": f"q{number}",
            "videoID": f"v{number % videos}.mp4",
            "start_time": 0,
            "end_time": 600,
            "procedure_type": "resection",
            "question": "Is it there?",
        }
        for number in numbers
    ]
    references = [
        {
            "qID": f"q{number}",
            "primary": LEAVES[number % 2 if buckets > 1 else 0],
            "format": "binary",
            "answer": "yes",
            "ood": buckets > 1 and number // 2 % 2 == 0,
            "clinical": number % 3 == 0,
        }
        for number in numbers
    ]
    (folder / "requests.json").write_text(json.dumps(requests))
    (folder / "references.json").write_text(json.dumps(references))
    benchmark, store = READER.load(folder), Store(str(folder / "runs.db"))
    said = {"y": "yes", "n": "no"}
    for name, given in answers.items():
        letters = [(number, given[number % len(given)]) for number in numbers]
        entries = [{"qID": f"q{number}", "content": said.get(one)} for number, one in letters]
        (folder / "answer.json").write_text(json.dumps(entries))
        recorded = READER.read_recorded(folder / "answer.json", benchmark)
        asyncio.run(
            import_answers(store, benchmark, recorded, name=name, condition="video", scorers=[AccuracyScorer()])
        )
    return analyse(store, "focus", stability=20, plan=Resampling(draws=100))


CASES: list[tuple[str, dict[str, str], int, int]] = [
    ("one system", {"only": "yyn"}, 4, 6),
    ("one bucket", {"a": "yyn", "b": "y", "c": "nny"}, 1, 6),
    ("all wrong", {"a": "n", "b": "n", "c": "n"}, 4, 6),
    ("all right", {"a": "y", "b": "y"}, 4, 6),
    ("nothing answered", {"a": " ", "b": " "}, 4, 6),
    ("one video", {"a": "yyn", "b": "yn"}, 4, 1),
    ("two videos", {"a": "yyn", "b": "yn"}, 4, 2),
    ("hostile names", {name: "y" * (k + 1) + "n" * (9 - k) for k, name in enumerate(HOSTILE)}, 4, 6),
]


@pytest.mark.parametrize(("answers", "buckets", "videos"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_every_picture_is_drawn(answers: dict[str, str], buckets: int, videos: int, tmp_path: Path) -> None:
    found = analysis(tmp_path, answers, buckets=buckets, videos=videos)
    assert {row["system"] for row in found.tables["ranking"]} == set(answers)
    tables, pictures = write_tables(found, tmp_path / "out"), write_pictures(found, tmp_path / "out")
    assert len(tables) == len(found.tables)
    assert len(pictures) >= 8
    for file in pictures:
        tree = ElementTree.parse(file)
        texts = [text for one in tree.iter() for text in (one.text, one.tail) if text]
        assert not any("nan" in text.lower().split() for text in texts), file
        assert not any("script" in one.tag for one in tree.iter())


def test_where_all_do_the_same_nothing_is_better(tmp_path: Path) -> None:
    found = analysis(tmp_path, {"a": "n", "b": "n", "c": "n"})
    assert {(row["rank"], row["mean"]) for row in found.tables["ranking"]} == {(1, 0.0)}
    assert {row["better"] for row in found.tables["significance"]} == {""}
    assert [row["note"] for row in found.tables["regression"] if row["term"] == "intercept"] == [
        "the answers are all right, or all wrong"
    ]
    assert {row["p"] for row in found.tables["pairs"]} == {1.0}


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_an_axis_of_one_value_has_room_on_both_sides(value: float) -> None:
    axis = value_axis(ACCURACY, value, value)
    assert axis.limits[0] < value < axis.limits[1]
    assert _apart(axis.ticks)


def _apart(ticks: Sequence[float]) -> bool:
    return len(ticks) > 1 and all(first < second for first, second in pairwise(ticks))
