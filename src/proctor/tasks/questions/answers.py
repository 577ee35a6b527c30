"""The answer format of each question, declared or guessed from its reference, and the reference in that format."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from proctor.core import ParseError, cell_text, one_of
from proctor.core.formats import AnswerFormat, option_letters
from proctor.tasks.questions.cells import letter_of, texts_of
from proctor.tasks.questions.columns import plain
from proctor.tasks.questions.settings import Settings

KINDS: Mapping[str, tuple[str, ...]] = {
    "choice": ("choice", "multiple choice", "mcq", "single choice", "option"),
    "binary": ("binary", "yes no", "yesno", "boolean", "bool", "true false"),
    "count": ("count", "whole number", "integer"),
    "percentage": ("percentage", "percent"),
    "timestamps": ("timestamps", "timestamp", "time", "moment"),
    "ordering": ("ordering", "order", "sequence"),
    "classes": ("classes", "several", "multi select", "multiple answers", "set"),
    "free_text": ("free_text", "free", "text", "open", "open ended", "short answer"),
}
"""The formats that need no more than a name, with the names that people use."""

SHOWN: Mapping[str, str] = {
    "choice": "choice",
    "binary": "yes or no",
    "count": "whole number",
    "percentage": "percentage",
    "timestamps": "time",
    "ordering": "order",
    "classes": "several of the options",
    "free_text": "free text",
}

_FORMAT: TypeAdapter[AnswerFormat] = TypeAdapter(AnswerFormat)
_YES = {"yes", "y", "true", "ja", "oui", "sí", "si", "sim", "да", "是", "نعم", "כן"}
_NO = {"no", "n", "false", "nein", "non", "não", "nee", "нет", "否", "لا", "לא"}
_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_PERCENT = re.compile(r"\d{1,3}(?:\.\d+)?\s?%", re.ASCII)
_CLOCK = re.compile(r"(?:\d{1,3}:)?\d{1,2}:\d{2}(?:\.\d+)?", re.ASCII)
_MARKS = re.compile(r"\s*(?:->|[>,;\s])\s*")


def declared_format(name: str, settings: Settings, options: Sequence[str], labels: Sequence[str]) -> AnswerFormat:
    """The format of this name: one of the settings, or a kind. Raises `ParseError` for a name that is neither, and for a
    kind that needs more than a question has."""
    if name in settings.formats:
        return settings.formats[name]
    for kind, names in KINDS.items():
        if plain(name) in {plain(one) for one in (kind, *names)}:
            return _built(kind, settings, options, labels)
    raise ParseError(expected=one_of([*settings.formats, *KINDS], name), found=name)


def guessed_format(cell: Any, settings: Settings, options: Sequence[str], labels: Sequence[str]) -> AnswerFormat:
    """The format that a reference has the form of; `labels` are those of the pictures, where there are several."""
    text = cell_text(cell)
    named = _labels_in(text, option_letters(len(options)) or labels)
    if len(options) > 1:
        kind = "ordering" if len(named) == len(options) else "classes" if len(named) > 1 else "choice"
    elif isinstance(cell, bool) or text.casefold() in _YES | _NO:
        kind = "binary"
    elif isinstance(cell, dt.time | dt.timedelta) or all(_CLOCK.fullmatch(part) for part in texts_of(text)):
        kind = "timestamps"
    elif _COUNT.fullmatch(text):
        kind = "count"
    elif _PERCENT.fullmatch(text):
        kind = "percentage"
    else:
        kind = "ordering" if len(labels) > 1 and len(named) == len(labels) else "free_text"
    return _built(kind, settings, options, labels, several=len(texts_of(text)) > 1)


def _labels_in(text: str, labels: Sequence[str]) -> list[str]:
    """The labels, where a text is nothing but different ones of them."""
    parts = [part.strip("()[].") for part in _MARKS.split(text.strip()) if part]
    known = {label.casefold(): label for label in labels}
    found = [known[part.casefold()] for part in parts if part.casefold() in known]
    return found if len(found) == len(parts) == len(set(found)) else []


def _built(
    kind: str, settings: Settings, options: Sequence[str], labels: Sequence[str], *, several: bool = False
) -> AnswerFormat:
    fields: dict[str, Any] = {"kind": kind}
    if kind == "ordering":
        fields["labels"] = tuple(option_letters(len(options)) or labels)
    elif kind == "classes":
        fields["classes"] = tuple(options)
    elif kind == "timestamps":
        fields["several"] = several
    if kind in settings.tolerances:
        fields["tolerance"] = settings.tolerances[kind]
    if kind == "choice" and len(options) < 2:
        raise ParseError(expected="two or more options for a choice", found=f"{len(options)} options")
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
        found = [letter_of(part, options) for part in _alternatives(text)]
        return tuple(dict.fromkeys(found))
    if answer.kind == "classes":
        return (answer.check(_classes(texts_of(cell), options), options),)
    if answer.kind == "binary":
        said = text.casefold()
        if said not in _YES | _NO and said not in {"1", "0"}:
            raise ParseError(expected="yes or no", found=text)
        return (said in _YES or said == "1",)
    if isinstance(cell, str) or answer.kind in {"timestamps", "free_text", "pattern"}:
        return (answer.check(answer.parse(text, options), options),)
    return (answer.check(cell, options),)


def _alternatives(text: str) -> list[str]:
    return [part.strip() for part in text.split("|")] if "|" in text else [text]


def _classes(parts: Sequence[str], options: Sequence[str]) -> list[JsonValue]:
    if len(parts) == 1:  # "A, C"
        named = _labels_in(parts[0], option_letters(len(options)))
        parts = named or parts
    return [options[ord(letter_of(part, options)) - ord("A")] for part in parts] if options else list(parts)
