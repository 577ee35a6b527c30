"""The answer format for a set of classes, possibly empty."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, bare, listed, plain_words
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.reply import Statement, read_reply
from proctor.core.text import deferred

_KEYS = ("classes", "class", "objects", "object", "labels", "label", "items", "instruments", "names")
_EDGES = " \t\n.,;:!()[]{}\"'*"
_PARTS = deferred(r"[,;/+&|\n]|\band\b|\bas well as\b|\bplus\b|和|与|及|以及", re.IGNORECASE)
_EXTRAS = deferred(
    r"^(?:(?:an?|the|one|two|three|four|several|some|multiple|single|also|both|only|just|\d{1,2}x?|[a-c]\)|\d{1,2}[.)]"
    r"|visible|surgical|there (?:is|are)|i (?:can )?see|i (?:believe|think) it is|it is|it's)\s+)+"
    r"|(?:(?<!\s)\s+)?(?:\([^()]{0,80}\)|x\d{1,2}|×\d{1,2})$",
    re.IGNORECASE,
)
_ASIDE = deferred(r"\([^()]{0,80}\)?\s*$")
_NO = deferred(r"\W{0,3}(?:and |but )?(?:no|not|without)\s(?:an?\s|any\s)?", re.IGNORECASE)
_NOTHING = deferred(
    r"(?:none|nothing|no(?:ne)? (?:foreign )?(?:objects?|items?|class(?:es)?)|none of (?:them|these|the (?:listed "
    r")?(?:classes|objects|options|above))|no class applies|empty|empty set|n/?a|没有|无|"
    r"no foreign objects?)(?: (?:is|are|was|were))?(?: (?:visible|present|seen|in view|applicable|apply|applies"
    r"|detected|found))?(?: \([^()]{0,60}\))?",
    re.IGNORECASE,
)
_EMPTY = deferred(
    r"\bno (?:foreign |visible |surgical |such |retained )?(?:objects?|items?|foreign bod(?:y|ies))\b|\bnothing (?:is "
    r"|can be )?(?:visible|seen|present|in view)|\bnone of (?:the|these|them)\b"
    r"|\bnone (?:is|are|was|were|of|applies|apply|visible|present|seen)\b|^\W*none\b|没有(?:任何)?(?:异物|物体)",
    re.IGNORECASE,
)
_CLAUSES = deferred(
    r"[.;\n]|,? \bbut\b|\bwhereas\b|\bwhile\b|\balthough\b|\bhowever\b|\bwith no\b(?= )(?=.)|,(?= (?:no|not|without"
    r"|and no|nor)\b)",
    re.IGNORECASE,
)
_DENIES = deferred(
    r"\b(?:no|not|without|neither|nor|never|none|absent|absence|cannot|can't|isn't|aren't|wasn't|weren't|doesn't|don't"
    r"|didn't|rather than|instead of|lacks?|excluded?|except|all but|apart from|removed|unlike)\b|没有|不是|无",
    re.IGNORECASE,
)
_HEDGES = deferred(
    r"\b(?:or|maybe|perhaps|possibly|might|either|could be|may be|whether|depends)\b|\?|或", re.IGNORECASE
)


class ClassesFormat(StrictFormat):
    """A set of `classes`; the word `none` is the empty set. The canonical form is a sorted list of names. Strict: only
    the names, separated by commas, in any case and order; empty parts are ignored.

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
        expected = f"some of {', '.join(self.classes)}, or none"
        return read_reply(text, self._read, expected=expected, keys=_KEYS)

    def _read(self, statement: Statement) -> JsonValue:
        text = statement.text
        if isinstance(statement.value, list):
            return self._named([str(entry) for entry in statement.value], text)
        if isinstance(statement.value, dict):
            return None
        part = self._listing(text) if statement.sure else text
        listed = self._named(_parts(part), part) if part.strip(_EDGES) else None
        return self._said(part) if listed is None else listed

    def _listing(self, text: str) -> str:
        """The first sentence, and the following lines that contain only classes."""
        names = {name.casefold() for name in self.classes}
        lines = [line for line in text.split("\n\n", 1)[0].split("\n") if line.strip()] or [""]
        more = takewhile(
            lambda line: all(_class_of(part, dict.fromkeys(names, "x")) for part in _parts(line)), lines[1:]
        )
        return "\n".join([first_sentence(lines[0]), *more])

    def _named(self, parts: list[str], text: str) -> list[JsonValue] | None:
        """The classes in a list of names; None for prose. Raises `ParseError` for a list with unknown names."""
        names = {name.casefold(): name for name in self.classes}
        if not parts:
            return []
        parts = [part for part in parts if not (_NO.match(part) and _class_of(_NO.sub("", part), names))] or parts
        classes = [_class_of(part, names) for part in parts]
        if len(parts) == 1 and _NOTHING.fullmatch(parts[0].strip(_EDGES)):
            return []
        known = [class_ for class_ in classes if class_]
        if len(known) == len(parts):
            return [str(name) for name in sorted(set(known))]
        short = all(one or len(part.split()) <= 2 for part, one in zip(parts, classes, strict=True))
        if known and short and len(parts) > 1:
            raise ParseError(expected=f"some of {', '.join(self.classes)}, or none", found=text)
        return None

    def _said(self, text: str) -> list[JsonValue] | None:
        """The classes mentioned in prose, except in denials; hedged prose is invalid."""
        names = "|".join(re.escape(name.casefold()) for name in sorted(self.classes, key=len, reverse=True))
        token = re.compile(rf"(?<!\w)({names})(?:e?s)?(?!\w|[ -](?:appl|holder|driver|count|tray|box))")
        classes: set[str] = set()
        denied = False
        for clause in _CLAUSES.split(text.casefold()):
            hits = set(token.findall(clause))
            if _DENIES.search(clause):
                denied = denied or bool(hits)
                continue
            if hits and _HEDGES.search(clause):
                raise ParseError(expected=f"some of {', '.join(self.classes)}, or none", found=text)
            classes |= hits
        if not classes:
            return [] if _EMPTY.search(text) and not denied else None
        return [name for name in sorted(self.classes) if name.casefold() in classes]

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

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse names in any case, separated by commas, semicolons or lines; or "none"."""
        del options
        if plain_words(text) == "none":
            return []
        known = {plain_words(name): name for name in self.classes}
        parts = listed(text)
        unknown = [part for part in parts if plain_words(part) not in known]
        if unknown or not parts:
            found = ", ".join(unknown) or text
            raise ParseError(expected=f"some of {', '.join(self.classes)}, or none", found=found)
        return [str(name) for name in sorted({known[plain_words(part)] for part in parts})]

    def write(self, value: JsonValue) -> str:
        """The names, separated by commas, or "none"."""
        return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The Jaccard distance, 0 to 1; 0 for two empty sets."""
        if not isinstance(reference, list) or not isinstance(prediction, list):
            return None
        a, b = set(map(str, reference)), set(map(str, prediction))
        return 1 - len(a & b) / len(a | b) if a | b else 0.0


def _parts(text: str) -> list[str]:
    return [part for part in _PARTS.split(text) if part.strip(_EDGES)]


def _class_of(part: str, names: dict[str, str]) -> str | None:
    """The class named by a part of a list, in singular or plural, ignoring articles, numbers and asides."""
    aside = _ASIDE.search(part)
    word = (part[: aside.start()] if aside and not _HEDGES.search(aside[0]) else part).strip(_EDGES).casefold()
    for _ in range(3):
        for name in (word, word.removesuffix("s"), word.removesuffix("es")):
            if name in names:
                return names[name]
        word = _EXTRAS.sub("", word, count=2).strip(_EDGES)
    return None
