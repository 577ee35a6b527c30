"""The leaderboard of a report, and its finding: what leads, what is said once, and what is no metric."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.core import Answer, FailedPolicy, Metric, Score, Status, Table
from proctor.reports import LeaderboardChart, ReportSummary, Source
from proctor.reports.comparisons import conditions_section
from proctor.reports.completion import spent_words, statuses_section
from proctor.reports.headline import headline_section
from proctor.reports.summary import story_of
from proctor.results import Consumption, Options
from proctor.runs import Store
from tests.support.report_store import HELPFUL, SHARES, a_benchmark, fill

FEW = Options(draws=100)


def charts(source: Source) -> list[LeaderboardChart]:
    return [block for block in headline_section(source).blocks if isinstance(block, LeaderboardChart)]


@pytest.fixture(scope="module")
def source(store: Store) -> Source:
    return Source(store, "toy", FEW)


def test_all_conditions_of_a_system_stand_in_its_row_on_one_axis(source: Source) -> None:
    accuracy, helpful = charts(source)
    assert accuracy.axis.limits == (0.0, 1.0)
    assert helpful.axis.limits == (0.0, HELPFUL.high)
    assert [row.name for row in accuracy.rows] == ["looker", "guesser", "random"]
    for row in accuracy.rows:
        assert [(lane.name, lane.mark) for lane in row.lanes] == [
            ("video", 0), ("text-only", 1), ("black", 2), ("shuffled", 3),
        ]  # fmt: skip
    assert [row.is_baseline for row in accuracy.rows] == [False, False, True]
    assert accuracy.rows[0].lanes[0].score == "88.1 % … 90.2 %"
    assert accuracy.rows[0].lanes[0].is_open  # incomplete: its score is a range, and drawn hollow
    assert not accuracy.rows[1].lanes[0].is_open
    assert re.fullmatch(r"\+\d\d\.\d pts \(.* to .*\)", accuracy.rows[0].lanes[0].beside)
    assert accuracy.rows[0].lanes[1].beside == ""


def test_a_condition_keeps_its_colour_where_it_is_alone(store: Store) -> None:
    (chart, *_) = charts(Source(store, "toy", Options(draws=50, conditions=("text-only",))))
    assert {lane.mark for row in chart.rows for lane in row.lanes} == {1}


def test_what_is_the_same_for_all_is_said_once(source: Source) -> None:
    accuracy, _ = charts(source)
    assert accuracy.caption == "Accuracy on 42 items in 12 groups. Few groups: intervals are wide."
    assert accuracy.rows[0].below == "1 failed"
    assert accuracy.rows[1].below == ""
    assert accuracy.numbers is not None
    heads = [column.label for column in accuracy.numbers.columns]
    assert heads == ["System", "Condition", "Rank", "Rank, 95 % CI", "Accuracy", "95 % CI", "Missing"]


def test_where_nothing_is_missing_no_column_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "whole.db")
    fill(store, a_benchmark(items=3, groups=3), shares={"one": {"video": 0.5}, "two": {"video": 0.9}})
    source = Source(store, "toy", FEW)
    (chart,) = charts(source)
    assert chart.caption.startswith("Accuracy on 3 items in 3 groups, video: ")
    assert " All answered." in chart.caption
    assert chart.numbers is not None
    assert "Missing" not in [column.label for column in chart.numbers.columns]
    completion = statuses_section(source)
    assert completion is not None
    assert (completion.finding, completion.count, len(completion.blocks)) == ("all answered", "", 1)


def test_chance_and_the_best_baseline_are_lines(source: Source) -> None:
    accuracy, _ = charts(source)
    (chance, name), (best, baseline) = accuracy.lines
    assert (chance, name) == (0.25, "chance 25.0 %")
    drawn = [lane.value for row in accuracy.rows if row.is_baseline for lane in row.lanes]
    assert best == max(value for value in drawn if value is not None)
    assert baseline.startswith("best baseline: random ")


CONTRADICTION = Metric(
    "contradiction", "Inconsistent judge ratings", higher_is_better=False, percent=True, formats=("free_text",)
)


@pytest.mark.parametrize("failed", [None, *FailedPolicy])
def test_what_no_judge_saw_is_not_flagged(tmp_path: Path, failed: FailedPolicy | None) -> None:
    """Of three answers of free text one is flagged, one is not, and one failed: it counted as flagged."""
    store, benchmark = Store(tmp_path / "flags.db"), a_benchmark(items=24, groups=8)
    free = [item.id for item in benchmark.items if item.answer.kind == "free_text"]
    assert len(free) == 3
    store.add_benchmark(benchmark)
    store.declare_metrics("toy", [CONTRADICTION])
    run = store.start_run("toy", "one", "video", {})
    for item in benchmark.items:
        status = Status.FAILED if item.id == free[2] else Status.ANSWERED
        scored = zip(free[:2], (1.0, 0.0), strict=True)
        scores = [
            Score(item_id=item.id, metric="contradiction", value=value, scorer="judge")
            for name, value in scored
            if name == item.id
        ]
        store.write(run, [(Answer(item_id=item.id, text="A", parsed="A", status=status), scores)])
    completion = statuses_section(Source(store, "toy", Options(draws=50, failed=failed)))
    assert completion is not None
    flags = completion.blocks[-1]
    assert isinstance(flags, Table)
    assert flags.texts == [["one", "video", "Inconsistent judge ratings", "1 of 2"]]


def test_a_sum_of_costs_says_that_some_are_unknown() -> None:
    """An unknown price was added as nothing."""
    known, unknown = Consumption({}, 3, 9, 9, 0, 0.25, 0, 3), Consumption({}, 3, 9, 9, 0, None, 3)
    assert spent_words([known]) == "$0.2500 in all"
    assert spent_words([known, unknown]) == "at least $0.2500 in all"
    assert spent_words([unknown]) == ""


def test_a_flag_of_the_judge_is_no_metric_and_what_waits_is_a_line(tmp_path: Path) -> None:
    store = Store(tmp_path / "flags.db")
    benchmark = a_benchmark(items=16, groups=8)
    fill(store, benchmark, shares={"one": {"video": 0.5}})
    store.declare_metrics("toy", [CONTRADICTION])
    (run,) = store.runs("toy")
    store.add_scores(run, [Score(item_id="q007", metric="contradiction", value=1.0, scorer="the-judge")])
    waits = store.start_run("toy", "waits", "video", {})
    store.write(waits, [(Answer(item_id=item.id, text="A", parsed="A"), []) for item in benchmark.items])
    source = Source(store, "toy", FEW)
    assert [key.metric for key in source.flags] == ["contradiction"]
    assert "contradiction" not in {key.metric for key in source.keys}
    assert all("Inconsistent" not in chart.caption for chart in charts(source))
    completion = statuses_section(source)
    assert completion is not None
    flags = completion.blocks[-1]
    assert isinstance(flags, Table)
    assert flags.texts == [["one", "video", "Inconsistent judge ratings", "1 of 1"]]
    lines = [getattr(block, "text", "") for block in headline_section(source).blocks]
    assert [line for line in lines if "not scored" in line] == [
        "Helpful (0–2): not scored yet are 2 answers of waits (proctor score scores them)."
    ]


def test_the_finding_is_one_sentence(written: ReportSummary) -> None:
    assert written.story.headline == "looker leads; it does not beat guesser, which sees only the text"


@pytest.mark.parametrize(
    ("shares", "groups", "found"),
    [
        ({"one": {"video": 0.5}}, 12, r"one reaches \d\d\.\d %"),
        ({"random": {"video": 0.25}}, 12, "Only baselines were scored; random is the best of them"),
        (SHARES, 3, "looker has the highest score, but 3 groups are too few to tell systems apart"),
        ({"best": {"video": 1.0}, "last": {"video": 0.0}}, 16, "best leads"),
        (
            {"seer": {"video": 0.95, "text-only": 0.1}, "first-option": {"text-only": 0.9}},
            12,
            r"seer reaches \d\d\.\d %(?: … \d\d\.\d %)?; it does not beat first-option, which sees only the text",
        ),
    ],
)
def test_the_finding_says_who_leads_and_what_that_is_worth(
    shares: dict[str, dict[str, float]], groups: int, found: str, tmp_path: Path
) -> None:
    store = Store(tmp_path / "runs.db")
    fill(store, a_benchmark(groups=groups), shares=shares)
    assert re.fullmatch(found, story_of(Source(store, "toy", FEW)).headline)


@pytest.mark.parametrize(("groups", "finding"), [(3, "a has the lowest score, but 3 groups"), (12, "a reaches")])
def test_of_errors_less_is_better_and_is_not_called_higher(tmp_path: Path, groups: int, finding: str) -> None:
    store = Store(tmp_path / "errors.db")
    error = Metric("error", "Error", higher_is_better=False, low=0.0, high=10.0, formats=("choice",))
    benchmark = replace(a_benchmark(items=24, groups=groups), metrics=(error,), headline="error")
    store.add_benchmark(benchmark)
    for condition, value in (("video", 1.0), ("text-only", 3.0)):
        run = store.start_run("toy", "a", condition, {})
        rows = [
            (
                Answer(item_id=item.id, text="A", parsed="A"),
                [Score(item_id=item.id, metric="error", value=value + row % 2, scorer="code")],
            )
            for row, item in enumerate(benchmark.items)
            if item.answer.kind == "choice"
        ]
        store.write(run, rows)
    source = Source(store, "toy", FEW)
    story = story_of(source)
    assert story.headline.startswith(finding)
    section = conditions_section(source)
    assert section is not None
    if groups > 3:
        assert "the video a scores lower than on the text alone, by −2.00" in story.answers[1].answer
        assert section.finding == "1 of 1 system significantly lower with video"
