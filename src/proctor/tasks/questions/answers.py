"""The answer format of each question, declared or guessed from its reference, and the reference in that format."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, get_args

from pydantic import JsonValue, TypeAdapter, ValidationError

from proctor.core import ParseError, cell_text, one_of, read_criteria
from proctor.core.formats import AnswerFormat, QuantityFormat, option_letters
from proctor.tasks.questions.cells import letter_of, texts_of
from proctor.tasks.questions.columns import plain
from proctor.tasks.questions.settings import Settings

KINDS: Mapping[str, tuple[str, ...]] = {
    "choice": ("choice", "multiple choice", "mcq", "single choice", "option"),
    "binary": ("binary", "yes no", "yesno", "boolean", "bool", "true false"),
    "count": ("count", "whole number", "integer"),
    "percentage": ("percentage", "percent"),
    "quantity": ("quantity", "number", "numeric", "float", "measurement"),
    "timestamps": ("timestamps", "timestamp", "time", "moment"),
    "intervals": ("intervals", "interval", "segment", "segments", "span"),
    "ordering": ("ordering", "order", "sequence"),
    "choices": ("choices", "several", "multi select", "multiple answers", "set"),
    "boxes": ("boxes", "box", "bounding box", "bounding boxes"),
    "point": ("point", "location"),
    "short_text": ("short_text", "short text", "short answer", "exact text"),
    "free_text": ("free_text", "free", "text", "open", "open ended"),
}
"""The formats that need no more than a name, with the names that people use."""

SHOWN: Mapping[str, str] = {
    "choice": "choice",
    "binary": "yes or no",
    "count": "whole number",
    "percentage": "percentage",
    "quantity": "number",
    "timestamps": "time",
    "intervals": "interval",
    "ordering": "order",
    "choices": "several of the options",
    "short_text": "short text",
    "free_text": "free text",
}

EVERY_KIND = tuple(str(one.model_fields["kind"].default) for one in get_args(get_args(AnswerFormat)[0]))
"""Every format's name; those that are not in `KINDS` need options of their own (`formats` in `benchmark.yaml`)."""

_FORMAT: TypeAdapter[AnswerFormat] = TypeAdapter(AnswerFormat)
_YES = {"yes", "y", "true", "ja", "oui", "sí", "si", "sim", "да", "是", "نعم", "כן"}
_NO = {"no", "n", "false", "nein", "non", "não", "nee", "нет", "否", "لا", "לא"}
_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_PERCENT = re.compile(r"\d{1,3}(?:\.\d+)?\s?%", re.ASCII)
_QUANTITY = re.compile(r"[-+]?\d{1,9}(?:[.,]\d{1,9})?\s?(?P<unit>[^\s\d].{0,15})?", re.ASCII)
_TOLERANCE = re.compile(r"[±+]?\s?(\d{1,9}(?:[.,]\d{1,9})?)\s?(%)?", re.ASCII)
_CLOCK = re.compile(r"(?:\d{1,3}:)?\d{1,2}:\d{2}(?:\.\d+)?", re.ASCII)
_SPAN = re.compile(rf"(?:{_CLOCK.pattern})\s?(?:-|–|to|bis)\s?(?:{_CLOCK.pattern})", re.ASCII)
_MARKS = re.compile(r"\s*(?:->|[>,;\s])\s*")


def declared_format(name: str, settings: Settings, options: Sequence[str], labels: Sequence[str]) -> AnswerFormat:
    """The format of this name: one of the settings, or a kind. Raises `ParseError` for a name that is neither, and for a
    kind that needs more than a question has."""
    if name in settings.formats:
        return settings.formats[name]
    for kind in EVERY_KIND:
        if plain(name) in {plain(one) for one in (kind, *KINDS.get(kind, ()))}:
            return _built(kind, settings, options, labels)
    raise ParseError(expected=one_of([*settings.formats, *EVERY_KIND], name), found=name)


def guessed_format(cell: Any, settings: Settings, options: Sequence[str], labels: Sequence[str]) -> AnswerFormat:
    """The format that a reference has the form of; `labels` are those of the pictures, where there are several."""
    text = cell_text(cell)
    named = _labels_in(text, option_letters(len(options)) or labels)
    if len(options) > 1:
        kind = "ordering" if len(named) == len(options) else "choices" if len(named) > 1 else "choice"
    elif isinstance(cell, bool) or text.casefold() in _YES | _NO:
        kind = "binary"
    elif isinstance(cell, dt.time | dt.timedelta) or all(_CLOCK.fullmatch(part) for part in texts_of(text)):
        kind = "timestamps"
    elif all(_SPAN.fullmatch(part) for part in texts_of(text)):
        kind = "intervals"
    elif _COUNT.fullmatch(text):
        kind = "count"
    elif _PERCENT.fullmatch(text):
        kind = "percentage"
    elif (quantity := _QUANTITY.fullmatch(text)) and (found := _in_unit(quantity["unit"] or "", settings)):
        return found
    else:
        kind = "ordering" if len(labels) > 1 and len(named) == len(labels) else "free_text"
    return _built(kind, settings, options, labels, several=len(texts_of(text)) > 1)


