"""Several answers of a system to each item in another program's file: which of them an answer is, and files that pass
repetitions off as items."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from proctor import core

COLUMNS = ("repetition", "epoch")
"""The columns of a table that number a system's answers to an item."""

_MOST = 1000
_SUFFIX = re.compile(
    r"(?:[#@:/_.~\s-]+|(?=\())\(?(?:rep|repeat|repetition|epoch|run|r|sample|trial|try)?[_.\s-]*(\d{1,6})\)?",
    re.IGNORECASE,
)
"""What is put behind an item's id to make another id of each answer to it: "#2", "_rep2", " (2)", "/run-2"."""


def numbered(
    cells: Sequence[tuple[str, Any]], *, column: str, first: int | None = None
) -> tuple[list[int], list[core.Finding]]:
    """The repetitions, from 0, of records by the location and the cell of each; and what is wrong with them. The file
    counts from 0 if it has a 0, else from 1; `first` says which, if that is known. A number that no record has, below the
    largest one, is a fault of the file.

    >>> numbered([("row 2", "1"), ("row 3", 2.0)], column="repetition")[0]
    [0, 1]
    >>> [one.line for one in numbered([("row 2", 1), ("row 3", 3)], column="repetition")[1]]
    ["column 'repetition': found 1, 3 and no 2, expected every number from 1 to 3"]
    >>> [one.line for one in numbered([("row 2", "second")], column="epoch")[1]]
    ["row 2, column 'epoch': found 'second', expected a whole number from 0 or 1"]
    """
    faults, numbers = [], []
    for location, cell in cells:
        number = core.cell_number(cell) if isinstance(cell, str) else cell
        if (
            isinstance(number, bool)
            or not isinstance(number, int | float)
            or number != int(number)
            or not 0 <= number <= _MOST
        ):
            found, expected = repr(core.cell_text(cell))[:60], "a whole number from 0 or 1"
            faults.append(_fault("a repetition", f"{location}, column {column!r}", found, expected))
        else:
            numbers.append(int(number))
    if faults or not numbers:
        return [], faults
    start = first if first is not None else min(numbers) if min(numbers) < 2 else 1
    known, most = set(numbers), max(numbers)
    if lacking := [number for number in range(start, most + 1) if number not in known]:
        some = f"{', '.join(map(str, sorted(known)[:5]))} and no {lacking[0]}"
        return [], [_fault("a gap", f"column {column!r}", some, f"every number from {start} to {most}")]
    return [number - start for number in numbers], []


def suffixed(key: str, items: Collection[str]) -> tuple[str, int] | None:
    """The item and the number in a `key` such as "q1#2", if it is no item's id and what stands before its end is one.

    >>> suffixed("q1#2", {"q1"}), suffixed("q1 (2)", {"q1"}), suffixed("q1_rep2", {"q1"}), suffixed("q1/run-2", {"q1"})
    (('q1', 2), ('q1', 2), ('q1', 2), ('q1', 2))
    >>> suffixed("q1#2", {"q1", "q1#2"}), suffixed("q12", {"q1"})
    (None, None)
    """
    if key in items:
        return None
    for start in range(len(key) - 1, 0, -1):
        if key[:start] in items and (found := _SUFFIX.fullmatch(key, start)) is not None:
            return key[:start], int(found[1])
    return None


def passed_off(records: Iterable[tuple[str, str]], items: Collection[str]) -> list[core.Finding]:
    """The fault of records (location and id) that are answers to one item under several ids of their own, if any are."""
    seen: dict[str, tuple[str, str]] = {}
    for location, key in records:
        found = suffixed(key, items)
        if found is None:
            continue
        before = seen.setdefault(found[0], (location, key))
        if before[1] != key:
            expected = f"the id {found[0]!r} for both, and a column 'repetition' with their numbers"
            what = f"{key!r} after {before[1]!r} ({before[0]}), answers to one item as if to two"
            return [_fault("repetitions as items", location, what, expected)]
    return []


def missing_note(answers: Iterable[tuple[str, int]]) -> list[str]:
    """A note on items without an answer of a repetition that others have, from the item and repetition of each answer; none
    where the file has one repetition.

    >>> missing_note([("q1", 0), ("q1", 1), ("q2", 0)])
    ['1 of 4 answers are missing in 2 repetitions: q2 has no answer of repetition 1 (counted from 0)']
    """
    repetitions: dict[str, set[int]] = {}
    for name, own in answers:
        repetitions.setdefault(name, set()).add(own)
    count = 1 + max((number for numbers in repetitions.values() for number in numbers), default=0)
    lacking = {
        item: min(set(range(count)) - set(numbers)) for item, numbers in repetitions.items() if len(numbers) < count
    }
    if not lacking:
        return []
    missing = sum(count - len(repetitions[item]) for item in lacking)
    item, number = next(iter(lacking.items()))
    of = f"{missing} of {count * len(repetitions)} answers are missing in {count} repetitions"
    return [f"{of}: {item} has no answer of repetition {number} (counted from 0)"]


def _fault(kind: str, location: str, found: str, expected: str) -> core.Finding:
    return core.Finding(kind, location, found, expected, line=f"{location}: found {found}, expected {expected}")
