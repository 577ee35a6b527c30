"""The ranking in the report: its boards, its drawing with few and with many systems."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from proctor.metrics import AccuracyScorer
from proctor.reports import leads_tables, write_report
from proctor.reports.figures import draw_blobs
from proctor.runs import Store, import_answers
from proctor.tasks.focus import READER

SKILLS = {"good & <b>": 0.95, "fair": 0.6, "random": 0.4}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ranking")
    request: dict[str, Any] = {"start_time": 0, "end_time": 60, "procedure_type": "resection", "question": "Is it?"}
    reference: dict[str, Any] = {"primary": "object_identification", "format": "binary", "answer": "yes"}
    ids = [f"q{number:03d}" for number in range(120)]
    (path / "requests.json").write_text(
        json.dumps([request | {"qID": name, "videoID": f"v{number % 15}"} for number, name in enumerate(ids)])
    )
    (path / "references.json").write_text(
        json.dumps([reference | {"qID": name, "ood": number % 2 == 0} for number, name in enumerate(ids)])
    )
    benchmark, store = READER.load(path), Store(str(path / "runs.db"))
    for system, skill in SKILLS.items():
        rng = random.Random(system)
        answers = [{"qID": name, "content": "yes" if rng.random() < skill else "no"} for name in ids]
        (path / "r.json").write_text(json.dumps(answers))
        recorded = READER.read_recorded(path / "r.json", benchmark)
        under = "text-only" if system == "random" else "video"
        asyncio.run(
            import_answers(store, benchmark, recorded, name=system, condition=under, scorers=[AccuracyScorer()])
        )
    out = path / "report.html"
    summary = write_report(store, "focus", out)
    assert "ranking" in summary.sections
    return Path(out).read_text(encoding="utf-8")


def test_boards_and_blobs_are_on_the_page(page: str) -> None:
    assert "Ranking over buckets" in page
    assert "120 questions in 15 groups, 2 buckets." in page
    assert "good &amp; &lt;b&gt;, rank 1: rank 1 in 100 %" in page
    assert "Buckets won, lost and tied by the row against the column" in page
    assert "Rank (score) under every rule, ties not broken" in page
    assert "baseline" in page
    assert "Buckets without questions count for nothing: object_recognition / in" in page


@pytest.mark.parametrize("n", [1, 3, 10, 50])
def test_blobs_of_few_and_many_systems_stay_on_their_drawing(n: int) -> None:
    rng = random.Random(n)
    chances = []
    for _ in range(n):
        weights = [rng.random() ** 4 for _ in range(n)]
        chances.append([weight / sum(weights) for weight in weights])
    drawn = draw_blobs("k", "Places", [f"system {k}" for k in range(n)], chances, range(1, n + 1))
    root = ElementTree.fromstring(drawn)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert width <= 960
    assert height == 22 * n + 32
    rows = [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in root.iter("circle")]
    assert len(rows) >= n
    assert all(0 <= x <= width and 0 <= y <= height for x, y in rows)
    assert draw_blobs("k", "Places", [f"system {k}" for k in range(n)], chances, range(1, n + 1)) == drawn


def test_leads_are_shown_with_both_p_and_their_interval() -> None:
    row = {"system": "mine", "against": "base", "bucket": "easy", "n": 40, "groups": 8, "lead": -0.125, "ci_low": -0.2}
    row |= {"ci_high": -0.05, "p": 0.012, "p_adjusted": 0.036, "verdict": "behind"}
    (table,) = leads_tables([row])
    assert table.title == "mine compared with base; p is adjusted for the 1 bucket, and over all questions it is not"
    assert dict(zip([one.label for one in table.columns], table.texts[0], strict=True)) == {
        "Bucket": "easy",
        "Questions": "40",
        "Groups": "8",
        "Lead": "−12.5 pts",
        "95 % CI": "−20.0 to −5.0",
        "p": "0.012",
        "p (adjusted)": "0.036",
        "Verdict": "behind",
    }
