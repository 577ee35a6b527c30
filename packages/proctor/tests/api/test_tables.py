"""Results as tables: the numbers are those of the store, frames hold them all, and what is drawn is what is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import proctor
from proctor import Evaluation, InputError
from proctor.core import ACCURACY, Answer, Benchmark, Item, Metric, Reference, Score
from proctor.core.formats import FreeTextFormat
from proctor.reports import ComparisonTable, RankingTable, ReportSummary, ResultsTable, Story
from proctor.reports.figures.marks import PLOT_SHAPES
from proctor.reports.frames import LeaderboardTable
from proctor.runs import Store
from tests.support.lamp_benchmark import lamps


def yes(question: str) -> str:
    return "yes"


def right(question: str) -> str:
    return "no" if "3" in question else "yes"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    store = tmp_path_factory.mktemp("lamps") / "lamps.db"
    return proctor.run(lamps(), [yes, right], conditions=["text-only", "video"], store=store)


def test_results_are_the_numbers_of_the_store(made: Evaluation) -> None:
    table = made.results(draws=200)
    frame = table.to_pandas()
    assert isinstance(table, ResultsTable)
    assert len(table) == len(frame) == 4
    values = frame.set_index(["system", "condition"])["value"]
    assert values["right", "video"] == 1.0
    assert values["yes", "text-only"] == pytest.approx(2 / 3)
    assert set(frame["n"]) == {12}
    assert set(frame["groups"]) == {4}


def test_facets_are_columns(made: Evaluation) -> None:
    frame = made.results(by="lamp", systems="yes", conditions="video", draws=200).to_pandas()
    assert dict(zip(frame["lamp"], frame["value"], strict=True)) == {"1": 1.0, "2": 1.0, "3": 0.0}


def test_a_store_speaks_of_all_runs_and_an_evaluation_of_its_own(made: Evaluation) -> None:
    everything = proctor.results(made.store.shown, draws=200).to_pandas()
    assert {"random", "majority", "yes", "right"} <= set(everything["system"])
    assert set(made.results(draws=200).to_pandas()["system"]) == {"yes", "right"}


def test_comparisons_name_both_sides(made: Evaluation) -> None:
    table = made.compare(conditions="video", draws=200)
    assert isinstance(table, ComparisonTable)
    (row,) = table.rows
    assert (row["first_system"], row["second_system"], row["first_condition"]) == ("yes", "right", "video")
    assert row["difference"] == pytest.approx(-1 / 3)
    against = made.compare(against="right/video", systems="yes", conditions="text-only", draws=200)
    assert [round(row["difference"], 3) for row in against] == [-0.333]


def test_a_ranking_has_ranks_and_baselines(made: Evaluation) -> None:
    table = made.rank(condition="video", draws=200, stability=20)
    assert isinstance(table, RankingTable)
    frame = table.to_pandas().set_index("system")
    assert frame["rank"].dropna().to_dict() == {"right": 1.0, "yes": 2.0}
    assert bool(frame.loc["random", "baseline"])


def test_a_leaderboard_of_what_was_just_run(made: Evaluation) -> None:
    """Only its own systems, under its first condition, as with a store that names them."""
    board = made.leaderboard("balanced_accuracy", draws=200)
    assert isinstance(board, LeaderboardTable)
    named: dict[str, Any] = {
        "systems": made.systems,
        "condition": made.conditions[0],
        "metric": "balanced_accuracy",
        "draws": 200,
    }
    assert board.rows == proctor.leaderboard(made.store, made.benchmark, **named).rows
    assert made.leaderboard(draws=200).rows != board.rows


def test_an_analysis_is_frames_by_name(made: Evaluation, tmp_path: Path) -> None:
    tables = made.analyze(condition="video", draws=200, stability=20, seed=3)
    assert set(tables.to_pandas()) == set(tables.names)
    capabilities = tables["capabilities"]
    alone = capabilities[(capabilities["system"] == "yes") & (capabilities["stratum"] == "all")]
    assert alone.set_index("label")["value"].to_dict() == {"1": 1.0, "2": 1.0, "3": 0.0}
    with pytest.raises(KeyError, match="'capability': expected one of capabilities, "):
        tables["capability"]
    assert {file.stem for file in tables.write(tmp_path)} <= set(tables.names)
    settings = tables["settings"].set_index("setting")["value"]
    assert (settings["draws"], settings["stability"], settings["seed"]) == (200, 20, 3)
    assert isinstance(tables.plot(), Figure)


def drawn(figure: Figure) -> dict[str, list[float]]:
    """By colour's label the values of the dots, from left to right."""
    (axes,) = figure.axes
    return {
        str(line.get_label()): sorted(round(float(value), 3) for value in np.asarray(line.get_xdata()))
        for line in axes.lines
        if line.get_marker() in PLOT_SHAPES
    }


