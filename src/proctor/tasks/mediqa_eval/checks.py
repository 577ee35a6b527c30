"""Everything that is wrong with a submission, or odd, before it is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from proctor.audits import Key
from proctor.core import Noted, TableFault, by_cause, read_table
from proctor.tasks.mediqa_eval.answers import AnswerRow
from proctor.tasks.mediqa_eval.native import Entry, entries, shown
from proctor.tasks.mediqa_eval.task import ANSWERS, COLUMNS, DATASETS, DIMENSIONS, OPTED_OUT

Level = Literal["error", "warning"]

_Part = tuple[str, str]

_UNCHECKED = ("whether each row is of the task and its text unchanged: name the rated answers, or the template",)


@dataclass(frozen=True, slots=True)
class Finding:
    """An error, which the task or `audit` would refuse, or a warning, which both would let pass."""

    level: Level
    fault: TableFault

    def __str__(self) -> str:
        verdict = ", ".join(
            part
            for part in (
                f"found {self.fault.found}" if self.fault.found else "",
                f"expected {self.fault.expected}" if self.fault.expected else "",
            )
            if part
        )
        return ": ".join(part for part in (self.level, self.fault.place, verdict) if part)


@dataclass(frozen=True, slots=True)
class Count:
    """Rows of one dataset and language: different keys found, those expected, repeated, and opted out (−1).

    `splits` names the published splits that have as many.
    """

    dataset: str
    language: str
    rows: int
    expected: int
    repeated: int
    opted_out: int
    splits: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """What was found in a submission, errors first, each level by row; `unchecked`: what needs more files."""

    file: Path
    findings: tuple[Finding, ...]
    counts: tuple[Count, ...]
    unchecked: tuple[str, ...] = ()

    def causes(self) -> list[str]:
        """The findings by cause, a line each (see `by_cause`)."""
        return by_cause(
            [
                Noted(
                    f"{one.level}: {one.fault.column or 'row'}" if one.fault.row else one.level,
                    f"row {one.fault.row}" if one.fault.row else "",
                    one.fault.found,
                    one.fault.expected,
                    str(one),
                    one.fault.row,
                )
                for one in self.findings
            ]
        )

    @property
    def errors(self) -> int:
        """How many errors there are; none: the submission is good."""
        return sum(one.level == "error" for one in self.findings)


def check_submission(
    file: Path, answers: Sequence[AnswerRow] | None, *, split: str | None = None, any_scale: bool = False
) -> Check:
    """Looks for everything at once, where `read_submission` stops at the first error.

    `answers` are those that must have scores, from ratings or from a template without ratings; with None their
    names and texts stay unchecked. `split` ("valid" or "test") expects as many rows as the published split has;
    else as many as there are answers (with None: any number). `any_scale` allows scores outside 0 to 1, which
    correlations do not mind.
    """
    read = read_table(file, COLUMNS)
    good, faults = entries(read.rows, rated=False)
    errors = [*read.faults, *faults]
    warnings: list[TableFault] = []
    if read.rows:
        first, repeated = _keyed(good)
        if answers is not None:
            errors += _unlike(good, answers)
            errors += _missing(first, answers, faulty=bool(errors))
        errors += [] if any_scale else _off_scale(good)
        errors += _partly_out(first.values())
        warnings += [
            TableFault(one.row, "", f"{shown(one.key)} again", f"one row; that of row {before.row} counts")
            for one, before in repeated
        ]
        warnings += _odd(first.values())
        counts = _counts(first, repeated, answers, split)
        errors += _wrong_sizes(counts, split)
    else:
        counts = ()
    findings = [Finding("error", one) for one in sorted(errors, key=lambda one: one.row)]
    findings += [Finding("warning", one) for one in sorted(warnings, key=lambda one: one.row)]
    return Check(file, tuple(findings), counts, _UNCHECKED if answers is None else ())


def _keyed(good: Iterable[Entry]) -> tuple[dict[Key, Entry], list[tuple[Entry, Entry]]]:
    """The first row of each key, and those that repeat one, with the first."""
    first: dict[Key, Entry] = {}
    repeated = []
    for one in good:
        before = first.setdefault(one.key, one)
        if before is not one:
            repeated.append((one, before))
    return first, repeated


def _unlike(good: Iterable[Entry], answers: Sequence[AnswerRow]) -> Iterator[TableFault]:
    texts = {one.key: one.candidate for one in answers}
    for one in good:
        if one.key not in texts:
            yield TableFault(one.row, "", shown(one.key), "an answer that is to be scored")
        elif one.candidate != texts[one.key]:
            alike = " ".join(one.candidate.split()) == " ".join(texts[one.key].split())
            found = "the given text with other white space" if alike else "another text than the given one"
            yield TableFault(one.row, "candidate", found, "the same")


def _missing(first: dict[Key, Entry], answers: Sequence[AnswerRow], *, faulty: bool) -> Iterator[TableFault]:
    """Answers without a row; rows that can't be read may be among them."""
    beside = ", or it is one of the faulty rows" if faulty else ""
    for key in dict.fromkeys(one.key for one in answers):
        if key not in first:
            yield TableFault(0, "", f"no row for {shown(key)}{beside}", "one for every answer to be scored")


