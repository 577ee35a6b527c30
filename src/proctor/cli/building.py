"""`proctor build`: key frames to be put in order, questions from tracks, and tracks from one tool to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.options import Seed, TrackName
from proctor.cli.output import console, note, print_json, print_table
from proctor.cli.progress import show_steps

if TYPE_CHECKING:
    from proctor.build.tracks import Completion, FocusBuilt, Given

__all__ = ["build_clinicalskillqa", "build_convert", "build_focus"]


class FindingsFormat(StrEnum):
    """How findings are printed."""

    TABLE = "table"
    JSON = "json"


class TracksFormat(StrEnum):
    """What tracks are written as."""

    CVAT = "cvat"
    COCO = "coco"
    JSON = "json"


Tracks = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRACKS",
        help="CVAT for video 1.1, COCO or Proctor's own files, or folders of them.",
        show_default=False,
    ),
]
Fps = Annotated[
    float | None,
    typer.Option("--fps", help="Frames per second, where a file does not say (CVAT).", show_default=False),
]
Procedure = Annotated[
    str,
    typer.Option("--procedure", help="The kind of procedure, where a file does not say.", show_default=False),
]


def build_clinicalskillqa(
    videos: Annotated[Path, typer.Option("--videos", help="The folder with the videos.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    frames: Annotated[
        list[int] | None,
        typer.Option(
            "--frames",
            min=2,
            max=26,
            help="Frames of an instance; may be repeated. [default: 4 and 6]",
            show_default=False,
        ),
    ] = None,
    per_video: Annotated[int, typer.Option("--per-video", min=1, help="Stretches of each video.")] = 4,
    seconds: Annotated[float, typer.Option("--seconds", min=0.2, help="How long a stretch is.")] = 4.0,
    apart: Annotated[
        float,
        typer.Option("--apart", min=0, max=0.5, help="Share of the look's bits in which frames differ."),
    ] = 0.02,
    scenario: Annotated[
        str,
        typer.Option(
            "--scenario",
            metavar="CPR|AED|BMV|folders|FILE.json",
            help="What all videos show, or each: by its folder, or by a file.",
            show_default=False,
        ),
    ] = "",
    events: Annotated[
        Path | None,
        typer.Option(
            "--events",
            help="A folder of event logs, NAME.json each: the references then say why.",
            show_default=False,
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", envvar="PROCTOR_CACHE", help="Where frames are kept.", show_default=False),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Instances to be put in order: shuffled key frames of videos, with the right orders beside them.

    Example: proctor build clinicalskillqa --videos videos --out task --per-video 10 --seconds 3
    """
    from proctor.build.keyframes import Plan, build_instances, scenarios_of

    each = scenario == "folders" or scenario.endswith(".json")
    every: Any = None if each else scenario or None
    plan = Plan(tuple(frames or (4, 6)), per_video, seconds, apart, every, seed)
    scenarios = scenarios_of(videos, None if scenario == "folders" else Path(scenario)) if each else None
    with show_steps("looking for frames", 0) as progress:
        built = build_instances(
            videos, out, plan, events=events, cache=cache, scenarios=scenarios, progress=progress
        )
    console.print(
        f"{built.instances} instances of {built.videos} videos in {out}", markup=False, highlight=False
    )
    if built.too_alike:
        note(f"{built.too_alike} more had no frames that differ visibly.")
    if built.too_short:
        note(f"Shorter than a stretch, and left out: {', '.join(built.too_short)}")
    note(f"Next: proctor run clinicalskillqa --data {out} --system seriation --system random")


def build_focus(
    tracks: Tracks,
    out: Annotated[
        Path | None, typer.Option("--out", help="A new folder for the benchmark.", show_default=False)
    ] = None,
    questions: Annotated[int, typer.Option("--questions", min=1, help="Questions per video.")] = 40,
    times: Annotated[
        int, typer.Option("--times", min=0, help="At how many times besides its end a video is asked about.")
    ] = 4,
    fill: Annotated[
        int, typer.Option("--fill", min=0, max=60, help="Fill gaps of up to so many seconds in a track.")
    ] = 2,
    fps: Fps = None,
    procedure: Procedure = "",
    in_distribution: Annotated[
        list[str] | None,
        typer.Option(
            "--in-distribution",
            help="A procedure seen in training, by its whole name; may be repeated. [default: the challenge's]",
            show_default=False,
        ),
    ] = None,
    unseen: Annotated[
        list[str] | None,
        typer.Option(
            "--unseen-question",
            metavar="RULE",
            help="A kind of question not seen in training; may be repeated.",
            show_default=False,
        ),
    ] = None,
    track: TrackName = "procedure",
    segment_s: Annotated[
        int, typer.Option("--segment-seconds", min=5, max=300, help="How long a segment is.")
    ] = 60,
    even: Annotated[
        bool,
        typer.Option(
            "--even-capabilities/--any-capabilities", help="Ask each capability group equally often."
        ),
    ] = True,
    check_only: Annotated[
        bool, typer.Option("--check-only", help="Check the tracks and write nothing.")
    ] = False,
    allow_findings: Annotated[
        bool, typer.Option("--allow-findings", help="Go on where a person should decide first.")
    ] = False,
    output: Annotated[
        FindingsFormat, typer.Option("--format", help="For people or for programs.")
    ] = FindingsFormat.TABLE,
    seed: Seed = 0,
) -> None:
    """Questions of FOCUS from annotated videos: tracks are checked, short gaps filled, questions balanced.

    Exit code 1, and nothing written, where a finding needs a person.

    Example: proctor build focus tracks.xml --out focus --fps 25 --procedure "sigmoid resection"
    """
    from proctor.build.tracks import SEEN_IN_TRAINING, FocusPlan, Given, files_of
    from proctor.build.tracks import build_focus as build

    if out is None and not check_only:
        raise typer.BadParameter("name a new folder, or --check-only", param_hint="--out")
    seen = tuple(in_distribution or SEEN_IN_TRAINING)
    plan = FocusPlan(questions, times, seen, tuple(unseen or ()), even, seed, track, segment_s)
    completions = _completed(tracks, Given(fps, procedure), fill)
    undecided = sum(len(one.open) for one in completions)
    stop = check_only or (undecided > 0 and not allow_findings)
    built = None
    if out is not None and not stop:
        with show_steps("choosing questions", questions) as progress:
            built = build(completions, out, plan, sources=files_of(tracks), progress=progress)
    _tell(completions, built, out, output, track)
    if stop and undecided:
        if not check_only:
            note(
                "Nothing was written: decide what is listed (proctor build convert … --to cvat), or --allow-findings."
            )
        raise typer.Exit(1)


