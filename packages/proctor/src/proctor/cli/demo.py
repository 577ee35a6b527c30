"""`proctor demo`: every step on simulated procedures."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from proctor.cli.output import print_blocks, print_line, print_note, show_asking, show_steps, watched
from proctor.core import COMMANDS, ConfigurationError, InputError, Option, extension, need_extra, read_text
from proctor.shell import Seed

SYSTEMS = ("random", "majority", "longest-option", "shortest-option", "text-similarity", "classical-vision")

ORDERING_SYSTEMS = ("random", "as-given", "seriation", "classical-vision")

CONDITIONS = ("video", "text-only", "black", "shuffled")


def demo(
    out: Annotated[Path | None, Option("Where everything goes. [default: demo; of a challenge challenge-demo]")] = None,
    challenge: Annotated[bool, Option("Run a whole simulated challenge instead.")] = False,
    videos: Annotated[int, Option("Simulated procedures.", low=2)] = 12,
    seed: Seed = 0,
) -> None:
    """Run everything on simulated videos.

    Six systems under four conditions, a task of ordering key frames, and two reports, without network or API keys.

    With --challenge, renders videos with questions, makes a challenge of them, submits the answers of four teams, scores
    them with a worker, and shows boards, leakage and a receipt. It needs no network, keys or containers.

    Example: proctor demo --out demo
    """
    if challenge:
        demonstrate = extension("demo.challenge", "proctor_challenge", "proctor demo --challenge")
        demonstrate(out or Path("challenge-demo"), videos, seed)
        return
    out = out or Path("demo")
    from proctor import api
    from proctor.cli.report import tell
    from proctor.cli.results import print_board

    started, store = time.monotonic(), out / "demo.db"
    folder, task = simulated_folder(out / "simulated", videos, seed), out / "key-frames"
    _ask("simulated", SYSTEMS, CONDITIONS, folder, out, seed)
    opened = api.open_store(store)
    for condition in CONDITIONS:
        print_blocks(*api.leaderboard(opened, "simulated", condition=condition).tables, apart=True)
    for ranking in api.rank(opened, "simulated", stability=500, seed=seed).boards:
        print_board(ranking)
    summary = api.report(opened, out / "report.html", "simulated", media=folder, seed=seed)
    if not (task / "about.json").is_file():
        cut: dict[str, Any] = {"per_video": 3, "seconds": 3.0, "events": folder / "events", "seed": seed}
        COMMANDS.get("build.clinicalskillqa")(folder / "videos", task, show_steps, cache=out / "frames", **cut)
    _ask("clinicalskillqa", _ordering_systems(), ("video",), task, out, seed)
    for metric in ("accuracy", "pairwise_accuracy"):
        print_blocks(*api.leaderboard(opened, "clinicalskillqa", metric).tables, apart=True)
    frames = api.report(opened, out / "key-frames.html", "clinicalskillqa", media=task, seed=seed)
    print_line(f"{summary.path} and {frames.path} written; {time.monotonic() - started:.0f} s in all.")
    tell(summary)
    print_note(f"Next: open {summary.path}; the same on your own model: proctor run --help")


def _ordering_systems() -> tuple[str, ...]:
    """The systems that order key frames; without the extra that one needs, a note names it."""
    try:
        need_extra("vision", "seriation", "cv2")
    except ConfigurationError as error:
        print_note(f"Left out: {error}")
        return tuple(name for name in ORDERING_SYSTEMS if name != "seriation")
    return ORDERING_SYSTEMS


def simulated_folder(folder: Path, videos: int, seed: int) -> Path:
    """The simulated benchmark of an earlier demo, or a new one."""
    manifest = folder / "manifest.json"
    if manifest.is_file():
        known = json.loads(read_text(manifest))
        found = (known.get("seed"), len(known.get("videos", ())))
        if found != (seed, videos):
            expected = f"seed {seed}, {videos} videos: take another --out"
            raise InputError(manifest, found=f"seed {found[0]}, {found[1]} videos", expected=expected)
        print_note(f"{folder} is there already and is used as it is.")
        return folder
    extension("new.simulated", "proctor", "proctor demo")(folder, show_steps, videos=videos, seed=seed)
    return folder


def _ask(benchmark: str, systems: Sequence[str], conditions: Sequence[str], data: Path, out: Path, seed: int) -> None:
    from proctor import shell

    where: Any = {"data": data, "media": data, "cache": out / "frames", "store": out / "demo.db"}
    arranged = shell.arrange(
        benchmark, systems, conditions=conditions, seed=seed, baselines=False, concurrency=4, **where
    )

    async def asking() -> None:
        prepared = await arranged.prepare()
        print_note(*prepared.notes)
        await watched(prepared.ask, show_asking(prepared.plan.to_ask))

    asyncio.run(asking())