def _off_scale(good: Iterable[Entry]) -> Iterator[TableFault]:
    for one in good:
        if one.value != OPTED_OUT and not 0 <= one.value <= 1:
            yield TableFault(one.row, "value", f"{one.value:g}", "0 to 1, or -1 to opt out")


def _cells(rows: Iterable[Entry]) -> dict[tuple[str, str, str], list[Entry]]:
    cells: dict[tuple[str, str, str], list[Entry]] = {}
    for one in rows:
        cells.setdefault((one.dataset, one.language, one.dimension), []).append(one)
    return cells


def _partly_out(rows: Iterable[Entry]) -> Iterator[TableFault]:
    for cell, inside in _cells(rows).items():
        out = [one for one in inside if one.value == OPTED_OUT]
        if 0 < len(out) < len(inside):
            found = f"-1 (opted out), as in {len(out)} of {len(inside)} rows of {', '.join(cell)}"
            yield TableFault(out[0].row, "value", found, "all or none")


def _odd(rows: Iterable[Entry]) -> Iterator[TableFault]:
    for cell, inside in _cells(rows).items():
        values = {one.value for one in inside}
        if values == {OPTED_OUT}:
            named = [one for one in inside if one.rater != "NA"]
            if named:
                found = f"{named[0].rater!r} in an opted-out row of {', '.join(cell)}"
                yield TableFault(named[0].row, "rater_id", found, "NA")
        elif len(values) == 1 and len(inside) > 1:
            found = f"{inside[0].value:g} in all {len(inside)} rows of {', '.join(cell)}: there is no correlation"
            yield TableFault(inside[0].row, "value", found, "scores that differ")


def _counts(
    first: dict[Key, Entry], repeated: list[tuple[Entry, Entry]], answers: Sequence[AnswerRow] | None, split: str | None
) -> tuple[Count, ...]:
    found = Counter((one.dataset, one.language) for one in first.values())
    out = Counter((one.dataset, one.language) for one in first.values() if one.value == OPTED_OUT)
    again = Counter((one.dataset, one.language) for one, _ in repeated)
    given = Counter((one.dataset, one.language) for one in answers) if answers is not None else found
    counts = []
    for dataset in DATASETS:
        for language, dimensions in DIMENSIONS.items():
            part = (dataset, language)
            published = {name: sizes[dataset] * len(dimensions) for name, sizes in ANSWERS.items()}
            same = tuple(name for name, size in published.items() if size == found[part])
            expected = published[split] if split else given[part]
            counts.append(Count(*part, found[part], expected, again[part], out[part], same))
    return tuple(counts)


def _wrong_sizes(counts: Iterable[Count], split: str | None) -> Iterator[TableFault]:
    for one in counts:
        if one.rows != one.expected:
            where = f"{one.dataset}, {one.language}" + (f" ({split})" if split else "")
            yield TableFault(0, "", f"{one.rows} different rows of {where}", f"{one.expected}")
