"""Agreement as tables: for the organiser's page and for the terminal."""

from __future__ import annotations

from proctor.core import DASH, Cell, Table, number, number_interval, percent, plain_table, seconds
from proctor.stats import Estimate
from proctor.web.agreement import ItemFigures, StudyAgreement

_SHOWN = 20
_ALL = "all"


def agreement_tables(found: StudyAgreement) -> list[Table]:
    """The tables of a study: by dimension, by reader, by two readers, over time, the most disputed and the slowest
    items (20 of each). Tables without rows are left out."""
    dimensions = [
        (
            one.name or _ALL,
            one.percent.n,
            _share(one.percent),
            _figure(one.cohen),
            _figure(one.fleiss),
            _figure(one.ac1),
            _figure(one.alpha),
        )
        for one in found.dimensions
    ]
    readers = [
        (one.reader, one.sealed, _seconds(one.seconds), _share(one.with_others), _share(one.gold))
        for one in found.readers
    ]
    pairs = [(one.first, one.second, one.same.n, _share(one.same)) for one in found.pairs]
    parts = [(_days(one.first, one.last), one.same.n, _share(one.same)) for one in found.parts]
    marks = any(one.kind in ("boxes", "times") for one in found.dimensions)
    tables = [
        plain_table(
            "Agreement by dimension (F1 of marks)" if marks else "Agreement by dimension",
            ("dimension", ">units", ">agreement", ">Cohen's κ", ">Fleiss' κ", ">Gwet's AC1", ">Krippendorff's α"),
            dimensions,
        ),
        plain_table("By reader", ("reader", ">sealed", ">seconds (median)", ">same as others", ">gold right"), readers),
        plain_table("By two readers", ("reader", "and", ">items", ">same"), pairs),
        plain_table("Over time", ("completed", ">pairs", ">same"), parts),
        _items("Most disputed items", found.disputed),
        _items("Slowest items", found.slowest),
    ]
    return [one for one in tables if one.rows]


def _items(title: str, some: tuple[ItemFigures, ...]) -> Table:
    rows = [(one.key, one.group, f"{one.differing} of {one.pairs}", _seconds(one.seconds)) for one in some[:_SHOWN]]
    return plain_table(title, ("item", "group", ">pairs that differ", ">seconds (median)"), rows, wrapped=("item",))


def _seconds(one: float | None) -> Cell:
    return Cell(DASH) if one is None else Cell(seconds(one), raw=one)


def _share(one: Estimate) -> Cell:
    below = "" if one.ci_low is None else f"{percent(one.ci_low)} to {percent(one.ci_high)}"
    return Cell(percent(one.value), below=below, raw=one.value)


def _figure(one: Estimate | None) -> Cell:
    if one is None:
        return Cell(DASH)
    below = "" if one.ci_low is None else number_interval(one.ci_low, one.ci_high, 2)
    return Cell(number(one.value, 2), below=below, raw=one.value)


def _days(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"
