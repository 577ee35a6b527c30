"""`proctor validate mediqa-eval`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from pydantic import JsonValue

from proctor.core import InputError, MissingOptionError, PluginReport, PluginTable, ValidationRequest
from proctor.tasks.mediqa_eval.answers import answers_to_judge
from proctor.tasks.mediqa_eval.checks import Check, check_submission

_SPLITS = ("valid", "test")


def validate(file: Path, request: ValidationRequest) -> PluginReport:
    """Columns, encoding, languages, dimensions, ranges, rows per dataset, repeated and opted-out rows, texts.

    Of the ratings only the answers are read, so a template whose `rater_id` and `value` are empty will do.
    """
    given = request.known_options("split", "any-scale")
    split = given.get("split")
    if split is not None and split not in _SPLITS:
        raise InputError(None, "--option split", found=repr(split), expected=" or ".join(_SPLITS))
    if request.data is None and split is None:
        raise MissingOptionError("--ratings", "the rated answers, or --option split=valid or test")
    answers = None if request.data is None else answers_to_judge(request.data)
    any_scale = bool(given.get("any-scale"))
    check = check_submission(file, answers, split=None if split is None else str(split), any_scale=any_scale)
    lines = [str(one) for one in check.findings] if request.every else check.causes()
    unchecked = [f"not checked: {one}" for one in check.unchecked]
    summary = f"{check.errors} errors, {len(check.findings) - check.errors} warnings"
    return PluginReport(_json(check), (*lines, _counts(check), *unchecked, summary), ok=not check.errors)


def _counts(check: Check) -> PluginTable:
    return PluginTable(
        str(check.file),
        ("dataset", "language", ">rows", ">expected", ">repeated", ">opted out", "as many as"),
        tuple(
            (
                *(one.dataset, one.language, str(one.rows), str(one.expected)),
                *(str(one.repeated), str(one.opted_out), ", ".join(one.splits)),
            )
            for one in check.counts
        ),
    )


def _json(check: Check) -> dict[str, JsonValue]:
    return {
        "file": str(check.file),
        "errors": check.errors,
        "warnings": len(check.findings) - check.errors,
        "findings": [
            {
                "level": one.level,
                "row": one.fault.row or None,
                "column": one.fault.column or None,
                "found": one.fault.found,
                "expected": one.fault.expected,
            }
            for one in check.findings
        ],
        "counts": [asdict(one) | {"splits": list(one.splits)} for one in check.counts],
        "unchecked": list(check.unchecked),
    }
