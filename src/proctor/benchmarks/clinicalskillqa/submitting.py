"""Answers of a run as a file to hand in: orders and rationales, in the form in which predictions are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from proctor.core import Answer, InputError, Status

__all__ = ["SUBMISSION", "write_submission"]

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
        _entry(answer)
        for answer in sorted(answers, key=lambda one: one.item_id)
        if answer.status is not Status.FAILED
    ]
    if suffix == ".json":
        text = json.dumps(entries, ensure_ascii=False, indent=1) + "\n"
    else:
        text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(file, found=error.strerror or str(error), expected="a place to write to") from error
    return len(entries)


def _entry(answer: Answer) -> dict[str, JsonValue]:
    order: list[JsonValue] = []
    if answer.status is Status.ANSWERED and isinstance(answer.parsed, list):
        order = [str(label) for label in answer.parsed]
    given = answer.extra.get("rationale")
    return {
        "id": answer.item_id,
        "order": order,
        **({"rationale": given} if isinstance(given, str) else {}),
    }
