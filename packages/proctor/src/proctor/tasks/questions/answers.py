"""The answer format of each question, declared or guessed from its reference, and the parsed reference."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from proctor.core import ParseError, cell_text, count_of, expected_words, one_of, read_criteria
from proctor.core import plain_column as plain
from proctor.core.formats import EVERY_KIND, AnswerFormat, option_letters
from proctor.tasks.questions.cells import letter_of, texts_of
from proctor.tasks.questions.folder import Settings

KINDS: Mapping[str, tuple[str, ...]] = {
    "choice": (
        "choice", "multiple choice", "mcq", "single choice", "option", "einfachauswahl", "choix unique", "qcm", "单选", "单选题",
        "選擇題", "单项选择题",
    ),
    "binary": (
        "binary", "yes no", "yesno", "boolean", "bool", "true false", "ja nein", "oui non", "vrai faux", "判断", "判断题",
    ),
    "count": ("count", "whole number", "integer", "anzahl", "ganze zahl", "entier", "计数"),
    "percentage": ("percentage", "percent", "prozent", "pourcentage", "百分比"),
    "quantity": ("quantity", "number", "numeric", "float", "measurement", "zahl", "messwert", "nombre", "mesure", "数值"),
    "timestamps": ("timestamps", "timestamp", "time", "times", "moment", "zeit", "zeitpunkt", "temps", "时间", "时间点"),
    "intervals": (
        "intervals", "interval", "segment", "segments", "span", "time interval", "time range", "zeitraum", "intervall",
        "intervalle", "时间段", "区间",
    ),
    "ordering": ("ordering", "order", "sequence", "reihenfolge", "ordre", "排序", "排序题"),
    "choices": (
        "choices", "several", "multi select", "multiple select", "multiple answers", "multiple response", "set",
        "mehrfachauswahl", "choix multiple", "choix multiples", "多选", "多选题", "多项选择题",
    ),
    "boxes": ("boxes", "box", "bbox", "bounding box", "bounding boxes", "rahmen", "boîte", "边界框"),
    "point": ("point", "location", "punkt", "点"),
    "scale": ("scale", "rating", "likert", "rating scale", "likert scale", "skala", "échelle", "note", "评分", "量表"),
    "preference": ("preference", "pairwise", "comparison", "pairwise preference", "präferenz", "préférence", "偏好"),
    "short_text": (
        "short_text", "short text", "short", "short answer", "exact text", "string", "name", "word", "kurztext", "texte court",
        "填空", "填空题",
    ),
    "free_text": (
        "free_text", "free", "text", "open", "open ended", "open ended question", "open question", "long answer", "criteria",
        "rubric", "freitext", "offen", "texte libre", "ouverte", "简答", "简答题", "开放题",
    ),
}  # fmt: skip
"""The formats that need only a name, with the names that people use."""

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

_FORMAT: TypeAdapter[AnswerFormat] = TypeAdapter(AnswerFormat)
_YES = {
    "yes", "y", "true", "ja", "wahr", "richtig", "oui", "vrai", "sí", "si", "sì", "sim", "да", "是", "对", "對", "正确", "正確", "有",
    "نعم", "כן",
}  # fmt: skip
_NO = {
    "no", "n", "false", "nein", "falsch", "non", "faux", "não", "nee", "нет", "否", "不是", "错", "錯", "错误", "錯誤", "没有", "无",
    "لا", "לא",
}  # fmt: skip
_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_PERCENT = re.compile(r"\d{1,3}(?:\.\d+)?\s?%", re.ASCII)
_QUANTITY = re.compile(r"[-+]?\d{1,9}(?:[.,]\d{1,9})?\s?(?P<unit>[^\s\d].{0,15})?", re.ASCII)
_SPREAD = re.compile(
    r"(?P<number>[-+]?\d{1,9}(?:[.,]\d{1,9})?)\s?(?P<unit>[^\s\d±+].{0,15}?)?\s?(?:±"
    r"|\+/-)\s?(?P<spread>\d{1,9}(?:[.,]\d{1,9})?)\s?(?P<last>[^\s\d±+].{0,15})?"
)
_CLOCK = re.compile(r"(?:\d{1,3}:)?\d{1,2}:\d{2}(?:\.\d+)?", re.ASCII)
_SPAN = re.compile(rf"(?:{_CLOCK.pattern})\s?(?:-|–|to|bis)\s?(?:{_CLOCK.pattern})", re.ASCII)
_MARKS = re.compile(r"\s*(?:->|[>,;、，\s]|\b(?:and|und|et)\b|和)\s*")
_TOLERANCE = re.compile(r"[±+]?\s?(?P<number>\d{1,9}(?:[.,]\d{1,9})?)\s?(?P<unit>[^\d\s].{0,15})?", re.ASCII)
NO_ANSWER = {
    "n/a", "na", "#n/a", "nan", "null", "-", "–", "—", "?", "tbd", "todo", "k. a.", "k.a.", "n.a.", "无答案", "待定",
}  # fmt: skip
"""What people write if they have no answer."""
_NUMBERS = re.compile(
    r"[\[({]?\s*-?\d+(?:\.\d+)?(?P<more>(?:(?:\s*[,;]|[^\S ]* )\s*-?\d+(?:\.\d+)?){1,3})\s*[\])}]?", re.ASCII
)


@dataclass(frozen=True)
class AnswerContext:
    """What a row says about its answer besides the reference: the options, the labels of its images if there are
    several, the unit of a number, whether it gives a tolerance, and whether the options have a fault of their own."""

    options: Sequence[str] = ()
    labels: Sequence[str] = ()
    unit: str = ""
    tolerance: bool = False
    faulty: bool = False


def declared_format(name: str, cell: Any, settings: Settings, context: AnswerContext) -> AnswerFormat:
    """The format with this name: one of the settings, or a kind. The reference shows whether it has several times, and
    the unit of a number without one elsewhere. Raises `ParseError` for an unknown name, and for a kind that needs more
    than the question has."""
    if name in settings.formats:
        return settings.formats[name]
    for kind in EVERY_KIND:
        if plain(name) in {plain(one) for one in (kind, *KINDS.get(kind, ()))}:
            several = any(len(entries) > 1 for entries in _entries(cell_text(cell), kind))
            return _built(kind, settings, context, several=several, unit=context.unit or _unit_in(cell_text(cell)))
    raise ParseError(expected=one_of([*settings.formats, *EVERY_KIND], name), found=name)


def guessed_format(cell: Any, settings: Settings, context: AnswerContext) -> AnswerFormat:
    """The format that fits a reference."""
    text, labels = cell_text(cell), context.labels
    kind = _of_options(text, context.options) if len(context.options) > 1 else _of_value(cell, text, context)
    if not kind and (quantity := _quantity_in(text, settings, context)) is not None:
        return quantity
    if not kind:
        kind = "ordering" if len(labels) > 1 and len(_labels_in(text, labels)) == len(labels) else "free_text"
    several = any(len(part) > 1 for part in _entries(text, kind))
    return _built(kind, settings, context, several=several)


def _of_value(cell: Any, text: str, context: AnswerContext) -> str:
    """The kind that a value without options and unit is certainly of; empty for none."""
    entries = [one for part in _entries(text, "timestamps") for one in part]
    if isinstance(cell, bool) or text.casefold() in _YES | _NO:
        return "binary"
    if isinstance(cell, dt.time | dt.timedelta) or (entries and all(map(_CLOCK.fullmatch, entries))):
        return "timestamps"
    if entries and all(map(_SPAN.fullmatch, entries)):
        return "intervals"
    if _COUNT.fullmatch(text) and not context.unit and not context.tolerance:
        return "count"
    return "percentage" if _PERCENT.fullmatch(text) else ""


def _quantity_in(text: str, settings: Settings, context: AnswerContext) -> AnswerFormat | None:
    """The format of a number with a known unit, its own or its column's, with or without a spread."""
    number = _QUANTITY.fullmatch(text)
    unit = "" if number is None else context.unit or number["unit"] or ""
    if number is not None and _in_unit(unit, settings):
        return _built("quantity", settings, context, unit=unit)
    spread = _SPREAD.fullmatch(text)
    unit = "" if spread is None else context.unit or _spread_unit(spread)
    if spread is not None and _in_unit(unit, settings):
        found = _built("quantity", settings, context, unit=unit)
        return adjusted_format(found, settings, tolerance=spread["spread"])
    return None


