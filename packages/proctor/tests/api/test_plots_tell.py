"""Figures show what the tables say: each dot at its value, on its line, in its group's colour, with its interval."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import proctor
from proctor.api import leaderboard
from proctor.core import InputError, UsageError
from proctor.reports import RANGE, cost_lines
from proctor.reports.blocks import recorded_figure
from proctor.reports.figures.marks import PLOT_SHAPES
from proctor.shell.option_values import columns_of, facets_of, texts
from tests.support.fuzzed_store import JUDGE, NAME, fuzzed
from tests.support.lamp_benchmark import lamps

Dots = dict[tuple[str, str], tuple[float, float | None, float | None]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fuzzed(tmp_path_factory.mktemp("plots"), 1, items=40, waits=0.0).store


def drawn(figure: Figure) -> Dots:
    """By label and group the value of each dot, and the ends of the interval at its height."""
    (axes,) = figure.axes
    labels = [text.get_text() for text in axes.get_yticklabels()]
    lines = [(np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float), line) for line in axes.lines]
    ends = {
        round(float(y[0]), 9): (float(x[0]), float(x[1]))
        for x, y, line in lines
        if line.get_linestyle() == "-" and len(x) == 2
    }
    groups = [(x, y, str(line.get_label())) for x, y, line in lines if line.get_marker() in PLOT_SHAPES]
    heights: dict[int, list[float]] = {}
    found: Dots = {}
    for xs, ys, group in groups:
        for x, y in zip(xs, ys, strict=True):
            heights.setdefault(round(float(y)), []).append(float(y))
            found[labels[round(float(y))], group] = (float(x), *ends.get(round(float(y), 9), (None, None)))
    for row, own in heights.items():
        if len(own) == len(groups):  # the groups stand around their line
            assert sum(own) / len(own) == pytest.approx(row)
    return found


@pytest.mark.parametrize("metric", ["accuracy", "effort"])
def test_results(store: Any, metric: str) -> None:
    table = proctor.results(store, NAME, draws=100, failed="wrong")
    rows = [row for row in table.rows if row["metric"] == metric and row["scorer"]]
    factor, several = (100, True) if metric == "accuracy" else (1, False)
    wanted: dict[Any, Any] = {
        (f"{row['system']}, {row['scorer']}" if several else row["system"], row["condition"]): tuple(
            None if row[name] is None else pytest.approx(factor * row[name]) for name in ("value", "ci_low", "ci_high")
        )
        for row in rows
    }
    figure = table.plot(metric)
    assert drawn(figure) == wanted
    (axes,) = figure.axes
    assert axes.get_xlim() == ((0.0, 100.0) if several else (1.0, 9.0))
    assert axes.get_xlabel() == ("Accuracy in per cent" if several else "Effort")


def test_comparisons(store: Any) -> None:
    table = proctor.compare(store, NAME, draws=100, failed="wrong", systems=("alpha", "beta"))
    for metric, groups in (("accuracy", ["code", JUDGE]), ("effort", [""])):
        factor = 100 if metric == "accuracy" else 1
        wanted: dict[Any, Any] = {
            (
                f"{row['first_system']} / video minus {row['second_system']} / text-only",
                row["scorer"] if len(groups) > 1 else "",
            ): tuple(pytest.approx(factor * row[name]) for name in ("difference", "ci_low", "ci_high"))
            for row in table.rows
            if row["metric"] == metric
        }
        found = {
            (label, group if len(groups) > 1 else ""): dot for (label, group), dot in drawn(table.plot(metric)).items()
        }
        assert found == wanted


def test_ranks(store: Any) -> None:
    table = proctor.rank(store, NAME, draws=100, stability=0, failed="wrong")
    wanted = {
        row["system"]: (row["rank_by_mean"], row["rank_low"], row["rank_high"]) for row in table.rows if row["rank"]
    }
    figure = table.plot()
    assert {label: dot for (label, _), dot in drawn(figure).items()} == wanted
    assert figure.axes[0].get_xlim() == (0.5, len(wanted) + 0.5)
    assert table.plot("technical").axes[0].get_title(loc="left") == "All questions"
    with pytest.raises(InputError, match="board: found 'clinical', expected one of technical"):
        table.plot("clinical")


def test_plots_are_drawn_where_they_are_asked_to_be(store: Any) -> None:
    given: dict[str, Any] = {"draws": 100, "failed": "wrong"}
    tables: list[Any] = [
        proctor.results(store, NAME, **given),
        proctor.compare(store, NAME, systems=("alpha", "beta"), **given),
        proctor.rank(store, NAME, stability=0, **given),
        proctor.analyze(store, NAME, stability=0, **given),
        leaderboard(store, NAME, "effort", **given),
    ]
    for table in tables:
        figure = Figure()
        left, right = figure.subplots(1, 2)
        assert table.plot(ax=right) is figure
        assert (len(left.lines), len(right.lines) > 1) == (0, True)


def test_texts_of_options() -> None:
    assert texts(["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}
    with pytest.raises(InputError, match="--option 'a=2' can't be used: write KEY=VALUE, each key once"):
        texts(["a=1", "a=2"])
    with pytest.raises(
        UsageError, match="--map 'Frage' names no column: write FIELD=COLUMN, such as --map question=Frage"
    ):
        columns_of(["Frage"])
    assert columns_of(["question=Frage", " options = A", "options=B"]) == {"question": ["Frage"], "options": ["A", "B"]}
    assert facets_of("one, two,") == ("one", "two")


@pytest.mark.parametrize("count", [40, 41])
def test_numbers_behind_a_drawing(count: int) -> None:
    """Up to forty rows are a table, more are the lines of a file."""
    rows = [{"name": f"=n{number}", "value": number / 7} for number in range(count)]
    figure = recorded_figure("a", "A", "<svg/>", "What it shows.", rows, facet="f", narrow="<svg/>")
    assert (figure.name, figure.title, figure.caption, figure.facet, figure.narrow) == (
        "a",
        "A",
        "What it shows.",
        "f",
        "<svg/>",
    )
    if count == 40:
        assert figure.csv == ""
        assert figure.numbers is not None
        assert len(figure.numbers.rows) == 40
    else:
        assert figure.numbers is None
        assert figure.csv.splitlines()[:3] == ["name,value", "'=n0,0", "'=n1,0.14286"]
        assert len(figure.csv.splitlines()) == 42


def test_a_store_is_needed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.db"):
        proctor.results(tmp_path / "nothing.db")


def test_titles_and_notes(store: Any, tmp_path: Path) -> None:
    results = proctor.results(store, NAME, draws=100, seed=2, level=0.9)
    assert results.title == "Fuzzed"
    assert results.notes == (
        "Intervals: 90 %, over groups: exact for shares, bootstrap for other scores (100 draws, seed 2).",
        RANGE,
        *cost_lines(results.data.costs),
    )
    wrong = proctor.results(store, NAME, draws=100, failed="wrong")
    assert wrong.notes[1:] == tuple(cost_lines(wrong.data.costs))
    assert proctor.compare(store, NAME, draws=100).title == "Fuzzed: paired differences"
    made = tmp_path / "made.db"
    for name, title, shown in (("a", "Toy", "Toy (simulated)"), ("b", "Simulated toy", "Simulated toy")):
        toy = replace(lamps(), name=name, title=title, simulated=True)
        proctor.run(toy, lambda question: "yes", name="one", conditions="text-only", store=made, baselines=False)
        assert proctor.results(made, name, draws=100).title == shown
    board = proctor.rank(store, NAME, draws=100, stability=0, failed="wrong")
    (only,) = board.boards
    assert board.title == f"All questions ({only.items} in {only.standings.groups} groups)"
    assert board.notes[0] == "Items that failed, were not asked or have no verdict count as wrong (--failed wrong)."
