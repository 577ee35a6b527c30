"""What a score means: calibration curves, and the scores that each rating gets."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.audit import Calibration, Portrait
from proctor.reports.audits.cells import Row, columns, estimate_cells, interval, number, spoken_language
from proctor.reports.audits.figures import Curve, draw_curves
from proctor.reports.audits.source import AuditSource
from proctor.reports.blocks import Block, Cell, Figure, Folded, Section, Table
from proctor.reports.figures import Box, BoxPanel, Dot, draw_boxes, plain_axis
from proctor.reports.words import plain_name

__all__ = ["calibration_section"]


def calibration_section(source: AuditSource) -> Section:
    """Per language the best metric's curves and boxes; those of the others are folded."""
    blocks: list[Block | str] = []
    portraits = {one.metric: one for one in source.found.portraits}
    order = {name: place for place, name in enumerate(portraits)}
    for number_, language in enumerate(source.languages):
        blocks.append(spoken_language(language))
        first, *others = source.ranked(language)
        shown = {
            name: _of_metric(source, portraits[name], language, f"meaning-{number_}-{order[name]}")
            for name in (first, *others)
        }
        blocks += shown[first]
        blocks += [Folded(name, tuple(shown[name])) for name in others]
    return Section(
        key="calibration",
        title="What a score means",
        lead="Answers in bins of about as many, by their score: each dot is the mean rating of a bin, at its mean score, "
        f"with the {source.level} interval. A line that rises steadily says that the score can be read; a flat one "
        "that it says nothing there. Below, the other way round: the scores that answers of each rating got.",
        blocks=blocks,
    )


def _of_metric(source: AuditSource, portrait: Portrait, language: str, key: str) -> list[Block]:
    own = [one for one in portrait.calibration if one.language == language]
    name = f"{portrait.metric}, {spoken_language(language)}"
    found: list[Block] = [_curves(own, name, f"{key}-bins")]
    # Scores of what is better when it is lower lie elsewhere: on one axis with the others they would squeeze them.
    turned = source.table.lower_is_better
    for place, part in enumerate(
        [one for one in own if (one.dimension in turned) == apart] for apart in (False, True)
    ):
        if any(one.levels for one in part):
            found.append(_boxes(part, name, f"{key}-levels-{place}"))
    return found


def _curves(own: Sequence[Calibration], name: str, key: str) -> Figure:
    ratings = [level for one in own for level in one.levels]
    low = min((level.low for level in ratings), default=0.0)
    high = max((level.high for level in ratings), default=1.0)
    curves = [
        Curve(
            plain_name(one.dimension),
            [part.score for part in one.bins],
            [Dot(part.rating.value, part.rating.ci_low, part.rating.ci_high) for part in one.bins],
            empty=one.reason,
        )
        for one in own
    ]
    axis = plain_axis(low, max(high, low + 1e-9), lines=4)
    title = f"{name}: mean rating by score"
    drawn = draw_curves(key, title, curves, axis, ("score", "mean rating"))
    rows: list[Row] = [
        (
            Cell(plain_name(one.dimension)),
            interval(part.low, part.high),
            number(part.score),
            *estimate_cells(part.rating),
            part.rating.n,
            part.rating.groups,
        )
        for one in own
        for part in one.bins
    ]
    heads = columns(
        *("Dimension", ">Scores", ">Mean score", ">Mean rating", ">Interval", ">Ratings", ">Groups")
    )
    return Figure(drawn, f"{title}.", Table("Bins of scores.", heads, tuple(rows)))


def _boxes(own: Sequence[Calibration], name: str, key: str) -> Figure:
    known = [one for one in own if one.levels]
    levels = sorted({(level.low, level.high) for one in known for level in one.levels})
    names = [_level(low, high) for low, high in levels]
    panels = []
    for one in known:
        by_name = {
            _level(level.low, level.high): Box(level.least, level.q1, level.median, level.q3, level.most)
            for level in one.levels
        }
        panels.append(BoxPanel(plain_name(one.dimension), [by_name.get(row) for row in names]))
    ends = [end for panel in panels for box in panel.boxes if box is not None for end in (box.low, box.high)]
    axis = plain_axis(min(ends), max(*ends, min(ends) + 1e-9))
    title = f"{name}: scores by rating"
    drawn = draw_boxes(key, title, [f"rated {row}" for row in names], panels, axis)
    caption = f"{title}. Boxes are quartiles, a thick line the median, whiskers the middle 90 %."
    rows: list[Row] = [
        (
            Cell(plain_name(one.dimension)),
            _level(level.low, level.high),
            *(number(value) for value in (level.mean, level.least, level.q1, level.median, level.q3)),
            number(level.most),
            level.n,
        )
        for one in known
        for level in one.levels
    ]
    heads = columns(
        *("Dimension", "Rating", ">Mean score", ">5 %", ">Quartile", ">Median", ">Quartile", ">95 %"),
        ">Ratings",
    )
    return Figure(drawn, caption, Table("Scores by rating.", heads, tuple(rows)))


def _level(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
