"""Text: spaces, clock times, number words, natural sort order, and regular expressions that are compiled on first
use."""

from __future__ import annotations

import math
import re
from typing import Any, cast

_SECRET_NAME = re.compile(r"(api[_-]?key|secret|passw|authorization|credential|bearer)", re.IGNORECASE)


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
    parts = re.findall(r"(?:([<≤])\s*)?(\d+(?:\.\d+)?)|([^\W\d_]+)", text)
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
