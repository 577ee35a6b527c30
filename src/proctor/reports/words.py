"""Numbers and texts as people read them."""

from __future__ import annotations

import re

from proctor.core import Metric
from proctor.runs import BOTH, Comparison, LeaderboardRow, Result

__all__ = [
    "clean",
    "difference",
    "difference_of",
    "dollars",
    "interval",
    "p_value",
    "plain_name",
    "score",
    "seconds",
    "shorten",
    "thousands",
    "value",
]

DASH = "–"
_MINUS = "−"

# Controls that a page can't show, and those that turn the direction of what follows them: an answer
# must not be able to rearrange the page around it.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """A text without control characters: each is shown as the replacement character.

    >>> clean("a\\x00b\\u202ec")
    'a\\ufffdb\\ufffdc'
    """
    return _HIDDEN.sub("\ufffd", text.replace("\r\n", "\n"))


def shorten(text: str, limit: int) -> str:
    """A text of at most `limit` characters, on one line, for places where long ones do not fit.

    >>> shorten("a long  name", 8)
    'a long…'
    """
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def plain_name(name: str) -> str:
    """A tag's name as words.

    >>> plain_name("question_type")
    'question type'
    """
    return clean(name).replace("_", " ")


def value(metric: Metric, number: float | None) -> str:
    """A metric's value; a dash where there is none."""
    return DASH if number is None else metric.show(number).replace("-", _MINUS)


def score(metric: Metric, row: Result | LeaderboardRow) -> str:
    """The value of a row, or its range where the run is incomplete and nothing is decided."""
    if row.policy != BOTH:
        return value(metric, row.value)
    return f"{value(metric, row.if_wrong)} … {value(metric, row.if_excluded)}"


def interval(metric: Metric, low: float | None, high: float | None) -> str:
    """An interval; a dash where it can't be known."""
    if low is None or high is None:
        return DASH
    return f"{_plain(metric, low)} to {_plain(metric, high)}"


def difference(metric: Metric, number: float | None) -> str:
    """A difference with its sign; of percentages in points."""
    if number is None:
        return DASH
    shown = _plain(metric, number)
    sign = "" if shown.startswith(_MINUS) or not shown.strip("0.") else "+"
    return f"{sign}{shown}{' pts' if metric.percent else ''}"


def difference_of(metric: Metric, one: Comparison) -> str:
    """The difference of two runs, or its range where one is incomplete and nothing is decided."""
    if one.policy != BOTH:
        return difference(metric, one.difference.value)
    return f"{difference(metric, one.if_wrong.value)} … {difference(metric, one.if_excluded.value)}"


def p_value(p: float | None) -> str:
    """A p to the precision that it has.

    >>> p_value(0.00004), p_value(0.0312), p_value(1.0), p_value(None)
    ('< 0.001', '0.031', '1.00', '–')
    """
    if p is None:
        return DASH
    if p < 0.001:
        return "< 0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def seconds(number: float) -> str:
    """Seconds, with as many digits as tell something.

    >>> seconds(0.0123), seconds(1.26), seconds(75.2)
    ('0.012', '1.3', '75')
    """
    if number < 0.1:
        return f"{number:.3f}"
    return f"{number:.2f}" if number < 1 else f"{number:.1f}" if number < 20 else f"{number:.0f}"


def thousands(number: int | None) -> str:
    """A whole number in groups of three.

    >>> thousands(1234567)
    '1\\u202f234\\u202f567'
    """
    return DASH if number is None else f"{number:,}".replace(",", "\u202f")


def dollars(number: float) -> str:
    """An amount of US dollars.

    >>> dollars(0.00321), dollars(12.345)
    ('$0.0032', '$12.35')
    """
    return f"${number:.2f}" if number >= 1 else f"${number:.4f}"


def _plain(metric: Metric, number: float) -> str:
    shown = f"{100 * number:.1f}" if metric.percent else f"{number:.2f}"
    if not shown.strip("-0."):
        shown = shown.lstrip("-")
    return shown.replace("-", _MINUS)
