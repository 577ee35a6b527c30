"""Items as rows of a dataset folder, in columns for people and other programs, and rows as the same items."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from proctor.core import (
    Item,
    JsonError,
    Media,
    ParseError,
    Reference,
    TagValue,
    first_problem,
    load_json,
    read_criteria,
)
from proctor.core.formats import AnswerFormat
from proctor.interchange.export_source import COLUMNS, item_row
from proctor.media import plain_media

DETAILS = "details"
DATASET_COLUMNS = (*COLUMNS, "tolerance", "unit", "criteria", DETAILS)
"""The columns of a dataset folder without facets. `format` is a kind, or a name that `benchmark.yaml` defines;
`details` is JSON for the parts of an item that the other columns can't hold (regions, second clips, mixed facets)."""

_FACET = "facet_"  # before the name of a facet that is also the name of a column
_MOST_FACETS = 400
_FORMAT: TypeAdapter[AnswerFormat] = TypeAdapter(AnswerFormat)
_OWN = ("tolerance", "unit")  # settings of a format that have columns of their own
Fault = Callable[[str, str, str], None]
"""A function that takes an error: the column, what was found and what was expected."""


@dataclass(frozen=True)
class RowForm:
    """The form of a dataset's rows: `formats` by name, and the columns of `facets` with the type of their values."""

    formats: Mapping[str, AnswerFormat]
    facets: Mapping[str, type]

    def name_of(self, answer: AnswerFormat) -> str:
        """The value of the column `format` for a format."""
        usual = _without_own(answer)
        return next((name for name, one in self.formats.items() if one == usual), answer.kind)


def row_form(items: Sequence[Item]) -> RowForm:
    """The form of rows for these items. Formats with default settings need no name."""
    formats: dict[str, AnswerFormat] = {}
    for answer in dict.fromkeys(_without_own(item.answer) for item in items):
        if answer.model_dump(mode="json", exclude_defaults=True).keys() - {"kind"}:
            number = sum(one.kind == answer.kind for one in formats.values()) + 1
            formats[f"{answer.kind}-{number}"] = answer
    names = dict.fromkeys(name for item in items for name in item.tags)
    facets = {_column_of(name): found for name in names if (found := _type_of(name, items)) is not None}
    return RowForm(formats, dict(list(facets.items())[:_MOST_FACETS]))


def _without_own(answer: AnswerFormat) -> AnswerFormat:
    """A format without the settings that have columns."""
    fields = type(answer).model_fields
    return answer.model_copy(update={name: fields[name].default for name in _OWN if name in fields})


def _column_of(facet: str) -> str:
    return f"{_FACET}{facet}" if facet in DATASET_COLUMNS else facet


def _facet_of(column: str) -> str:
    name = column.removeprefix(_FACET)
    return name if name in DATASET_COLUMNS else column


def _type_of(name: str, items: Sequence[Item]) -> type | None:
    """The type of all values of a facet; None if a column can't hold them unchanged."""
    values = [item.tags[name] for item in items if name in item.tags]
    types = {type(value) for value in values}
    small = all(abs(value) < 2**63 for value in values if isinstance(value, int))
    filled = any(value.strip() if isinstance(value, str) else value != () for value in values)
    free = name == name.strip() != "" and _facet_of(_column_of(name)) == name
    return types.pop() if free and small and filled and len(types) == 1 else None


def dataset_row(item: Item, form: RowForm) -> dict[str, Any]:
    """A row with every column of the form. `details` holds what can't be read from the other columns."""
    row, reference, fields = item_row(item), item.reference, type(item.answer).model_fields
    right = () if reference is None or reference.answer is None else (reference.answer, *reference.accepted)
    cells = [_cell(item.answer, value, item.options) for value in right]
    criteria = (
        [criterion.model_dump(mode="json", exclude_defaults=True) for criterion in reference.criteria]
        if reference
        else []
    )
    row |= {"format": form.name_of(item.answer), "answer": cells[0] if cells else None, "accepted": cells[1:]}
    for name in _OWN:
        given = getattr(item.answer, name, None)
        row[name] = given if name in fields and given != fields[name].default else None
    row["criteria"] = json.dumps(criteria, ensure_ascii=False) if criteria else None
    for column in form.facets:
        value = item.tags.get(_facet_of(column))
        row[column] = list(value) if isinstance(value, tuple) else value
    details, whole = {}, item.model_dump(mode="json")
    for name, read in _READ.items():
        try:
            same = _plain(read(row, item.answer, form)) == _plain(whole.get(name))
        except (ParseError, ValidationError):
            same = False
        if not same:
            details[name] = whole.get(name)
    row[DETAILS] = json.dumps(details, ensure_ascii=False) if details else None
    return row


@dataclass
class _Faults:
    """Passes faults on, and records whether there were any."""

    fault: Fault
    any: bool = False

    def add(self, column: str, found: str, expected: str) -> None:
        self.any = True
        self.fault(column, found[:80], expected)

    def tell(self, column: str, error: ParseError | ValidationError) -> None:
        if isinstance(error, ParseError):
            self.add(column, repr(error.found), error.expected)
        else:
            problem = first_problem(error)
            self.add(column, problem.found, problem.expected)