def test_figures_show_the_values_and_their_intervals(made: Evaluation) -> None:
    figure = made.results(draws=200).plot()
    (axes,) = figure.axes
    assert drawn(figure) == {"text-only": [66.667, 100.0], "video": [66.667, 100.0]}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["right", "yes"]
    assert axes.get_xlabel() == "Accuracy in per cent"
    (chance,) = [line for line in axes.lines if line.get_label() == "chance"]
    assert list(np.asarray(chance.get_xdata())) == [50.0, 50.0]
    difference = made.compare(conditions="video", draws=200).plot()
    assert difference.axes[0].get_xlabel() == "Difference in Accuracy in percentage points"
    ranks = made.rank(condition="video", draws=200, stability=20).plot()
    assert [label.get_text() for label in ranks.axes[0].get_yticklabels()] == ["right", "yes"]


def test_a_figure_can_be_drawn_into_axes_that_are_there(made: Evaluation) -> None:
    figure = Figure()
    axes = figure.subplots()
    assert made.results(draws=200).plot(ax=axes) is figure
    assert axes.lines


def test_a_metric_that_nobody_gave_is_refused_with_those_there_are(made: Evaluation) -> None:
    with pytest.raises(InputError, match="metric: found 'rubric', expected one with values: accuracy"):
        made.results(draws=200).plot("rubric")
    with pytest.raises(InputError, match="metric: found 'rubric', expected one that was compared: accuracy"):
        made.compare(conditions="video", draws=200).plot("rubric")


def test_a_notebook_shows_tables_and_escapes_what_is_in_them() -> None:
    hostile = proctor.system(name="<script>alert(1)</script>")(yes)
    made = proctor.run(lamps(), hostile, conditions="text-only", store=":memory:", baselines=False)
    for shown in (made, made.results(draws=200)):
        page = shown._repr_html_()
        assert "<table" in page
        assert "&lt;script&gt;" in page
        assert "<script" not in page


def test_plain_text_has_the_value_with_its_interval(made: Evaluation) -> None:
    text = repr(made.results(draws=200, systems="yes", conditions="video"))
    assert "Lamps" in text
    assert "66.7 %" in text
    assert "Intervals: 95 %, over groups: exact for shares, bootstrap for other scores (200 draws, seed 0)." in text
    narrower = repr(made.results(draws=200, systems="yes", conditions="video", level=0.8))
    assert "80 % CI" in narrower
    assert "95 % CI" not in narrower


def test_export_is_a_frame_or_a_file(made: Evaluation, tmp_path: Path) -> None:
    frame = made.export()
    assert len(frame) == 48  # twelve items, two systems, two conditions
    assert frame.groupby("system")["value"].mean().to_dict() == {"right": 1.0, "yes": pytest.approx(2 / 3)}
    assert made.export(tmp_path / "answers.csv") == 48
    assert len((tmp_path / "answers.csv").read_text("utf-8").splitlines()) == 49
    with pytest.raises(InputError, match=r"found a name that ends in \.docx, expected one that ends in \.jsonl, \.csv"):
        made.export(tmp_path / "answers.docx")


def test_items_that_do_not_count_are_exported_on_request() -> None:
    of_lamp_1 = replace(lamps(), only={"lamp": "1"})
    every = proctor.run(of_lamp_1, yes, conditions="text-only", all_items=True, store=":memory:")
    assert set(every.export()["lamp"]) == {"1"}
    assert len(every.export()) == 4
    assert len(every.export(all_items=True)) == 12


