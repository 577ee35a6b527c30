"""`proctor run` and `proctor import`: answers come into a store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from proctor.api import BenchmarkSource, ImportOptions, RunOptions, system_names
from proctor.cli.output import note, print_blocks, say
from proctor.cli.progress import show_asking, stopping
from proctor.core import Option, count_of

if TYPE_CHECKING:
    from proctor.api import Evaluation, PreparedRun
    from proctor.runs import RunEstimate, Tally

FAILED_EXIT = 3
STOPPED_EXIT = 130  # as a shell says it of what Ctrl-C ended
_CAUSES = 5

T = TypeVar("T")


def run(
    benchmark: BenchmarkSource,
    options: RunOptions,
    systems: Annotated[
        list[str] | None, Option("A system, or file.py:function; repeatable.", "--system", names=system_names)
    ] = None,
    workers: Annotated[int, Option("Ask from this many processes, which share the store.", low=1, high=256)] = 1,
    on: Annotated[
        str,
        Option(
            "Where the workers are: at the store (store), on SLURM (slurm prints a script), or on Ray (ray, ray:ADDRESS).",
            metavar="WHERE",
        ),
    ] = "",
    dry_run: Annotated[bool, Option("Say what would be asked and sent; ask nothing.")] = False,
) -> None:
    """Ask systems or models a benchmark's items.

    Run the same command again to continue where it stopped; with --share, on several machines at once.

    Example: proctor run rexsonovqa --data rexsonovqa --media videos --model openai:gpt-5.2
    --condition video --condition text-only --settings temperature=0 max_tokens=512
    """
    from proctor import api

    place, _, address = on.partition(":")
    if on:
        api.check_place(place, address)
        options["share"] = True
    arranged = api.arrange(benchmark, systems, **options)
    if dry_run:
        note(*arranged.benchmark.reading)
        _show_estimate(arranged.benchmark.name, asyncio.run(arranged.estimate()))
        return

    async def asking() -> Evaluation | None:
        prepared = await arranged.prepare()
        note(*prepared.notes)
        if on:
            api.check_travels(prepared, local=on == "ray")
        if place == "ray":
            from proctor.cli.workers import ask_on_ray

            return await ask_on_ray(prepared, workers, address)
        if on:
            say(api.slurm_job(prepared, workers).rstrip() if place == "slurm" else _waiting(prepared))
            return None
        if workers > 1:
            from proctor.cli.workers import ask_with_workers

            return await ask_with_workers(prepared, workers)
        return await watched(prepared.ask, show_asking(prepared.plan.to_ask))

    made = asyncio.run(asking())
    if made is not None:
        report_outcome(made)


def _waiting(prepared: PreparedRun) -> str:
    return f"{count_of(prepared.plan.to_ask, 'question')} waiting for workers: proctor worker --store {prepared.store.shown}"


async def watched(ask: Callable[[asyncio.Event, Any], Awaitable[T]], bar: AbstractContextManager[Any]) -> T:
    """Asks with a progress bar and a clean stop on Ctrl-C."""
    with stopping() as stop, bar as update:
        return await ask(stop, update)


def report_outcome(made: Evaluation) -> None:
    """The last lines of a run, and its exit code."""
    outcome = made.outcome
    if outcome is None:
        raise ValueError("an evaluation that asked nobody")
    tally = outcome.tally
    for line in made.done:
        say(line)
    _note_wrong(tally)
    note(*causes(tally), *([tally.stopped] if tally.stopped else []))
    remaining = outcome.remaining - tally.pending
    if tally.pending:
        note("Run the same command again when the replies are there.")
    if remaining:
        note(f"{count_of(remaining, 'item')} still to be asked: run the same command again.")
    if outcome.failed:
        why = "see above" if len(tally.causes) > 1 else tally.last_reason or "see the store"
        note(f"{count_of(outcome.failed, 'answer')} failed ({why}): run the same command again to ask them again.")
        raise typer.Exit(FAILED_EXIT)
    if remaining:
        raise typer.Exit(STOPPED_EXIT)
    if tally.pending:
        return
    note(f"Next: proctor results {made.benchmark} --store {made.store.shown}")


def causes(tally: Tally) -> list[str]:
    """What went wrong, by cause, the most frequent first; nothing where there is one cause alone."""
    if len(tally.causes) < 2:
        return []
    ordered = sorted(tally.causes.items(), key=lambda pair: (-pair[1], pair[0]))
    more = len(ordered) - _CAUSES
    return [f"{count} × {cause}" for cause, count in ordered[:_CAUSES]] + (
        [f"and {count_of(more, 'more cause')} (proctor show, proctor export)"] if more > 0 else []
    )


def _note_wrong(tally: Tally) -> None:
    """What a system gets wrong whatever the question, with one example of each: best seen while it costs money."""
    from proctor.core import Status, shorten

    for count, what, example in (
        (tally.unreadable, "can't be read", tally.unreadable_example),
        (tally.by_status[Status.ERROR], "are errors of the system", tally.error_example),
    ):
        if count:
            note(f"{count} of {tally.done} {what} and count as wrong, for example {shorten(example, 200)}")


def _show_estimate(benchmark: str, found: list[RunEstimate]) -> None:
    from proctor.core import Table, columns
    from proctor.runs import PICTURE_TOKENS

    title = f"{benchmark}: what would be asked"
    heads = columns("system", "condition", ">already", ">to ask", ">pictures", ">input tokens")
    rows = [(one.system, one.condition, one.already, one.items, one.pictures, one.tokens) for one in found]
    print_blocks(Table(title, heads, tuple(rows), title=title))
    note(
        f"About {PICTURE_TOKENS} tokens a picture (85 to 800, by provider) and 4 letters a token; of methods one call "
        f"an "
        "item. Retries and output come on top. Nothing was asked."
    )


def import_recorded(
    benchmark: BenchmarkSource,
    path: Annotated[Path, Option("The recorded answers: a file or folder.", metavar="PATH", argument=True)],
    options: ImportOptions,
) -> None:
    """Import answers recorded elsewhere.

    In the benchmark's own format, or that of another program (lmms-eval, VLMEvalKit, Inspect, OpenAI's batches, plain
    tables), which is recognised by its content and said; a call that failed there is `failed` here.

    A file of ratings names its systems; people's ratings become scores by human:RATER.

    Their latencies, failures and judge's ratings come with them.

    Example: proctor import rexsonovqa results/gemini-3-pro --data rexsonovqa --name gemini-3-pro
    """
    from proctor import api

    made = api.import_answers(benchmark, path, **options)
    note(*made.notes)
    for line in made.done:
        say(line)
