"""`proctor demo`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.options import Seed
from proctor.cli.output import console, note, print_table
from proctor.cli.progress import show_steps
from proctor.cli.ranking import print_board
from proctor.cli.reporting import tell
from proctor.cli.running import run_plan
from proctor.core import interval, read_text, value

if TYPE_CHECKING:
    from proctor.runs import Leaderboard, Store

SYSTEMS = ("random", "majority", "longest-option", "shortest-option", "text-similarity", "classical-vision")
ORDERING_SYSTEMS = ("random", "as-given", "seriation", "classical-vision")
CONDITIONS = ("video", "text-only", "black", "shuffled")


def demo(
    out: Annotated[Path, typer.Option("--out", help="Where videos, answers and report go.")] = Path("demo"),
    videos: Annotated[int, typer.Option("--videos", min=2, help="Simulated procedures.")] = 12,
    seed: Seed = 0,
) -> None:
    """Run everything on simulated videos.

    Six systems under four conditions, key frames to be put in order, and two reports, without network or keys.

    Example: proctor demo --out demo
    """
    from proctor.api import thumbnails_of
    from proctor.audits.items import audit_items
    from proctor.core import BENCHMARKS
    from proctor.media import MediaLibrary, MediaSettings
    from proctor.metrics import code_scorers
    from proctor.reports import write_report
    from proctor.runs import Limits, PlanOptions, Store, leaderboard, plan, rank_runs
    from proctor.stats import RankingPlan
    from proctor.systems import SYSTEMS as KNOWN

    started = time.monotonic()
    folder = simulated_folder(out / "simulated", videos, seed)
    benchmark = BENCHMARKS.get("simulated").load(folder, folder, seed=seed)
    library = MediaLibrary(benchmark.media_root, MediaSettings(), out / "frames")
    store = Store(out / "demo.db")
    systems = [KNOWN.get(name)(seed=seed) for name in SYSTEMS]
    planned = plan(
        store, benchmark, systems, CONDITIONS, library, scorers=code_scorers(), options=PlanOptions(seed=seed)
    )
    run_plan(store, planned, Limits(concurrency=4))
    for condition in CONDITIONS:
        print_leaderboard(leaderboard(store, benchmark.name, condition=condition), benchmark.title)
    for ranking in rank_runs(store, benchmark.name, plan=RankingPlan(stability=500, draws=2000, seed=seed)):
        print_board(ranking)
    audit = audit_items(benchmark.items, seed=seed)
    report = out / "report.html"
    summary = write_report(store, benchmark.name, report, thumbnails=thumbnails_of(library), audit=audit)
    frames = _put_in_order(out, folder, store, seed)
    console.print(
        f"{report} and {frames} written; {time.monotonic() - started:.0f} s in all.", markup=False, highlight=False
    )
    tell(summary)
    note(f"Next: open {report}; the same on your own model: proctor run --help")


def _put_in_order(out: Path, videos: Path, store: Store, seed: int) -> Path:
    """Shuffled key frames of the same videos, put in order; the report that shows them as film strips."""
    from proctor.api import thumbnails_of
    from proctor.core import BENCHMARKS, COMMANDS
    from proctor.media import MediaLibrary, MediaSettings
    from proctor.metrics import code_scorers
    from proctor.reports import write_report
    from proctor.runs import Limits, PlanOptions, leaderboard, plan
    from proctor.systems import SYSTEMS as KNOWN

    task = out / "key-frames"
    if not (task / "about.json").is_file():
        COMMANDS.get("build.clinicalskillqa")(
            videos / "videos",
            task,
            show_steps,
            per_video=3,
            seconds=3.0,
            events=videos / "events",
            cache=out / "frames",
            seed=seed,
        )
    benchmark = BENCHMARKS.get("clinicalskillqa").load(task, task, seed=seed)
    library = MediaLibrary(benchmark.media_root, MediaSettings(), out / "frames")
    systems = [KNOWN.get(name)(seed=seed) for name in ORDERING_SYSTEMS]
    options = PlanOptions(seed=seed)
    planned = plan(store, benchmark, systems, ("video",), library, scorers=code_scorers(), options=options)
    run_plan(store, planned, Limits(concurrency=4))
    for metric in ("accuracy", "pairwise_accuracy"):
        print_leaderboard(leaderboard(store, benchmark.name, condition="video", metric=metric), benchmark.title)
    report = out / "key-frames.html"
    write_report(store, benchmark.name, report, thumbnails=thumbnails_of(library))
    return report


def simulated_folder(folder: Path, videos: int, seed: int) -> Path:
    """The simulated benchmark of a former demo, or a new one."""
    from proctor.core import COMMANDS, InputError

    manifest = folder / "manifest.json"
    if manifest.is_file():
        known = json.loads(read_text(manifest))
        found = (known.get("seed"), len(known.get("videos", ())))
        if found != (seed, videos):
            raise InputError(
                manifest,
                found=f"seed {found[0]}, {found[1]} videos",
                expected=f"seed {seed}, {videos} videos: take another --out",
            )
        note(f"{folder} is there already and is used as it is.")
        return folder
    COMMANDS.get("build.simulated")(folder, show_steps, videos=videos, seed=seed)
    return folder


def print_leaderboard(board: Leaderboard, title: str) -> None:
    """One condition's leaderboard."""
    print_table(
        f"{title}: {board.metric.label} under {board.condition}, {board.items} items",
        [">rank", "system", ">value", ">95 % interval", ">rank interval", ">leads", ""],
        [
            [
                "–" if row.rank is None else str(row.rank),
                row.system,
                value(board.metric, row.value),
                interval(board.metric, row.ci_low, row.ci_high),
                "–" if row.rank_low is None else f"{row.rank_low} to {row.rank_high}",
                "–" if row.p_best is None else f"{100 * row.p_best:.0f} %",
                "disqualified" if row.disqualified else "oracle baseline" if row.oracle_baseline else "",
            ]
            for row in board.rows
        ],
    )
    console.print()
