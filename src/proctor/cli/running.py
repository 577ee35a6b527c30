"""`proctor run`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.media import (
    CacheFolder,
    CacheSize,
    MediaAsOption,
    Overlay,
    OverlayOption,
    VideoAs,
    VideoAsOption,
    excerpts_of,
    size_in_bytes,
)
from proctor.cli.models import (
    BaseUrl,
    ModelOptions,
    PromptOption,
    Retries,
    Settings,
    Structured,
    Timeout,
    check_servers,
    closing,
)
from proctor.cli.options import AllItems, BenchmarkName, Data, Media, Seed, StoreUrl, TrackName, reader_of
from proctor.cli.output import console, note
from proctor.cli.progress import show_asking, stopping
from proctor.cli.results import DEFAULT_STORE

if TYPE_CHECKING:
    from proctor.core import Benchmark, Item
    from proctor.media import MediaLibrary
    from proctor.models import ModelClient
    from proctor.runs import Limits, Outcome, Plan, Store, Tally

__all__ = ["note_skipped", "run", "run_plan"]

FAILED_EXIT = 3
STOPPED_EXIT = 130  # as a shell says it of what Ctrl-C ended


def run(
    benchmark: BenchmarkName,
    data: Data,
    media: Media = None,
    media_as: MediaAsOption = None,
    track: TrackName = "",
    systems: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            help="A built-in system, may be repeated; or one method, with its --model.",
            show_default=False,
        ),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help="A model, provider:name; may be repeated.", show_default=False),
    ] = None,
    method_options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="An option of the method; may be repeated (proctor list methods).",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--as", help="Keep the results under this name.", show_default=False)
    ] = "",
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--condition", help="What may be seen; may be repeated. [default: video]", show_default=False
        ),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    base_url: BaseUrl = None,
    settings: Settings = None,
    prompt: PromptOption = "",
    fps: Annotated[float, typer.Option("--fps", min=0.001, help="Frames a second that a model gets.")] = 1.0,
    max_frames: Annotated[int, typer.Option("--max-frames", min=1, help="At most so many frames.")] = 64,
    max_side: Annotated[
        int, typer.Option("--max-side", min=16, help="Longest side of a frame in pixels.")
    ] = 512,
    overlay: OverlayOption = Overlay.NONE,
    video_as: VideoAsOption = VideoAs.FRAMES,
    cache: CacheFolder = None,
    cache_size: CacheSize = None,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out the items whose media are broken.")
    ] = False,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, help="Questions under way at once.")
    ] = 8,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            min=0.001,
            help="Seconds of model time a question; later is wrong. [default: the benchmark's, if any]",
            show_default=False,
        ),
    ] = None,
    timeout: Timeout = 180.0,
    retries: Retries = 6,
    structured: Structured = "auto",
    give_up_after: Annotated[
        int, typer.Option("--give-up-after", min=1, help="Stop after so many failures in a row.")
    ] = 50,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only the first items.", show_default=False)
    ] = None,
    all_items: AllItems = False,
    seed: Seed = 0,
) -> None:
    """Asks a benchmark's items of systems or models; run it again to go on where it stopped.

    Example: proctor run rexsonovqa --data rexsonovqa --media videos --model openai:gpt-5.2
    --condition video --condition text-only --settings temperature=0 max_tokens=512
    """
    from proctor.media import MediaLibrary, MediaSettings
    from proctor.metrics import code_scorers
    from proctor.runs import Limits, PlanOptions, Store, add_floor, chosen_items, plan

    chosen = tuple(conditions or ["video"])
    asked = ModelOptions(base_url, tuple(settings or ()), timeout, retries, structured)
    built = asked.systems(
        systems or [],
        models or [],
        name=name,
        benchmark=benchmark,
        prompt=prompt,
        seed=seed,
        video_as=video_as.value,
        options=method_options or [],
    )
    reader = reader_of(benchmark, track)
    loaded = reader.load(data, media, seed=seed)
    frames = MediaSettings(fps=fps, max_frames=max_frames, max_side=max_side, overlay=overlay.value)
    library = MediaLibrary(
        loaded.media_root,
        frames,
        cache,
        cache_bytes=size_in_bytes(cache_size),
        excerpts=excerpts_of(loaded.excerpts, media_as),
    )
    budget_s = loaded.budget_s if budget is None else budget
    options = PlanOptions(
        seed=seed, all_items=all_items, limit=limit, budget_s=budget_s, skip_broken=skip_broken
    )
    if not skip_broken:
        need_media(loaded, chosen_items(loaded, options), library, chosen, data)
    check_servers(asked.opened)
    opened = Store(store)
    scorers = code_scorers()
    planned = plan(opened, loaded, built, chosen, library, scorers=scorers, options=options)
    asyncio.run(add_floor(opened, loaded, scorers, seed=seed))
    note_skipped(loaded)
    outcome = run_plan(opened, planned, Limits(concurrency, budget_s, give_up_after), asked.opened)
    report_outcome(planned, outcome, opened)


def run_plan(store: Store, planned: Plan, limits: Limits, clients: Sequence[ModelClient] = ()) -> Outcome:
    """Asks with a progress bar and a clean stop on Ctrl-C; closes the clients at the end."""
    from proctor.runs import execute

    for problem in planned.problems:
        note(str(problem))
    if planned.left_out:
        note(f"{planned.left_out} items are left out: their media are broken or missing.")
    for system, count in planned.unsupported.items():
        note(
            f"{system} does not answer {count} of the items (their format is not its own): they are not asked."
        )
    if planned.settled:
        note(f"{planned.settled} answers are there already; {planned.to_ask} to ask.")

    async def asking() -> Outcome:
        async with closing(clients):
            with stopping() as stop, show_asking(planned.to_ask) as update:
                return await execute(store, planned, limits, stop=stop, on_change=update)

    return asyncio.run(asking())


def note_skipped(benchmark: Benchmark) -> None:
    """Says which baselines do not stand in the tables, and why."""
    from proctor.runs import skipped_floor

    skipped = skipped_floor(benchmark)
    if skipped:
        named = ", ".join(f"{name} ({reason})" for name, reason in skipped.items())
        note(f"Baselines skipped: {named}.")


def need_media(
    benchmark: Benchmark, items: Sequence[Item], library: MediaLibrary, conditions: Sequence[str], data: Path
) -> None:
    """Says which media are missing, and how to get them, before anything is asked."""
    from proctor.benchmarks import BENCHMARKS
    from proctor.core import InputError
    from proctor.media import CONDITIONS

    if not any(CONDITIONS.get(condition).sees for condition in conditions):
        return
    missing = library.missing(items)
    if not missing:
        return
    note(BENCHMARKS.get(benchmark.name).media_help(data, missing))
    needed = {medium.source for item in items for medium in item.media}
    raise InputError(
        library.root or "--media",
        found=f"{len(needed) - len(missing)} of {len(needed)} media files, missing {', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}",
        expected="all of them (how to get them: above), or --condition text-only",
    )


def _note_wrong(tally: Tally) -> None:
    """What a system gets wrong whatever the question, with one example of each: best seen while it costs money."""
    from proctor.core import Status
    from proctor.reports.words import shorten

    for count, what, example in (
        (tally.unreadable, "can't be read", tally.unreadable_example),
        (tally.by_status[Status.ERROR], "are errors of the system", tally.error_example),
    ):
        if count:
            note(f"{count} of {tally.done} {what} and count as wrong, for example {shorten(example, 200)}")


def report_outcome(planned: Plan, outcome: Outcome, store: Store) -> None:
    """The last lines of a run, and its exit code."""
    tally = outcome.tally
    parts = [f"{count} {status.value}" for status, count in tally.by_status.items() if count]
    console.print(
        f"Asked {tally.done}: {', '.join(parts) or 'nothing left to ask'}; in {store.shown}",
        markup=False,
        highlight=False,
    )
    _note_wrong(tally)
    if tally.stopped:
        note(tally.stopped)
    if outcome.remaining:
        note(f"{outcome.remaining} items are still to be asked: run the same command again.")
    if outcome.failed:
        note(
            f"{outcome.failed} answers failed ({tally.last_reason or 'see the store'}): run the same command again to ask them again."
        )
    if outcome.failed:
        raise typer.Exit(FAILED_EXIT)
    if outcome.remaining:
        raise typer.Exit(STOPPED_EXIT)
    names = {run.benchmark for run in planned.runs}
    note(f"Next: proctor results {' '.join(sorted(names))} --store {store.shown}")