def adjusted_format(answer: AnswerFormat, settings: Settings, tolerance: str = "", unit: str = "") -> AnswerFormat:
    """The format with a tolerance and a unit of its own ("": none is given); a whole number in a unit is a quantity.
    Raises `ParseError` where the format has none, and for what is no tolerance and no unit."""
    if unit and answer.kind not in {"count", "quantity"}:
        raise ParseError(expected=f"no unit: the answer is a {SHOWN.get(answer.kind, answer.kind)}", found=unit)
    kind = "quantity" if unit else answer.kind
    fields: dict[str, Any] = {"tolerance": settings.tolerances.get(kind, 0.0)}
    fields = (answer.model_dump() if kind == answer.kind else fields) | {"kind": kind}
    fields |= {"unit": unit} if unit else {}
    fields |= _tolerance(tolerance, kind) if tolerance else {}
    try:
        return _FORMAT.validate_python(fields)
    except ValidationError as error:
        lacks = f"no tolerance: the format {answer.kind} has none"
        expected = lacks if error.errors()[0]["type"] == "extra_forbidden" else error.errors()[0]["msg"]
        raise ParseError(expected=expected, found=tolerance or unit) from None


def _tolerance(text: str, kind: str) -> dict[str, float]:
    hit = _TOLERANCE.fullmatch(text)
    if hit is None:
        raise ParseError(expected="a number, such as 0.5 or 5 %", found=text)
    number = float(hit[1].replace(",", "."))
    return {"relative": number / 100} if hit[2] and kind == "quantity" else {"tolerance": number}


def is_unit(text: str) -> bool:
    """Whether a text is a unit that numbers can be in.

    >>> is_unit("mm"), is_unit("ICU")
    (True, False)
    """
    try:
        return bool(text) and bool(QuantityFormat(unit=text).unit)
    except (ValidationError, ParseError):
        return False


def are_criteria(cell: Any) -> bool:
    """Whether a cell holds criteria.

    >>> are_criteria("5: names the spleen"), are_criteria("inclusion")
    (True, False)
    """
    try:
        return bool(read_criteria(cell))
    except ParseError:
        return False


def _in_unit(unit: str, settings: Settings) -> QuantityFormat | None:
    """The format of a number in a unit; None for a word that is no unit."""
    try:
        return QuantityFormat(unit=unit, tolerance=settings.tolerances.get("quantity", 0.0))
    except (ValidationError, ParseError):
        return None


def _labels_in(text: str, labels: Sequence[str]) -> list[str]:
    """The labels, where a text is nothing but different ones of them."""
    parts = [part.strip("()[].") for part in _MARKS.split(text.strip()) if part]
    known = {label.casefold(): label for label in labels}
    found = [known[part.casefold()] for part in parts if part.casefold() in known]
    return found if len(found) == len(parts) == len(set(found)) else []


def _built(
    kind: str, settings: Settings, options: Sequence[str], labels: Sequence[str], *, several: bool = False
) -> AnswerFormat:
    if kind == "choice" and len(options) < 2:
        raise ParseError(expected="two or more options for a choice", found=f"{len(options)} options")
    listed: tuple[str, ...] = ()
    if kind == "ordering":
        listed = tuple(option_letters(len(options)) or labels)
    elif kind == "classes":
        listed = tuple(options)
    return _format(kind, listed, settings.tolerances.get(kind), several)


@lru_cache(maxsize=1024)
def _format(kind: str, listed: tuple[str, ...], tolerance: float | None, several: bool) -> AnswerFormat:
    """Raises `ParseError` where a format needs more than that."""
    fields: dict[str, Any] = {"kind": kind}
    fields |= {"labels": listed} if kind == "ordering" else {"classes": listed} if kind == "classes" else {}
    fields |= {"several": several} if kind in {"timestamps", "intervals"} else {}
    fields |= {} if tolerance is None else {"tolerance": tolerance}
    try:
        return _FORMAT.validate_python(fields)
    except ValidationError as error:
        needed = {"ordering": "options, or several pictures, to put in order", "classes": "options"}
        raise ParseError(expected=needed.get(kind, error.errors()[0]["msg"]), found=f"the format {kind}") from None


def reference_of(answer: AnswerFormat, cell: Any, options: Sequence[str]) -> tuple[JsonValue, ...]:
    """The right answer in canonical form, and further ones that count as right. Raises `ParseError` where a cell states
    none."""
    text = cell_text(cell)
    if answer.kind == "choice":
        return tuple(dict.fromkeys(letter_of(part.strip(), options) for part in text.split("|")))
    if answer.kind == "choices" and (named := _labels_in(" ".join(texts_of(cell)), option_letters(len(options)))):
        return answer.read_reference([*named], options)
    if answer.kind == "binary" and text.casefold() in _YES | _NO:
        return answer.read_reference(text.casefold() in _YES, options)
    if isinstance(cell, bool | int | list | dict) and not answer.any_text:
        return answer.read_reference(cell, options)
    return answer.read_reference(text, options)
