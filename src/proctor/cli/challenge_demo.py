"""`proctor challenge demo`, and what it shows: submissions from the shell, boards."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal

from proctor.api import Seed
from proctor.cli.challenge import ChallengeFolder, ChallengeStore, PhaseName
from proctor.cli.output import Output, OutputFormat, note, print_blocks, say, show
from proctor.cli.progress import show_steps
from proctor.cli.serve import check_extra
from proctor.core import COMMANDS, Option

Audience = Annotated[Literal["public", "participant", "organiser"], Option("Who sees them so.")]


def demo(
    out: Annotated[Path, Option("A new folder.", metavar="OUT", argument=True)] = Path("challenge-demo"),
    videos: Annotated[int, Option("Simulated procedures.", low=6)] = 12,
    seed: Seed = 0,
) -> None:
    """Run a whole simulated challenge.

    Videos are rendered and asked about, a challenge is made of them, four teams hand in files of answers, a worker
    marks them, and the boards, what they give away, and a receipt are shown. Without network, keys or containers.

    Example: proctor challenge demo challenge-demo
    """
    check_extra("challenge")
    from proctor.challenges import NewChallenge, demonstrate

    started, made = time.monotonic(), out / "procedures"
    COMMANDS.get("build.simulated")(made, show_steps, videos=videos, seconds=10.0, questions=1, seed=seed)
    named: dict[str, Any] = {"procedure": "simulated procedure", "questions": 20, "allow_findings": True, "seed": seed}
    COMMANDS.get("build.focus")([made / "tracks"], show_steps, out=out / "questions", **named)
    last = max(1, videos // 6)
    groups = {"training": last, "pre_evaluation": videos - 2 * last, "test": last}
    data = {"data": out / "questions", "media": made / "videos", "title": "Simulated procedures (not real)"}
    plan = NewChallenge("focus", track="procedure", seed=seed, **data, **groups)  # type: ignore[arg-type]
    shown = demonstrate(out / "challenge", plan, say)
    boards(shown.folder, shown.phase, out / "boards.html", "organiser")
    say(f"{shown.receipt} and {out / 'boards.html'} written; {time.monotonic() - started:.0f} s in all.")
    note(
        f"Next: proctor challenge status {shown.folder}; proctor challenge verify {shown.receipt} --key {shown.folder}",
        f"In the browser: proctor users add {shown.folder} me --role organiser; proctor serve {shown.folder} --same-user",
    )


def boards(
    folder: ChallengeFolder,
    phase: PhaseName,
    out: Annotated[Path | None, Option("Also write them as a page, complete in itself.")] = None,
    audience: Audience = "public",
    store: ChallengeStore = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show a phase's boards.

    As the public sees them, or another audience; with --out as a page that can be put anywhere.

    Example: proctor challenge boards sponges pre-evaluation --out boards.html
    """
    check_extra("challenge")
    from proctor.challenges import Challenge, board_tables, seen_boards, write_boards

    challenge = Challenge.open(folder, "organiser", store=store)
    try:
        content = seen_boards(challenge, phase, audience)
        if out is not None:
            write_boards(challenge, phase, out, audience)
    finally:
        challenge.close()
    tables = board_tables(content)
    if output is OutputFormat.TABLE:
        print_blocks(*tables, apart=True)
    else:
        show(output, [content] if output is OutputFormat.JSON else tables[0].records)


def submit(
    folder: ChallengeFolder,
    phase: PhaseName,
    file: Annotated[Path, Option("Answers, or an image's archive.", metavar="FILE", argument=True)],
    team: Annotated[str, Option("The team's name.")],
    store: ChallengeStore = None,
) -> None:
    """Hand in for a team.

    For what came by another way than the page: the same check, gate and quota hold.

    Example: proctor challenge submit sponges pre-evaluation answers.json --team "Hand Surgeons"
    """
    check_extra("challenge")
    from proctor.challenges import Challenge, submit_file

    challenge = Challenge.open(folder, "organiser", store=store)
    try:
        number, problems = submit_file(challenge, phase, team, file)
    finally:
        challenge.close()
    for line in problems:
        say(line)
    say(f"{team}#{number} was {'refused' if problems else 'queued'}")
