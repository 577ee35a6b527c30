"""`proctor run` and `import`: answers come into a store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli import STOPPED_EXIT
from proctor.cli.output import print_blocks, print_line, print_note, show_asking, watched
from proctor.core import Option, UsageError, count_of, dollars, shell_word, shorten, store_word
from proctor.shell import BenchmarkSource, ImportOptions, RunOptions, declared, system_names

if TYPE_CHECKING:
    from proctor.runs import RunEstimate, Tally
    from proctor.shell import PreparedRun, StoredRuns

FAILED_EXIT = 3

_CAUSES = 5
_LONGEST = 200  # characters of a reason, which may quote a whole page


def run(
    benchmark: BenchmarkSource,
    options: RunOptions,
    systems: Annotated[
        list[str] | None, Option("A system, or file.py:function; repeatable.", "--system", names=system_names)
    ] = None,
    workers: Annotated[int, Option("Run this many processes, which share the store.", low=1, high=256)] = 1,
    on: Annotated[
        str,
        Option(
            "Where workers run: started by you (store), on SLURM (slurm prints a script), or on Ray (ray, ray:ADDRESS).",
            metavar="WHERE",
        ),
    ] = "",
    dry_run: Annotated[bool, Option("Estimate what would be asked and sent; ask nothing.")] = False,
) -> None:
    """Ask systems or models a benchmark's items.

    BENCHMARK may be a study file (study.yaml) with benchmarks, systems, conditions, repetitions, judges and comparisons:
    missing answers and judgements are added.

    Run the same command again to continue where it stopped; with --share, on several machines at once. --max-cost and
    --max-time stop it as Ctrl-C does: answers under way are kept, and cost at most that much more.

    Example: proctor run rexsonovqa --data rexsonovqa --media videos --model openai:gpt-5.2
    --condition video --condition text-only --settings temperature=0 max_tokens=512
    """
    from proctor import shell

    if shell.is_study(benchmark):
        from proctor.cli.study import run_study

        run_study(benchmark, options, systems or (), processes=workers > 1 or bool(on), dry_run=dry_run)
        return
    where, _, address = on.partition(":")
    if on:
        _share_with(where, address, options)
    arranged = shell.arrange(benchmark, systems, **options)
    if dry_run:
        print_note(*arranged.benchmark.reading)
        _show_estimate(arranged.benchmark.name, asyncio.run(arranged.estimate()))
        print_note(*arranged.repeat_notes())
        return

    async def asking() -> StoredRuns | None:
        prepared = await arranged.prepare()
        print_note(*prepared.notes)
        if on:
            shell.check_travels(prepared, local=on == "ray")
        if where == "ray":
            from proctor.cli.workers import ask_on_ray

            return await ask_on_ray(prepared, workers, address)
        if on:
            print_line(shell.slurm_job(prepared, workers).rstrip() if where == "slurm" else _waiting(prepared))
            return None
        if workers > 1:
            from proctor.cli.workers import ask_with_workers

            return await ask_with_workers(prepared, workers)
        return await watched(prepared.ask, show_asking(prepared.plan.to_ask))

    made = asyncio.run(asking())
    if made is not None:
        report_outcome(made)


def _share_with(where: str, address: str, options: RunOptions) -> None:
    """Check where workers are, and share the questions with them."""
    from proctor import shell

    shell.check_location(where, address)
    if options["max_cost"] is not None or options["max_time"] is not None:
        raise UsageError("--max-cost and --max-time stop processes of this machine. Leave them out, or --on.")
    options["share"] = True


def _waiting(prepared: PreparedRun) -> str:
    return f"{count_of(prepared.plan.to_ask, 'question')} waiting for workers: proctor worker --store {store_word(prepared.store.shown)}"


def report_outcome(made: StoredRuns) -> None:
    """Print the last lines of a run; exit with its code."""
    outcome = made.outcome
    if outcome is None:
        raise ValueError("an evaluation that asked nobody")
    tally = outcome.tally
    for line in made.done:
        print_line(line)
    print_note(*made.costs)
    _note_wrong(tally)
    print_note(*causes(tally), *([tally.stopped] if tally.stopped else []))
    remaining = outcome.remaining - tally.pending
    if tally.pending:
        print_note("Run the same command again when the replies are there.")
    if remaining:
        print_note(f"{count_of(remaining, 'item')} still to be asked: run the same command again.")
    if outcome.failed:
        _note_failed(tally, outcome.failed)
        raise typer.Exit(FAILED_EXIT)
    if remaining:
        raise typer.Exit(STOPPED_EXIT)
    if tally.pending:
        return
    print_note(f"Next: proctor results {shell_word(made.benchmark)} --store {store_word(made.store.shown)}")


def _note_failed(tally: Tally, failed: int) -> None:
    """Note how many answers failed, and what to do: a request that the server rejected is rejected again."""
    several = len(tally.causes) > 1
    if tally.rejected:
        why = "see above" if several else f"for example {shorten(tally.rejected_example, _LONGEST)}"
        what = f"{count_of(tally.rejected, 'answer')} failed, since the server rejected the request"
        print_note(f"{what} ({why}): the same request is rejected again; see what it is by proctor show --prompt.")
    if failed > tally.rejected:
        why = "see above" if several else shorten(tally.last_reason, _LONGEST) or "see the store"
        left = count_of(failed - tally.rejected, "answer")
        print_note(f"{left} failed ({why}): run the same command again to ask them again.")


def causes(tally: Tally) -> list[str]:
    """The causes of failures, the most frequent first; none if there is only one."""
    if len(tally.causes) < 2:
        return []
    ordered = sorted(tally.causes.items(), key=lambda pair: (-pair[1], pair[0]))
    more = len(ordered) - _CAUSES
    return [f"{count} × {shorten(cause, _LONGEST)}" for cause, count in ordered[:_CAUSES]] + (
        [f"and {count_of(more, 'more cause')} (proctor show, proctor export)"] if more > 0 else []
    )


def _note_wrong(tally: Tally) -> None:
    """Note replies cut off, with thoughts, corrected or requested as text, unreadable answers and errors of the system, with an example, since they may be a costly mistake."""
    from proctor.core import Status

    if tally.cut_off:
        print_note(
            f"{tally.cut_off} of {tally.done} replies were cut off by the model's token limit (--settings max_tokens=…)"
        )
    if tally.thoughts_in_text:
        print_note(
            f"{tally.thoughts_in_text} of {tally.done} replies had thoughts in their text; they were left out (start the "
            "server with --reasoning-parser)"
        )
    if tally.corrected:
        print_note(f"{tally.corrected} of {tally.done} replies correct their answer; the last one counts")
    if tally.without_confidence:
        why = shorten(tally.confidence_example, _LONGEST)
        print_note(f"{tally.without_confidence} of {tally.done} answers have no confidence, for example {why}")
    if tally.without_schema:
        orders, why = count_of(tally.without_schema, "order"), shorten(tally.schema_rejection, _LONGEST)
        print_note(f"Requested as text, since the server takes no JSON schema: {orders} ({why})")
    for count, what, example in (
        (tally.unreadable, "can't be read", tally.unreadable_example),
        (tally.by_status[Status.ERROR], "are errors of the system", tally.error_example),
    ):
        if count:
            print_note(f"{count} of {tally.done} {what} and count as wrong, for example {shorten(example, _LONGEST)}")


def _show_estimate(benchmark: str, found: list[RunEstimate]) -> None:
    from proctor.reports import estimate_table
    from proctor.runs import PICTURE_TOKENS

    print_blocks(estimate_table(benchmark, found))
    print_note(
        f"Estimate: {PICTURE_TOKENS} tokens per picture (85–800 by provider), 4 characters per token, one call per question. "
        "Retries and output come on top. Nothing was asked.",
        *_cost_notes(found),
    )


def _cost_notes(found: list[RunEstimate]) -> list[str]:
    """The cost of all input, or how to learn it."""
    asked = [one for one in found if one.tokens]
    if not asked:
        return []
    known = [one.input_usd for one in asked if one.input_usd is not None]
    if len(known) < len(asked):
        return [
            "The cost is unknown: give --price INPUT/OUTPUT (dollars per million tokens), or run --limit 10 and see."
        ]
    return [
        f"Input: about {dollars(sum(known))} in all. For the cost with output, run --limit 10: it ends with an estimate for all."
    ]


def import_recorded(
    benchmark: BenchmarkSource,
    path: Annotated[Path, Option("The recorded answers: a file or folder.", metavar="PATH", argument=True)],
    options: ImportOptions,
    decided_by: Annotated[
        str, Option("The file holds this person's decisions on open answers.", "--decided-by", metavar="PERSON")
    ] = "",
) -> None:
    """Import answers recorded elsewhere.

    Reads the benchmark's own format, or that of another program (lmms-eval, VLMEvalKit, Inspect, OpenAI's batches,
    plain tables), which is recognised by its content. Latencies, failures and judges' ratings are imported as well; a
    call that failed there is `failed` here.

    A table of people's ratings (columns of items, systems, raters, and values or one for each dimension) brings all its
    systems, and their answers if it has a column of them. Ratings become scores by human:RATER, for proctor audit.

    With --decided-by, reads back what `proctor export --format unresolved` wrote, filled in. The judge is not asked again
    for these answers. A later file replaces decisions of an earlier one; both are kept, with the name and the time.

    Example: proctor import rexsonovqa results/gemini-3-pro --data rexsonovqa --name gemini-3-pro
    """
    from proctor import api

    if decided_by:
        _record_decisions(benchmark, path, decided_by, options)
        return
    made = api.import_answers(benchmark, path, **options)
    print_note(*made.notes)
    for line in made.done:
        print_line(line)


def _record_decisions(benchmark: str, file: Path, by: str, options: ImportOptions) -> None:
    from proctor import api
    from proctor.cli.output import named_in
    from proctor.runs import decide

    given: dict[str, Any] = dict(options)
    known = declared(ImportOptions).items()
    other = next(
        (name for name, (_, one) in known if name != "store" and given.get(name, one.default) != one.default), ""
    )
    if other:
        raise UsageError(f"--decided-by reads decisions. Leave --{other.replace('_', '-')} out.")
    opened = api.open_store(given["store"], create=False)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    found = decide(opened, named_in(opened, benchmark), file, by=by, at=at)
    counts = {"Answers decided": found.answers, "of these again": found.again}
    counts |= {"decided so before": found.unchanged, "still unresolved": found.left}
    print_line("; ".join(f"{name}: {count}" for name, count in counts.items() if count or name == "Answers decided"))
