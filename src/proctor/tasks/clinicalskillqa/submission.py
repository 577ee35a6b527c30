"""Submissions: the orders and rationales of a run written to a file, and a file validated before it is submitted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue, ValidationError

from proctor.core import (
    Answer,
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
        text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    write_whole(file, text)
    return len(entries)


def _entry(answer: Answer) -> dict[str, JsonValue]:
    order: list[JsonValue] = []
    if answer.status is Status.ANSWERED and isinstance(answer.parsed, list):
        order = [str(label) for label in answer.parsed]
    given = answer.extra.get("rationale")
    return {"id": answer.item_id, "order": order, **({"rationale": given} if isinstance(given, str) else {})}


_MAX_SHOWN = 3

_RULES = {
    "entry": ("error", "an id, an order and a rationale"),
    "duplicate": ("error", "each instance once"),
    "unknown": ("error", "an instance of the folder"),
    "no-answer": ("error", "an order for every instance"),
    "empty-order": ("error", "an order for every instance"),
    "missing-label": ("error", "each label of the instance once"),
    "repeated-label": ("error", "each label of the instance once"),
    "unknown-label": ("error", "the labels of the instance alone"),
    "no-rationale": ("warning", "a rationale beside every order"),
    "suspicious": ("warning", "a rationale and nothing else"),
}
"""Level and expectation of each rule. An error costs the answer; a warning is for a person to look at."""

Fault = tuple[str, str]
"""A rule, and the place where it is broken."""


def validate(file: Path, request: ValidationRequest) -> PluginReport:
    """Repeated, missing and unknown instances and labels, empty orders, missing rationales.

    Reads JSON, JSON lines or CSV; references are not needed. `suspicious` is a rationale that addresses its judge or
    hides characters. Raises `InputError` where the file can't be read at all.
    """
    request.known_options()
    data = request.needed_data("the folder with the instances")
    benchmark = reader_of("clinicalskillqa", request.track).load(data, request.media)
    labels = {item.id: item.answer.labels for item in benchmark.items if isinstance(item.answer, OrderingFormat)}
    entries = records(file, "predictions")
    places: dict[str, list[str]] = {rule: [] for rule in _RULES}
    for rule, place in _faults(entries, labels):
        places[rule].append(place)
    causes: list[JsonValue] = [
        {"level": level, "rule": rule, "count": len(places[rule]), "expected": expected, "places": [*places[rule]]}
        for rule, (level, expected) in _RULES.items()
        if places[rule]
    ]
    counts = {level: sum(len(places[rule]) for rule in _RULES if _RULES[rule][0] == level) for level in _LEVELS}
    summary = (
        f"{count_of(len(entries), 'answer')} to {count_of(len(labels), 'instance')}: "
        f"{count_of(counts['error'], 'error')}, {count_of(counts['warning'], 'warning')}"
    )
    found: dict[str, JsonValue] = {"file": str(file), "answers": len(entries), "instances": len(labels)}
    found |= {"errors": counts["error"], "warnings": counts["warning"], "causes": causes}
    lines = [_line(rule, places[rule]) for rule in _RULES if places[rule]]
    return PluginReport(found, (*lines, summary), ok=not counts["error"])


_LEVELS = ("error", "warning")


def _line(rule: str, places: Sequence[str]) -> str:
    level, expected = _RULES[rule]
    more = len(places) - _MAX_SHOWN
    shown = "; ".join(places[:_MAX_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    return f"{level}: {rule} ({len(places)}): expected {expected}: {shown}"


def _faults(entries: Sequence[tuple[str, JsonValue]], labels: Mapping[str, tuple[str, ...]]) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    for place, raw in entries:
        try:
            one = NativePrediction.model_validate(raw)
        except ValidationError as error:
            problem = first_problem(error)
            yield "entry", f"{place}, field {problem.field!r}: {problem.expected}"
            name = raw.get("id") if isinstance(raw, dict) else None
            if isinstance(name, str):  # an unreadable entry of an instance: not missing as well
                seen.setdefault(name, place)
            continue
        if one.id in seen:
            yield "duplicate", f"item {one.id!r} ({place}, first {seen[one.id]})"
            continue
        seen[one.id] = place
        if one.id not in labels:
            yield "unknown", f"item {one.id!r} ({place})"
            continue
        yield from _order_faults(one, labels[one.id])
        yield from _rationale_faults(one)
    for name in sorted(labels.keys() - seen.keys()):
        yield "no-answer", f"item {name!r}"


def _order_faults(one: NativePrediction, labels: tuple[str, ...]) -> Iterator[Fault]:
    where = f"item {one.id!r}"
    if not one.order:
        yield "empty-order", where
        return
    found = compare_orders(labels, spelled(one.order, labels))
    for kind in ("missing", "repeated", "unknown"):
        wrong: tuple[str, ...] = getattr(found, kind)
        if wrong:
            yield f"{kind}-label", f"{where} {', '.join(label[:20] for label in wrong[:6])}"


def _rationale_faults(one: NativePrediction) -> Iterator[Fault]:
    where, plain = f"item {one.id!r}", one.rationale.replace("\r\n", "\n")
    hidden = len(plain) - len(sanitize(plain))
    if not plain.strip():
        yield "no-rationale", where
    elif has_injection(one.rationale):
        yield "suspicious", f"{where} speaks to its judge"
    elif hidden > 0:
        yield "suspicious", f"{where} hides {count_of(hidden, 'character')}"


def validate_workflow(file: Path, request: ValidationRequest) -> PluginReport:
    """Form, undefined names, cycles, unreachable steps, and variants that contradict the order."""
    from proctor.tasks.clinicalskillqa.methods.workflow import check_workflow

    request.known_options()
    wrong = [str(one) for one in check_workflow(file)]
    found: dict[str, JsonValue] = {"file": str(file), "errors": len(wrong), "findings": [*wrong]}
    return PluginReport(found, (*wrong, count_of(len(wrong), "error")), ok=not wrong)
