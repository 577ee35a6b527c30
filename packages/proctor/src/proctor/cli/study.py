"""`proctor run study.yaml`: a study file is run, and what it compares is printed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from proctor.cli import STOPPED_EXIT
from proctor.cli.output import print_blocks, print_line, print_note, show_asking, watched
from proctor.core import UsageError, count_of, shell_word, store_word
from proctor.shell import RunOptions

if TYPE_CHECKING:
    from proctor.api import StudyResult
    from proctor.shell import PreparedRun, StoredRuns

FAILED_EXIT = 3


def run_study(file: str, options: RunOptions, systems: Sequence[str], *, processes: bool, dry_run: bool) -> None:
    """Run a study file; exit with the code of what is missing, or of its gates."""
    from proctor import api
    from proctor.reports import estimate_table

    if systems or processes:
        raise UsageError(
            f"{file} names the systems, and is run by one process. Leave --system, --workers and --on out."
        )
    arranged = api.arrange_study(file, **options)
    study = arranged.study
    print_note(f"Study {study.study}, sha256 {study.sha256}")
    if dry_run:
        for name, found in asyncio.run(arranged.estimates()):
            print_blocks(estimate_table(name, found))
        print_note("Estimate: one call per question. Nothing was asked.")
        return

    async def ask(prepared: PreparedRun) -> StoredRuns:
        made: Any = await watched(prepared.ask, show_asking(prepared.plan.to_ask))
        for line in made.done:
            print_line(line)
        print_note(*made.costs)
        return made  # type: ignore[no-any-return]

    result = asyncio.run(arranged.make(ask, print_note))
    _show(result)
    _end(result)


def _show(result: StudyResult) -> None:
    """Print what judges gave, and the comparisons with their gates."""
    from proctor.reports import comparison_blocks

    for scored in result.scored:
        print_line("; ".join(f"{name}: {count_of(count, 'answer')} scored" for name, count in scored.by.items()))
        print_note(*scored.notes)
    for table in result.comparisons:
        for comparison in table.data.comparisons:
            print_blocks(*comparison_blocks(comparison, table.data.card.metric(comparison.metric)), "")
        if table.data.gate is not None:
            print_line(str(table.data.gate))


def _end(result: StudyResult) -> None:
    """Exit with the code of what is missing, or of the gates."""
    print_note(*([result.stopped] if result.stopped else []))
    if result.remaining:
        print_note(f"{count_of(result.remaining, 'answer')} still to be asked: run the same command again.")
        raise typer.Exit(FAILED_EXIT if result.failed else STOPPED_EXIT)
    if result.failed:
        print_note(f"{count_of(result.failed, 'answer')} failed: run the same command again to ask them again.")
        raise typer.Exit(FAILED_EXIT)
    if result.stopped:
        raise typer.Exit(STOPPED_EXIT)
    shown = store_word(result.store.shown)
    print_line(f"Study {result.study.study}: complete in {shown}, sha256 {result.study.sha256}")
    if result.exit_code:
        raise typer.Exit(result.exit_code)
    print_note(f"Next: proctor report {shell_word(result.runs[0].benchmark)} --store {shown} --out report.html")
