"""`proctor demo` and `proctor build`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.options import Seed
from proctor.cli.output import console, interval, note, print_table, share
from proctor.cli.progress import show_steps
from proctor.cli.ranking import print_board
from proctor.cli.reporting import thumbnails_of
from proctor.cli.running import run_plan
from proctor.core.files import read_text

if TYPE_CHECKING:
    from proctor.runs import Leaderboard, Store

__all__ = ["build_simulated", "demo", "print_leaderboard"]

SYSTEMS = ("random", "majority", "longest-option", "shortest-option", "text-similarity", "classical-vision")
ORDERING_SYSTEMS = ("random", "as-given", "seriation", "classical-vision")
CONDITIONS = ("video", "text-only", "black", "shuffled")


def demo(
    out: Annotated[Path, typer.Option("--out", help="Where videos, answers and report go.")] = Path("demo"),
    videos: Annotated[int, typer.Option("--videos", min=2, help="Simulated procedures.")] = 12,
    seed: Seed = 0,
) -> None:
    """The whole way on simulated procedures, without network or keys: six systems, four conditions, key frames
    to be put in order, and two reports.

    Example: proctor demo --out demo
    """
    from proctor.benchmarks import BENCHMARKS
    from proctor.build.audit import audit_items
    from proctor.media import MediaLibrary, MediaSettings
    from proctor.metrics import code_scorers
    from proctor.reports import write_report
    from proctor.runs import Limits, PlanOptions, Store, leaderboard, plan, rank_runs
    from proctor.systems import SYSTEMS as KNOWN

    started = time.monotonic()
    folder = simulated_folder(out / "simulated", videos, seed)
    benchmark = BENCHMARKS.get("simulated").load(folder, folder, seed=seed)
    library = MediaLibrary(benchmark.media_root, MediaSettings(), out / "frames")
    store = Store(out / "demo.db")
    systems = [KNOWN.get(name)(seed=seed) for name in SYSTEMS]
    planned = plan(
        store,
        benchmark,
        systems,
        CONDITIONS,
        library,
        scorers=code_scorers(),
        options=PlanOptions(seed=seed),
    )
    run_plan(store, planned, Limits(concurrency=4))
    for condition in CONDITIONS:
        print_leaderboard(leaderboard(store, benchmark.name, condition=condition), benchmark.title)
    for ranking in rank_runs(store, benchmark.name, stability=500, draws=2000, seed=seed):
        print_board(ranking)
    audit = audit_items(benchmark.items, seed=seed)
    report = out / "report.html"
    write_report(store, benchmark.name, report, thumbnails=thumbnails_of(library), audit=audit)
    frames = _put_in_order(out, folder, store, seed)
    console.print(
        f"{report} and {frames} written; {time.monotonic() - started:.0f} s in all.",
        markup=False,
        highlight=False,
    )
    note(f"Next: open {report}; the same on your own model: proctor run --help")


def _put_in_order(out: Path, videos: Path, store: Store, seed: int) -> Path:
    """Shuffled key frames of the same videos, put in order; the report that shows them as film strips."""
    from proctor.benchmarks import BENCHMARKS
    from proctor.build.keyframes import Plan, build_instances
    from proctor.media import MediaLibrary, MediaSettings
    from proctor.metrics import code_scorers
    from proctor.reports import write_report
    from proctor.runs import Limits, PlanOptions, leaderboard, plan
    from proctor.systems import SYSTEMS as KNOWN

    task = out / "key-frames"
    if not (task / "about.json").is_file():
        drawn = Plan(per_video=3, seconds=3.0, seed=seed)
        with show_steps("looking for key frames", 0) as progress:
            build_instances(
                videos / "videos",
                task,
                drawn,
                events=videos / "events",
                cache=out / "frames",
                progress=progress,
            )
    benchmark = BENCHMARKS.get("clinicalskillqa").load(task, task, seed=seed)
    library = MediaLibrary(benchmark.media_root, MediaSettings(), out / "frames")
    systems = [KNOWN.get(name)(seed=seed) for name in ORDERING_SYSTEMS]
    options = PlanOptions(seed=seed)
    planned = plan(store, benchmark, systems, ("video",), library, scorers=code_scorers(), options=options)
    run_plan(store, planned, Limits(concurrency=4))
    for metric in ("accuracy", "pairwise_accuracy"):
        print_leaderboard(
            leaderboard(store, benchmark.name, condition="video", metric=metric), benchmark.title
        )
    report = out / "key-frames.html"
    write_report(store, benchmark.name, report, thumbnails=thumbnails_of(library))
    return report


def build_simulated(
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    videos: Annotated[int, typer.Option("--videos", min=1, help="How many videos.")] = 12,
    seconds: Annotated[float, typer.Option("--seconds", min=8, help="How long each of them is.")] = 24.0,
    questions: Annotated[int, typer.Option("--questions", min=1, help="Questions per video.")] = 12,
    seed: Seed = 0,
) -> None:
    """Simulated procedures with exact ground truth: a unit test for models that watch videos.

    Example: proctor build simulated --out simulated --videos 40
    """
    from proctor.build.simulate import simulate

    with show_steps("rendering", videos) as progress:
        simulate(
            out, videos=videos, seconds=seconds, seed=seed, questions_per_video=questions, progress=progress
        )
    console.print(f"{videos} simulated videos in {out}", markup=False, highlight=False)
    note(f"Next: proctor run simulated --data {out} --media {out} --system classical-vision")


def simulated_folder(folder: Path, videos: int, seed: int) -> Path:
    """The simulated benchmark of a former demo, or a new one."""
    from proctor.build.simulate import simulate
    from proctor.core import InputError

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
    with show_steps("rendering", videos) as progress:
        return simulate(folder, videos=videos, seed=seed, progress=progress)


def print_leaderboard(board: Leaderboard, title: str) -> None:
    """One condition's leaderboard."""
    print_table(
        f"{title}: {board.metric.label} under {board.condition}, {board.items} items",
        [">rank", "system", ">value", ">95 % interval", ">rank interval", ">leads", ""],
        [
            [
                "–" if row.rank is None else str(row.rank),
                row.system,
                share(board.metric, row.value),
                interval(board.metric, row.ci_low, row.ci_high),
                "–" if row.rank_low is None else f"{row.rank_low} to {row.rank_high}",
                "–" if row.p_best is None else f"{100 * row.p_best:.0f} %",
                "disqualified" if row.disqualified else "told the key" if row.told_the_key else "",
            ]
            for row in board.rows
        ],
    )
    console.print()
