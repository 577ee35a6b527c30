"""Scoring criteria of free-text answers, with positive or negative points."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import Field, JsonValue, field_validator

from proctor.core.errors import ParseError
from proctor.core.formats.base import MOST_CELL_CHARS, cell_json
from proctor.core.validation import FrozenModel

_LINE = re.compile(
    r"\s*(?:[-*•]\s+)?(?P<points>[-+\u2212]?\d{1,3}(?:[.,]\d{1,2})?)\s?(?:points?|p)?\s?[:)]\s*(?P<text>\S.*)",
    re.DOTALL,
)
_EXPECTED = "criteria as POINTS: TEXT, one a line"
_MOST_POINTS = 1000
_MOST_CRITERIA = 100


class Criterion(FrozenModel):
    """A criterion and the `points` of an answer that meets it: negative for wrong or dangerous statements.

    >>> Criterion(criterion="names the spleen", points=5).tags
    ()
    """

    criterion: str = Field(min_length=1)
    points: float = Field(ge=-_MOST_POINTS, le=_MOST_POINTS)
    tags: tuple[str, ...] = ()

    @field_validator("points")
    @classmethod
    def _worth_something(cls, points: float) -> float:
        if points == 0:
            raise ValueError("a criterion of 0 points changes nothing: expected another number")
        return points


def share_of_points(criteria: Sequence[Criterion], met: Sequence[bool]) -> float:
    """The points of the criteria that are met, divided by the sum of positive points; negative if penalties prevail.

    This is the HealthBench score of one answer (Arora et al. 2025, arXiv:2505.08775). Raises `ValueError` if no
    criterion has positive points, and for unequal lengths.

    >>> three = [Criterion(criterion=name, points=points) for name, points in (("a", 5), ("b", 3), ("c", -4))]
    >>> share_of_points(three, [True, False, False]), share_of_points(three, [False, False, True])
    (0.625, -0.5)
    """
    possible = sum(criterion.points for criterion in criteria if criterion.points > 0)
    if possible <= 0:
        raise ValueError("no criterion has positive points")
    return sum(criterion.points for criterion, is_met in zip(criteria, met, strict=True) if is_met) / possible


def read_criteria(value: JsonValue) -> tuple[Criterion, ...]:
    """Read criteria from a spreadsheet cell or a JSON field.

    Text has one criterion per line, as POINTS: TEXT ("5: names the spleen"). JSON has HealthBench's form: a list of
    objects with `criterion`, `points` and optional `tags`. Raises `ParseError` for anything else, and if no criterion
    has positive points.

    >>> [(found.points, found.criterion) for found in read_criteria("5: names the spleen\\n-3: advises surgery")]
    [(5.0, 'names the spleen'), (-3.0, 'advises surgery')]
    """
    given = value
    if isinstance(value, str):
        given = cell_json(value.strip())
        if given is None:
            lines = [line for line in value[:MOST_CELL_CHARS].splitlines() if line.strip()]
            given = [_of_line(line) for line in lines]
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_CRITERIA:
        raise ParseError(expected=f"{_EXPECTED}, 1 to {_MOST_CRITERIA} of them", found=str(value))
    criteria = tuple(map(_criterion, given))
    if not any(criterion.points > 0 for criterion in criteria):
        raise ParseError(expected="a criterion with positive points", found=str(value))
    return criteria


def _of_line(line: str) -> JsonValue:
    hit = _LINE.fullmatch(line)
    if hit is None:
        raise ParseError(expected=_EXPECTED, found=line)
    points = float(hit["points"].replace("\u2212", "-").replace(",", "."))
    return {"criterion": hit["text"].strip(), "points": points}


def _criterion(value: JsonValue) -> Criterion:
    if not isinstance(value, dict):
        raise ParseError(expected="an object with criterion and points", found=str(value))
    text, points, tags = value.get("criterion"), value.get("points"), value.get("tags", [])
    number = isinstance(points, int | float) and not isinstance(points, bool)
    named = isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)
    if set(value) - {"criterion", "points", "tags"} or not isinstance(text, str) or not text.strip() or not named:
        raise ParseError(expected="an object with criterion (a text), points and tags", found=str(value))
    if not number or not 0 < abs(float(str(points))) <= _MOST_POINTS:
        raise ParseError(expected=f"points from -{_MOST_POINTS} to {_MOST_POINTS}, not 0", found=str(points))
    return Criterion(
        criterion=text.strip(), points=float(str(points)), tags=tuple(map(str, tags if isinstance(tags, list) else ()))
    )
