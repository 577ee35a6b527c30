"""Cells that say where and when the answer to a question is visible."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from proctor.core import MOST_EVIDENCE, EvidenceBox, EvidenceWindow, ParseError, count_of, first_problem, is_empty
from proctor.tasks.questions.cells import seconds_of, texts_of, undirected

T = TypeVar("T", EvidenceWindow, EvidenceBox)

_TIMES = re.compile(r"([\d:.,]{1,20})\s*(?:s\s*)?(?:-|–|—|to|bis)\s*([\d:.,]{1,20})\s?s?", re.IGNORECASE)
_MEDIUM = re.compile(r"#(\d{1,3})\s+")
_SIDE = r"(\d{0,2}\.?\d{1,9})"
_BOX = re.compile(rf"{_SIDE}[,\s]+{_SIDE}[,\s]+{_SIDE}[,\s]+{_SIDE}(?:\s*@\s*(.{{1,50}}))?")
_WINDOW = 'a window as "12-15.5" or "1:05-1:10", before it "#2 " for the second medium'
_BOXES = 'a box as "x, y, width, height @ 12-15.5" in fractions of the picture (a still image has no times)'


def windows_of(cell: Any, *, decimal_comma: bool) -> tuple[EvidenceWindow, ...]:
    """The windows in a cell: "12-15.5; 1:05-1:10", "#2 3-4" of the second medium, or a list of objects.

    Raises `ParseError` for anything else.

    >>> windows_of("12-15.5; #2 1:05-1:10", decimal_comma=False)
    (EvidenceWindow(medium=0, start=12.0, end=15.5), EvidenceWindow(medium=1, start=65.0, end=70.0))
    """

    def read(text: str) -> dict[str, Any]:
        return _times(text, _WINDOW, decimal_comma=decimal_comma)

    return _entries(cell, EvidenceWindow, read)


def boxes_of(cell: Any, *, decimal_comma: bool) -> tuple[EvidenceBox, ...]:
    """The boxes in a cell: "0.1, 0.2, 0.3, 0.4 @ 12-15.5" (left, top, width and height in fractions of the picture, with a
    decimal point; of a still image without times), "#2 …" of the second medium, or a list of objects.

    Raises `ParseError` for anything else.

    >>> boxes_of("#2 0.1 0.2 0.3 0.4", decimal_comma=False)[0].medium
    1
    """

    def read(text: str) -> dict[str, Any]:
        hit = _BOX.fullmatch(text)
        if hit is None:
            raise ParseError(expected=_BOXES, found=text)
        sides = dict(zip(("x", "y", "width", "height"), map(float, hit.groups()[:4]), strict=True))
        return sides | (_times(hit[5], _BOXES, decimal_comma=decimal_comma) if hit[5] else {})

    return _entries(cell, EvidenceBox, read)


def _entries(cell: Any, made: type[T], read: Callable[[str], dict[str, Any]]) -> tuple[T, ...]:
    if is_empty(cell):
        return ()
    objects = isinstance(cell, list) and all(isinstance(one, Mapping) for one in cell)
    entries = cell if objects else texts_of(undirected(cell))
    if len(entries) > MOST_EVIDENCE:
        raise ParseError(expected=f"at most {MOST_EVIDENCE:,} of them", found=count_of(len(entries), "entry"))
    if objects:
        return tuple(_made(made, dict(one), str(one)) for one in cell)
    found = []
    for text in entries:
        medium = _MEDIUM.match(text)
        if medium is not None and int(medium[1]) < 1:
            raise ParseError(expected="the number of a medium from 1 on", found=text)
        fields = read(text[medium.end() :] if medium else text)
        found.append(_made(made, fields | ({"medium": int(medium[1]) - 1} if medium else {}), text))
    return tuple(found)


def _times(text: str, expected: str, *, decimal_comma: bool) -> dict[str, Any]:
    hit = _TIMES.fullmatch(text.strip())
    if hit is None:
        raise ParseError(expected=expected, found=text)
    start, end = (seconds_of(time, decimal_comma=decimal_comma) for time in hit.groups())
    return {"start": start, "end": end}


def _made(made: type[T], fields: dict[str, Any], text: str) -> T:
    try:
        return made.model_validate(fields)
    except ValidationError as error:
        problem = first_problem(error)
        raise ParseError(expected=problem.expected, found=text) from error
