"""Submissions: the orders and rationales of a run written to a file, and a file validated before it is submitted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from pydantic import JsonValue, ValidationError

from proctor.core import (
    Answer,
    FileCheck,
    Finding,
    InputError,
    PluginReport,
    Status,
    ValidationRequest,
    check_fields,
    count_of,
    first_problem,
    json_line,
    reader_of,
    write_whole,
)
from proctor.core.formats import OrderingFormat
from proctor.judges import suspicion
from proctor.metrics.ordering import compare_orders
from proctor.tasks.clinicalskillqa.native import NativePrediction, records, spelled

SUBMISSION = "submission"
"""The name of the format: an object with id, order and rationale for each answer."""


def write_submission(answers: Sequence[Answer], file: Path) -> int:
    """Writes JSON lines, or a list in a `.json` file, sorted by id; returns the number of answers.

    Orders keep their faults; an answer without an order gets an empty one. Failed answers are left out. Raises
    `InputError` for another suffix, and where the file can't be written.
    """
    suffix = file.suffix.casefold()
    if suffix not in {".json", ".jsonl"}:
        raise InputError(file, found=f"the ending {file.suffix!r}", expected=".jsonl or .json")
    entries = [
        _entry(answer) for answer in sorted(answers, key=lambda one: one.item_id) if answer.status is not Status.FAILED
    ]
    if suffix == ".json":
        text = json.dumps(entries, ensure_ascii=False, indent=1) + "\n"
    else:
        text = "".join(map(json_line, entries))
    write_whole(file, text)
    return len(entries)


class SkillWriter:
    """Writes files for submission (see `proctor.core.SubmissionWriter`)."""

    formats = (SUBMISSION,)

    def write_submission(self, form: str, answers: Sequence[Answer], file: Path) -> int:
        del form
        return write_submission(answers, file)


WRITER = SkillWriter()


def _entry(answer: Answer) -> dict[str, JsonValue]:
    order: list[JsonValue] = []
    if answer.status is Status.ANSWERED and isinstance(answer.parsed, list):
        order = [str(label) for label in answer.parsed]
    given = answer.extra.get("rationale")
    return {"id": answer.item_id, "order": order, **({"rationale": given} if isinstance(given, str) else {})}


def validate(file: Path, request: ValidationRequest) -> PluginReport:
    """Repeated and unknown instances; missing, empty and invalid orders, which are wrong; missing rationales.

    Reads JSON, JSON lines or CSV; references are not needed. `suspicious` is a rationale that addresses its judge or
    hides characters. Raises `InputError` where the file can't be read at all, or is empty.
    """
    request.known_options()
    data = request.needed_data("the folder with the instances")
    benchmark = reader_of("clinicalskillqa", request.track).load(data, request.media)
    labels = {item.id: item.answer.labels for item in benchmark.items if isinstance(item.answer, OrderingFormat)}
    entries = records(file, "predictions")
    if not entries:
        raise InputError(file, found="no entry", expected="one or more")
    check_shared(file, [raw for _, raw in entries])
    findings = sorted(_findings(entries, labels), key=lambda finding: _RULES.index(finding.rule))
    causes: list[JsonValue] = []
    for rule, some in groupby(findings, key=lambda finding: finding.rule):
        same = list(some)
        locations: list[JsonValue] = [f"{finding.location}: {finding.found}" for finding in same]
        cause = {"level": same[0].severity, "rule": rule, "count": len(same), "expected": same[0].expected}
        causes.append({**cause, "locations": locations})
    check = FileCheck(file, tuple(findings), {"answer": len(entries), "instance": len(labels)})
    return check.report({"causes": causes}, every=request.every)


def check_shared(file: Path, entries: Sequence[object]) -> None:
    """Raises one `InputError` for names of fields that all entries have wrong."""
    expected = "the fields id, order and rationale"
    check_fields(file, entries, ("id",), expected)
    if not any("order" in entry for entry in entries if isinstance(entry, dict)):
        check_fields(file, entries, ("order",), expected)


_RULES = (
    "entry", "duplicate", "unknown", "no-answer", "empty-order", "missing-label", "repeated-label", "unknown-label",
    "no-rationale", "suspicious",
)  # fmt: skip
"""The rules in the order of the report."""


def _findings(entries: Sequence[tuple[str, JsonValue]], labels: Mapping[str, tuple[str, ...]]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for location, raw in entries:
        try:
            one = NativePrediction.model_validate(raw)
        except ValidationError as error:
            problem = first_problem(error)
            found = f"{problem.found} as {problem.field!r} ({problem.expected})"
            yield Finding("entry", location, found, "an id, an order and a rationale")
            name = raw.get("id") if isinstance(raw, dict) else None
            if isinstance(name, str):  # an unreadable entry of an instance: not missing as well
                seen.setdefault(name, location)
            continue
        where = f"item {one.id!r}"
        if one.id in seen:
            yield Finding("duplicate", where, f"{location} again, first {seen[one.id]}", "each instance once")
            continue
        seen[one.id] = location
        if one.id not in labels:
            yield Finding("unknown", where, location, "an instance of the folder")
            continue
        yield from _order_findings(where, one.order, labels[one.id])
        if not one.rationale.strip():
            yield Finding("no-rationale", where, "no rationale", "a rationale beside every order", severity="warning")
        elif found := suspicion(one.rationale):
            yield Finding("suspicious", where, found, "a rationale and nothing else", severity="warning")
    for name in sorted(labels.keys() - seen.keys()):
        yield Finding("no-answer", f"item {name!r}", "no answer", "an order for every instance", "wrong")


def _order_findings(where: str, order: tuple[str, ...], labels: tuple[str, ...]) -> Iterator[Finding]:
    if not order:
        yield Finding("empty-order", where, "an empty order", "an order for every instance", "wrong")
        return
    found = compare_orders(labels, spelled(order, labels))
    once = "each label of the instance once"
    for rule, wrong, expected in (
        ("missing-label", found.missing, once),
        ("repeated-label", found.repeated, once),
        ("unknown-label", found.unknown, "the labels of the instance alone"),
    ):
        if wrong:
            label_names = ", ".join(label[:20] for label in wrong[:6])
            yield Finding(rule, where, f"{label_names} {rule.removesuffix('-label')}", expected, "wrong")


def validate_workflow(file: Path, request: ValidationRequest) -> PluginReport:
    """Form, undefined names, cycles, unreachable steps, and variants that contradict the order."""
    from proctor.tasks.clinicalskillqa.methods.workflow import check_workflow

    request.known_options()
    wrong = [str(input_error) for input_error in check_workflow(file)]
    found: dict[str, JsonValue] = {"file": str(file), "errors": len(wrong), "findings": [*wrong]}
    return PluginReport(found, (*wrong, count_of(len(wrong), "error")), ok=not wrong)
