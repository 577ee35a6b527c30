"""`proctor list`."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Literal

from proctor.api import StoreUrl
from proctor.cli.output import Output, OutputFormat, note, show
from proctor.core import Option, Registry

Kind = Literal["benchmarks", "systems", "methods", "judges", "conditions", "formats", "metrics", "runs"]

_INSTALLED = {
    "benchmarks": "proctor.core:BENCHMARKS",
    "systems": "proctor.systems:SYSTEMS",
    "methods": "proctor.systems:SYSTEMS",
    "judges": "proctor.judges:JUDGES",
    "conditions": "proctor.media:CONDITIONS",
    "formats": "proctor.interchange:FORMATS",
}
"""Where the names of a kind are known; the other kinds are those of a store."""

Rows = list[dict[str, Any]]


def list_things(
    kind: Annotated[
        Kind | None,
        Option(
            "benchmarks, systems, methods, judges, conditions, formats, metrics, runs.", metavar="KIND", argument=True
        ),
    ] = None,
    store: StoreUrl = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List benchmarks, systems, judges, runs.

    Without an argument: all that is installed. Formats are those of other programs, for import and export. Metrics and
    runs are those of a store; of every run answers, failures, when it began, and with --format json what it was asked
    with.

    Example: proctor list systems
    """
    from proctor import api
    from proctor.reports import records_table

    if kind is None:
        _list_installed(output)
    elif kind in _INSTALLED:
        rows = _installed(kind)
        show(output, rows, records_table(kind, rows))
    elif kind == "metrics":
        rows = _metrics(api.open_store(store, create=False))
        show(output, rows, records_table(kind, rows))
    else:
        from proctor.runs import stored_runs

        rows = stored_runs(api.open_store(store, create=False))
        names = ("benchmark", "system", "condition", "answered", "failed", "begun", "model", "servers")
        short = [{name: row[name] for name in names} for row in rows]
        show(output, rows if output is OutputFormat.JSON else short, records_table(kind, short))


def _list_installed(output: OutputFormat) -> None:
    """Every kind that needs no store, one after another."""
    from proctor.cli.output import print_json
    from proctor.reports import records_table

    found = {kind: _installed(kind) for kind in _INSTALLED}
    if output is OutputFormat.JSON:
        print_json(found)
        return
    rows = [{"kind": kind, **row} for kind, own in found.items() for row in own]
    show(output, rows, *(records_table(kind, own) for kind, own in found.items()), apart=True)
    if output is OutputFormat.TABLE:
        note("Runs and metrics of a store: proctor list runs --store STORE")


def _installed(kind: str) -> Rows:
    module, _, name = _INSTALLED[kind].partition(":")
    registry: Registry[Any] = getattr(import_module(module), name)
    names = registry.names()
    if kind in {"systems", "methods"}:
        from proctor.systems import asks_models

        names = [one for one in names if asks_models(one) is (kind == "methods")]
    return [{"name": one, "summary": registry.summary(one)} for one in names]


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