def _of_options(text: str, options: Sequence[str]) -> str:
    """A choice, several of the options, or their order. Raises `ParseError` if all are named in the listed order, which
    is ambiguous."""
    letters = option_letters(len(options))
    named = [] if text.casefold() in {option.casefold() for option in options} else _labels_in(text, letters)
    if named == letters and ">" not in text:
        expected = "the format order or choices in a column 'format': all options are named, which may mean either"
        raise ParseError(expected=expected, found=text)
    return "ordering" if len(named) == len(options) else "choices" if len(named) > 1 else "choice"


def _entries(text: str, kind: str) -> list[list[str]]:
    """The times or boxes of each accepted answer."""
    sign = r"[;；\n]" if kind == "boxes" else r"[;；\n,、，]"
    return [[one.strip() for one in re.split(sign, part) if one.strip()] for part in text.split("|")]


def _spread_unit(hit: re.Match[str]) -> str:
    """The unit of "35 mm ± 2" and of "35 ± 2 mm"."""
    return hit["unit"] or hit["last"] or ""


def _unit_in(text: str) -> str:
    number = _QUANTITY.fullmatch(text.split("|", maxsplit=1)[0].split("±", maxsplit=1)[0].strip())
    return (number["unit"] or "") if number is not None else ""


_LETTERS = re.compile(
    r"(?:option|answer|choice)?\s*[(\[]?[A-H][)\].:]?(?:\s*(?:[,;/&+]|\band\b)\s*[A-H])*", re.IGNORECASE
)