def test_a_wider_level_has_wider_intervals_in_an_audit() -> None:
    rated = [
        {
            "item": f"q{item}",
            "candidate": f"Answer {item}",
            "system": "s",
            "dimension": "d",
            "rater": "r",
            "value": value,
        }
        for item, value in enumerate([1, 2, 3, 4, 5, 2, 4, 1, 3, 5])
    ]
    scores = [
        {"item": f"q{item}", "system": "s", "dimension": "d", "value": value}
        for item, value in enumerate([1, 3, 2, 5, 4, 2, 3, 2, 3, 4])
    ]

    def width(level: float) -> float:
        (row,) = [
            one
            for one in proctor.audit(pd.DataFrame(scores), pd.DataFrame(rated), level=level, draws=200).rows
            if one["dimension"] == "d"
        ]
        return float(row["mean_high"] - row["mean_low"])

    assert width(0.5) < width(0.95)


def test_a_report_is_written_also_where_an_event_loop_runs(made: Evaluation, tmp_path: Path) -> None:
    import asyncio

    async def notebook() -> int:
        return made.report(tmp_path / "report.html", draws=200).bytes

    assert asyncio.run(notebook()) == (tmp_path / "report.html").stat().st_size


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"draw": 3}, r"results\(\) got an unexpected keyword argument 'draw'; did you mean 'draws'\?"),
        ({"zzz": 3}, r"results\(\) got an unexpected keyword argument 'zzz'"),
    ],
)
def test_an_unknown_option_is_a_type_error(made: Evaluation, wrong: dict[str, int], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        made.results(**wrong)


def test_mistakes_are_one_sentence(made: Evaluation, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no facet 'lmap'"):
        made.results(by="lmap")
    with pytest.raises(InputError, match="failed: found 'right', expected one of wrong, exclude"):
        made.results(failed="right")
    with pytest.raises(InputError, match="--against 'right' names no run"):
        made.compare(against="right")
    with pytest.raises(InputError, match="found no such file"):
        proctor.results(tmp_path / "none.db")
    with pytest.raises(InputError, match=r"data is missing\. Give the folder with the files of rexsonovqa"):
        proctor.run("rexsonovqa", yes)
    with pytest.raises(InputError, match=r"Nothing to ask\. Give --system NAME"):
        proctor.run(lamps(), store=":memory:")
    with pytest.raises(InputError, match="board: found 'clinical', expected one of technical"):
        made.rank(condition="video", draws=200, stability=20).plot("clinical")


def test_the_default_store_is_that_of_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROCTOR_STORE", raising=False)
    made = proctor.run(lamps(), yes, conditions="text-only", limit=2, baselines=False)
    assert made.store.shown == "proctor.db"
    assert len(proctor.results(draws=200)) == 1
    monkeypatch.setenv("PROCTOR_STORE", str(tmp_path / "other.db"))
    assert proctor.open_store().shown == str(tmp_path / "other.db")


def test_a_store_in_memory_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gc
    import tempfile

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = proctor.run(lamps(), yes, conditions="text-only", limit=2, store=":memory:", baselines=False)
    assert len(list(tmp_path.iterdir())) == 1
    made.store.close()
    del made
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_what_a_notebook_shows_of_a_report_is_short(tmp_path: Path) -> None:
    """A drawing of the first screen is in the summary, and would fill the cell."""
    summary = ReportSummary(tmp_path / "r.html", 1, (), 0, 0, 0, (), Story("<svg>" * 9, ()))
    assert "svg" not in repr(summary)
    assert "r.html" in repr(summary)
    assert repr(Store(tmp_path / "runs.db")) == f"Store({str(tmp_path / 'runs.db')!r})"


def test_without_a_headline_the_first_metric_that_has_values_is_drawn(tmp_path: Path) -> None:
    item = Item(id="q1", group="v", question="?", answer=FreeTextFormat(), reference=Reference(answer="a"))
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(Benchmark("free", "Free", (item,), (ACCURACY,), "accuracy"))
    store.declare_metrics("free", [Metric("clarity", "Clarity")])
    for system in ("a", "b"):
        run = store.start_run("free", system, "video", {})
        score = Score(item_id="q1", metric="clarity", value=0.5, scorer="judge")
        store.write(run, [(Answer(item_id="q1", text="a", parsed="a"), [score])])
    assert "Clarity" in proctor.results(store).plot().axes[0].get_xlabel()
    assert "Clarity" in proctor.compare(store).plot().axes[0].get_xlabel()
    with pytest.raises(InputError, match="metric: found 'accuracy', expected one with values: clarity"):
        proctor.results(store).plot("accuracy")
