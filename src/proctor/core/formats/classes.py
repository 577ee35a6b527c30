"""Which of a list of classes: a set, possibly empty."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, bare, final_answer

__all__ = ["ClassesFormat"]


class ClassesFormat(StrictFormat):
    """A set of `classes`; the word `none` states the empty set. Canonical: sorted names. Strict: the names
    alone, separated by commas, in any case and order; empty parts do not count.

    >>> ClassesFormat(classes=("sponge", "specimen bag")).parse("Answer: specimen bag, sponge")
    ['specimen bag', 'sponge']
    >>> ClassesFormat(classes=("sponge", "specimen bag")).parse("none")
    []
    >>> ClassesFormat(classes=("sponge", "specimen bag"), strict=True).parse("none, sponge")
    Traceback (most recent call last):
    proctor.core.errors.ParseError: expected none alone, or names without it, found 'none, sponge'
    """

    kind: Literal["classes"] = "classes"
    classes: tuple[str, ...] = Field(min_length=1)

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            names = ", ".join(self.classes)
            return f"Reply with every class that applies, separated by commas, or none. The classes are: {names}."
        return (
            'Start your reply with "Answer: " and then every class that applies, separated by commas, '
            f'or "none". The classes are: {", ".join(self.classes)}.'
        )

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        if self.strict:
            return self._listed(text)
        said = final_answer(text).casefold()
        found = set()
        for name in sorted(self.classes, key=len, reverse=True):
            said, hits = re.subn(rf"(?<!\w){re.escape(name.casefold())}(?:e?s)?(?!\w)", " ", said)
            if hits:
                found.add(name)
        if not found and not re.search(r"\bnone\b", said):
            raise ParseError(expected=f"some of {', '.join(self.classes)}, or none", found=text)
        return [str(name) for name in sorted(found)]

    def _listed(self, text: str) -> JsonValue:
        known = {name.lower(): name for name in self.classes}
        named = [part.strip().lower() for part in bare(text).split(",") if part.strip()]
        if named == ["none"]:
            return []
        if "none" in named:
            raise ParseError(expected="none alone, or names without it", found=text)
        unknown = sorted(set(named) - known.keys())
        if unknown or not named:
            found = ", ".join(unknown) or "nothing"
            raise ParseError(expected=f"some of {', '.join(self.classes)}, or none", found=found)
        return [str(name) for name in sorted({known[name] for name in named})]

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, list) and set(map(str, value)) <= set(self.classes):
            return [str(name) for name in sorted({str(name) for name in value})]
        raise ParseError(expected=f"a list out of {', '.join(self.classes)}", found=str(value))

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """Jaccard distance, 0 to 1; two empty sets are at distance 0."""
        if not isinstance(reference, list) or not isinstance(prediction, list):
            return None
        a, b = set(map(str, reference)), set(map(str, prediction))
        return 1 - len(a & b) / len(a | b) if a | b else 0.0
