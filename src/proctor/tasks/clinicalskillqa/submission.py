"""Submissions: orders and rationales of a run as a file, and a file checked before it is handed in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue, ValidationError

from proctor.core import (
    Answer,
    Benchmark,
    InputError,
    PluginReport,
    Status,
    ValidationRequest,
    count_of,
    first_problem,
    reader_of,
    write_whole,
)
from proctor.core.formats import OrderingFormat
from proctor.judges import has_injection, sanitize
from proctor.metrics.ordering import compare_orders
from proctor.tasks.clinicalskillqa.native import NativePrediction, records, spelled

SUBMISSION = "submission"
"""The name of the form: an object of id, order and rationale for each answer."""


def write_submission(answers: Sequence[Answer], file: Path) -> int:
    """Writes JSON lines, or a list in a `.json` file, sorted by id, and returns how many answers it holds.

    An order stands as it was said, faults included; an answer without one has an empty order. What failed is left
    out. The rationale is there where one was asked for or kept. Raises `InputError` for another ending, and where
    the file can't be written.
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
        text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    write_whole(file, text)
    return len(entries)


def _entry(answer: Answer) -> dict[str, JsonValue]:
    order: list[JsonValue] = []
    if answer.status is Status.ANSWERED and isinstance(answer.parsed, list):
        order = [str(label) for label in answer.parsed]
    given = answer.extra.get("rationale")
    return {"id": answer.item_id, "order": order, **({"rationale": given} if isinstance(given, str) else {})}


_SHOWN = 3

_EXPECTED = {
    "entry": "an id, an order and a rationale",
    "duplicate": "each instance once",
    "unknown": "an instance of the folder",
    "no-answer": "an order for every instance",
    "empty-order": "an order for every instance",
    "missing-label": "each label of the instance once",
    "repeated-label": "each label of the instance once",
    "unknown-label": "the labels of the instance alone",
    "no-rationale": "a rationale beside every order",
    "suspicious": "a rationale and nothing else",
}
_WARNINGS = {"no-rationale", "suspicious"}


