"""`proctor analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.options import (
    BenchmarkName,
    Draws,
    FailedOption,
    Output,
    OutputFormat,
    Seed,
    StoreUrl,
    Systems,
    TwoLevel,
)
from proctor.cli.output import console, drawn_over, note, print_json, print_table
from proctor.cli.ranking import Baselines, LatencyOption
from proctor.cli.results import DEFAULT_STORE

if TYPE_CHECKING:
    from proctor.runs import Analysis

_SHOWN = {
    "regression": "What goes with a right answer, all else held fixed (odds ratios; p is not adjusted)",
    "gaps": "Accuracy on the second less that on the first",
    "videos": "Spread over the groups",
    "pairs": "Paired differences",
    "ensembles": "Submissions together (p is not adjusted)",
}


def analyze(
    benchmark: BenchmarkName,
    store: StoreUrl = DEFAULT_STORE,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="A folder for one CSV file a table, and one SVG file a picture.", show_default=False
        ),
    ] = None,
    condition: Annotated[str, typer.Option("--condition", help="What was answered under it.")] = "video",
    systems: Systems = None,
    baselines: Baselines = None,
    stability: Annotated[
        int, typer.Option("--stability", min=0, help="Samples of videos for the stability of the ranking.")
    ] = 1000,
    draws: Draws = 2000,
    two_level: TwoLevel = False,
    failed: FailedOption = None,
    latency: LatencyOption = None,
    publish: Annotated[bool, typer.Option("--publish", help="Leave out the names of judges.")] = False,
    output: Output = OutputFormat.TABLE,
    seed: Seed = 0,
) -> None:
    """Analyze accuracy, pairs and failures.

    By capability, with logistic regression, paired tests, ensembles, causes of failures and further metrics.

    Example: proctor analyze focus --store runs.db --baseline frontier --out analysis
    """
    from proctor import api
    from proctor.reports import Source, board_notes, write_pictures
    from proctor.runs import Options, Store, public_copy, write_tables

    if output is OutputFormat.CSV and out is None:
        raise typer.BadParameter("one file a table: name a folder with --out", param_hint="--format csv")
    opened = Store(store, create=False)
    if publish:
        opened = public_copy(opened, benchmark)
    found = api.analyze(
        opened,
        benchmark,
        condition=condition,
        systems=systems or (),
        baselines=baselines or (),
        draws=draws,
        stability=stability,
        two_level=two_level,
        failed=failed,
        latency=latency.value if latency else None,
        seed=seed,
    ).data
    if output is OutputFormat.JSON:
        print_json(found.tables)
    elif output is OutputFormat.TABLE:
        _print(found)
        for line in board_notes(found.boards[0]):
            note(line)
        note(drawn_over(draws, seed, two_level=two_level))
    if out is not None:
        chance = Source(opened, benchmark, Options()).accuracy_chance
        tables, pictures = write_tables(found, out), write_pictures(found, out, chance)
        if output is not OutputFormat.JSON:
            line = f"{len(tables)} tables and {len(pictures)} pictures in {out}"
            console.print(line, markup=False, highlight=False)


def _print(found: Analysis) -> None:
    for name, title in _SHOWN.items():
        rows = [row for row in found.tables[name] if row.get("part", "all") == row.get("format", "all") == "all"]
        if rows:
            columns = [f">{key}" if isinstance(value, float | int) else key for key, value in rows[0].items()]
            print_table(title, columns, [[_shown(value) for value in row.values()] for row in rows])
            console.print()


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
