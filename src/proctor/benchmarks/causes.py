"""Many findings with few causes, told by cause: what thousands of rows share is one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Noted", "by_cause"]

_SHOWN = 3


@dataclass(frozen=True)
class Noted:
    """One finding: `line` says all of it; `place` is where it is ("q1", "row 7"), `row` its number where it has one.
    Findings with one `kind` (level, rule or column) and one `expected` have one cause."""

    kind: str
    place: str
    found: str
    expected: str
    line: str
    row: int = 0


def by_cause(findings: Sequence[Noted]) -> list[str]:
    """A line for each cause that more than three findings share, with three examples or the rows, and one for every
    other finding; in order of appearance, but what has a row before what only follows from it.

    >>> noted = [Noted("error: lang", f"row {n}", "'EN'", "one of en, zh", "", n) for n in range(2, 2906)]
    >>> by_cause(noted)
    ["error: lang: 2,904 times: found 'EN', expected one of en, zh (rows 2–2905)"]
    """
    groups: dict[tuple[str, str], list[Noted]] = {}
    for one in findings:
        groups.setdefault((one.kind, one.expected), []).append(one)
    lines: list[str] = []
    for some in sorted(groups.values(), key=_rank):
        lines += [_told(some)] if len(some) > _SHOWN else [one.line for one in some]
    return lines


def _rank(some: Sequence[Noted]) -> tuple[bool, bool]:
    return not some[0].kind.startswith("error"), not any(one.row for one in some)


def _told(some: Sequence[Noted]) -> str:
    first = some[0]
    head = f"{first.kind}: {len(some):,} times"
    if len({one.found for one in some}) == 1:
        where = _rows(some) if all(one.row for one in some) else _places(some)
        return f"{head}: found {first.found}, expected {first.expected} ({where})"
    examples = "; ".join(f"{one.place}: {one.found}" if one.place else one.found for one in some[:_SHOWN])
    return f"{head}: expected {first.expected}; found {examples}; and {len(some) - _SHOWN:,} more (--all)"


def _places(some: Sequence[Noted]) -> str:
    return f"{', '.join(one.place for one in some[:_SHOWN])} and {len(some) - _SHOWN:,} more (--all)"


def _rows(some: Sequence[Noted]) -> str:
    """Rows on end as a range; else the first ones."""
    rows = sorted(one.row for one in some)
    if rows[-1] - rows[0] == len(rows) - 1:
        return f"rows {rows[0]}–{rows[-1]}"
    return f"rows {', '.join(map(str, rows[:_SHOWN]))} and {len(rows) - _SHOWN:,} more (--all)"
