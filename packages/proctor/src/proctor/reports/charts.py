"""The leaderboard of reports, boards and audits: rows of systems, lanes of conditions (or dimensions), one axis.

Rows are HTML, so that texts keep their size; what is drawn has its position in per cent of the axis. No inline style and
no script is needed, so that every content security policy allows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from proctor.core import DASH, Metric, Table, clean, rank_range
from proctor.reports import figures


@dataclass(frozen=True)
class Lane:
    """One line of a row: a condition, dimension or language, or without a `name` the system itself. `mark` is the
    number of its colour and shape (see `figures.marks`). `score` and `ends` are the value and its interval as texts, `beside`
    a remark such as the difference to the first lane. A value that is not final (`is_open`) is drawn hollow."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    mark: int = 0
    score: str = DASH
    ends: str = DASH
    beside: str = ""
    is_open: bool = False


@dataclass(frozen=True)
class ChartRow:
    """One system: its rank with the interval of the rank, what stands below its name, and its lanes, the first of which
    ranks it. A baseline is drawn hollow; `mine` marks the row of who looks at the page."""

    name: str
    lanes: tuple[Lane, ...]
    rank: str = DASH
    rank_ends: str = ""
    below: str = ""
    badges: tuple[str, ...] = ()
    is_baseline: bool = False
    mine: bool = False


@dataclass(frozen=True)
class ChartWords:
    """The words of a chart in the language of its page. `more` counts the lanes that a narrow page folds."""

    score: str = "Score"
    ends: str = "95 % CI"
    beside: str = ""
    more: str = "{count} more"
    less: str = "Fewer"


@dataclass(frozen=True)
class LeaderboardChart:
    """Rows on one axis, with named lines across it (chance, the best baseline), at most two. `numbers` are the same as a
    table, for terminals, programs and readers of tables."""

    caption: str
    axis: figures.Axis
    rows: tuple[ChartRow, ...]
    lines: tuple[tuple[float, str], ...] = ()
    words: ChartWords = ChartWords()
    numbers: Table | None = None


