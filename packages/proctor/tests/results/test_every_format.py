"""A benchmark that has every newer format: random and constant answers, from the store to results, analysis and
report."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import proctor
from proctor.core import ACCURACY, Benchmark, Criterion, Item, Reference
from proctor.core.formats import (
    BoxesFormat,
    ChoicesFormat,
    FreeTextFormat,
    IntervalsFormat,
    PointFormat,
    PreferenceFormat,
    QuantityFormat,
    ScaleFormat,
    ShortTextFormat,
)
from proctor.metrics import code_scorers
from proctor.results import Options, results
from proctor.runs import Store
from proctor.systems.replies import reply

FORMATS: tuple[tuple[Any, Any, Any], ...] = (
    (IntervalsFormat(), [[0.0, 10.0]], [[0.0, 8.0]]),
    (BoxesFormat(), [[0.0, 0.0, 10.0, 10.0]], [[0.0, 0.0, 10.0, 9.0]]),
    (PointFormat(tolerance=5), [100.0, 100.0], [103.0, 104.0]),
    (QuantityFormat(unit="mm", tolerance=2), 20.0, 21.0),
    (ChoicesFormat(), ["A", "B"], ["A"]),
    (ShortTextFormat(), "left kidney", "the kidney"),
    (ScaleFormat(), 4, 5),
    (PreferenceFormat(), "A", "tie"),
)


def test_every_format_goes_from_the_store_to_the_report(tmp_path: Path) -> None:
    items = [
        Item(
            id=f"q{index}-{video}",
            group=f"v{video}",
            question="?",
            options=("liver", "spleen"),
            answer=form,
            reference=Reference(answer=key),
            tags={"half": video % 2},
        )
        for video in range(4)
        for index, (form, key, _) in enumerate(FORMATS)
    ]
    rubric = (Criterion(criterion="names the spleen", points=5),)
    items.append(
        Item(
            id="free",
            group="v0",
            question="?",
            answer=FreeTextFormat(),
            reference=Reference(answer=None, criteria=rubric),
            tags={"half": 0},
        )
    )
    loaded = Benchmark("every", "Every format", tuple(items), (ACCURACY,), "accuracy", facets=("half",))
    store = Store(str(tmp_path / "runs.db"))
    store.add_benchmark(loaded)
    for system in ("exact", "near"):
        run = store.start_run("every", system, "video", {})
        given = []
        for one in items:
            if isinstance(one.answer, FreeTextFormat):
                answer = reply(one, "The spleen.")
            else:
                _, key, near = next(row for row in FORMATS if row[0] == one.answer)
                answer = reply(one, key if system == "exact" else near)
            scores = [
                score
                for scorer in code_scorers()
                if scorer.applies(one)
                for score in asyncio.run(scorer.score(one, answer))
            ]
            given.append((answer, scores))
        store.write(run, given)
    found = {(row.system, row.metric): row.value for row in results(store, "every", Options(draws=100)).rows}
    assert found["exact", "accuracy"] == 1
    assert found["near", "accuracy"] == 4 / 8  # interval, box, point and number are near enough
    assert (found["exact", "iou"], found["near", "iou"]) == (1, (0.8 + 0.9) / 2)
    assert (found["near", "relative_error"], found["near", "jaccard_index"]) == (0.05, 0.5)
    assert (found["near", "word_f1"], found["near", "scale_error"]) == (2 / 3, 0.25)
    where = str(tmp_path / "runs.db")
    table = proctor.analyze(where, stability=20, draws=100).data.tables["scores"]
    assert {row["format"] for row in table} >= {"intervals", "boxes", "preference"}
    page = tmp_path / "report.html"
    proctor.report(where, page)
    assert "+5: names the spleen" in page.read_text(encoding="utf-8")
