"""`proctor validate focus`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from pydantic import JsonValue

from proctor.core import PluginReport, ValidationRequest, reader_of
from proctor.tasks.focus.submission import Lint, lint_submission


def validate(file: Path, request: ValidationRequest) -> PluginReport:
    """Repeated, missing and unknown questions, answers that can't be read, too long or late ones, odd texts."""
    request.known_options()
    data = request.needed_data("the folder with requests.json")
    found = lint_submission(file, reader_of("focus", request.track).load(data))
    lines = [str(one) for one in found.findings] if request.every else found.causes()
    lines += [f"not checked: {one}" for one in found.unchecked]
    rules = ", ".join(f"{rule} {count}" for rule, count in found.by_rule().items())
    warnings = len(found.findings) - found.errors
    lines.append(
        f"{found.answers} answers to {found.questions} questions: {found.errors} errors, {warnings} warnings"
        + (f" ({rules})" if rules else "")
    )
    return PluginReport(_json(found), tuple(lines), ok=not found.errors)


def _json(found: Lint) -> dict[str, JsonValue]:
    return {
        "file": str(found.file),
        "answers": found.answers,
        "questions": found.questions,
        "errors": found.errors,
        "warnings": len(found.findings) - found.errors,
        "by_rule": {**found.by_rule()},
        "findings": [asdict(one) for one in found.findings],
        "unchecked": list(found.unchecked),
    }
