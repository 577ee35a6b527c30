"""What is wrong with a file: findings, grouped by their cause, and the report of a check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Literal

from pydantic import JsonValue

from proctor.core.csv_files import TableFault
from proctor.core.errors import InputError
from proctor.core.formatting import count_of, thousands
from proctor.core.registry import PluginReport
from proctor.core.table import Table

_SHOWN = 3


@dataclass(frozen=True)
class Finding:
    """Something at a location ("q1", "row 7"; `row` is its number), by a rule (or a column). For an `error` the file is no
    submission and is refused; what is `wrong` is accepted and counted as a wrong answer; a `warning` is for a person to
    look at. `line` replaces the text that is made of the other fields.

    >>> print(Finding("late", "q1", "31 s", "at most 30 s", "wrong"))
    wrong: late: q1: found 31 s, expected at most 30 s
    """

    rule: str
    location: str
    found: str
    expected: str
    severity: Literal["error", "wrong", "warning", ""] = "error"
    row: int = 0
    line: str = ""

    @property
    def kind(self) -> str:
        """Severity and rule. Findings with one kind and one expectation have one cause."""
        return ": ".join(filter(None, (self.severity, self.rule)))

    def __str__(self) -> str:
        verdict = f"found {self.found}, expected {self.expected}"
        return self.line or ": ".join(filter(None, (self.kind, self.location, verdict)))


def by_cause(findings: Sequence[Finding], option: str = "--all") -> list[str]:
    """One line per cause with more than three findings (with examples or row numbers), and one line per other finding.

    Causes are in order of appearance, with errors first, then what is counted as wrong, and those with rows before those
    without. `option` is that of the command that lists all findings ("": none).

    >>> findings = [Finding("lang", f"row {n}", "'EN'", "one of en, zh", row=n) for n in range(2, 2906)]
    >>> by_cause(findings)
    ["error: lang: 2\\u202f904 times: found 'EN', expected one of en, zh (rows 2–2905)"]
    """
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.kind, finding.expected), []).append(finding)
    lines: list[str] = []
    for group in sorted(groups.values(), key=_rank):
        lines += [_summary(group, option)] if len(group) > _SHOWN else [str(finding) for finding in group]
    return lines


def _rank(group: Sequence[Finding]) -> tuple[int, bool]:
    order = {"error": 0, "wrong": 1}
    return order.get(group[0].severity, 2), not any(finding.row for finding in group)


def _summary(group: Sequence[Finding], option: str) -> str:
    first = group[0]
    head = f"{first.kind}: {thousands(len(group))} times"
    more = f"{thousands(len(group) - _SHOWN)} more{option and f' ({option})'}"
    if len({finding.found for finding in group}) > 1:
        examples = "; ".join(": ".join(filter(None, (finding.location, finding.found))) for finding in group[:_SHOWN])
        return f"{head}: expected {first.expected}; found {examples}; and {more}"
    rows = sorted(finding.row for finding in group)
    if not all(rows):
        where = f"{', '.join(finding.location for finding in group[:_SHOWN])} and {more}"
    elif rows[-1] - rows[0] == len(rows) - 1:
        where = f"rows {rows[0]}–{rows[-1]}"
    else:
        where = f"rows {', '.join(map(str, rows[:_SHOWN]))} and {more}"
    return f"{head}: found {first.found}, expected {first.expected} ({where})"


def table_findings(faults: Sequence[tuple[Path, TableFault]]) -> list[Finding]:
    """The faults of tables, each with its file, as findings by file and column.

    >>> print(table_findings([(Path("a.csv"), TableFault(3, "score", "'high'", "a number"))])[0])
    a.csv: row 3, column 'score': found 'high', expected a number
    """
    return [
        Finding(
            f"{file}: column {one.column!r}" if one.column else str(file),
            one.location,
            one.found,
            one.expected,
            "",
            one.row,
            str(one.error(file)),
        )
        for file, one in faults
    ]


def error_of_faults(source: Path, faults: Sequence[tuple[Path, TableFault]]) -> InputError:
    """The error of the only fault; of several one about the `source`, with a note for each cause.

    >>> error = error_of_faults(Path("a.csv"), [(Path("a.csv"), TableFault(n, "", "'x'", "yes")) for n in (3, 4)])
    >>> print(error, error.__notes__[0])
    a.csv: found 2 faults, expected none (see above) a.csv: row 3: found 'x', expected yes
    """
    if len(faults) == 1:
        return faults[0][1].error(faults[0][0])
    error = InputError(source, found=f"{thousands(len(faults))} faults", expected="none (see above)")
    for line in by_cause(table_findings(faults), option=""):
        error.add_note(line)
    return error


def first_fault(file: Path, faults: Sequence[TableFault]) -> InputError:
    """The error of the first fault of a table, with a note for each cause if there are several.

    >>> error = first_fault(Path("a.csv"), [TableFault(n, "", "'x'", "yes") for n in range(3, 8)])
    >>> print(error, *error.__notes__, sep=" | ")
    a.csv: row 3: found 'x', expected yes | 5 faults in all: | a.csv: 5 times: found 'x', expected yes (rows 3–7)
    """
    error = faults[0].error(file)
    if len(faults) > 1:
        error.add_note(f"{thousands(len(faults))} faults in all:")
        for line in by_cause(table_findings([(file, fault) for fault in faults]), option=""):
            error.add_note(line)
    return error


_MOST_OF_ALL = 0.9
_KINDS = {str: "texts", list: "lists", int: "numbers", float: "numbers", bool: "true or false", type(None): "null"}


def check_fields(file: Path, entries: Sequence[object], needed: Sequence[str], expected: str) -> None:
    """Raises one `InputError` if nearly all entries of a file (more than three) lack a needed field: then the fields have
    other names, and what each entry lacks is only a consequence. `expected` names the fields.

    >>> entries = [{"question_id": str(number), "answer": "yes"} for number in range(9)]
    >>> check_fields(Path("a.json"), entries, ("qID", "content"), "the fields qID and content")
    Traceback (most recent call last):
    proctor.core.errors.InputError: a.json: found entries with the fields question_id, answer, expected the fields qID and content
    """
    objects = [entry for entry in entries if isinstance(entry, dict)]
    lacking = [entry for entry in objects if any(name not in entry for name in needed)]
    if len(entries) > _SHOWN and len(objects) < len(entries) * (1 - _MOST_OF_ALL):
        kinds = Counter(_KINDS.get(type(entry), "objects") for entry in entries)
        raise InputError(
            file, found=f"entries that are {kinds.most_common(1)[0][0]}", expected=f"objects with {expected}"
        )
    if len(lacking) > max(_SHOWN, _MOST_OF_ALL * len(entries) - 1):
        names = [str(name)[:40] for name in dict.fromkeys(name for entry in lacking[:100] for name in entry)]
        more = " …" if len(names) > 2 * _SHOWN else ""
        found = f"entries with the fields {', '.join(names[: 2 * _SHOWN])}{more}" if names else "empty entries"
        raise InputError(file, found=found, expected=expected)


def check_wrapped(file: Path, value: Mapping[str, object]) -> None:
    """Raises `InputError` for an object that only holds a list of entries under some name.

    >>> check_wrapped(Path("a.json"), {"answers": [{"id": "q1"}], "team": "a"})
    Traceback (most recent call last):
    proctor.core.errors.InputError: a.json: found the list under 'answers' in an object, expected the list itself
    """
    lists = [
        name for name, one in value.items() if isinstance(one, list) and any(isinstance(part, dict) for part in one)
    ]
    others = [one for name, one in value.items() if name not in lists and isinstance(one, list)]
    if len(lists) == 1 and not others and len(value) <= 2 * _SHOWN:
        found = f"the list under {str(lists[0])[:40]!r} in an object"
        raise InputError(file, found=found, expected="the list itself")


_THOUSAND, _FAR, _LATE_ENOUGH = 1000.0, 10.0, 0.8
_FASTEST_MS = 100.0  # no model that looks answers sooner


def check_seconds(file: Path, seconds: Sequence[float], limit: float | None) -> None:
    """Raises `InputError` if the times of answers look like milliseconds: nearly all are above the limit, their median by
    far (of whole numbers twice the limit and 100 or more), and a thousandth of it is within the limit. A slow system
    whose clock counts whole seconds is only late.

    >>> check_seconds(Path("a.json"), [812.0, 890.0, 905.5, 1400.0], 15)
    Traceback (most recent call last):
    proctor.core.errors.InputError: a.json: found times with a median of 898 where 15 s are allowed (milliseconds?), expected seconds
    >>> check_seconds(Path("a.json"), [3.2, 14.0, 15.5, 40.0], 15)
    >>> check_seconds(Path("a.json"), [38.0, 44.0, 47.0, 60.0], 15)
    """
    if limit is None or not limit or len(seconds) <= _SHOWN:
        return
    late = sum(one > limit for one in seconds)
    typical = median(seconds)
    far = _FAR * limit if any(one % 1 for one in seconds) else max(2 * limit, _FASTEST_MS)
    if late >= _LATE_ENOUGH * len(seconds) and typical >= far and typical / _THOUSAND <= limit:
        found = f"times with a median of {typical:.0f} where {limit:g} s are allowed (milliseconds?)"
        raise InputError(file, found=found, expected="seconds")


@dataclass(frozen=True)
class FileCheck:
    """The findings on a file, in the order of its entries. `sizes` are what was counted, by its noun, such as
    {"answer": 3, "question": 4}; `unchecked` is what could not be checked.

    >>> late = Finding("late", "q1", "31 s", "at most 30 s", "wrong")
    >>> FileCheck(Path("a.json"), (late,), {"answer": 3, "question": 4}).summary
    '3 answers to 4 questions: 0 errors, 1 counted as wrong, 0 warnings'
    """

    file: Path
    findings: tuple[Finding, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()

    @property
    def errors(self) -> int:
        """The number of errors: with one, the file is no submission."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def wrong(self) -> int:
        """The number of answers that are accepted and counted as wrong."""
        return len({finding.location for finding in self.findings if finding.severity == "wrong"})

    @property
    def warnings(self) -> int:
        """The number of findings that are for a person to look at."""
        return sum(finding.severity not in {"error", "wrong"} for finding in self.findings)

    @property
    def by_rule(self) -> dict[str, int]:
        """The number of findings of each rule, by its name."""
        return dict(sorted(Counter(finding.rule for finding in self.findings).items()))

    @property
    def summary(self) -> str:
        """The numbers in one line."""
        counted = " to ".join(count_of(size, noun) for noun, size in self.sizes.items())
        wrong = f"{thousands(self.wrong)} counted as wrong, " if self.wrong else ""
        told = f"{count_of(self.errors, 'error')}, {wrong}{count_of(self.warnings, 'warning')}"
        return f"{counted}{': ' if counted else ''}{told}"

    def report(
        self, json: Mapping[str, JsonValue], *, every: bool, tables: Sequence[Table] = (), ending: str = ""
    ) -> PluginReport:
        """A line for each cause (or for `every` finding), the tables, what was not checked and the summary with an
        ending. `json` is what programs get beside the numbers. The report is `ok` without errors, and `partial` if an
        answer is counted as wrong."""
        lines = [str(finding) for finding in self.findings] if every else by_cause(self.findings)
        unchecked = [f"not checked: {one}" for one in self.unchecked]
        numbers: dict[str, JsonValue] = {f"{noun}s": size for noun, size in self.sizes.items()}
        numbers |= {"errors": self.errors, "wrong": self.wrong, "warnings": self.warnings}
        return PluginReport(
            {"file": str(self.file), **numbers, **json},
            (*lines, *tables, *unchecked, self.summary + ending),
            ok=not self.errors,
            partial=bool(self.wrong),
        )
