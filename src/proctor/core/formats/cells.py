"""What the cells of a spreadsheet state: alternatives, lists, numbers, JSON. Strict: a reference is never guessed."""

from __future__ import annotations

import json
import math
import unicodedata

from pydantic import JsonValue

from proctor.core.errors import ParseError
from proctor.core.patterns import deferred

MOST_CELL_CHARS = 32_767
"""As many characters as a cell of Excel holds."""

_BAR = deferred(r"(?<!\\)\|")
_LIST = deferred(r"\s*(?:;|,(?!\d)|(?<!\d),|\n)\s*")
_NUMBER = deferred(r"(?P<sign>[-+]?)(?P<whole>\d{1,15})(?:[.,](?P<part>\d{1,15}))?(?P<power>[eE][-+]?\d{1,2})?")
_GROUPED = deferred(r"[-+]?\d{1,3},\d{3}")
_MINUS = str.maketrans("\u2212\u2013\ufe63\uff0d", "----")


def alternatives(text: str) -> list[str]:
    """The parts of a cell between bars; a bar that belongs to the text is written with a backslash before it.

    >>> alternatives("liver | hepar"), alternatives(r"a\\|b")
    (['liver', 'hepar'], ['a|b'])
    """
    return [part.replace(r"\|", "|").strip() for part in _BAR.split(text)]


def listed(text: str) -> list[str]:
    """The parts of a list: between semicolons, lines and commas. A comma between two digits parts only where no other
    sign does.

    >>> listed("clip, sponge; mesh"), listed("0:30,1:05"), listed("1,5; 2")
    (['clip', 'sponge', 'mesh'], ['0:30', '1:05'], ['1,5', '2'])
    """
    parts = _LIST.split(text.strip())
    parts = parts if len(parts) > 1 else text.split(",")
    return [part.strip() for part in parts if part.strip()]


def cell_quantity(text: str, expected: str) -> float:
    """The number that a text is: digits of any script, with a decimal point or comma. Raises `ParseError` for anything
    else, and for "1,000", which is a thousand in one country and one in another.

    >>> cell_quantity("37,5", "a number"), cell_quantity("-2", "a number")
    (37.5, -2.0)
    >>> cell_quantity("1,000", "a number")
    Traceback (most recent call last):
    proctor.core.errors.ParseError: expected a number (1000 or 1.0: a comma before three digits may mean either), found '1,000'
    """
    said = unicodedata.normalize("NFKC", text).translate(_MINUS).strip()
    if _GROUPED.fullmatch(said):
        raise ParseError(expected=f"{expected} (1000 or 1.0: a comma before three digits may mean either)", found=text)
    if not _NUMBER.fullmatch(said):
        raise ParseError(expected=expected, found=text)
    value = float(said.replace(",", "."))
    if not math.isfinite(value):
        raise ParseError(expected=expected, found=text)
    return value


def cell_json(text: str) -> JsonValue:
    """The JSON list or object that a whole cell is; None where it is something else. NaN and infinity are none.

    >>> cell_json('["A", "B"]'), cell_json("A, B")
    (['A', 'B'], None)
    """
    if text[:1] not in {"[", "{"} or len(text) > MOST_CELL_CHARS:
        return None
    try:
        found: JsonValue = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return found


def _refused(constant: str) -> float:
    raise ValueError(constant)


def plain_words(text: str) -> str:
    """A text in which case, width and white space make no difference.

    >>> plain_words("  Left  KIDNEY ")
    'left kidney'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
