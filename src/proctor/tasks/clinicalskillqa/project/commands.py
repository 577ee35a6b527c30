"""`proctor build frames`, `rationales`, `refine`, `evidence`, `physicians`, `consensus`: each runs a project up to its
stage; the last two write what people fill in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.construction.pipeline import noted, records_of, run_to, stage_command, with_table
from proctor.core import PluginReport, Steps

frames = stage_command("frames", "Choose key frames and shuffle them", "proctor build frames skills --source cpr-1")
rationales = stage_command("rationales", "Write why frames stand in order", "proctor build rationales skills")
refine = stage_command("refine", "Put rationales clearly", "proctor build refine skills")
evidence = stage_command("evidence", "Check sentences on their frames", "proctor build evidence skills")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The project folder.", show_default=False)]
Table = Annotated[Path | None, typer.Option("--table", help="A new CSV file to be filled in.", show_default=False)]


def physicians(
    folder: Folder,
    steps: Steps,
    table: Table = None,
    sheet: Annotated[
        Path | None, typer.Option("--sheet", help="A new HTML page with the frames.", show_default=False)
    ] = None,
) -> PluginReport:
    """Compare the reviews of two physicians.

    --table writes an empty table for one of them, --sheet a page with the frames: first in mixed order, then, unfolded,
    in their own with the rationale. Each physician gets both, and sees nothing of the other.

    Example: proctor build physicians skills --table skills/sources/physician-a.csv --sheet frames.html
    """
    from proctor.construction.pipeline import Project, kind_of
    from proctor.tasks.clinicalskillqa.project.physicians import PhysiciansStage, review_table
    from proctor.tasks.clinicalskillqa.project.sheet import write_frames_sheet

    report, _ = run_to(folder, steps, PhysiciansStage(), (table, sheet))
    project = Project(folder)
    kind = kind_of(project)
    sentences = records_of(project, kind.stage("evidence"))
    there = {one.instance for one in sentences}
    shown = [one for one in records_of(project, kind.stage("frames")) if one.id in there]
    if not shown:
        return noted(report, "No instance has a rationale yet: nothing to review")
    report = with_table(report, table, review_table(shown, sentences), len(shown), "instance")
    if sheet is None:
        return report
    write_frames_sheet(project, shown, sentences, sheet)
    return noted(report, f"The frames: {sheet}")


def consensus(folder: Folder, steps: Steps, table: Table = None) -> PluginReport:
    """Settle what the physicians differ on.

    --table writes what is open, with what both say, and empty columns for what they decide together.

    Example: proctor build consensus skills --table skills/sources/consensus.csv
    """
    from proctor.construction.pipeline import Project
    from proctor.tasks.clinicalskillqa.project.consensus import ConsensusStage, consensus_table, open_questions
    from proctor.tasks.clinicalskillqa.project.physicians import PhysiciansStage

    report, _ = run_to(folder, steps, ConsensusStage(), (table,))
    reviews = records_of(Project(folder), PhysiciansStage())
    open_ = len(list(open_questions(reviews)))
    if table is not None and not open_:
        return noted(report, f"Nothing is open: no {table}")
    return with_table(report, table, consensus_table(reviews), open_, "disagreement")
