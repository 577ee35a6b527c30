"""`proctor list`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from proctor.cli.options import Output, OutputFormat, StoreUrl
from proctor.cli.output import print_csv, print_json, print_table
from proctor.cli.results import DEFAULT_STORE

__all__ = ["Kind", "list_things"]


class Kind(StrEnum):
    """What can be listed."""

    BENCHMARKS = "benchmarks"
    SYSTEMS = "systems"
    METHODS = "methods"
    JUDGES = "judges"
    DIMENSION_JUDGES = "dimension-judges"
    CONDITIONS = "conditions"
    METRICS = "metrics"
    RUNS = "runs"


def list_things(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    store: StoreUrl = DEFAULT_STORE,
    output: Output = OutputFormat.TABLE,
) -> None:
    """What there is: benchmarks, systems, methods, judges (also of dimensions), conditions; metrics and runs of a store.

    Example: proctor list systems
    """
    columns, rows = _rows(kind, store)
    if output is OutputFormat.JSON:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif output is OutputFormat.CSV:
        print_csv(columns, rows)
    else:
        print_table(kind.value, columns, rows)


def _rows(kind: Kind, store: str) -> tuple[list[str], list[list[str]]]:
    if kind is Kind.BENCHMARKS:
        from proctor.benchmarks import BENCHMARKS

        return ["name", "summary"], [[name, BENCHMARKS.get(name).summary] for name in BENCHMARKS.names()]
    if kind is Kind.SYSTEMS:
        from proctor.systems import SYSTEMS

        return ["name", "summary"], [[name, _summary(SYSTEMS.get(name))] for name in SYSTEMS.names()]
    if kind is Kind.METHODS:
        from proctor.systems import METHODS

        return ["name", "summary"], [[name, _summary(METHODS.get(name))] for name in METHODS.names()]
    if kind is Kind.JUDGES:
        from proctor.judges import JUDGES

        return ["name", "summary"], [[name, _summary(JUDGES.get(name))] for name in JUDGES.names()]
    if kind is Kind.DIMENSION_JUDGES:
        from proctor.judges.dimensions import DIMENSION_JUDGES

        known = DIMENSION_JUDGES
        return ["name", "summary"], [[name, _summary(known.get(name))] for name in known.names()]
    if kind is Kind.CONDITIONS:
        from proctor.media import CONDITIONS

        return ["name", "summary"], [[name, CONDITIONS.get(name).summary] for name in CONDITIONS.names()]
    return _stored(kind, store)


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
    found = [
        (run, opened.count_answers(run)) for name in opened.benchmark_names() for run in opened.runs(name)
    ]
    return ["benchmark", "system", "condition", "settled", "failed"], [
        [run.benchmark, run.system, run.condition, str(settled), str(failed)]
        for run, (settled, failed) in found
    ]


def _summary(factory: object) -> str:
    return (getattr(factory, "__doc__", "") or "").strip().split("\n", 1)[0]
