"""`proctor check judge`: a trained judge along all its paths, before others get it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.core import InputError, PluginReport, ValidationRequest
from proctor.models import ModelSpec
from proctor_train.parity import check_run, export_run


def validate_judge(run: Path, request: ValidationRequest) -> PluginReport:
    """Compares a trained judge's scores on all its paths (see `check_run`). The options: `export` writes adapter, merged
    weights and card into a new folder, unless a path has a fault; `base_url` and `model` name a server with the merged
    weights, and the weights there (by default a server is started); `device` is cpu, cuda or auto."""
    options = {
        name: str(value) for name, value in request.known_options("export", "base_url", "model", "device").items()
    }
    export = Path(options["export"]) if "export" in options else None
    if export is not None and export.exists():
        raise InputError(export, found="something there", expected="a new folder")
    address = options.get("base_url")
    server = None if address is None else ModelSpec(name=options.get("model", "judge"), base_url=address)
    found = check_run(run, server=server, device=options.get("device", "auto"))
    table = found.table()
    exported = None if export is None or found.faults else export_run(run, export)
    ended = f"the same judge on every path{f': {exported}' if exported else ''}"
    json: dict[str, Any] = {
        "faults": [*found.faults],
        "exported": None if exported is None else str(exported),
        "paths": [*table.records],
    }
    return PluginReport(json, (table, *(found.faults or (ended,))), ok=not found.faults)