def dataset_item(row: Mapping[str, Any], form: RowForm, fault: Fault) -> Item | None:
    """The item of a row; None, with faults, if a cell is not as `dataset_row` writes it. `details` must agree with the
    other cells."""
    faults = _Faults(fault)
    for name in ("id", "group", "question", "format"):
        if not isinstance(row.get(name), str) or not row[name]:
            faults.add(name, repr(row.get(name)), "a text")
    if faults.any:
        return None
    answer, details = _format_of(row, form, faults), _details(row.get(DETAILS), faults)
    if answer is None or details is None:
        return None
    fields = {name: row[name] for name in ("id", "group", "question")} | {"answer": answer} | details
    for name, read in _READ.items():
        if name not in details:
            try:
                fields[name] = read(row, answer, form)
            except (ParseError, ValidationError) as error:
                faults.tell("answer" if name == "reference" else name, error)
    item = None if faults.any else _validated(fields, faults, DETAILS if details else "id")
    if item is not None and details:
        _compare(row, dataset_row(item, form), faults)
    return None if faults.any else item


def _validated(fields: Mapping[str, Any], faults: _Faults, column: str) -> Item | None:
    try:
        return Item.model_validate(fields)
    except ValidationError as error:
        faults.tell(column, error)
        return None


def _compare(row: Mapping[str, Any], again: Mapping[str, Any], faults: _Faults) -> None:
    for name in sorted(again.keys() & row.keys() - {DETAILS}):
        if (row[name] or None) != (again[name] or None):
            faults.add(name, repr(row[name]), f"{again[name]!r}, as the column {DETAILS!r} says")


def _format_of(row: Mapping[str, Any], form: RowForm, faults: _Faults) -> AnswerFormat | None:
    name = row["format"]
    known = form.formats.get(name)
    fields = {"kind": name} if known is None else known.model_dump(mode="json")
    own = {key: row[key] for key in _OWN if row.get(key) is not None}
    try:
        return _FORMAT.validate_python(fields | own)
    except ValidationError:
        expected = f"settings that fit {name}" if own else f"settings that fit {', '.join(form.formats) or 'none'}"
        if known is None and not own:
            expected = f"a format that needs no settings, or one of {', '.join(form.formats) or 'none'}"
        faults.add("format", ", ".join(map(repr, (name, *own.values()))), expected)
        return None


def _details(cell: Any, faults: _Faults) -> dict[str, Any] | None:
    if cell is None:
        return {}
    try:
        found = load_json(cell if isinstance(cell, str) else "")
    except JsonError:
        found = None
    if isinstance(found, dict) and set(found) <= _READ.keys():
        return found
    faults.add(DETAILS, repr(cell), f"JSON with some of {', '.join(_READ)}")
    return None


def _options(row: Mapping[str, Any], answer: AnswerFormat, form: RowForm) -> tuple[str, ...]:
    del form
    options = _texts(row.get("options"))
    return () if answer.kind == "classes" and options == answer.classes else options


def _media(row: Mapping[str, Any], answer: AnswerFormat, form: RowForm) -> tuple[Media, ...]:
    del answer, form
    return plain_media(_texts(row.get("media")), row.get("start"), row.get("end"))


def _tags(row: Mapping[str, Any], answer: AnswerFormat, form: RowForm) -> dict[str, TagValue]:
    del answer
    found: dict[str, TagValue] = {}
    for column in form.facets:
        cell = row.get(column)
        if isinstance(cell, list):
            found[_facet_of(column)] = _texts(cell)
        elif isinstance(cell, bool | int | float | str):
            found[_facet_of(column)] = cell
        elif cell is not None:
            raise ParseError(expected="a text, a number, a truth value or a list of texts", found=f"{column}: {cell!r}")
    return found


def _reference(row: Mapping[str, Any], answer: AnswerFormat, form: RowForm) -> Reference | None:
    options = _options(row, answer, form)
    criteria = read_criteria(row["criteria"]) if row.get("criteria") else ()
    cells = [cell for cell in (row.get("answer"), *_texts(row.get("accepted"))) if cell is not None]
    rationale = row.get("rationale") or ""
    if not cells and not criteria and not rationale:
        return None
    values = [_value(answer, cell, options) for cell in cells] or [None]
    return Reference(answer=values[0], accepted=tuple(values[1:]), rationale=rationale, criteria=criteria)


_READ: Mapping[str, Callable[[Mapping[str, Any], AnswerFormat, RowForm], Any]] = {
    "options": _options,
    "media": _media,
    "reference": _reference,
    "tags": _tags,
    "evidence": lambda _row, _answer, _form: None,  # has no column: where there is some, the details hold it
}


def _texts(cell: Any) -> tuple[str, ...]:
    if cell is None or (isinstance(cell, list) and all(isinstance(one, str) for one in cell)):
        return tuple(cell or ())
    raise ParseError(expected="a list of texts", found=repr(cell))


def _value(answer: AnswerFormat, cell: Any, options: Sequence[str]) -> JsonValue:
    """The value of a cell: free text unchanged, else text as by `write`, or JSON."""
    if not isinstance(cell, str):
        raise ParseError(expected="a text", found=repr(cell))
    if answer.any_text:
        return cell
    found = answer.read_reference(cell, options)
    if len(found) != 1:
        raise ParseError(expected="one answer; others stand in the column accepted", found=cell)
    return found[0]


def _cell(answer: AnswerFormat, value: JsonValue, options: Sequence[str]) -> str:
    """A value as text, or as JSON if the text loses something."""
    if answer.any_text:
        return str(value)
    words = answer.write(value)
    for text in (words, json.dumps(value, ensure_ascii=False)):
        try:
            if _plain(_value(answer, text, options)) == _plain(value):
                return text
        except ParseError:
            continue
    return words


def _plain(value: Any) -> str:
    """A value as JSON, in which 3 and 3.0 differ."""

    def dumped(one: Any) -> Any:
        return one.model_dump(mode="json") if hasattr(one, "model_dump") else str(one)

    return json.dumps(value, sort_keys=True, default=dumped)
