"""`proctor compare`: paired differences of runs, margins, gates, and parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from proctor.cli.margins import draw_forest, print_interactions, tell_margin, with_margin
from proctor.cli.output import (
    OutputFormat,
    at_work,
    named_in,
    print_blocks,
    print_line,
    print_note,
    print_text,
    settings_of,
    show,
)
from proctor.cli.results import FigureFile, Tables, TablesFormat, draw_table
from proctor.core import shell_word, store_word
from proctor.shell import BenchmarkName, CompareOptions, StoreUrl, policy_of

if TYPE_CHECKING:
    from proctor.core import Table
    from proctor.reports import ComparisonTable
    from proctor.runs import Store

UNDECIDED = 2
"""The exit code of a gate that is undecided, also because of an error: 1 would say that it does not hold."""


def compare(
    benchmark: BenchmarkName,
    options: CompareOptions,
    store: StoreUrl = None,
    figure: FigureFile = None,
    form: Tables = TablesFormat.TABLE,
) -> None:
    """Compare two conditions or two systems.

    Shows a contingency table and the paired difference.

    With two or more --system and one --condition (or a single common one), compares the systems; else the conditions of
    each system. With --against, compares each run with that one. --system SYSTEM/CONDITION names a run. With --by,
    compares each part of the items separately; --interaction tests whether the parts differ, and draws a forest plot. With
    --margin, says whether the first run is worse by more than the margin, which is printed with time and hash first.

    With --gate, the exit code is 0 if the statement about the first run holds, 1 if it does not, and 2 if it is
    undecided: too few groups, or any error. It is about the headline metric, or those of --metric.

    Example: proctor compare rexsonovqa --store runs.db --condition text-only --condition video
    """
    from proctor import api

    with _exit_codes(gated=bool(options["gate"])):
        opened = api.open_store(store, create=False)
        benchmark = named_in(opened, benchmark)
        with at_work("comparing runs"):
            table = api.compare(opened, benchmark, on_margin=tell_margin, **options)
        if not draw_forest(table, figure):
            draw_table(table, figure, options["metrics"])
        _show(table, opened, benchmark, options, form)
        gate = table.data.gate
    if gate is not None:
        if form is TablesFormat.TABLE:
            print_line(str(gate))
        elif form is not TablesFormat.JSON:
            print_note(str(gate))
        raise typer.Exit(gate.exit_code)


@contextmanager
def _exit_codes(*, gated: bool) -> Iterator[None]:
    """Within the block, every exception of a gated comparison ends the command with `UNDECIDED`."""
    try:
        yield
    except Exception as error:
        if gated:
            vars(error)["exit_code"] = UNDECIDED
        raise


def _show(table: ComparisonTable, opened: Store, benchmark: str, options: CompareOptions, form: TablesFormat) -> None:
    """Print the comparisons."""
    if form is TablesFormat.LATEX:
        print_text(table.to_latex())
        return
    output = OutputFormat(form.value)
    # after what may be refused: it takes long
    from proctor.reports import (
        comparison_blocks,
        few_groups_line,
        margin_notes,
        outside_line,
        policy_line,
        scarce_line,
        scarce_metrics,
        unadjusted_line,
        without_line,
    )

    found = table.data
    if output is not OutputFormat.TABLE:
        rows = [comparison.to_json() | settings_of(options) for comparison in found.comparisons]
        rows = with_margin(found, rows)
        rows += [] if found.gate is None else [{"gate": found.gate.to_json()}]
        show(output, rows if output is OutputFormat.JSON else table.rows)
    elif options["by"]:
        print_blocks(*_part_tables(found, found.by))
        print_interactions(found)
        print_note(*margin_notes(found.comparisons))
        print_note(*filter(None, [outside_line(found.outside, found.by), unadjusted_line(found.comparisons)]))
    else:
        counts = [(comparison.metric, comparison.difference.n) for comparison in found.comparisons]
        few = [] if options["metrics"] else scarce_metrics(counts, found.card.headline)
        for comparison in found.comparisons:
            if comparison.metric not in few:
                print_blocks(*comparison_blocks(comparison, found.card.metric(comparison.metric)), "")
        print_note(*([scarce_line(few)] if few else []))
        line = few_groups_line(max(comparison.difference.groups for comparison in found.comparisons))
        several = any(comparison.family for comparison in found.comparisons)
        unadjusted = "Intervals are not adjusted for the number of comparisons." if several else ""
        print_note(*filter(None, [line, without_line(found.without), unadjusted]))
        if any(comparison.policy for comparison in found.comparisons):
            print_note(policy_line(policy_of(options["failed"]), found.card))
        print_note(f"Next: proctor report {shell_word(benchmark)} --store {store_word(opened.shown)} --out report.html")


def _part_tables(found: Any, by: Any) -> list[Table]:
    """Of each pair, metric and scorer one table: a line for each part of the items."""
    from proctor.reports import differences_table

    tables: dict[tuple[str, ...], list[Any]] = {}
    for comparison in found.comparisons:
        tables.setdefault(
            (comparison.metric, comparison.scorer, str(comparison.first), str(comparison.second)), []
        ).append(comparison)
    made = []
    for (name, scorer, first, second), parts in tables.items():
        metric = found.card.metric(name)
        lead = {facet: lambda one, facet=facet: str(one.facets[facet]) for facet in by}
        made.append(differences_table(f"{metric.label} ({scorer}): {first} minus {second}", metric, parts, lead))
    return made