def are_letters(text: str) -> bool:
    """Whether a reference is the letter of an option, or several, rather than text.

    >>> are_letters("B"), are_letters("(c)"), are_letters("A, C"), are_letters("a red disc")
    (True, True, True, False)
    """
    return _LETTERS.fullmatch(text.strip()) is not None


def looks_like(cell: Any, context: AnswerContext) -> str:
    """The format that a reference taken for free text may be meant in; empty for text.

    >>> looks_like("400, 300, 700, 800", AnswerContext()), looks_like("gall bladder", AnswerContext()), looks_like("It moves on.", AnswerContext())
    ('boxes', 'short text', '')
    >>> looks_like("B", AnswerContext())
    'choice'
    """
    text = cell_text(cell)
    numbers = _NUMBERS.fullmatch(text)
    if numbers is not None:
        count = 1 + len(re.findall(r"\d+(?:\.\d+)?", numbers["more"]))
        return {2: "point", 4: "boxes"}.get(count, "")
    if are_letters(text) and not context.options and not context.faulty:
        return "choice"
    if re.match(r"\d", text) and len(text.split()) <= 4:
        return "number"
    short = len(text.split()) <= 3 and len(text) <= 40 and not re.search(r"[.!?。！？]$", text)
    return "short text" if short and re.search(r"[^\W\d_]{2}", text) and not re.search(r"\d", text) else ""