def metric_axis(metric: Metric, *shown: float | None) -> figures.Axis:
    """The axis of a metric: its whole range, whatever the values are, so that charts of one metric can be compared.
    Values outside it (of metrics without bounds) extend it.

    >>> metric_axis(Metric("rubric", "Rubric score", high=2.0), 0.3).labels
    ('0', '0.5', '1.0', '1.5', '2.0')
    >>> from proctor.core import ACCURACY
    >>> metric_axis(ACCURACY).limits, metric_axis(ACCURACY).labels[-1]
    ((0.0, 1.0), '100 %')
    """
    known = [number for number in (metric.low, metric.high, *shown) if number is not None and math.isfinite(number)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    drawn = figures.value_axis(metric, low, high)
    return figures.Axis((low, high) if high > low else drawn.limits, drawn.ticks, drawn.labels, metric)


def rank_ends(rank: int | None, low: int | None, high: int | None) -> str:
    """The interval of a rank, to stand under it: empty where it is the rank itself, or there is none.

    >>> rank_ends(1, 1, 3), rank_ends(3, 3, 3), rank_ends(None, None, None)
    ('1 to 3', '', '')
    """
    return "" if low is None or low == high == rank else rank_range(low, high)


def condition_mark(number: int) -> str:
    """The mark of a condition as inline SVG, in its colour and shape (see `figures.condition_numbers`)."""
    colour = number % figures.MAX_SERIES
    return f'<svg class="mark c{colour}" aria-hidden="true"><svg x="50%" y="50%">{_marker(number)}</svg></svg>'


def chart_html(chart: LeaderboardChart) -> str:
    """The chart as HTML. Every text is escaped; equal charts give equal bytes."""
    named = any(lane.name for row in chart.rows for lane in row.lanes)
    rows = "".join(_row(chart, row, named=named) for row in chart.rows)
    ranked = any(row.rank != DASH for row in chart.rows)
    kind = f"chart{'' if ranked else ' unranked'}{' compared' if chart.words.beside else ''}"
    return (
        f'<div class="{kind}" role="group" aria-label="{_text(chart.caption)}"><ol>{_head(chart)}{rows}</ol>'
        f"{_keys(chart.lines)}</div>"
    )


def _text(text: str) -> str:
    return escape(clean(text).replace("\n", " "))


def _at(axis: figures.Axis, number: float) -> str:
    """A position on the axis, in per cent of its width."""
    return f"{100 * min(1.0, max(0.0, axis.share(number))):.2f}".rstrip("0").rstrip(".") + "%"


def _head(chart: LeaderboardChart) -> str:
    rows = list(zip(chart.axis.ticks, chart.axis.labels, strict=True))
    ticks = "".join(
        f'<text{_minor(number, len(rows))} x="{_at(chart.axis, tick)}" y="1.1rem" '
        f'text-anchor="{_anchor(number, len(rows))}">{_text(label)}</text>'
        for number, (tick, label) in enumerate(rows)
    )
    words = chart.words
    return (
        '<li class="sys axis" aria-hidden="true"><span class="rank"></span><span class="name"></span><div class="lanes">'
        f'<div class="lane"><span class="of"></span><svg class="track">{ticks}</svg><span class="score">'
        f'{_text(words.score)}</span><span class="ends">{_text(words.ends)}</span><span class="beside">'
        f"{_text(words.beside)}</span></div></div></li>"
    )


def _minor(number: int, count: int) -> str:
    """Every second tick has no label where there is little room."""
    return ' class="minor"' if number % 2 and count % 2 else ""


def _anchor(number: int, count: int) -> str:
    return "start" if number == 0 else "end" if number == count - 1 else "middle"


def _row(chart: LeaderboardChart, row: ChartRow, *, named: bool) -> str:
    kinds = ["sys", *(["base"] if row.is_baseline else []), *(["mine"] if row.mine else [])]
    badges = "".join(f' <span class="badge">{_text(badge)}</span>' for badge in row.badges)
    below = f"<small><bdi>{_text(row.below)}</bdi></small>" if row.below else ""
    ends = f"<small>{_text(row.rank_ends)}</small>" if row.rank_ends else ""
    lanes = "".join(_lane(chart, lane, later=number > 0, named=named) for number, lane in enumerate(row.lanes))
    later = len(row.lanes) - 1
    more, less = _text(chart.words.more.format(count=later)), _text(chart.words.less)
    button = (
        f'<button type="button" class="unfold" aria-expanded="false" data-more="{more}" data-less="{less}">{more}</button>'
        if later > 0
        else ""
    )
    return (
        f'<li class="{" ".join(kinds)}"><span class="rank">{_text(row.rank)}{ends}</span><div class="name"><bdi>'
        f'{_text(row.name)}</bdi>{badges}{below}</div><div class="lanes">{lanes}</div>{button}</li>'
    )


def _lane(chart: LeaderboardChart, lane: Lane, *, later: bool, named: bool) -> str:
    number = lane.mark % figures.MAX_SERIES
    sign = (
        f'<svg class="c{number}" aria-hidden="true"><svg x="50%" y="50%">{_marker(lane.mark)}</svg></svg>'
        if named
        else ""
    )
    kinds = ["lane", *(["later"] if later else []), *(["open"] if lane.is_open else [])]
    return (
        f'<div class="{" ".join(kinds)}"><span class="of">{sign}<bdi>{_text(lane.name)}</bdi></span>'
        f'<svg class="track c{number}" aria-hidden="true">{_track(chart, lane)}</svg>'
        f'<span class="score">{_text(lane.score)}</span><span class="ends">{_text(lane.ends)}</span>'
        f'<span class="beside">{_text(lane.beside)}</span></div>'
    )


def _track(chart: LeaderboardChart, lane: Lane) -> str:
    axis = chart.axis
    parts = [_across("tick", _at(axis, tick)) for tick in axis.ticks]
    parts += [_across(f"ref r{row}", _at(axis, at)) for row, (at, _) in enumerate(chart.lines)]
    if lane.value is None:
        return "".join(parts)
    if lane.low is not None and lane.high is not None:
        ends = _at(axis, lane.low), _at(axis, lane.high)
        parts.append(f'<line class="iv" x1="{ends[0]}" x2="{ends[1]}" y1="50%" y2="50%"/>')
    parts.append(f'<svg x="{_at(axis, lane.value)}" y="50%">{_marker(lane.mark)}</svg>')
    return "".join(parts)


def _across(kind: str, at: str) -> str:
    return f'<line class="{kind}" x1="{at}" x2="{at}" y1="0" y2="100%"/>'


def _marker(number: int) -> str:
    """The marker of a series around the origin."""
    kind = figures.series_shape(number)
    if kind == "circle":
        return '<circle class="dot" r="5"/>'
    path = " L ".join(f"{5 * x:.2f} {5 * y:.2f}" for x, y in figures.SHAPES[kind])
    return f'<path class="dot" d="M {path} z"/>'


def _keys(lines: tuple[tuple[float, str], ...]) -> str:
    if not lines:
        return ""
    keys = "".join(
        f'<span><svg aria-hidden="true">{_across(f"ref r{row}", "50%")}</svg>{_text(label)}</span>'
        for row, (_, label) in enumerate(lines)
    )
    return f'<p class="keys">{keys}</p>'
