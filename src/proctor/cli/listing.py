"""`proctor list`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from proctor.cli.options import Output, OutputFormat, StoreUrl
from proctor.cli.output import console, note, print_csv, print_json, print_table
from proctor.cli.results import DEFAULT_STORE
from proctor.core import Registry


class Kind(StrEnum):
    """What can be listed."""

    BENCHMARKS = "benchmarks"
    SYSTEMS = "systems"
    METHODS = "methods"
    JUDGES = "judges"
    CONDITIONS = "conditions"
    METRICS = "metrics"
    RUNS = "runs"


_INSTALLED = (Kind.BENCHMARKS, Kind.SYSTEMS, Kind.METHODS, Kind.JUDGES, Kind.CONDITIONS)


def list_things(
    kind: Annotated[
        Kind | None,
        typer.Argument(
            metavar="KIND",
            help="benchmarks, systems, methods, judges, conditions, metrics or runs.",
            show_default=False,
        ),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List benchmarks, systems, judges, runs.

    Without an argument: all that is installed. Metrics and runs are those of a store.

    Example: proctor list systems
    """
    if kind is None:
        _list_installed(output)
        return
    columns, rows = _rows(kind, store)
    if output is OutputFormat.JSON:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif output is OutputFormat.CSV:
        print_csv(columns, rows)
    else:
        print_table(kind.value, columns, rows)


def _list_installed(output: OutputFormat) -> None:
    """Every kind that needs no store, one after another."""
    found = {kind.value: _rows(kind, "")[1] for kind in _INSTALLED}
    if output is OutputFormat.JSON:
        named = {kind: [{"name": name, "summary": line} for name, line in rows] for kind, rows in found.items()}
        print_json(named)
        return
    if output is OutputFormat.CSV:
        print_csv(["kind", "name", "summary"], [[kind, *row] for kind, rows in found.items() for row in rows])
        return
    for kind, rows in found.items():
        print_table(kind, ["name", "summary"], rows)
        console.print()
    note("Runs and metrics of a store: proctor list runs --store STORE")


def _rows(kind: Kind, store: str) -> tuple[list[str], list[list[str]]]:
    registry = _registry(kind)
    if registry is None:
        return _stored(kind, store)
    names = registry.names()
    if kind in {Kind.SYSTEMS, Kind.METHODS}:
        from proctor.systems import asks_models

        names = [name for name in names if asks_models(name) is (kind is Kind.METHODS)]
    return ["name", "summary"], [[name, _summary(registry.get(name))] for name in names]


def _registry(kind: Kind) -> Registry[Any] | None:
    """Where the names of a kind are known; None for what a store holds."""
    if kind is Kind.BENCHMARKS:
        from proctor.core import BENCHMARKS

        return BENCHMARKS
    if kind is Kind.CONDITIONS:
        from proctor.media import CONDITIONS

        return CONDITIONS
    if kind is Kind.JUDGES:
        from proctor.judges import JUDGES

        return JUDGES
    if kind in {Kind.SYSTEMS, Kind.METHODS}:
        from proctor.systems import SYSTEMS

        return SYSTEMS
    return None


def _stored(kind: Kind, store: str) -> tuple[list[str], list[list[str]]]:
    from proctor.runs import Store

    opened = Store(store, create=False)
    if kind is Kind.METRICS:
        rows = [
            [
                name,
                metric.name,
                metric.label,
                f"{metric.low:g}",
                f"{metric.high:g}",
                "up" if metric.higher_is_better else "down",
            ]
            for name in opened.benchmark_names()
            for metric in opened.card(name).metrics
        ]
        return ["benchmark", "metric", "label", "low", "high", "better"], rows
    found = [(run, opened.count_answers(run)) for name in opened.benchmark_names() for run in opened.runs(name)]
    return ["benchmark", "system", "condition", "settled", "failed"], [
        [run.benchmark, run.system, run.condition, str(settled), str(failed)] for run, (settled, failed) in found
    ]


def _summary(thing: object) -> str:
    """What a reader, a condition or a factory says of itself, in one line."""
    return str(getattr(thing, "summary", "") or (thing.__doc__ or "").strip().split("\n", 1)[0])