def adjusted_format(answer: AnswerFormat, settings: Settings, tolerance: str = "", unit: str = "") -> AnswerFormat:
    """The format with the tolerance and unit of a row ("": none); a whole number with a unit becomes a quantity. Raises
    `ParseError` if the format has none, and for an invalid tolerance or unit."""
    if unit and answer.kind not in {"count", "quantity"}:
        raise ParseError(expected=f"no unit: the answer is a {SHOWN.get(answer.kind, answer.kind)}", found=unit)
    kind = "quantity" if unit else answer.kind
    fields: dict[str, Any] = {"tolerance": settings.tolerances.get(kind, 0.0)}
    fields = (dict(answer) if kind == answer.kind else fields) | {"kind": kind}
    fields |= {"unit": unit} if unit else {}
    own = {"timestamps": "s", "percentage": "%"}.get(kind, fields.get("unit", ""))
    fields |= _tolerance(tolerance, kind, own) if tolerance else {}
    try:
        return _FORMAT.validate_python(fields)
    except ValidationError as error:
        lacks = f"no tolerance: the format {answer.kind} has none"
        problem = error.errors()[0]
        expected = lacks if problem["type"] == "extra_forbidden" else expected_words(problem)
        raise ParseError(expected=expected, found=tolerance or unit) from None


def _tolerance(text: str, kind: str, own: str) -> dict[str, float]:
    hit = _TOLERANCE.fullmatch(text)
    unit = (hit["unit"] or "").strip() if hit is not None else ""
    share = kind == "quantity" and unit == "%" != own
    if hit is None or not (
        share or unit in {"", own} or (unit != "%" and _in_unit(unit, Settings()) == _in_unit(own, Settings()))
    ):
        raise ParseError(expected="a number, such as 0.5 or 5 %", found=text)
    number = float(hit["number"].replace(",", "."))
    return {"relative": number / 100} if share else {"tolerance": number}


def is_unit(text: str) -> bool:
    """Whether a text is a unit of numbers.

    >>> is_unit("mm"), is_unit("ICU")
    (True, False)
    """
    if not text:
        return False
    from proctor.core.formats import QuantityFormat

    try:
        return bool(QuantityFormat(unit=text).unit)
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


def _in_unit(unit: str, settings: Settings) -> AnswerFormat | None:
    """The format of a number with a unit; None for a word that is no unit."""
    from proctor.core.formats import QuantityFormat

    try:
        return QuantityFormat(unit=unit, tolerance=settings.tolerances.get("quantity", 0.0))
    except (ValidationError, ParseError):
        return None


def _labels_in(text: str, labels: Sequence[str]) -> list[str]:
    """The labels in a text that consists of different labels only: "A, C", "A and C", "AC"."""
    parts = [part.strip("()[].") for part in _MARKS.split(text.strip()) if part]
    known = {label.casefold(): label for label in labels}
    if len(parts) == 1 and 1 < len(parts[0]) <= len(labels) and parts[0].isupper():
        parts = [*parts[0]]
    found = [known[part.casefold()] for part in parts if part.casefold() in known]
    return found if len(found) == len(parts) == len(set(found)) else []


def _built(
    kind: str, settings: Settings, context: AnswerContext, *, several: bool = False, unit: str = ""
) -> AnswerFormat:
    if kind == "choice" and len(context.options) < 2:
        raise ParseError(expected="two or more options for a choice", found=count_of(len(context.options), "option"))
    listed: tuple[str, ...] = ()
    if kind == "ordering":
        listed = tuple(option_letters(len(context.options)) or context.labels)
    elif kind == "classes":
        listed = tuple(context.options)
    return _format(kind, listed, settings.tolerances.get(kind), several, unit if kind == "quantity" else "")


@lru_cache(maxsize=1024)
def _format(kind: str, listed: tuple[str, ...], tolerance: float | None, several: bool, unit: str) -> AnswerFormat:
    """Raises `ParseError` if the format needs more."""
    fields: dict[str, Any] = {"kind": kind}
    fields |= {"labels": listed} if kind == "ordering" else {"classes": listed} if kind == "classes" else {}
    fields |= {"several": several} if kind in {"timestamps", "intervals", "boxes"} else {}
    fields |= {} if tolerance is None else {"tolerance": tolerance}
    fields |= {"unit": unit} if unit else {}
    try:
        return _FORMAT.validate_python(fields)
    except ValidationError as error:
        if unit:
            raise ParseError(expected=expected_words(error.errors()[0]) or "a unit", found=unit) from None
        needed = {"ordering": "options, or several pictures, to put in order", "classes": "options"}
        raise ParseError(
            expected=needed.get(kind, expected_words(error.errors()[0])), found=f"the format {kind}"
        ) from None


