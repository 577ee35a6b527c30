"""What a server's rejection of a request means, by its words. The words stand in `rejections.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from proctor.core import ConfigurationError, InfrastructureError, ProctorError, RefusalError, SystemFaultError

Rejects = Literal["item", "request", "form"]
Under = Literal["rejected", "busy", "server"]
"""The kind of a status: a request that is rejected as it is (400 to 499), one that comes too early (408, 409, 425, 429),
or a server that fails (500 and more)."""

_TABLE = Path(__file__).with_suffix(".toml")
_KINDS: Mapping[str, type[ProctorError]] = {
    "system": SystemFaultError,
    "configuration": ConfigurationError,
    "refused": RefusalError,
    "infrastructure": InfrastructureError,
}
_READ_CHARS = 1500  # of a message, and of its codes: the first sentences say it; the rest may quote the question
_GAP = r"(?:(?!\. |; ).){0,80}?"
_NUMBER = r"\d[\d,._]*"
_SAY_NOTHING = {
    "invalid request error", "bad request error", "bad request", "invalid request", "server error", "api error", "error",
    "invalid argument", "invalid parameter error", "invalid parameter", "internal server error", "none", "null", "",
    "invalid value", "validation error", "validation exception", "value error", "not found error",
}  # fmt: skip
"""Codes and types that servers give to rejections of every kind."""

_CLASS = re.compile(
    r"\b(?:[\w.]*(?:Exception|APIError|BadRequestError|InternalServerError|APIConnectionError|ValueError|RuntimeError"
    r"|InvalidRequestError|InvalidParameter|InvalidArgument))\s*[:\-]+\s"
    r"|\b(?:invalid_request_error|invalid_parameter_error|bad_request_error)\b|\bcontext_?window_?fallbacks?\S*",
    re.IGNORECASE,
)
"""Names of errors that libraries and gateways put before a message of any kind."""


@dataclass(frozen=True)
class Meaning:
    """What a rejection is: the class of the error, the remedy ("" where none is known), and what is rejected (see
    `ProctorError.rejected`)."""

    kind: type[ProctorError]
    cure: str = ""
    rejects: Rejects = "item"


@dataclass(frozen=True)
class _Rule:
    kind: type[ProctorError]
    cure: str
    without_number: str
    rejects: Rejects
    under: frozenset[str]
    says: re.Pattern[str]


def meaning_of(said: str, codes: str = "", under: Under = "rejected") -> Meaning | None:
    """The meaning of a server's message and of the codes in its body (separated by commas); None where no rule fits.

    >>> meaning_of("At most 4 image(s) may be provided in one prompt.").cure.partition(",")[0]
    'this server takes 4 images a request: --max-frames 4'
    >>> meaning_of("Bad request") is None
    True
    """
    known = [
        code for code in map(_plain, codes[:_READ_CHARS].split(",")) if code not in _SAY_NOTHING and not code.isdigit()
    ]
    text = "; ".join([*known, _plain(_CLASS.sub(" ", said[:_READ_CHARS]))])
    for rule in _rules():
        if under in rule.under and (found := rule.says.search(text)):
            number = next((number for number in found.groups() if number), None)
            cure = rule.without_number if number is None else rule.cure.replace("{n}", number)
            return Meaning(rule.kind, cure, rule.rejects)
    return None


def _plain(text: str) -> str:
    """A text in the form that phrases are compared with: small letters, no quotes, words apart.

    >>> _plain("`ContextWindowExceededError`: the model's max_tokens isn't 5")
    'context window exceeded error : the models max tokens isnt 5'
    """
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()
    text = re.sub(r"(?<=\w)['’](?=\w)", "", text)
    text = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text)
    return " ".join(re.sub(r"[\"'`’‘“”_*]", " ", text).split())


@cache
def _rules() -> tuple[_Rule, ...]:
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return tuple(_rule(row, table["words"]) for row in table["rule"])


def _rule(row: Mapping[str, Any], words: Mapping[str, str]) -> _Rule:
    phrases = "|".join(_phrase(phrase, words) for phrase in str(row["says"]).splitlines() if phrase)
    cure = str(row.get("cure", ""))
    return _Rule(
        kind=_KINDS[row["is"]],
        cure=cure,
        without_number=str(row.get("else", cure)),
        rejects=row.get("rejects", "item"),
        under=frozenset(row.get("under", ["rejected"])),
        says=re.compile(rf"(?<![a-z0-9])(?:{phrases})"),
    )


_MARKS = {"#": _NUMBER, "N": r"(\d+)", "{": "(?:", "}": ")", "|": "|", "$": "$", "…": rf"{_GAP}(?<![a-z0-9])"}


def _phrase(phrase: str, words: Mapping[str, str]) -> str:
    """The regular expression of a phrase of the table."""
    for _ in range(2):  # words may name other words
        phrase = re.sub(r"<(\w+)>", lambda found: f"{{{words[found[1]]}}}", phrase)
    phrase = phrase.replace(" … ", "…")
    return "".join(_MARKS.get(mark) or re.escape(mark) for mark in phrase)
