"""Boards as charts: one axis for each metric, chance and the best baseline named, one spelling of titles and results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import proctor_challenge
from proctor.core import read_yaml
from proctor.reports import chart_html
from proctor_challenge.board_charts import BoardText, board_chart, english, in_order

TEXTS = Path(proctor_challenge.__file__).parent / "pages" / "texts"


def row(name: str, mean: float | None, **more: Any) -> dict[str, Any]:
    ends = {"low": None if mean is None else mean - 0.1, "high": None if mean is None else mean + 0.1}
    return {"name": name, "mean": mean, **ends, "baseline": False, "rank": 1, "below_line": None} | more


def board(*rows: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"name": "technical", "title": "All questions", "facts": {"questions": 20, **facts}, "rows": [*rows]}


def drawn(made: dict[str, Any], **more: Any) -> str:
    return chart_html(board_chart(made, in_order(made), BoardText(), **more))


TEAMS = (
    row("Delphinus", 0.402, below_line=False, institution="Clinic"),
    row("Lynx", 0.27, rank=2, below_line=True),
    row("plain", 0.385, rank=None, baseline=True),
    row("letters", 0.2, rank=None, baseline=True),
)


def test_boards_of_one_metric_have_one_axis_whatever_their_values() -> None:
    """0 to 100 %: so no system looks like zero because it is the last."""
    low, high = board(row("a", 0.27), row("b", 0.31)), board(row("a", 0.8), row("b", 0.88))
    axes = [board_chart(one, in_order(one), BoardText()).axis for one in (low, high)]
    assert [axis.limits for axis in axes] == [(0.0, 1.0)] * 2
    assert axes[0].labels == ("0 %", "25 %", "50 %", "75 %", "100 %")
    assert '<svg x="27%"' in drawn(low)


def test_chance_and_the_best_baseline_are_lines_with_their_names() -> None:
    chart = board_chart(made := board(*TEAMS, chance=0.25), in_order(made), BoardText())
    assert chart.lines == ((0.25, "chance 25.0 %"), (0.385, "best baseline: plain 38.5 %"))
    fewer = board(*TEAMS, higher_is_better=False, percent=False)
    assert board_chart(fewer, in_order(fewer), BoardText()).lines == ((0.2, "best baseline: letters 0.200"),)


def test_above_the_baselines_is_a_rule_and_no_finding() -> None:
    html = drawn(board(*TEAMS))
    (delphinus,) = re.findall(r"<li[^>]*>(?:(?!</li>).)*Delphinus.*?</li>", html)
    assert '<span class="badge">passes the gate</span>' in delphinus
    assert html.count("passes the gate") == 1
    assert "above all" not in html


def test_who_may_know_more_sees_more() -> None:
    made = board(row("", 0.4, listed=False, eligible=False, mine=True, announced=True))
    assert "a team that is not listed" in drawn(made)
    assert "not eligible" not in drawn(made)
    for badge in ("not listed", "not eligible for awards", "your team", "announced"):
        assert f'<span class="badge">{badge}</span>' in drawn(made, organiser=True)
    assert 'class="sys mine"' in drawn(made)


def test_a_rank_has_its_interval_only_where_it_is_one_of_the_mean() -> None:
    ranked = row("a", 0.4, rank_low=1, rank_high=3)
    assert "<small>1 to 3</small>" in drawn(board(ranked))
    assert "<small>1 to 3</small>" not in drawn(board(ranked, buckets=["x"]))


def test_an_incomplete_result_is_a_range() -> None:
    html = drawn(board(row("a", None, mean_if_wrong=0.4, mean_if_excluded=0.5)))
    assert "incomplete: 40.0 % to 50.0 %" in html
    assert 'class="dot"' not in html


@pytest.mark.parametrize(
    ("name", "title", "shown"),
    [
        ("technical", "All questions", "Technical leaderboard"),
        ("clinical", "Questions of clinical relevance", "Clinical leaderboard"),
        ("technical", "Kendall's τ", "Kendall's τ"),
        ("speed", "All questions", "speed"),
    ],
)
def test_a_board_has_one_title(name: str, title: str, shown: str) -> None:
    assert BoardText().title({"name": name, "title": title}) == shown


@pytest.mark.parametrize("digits", [2, 3, 4])
def test_a_result_is_spelt_once_for_its_digits(digits: int) -> None:
    how = BoardText(digits=digits)
    assert how.result(0.8405) == {2: "84 %", 3: "84.0 %", 4: "84.05 %"}[digits]
    assert how.interval(0.8083, 0.8791) == {2: "81 to 88", 3: "80.8 to 87.9", 4: "80.83 to 87.91"}[digits]


def test_the_words_of_the_stand_alone_page_are_those_of_the_english_pages() -> None:
    pages = read_yaml(TEXTS / "en.yaml")["board"]
    names = ("mean", "baseline", "yours", "above", "announced", "unlisted", "not_listed", "no_award", "interval")
    assert {name: english(f"board.{name}") for name in names} == {name: pages[name] for name in names}
    for name in ("chance", "best", "incomplete", "range"):
        values = dict.fromkeys(("value", "name", "low", "high"), "x")
        assert english(f"board.{name}", **values) == pages[name].format(**values)