def build_convert(
    tracks: Tracks,
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    to: Annotated[TracksFormat, typer.Option("--to", help="What to write.", show_default=False)],
    fill: Annotated[
        int, typer.Option("--fill", min=0, max=60, help="Fill gaps of up to so many seconds in a track.")
    ] = 0,
    fps: Fps = None,
    procedure: Procedure = "",
) -> None:
    """Tracks from one tool to another: CVAT for video 1.1, COCO, Proctor's own JSON.

    Example: proctor build convert simulated/tracks --to cvat --out for-cvat
    """
    from proctor.build.tracks import Given, write_folder

    completions = _completed(tracks, Given(fps, procedure), fill)
    annotations = [one.annotation for one in completions]
    files = write_folder(annotations, to.value, out)
    filled = sum(len(one.filled) for one in completions)
    said = f"{_number(len(annotations), 'video')} in {_number(len(files), 'file')} in {out}"
    if filled:
        said += f"; {_number(filled, 'gap')} filled"
    console.print(said, markup=False, highlight=False)


def _completed(tracks: Sequence[Path], given: Given, fill: int) -> list[Completion]:
    from proctor.build.tracks import complete, files_of, read_annotations

    files = files_of(tracks)
    with show_steps("reading tracks", len(files)) as progress:
        annotations = read_annotations(files, given, progress=progress)
    with show_steps("checking tracks", len(annotations)) as progress:
        completions = []
        for number, one in enumerate(annotations, start=1):
            completions.append(complete(one, fill))
            progress(number, len(annotations))
    return completions


def _tell(
    completions: Sequence[Completion],
    built: FocusBuilt | None,
    out: Path | None,
    output: FindingsFormat,
    track: str,
) -> None:
    if output is FindingsFormat.JSON:
        print_json(_findings_json(completions, built))
        return
    _print_findings(completions)
    if built is not None and out is not None:
        _print_built(built, out, track)


def _findings_json(completions: Sequence[Completion], built: FocusBuilt | None) -> dict[str, object]:
    findings = [asdict(finding) for one in completions for finding in one.findings]
    return {
        "videos": len(completions),
        "undecided": sum(len(one.open) for one in completions),
        "findings": findings,
        "filled": [asdict(filled) for one in completions for filled in one.filled],
        "questions": None if built is None else len(built.requests),
        "formats": None
        if built is None
        else {
            form: {"questions": number, "commonest_answer": share}
            for form, (number, share) in built.formats.items()
        },
    }


def _print_findings(completions: Sequence[Completion]) -> None:
    """What a person has to decide, line by line; what is only to be known, counted."""
    undecided = [finding for one in completions for finding in one.open]
    if undecided:
        print_table(
            "To be decided by a person",
            ["video", "instance", ">second", "finding", "detail"],
            [
                [one.video, one.instance, "" if one.time is None else f"{one.time:g}", one.kind, one.detail]
                for one in undecided
            ],
        )
    noted = Counter(
        finding.kind for one in completions for finding in one.findings if not finding.needs_person
    )
    filled = sum(len(one.filled) for one in completions)
    said = [
        _number(len(completions), "video"),
        f"{len(undecided)} to be decided",
        f"{_number(filled, 'gap')} filled",
    ]
    if noted:
        said.append("noted: " + ", ".join(f"{kind} {number}" for kind, number in sorted(noted.items())))
    console.print("; ".join(said), markup=False, highlight=False)


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _print_built(built: FocusBuilt, out: Path, track: str) -> None:
    print_table(
        "Questions",
        ["format", ">questions", ">commonest answer"],
        [[form, str(number), f"{100 * share:.0f} %"] for form, (number, share) in built.formats.items()],
    )
    dropped = f"; {built.dropped} dropped so that no answer is too common" if built.dropped else ""
    console.print(f"{len(built.requests)} questions in {out}{dropped}", markup=False, highlight=False)
    named = "" if track == "procedure" else f" --track {track}"
    note(
        f"Next: proctor audit-items focus --data {out}{named}; proctor run focus --data {out}{named} --media VIDEOS"
    )
