"""Text: cleaning untrusted text for storage, clock times, number words, natural sort order, and regular expressions
that are compiled on first use."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, JsonValue

_UNFIT = re.compile("[\x00\ud800-\udfff]")
_SECRET_NAME = re.compile(r"(api[_-]?key|secret|passw|authorization|credential|bearer)", re.IGNORECASE)
_REPLACEMENT = "\ufffd"
_MOST_DEPTH = 60
_MOST_BITS = 1024
_JSON = (str, int, list, dict)


def kept_text(text: str) -> str:
    """The text with each NUL and each lone surrogate replaced by the replacement character.

    >>> kept_text("B\\ud800 or\\x00 C") == "B\\ufffd or\\ufffd C"
    True
    """
    return text if text.isascii() and "\x00" not in text else _UNFIT.sub(_REPLACEMENT, text)


def collapse_spaces(text: str) -> str:
    """The text on one line, without surrounding whitespace, each run of whitespace replaced by one space.

    >>> collapse_spaces("  two\\n  words ")
    'two words'
    """
    return " ".join(text.split())


def looks_secret(name: str) -> bool:
    """Whether a setting with this name probably holds a secret.

    >>> looks_secret("api_key"), looks_secret("max_tokens")
    (True, False)
    """
    return bool(_SECRET_NAME.search(name))


def unfit(text: str) -> str:
    """The first character in a text that can't be stored, in words; empty if there is none.

    >>> unfit("q\\x00"), unfit("q1")
    ('a NUL character', '')
    """
    hit = _UNFIT.search(text)
    if hit is None:
        return ""
    return "a NUL character" if hit[0] == "\x00" else "half a character (a lone surrogate)"


def kept_json(value: JsonValue) -> JsonValue:
    """The JSON value with all texts cleaned by `kept_text`. Values nested more than 60 deep, and integers of more than
    300 digits, are replaced by a text that says so.

    >>> kept_json({"a\\ud800": ["\\x00", 10**400]}) == {"a\\ufffd": ["\\ufffd", "a number of more than 300 digits"]}
    True
    """
    return _kept(value, 0)


def _kept(value: JsonValue, depth: int) -> JsonValue:
    if isinstance(value, str):
        return kept_text(value)
    if isinstance(value, int):
        return value if value.bit_length() <= _MOST_BITS else "a number of more than 300 digits"
    if depth == _MOST_DEPTH and isinstance(value, (list, dict)):
        return "nested too deep"
    if isinstance(value, list):
        return [_kept(entry, depth + 1) for entry in value]
    if isinstance(value, dict):
        return {kept_text(key): _kept(entry, depth + 1) for key, entry in value.items()}
    return value


def _text_if_text(value: object) -> object:
    return kept_text(value) if isinstance(value, str) else value


def _json_if_json(value: object) -> object:
    return _kept(value, 0) if isinstance(value, _JSON) else value


KeptText = Annotated[str, BeforeValidator(_text_if_text)]
"""A text in a record, cleaned by `kept_text`."""

KeptJson = Annotated[JsonValue, BeforeValidator(_json_if_json)]
"""A JSON value in a record, cleaned by `kept_json`."""

KeptObject = Annotated[dict[str, JsonValue], BeforeValidator(_json_if_json)]
"""A JSON object in a record, cleaned by `kept_json`."""

NUMBER_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
"""The integers from 0 to 19 in words."""

_CLOCK_ROUNDING = 1e-6


def clock_text(seconds: float, *, millis: bool = False) -> str:
    """Elapsed time as hh:mm:ss, rounded down to seconds, or to the nearest millisecond.

    >>> clock_text(0.1 * 3 * 10), clock_text(3725.9), clock_text(75.25, millis=True)
    ('00:00:03', '01:02:05', '00:01:15.250')
    """
    past = max(0.0, seconds)
    whole, rest = divmod(round(past * 1000), 1000) if millis else (math.floor(past + _CLOCK_ROUNDING), 0)
    clock = f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{clock}.{rest:03d}" if millis else clock


_SCALE = {"short": "0", "small": "0", "low": "0", "medium": "1", "long": "2", "large": "2", "high": "2"}
"""Words of an ordinal scale and their positions."""


def natural(text: str) -> list[tuple[int, float, str]]:
    """A sort key for natural order: numbers are compared as numbers ("stage 9" before "stage 10"), and "<5" comes
    before "5". Words of a scale (short, medium, long) are ordered by size and come before other words.

    >>> sorted([">20 s", "10-20 s", "5-10 s", "<5 s"], key=natural)
    ['<5 s', '5-10 s', '10-20 s', '>20 s']
    >>> sorted(["stage 10", "stage 9"], key=natural)
    ['stage 9', 'stage 10']
    >>> sorted(["long", "medium", "short"], key=natural)
    ['short', 'medium', 'long']
    """
    if (step := _SCALE.get(text.casefold())) is not None:
        return [(1, 0.0, step)]
    parts = re.findall(r"([<≤]?)\s*(\d+(?:\.\d+)?)|([^\W\d_]+)", text)
    return [
        (1, 0.0, word.casefold()) if word else (0, float(number) - (0.5 if below else 0.0), "")
        for below, number, word in parts
    ]


def printable(text: str) -> str:
    r"""Untrusted text for display: at most 80 characters, with control characters escaped.

    >>> printable("ENC1\x1b[31m")
    'ENC1\\x1b[31m'
    """
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[:80])
    return shown + ("…" if len(text) > 80 else "")


class _Deferred:
    """A compiled regular expression, created at the first access to an attribute."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # copying and inspecting do not compile it
        value = getattr(re.compile(*self._source), name)
        self.__dict__[name] = value
        return value


def deferred(source: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern like that of `re.compile`, compiled at first use; so an invalid one raises `re.error` only then.

    >>> word = deferred("[a-z]+", re.IGNORECASE)
    >>> word.findall("Cut the duct"), word.pattern
    (['Cut', 'the', 'duct'], '[a-z]+')
    """
    return cast("re.Pattern[str]", _Deferred(source, flags))
