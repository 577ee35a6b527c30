"""The blind log: what a team learns of a container that answered hidden questions. It is typed, and its size has a
bound, so that what could leak through it is bounded by arithmetic."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from proctor.core import Status

MOST_BYTES = 1024
"""Of a blind log as JSON."""

ERROR_CLASSES = frozenset(
    {
        "ArithmeticError", "AssertionError", "AttributeError", "ConnectionError", "EOFError", "Exception",
        "FileExistsError", "FileNotFoundError", "FloatingPointError", "ImportError", "IndexError", "IsADirectoryError",
        "JSONDecodeError", "KeyError", "LookupError", "MemoryError", "ModuleNotFoundError", "NameError",
        "NotADirectoryError", "NotImplementedError", "OSError", "OutOfMemoryError", "OverflowError", "PermissionError",
        "RecursionError", "RuntimeError", "SyntaxError", "SystemExit", "TimeoutError", "TypeError", "UnicodeDecodeError",
        "UnicodeEncodeError", "ValidationError", "ValueError", "ZeroDivisionError",
    }
)  # fmt: skip
"""The classes of errors that are told by name; every other one is `other`."""

_MOST_CLASSES = 5
_LAST_LINE = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?::|$)")
_MEGABYTE = 2**20
_COARSE = 16 * _MEGABYTE


class BoxReport(BaseModel):
    """What happened to a container, without a word of its own: how it ended, what it used (memory in steps of 16 MB,
    seconds rounded to whole ones), its answers by status, and the most frequent error classes of a list.

    `log` is what it printed; it stays empty on hidden questions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False
    peak_memory: int | None = None
    startup_s: int | None = None
    seconds: int = 0
    restarts: int = 0
    counts: dict[Status, int] = {}
    errors: dict[str, int] = {}
    log: str = ""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if unknown := set(self.errors) - ERROR_CLASSES - {"other"}:
            raise ValueError(f"found {min(unknown)!r}, expected an error class of the list")
        size = len(self.blind().model_dump_json()) if self.log else len(self.model_dump_json())
        if size > MOST_BYTES:
            raise ValueError(f"found {size} bytes, expected at most {MOST_BYTES}")
        return self

    def blind(self) -> BoxReport:
        """The same without what the container printed."""
        return self.model_copy(update={"log": ""})


def listed(name: str) -> str:
    """The name of an error's class as it may be told.

    >>> listed("torch.cuda.OutOfMemoryError"), listed("TheAnswerIsB")
    ('OutOfMemoryError', 'other')
    """
    last = name.rpartition(".")[2]
    return last if last in ERROR_CLASSES else "other"


def last_error(log: str) -> str:
    """The class of the error that a log ends with, as it may be told; empty where it ends with none.

    >>> last_error("Traceback (most recent call last):\\n  ...\\nValueError: the key is B\\n")
    'ValueError'
    """
    if "Traceback (most recent call last)" not in log:
        return ""
    found = [match[1] for line in log.splitlines() if (match := _LAST_LINE.match(line))]
    return listed(found[-1]) if found else ""


def most_frequent(errors: Counter[str]) -> dict[str, int]:
    """At most five classes with their counts, the rest together as `other`."""
    told = dict(sorted(errors.items(), key=lambda one: (-one[1], one[0]))[:_MOST_CLASSES])
    rest = errors.total() - sum(told.values())
    return {**told, "other": told.get("other", 0) + rest} if rest else told


def coarse(peak: int | None) -> int | None:
    """Bytes, rounded up to steps of 16 MB."""
    return None if peak is None else math.ceil(peak / _COARSE) * _COARSE
