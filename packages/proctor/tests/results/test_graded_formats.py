"""Formats that are nearly right or not: from stored answers to results, comparisons, ranks, analysis and report."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import ACCURACY, Answer, Benchmark, Item, ParseError, Reference
from proctor.core.formats import IntervalsFormat
from proctor.metrics import code_scorers
from proctor.results import Options, compare, leaderboard, rank_runs, results
from proctor.runs import Store
from proctor.stats import RankingPlan

REPLIES = {
    "near": lambda start: f"Answer: {start + 1}-{start + 10} s",  # overlaps 9 of 10
    "half": lambda start: f"Answer: {start + 5}-{start + 15} s",  # 5 of 15
    "none": lambda _: "I can't tell.",
}


def benchmark(*, facets: bool = True) -> Benchmark:
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"v{number % 4}",
            question="When is the clip applied?",
            answer=IntervalsFormat(),
            reference=Reference(answer=[[10.0 * number, 10.0 * number + 10]]),
            tags={"step": "first" if number < 6 else "second"},
        )
        for number in range(12)
    )
    return Benchmark("when", "When", items, (ACCURACY,), "accuracy", facets=("step",) if facets else ())


def said(item: Item, text: str) -> Answer:
    try:
        return Answer(item_id=item.id, text=text, parsed=item.answer.parse(text, item.options))
    except ParseError as error:
        return Answer(item_id=item.id, text=text, problem=str(error))


def stored(path: Path, loaded: Benchmark, replies: dict[str, Any]) -> Store:
    store = Store(str(path / "runs.db"))
    store.add_benchmark(loaded)
    for system, reply in replies.items():
        run = store.start_run(loaded.name, system, "video", {})
        answers = [said(item, reply(10 * number)) for number, item in enumerate(loaded.items)]
        scores = [
            [
                one
                for scorer in code_scorers()
                if scorer.applies(item)
                for one in asyncio.run(scorer.score(item, answer))
            ]
            for item, answer in zip(loaded.items, answers, strict=True)
        ]
        store.write(run, list(zip(answers, scores, strict=True)))
    return store


def test_intervals_reach_every_table(tmp_path: Path) -> None:
    store = stored(tmp_path, benchmark(), REPLIES)
    rows = {(row.system, row.metric): row for row in results(store, "when", Options(draws=200)).rows}
    assert rows["near", "iou"].value == pytest.approx(0.9)
    assert rows["half", "iou"].value == pytest.approx(1 / 3)
    assert (rows["none", "iou"].value, rows["none", "iou"].unreadable) == (0, 12)
    shares = [rows["half", f"recall_at_{least}"].value for least in (0.3, 0.5, 0.7)]
    assert shares == [1, 0, 0]
    assert (rows["near", "accuracy"].value, rows["half", "accuracy"].value) == (1, 0)
    assert rows["near", "average_precision"].value == pytest.approx(0.9)  # nine of ten overlaps, 0.5 to 0.9
    assert (rows["near", "iou"].n, rows["near", "iou"].groups) == (12, 4)
    board = leaderboard(store, "when", condition="video", metric="iou")
    assert [row.system for row in board.rows] == ["near", "half", "none"]
    (found,) = [
        one
        for one in compare(store, "when", Options(systems=("near", "half"), draws=200)).comparisons
        if one.metric == "recall_at_0.5"
    ]
    assert abs(found.difference.value or 0) == 1
    where = str(tmp_path / "runs.db")
    assert "near" in str(proctor.rank(where, stability=50, draws=100))
    scores = proctor.analyze(where, stability=50, draws=100)
    pooled = {(row["system"], row["part"]): row["value"] for row in scores.data.tables["scores"]}
    assert pooled["near", "IoU 0.75"] == 1
    assert pooled["half", "IoU 0.5"] == 0
    page = tmp_path / "report.html"
    proctor.report(where, page)
    assert "Recall at IoU 0.5" in page.read_text(encoding="utf-8")


def test_a_benchmark_without_facets_is_ranked_in_one_bucket(tmp_path: Path) -> None:
    store = stored(tmp_path, benchmark(facets=False), REPLIES)
    (board,) = rank_runs(store, "when", plan=RankingPlan(stability=50, draws=100))
    assert board.standings.buckets == ("all",)
    assert board.names[0] == "near"
