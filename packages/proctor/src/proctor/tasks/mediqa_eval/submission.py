"""Submissions: a judge's scores in the task's format, and a file validated before it is submitted."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import JsonValue

from proctor.audits import Key
from proctor.core import (
    FileCheck,
    Finding,
    InputError,
    PluginReport,
    Table,
    TableFault,
    UsageError,
    ValidationRequest,
    count_of,
    plain_table,
    read_table,
    write_whole,
)
from proctor.tasks.mediqa_eval.native import (
    ANSWERS,
    COLUMNS,
    DATASETS,
    DIMENSIONS,
    OPTED_OUT,
    AnswerRow,
    Entry,
    answers_to_judge,
    entries,
    shown,
)

if TYPE_CHECKING:
    from proctor.results import ScoredAnswer


def write_scores(
    scorer: str,
    scored: Sequence[ScoredAnswer],
    file: Path,
    *,
    template: Path | None = None,
    allow_missing: bool = False,
) -> int:
    """Writes a row for every answer and dimension, in the order of the answers or of a template (a ratings file), and
    returns their number.

    The task requires a score for every answer: raises `InputError` for a missing one, unless `allow_missing` leaves its
    row out; also for a template with other answers. Then nothing is written.
    """
    values = {
        (scored_answer.item.id, scored_answer.system, name): value
        for scored_answer in scored
        for name, value in scored_answer.values.items()
    }
    texts = {(scored_answer.item.id, scored_answer.system): scored_answer.text for scored_answer in scored}
    rows = (
        [row for scored_answer in scored for row in _rows_of(scored_answer)]
        if template is None
        else _rows_in(template, texts)
    )
    missing = [row for row in rows if row.key not in values]
    if missing and not allow_missing:
        found = f"no score for {len(missing)} of {count_of(len(rows), 'row')}, the first {', '.join(missing[0].key)}"
        raise InputError(file, found=found, expected="one for each: proctor score again, or --allow-missing")
    return _write(file, scorer, [row for row in rows if row.key in values], values)


class MediqaWriter:
    """Writes a submission of a judge's scores (see `proctor.results.ScoreWriter`)."""

    formats = ("submission",)

    def write_scores(
        self,
        form: str,
        scorer: str,
        scored: Sequence[ScoredAnswer],
        file: Path,
        *,
        template: Path | None,
        allow_missing: bool,
    ) -> int:
        del form
        return write_scores(scorer, scored, file, template=template, allow_missing=allow_missing)


WRITER = MediqaWriter()


def _rows_of(scored_answer: ScoredAnswer) -> list[AnswerRow]:
    dataset, language = str(scored_answer.item.tags["dataset"]), str(scored_answer.item.tags["language"])
    encounter = scored_answer.item.group.removeprefix(f"{dataset}/")
    return [
        AnswerRow(dataset, encounter, language, scored_answer.text, scored_answer.system, name)
        for name in DIMENSIONS[language]
    ]


def _rows_in(template: Path, texts: Mapping[tuple[str, str], str]) -> Sequence[AnswerRow]:
    rows = answers_to_judge(template)
    for row in rows:
        if texts.get(row.key[:2], row.candidate) != row.candidate:
            location = f"{row.item}, {row.system}"
            raise InputError(template, location, found="another text than the scored one", expected="the same")
    return rows


def _write(file: Path, scorer: str, rows: Sequence[AnswerRow], values: Mapping[Key, float]) -> int:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        cells = (row.dataset, row.encounter, row.language, row.candidate, row.system, row.dimension)
        writer.writerow((*cells, scorer, f"{values[row.key]:.10g}"))
    write_whole(file, text.getvalue())
    return len(rows)


_UNCHECKED = ("whether each row is of the task and its text unchanged: name the rated answers, or the template",)


@dataclass(frozen=True, slots=True)
class Count:
    """Rows of one dataset and language: distinct keys found, expected, repeated, and opted out (−1).

    `splits` are the published splits with the same number.
    """

    dataset: str
    language: str
    rows: int
    expected: int
    repeated: int
    opted_out: int
    splits: tuple[str, ...]


def _finding(severity: Literal["error", "warning"], fault: TableFault) -> Finding:
    rule = (fault.column or "row") if fault.row else ""
    location = f"row {fault.row}" if fault.row else ""
    line = Finding("", fault.location, fault.found, fault.expected, severity)
    return Finding(rule, location, fault.found, fault.expected, severity, fault.row, str(line))


