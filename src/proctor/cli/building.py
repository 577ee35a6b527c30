"""`proctor build clinicalskillqa`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from proctor.cli.options import Seed
from proctor.cli.output import console, note
from proctor.cli.progress import show_steps

__all__ = ["build_clinicalskillqa"]


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
        Literal["CPR", "AED", "BMV"] | None,
        typer.Option("--scenario", help="What all videos show.", show_default=False),
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
    from proctor.build.keyframes import Plan, build_instances

    plan = Plan(tuple(frames or (4, 6)), per_video, seconds, apart, scenario, seed)
    with show_steps("looking for frames", 0) as progress:
        built = build_instances(videos, out, plan, cache=cache, progress=progress)
    console.print(
        f"{built.instances} instances of {built.videos} videos in {out}", markup=False, highlight=False
    )
    if built.too_alike:
        note(f"{built.too_alike} more had no frames that differ visibly.")
    if built.too_short:
        note(f"Shorter than a stretch, and left out: {', '.join(built.too_short)}")
    note(f"Next: proctor run clinicalskillqa --data {out} --system seriation --system random")
