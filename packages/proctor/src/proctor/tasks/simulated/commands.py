"""`proctor new simulated`."""

from __future__ import annotations

from pathlib import Path

from proctor.core import PluginReport, Steps, count_of, shell_word


def new(
    out: Path,
    steps: Steps,
    *,
    videos: int = 12,
    seconds: float = 24.0,
    questions: int = 12,
    narrated: bool = False,
    seed: int = 0,
) -> PluginReport:
    """Render simulated videos with questions into a new folder (see `simulate`), if `narrated` with subtitles."""
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
