"""`proctor validate clinicalskillqa` and `proctor validate workflow`."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from proctor.core import PluginReport, ValidationRequest, reader_of
from proctor.tasks.clinicalskillqa.submission import lint_predictions


def validate(file: Path, request: ValidationRequest) -> PluginReport:
    """Repeated, missing and unknown instances and labels, empty orders, missing rationales."""
    request.known_options()
    data = request.needed_data("the folder with the instances")
    found = lint_predictions(file, reader_of("clinicalskillqa", request.track).load(data, request.media))
    summary = (
        f"{found.answers} answers to {found.instances} instances: {found.errors} errors, {found.warnings} warnings"
    )
    return PluginReport(found.to_json(), (*map(str, found.causes), summary), ok=not found.errors)


def validate_workflow(file: Path, request: ValidationRequest) -> PluginReport:
    """Form, undefined names, cycles, unreachable steps, and variants that contradict the order."""
    from proctor.tasks.clinicalskillqa.methods.workflow import check_workflow

    request.known_options()
    wrong = [str(one) for one in check_workflow(file)]
    found: dict[str, JsonValue] = {"file": str(file), "errors": len(wrong), "findings": [*wrong]}
    return PluginReport(found, (*wrong, f"{len(wrong)} errors"), ok=not wrong)
