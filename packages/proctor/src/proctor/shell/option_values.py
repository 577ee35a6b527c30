"""Reading option values as they are typed (KEY=VALUE, FACET,FACET, 20GB, K/N), and the names that a shell completes."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from numbers import Integral, Real
from types import NoneType
from typing import Any, get_args

from proctor.core import BENCHMARKS, InputError, Option, Registry, UsageError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def settings_pairs(what: str) -> Callable[[Any], Any]:
    """A reader of KEY=VALUE pairs whose values are JSON; `what` names them in errors."""

    def read(pairs: Any) -> Any:
        from proctor.models import parse_settings

        return parse_settings(pairs, what)

    return read


def conditions_of(given: Any) -> tuple[str, ...]:
    """The names of one or several conditions. Raises `UsageError` for none, duplicates, and what is no name.

    >>> conditions_of("video"), conditions_of(["video", "black"])
    (('video',), ('video', 'black'))
    """
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    strange = [repr(name) for name in names if not isinstance(name, str)]
    if strange or not names:
        raise UsageError(f"{(strange or ['Nothing'])[0]} is no name of a condition: proctor list conditions")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--condition {twice} is given twice: give each once.")
    return names


def check_number(name: str, kind: Any, option: Option, value: Any) -> None:
    """Raises `UsageError` for the value of an option that is declared as a number, and is none, or out of its range. The
    shell refuses the same.

    >>> check_number("draws", int, Option(low=100), 100)
    >>> check_number("draws", int, Option(low=100), 1)
    Traceback (most recent call last):
    proctor.core.errors.UsageError: --draws 1 can't be used: give a whole number of 100 or more.
    """
    kinds = get_args(kind) or (kind,)
    if not all(one in (int, float, NoneType) for one in kinds) or (value is None and NoneType in kinds):
        return
    number = isinstance(value, Real if float in kinds else Integral) and not isinstance(value, bool)
    least, most = option.low, option.high
    if not number or not (least is None or value >= least) or not (most is None or value <= most):
        what = "a number" if float in kinds else "a whole number"
        bounds = "" if least is None else f" of {least:g} or more" if most is None else f" from {least:g} to {most:g}"
        shown = next((one for one in option.name.split() if one.startswith("--")), f"--{name.replace('_', '-')}")
        raise UsageError(f"{shown} {repr(value)[:80]} can't be used: give {what}{bounds}.")


def texts(pairs: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE pairs as texts. Raises `InputError` for a duplicate key."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key or key in found:
            raise InputError(f"--option {pair!r} can't be used: write KEY=VALUE, each key once.")
        found[key] = value
    return found


def columns_of(pairs: Sequence[str]) -> dict[str, list[str]]:
    """FIELD=COLUMN pairs; a field may have several columns."""
    found: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        if not equals or not name.strip() or not column.strip():
            raise UsageError(f"--map {pair!r} names no column: write FIELD=COLUMN, such as --map question=Frage.")
        found.setdefault(name.strip(), []).append(column.strip())
    return found


def facets_of(text: str) -> tuple[str, ...]:
    """The names in a list separated by commas; one with a comma stands in double quotes, as in CSV.

    >>> facets_of('theatre, "side, of the room"')
    ('theatre', 'side, of the room')
    """
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip())


def size_in_bytes(text: str | None) -> int | None:
    """The number of bytes of a size such as "20GB" (powers of ten); None stays None.

    >>> size_in_bytes("1.5GB"), size_in_bytes("800 mb"), size_in_bytes("4096")
    (1500000000, 800000000, 4096)
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", text.strip().upper())
    if found is None:
        raise UsageError(f"{text!r} is no size: write it like 20GB or 500MB.")
    return round(float(found[1]) * _UNITS[found[2]])


_SPAN = re.compile(r"(?:(?P<h>\d{1,5})h)?(?:(?P<m>\d{1,6})m)?(?:(?P<s>\d{1,7}(?:\.\d{1,3})?)s?)?", re.ASCII)


def time_span(text: str | float | None) -> float | None:
    """The seconds of a span of time, such as "90", "45m", "2h" or "1h30m"; a number and None stay as they are. Raises
    `UsageError` for any other text, and for nothing above 0.

    >>> time_span("1h30m"), time_span("90"), time_span("2.5s"), time_span(7), time_span(None)
    (5400.0, 90.0, 2.5, 7.0, None)
    """
    if text is None:
        return None
    if isinstance(text, str):
        found = _SPAN.fullmatch(text.strip())
        parts = {"h": 3600.0, "m": 60.0, "s": 1.0}
        seconds = 0.0 if found is None else sum(float(found[one] or 0) * unit for one, unit in parts.items())
    else:
        seconds = float(text)
    if not 0 < seconds < math.inf:
        raise UsageError(f"--max-time {str(text)[:80]!r} can't be used: write it like 90 (seconds), 45m, 2h or 1h30m.")
    return seconds


def shard_of(text: str | None) -> tuple[int, int] | None:
    """The part and the number of parts of "K/N"; None stays None.

    >>> shard_of("2/8")
    (2, 8)
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip(), re.ASCII)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard {text!r} can't be used: write K/N, with K from 1 to N, such as 2/8.")
    return int(found[1]), int(found[2])


def names_in(location: str) -> Callable[[], list[str]]:
    """The names of a registry or table, given as "module:NAME", for completion. The module is imported when a shell
    asks for the names, not before."""

    def names() -> list[str]:
        module, _, name = location.partition(":")
        found: Any = getattr(import_module(module), name)
        return found.names() if isinstance(found, Registry) else list(found)

    return names


benchmark_names = names_in("proctor.core:BENCHMARKS")
condition_names = names_in("proctor.media:CONDITIONS")
judge_names = names_in("proctor.judges:JUDGES")
perturbation_names = names_in("proctor.audits:PERTURBATIONS")
system_names = names_in("proctor.systems:SYSTEMS")


def validator_names() -> list[str]:
    """What `check` can check beside questions: benchmarks' submissions and kinds of files."""
    from proctor.core import VALIDATORS

    return sorted({*VALIDATORS.names(), *BENCHMARKS.names()})


def read_formats() -> list[str]:
    """The formats of other programs that can be read."""
    from proctor.interchange import FORMATS

    return FORMATS.read()