def check_submission(
    file: Path, answers: Sequence[AnswerRow] | None, *, split: str | None = None, any_scale: bool = False
) -> tuple[FileCheck, tuple[Count, ...]]:
    """Finds all faults, errors first, by row, where `read_submission` stops at the first error; and counts the rows.

    `answers` are those that must have scores, from ratings or a template; with None their names and texts are not
    checked. The expected number of rows is that of the published `split` ("valid" or "test"), else that of `answers`
    (with None: any). `any_scale` allows scores outside 0 to 1, to which correlations are indifferent.
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
    findings = [_finding("error", error) for error in sorted(errors, key=lambda error: error.row)]
    findings += [_finding("warning", warning) for warning in sorted(warnings, key=lambda warning: warning.row)]
    return FileCheck(file, tuple(findings), unchecked=_UNCHECKED if answers is None else ()), counts


def _keyed(good: Iterable[Entry]) -> tuple[dict[Key, Entry], list[tuple[Entry, Entry]]]:
    """The first row of each key, and each repeating row with the first one."""
    first: dict[Key, Entry] = {}
    repeated = []
    for entry in good:
        before = first.setdefault(entry.key, entry)
        if before is not entry:
            repeated.append((entry, before))
    return first, repeated


def _unlike(good: Iterable[Entry], answers: Sequence[AnswerRow]) -> Iterator[TableFault]:
    texts = {answer.key: answer.candidate for answer in answers}
    for entry in good:
        if entry.key not in texts:
            yield TableFault(entry.row, "", shown(entry.key), "an answer that is to be scored")
        elif entry.candidate != texts[entry.key]:
            alike = " ".join(entry.candidate.split()) == " ".join(texts[entry.key].split())
            found = "the given text with other white space" if alike else "another text than the given one"
            yield TableFault(entry.row, "candidate", found, "the same")


def _missing(first: dict[Key, Entry], answers: Sequence[AnswerRow], *, faulty: bool) -> Iterator[TableFault]:
    """Answers without a row, which may be one of the faulty rows."""
    beside = ", or it is one of the faulty rows" if faulty else ""
    for key in dict.fromkeys(answer.key for answer in answers):
        if key not in first:
            yield TableFault(0, "", f"no row for {shown(key)}{beside}", "one for every answer to be scored")


def _off_scale(good: Iterable[Entry]) -> Iterator[TableFault]:
    for entry in good:
        if entry.value != OPTED_OUT and not 0 <= entry.value <= 1:
            yield TableFault(entry.row, "value", f"{entry.value:g}", "0 to 1, or -1 to opt out")


def _cells(rows: Iterable[Entry]) -> dict[tuple[str, str, str], list[Entry]]:
    cells: dict[tuple[str, str, str], list[Entry]] = {}
    for row in rows:
        cells.setdefault((row.dataset, row.language, row.dimension), []).append(row)
    return cells


def _partly_out(rows: Iterable[Entry]) -> Iterator[TableFault]:
    for cell, inside in _cells(rows).items():
        out = [entry for entry in inside if entry.value == OPTED_OUT]
        if 0 < len(out) < len(inside):
            found = f"-1 (opted out), as in {len(out)} of {len(inside)} rows of {', '.join(cell)}"
            yield TableFault(out[0].row, "value", found, "all or none")


def _odd(rows: Iterable[Entry]) -> Iterator[TableFault]:
    for cell, inside in _cells(rows).items():
        values = {entry.value for entry in inside}
        if values == {OPTED_OUT}:
            named = [entry for entry in inside if entry.rater != "NA"]
            if named:
                found = f"{named[0].rater!r} in an opted-out row of {', '.join(cell)}"
                yield TableFault(named[0].row, "rater_id", found, "NA")
        elif len(values) == 1 and len(inside) > 1:
            found = f"{inside[0].value:g} in all {len(inside)} rows of {', '.join(cell)}: there is no correlation"
            yield TableFault(inside[0].row, "value", found, "scores that differ")


def _counts(
    first: dict[Key, Entry], repeated: list[tuple[Entry, Entry]], answers: Sequence[AnswerRow] | None, split: str | None
) -> tuple[Count, ...]:
    found = Counter((entry.dataset, entry.language) for entry in first.values())
    out = Counter((entry.dataset, entry.language) for entry in first.values() if entry.value == OPTED_OUT)
    again = Counter((one.dataset, one.language) for one, _ in repeated)
    given = Counter((answer.dataset, answer.language) for answer in answers) if answers is not None else found
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
    for count in counts:
        if count.rows != count.expected:
            where = f"{count.dataset}, {count.language}" + (f" ({split})" if split else "")
            yield TableFault(0, "", f"{count_of(count.rows, 'different row')} of {where}", f"{count.expected}")


_SPLITS = ("valid", "test")


def validate(file: Path, request: ValidationRequest) -> PluginReport:
    """Columns, encoding, languages, dimensions, ranges, rows per dataset, repeated and opted-out rows, texts.

    Only the answers of the ratings are read, so a template with empty `rater_id` and `value` is enough.
    """
    given = request.known_options("split", "any-scale")
    split = given.get("split")
    if split is not None and split not in _SPLITS:
        raise InputError("--option split", found=repr(split), expected=" or ".join(_SPLITS))
    if request.data is None and split is None:
        raise UsageError(
            "Which answers are to be scored? Give the rated answers (--ratings FILE), or --option split=valid or test."
        )
    answers = None if request.data is None else answers_to_judge(request.data)
    check, counts = check_submission(
        file, answers, split=None if split is None else str(split), any_scale=bool(given.get("any-scale"))
    )
    findings: list[JsonValue] = [
        {
            "level": finding.severity,
            "row": finding.row or None,
            "column": None if finding.rule in {"", "row"} else finding.rule,
            "found": finding.found,
            "expected": finding.expected,
        }
        for finding in check.findings
    ]
    counted: list[JsonValue] = [asdict(count) | {"splits": list(count.splits)} for count in counts]
    json: dict[str, JsonValue] = {"findings": findings, "counts": counted, "unchecked": list(check.unchecked)}
    return check.report(json, every=request.every, tables=[_count_table(file, counts)])


def _count_table(file: Path, counts: Sequence[Count]) -> Table:
    return plain_table(
        str(file),
        ("dataset", "language", ">rows", ">expected", ">repeated", ">opted out", "as many as"),
        tuple(
            (
                *(count.dataset, count.language, str(count.rows), str(count.expected)),
                *(str(count.repeated), str(count.opted_out), ", ".join(count.splits)),
            )
            for count in counts
        ),
    )
