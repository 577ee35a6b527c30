"""What every answer format offers, and the few readings that several of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, JsonValue, SerializerFunctionWrapHandler, model_serializer


class Format(BaseModel, ABC):
    """How an item is to be answered: what the model is told, and how its text is read and marked."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @abstractmethod
    def instruction(self, options: Sequence[str] = ()) -> str:
        """One or two sentences that tell a model how to write its answer."""

    @abstractmethod
    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """The value that a text states. Raises `ParseError` where it states none, or several."""

    @abstractmethod
    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        """A reference value in canonical form. Raises `ParseError` where it is not of this format."""

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        """Whether a parsed prediction is right; both in canonical form."""
        return reference == prediction

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """How far off a prediction is (0 is right), or None where the format knows no distance."""
        del reference, prediction
        return None


class StrictFormat(Format):
    """A format that can be read in two ways: in the words of a model, or as the bare value alone.

    With `strict`, a text that holds more than the value ("7 sponges") states none. The strict reading is that
    of the FOCUS toolkit (orena-focus 0.4.0): white space around the value and one final full stop do not
    count. A format that is not strict is written down without the word, so that its items keep their
    fingerprint.
    """

    strict: bool = False

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        fields: dict[str, JsonValue] = handler(self)
        if not self.strict:
            fields.pop("strict", None)
        return fields


def bare(text: str) -> str:
    """A text without the white space around it and without one final full stop.

    >>> bare(" 00:12:30 . ")
    '00:12:30'
    """
    said = text.strip()
    return said.removesuffix(".").rstrip() if said.endswith(".") else said
