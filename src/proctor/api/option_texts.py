"""What options of several parts mean as they are typed: KEY=VALUE, FIELD=COLUMN, FACET,FACET."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proctor.core import InputError, UsageError


def settings_pairs(what: str) -> Callable[[Any], Any]:
    def read(pairs: Any) -> Any:
        from proctor.models import parse_settings

        return parse_settings(pairs, what)

    return read


def texts(pairs: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE pairs as they are typed, each key once."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key or key in found:
            raise InputError(None, "--option", found=repr(pair), expected="each KEY=VALUE once")
        found[key] = value
    return found


def columns_of(pairs: Sequence[str]) -> dict[str, list[str]]:
    """FIELD=COLUMN pairs; a field may have several columns."""
    found: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        if not equals or not name.strip() or not column.strip():
            raise UsageError("--map", "FIELD=COLUMN, such as question=Frage", found=repr(pair))
        found.setdefault(name.strip(), []).append(column.strip())
    return found


def facets_of(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
