"""`proctor build focus`: questions from annotated videos."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import JsonValue

from proctor.core import InputError, Option, PluginReport, Steps, Table, UsageError, count_of, plain_table, shell_word
from proctor.tracks import ReadDefaults
from proctor_build import Completion, Fps, ProcedureName, TrackFiles, completed, files_of

if TYPE_CHECKING:
    from proctor_build.annotators import MeasuredTolerances
    from proctor_build.focus.builder import FocusBuilt


def build(
    tracks: TrackFiles,
    steps: Steps,
    out: Annotated[Path | None, Option("A new folder for the benchmark.")] = None,
    questions: Annotated[int, Option("Questions per video.", low=1)] = 40,
    times: Annotated[int, Option("At how many times besides its end a video is asked about.", low=0)] = 4,
    fill: Annotated[int, Option("Fill gaps of up to this many seconds in a track.", low=0, high=60)] = 2,
    fps: Fps = None,
    procedure: ProcedureName = "",
    in_distribution: Annotated[
        list[str] | None,
        Option("A procedure seen in training, by its whole name; may be repeated. [default: the challenge's]"),
    ] = None,
    unseen: Annotated[
        list[str] | None,
        Option("A kind of question not seen in training; may be repeated.", "--unseen-question", metavar="RULE"),
    ] = None,
    track: Annotated[str, Option("What questions are about: frame, segment or procedure.")] = "procedure",
    segment_s: Annotated[int, Option("How long a segment is.", "--segment-seconds", low=5, high=300)] = 60,
    even: Annotated[
        bool, Option("Ask each capability group equally often.", "--even-capabilities/--any-capabilities")
    ] = True,
    second: Annotated[
        Path | None, Option("A second annotator's tracks: sets tolerances.", "--second-annotator", metavar="PATH")
    ] = None,
    check_only: Annotated[bool, Option("Check the tracks and write nothing.")] = False,
    allow_findings: Annotated[bool, Option("Go on where a person should decide first.")] = False,
    seed: Annotated[int, Option("The seed of every draw; recorded.")] = 0,
) -> PluginReport:
    """Build FOCUS questions from tracks.

    Tracks are checked, short gaps filled, questions balanced.

    Exit code 1, and nothing written, where a finding needs a person.

    Example: proctor build focus tracks.xml --out focus --fps 25 --procedure "sigmoid resection"
    """
    from proctor_build.focus.builder import build_focus
    from proctor_build.focus.plan import SEEN_IN_TRAINING, FocusPlan

    if out is None and not check_only:
        raise UsageError("--out is missing. Name a new folder, or give --check-only.")
    seen = tuple(in_distribution or SEEN_IN_TRAINING)
    completions = completed(tracks, ReadDefaults(fps, procedure), fill, steps)
    measured = None
    tolerances: tuple[float | None, float | None] = (None, None)
    if second is not None:
        measured = _measured(completions, completed([second], ReadDefaults(fps, procedure), fill, steps), second)
        tolerances = (measured.time_s, measured.share_pp)
    plan = FocusPlan(questions, times, seen, tuple(unseen or ()), even, seed, track, segment_s, *tolerances)
    undecided = sum(len(completion.open) for completion in completions)
    stop = check_only or (undecided > 0 and not allow_findings)
    built = None
    if out is not None and not stop:
        with steps("choosing questions", questions) as progress:
            built = build_focus(completions, out, plan, sources=files_of(tracks), progress=progress)
    shown = [*_findings(completions), *([] if measured is None else _tolerances(measured))]
    notes: list[str] = []
    if built is not None and out is not None:
        shown += _built(built, out)
        notes.append(_next_line(out, track))
    if stop and undecided and not check_only:
        notes.append(
            "Nothing was written: decide what is listed (proctor build convert … --to cvat), or --allow-findings."
        )
    made = _json(completions, built) | ({} if measured is None else {"tolerances": measured.to_json()})
    return PluginReport(made, tuple(shown), tuple(notes), ok=not (stop and undecided))


def _next_line(out: Path, track: str) -> str:
    named = "" if track == "procedure" else f" --track {track}"
    return (
        f"Next: proctor audit items focus --data {shell_word(out)}{named}; "
        f"proctor run focus --data {shell_word(out)}{named} --media VIDEOS --model PROVIDER:NAME"
    )


def _measured(completions: Sequence[Completion], other: Sequence[Completion], second: Path) -> MeasuredTolerances:
    """The tolerances from the tracks and those of a second annotator. Raises `InputError` for videos that one of them
    lacks."""
    from proctor_build.annotators import compare_tracks, measured_tolerances

    mine, theirs = ({one.annotation.video.id: one.annotation for one in some} for some in (completions, other))
    if alone := sorted(mine.keys() ^ theirs.keys()):
        raise InputError(second, found=f"video {alone[0]!r} of one annotator alone", expected="the same videos of both")
    return measured_tolerances([(one, theirs[name], compare_tracks(one, theirs[name])) for name, one in mine.items()])


def _tolerances(measured: MeasuredTolerances) -> list[Table | str]:
    from proctor_build.annotators import tolerance_lines
    from proctor_build.focus.builder import tolerance_note

    return [*tolerance_lines(measured), tolerance_note(measured)]


def _json(completions: Sequence[Completion], built: FocusBuilt | None) -> dict[str, JsonValue]:
    findings = [asdict(finding) for completion in completions for finding in completion.findings]
    return {
        "videos": len(completions),
        "undecided": sum(len(completion.open) for completion in completions),
        "findings": [*findings],
        "filled": [asdict(filled) for completion in completions for filled in completion.filled],
        "questions": None if built is None else len(built.requests),
        "formats": None
        if built is None
        else {
            form: {"questions": number, "commonest_answer": share} for form, (number, share) in built.formats.items()
        },
    }


def _findings(completions: Sequence[Completion]) -> list[Table | str]:
    """What a person has to decide, line by line; what is only to be known, counted."""
    undecided = [finding for completion in completions for finding in completion.open]
    table = plain_table(
        "To be decided by a person",
        ("video", "instance", ">second", "finding", "detail"),
        tuple(
            (
                track_finding.video,
                track_finding.instance,
                "" if track_finding.time is None else f"{track_finding.time:g}",
                track_finding.kind,
                track_finding.detail,
            )
            for track_finding in undecided
        ),
    )
    noted = Counter(
        finding.kind for completion in completions for finding in completion.findings if not finding.needs_person
    )
    filled = sum(len(completion.filled) for completion in completions)
    parts = [
        count_of(len(completions), "video"),
        count_of(len(undecided), "open finding"),
        f"{count_of(filled, 'gap')} filled",
    ]
    if noted:
        parts.append("noted: " + ", ".join(f"{kind} {number}" for kind, number in sorted(noted.items())))
    return [*([table] if undecided else []), "; ".join(parts)]


def _built(built: FocusBuilt, out: Path) -> list[Table | str]:
    table = plain_table(
        "Questions",
        ("format", ">questions", ">commonest answer"),
        tuple((form, str(number), f"{100 * share:.0f} %") for form, (number, share) in built.formats.items()),
    )
    dropped = f"; {built.dropped} dropped so that no answer is too common" if built.dropped else ""
    return [table, f"{count_of(len(built.requests), 'question')} in {out}{dropped}"]
