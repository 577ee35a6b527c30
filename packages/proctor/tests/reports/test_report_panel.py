"""Free text by a panel in the report: what is unresolved, not submitted or waiting is shown, each as itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core import ACCURACY, NO_ANSWER, Answer, Benchmark, Item, Metric, Reference, Score
from proctor.core.formats import BinaryFormat, FreeTextFormat
from proctor.judges import PANEL_ACCURACY, UNRESOLVED
from proctor.reports.report import write_report
from proctor.reports.report_numbers import Key, Source
from proctor.results import Options
from proctor.runs import Store

PANEL = "panel[a, b]"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    items = [
        Item(
            id=f"{kind}{number}",
            group=f"v{number}",
            question="Is it there, or why?",
            answer=BinaryFormat(strict=True) if kind == "yes" else FreeTextFormat(),
            reference=Reference(answer=True if kind == "yes" else "to press"),
            tags={"kind": kind},
        )
        for kind in ("yes", "text")
        for number in range(3)
    ]
    metrics: tuple[Metric, ...] = (PANEL_ACCURACY, UNRESOLVED)
    opened = Store(tmp_path / "runs.db")
    opened.add_benchmark(Benchmark("mixed", "Mixed", tuple(items), metrics, "accuracy", facets=("kind",)))
    for system in ("judged", "waiting"):
        run = opened.start_run("mixed", system, "video", {})
        for item in items:
            code = isinstance(item.answer, BinaryFormat)
            answer = Answer(item_id=item.id, text="yes", parsed=True if code else "yes")
            scores = [Score(item_id=item.id, metric=ACCURACY.name, value=1.0, label="right")] if code else []
            if item.id == "yes2":
                answer = Answer(item_id=item.id, reason=NO_ANSWER, problem=NO_ANSWER)
                scores = [Score(item_id=item.id, metric=ACCURACY.name, value=0.0, label="missing")]
            if system == "judged" and not code:
                scores = [Score(item_id=item.id, metric=UNRESOLVED.name, value=1, scorer=PANEL, label="tie")]
                if item.id == "text0":
                    scores = [Score(item_id=item.id, metric=UNRESOLVED.name, value=0, scorer=PANEL)]
                    scores += [Score(item_id=item.id, metric=ACCURACY.name, value=1, scorer=PANEL)]
            opened.write(run, [(answer, scores)])
    return opened


def test_what_waits_for_a_judge_stands_last_and_says_so(store: Store) -> None:
    source = Source(store, "mixed", Options(draws=100))
    assert [source.label(key) for key in source.keys] == ["Accuracy, scored by code", "Accuracy, scored by panel[a, b]"]
    assert [key.metric for key in source.unscored] == ["accuracy"]  # has no values, and so no table and no chart
    assert [key.metric for key in source.flags] == ["unresolved"]  # says nothing of a system: it has no rank
    assert source.chance(Key("accuracy", "code")) == 0.5  # yes or no; free text is not code's
    assert source.chance(Key("accuracy", PANEL)) is None


def test_the_headline_says_what_is_in_no_average(store: Store, tmp_path: Path) -> None:
    found = write_report(store, "mixed", tmp_path / "report.html", options=Options(draws=100))
    text = found.path.read_text(encoding="utf-8")
    assert "a panel came to no majority" in text
    assert "Accuracy: not scored yet are 3 answers of waiting (proctor score scores them)." in text
    assert "2 unresolved" in text
    assert "<bdi>Not submitted</bdi></th>" in text
    assert "2 of 3" in text.partition('<section id="statuses"')[2].partition("</section>")[0]  # the flags of the judge
    source = Source(store, "mixed", Options(draws=100))
    (row,) = [one for one in source.overall if (one.metric, one.scorer) == ("accuracy", PANEL)]
    # Three right and one wrong; under this scorer's policy of both, the two without a verdict are a matter of range.
    assert (row.n, row.unresolved, row.not_submitted, row.unscored, row.answered) == (6, 2, 1, 0, 6)
    assert (row.value, row.if_wrong, row.if_excluded) == (None, 3 / 6, 3 / 4)
