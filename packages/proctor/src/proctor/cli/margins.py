"""What `compare` and `results` print of margins, interactions and critical errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.cli.output import OutputFormat, at_work, print_blocks, print_line, print_note, show
from proctor.shell import ResultOptions

if TYPE_CHECKING:
    from proctor.reports import ComparisonTable
    from proctor.results import Comparisons, MarginRecord
    from proctor.runs import Store


def show_critical(store: Store, benchmark: str, facet: str, options: ResultOptions, output: OutputFormat) -> None:
    from proctor import api
    from proctor.reports import critical_table

    with at_work("computing limits"):
        found = api.critical(store, benchmark, facet=facet, **options)
    show(output, [one.to_json() for one in found], critical_table(found))


def tell_margin(record: MarginRecord) -> None:
    """Says the margin before anything is computed."""
    from proctor.reports import record_line

    print_note(record_line(record))


def print_interactions(found: Any) -> None:
    """Of each pair and metric the parts against each other: a table, a forest plot and the global test."""
    from proctor.reports import forest_text, interaction_line, interaction_table

    for one in found.interactions:
        print_blocks(interaction_table(one), "")
        print_line("\n".join(forest_text(one)))
        print_line(interaction_line(one))


def draw_forest(table: ComparisonTable, figure: Path | None) -> bool:
    """Writes the forest plot of the first interaction, if there is one; returns whether it did."""
    if figure is None or not table.data.interactions:
        return False
    from proctor.reports import write_forest

    print_note(f"figure: {write_forest(table.data.interactions[0], figure)}")
    return True


def with_margin(found: Comparisons, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of JSON with the record of the margin, and a row for each interaction."""
    if found.margin is not None:
        rows = [row | {"margin_record": found.margin.to_json()} for row in rows]
    return rows + [{"interaction": one.to_json()} for one in found.interactions]
