"""`proctor build simulated`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.core import Option, PluginReport, Steps, count_of, shell_word


def build(
    out: Annotated[Path, Option("A new folder.")],
    steps: Steps,
    videos: Annotated[int, Option("How many videos.", low=1)] = 12,
    seconds: Annotated[float, Option("How long each of them is.", low=8)] = 24.0,
    questions: Annotated[int, Option("Questions per video.", low=1)] = 12,
    narrated: Annotated[bool, Option("With subtitles of what a narrator would say.")] = False,
    seed: Annotated[int, Option("The seed of every draw; recorded.")] = 0,
) -> PluginReport:
    """Render simulated videos with questions.

    The ground truth is exact: a unit test for models that watch videos.

    Example: proctor build simulated --out simulated --videos 40
    """
    from proctor.tasks.simulated import narrate_folder, simulate

    with steps("rendering", videos) as progress:
        simulate(out, videos=videos, seconds=seconds, seed=seed, questions_per_video=questions, progress=progress)
    if narrated:
        narrate_folder(out, seed)
    return PluginReport(
        {"videos": videos, "out": str(out)},
        (f"{count_of(videos, 'simulated video')} in {out}",),
        (f"Next: proctor run simulated --data {shell_word(out)} --media {shell_word(out)} --system classical-vision",),
    )
