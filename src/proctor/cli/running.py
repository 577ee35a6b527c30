"""`proctor run`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.media import (
    CacheFolder,
    CacheSize,
    MediaAsOption,
    Overlay,
    OverlayOption,
    VideoAs,
    VideoAsOption,
    size_in_bytes,
)
from proctor.cli.models import BaseUrl, PromptOption, Retries, Settings, Structured, Timeout
from proctor.cli.options import (
    AllItems,
    BenchmarkName,
    Data,
    Media,
    Seed,
    StoreUrl,
    TrackName,
    condition_names,
    system_names,
)
from proctor.cli.output import console, note, print_table
from proctor.cli.progress import show_asking, stopping
from proctor.cli.results import DEFAULT_STORE

if TYPE_CHECKING:
    from proctor.api import Evaluation
    from proctor.runs import Limits, Outcome, Plan, Store, Tally

FAILED_EXIT = 3
_CAUSES = 5
STOPPED_EXIT = 130  # as a shell says it of what Ctrl-C ended


def run(
    benchmark: BenchmarkName,
    data: Data = None,
    media: Media = None,
    media_as: MediaAsOption = None,
    track: TrackName = "",
    systems: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            help="A system, or file.py:function; repeatable.",
            show_default=False,
            autocompletion=system_names,
        ),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--model", help="A model, provider:name; may be repeated.", show_default=False)
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
    name: Annotated[str, typer.Option("--name", help="Keep the results under this name.", show_default=False)] = "",
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--condition",
            help="What may be seen; may be repeated. [default: video]",
            show_default=False,
            autocompletion=condition_names,
        ),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    base_url: BaseUrl = None,
    settings: Settings = None,
    prompt: PromptOption = "",
    fps: Annotated[
        float, typer.Option("--fps", min=0.001, help="Frames a second that a model gets.", rich_help_panel="Media")
    ] = 1.0,
    max_frames: Annotated[
        int, typer.Option("--max-frames", min=1, help="At most this many frames.", rich_help_panel="Media")
    ] = 64,
    max_side: Annotated[
        int, typer.Option("--max-side", min=16, help="Longest side of a frame in pixels.", rich_help_panel="Media")
    ] = 512,
    overlay: OverlayOption = Overlay.NONE,
    video_as: VideoAsOption = VideoAs.FRAMES,
    cache: CacheFolder = None,
    cache_size: CacheSize = None,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out the items whose media are broken.", rich_help_panel="Media")
    ] = False,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, help="Questions under way at once.", rich_help_panel="Limits")
    ] = 8,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            min=0.001,
            help="Seconds of model time a question; later is wrong. [default: the benchmark's, if any]",
            show_default=False,
            rich_help_panel="Limits",
        ),
    ] = None,
    timeout: Timeout = 180.0,
    retries: Retries = 6,
    structured: Structured = "auto",
    give_up_after: Annotated[
        int,
        typer.Option(
            "--give-up-after", min=1, help="Stop after this many failures in a row.", rich_help_panel="Limits"
        ),
    ] = 50,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="Only the first items.", show_default=False, rich_help_panel="Limits"),
    ] = None,
    all_items: AllItems = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be asked and sent; ask nothing.")] = False,
    seed: Seed = 0,
) -> None:
    """Ask systems or models a benchmark's items.

    Run the same command again to continue where it stopped.

    Example: proctor run rexsonovqa --data rexsonovqa --media videos --model openai:gpt-5.2
    --condition video --condition text-only --settings temperature=0 max_tokens=512
    """
    from proctor.api import RunOptions
    from proctor.models import parse_settings

    for given, option in ((systems or [], "--system"), (models or [], "--model")):
        twice = next((one for one in given if given.count(one) > 1), None)
        if twice is not None:
            raise typer.BadParameter(f"{twice} is named twice: it is asked once", param_hint=option)
    if not systems and not models:
        raise typer.BadParameter("name what answers with --system or --model")
    options = RunOptions(
        track=track,
        limit=limit,
        all_items=all_items,
        seed=seed,
        budget_s=budget,
        concurrency=concurrency,
        give_up_after=give_up_after,
        base_url=base_url,
        settings=parse_settings(settings or ()),
        timeout_s=timeout,
        retries=retries,
        structured=structured,  # type: ignore[typeddict-item]  # checked with the model
        prompt=prompt,
        options=parse_settings(method_options or (), what="--option"),
        fps=fps,
        max_frames=max_frames,
        max_side=max_side,
        overlay=overlay.value,
        video_as=video_as.value,
        media_as=None if media_as is None else media_as.value,
        cache=cache,
        cache_bytes=size_in_bytes(cache_size),
        skip_broken=skip_broken,
    )
    asked: dict[str, Any] = {
        "model": models,
        "conditions": conditions or "video",
        "name": name,
        "data": data,
        "media": media,
        "store": store,
        **options,
    }
    if dry_run:
        _show_estimate(benchmark, systems, asked)
        return
    report_outcome(asyncio.run(_asked(benchmark, systems, **asked)))


def _show_estimate(benchmark: str, systems: list[str] | None, asked: dict[str, Any]) -> None:
    from proctor.api import estimate_run
    from proctor.runs import PICTURE_TOKENS

    found = asyncio.run(estimate_run(benchmark, systems, **asked))
    print_table(
        f"{benchmark}: what would be asked",
        ["system", "condition", ">already", ">to ask", ">pictures", ">input tokens"],
        [
            [
                *(one.system, one.condition, str(one.already), str(one.items)),
                *(_about(one.pictures), _about(one.tokens)),
            ]
            for one in found
        ],
    )
    note(
        f"About {PICTURE_TOKENS} tokens a picture (85 to 800, by provider) and 4 letters a token; of methods one call an item. "
        "Retries and output come on top. Nothing was asked."
    )


def _about(count: int) -> str:
    return f"{count:,}".replace(",", " ")


async def _asked(*what: Any, **options: Any) -> Evaluation:
    """`proctor.run`, with its notes before anything is asked, a progress bar, and a clean stop on Ctrl-C."""
    from proctor.api import prepare_run

    prepared = await prepare_run(*what, **options)
    for line in prepared.notes:
        note(line)
    with stopping() as stop, show_asking(prepared.plan.to_ask) as update:
        return await prepared.ask(stop=stop, on_change=update)


def run_plan(store: Store, planned: Plan, limits: Limits) -> Outcome:
    """Asks with a progress bar and a clean stop on Ctrl-C."""
    from proctor.api import plan_notes
    from proctor.runs import execute

    for line in plan_notes(planned):
        note(line)

    async def asking() -> Outcome:
        with stopping() as stop, show_asking(planned.to_ask) as update:
            return await execute(store, planned, limits, stop=stop, on_change=update)

    return asyncio.run(asking())


def _note_wrong(tally: Tally) -> None:
    """What a system gets wrong whatever the question, with one example of each: best seen while it costs money."""
    from proctor.core import Status, shorten

    for count, what, example in (
        (tally.unreadable, "can't be read", tally.unreadable_example),
        (tally.by_status[Status.ERROR], "are errors of the system", tally.error_example),
    ):
        if count:
            note(f"{count} of {tally.done} {what} and count as wrong, for example {shorten(example, 200)}")


def causes(tally: Tally) -> list[str]:
    """What went wrong, by cause, the most frequent first; nothing where there is one cause alone."""
    if len(tally.causes) < 2:
        return []
    ordered = sorted(tally.causes.items(), key=lambda pair: (-pair[1], pair[0]))
    more = len(ordered) - _CAUSES
    return [f"{count} × {cause}" for cause, count in ordered[:_CAUSES]] + (
        [f"and {more} more causes (proctor show, proctor export)"] if more > 0 else []
    )


def report_outcome(made: Evaluation) -> None:
    """The last lines of a run, and its exit code."""
    outcome = made.outcome
    if outcome is None:
        raise ValueError("an evaluation that asked nobody")
    tally = outcome.tally
    for line in made.done:
        console.print(line, markup=False, highlight=False)
    _note_wrong(tally)
    for line in causes(tally):
        note(line)
    if tally.stopped:
        note(tally.stopped)
    if outcome.remaining:
        note(f"{outcome.remaining} items are still to be asked: run the same command again.")
    if outcome.failed:
        why = "see above" if len(tally.causes) > 1 else tally.last_reason or "see the store"
        note(f"{outcome.failed} answers failed ({why}): run the same command again to ask them again.")
    if outcome.failed:
        raise typer.Exit(FAILED_EXIT)
    if outcome.remaining:
        raise typer.Exit(STOPPED_EXIT)
    note(f"Next: proctor results {made.benchmark} --store {made.store.shown}")
