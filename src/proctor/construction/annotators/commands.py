"""`proctor build presence`, `boxes`, `proposals`, `corrections`, `tracks` and `adjudication`: each runs a project up to
its stage, and writes tables and tracks for the next step of annotation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.construction import annotators, pipeline
from proctor.construction.commands import TracksAs
from proctor.construction.files import write_folder
from proctor.construction.pipeline.commands import Folder, noted, run_to, with_table
from proctor.core import PluginReport, Steps, count_of

if TYPE_CHECKING:
    from proctor.construction.annotation import Annotation

Table = Annotated[Path | None, typer.Option("--table", help="A new CSV file for the next step.", show_default=False)]
Tracks = Annotated[Path | None, typer.Option("--tracks", help="A new folder for the boxes.", show_default=False)]
As = Annotated[TracksAs, typer.Option("--to", help="The format of the tracks.")]


def presence(folder: Folder, steps: Steps, table: Table = None) -> PluginReport:
    """Estimate presence from votes on clips.

    --table lists the clips that need another vote, the most uncertain first; before any vote, all clips.

    Example: proctor build presence theatre --table next-votes.csv
    """
    report, made = run_to(folder, steps, annotators.Presence(), (table,))
    if table is None:
        return report
    clips = sorted((one.clip for one in made if one.clip.why), key=lambda clip: (-clip.entropy, clip.video, clip.start))
    rows = [(clip.clip, clip.class_name, clip.yes, clip.votes, f"{clip.probability:.3f}") for clip in clips]
    if not made:
        rows = [(name, "", "", "", "") for name in annotators.clips_to_vote_on(pipeline.Project(folder))]
    text = annotators.csv_of(("clip", "class", "yes", "votes", "probability"), rows)
    return with_table(report, table, text, len(rows), "clip")


def boxes(
    folder: Folder, steps: Steps, table: Table = None, tracks: Tracks = None, to: As = TracksAs.CVAT
) -> PluginReport:
    """Check boxes against presence.

    --table lists the seconds at which boxes are needed; --tracks writes the boxes as read.

    Example: proctor build boxes theatre --table seconds.csv
    """
    report, made = run_to(folder, steps, annotators.Boxes(), (table, tracks))
    report = _with_tracks(report, tracks, to, [one.annotation for one in made])
    if table is None:
        return report
    project = pipeline.Project(folder)
    clips = [presence_record.clip for presence_record in pipeline.records_of(project, annotators.Presence())]
    due = annotators.due_seconds(clips, annotators.videos_of(project))
    rows = [(due_second.video, due_second.second, ", ".join(due_second.classes)) for due_second in due]
    return with_table(report, table, annotators.csv_of(("video", "second", "classes"), rows), len(rows), "second")


def proposals(
    folder: Folder, steps: Steps, table: Table = None, tracks: Tracks = None, to: As = TracksAs.CVAT
) -> PluginReport:
    """Propose corrections by a detector.

    --table lists them; --tracks writes the boxes with each proposal as a track of its own. No box is changed.

    Example: proctor build proposals theatre --table proposals.csv
    """
    report, made = run_to(folder, steps, annotators.Proposals(), (table, tracks))
    proposed = [one.proposal for one in made]
    stand = [
        annotated_record.annotation
        for annotated_record in pipeline.records_of(pipeline.Project(folder), annotators.Boxes())
    ]
    report = _with_tracks(report, tracks, to, [annotators.with_proposals(annotation, proposed) for annotation in stand])
    text = annotators.table_of(proposed, annotators.PROPOSAL_COLUMNS)
    return with_table(report, table, text, len(made), "proposal")


def corrections(folder: Folder, steps: Steps, tracks: Tracks = None, to: As = TracksAs.CVAT) -> PluginReport:
    """Apply the proposals that were accepted.

    --tracks writes the corrected boxes, for two annotators who give each object its own track.

    Example: proctor build corrections theatre --tracks for-cvat
    """
    report, made = run_to(folder, steps, annotators.Corrections(), (tracks,))
    return _with_tracks(report, tracks, to, [one.annotation for one in made])


def tracks(folder: Folder, steps: Steps, table: Table = None) -> PluginReport:
    """Compare the tracks of two annotators.

    --table lists every difference, which a third person decides in a review.

    Example: proctor build tracks theatre --table differences.csv
    """
    report, made = run_to(folder, steps, annotators.Tracks(), (table,))
    return with_table(
        report,
        table,
        annotators.table_of([one.difference for one in made], annotators.DIFFERENCE_COLUMNS),
        len(made),
        "difference",
    )


def adjudication(folder: Folder, steps: Steps, tracks: Tracks = None, to: As = TracksAs.JSON) -> PluginReport:
    """Merge two annotations as decided.

    --tracks writes the result, for `proctor build focus` and other uses.

    Example: proctor build adjudication theatre --tracks tracks
    """
    report, made = run_to(folder, steps, annotators.Adjudication(), (tracks,))
    return _with_tracks(report, tracks, to, [one.annotation for one in made])


def _with_tracks(report: PluginReport, out: Path | None, to: TracksAs, some: Sequence[Annotation]) -> PluginReport:
    if out is None or not some:
        return report
    files = write_folder(some, to.value, out)
    return noted(report, f"{count_of(len(files), 'file')} in {out}")
