"""What is installed, and what a store holds: `proctor list`. What can't be loaded is a note, and stops no other."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Literal

from proctor.cli.output import Output, OutputFormat, print_json, print_note, show
from proctor.core import Option, ProctorError, Registry
from proctor.shell import StoreUrl

Kind = Literal["benchmarks", "systems", "methods", "judges", "scorers", "conditions", "formats", "metrics", "runs"]

_INSTALLED = {
    "benchmarks": "proctor.core:BENCHMARKS",
    "systems": "proctor.systems:SYSTEMS",
    "methods": "proctor.systems:SYSTEMS",
    "judges": "proctor.judges:JUDGES",
    "scorers": "proctor.metrics:SCORERS",
    "conditions": "proctor.media:CONDITIONS",
    "formats": "proctor.interchange:FORMATS",
}
"""The registry of each kind; the other kinds are listed from a store."""

Rows = list[dict[str, Any]]


def list_things(
    kind: Annotated[
        Kind | None,
        Option(
            "benchmarks, systems, methods, judges, scorers, conditions, formats, metrics, runs.",
            metavar="KIND",
            argument=True,
        ),
    ] = None,
    store: StoreUrl = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List benchmarks, systems, judges, runs.

    Without an argument, list everything that is installed. Scorers give metrics without a model. Formats are those of other programs, for import and export.
    Metrics and runs are those of a store. Of each run, answers, failures and its start are shown, and with --format
    json also its settings.

    Example: proctor list systems
    """
    from proctor import api
    from proctor.reports import records_table

    if kind is None:
        _list_installed(output)
    elif kind in _INSTALLED:
        rows, faults = _installed(kind)
        show(output, rows, records_table(kind, rows))
        print_note(*faults)
    elif kind == "metrics":
        rows = _metrics(api.open_store(store, create=False))
        show(output, rows, records_table(kind, rows))
    else:
        from proctor.runs import stored_runs

        rows = stored_runs(api.open_store(store, create=False))
        names = ("benchmark", "system", "condition", "answered", "failed", "begun", "model", "answered_by", "servers")
        short = [{name: row[name] for name in names} for row in rows]
        show(output, rows if output is OutputFormat.JSON else short, records_table(kind, short))


def _list_installed(output: OutputFormat) -> None:
    """List all kinds that need no store."""
    from proctor.reports import records_table

    listed = {kind: _installed(kind) for kind in _INSTALLED}
    found = {kind: rows for kind, (rows, _) in listed.items()}
    faults = [fault for _, own in listed.values() for fault in own]
    if output is OutputFormat.JSON:
        print_json(found)
    else:
        rows = [{"kind": kind, **row} for kind, own in found.items() for row in own]
        show(output, rows, *(records_table(kind, own) for kind, own in found.items()), apart=True)
    print_note(*dict.fromkeys(faults))
    if output is OutputFormat.TABLE:
        print_note("Runs and metrics of a store: proctor list runs --store STORE")


def _installed(kind: str) -> tuple[Rows, list[str]]:
    """What is installed of a kind, and a line for each that can't be loaded, with its package."""
    module, _, name = _INSTALLED[kind].partition(":")
    registry: Registry[Any] = getattr(import_module(module), name)
    rows, faults = Rows(), list[str]()
    try:
        names = registry.names()
    except ProctorError as error:  # two packages offer one name
        return [], [str(error)]
    for one in names:
        try:
            if _belongs(kind, one):
                rows.append({"name": one, "summary": registry.summary(one)})
        except ProctorError as error:
            faults.append(str(error))
    if kind == "scorers":
        _add_over_items(rows, faults)
    return rows, faults


def _belongs(kind: str, name: str) -> bool:
    """Whether a system belongs to its kind: methods ask models, systems do not."""
    from proctor.systems import asks_models

    return kind not in {"systems", "methods"} or asks_models(name) is (kind == "methods")


def _add_over_items(rows: Rows, faults: list[str]) -> None:
    from proctor.metrics import CORPUS_METRICS, OVER_ITEMS, installed_over_items

    labels = {metric.name: metric.label for metric in CORPUS_METRICS}
    try:
        names = OVER_ITEMS.names()
    except ProctorError as error:
        faults.append(str(error))
        return
    for name in names:
        try:
            label = labels.get(name) or installed_over_items([name])[0].metric.label
            rows.append({"name": name, "summary": f"{label} (over many items)"})
        except ProctorError as error:
            faults.append(str(error))


def _metrics(store: Any) -> Rows:
    return [
        {
            "benchmark": name,
            "metric": metric.name,
            "label": metric.label,
            "low": metric.low,
            "high": metric.high,
            "better": "up" if metric.higher_is_better else "down",
        }
        for name in store.benchmark_names()
        for metric in store.card(name).metrics
    ]
