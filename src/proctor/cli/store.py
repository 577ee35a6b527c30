"""`proctor store`: check what holds answers and scores; show, rename and delete runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.options import BenchmarkName, Conditions, Output, OutputFormat, StoreUrl, Systems
from proctor.cli.output import console, note, print_csv, print_json, print_table
from proctor.cli.results import DEFAULT_STORE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proctor.runs import Run, Store

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]

_SHOWN = 100


def check(store: StoreUrl = DEFAULT_STORE) -> None:
    """Check that every row can be read.

    Nothing is changed.

    Exit code 1 where a row is damaged. Example: proctor store check --store runs.db
    """
    from proctor.runs import Store, check_store

    found = 0
    for line in check_store(Store(store, create=False)):
        found += 1
        if found <= _SHOWN:
            typer.echo(line)
    if found > _SHOWN:
        typer.echo(f"and {found - _SHOWN} more")
    typer.echo(
        f"{found} damaged: restore a copy, or run the affected items again into another --store"
        if found
        else "Every row can be read."
    )
    if found:
        raise typer.Exit(1)


def show_store(store: StoreUrl = DEFAULT_STORE, output: Output = OutputFormat.TABLE) -> None:
    """Show a store's benchmarks and run settings.

    Of every run: answers, failures, when it began, and what it was asked with.

    Example: proctor store show --store runs.db --format json
    """
    from proctor.runs import Store, stored_runs

    rows = stored_runs(Store(store, create=False))
    if output is OutputFormat.JSON:
        print_json(rows)
        return
    columns = ["benchmark", "system", "condition", "answered", "failed", "begun", "model", "servers"]
    cells = [["" if row[name] is None else str(row[name]) for name in columns] for row in rows]
    if output is OutputFormat.CSV:
        print_csv(columns, cells)
        return
    numbers = {"answered", "failed"}
    print_table(store, [f">{name}" if name in numbers else name for name in columns], cells)
    if not rows:
        note("No run yet.")


def delete(
    benchmark: BenchmarkName,
    systems: Systems = None,
    conditions: Conditions = None,
    everything: Annotated[bool, typer.Option("--all", help="The benchmark with its items and all runs.")] = False,
    store: StoreUrl = DEFAULT_STORE,
    yes: Yes = False,
) -> None:
    """Delete runs, or a benchmark with all runs.

    What judges replied stays, so that the same answers are not paid for again.

    Example: proctor store delete focus --system team-a --store runs.db
    """
    from proctor.runs import Store, chosen_runs, delete_benchmark, delete_runs

    if everything == bool(systems or conditions):
        raise typer.BadParameter("name runs by --system and --condition, or take --all", param_hint="--all")
    opened = Store(store, create=False)
    runs = chosen_runs(opened, benchmark, tuple(systems or ()), tuple(conditions or ()))
    if not runs and not everything:
        raise typer.BadParameter("no run has this system and condition", param_hint="--condition")
    _confirm(f"Delete {_told(opened, runs)} of {benchmark} from {opened.shown}?", yes=yes)
    count = delete_benchmark(opened, benchmark) if everything else delete_runs(opened, runs)
    console.print(f"Deleted {len(runs)} runs, {count} answers", markup=False, highlight=False)


def rename(
    benchmark: BenchmarkName,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The system's name.", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.", show_default=False)],
    store: StoreUrl = DEFAULT_STORE,
    yes: Yes = False,
) -> None:
    """Rename a system in all its runs.

    Example: proctor store rename focus team-a team-b --store runs.db
    """
    from proctor.runs import Store, chosen_runs, rename_system

    opened = Store(store, create=False)
    runs = chosen_runs(opened, benchmark, (old,))
    _confirm(f"Rename {_told(opened, runs)} of {benchmark} to {new}?", yes=yes)
    rename_system(opened, benchmark, runs, new)
    console.print(f"{old} is {new} now, in {len(runs)} runs", markup=False, highlight=False)


def _told(store: Store, runs: Sequence[Run]) -> str:
    """The runs by name, with the number of their answers."""
    named = ", ".join(f"{run.system} / {run.condition}" for run in runs[:5])
    more = f" and {len(runs) - 5} more" if len(runs) > 5 else ""
    answers = sum(sum(store.count_answers(run)) for run in runs)
    return f"{named or 'no run'}{more} ({answers} answers)"


def _confirm(question: str, *, yes: bool) -> None:
    """Asks on a terminal; elsewhere nobody can answer, so that --yes is needed."""
    from proctor.core import clean

    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("needed where nobody can be asked", param_hint="--yes")
    typer.confirm(clean(question), abort=True)