def reference_of(
    answer: AnswerFormat, cell: Any, context: AnswerContext, marks: Sequence[str] = ()
) -> tuple[JsonValue, ...]:
    """The right answer in canonical form, and further accepted ones. `marks` are the numbers of the options, if their
    columns have numbers. Raises `ParseError` for a cell without a valid answer."""
    text, options, kind = cell_text(cell), context.options, str(answer.kind)
    letters = option_letters(len(options))
    if kind == "choice":
        named = _labels_in(text, letters)
        if len(named) > 1 and "|" not in text:
            all_of, any_of = ", ".join(named), " | ".join(named)
            expected = (
                f"one option; where all of several are right {all_of!r} as format choices, any of them {any_of!r}"
            )
            raise ParseError(expected=expected, found=text)
        return tuple(
            dict.fromkeys(letter_of(_marked(part.strip(), options, marks), options) for part in text.split("|"))
        )
    if kind in {"choices", "ordering"}:
        return _of_labels(answer, cell, text, letters or getattr(answer, "labels", ()), options)
    if kind == "binary" and text.casefold() in _YES | _NO | {"0", "1"}:
        return answer.read_reference(text.casefold() in _YES | {"1"}, options)
    if kind in {"boxes", "point"}:
        return _rows(answer, cell, text)
    if kind == "quantity" and (spread := _SPREAD.fullmatch(text)):
        return answer.read_reference(f"{spread['number']} {_spread_unit(spread)}".strip())
    if isinstance(cell, bool | int | list | dict) and not answer.any_text:
        return answer.read_reference(cell, options)
    return answer.read_reference(text, options)


def _of_labels(
    answer: AnswerFormat, cell: Any, text: str, labels: Sequence[str], options: Sequence[str]
) -> tuple[JsonValue, ...]:
    named = _labels_in(" ".join(texts_of(cell)), labels)
    given: JsonValue = [*named] if named else cell if isinstance(cell, list) else text
    try:
        return answer.read_reference(given, options)
    except ParseError as error:
        several = f"all right options, such as {labels[0]}, {labels[-1]}, or their texts with semicolons"
        inside = f"all of {', '.join(labels)} in their order, such as {' > '.join(reversed(labels))}"
        raise ParseError(expected=several if answer.kind == "choices" else inside, found=text or error.found) from None


def _marked(text: str, options: Sequence[str], marks: Sequence[str]) -> str:
    """The option with this number, if the options' columns have numbers; else the text itself."""
    row = marks.index(text) if text in marks and text not in options else len(options)
    return options[row] if row < len(options) else text


def _rows(answer: Any, cell: Any, text: str) -> tuple[JsonValue, ...]:
    """Boxes or points. Shares of 1 are errors if x and y run to 1000: all would be in one corner."""
    width, height = answer.width, answer.height
    expected = (
        f"x from 0 to {width:g} and y from 0 to {height:g}, left to right and top to bottom (for pixels or shares of 1: "
        "width and height under formats in benchmark.yaml)"
    )
    numbers = [float(one) for one in re.findall(r"\d+(?:\.\d+)?", text)]
    if numbers and max(numbers) <= 1 < min(width, height):
        raise ParseError(expected=expected, found=text)
    try:
        return answer.read_reference(cell if isinstance(cell, list | dict) else text)  # type: ignore[no-any-return]
    except ParseError as error:
        beyond = "inside the picture" in error.expected
        raise ParseError(expected=expected if beyond else error.expected, found=text) from None
