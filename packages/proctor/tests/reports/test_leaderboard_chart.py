"""The one leaderboard of reports, boards and audits: its axis, its rows, its lanes, and that nothing gets out of it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from proctor.core import ACCURACY, Metric
from proctor.reports import ChartRow, ChartWords, Lane, LeaderboardChart, chart_html, condition_numbers, metric_axis

HOSTILE = '<script>alert("1")</script>\u202e'


def chart(*rows: ChartRow, metric: Metric = ACCURACY, **more: object) -> str:
    return chart_html(LeaderboardChart("Accuracy.", metric_axis(metric), rows, **more))  # type: ignore[arg-type]


def ranks(html: str, kind: str) -> list[float]:
    """Where the elements of a class begin, in per cent of the axis."""
    return [float(at) for at in re.findall(rf'<line class="{kind}" x1="([\d.]+)%"', html)]


@pytest.mark.parametrize(
    ("metric", "ends", "labels"),
    [
        (ACCURACY, (0.0, 1.0), ("0 %", "25 %", "50 %", "75 %", "100 %")),
        (Metric("rubric", "Rubric", high=2.0), (0.0, 2.0), ("0", "0.5", "1.0", "1.5", "2.0")),
        (Metric("tau", "Tau", low=-1.0), (-1.0, 1.0), ("−1.0", "−0.5", "0", "0.5", "1.0")),
        (Metric("seconds", "Seconds", high=float("inf")), (0.0, 40.0), ("0", "10", "20", "30", "40")),
    ],
)
def test_the_axis_is_the_metrics_and_not_the_datas(
    metric: Metric, ends: tuple[float, float], labels: tuple[str, ...]
) -> None:
    """Two tables of one metric can be laid side by side, whatever stands in them."""
    shown = (40.0,) if metric.name == "seconds" else (0.42, 0.44)
    axis = metric_axis(metric, *shown)
    assert (axis.limits, axis.labels) == (ends, labels)


def test_values_stand_in_per_cent_of_the_axis() -> None:
    html = chart(ChartRow("a", (Lane("", 0.663, 0.589, 0.734),)), lines=((0.25, "chance 25.0 %"), (0.767, "best")))
    assert ranks(html, "tick") == [0, 25, 50, 75, 100]
    assert ranks(html, "ref r0")[:1] == [25]
    assert ranks(html, "ref r1")[:1] == [76.7]
    assert re.findall(r'<line class="iv" x1="([\d.]+)%" x2="([\d.]+)%"', html) == [("58.9", "73.4")]
    assert '<svg x="66.3%" y="50%"><circle class="dot" r="5"/></svg>' in html
    assert "chance 25.0 %" in html


def test_what_lies_beyond_the_axis_is_drawn_at_its_end() -> None:
    html = chart(ChartRow("a", (Lane("", 0.98, 0.9, 1.2),)))
    assert 'x1="90%" x2="100%"' in html


def test_a_value_without_an_interval_has_none_and_no_value_has_no_dot() -> None:
    assert 'class="iv"' not in chart(ChartRow("a", (Lane("", 0.5),)))
    none = chart(ChartRow("a", (Lane("", None, score="no score"),)))
    assert 'class="dot"' not in none
    assert "no score" in none


def test_each_condition_has_its_colour_and_shape_and_the_others_unfold() -> None:
    lanes = (Lane("video", 0.6), Lane("text-only", 0.4, mark=1), Lane("black", 0.3, mark=2, is_open=True))
    html = chart(ChartRow("a", lanes, "1", "1 to 2"), words=ChartWords(more="{count} more conditions"))
    assert re.findall(r'class="track c(\d)"', html) == ["0", "1", "2"]
    assert html.count('class="lane later') == 2
    assert 'class="lane later open"' in html
    assert 'aria-expanded="false" data-more="2 more conditions"' in html
    assert "unfold" not in chart(ChartRow("a", lanes[:1]))
    shapes = set(re.findall(r'(?:<path class="dot" d="[^"]+"|<circle class="dot")', html))
    assert len(shapes) == 3


def test_conditions_have_the_same_scores_in_every_report() -> None:
    assert condition_numbers(["video", "text-only"]) == {"video": 0, "text-only": 1}
    assert condition_numbers(["text-only"]) == {"text-only": 1}  # blue stays the video's


def test_every_text_is_escaped_and_nothing_needs_a_looser_policy() -> None:
    row = ChartRow(HOSTILE, (Lane(HOSTILE, 0.5, score=HOSTILE, ends=HOSTILE, beside=HOSTILE), Lane(HOSTILE, 0.1)),
                   HOSTILE, HOSTILE, HOSTILE, (HOSTILE,))  # fmt: skip
    html = chart(row, lines=((0.1, HOSTILE),), words=ChartWords(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE))
    assert "<script" not in html
    assert "\u202e" not in html
    root = ElementTree.fromstring(html)
    for element in root.iter():
        assert element.tag in {
            "div", "ol", "li", "span", "small", "bdi", "svg", "line", "path", "circle", "text", "button", "p",
        }  # fmt: skip
        assert not any(name == "style" or name.startswith("on") for name in element.attrib)


def test_equal_charts_give_equal_bytes() -> None:
    row = ChartRow("a", (Lane("", 1 / 3, 0.1, 2 / 3),))
    assert chart(row) == chart(row)
    assert "33.33%" in chart(row)
