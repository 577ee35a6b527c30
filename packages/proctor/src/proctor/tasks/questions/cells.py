"""Parse cells as people write them: times, lists, paths and options."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from proctor.core import JsonError, ParseError, ShortClock, cell_text, is_empty, load_json
from proctor.core.formats import option_letters

_CLOCK = re.compile(r"(?:(\d{1,3}):)?(\d{1,3}):(\d{2})(?:([.,])(\d{1,6}))?", re.ASCII)
_SECONDS = re.compile(r"(\d{1,7})(?:([.,])(\d{1,9}))?\s?(?:s|sec|seconds?|sek(?:unden)?)?", re.ASCII | re.IGNORECASE)
_SPLIT = re.compile(r"(?:(?<!\s)\s+)?[;；|\n]\s*")
_DIRECTION = re.compile("[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_LETTERED = re.compile(r"(?:^|(?<=[\s;|,]))\(?([A-Z])[.):]\s+")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_TIME = "seconds, m:ss or h:mm:ss"
_DAY = 86_400


def undirected(cell: Any) -> Any:
    """A cell's text without invisible marks of direction, and with the digits of any script as ASCII ones.

    >>> undirected("\u200fB\u200f"), undirected("\u0661:\u0660\u0665")
    ('B', '1:05')
    """
    if not isinstance(cell, str) or cell.isascii():
        return cell
    kept = unicodedata.normalize("NFKC", _DIRECTION.sub("", cell))
    return "".join(str(unicodedata.decimal(one, one)) for one in kept)


def seconds_of(cell: Any, *, decimal_comma: bool) -> float | None:
    """The seconds in a cell: a number, a spreadsheet's time, or "1:05" (a minute and five seconds); None for an empty
    cell. Raises `ParseError` for an ambiguous time.

    >>> seconds_of("1:05:03", decimal_comma=False), seconds_of("2,5", decimal_comma=True), seconds_of(12, decimal_comma=False)
    (3903.0, 2.5, 12.0)
    """
    if is_empty(cell):
        return None
    if isinstance(cell, dt.timedelta):
        return cell.total_seconds()
    if isinstance(cell, dt.time):
        return cell.hour * 3600 + cell.minute * 60 + cell.second + cell.microsecond / 1e6
    text = cell_text(cell)
    if isinstance(cell, ShortClock):
        raise ParseError(expected="a time with its seconds (h:mm:ss), or seconds", found=str(cell))
    if isinstance(cell, dt.date | bool):
        raise ParseError(expected=_TIME, found=text.replace("T00:00:00", ""))
    if isinstance(cell, int | float):
        return _plain_seconds(float(cell), text)
    return _text_seconds(text, decimal_comma)


def _plain_seconds(value: float, text: str) -> float:
    if not 0 <= value < 10**7:
        raise ParseError(expected=_TIME, found=text)
    share = value * _DAY
    if 0 < value < 1 and len(text) > 7 and abs(share - round(share)) < 1e-3 * _DAY / 10**5:
        clock = dt.timedelta(seconds=round(share))
        raise ParseError(expected=f"{_TIME} (a spreadsheet keeps {clock} so)", found=text)
    return value


def _text_seconds(text: str, decimal_comma: bool) -> float:
    clock = _CLOCK.fullmatch(text)
    plain = _SECONDS.fullmatch(text)
    hit = clock or plain
    if hit is None:
        raise ParseError(expected=_TIME, found=text)
    sign, fraction = (clock[4], clock[5]) if clock else (hit[2], hit[3])
    if sign == "," and not decimal_comma:
        raise ParseError(expected=f"{_TIME} with a decimal point", found=text)
    if clock is None:
        return _plain_seconds(float(f"{hit[1]}.{fraction or 0}"), text.replace(",", "."))
    hours, minutes, seconds = int(clock[1] or 0), int(clock[2]), int(clock[3])
    if seconds > 59 or (clock[1] and minutes > 59):
        raise ParseError(expected=_TIME, found=text)
    return hours * 3600 + minutes * 60 + float(f"{seconds}.{fraction or 0}")


def texts_of(cell: Any) -> list[str]:
    """The entries of a cell: a list, or texts separated by semicolons, bars or line breaks.

    >>> texts_of("liver; spleen"), texts_of(["a.png"]), texts_of(None)
    (['liver', 'spleen'], ['a.png'], [])
    """
    if is_empty(cell):
        return []
    if isinstance(cell, list | tuple):
        return [cell_text(one) for one in cell if not is_empty(one)]
    text = cell_text(cell)
    if text.startswith("[") and text.endswith("]"):
        try:
            return [cell_text(one) for one in load_json(text) if not is_empty(one)]
        except JsonError:
            pass  # a text in brackets
    return [one for one in _SPLIT.split(text) if one]


def options_of(cell: Any) -> list[str]:
    """The options in one cell: a list, an object by letters, texts separated by semicolons, bars or line breaks, or
    "A) liver B) spleen"; letters before options are removed. Raises `ParseError` for a text with one entry.

    >>> options_of("A) liver B) spleen"), options_of("liver | spleen"), options_of({"A": "liver", "B": "spleen"})
    (['liver', 'spleen'], ['liver', 'spleen'], ['liver', 'spleen'])
    """
    if isinstance(cell, dict):
        keys = sorted(key for key, value in cell.items() if not is_empty(value))
        if set(keys) == {"label", "text"}:  # as in ARC
            return texts_of(cell["text"])
        return [cell_text(cell[key]) for key in keys]
    parts = texts_of(cell)
    if len(parts) == 1:
        parts = [one.strip(" ,;|") for one in _LETTERED.split(parts[0])[2::2]] or parts
        if len(parts) == 1 and not isinstance(cell, list):
            raise ParseError(expected="two or more options, separated by semicolons", found=parts[0])
    marked = [_LETTERED.match(part) for part in parts]
    letters = [hit[1] for hit in marked if hit is not None]
    if len(parts) <= 26 and letters == option_letters(len(parts)):
        return [_LETTERED.sub("", part, count=1) for part in parts]
    return parts


def path_of(text: str) -> str:
    """A path below the folder of the questions, with "/" between its parts. Raises `ParseError` for a path outside it.

    >>> path_of("videos\\\\a.mp4"), path_of("./a.png")
    ('videos/a.mp4', 'a.png')
    """
    expected = "a path below the folder of the questions"
    if _URL.match(text):
        raise ParseError(expected="a file on this machine, by its path", found=text)
    if _DRIVE.match(text) or "\0" in text:
        raise ParseError(expected=expected, found=text)
    pure = PurePosixPath(text.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or text.startswith("~"):
        raise ParseError(expected=expected, found=text)
    return pure.as_posix()


def letter_of(text: str, options: Sequence[str]) -> str:
    """The letter of the option that a reference names by letter, text, or both. Raises `ParseError` if it names none, or
    one by letter and another by text.

    >>> letter_of("b", ["liver", "spleen"]), letter_of("Spleen", ["liver", "spleen"]), letter_of("B) spleen", ["liver", "spleen"])
    ('B', 'B', 'B')
    """
    letters = option_letters(len(options))
    same = [letter for letter, option in zip(letters, options, strict=True) if _same(option, text)]
    prefix = re.match(r"\(?([A-Za-z])(?:\)|[.):]?$|[.:]\s|\)\s)\s*", text)
    named = prefix[1].upper() if prefix is not None and prefix[1].upper() in letters else ""
    rest = text[prefix.end() :].strip() if prefix is not None else ""
    if named and rest and not _same(options[letters.index(named)], rest):
        named = ""
    found = {*same, *([named] if named else [])}
    if len(found) == 1:
        return found.pop()
    expected = f"one of {', '.join(letters)}, or the text of an option" if not found else "one option, not two"
    raise ParseError(expected=expected, found=text)


def _same(one: str, other: str) -> bool:
    return " ".join(one.casefold().split()).rstrip(".") == " ".join(other.casefold().split()).rstrip(".")