@dataclass(frozen=True)
class Cause:
    """One kind of fault, with every place where it was found; `error` costs the answer, the others are to be looked
    at."""

    rule: str
    places: tuple[str, ...]

    @property
    def error(self) -> bool:
        return self.rule not in _WARNINGS

    @property
    def expected(self) -> str:
        return _EXPECTED[self.rule]

    def __str__(self) -> str:
        more = len(self.places) - _SHOWN
        shown = "; ".join(self.places[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        level = "error" if self.error else "warning"
        return f"{level}: {self.rule} ({len(self.places)}): expected {self.expected}: {shown}"


@dataclass(frozen=True)
class PredictionReport:
    """All causes, errors first; `answers` entries were read for `instances` instances."""

    file: Path
    answers: int
    instances: int
    causes: tuple[Cause, ...]

    @property
    def errors(self) -> int:
        return sum(len(one.places) for one in self.causes if one.error)

    @property
    def warnings(self) -> int:
        return sum(len(one.places) for one in self.causes if not one.error)

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "file": str(self.file),
            "answers": self.answers,
            "instances": self.instances,
            "errors": self.errors,
            "warnings": self.warnings,
            "causes": [
                {
                    "level": "error" if one.error else "warning",
                    "rule": one.rule,
                    "count": len(one.places),
                    "expected": one.expected,
                    "places": [*one.places],
                }
                for one in self.causes
            ],
        }


@dataclass
class _Notes:
    """Places by rule, in the order in which rules are listed."""

    places: dict[str, list[str]] = field(default_factory=lambda: {rule: [] for rule in _EXPECTED})

    def add(self, rule: str, place: str) -> None:
        self.places[rule].append(place)


def validate_predictions(file: Path, benchmark: Benchmark) -> PredictionReport:
    """Checks predictions (JSON, JSON lines or CSV) against the instances of a folder; references are not needed.

    Rules: `entry` (not of the form), `duplicate`, `unknown`, `no-answer`, `empty-order`, `missing-label`,
    `repeated-label`, `unknown-label`; and as warnings `no-rationale`, and `suspicious`: a rationale that speaks to its
    judge or hides characters. Raises `InputError` where the file can't be read at all.
    """
    labels = {item.id: item.answer.labels for item in benchmark.items if isinstance(item.answer, OrderingFormat)}
    notes, seen = _Notes(), dict[str, str]()
    entries = records(file, "predictions")
    for place, raw in entries:
        try:
            one = NativePrediction.model_validate(raw)
        except ValidationError as error:
            problem = first_problem(error)
            notes.add("entry", f"{place}, field {problem.field!r}: {problem.expected}")
            _remember(raw, place, seen)
            continue
        if one.id in seen:
            notes.add("duplicate", f"item {one.id!r} ({place}, first {seen[one.id]})")
            continue
        seen[one.id] = place
        if one.id not in labels:
            notes.add("unknown", f"item {one.id!r} ({place})")
            continue
        _order(notes, one, labels[one.id])
        _rationale(notes, one)
    for name in sorted(labels.keys() - seen.keys()):
        notes.add("no-answer", f"item {name!r}")
    causes = tuple(Cause(rule, tuple(places)) for rule, places in notes.places.items() if places)
    return PredictionReport(file, len(entries), len(labels), causes)


def _remember(raw: JsonValue, place: str, seen: dict[str, str]) -> None:
    """An entry that can't be read is still this instance's: it is not missing as well."""
    name = raw.get("id") if isinstance(raw, dict) else None
    if isinstance(name, str):
        seen.setdefault(name, place)


def _order(notes: _Notes, one: NativePrediction, labels: tuple[str, ...]) -> None:
    where = f"item {one.id!r}"
    if not one.order:
        notes.add("empty-order", where)
        return
    found = compare_orders(labels, spelled(one.order, labels))
    for rule, wrong in (
        ("missing-label", found.missing),
        ("repeated-label", found.repeated),
        ("unknown-label", found.unknown),
    ):
        if wrong:
            notes.add(rule, f"{where} {', '.join(label[:20] for label in wrong[:6])}")


def _rationale(notes: _Notes, one: NativePrediction) -> None:
    where, text = f"item {one.id!r}", one.rationale
    if not text.strip():
        notes.add("no-rationale", where)
        return
    plain = text.replace("\r\n", "\n")
    if has_injection(text):
        notes.add("suspicious", f"{where} speaks to its judge")
    elif len(sanitize(plain)) < len(plain):
        notes.add("suspicious", f"{where} hides {count_of(len(plain) - len(sanitize(plain)), 'character')}")


def validate(file: Path, request: ValidationRequest) -> PluginReport:
    """Repeated, missing and unknown instances and labels, empty orders, missing rationales."""
    request.known_options()
    data = request.needed_data("the folder with the instances")
    found = validate_predictions(file, reader_of("clinicalskillqa", request.track).load(data, request.media))
    summary = (
        f"{count_of(found.answers, 'answer')} to {count_of(found.instances, 'instance')}: "
        f"{count_of(found.errors, 'error')}, {count_of(found.warnings, 'warning')}"
    )
    return PluginReport(found.to_json(), (*map(str, found.causes), summary), ok=not found.errors)


def validate_workflow(file: Path, request: ValidationRequest) -> PluginReport:
    """Form, undefined names, cycles, unreachable steps, and variants that contradict the order."""
    from proctor.tasks.clinicalskillqa.methods.workflow import check_workflow

    request.known_options()
    wrong = [str(one) for one in check_workflow(file)]
    found: dict[str, JsonValue] = {"file": str(file), "errors": len(wrong), "findings": [*wrong]}
    return PluginReport(found, (*wrong, count_of(len(wrong), "error")), ok=not wrong)
