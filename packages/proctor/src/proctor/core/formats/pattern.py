"""The answer format for text that matches a regular expression: a code, a name, a clock position."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, JsonValue, field_validator

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.reply import MAX_ANSWER_CHARS, Statement, read_reply
from proctor.core.text import deferred

_MOST_CHARS = 1_000  # of a pattern
_MOST_S = 0.25  # seconds for one match; linear patterns take microseconds
_LITERAL_BRACE = deferred(r"\\.|\{(?!\d*,?\d*\})", re.DOTALL)
_TOKEN = deferred(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<least>\d*),?\d*\}|.", re.DOTALL)
_MOST_PARTS = 20_000  # minimum characters of a match
_PROBES = 40  # repetitions of each character of the pattern, followed by one that does not match
_MOST_WORDS = 60  # words of a reply that are tried
_EDGES = " .,;:!?()[]{}\"'"
_KEYS = ("code", "position", "cell", "location", "order", "sequence", "match")


class PatternFormat(StrictFormat):
    """Text that the regular expression `pattern` (Python's `re`) fully matches. Case and whitespace are ignored in
    comparisons. Strict: only the text, up to `max_chars` characters, in the case of the pattern.

    Patterns that take longer than a quarter of a second on some short text are refused; answers on which matching takes
    longer are unreadable.

    >>> PatternFormat(pattern=r"[1-4]/[1-4]").parse(" 2/3 ")
    '2/3'
    >>> PatternFormat(pattern=r"[1-4]/[1-4]").parse("two of three")
    Traceback (most recent call last):
    proctor.core.errors.ParseError: expected a text of the form [1-4]/[1-4], found 'two of three'
    """

    kind: Literal["pattern"] = "pattern"
    pattern: str = Field(min_length=1, max_length=_MOST_CHARS)
    max_chars: int = Field(default=300, gt=0, le=MAX_ANSWER_CHARS)

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        problem = _problem(pattern)
        if problem:
            raise ValueError(f"{pattern!r} is no regular expression that can be used: {problem}")
        return pattern

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        return f"Reply with a text of the form {self.pattern} (a regular expression) and nothing else."

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        expected = f"a text of the form {self.pattern}"
        if not self.strict:
            return read_reply(text, self._read, expected=expected, keys=_KEYS)
        if not self._whole(text.strip()):
            raise ParseError(expected=expected, found=text)
        return text.strip()

    def _whole(self, text: str) -> bool:
        return bool(text) and len(text) <= self.max_chars and _whole(self.pattern, text, self.strict) is True

    def _read(self, statement: Statement) -> str | None:
        """The whole statement, or its first sentence or line, or else the only word that matches."""
        if isinstance(statement.value, dict) or (isinstance(statement.value, list) and len(statement.value) != 1):
            return None
        line = statement.text.split("\n", 1)[0]
        wholes = dict.fromkeys((statement.text, line, first_sentence(line), line.split(" (")[0], line.split(", ")[0]))
        for text in wholes:
            shortened = " ".join(text.split()[:_MOST_WORDS])
            for form in (shortened, shortened.strip(_EDGES)):
                if self._whole(form):
                    return form
        words = dict.fromkeys(word.strip(_EDGES) for word in statement.text.split()[:_MOST_WORDS])
        matching = [word for word in words if self._whole(word)]
        if len(matching) > 1:
            raise ParseError(expected=f"one text of the form {self.pattern}", found=statement.text)
        return matching[0] if matching else None

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        return self.parse(value if isinstance(value, str) else "", options)

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """The whole text, if the pattern matches it."""
        del options
        if not self._whole(text.strip()):
            raise ParseError(expected=f"a text of the form {self.pattern}", found=text)
        return text.strip()

    def _one(self, text: str, options: Sequence[str]) -> JsonValue:
        return self.from_cell(text, options)  # brackets may belong to the pattern

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """None: the number and probabilities of matching texts are unknown."""
        del accepted, options
        return None

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        return _folded(reference) == _folded(prediction)


def _folded(value: JsonValue) -> str:
    return " ".join(str(value).casefold().split())


@lru_cache(maxsize=512)
def _problem(pattern: str) -> str:
    """The reason why a pattern can't be used, or an empty text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # nested sets have another meaning in `regex`
            re.compile(pattern)
        if _parts(pattern) > _MOST_PARTS:
            return "it repeats too often"
        _compiled(pattern, True)
    except (ValueError, OverflowError, re.error, _regex_error()) as error:
        return str(error)
    except RecursionError:
        return "it is nested too deep"
    except FutureWarning as warning:
        return str(warning)
    for char in sorted(set(pattern) | set("a0 ")):
        if _whole(pattern, char * _PROBES + "\u0000", True) is None:
            return "it takes too long on a short text"
    return ""


def _parts(pattern: str) -> int:
    """The number of characters or classes in a pattern with minimum repetitions written out."""
    open_groups, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        if token[0] == "(":
            open_groups.append(0)
            continue
        if token[0] == ")" and len(open_groups) > 1:
            last = open_groups.pop()
        elif token["least"]:
            last *= max(int(token["least"]), 1) - 1
        else:
            last = 1
        open_groups[-1] += last
    return sum(open_groups)


def _whole(pattern: str, text: str, strict: bool) -> bool | None:
    """Whether the whole text matches; None if matching takes too long.

    Uses the module `regex`, which has a timeout, unlike `re`. Braces that are literal in `re`, but approximate matches
    in `regex`, are escaped.
    """
    try:
        return _compiled(pattern, strict).fullmatch(text, timeout=_MOST_S) is not None
    except TimeoutError:
        return None


def _regex_error() -> type[Exception]:
    import regex

    error: type[Exception] = regex.error
    return error


@lru_cache(maxsize=512)
def _compiled(pattern: str, strict: bool) -> Any:
    import regex

    literal = _LITERAL_BRACE.sub(lambda hit: hit[0] if hit[0][0] == "\\" else r"\{", pattern)
    return regex.compile(literal, regex.VERSION0 | (0 if strict else regex.IGNORECASE))
