"""Any answer format, told apart by `kind`. The table below says where each is; it is imported for the first item that has
it, as a benchmark seldom has more than a few. And the answer that a text is by its item's format: its value, an
abstention, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, SchemaValidator, core_schema

from proctor.core import formats
from proctor.core.errors import ParseError
from proctor.core.formats.base import Format
from proctor.core.records import CONFIDENCE, Answer, Status

if TYPE_CHECKING:
    from proctor.core.formats.binary import BinaryFormat
    from proctor.core.formats.boxes import BoxesFormat, PointFormat
    from proctor.core.formats.choice import ChoiceFormat
    from proctor.core.formats.classes import ClassesFormat
    from proctor.core.formats.free import FreeTextFormat, RatingsFormat
    from proctor.core.formats.intervals import IntervalsFormat
    from proctor.core.formats.numbers import CountFormat, PercentageFormat
    from proctor.core.formats.opinions import PreferenceFormat, ScaleFormat
    from proctor.core.formats.ordering import OrderingFormat
    from proctor.core.formats.pattern import PatternFormat
    from proctor.core.formats.quantity import QuantityFormat
    from proctor.core.formats.selections import ChoicesFormat, ShortTextFormat
    from proctor.core.formats.timestamps import TimestampsFormat
    from proctor.core.item import Item

_HOMES = {
    "choice": ("choice", "ChoiceFormat"),
    "ordering": ("ordering", "OrderingFormat"),
    "binary": ("binary", "BinaryFormat"),
    "count": ("numbers", "CountFormat"),
    "percentage": ("numbers", "PercentageFormat"),
    "classes": ("classes", "ClassesFormat"),
    "timestamps": ("timestamps", "TimestampsFormat"),
    "intervals": ("intervals", "IntervalsFormat"),
    "quantity": ("quantity", "QuantityFormat"),
    "boxes": ("boxes", "BoxesFormat"),
    "point": ("boxes", "PointFormat"),
    "choices": ("selections", "ChoicesFormat"),
    "short_text": ("selections", "ShortTextFormat"),
    "scale": ("opinions", "ScaleFormat"),
    "preference": ("opinions", "PreferenceFormat"),
    "pattern": ("pattern", "PatternFormat"),
    "free_text": ("free", "FreeTextFormat"),
    "ratings": ("free", "RatingsFormat"),
}
"""Of each kind its module and its class."""

EVERY_KIND = tuple(_HOMES)
"""The kinds of answers."""


def format_of_kind(kind: str) -> type[Format]:
    """The class of the answer format of a kind; raises `KeyError` for a kind that there is not.

    >>> format_of_kind("count").__name__
    'CountFormat'
    """
    module, name = _HOMES[kind]
    found: type[Format] = getattr(import_module(f"proctor.core.formats.{module}"), name)
    return found


@cache
def _reader(kind: str) -> SchemaValidator:
    """Reads a format of this kind; an error names the kind before the field."""
    form = format_of_kind(kind)
    form.model_rebuild()
    return SchemaValidator(core_schema.tagged_union_schema({kind: form.__pydantic_core_schema__}, discriminator="kind"))


def _read(given: Any) -> Any:
    """The format itself, or the one that an object states. Its errors are those of a union told apart by `kind`."""
    if isinstance(given, Format):
        kind: Any = getattr(given, "kind", None)
    elif isinstance(given, Mapping):
        if "kind" not in given:
            raise PydanticKnownError("union_tag_not_found", {"discriminator": "'kind'"})
        kind = given["kind"]
    else:
        raise PydanticKnownError("model_attributes_type")
    if not isinstance(kind, str) or kind not in _HOMES:
        expected = ", ".join(repr(one) for one in EVERY_KIND)
        raise PydanticKnownError(
            "union_tag_invalid", {"discriminator": "'kind'", "tag": str(kind), "expected_tags": expected}
        )
    return _reader(kind).validate_python(given)


class _ByKind:
    """Reads any answer format. It is written as what it is."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source, handler
        return core_schema.no_info_plain_validator_function(_read)


if TYPE_CHECKING:
    AnswerFormat = Annotated[
        ChoiceFormat
        | OrderingFormat
        | BinaryFormat
        | CountFormat
        | PercentageFormat
        | ClassesFormat
        | TimestampsFormat
        | IntervalsFormat
        | QuantityFormat
        | BoxesFormat
        | PointFormat
        | ChoicesFormat
        | ShortTextFormat
        | ScaleFormat
        | PreferenceFormat
        | PatternFormat
        | FreeTextFormat
        | RatingsFormat,
        Field(discriminator="kind"),
    ]
else:
    AnswerFormat = Annotated[Format, _ByKind()]


def read_answer(item: Item, answer: Answer) -> Answer:
    """The answer with its text read by the item's format: `parsed` is its value, the status is `abstained` for an
    abstention in the declared form, or `problem` says what was expected and found. An answer with another status, or with
    a value, stays as it is. A confidence that was asked for is no part of the text.

    >>> from proctor.core import Item
    >>> from proctor.core.formats import BinaryFormat
    >>> item = Item(id="q1", group="v1", question="Is a clip visible?", answer=BinaryFormat())
    >>> read_answer(item, Answer(item_id="q1", text="Answer: UNANSWERABLE")).status
    <Status.ABSTAINED: 'abstained'>
    """
    if answer.status is not Status.ANSWERED or answer.parsed is not None:
        return answer
    text = formats.without_confidence(answer.text) if CONFIDENCE in answer.extra else answer.text
    if formats.abstains(text, item.answer, item.options):
        return answer.model_copy(update={"status": Status.ABSTAINED})
    try:
        return answer.model_copy(update={"parsed": item.answer.parse(text, item.options)})
    except ParseError as error:
        return answer.model_copy(update={"problem": str(error)})
