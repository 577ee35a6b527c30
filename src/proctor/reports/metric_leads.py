"""Leads of metrics over those that were named beforehand, and the power to tell two apart, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.audits import AS_GIVEN, LeadRow, Part, PowerTable
from proctor.core import DASH, Cell, Row, Table, columns, number, p_value
from proctor.reports.metric_agreement import (
    REASON,
    contrast_cells,
    dimension_name,
    ends_of,
    spoken_language,
    with_reasons,
)

_NESTED: tuple[Part, ...] = ("between", "within")
_Rows = dict[tuple[str, str, Part], LeadRow]


def lead_tables(rows: Sequence[LeadRow]) -> list[Table]:
    """Of each language: leads over each metric on the mean over its dimensions, between and within groups, what ties are
    worth, and by dimension. Metrics stand in the order of their figures; a lead is strong where it is above 0 by the
    adjusted test. Tables are narrow: none needs more than a terminal's 80 columns, names of metrics aside."""
    found = []
    for language in dict.fromkeys(row.language for row in rows):
        own = {(row.metric, row.dimension, row.part): row for row in rows if row.language == language}
        whole = [row for (_, dimension, part), row in own.items() if (dimension, part) == ("", "all")]
        ordered = sorted(whole, key=lambda row: (row.figure.value is None, -(row.figure.value or 0.0)))
        over = list(dict.fromkeys(one.over for row in ordered for one in row.leads))
        found += [_means(language, ordered, one) for one in over]
        found += [_part(language, ordered, own, part, over) for part in _NESTED]
        found.append(_ties(language, ordered, own))
        dimensions = [one for one in dict.fromkeys(dimension for _, dimension, _ in own) if one]
        if len(dimensions) > 1:
            found.append(_by_dimension(language, ordered, own, dimensions, ""))
            found += [_by_dimension(language, ordered, own, dimensions, one) for one in over]
    return found


def _lead_cell(row: LeadRow, over: str) -> Cell:
    """A dash for the metric that the others are compared with."""
    one = next((one for one in row.leads if one.over == over), None)
    if one is None:
        return Cell(DASH)
    shown = contrast_cells(one.difference)[0]
    return Cell(shown.text, strong=one.significant, raw=shown.raw)


def _means(language: str, ordered: Sequence[LeadRow], over: str) -> Table:
    found: list[Row] = []
    for row in ordered:
        one = next((one for one in row.leads if one.over == over), None)
        ends, p = (DASH, DASH) if one is None else (ends_of(one.difference), p_value(one.p_holm))
        figure = Cell(number(row.figure.value), raw=row.figure.value)
        found.append((Cell(row.metric), figure, ends_of(row.figure), _lead_cell(row, over), ends, p, row.reason))
    title = f"{spoken_language(language)}: agreement, and leads over {over}"
    caption = f"{title}, mean over the dimensions. Bold: ahead, where the adjusted p is at most 0.05."
    heads = columns("Metric", ">Mean", ">95 % CI", ">Lead", ">95 % CI", ">p (Holm)", REASON)
    return with_reasons(caption, heads, found, title=title)


def _part(language: str, ordered: Sequence[LeadRow], own: _Rows, part: Part, over: Sequence[str]) -> Table:
    """Figures and leads between groups, or within them."""
    found: list[Row] = []
    for row in ordered:
        there = own[row.metric, "", part]
        figure = Cell(number(there.figure.value), raw=there.figure.value)
        found.append((Cell(row.metric), figure, ends_of(there.figure), *(_lead_cell(there, one) for one in over)))
    what = "of the groups' means" if part == "between" else "of what differs within groups"
    title = f"{spoken_language(language)}: agreement {part} groups"
    heads = columns("Metric", ">Pearson's r", ">95 % CI", *(f">over {one}" for one in over))
    return Table(f"{title}: Pearson's r {what}, and leads.", heads, tuple(found), title=title)


def _ties(language: str, ordered: Sequence[LeadRow], own: _Rows) -> Table:
    found: list[Row] = []
    for row in ordered:
        tied = own[row.metric, "", "tied"]
        worth, ends = contrast_cells(tied.lead(AS_GIVEN).difference)
        given, after = (Cell(number(one.figure.value), raw=one.figure.value) for one in (row, tied))
        found.append((Cell(row.metric), given, after, Cell(worth.text, raw=worth.raw), ends))
    title = f"{spoken_language(language)}: what ties are worth"
    caption = f"{title}. Tied: the same scores, made to tie as often as the ratings do."
    return Table(caption, columns("Metric", ">As given", ">Tied", ">Difference", ">95 % CI"), tuple(found), title=title)


def _by_dimension(language: str, ordered: Sequence[LeadRow], own: _Rows, dimensions: Sequence[str], over: str) -> Table:
    """Figures by dimension, or leads over one metric."""
    found: list[Row] = []
    for row in ordered:
        cells = [own[row.metric, dimension, "all"] for dimension in dimensions]
        shown = [
            _lead_cell(one, over) if over else Cell(number(one.figure.value), raw=one.figure.value) for one in cells
        ]
        found.append((Cell(row.metric), *shown))
    what = f"leads over {over}" if over else "agreement"
    title = f"{spoken_language(language)}: {what} by dimension"
    heads = columns("Metric", *(f">{dimension_name(one)}" for one in dimensions))
    return Table(f"{title}.", heads, tuple(found), title=title)


def power_tables(found: PowerTable) -> list[Table]:
    """Of each language the chance to find a lead by number of groups."""
    made = []
    for language in dict.fromkeys(row.language for row in found.rows):
        rows: list[Row] = [
            (
                f"{number(row.lead)} (observed)" if row.observed else number(row.lead),
                "2" if row.seconds else "1",
                *(f"{chance:.0%}" for chance in row.chances),
                DASH if row.needed is None else Cell(f"{row.needed:,}", raw=row.needed),
            )
            for row in found.rows
            if row.language == language
        ]
        title = f"{spoken_language(language)}: chance to tell {found.first} from {found.second}"
        heads = columns("True lead", ">Ratings", *(f">{size:,} groups" for size in found.plan.sizes), ">80 % with")
        made.append(Table(f"{title}, two-sided test at {found.plan.level:g}.", heads, tuple(rows), title=title))
    return made
