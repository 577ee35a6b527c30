"""Numbers of results are formatted in one module: `proctor.core.formatting`. No other module that shows results has a format of its
own for percentages, p values, intervals or money."""

from __future__ import annotations

import re

import pytest

from proctor.core import HEADS, dollars, head, p_value, points
from proctor.core.metric import ACCURACY, Metric
from tests.support.paths import CORE, modules, source_name

ROOMS = ("api/", "cli/", "shell/", "reports/", "interchange/", "proctor_challenge/", "proctor_train/", "proctor_web/")
PRIVATE = re.compile(
    r":[+ ]?\.\d%\}"  # f"{share:.0%}"
    r"|\b100 \* [^}]*:[+ ]?\.\d+f\}"  # f"{100 * share:.1f}"
    r"|\bp(?:_holm|_value)?:\.\d+[gf]\}"  # f"{p:.2g}"
    r"|\$\{[^}]*:\.\d+f\}"  # f"${cost:.4f}"
    r"|\b(?:tau|alpha|kappa|agreement|value|score)[\w.\[\]'\"]*:\.[234][fg]\}"  # f"{row.value:.3f}"
)
KNOWN = {
    ("proctor_challenge/opening.py", "100 *"): "points of a rule, in a note for organisers",
    ("reports/charts.py", "100 *"): "a position on an axis, in CSS",
    ("reports/browser.py", ":.4g}"): "one score of one answer, as it is",
    ("reports/analysis.py", "100 *"): "cells of a drawing in percent, as its caption says",
    ("reports/subgroups.py", "100 *"): "cells of a drawing in percent, as its caption says",
    ("reports/figures/matrices.py", "100 *"): "the description of a drawing",
    ("reports/figures/lines.py", "value:"): "the description of a drawing",
    ("cli/report.py", ":.1f}"): "megabytes",
}


def found_in(text: str) -> list[str]:
    return [match.group() for match in PRIVATE.finditer(text)]


def test_nobody_has_a_format_of_their_own() -> None:
    odd = []
    for file in modules().values():
        name = source_name(file)
        if name.startswith(ROOMS):
            odd += [
                (name, one)
                for one in found_in(file.read_text("utf-8"))
                if not any(name == known and part in one for known, part in KNOWN)
            ]
    assert odd == []


@pytest.mark.parametrize(
    "line", ['f"{rate:.0%}"', 'f"{100 * share:.1f} %"', 'f"{p:.2g}"', 'f"${usage.cost_usd:.4f}"', 'f"{row.value:.3f}"']
)
def test_private_formats_are_seen(line: str) -> None:
    assert found_in(line)


def test_p_has_two_digits_that_count() -> None:
    shown = [p_value(p) for p in (0.00099, 0.001, 0.00124, 0.00994, 0.00996, 0.051, 0.0996, 0.5, 1.0)]
    assert shown == ["< 0.001", "0.0010", "0.0012", "0.0099", "0.010", "0.051", "0.10", "0.50", "1.00"]


def test_a_small_cost_is_not_shown_as_nothing() -> None:
    assert [dollars(cost) for cost in (0, 0.00004, 0.0021, 3.5)] == ["$0", "< $0.0001", "$0.0021", "$3.50"]


def test_a_difference_stands_with_its_interval() -> None:
    level = Metric("level", "Level", high=2.0)
    assert points(ACCURACY, 0.108, 0.012, 0.195) == "+10.8 pts (1.2 to 19.5)"
    assert points(level, -0.25, -0.5, 0.0) == "−0.25 (−0.50 to 0.00)"


def test_heads_are_of_one_table() -> None:
    """No column is called by two names: heads of results stand nowhere else in the rooms that show them."""
    assert head("ci", 0.9).label == "90 % CI"
    others = (
        "95 % interval",
        "Pre-evaluation score",
        "rank interval",
        "Places in samples",
        "First in samples",
        "p holm",
    )
    for room in ("api", "cli", "shell", "reports"):
        for file in (CORE / room).rglob("*.py"):
            text = file.read_text("utf-8")
            assert [name for name in others if f'"{name}"' in text or f'">{name}"' in text] == [], file
    assert len(set(HEADS.values())) >= len(HEADS) - 1  # the share of first ranks has two keys, one in each ranking
