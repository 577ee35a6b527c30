"""Judges that were asked several times, in `results`: by hand, for one judge and for two, in the terminal's table and JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core import Answer, Benchmark, Item, Reference, Score
from proctor.core.formats import FreeTextFormat
from proctor.judges import RUBRIC
from proctor.reports import results_tables, write_report
from proctor.results import Options, results
from proctor.runs import Store
from proctor.runs.judge_work import add_judge_scores

OPTIONS = Options(draws=100)


def stored(path: Path, given: dict[str, list[list[float]]]) -> Store:
    """Twelve answers of four groups, each with the scores of each judge."""
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"v{number % 4}",
            question=f"What is seen in view {number}?",
            answer=FreeTextFormat(),
            reference=Reference(answer="the liver"),
        )
        for number in range(12)
    )
    store = Store(path / "runs.db")
    store.add_benchmark(Benchmark("words", "Words", items, (RUBRIC,), "rubric"))
    run = store.start_run("words", "mine", "text-only", {})
    store.write(run, [(Answer(item_id=item.id, text="the liver", parsed="the liver"), []) for item in items])
    for judge, rows in given.items():
        for item, values in zip(items, rows, strict=True):
            scores = [Score(item_id=item.id, metric="rubric", value=value, scorer=judge) for value in values]
            add_judge_scores(store, [(run, score, number) for number, score in enumerate(scores)])
    return store


STEADY = [[float(number % 3)] * 3 for number in range(12)]
MOODY = [[2.0, 2.0, 1.0] if number < 6 else [0.0, 0.0, 0.0] for number in range(12)]


def test_one_judge_by_hand(tmp_path: Path) -> None:
    found = results(stored(tmp_path, {"moody": MOODY}), "words", OPTIONS)
    (row,) = found.judged
    assert (row.answers, row.judgements) == (12, 3)
    assert row.alike.value == pytest.approx((6 * 1 / 3 + 6) / 12)
    assert row.spread == pytest.approx((6 * (2 / 3) / 24) ** 0.5)  # squares 1/9 + 1/9 + 4/9 in six of twelve answers
    assert row.variance is not None
    assert set(row.variance.shares) == {"answer", "judgement"}
    (told,) = [one["judgements"] for one in found.to_json() if one["metric"] == "rubric"]
    assert told["alike"]["value"] == pytest.approx(row.alike.value)
    assert told["judges"] == 1


def test_two_judges_have_the_variance_between_them(tmp_path: Path) -> None:
    store = stored(tmp_path, {"steady": STEADY, "moody": MOODY})
    found = results(store, "words", OPTIONS)
    by_name = {one.scorer: one for one in found.judged}
    assert by_name["steady"].alike.value == 1.0
    assert by_name["steady"].spread == 0.0
    assert by_name["steady"].variance == by_name["moody"].variance
    table = next(table for table in results_tables(found) if "3 judgements of an answer" in table.caption)
    figures = [str(row[3]) for row in table.rows if str(getattr(row[2], "text", row[2])) == "moody"]
    assert figures == [
        "Same score in two judgements",
        "Spread of judgements of an answer",
        "Variance between answers",
        "Variance between judges",
        "Variance of judges by answer",
        "Variance between judgements",
    ]
    written = write_report(store, "words", tmp_path / "report.html", options=OPTIONS)
    assert "repetitions" in written.sections
    assert "Same score in two judgements" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_answer_that_was_judged_once_has_no_such_figures(tmp_path: Path) -> None:
    store = stored(tmp_path, {"moody": [row[:1] for row in MOODY]})
    found = results(store, "words", OPTIONS)
    assert found.judged == ()
    assert all("judgements" not in row for row in found.to_json())
