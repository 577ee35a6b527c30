"""Numbers of an audit as people read them, and the pieces that its sections share."""

from __future__ import annotations

from collections.abc import Iterable

from proctor.core import Metric
from proctor.reports.blocks import Cell, Column, Table
from proctor.reports.words import DASH
from proctor.stats import Contrast, Estimate

__all__ = [
    "PLAIN",
    "Row",
    "columns",
    "contrast_cells",
    "estimate_cells",
    "interval",
    "number",
    "spoken_language",
    "with_reasons",
]

Row = tuple[Cell | str | int, ...]

PLAIN = Metric("plain", "Value", low=-1.0)
"""What axes of plain numbers are drawn for."""

_LANGUAGES = {"en": "English", "zh": "Chinese"}


def number(value: float | None) -> str:
    """Three digits after the point; a dash where there is none.

    >>> number(-0.25), number(-0.0001), number(None)
    ('−0.250', '0.000', '–')
    """
    if value is None:
        return DASH
    shown = f"{value:.3f}"
    return (shown.lstrip("-") if not shown.strip("-0.") else shown).replace("-", "−")


def interval(low: float | None, high: float | None) -> str:
    """An interval; a dash where it can't be known."""
    return DASH if low is None or high is None else f"{number(low)} to {number(high)}"


def estimate_cells(one: Estimate) -> tuple[str, str]:
    """The value and its interval."""
    return number(one.value), interval(one.ci_low, one.ci_high)


def contrast_cells(one: Contrast) -> tuple[Cell, str]:
    """The value, strong where its interval leaves 0 out, and the interval."""
    known = one.ci_low is not None and one.ci_high is not None
    apart = known and not (one.ci_low or 0.0) <= 0 <= (one.ci_high or 0.0)
    shown = number(one.value)
    signed = f"+{shown}" if one.value is not None and shown.strip("0.") and one.value > 0 else shown
    return Cell(signed, strong=apart), interval(one.ci_low, one.ci_high)


def columns(*labels: str) -> tuple[Column, ...]:
    """Columns; a label beginning with ">" is of numbers."""
    return tuple(Column(label.removeprefix(">"), numeric=label.startswith(">")) for label in labels)


def spoken_language(language: str) -> str:
    """A language by its name where it is a known one; '' is all ratings."""
    return _LANGUAGES.get(language, language) or "All ratings"


def with_reasons(caption: str, heads: tuple[Column, ...], rows: Iterable[Row]) -> Table:
    """A table whose last column says why a row has no number; without that column where every row has one."""
    kept = tuple(rows)
    if any(row[-1] for row in kept):
        return Table(caption, heads, kept)
    return Table(caption, heads[:-1], tuple(row[:-1] for row in kept))
