"""`proctor store`: what holds answers and scores is checked, runs are renamed and deleted, an organiser decides."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.output import Output, OutputFormat, at_work, named_in, note, say, show
from proctor.core import Option, UsageError, count_of, plain_table, thousands
from proctor.shell import BenchmarkName, Selection, StoreUrl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proctor.runs import Run, Store

Yes = Annotated[bool, Option("Do not ask first.", "--yes -y")]

_SHOWN = 100


def check(store: StoreUrl = None) -> None:
    """Check that every row can be read.

    Nothing is changed.

    Exit code 1 where a row is damaged. Example: proctor store check --store runs.db
    """
    from proctor import api
    from proctor.runs import DamagedStoreError, check_file, check_store

    damaged = "restore a copy, or run the affected items again into another --store"
    try:
        lines = list(check_store(api.open_store(store, create=False)))
    except DamagedStoreError as error:
        if error.path is None:
            raise
        lines = list(check_file(error.path)) or [error.found]
        damaged += "; `sqlite3 OLD.db .recover | sqlite3 NEW.db` copies what can be read"
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    for line in (*lines[:_SHOWN], *more):
        say(line)
    say(f"{len(lines)} damaged: {damaged}" if lines else "Every row can be read.")
    if lines:
        raise typer.Exit(1)


def delete(
    benchmark: BenchmarkName,
    options: Selection,
    everything: Annotated[bool, Option("The benchmark with its items and all runs.", "--all")] = False,
    scorer: Annotated[str, Option("All scores by this scorer; answers stay.")] = "",
    store: StoreUrl = None,
    yes: Yes = False,
) -> None:
    """Delete runs, scores, or a whole benchmark.

    Judges' replies stay, so that judging the same answers again costs nothing.

    Example: proctor store delete focus --system team-a --store runs.db
    """
    from proctor import api
    from proctor.runs import chosen_runs, count_scores, delete_benchmark, delete_runs, delete_scores

    named = bool(options["systems"] or options["conditions"])
    if [everything, named, bool(scorer)].count(True) != 1:
        raise UsageError(
            f"{'Several things' if everything or named else 'Nothing'} to delete. Give one of: --all, runs by --system and --condition, --scorer NAME."
        )
    opened = api.open_store(store, create=False)
    benchmark = named_in(opened, benchmark)
    if scorer:
        count = count_scores(opened, benchmark, scorer)
        told = count_of(count, "score")
        _confirm(f"Delete {told} by {scorer} of {benchmark} from {opened.shown}?", yes=yes)
        say(f"Deleted {count_of(delete_scores(opened, benchmark, scorer), 'score')} by {scorer}")
        return
    runs = chosen_runs(opened, benchmark, tuple(options["systems"]), tuple(options["conditions"]))
    if not runs and not everything:
        raise UsageError("No run has this system and this condition: proctor list runs")
    _confirm(f"Delete {_told(opened, runs)} of {benchmark} from {opened.shown}?", yes=yes)
    count = delete_benchmark(opened, benchmark) if everything else delete_runs(opened, runs)
    say(f"Deleted {count_of(len(runs), 'run')}, {count_of(count, 'answer')}")


def rename(
    benchmark: BenchmarkName,
    old: Annotated[str, Option("The system's name.", metavar="OLD", argument=True)],
    new: Annotated[str, Option("Its new name.", metavar="NEW", argument=True)],
    store: StoreUrl = None,
    yes: Yes = False,
) -> None:
    """Rename a system in all its runs.

    Example: proctor store rename focus team-a team-b --store runs.db
    """
    from proctor import api
    from proctor.runs import chosen_runs, rename_system

    opened = api.open_store(store, create=False)
    benchmark = named_in(opened, benchmark)
    runs = chosen_runs(opened, benchmark, (old,))
    _confirm(f"Rename {_told(opened, runs)} of {benchmark} to {new}?", yes=yes)
    rename_system(opened, benchmark, runs, new)
    say(f"{old} is {new} now, in {count_of(len(runs), 'run')}")


def _told(store: Store, runs: Sequence[Run]) -> str:
    """The names of runs, with the number of their answers."""
    named = ", ".join(f"{run.system} / {run.condition}" for run in runs[:5])
    more = f" and {len(runs) - 5} more" if len(runs) > 5 else ""
    answers = sum(sum(store.count_answers(run)) for run in runs)
    return f"{named or 'no run'}{more} ({count_of(answers, 'answer')})"


def _asked() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


def _confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation on a terminal. Elsewhere --yes is required."""
    from proctor.core import clean

    if yes:
        return
    if not _asked():
        raise UsageError("Here nobody can be asked. Add --yes to do it without a question.")
    try:
        agreed = typer.confirm(clean(question))
    except typer.Abort as abort:  # Ctrl-C, or the end of what can be read
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise abort.__context__ from None
        agreed = False
    if not agreed:
        note("Nothing was changed.")
        raise typer.Exit(1)


def merge(
    sources: Annotated[list[str], Option("Stores to read: paths or URLs.", metavar="STORE...", argument=True)],
    store: StoreUrl = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Join stores of several machines into one.

    Answers, scores and judgements are compared by content; no media are needed. Contradicting rows are refused and
    named; the others are merged. The order of the stores does not matter.

    Exit code 1 where something was refused. Example: proctor merge site-a.db site-b.db --store all.db
    """
    from proctor import shell

    with at_work("joining stores"):
        target, found = shell.join_stores(sources, store)
    heads = ("benchmark", "system", "condition", "what", ">taken", ">the same", ">refused")
    named = ("benchmark", "system", "condition", "what")
    rows = [
        (
            *(getattr(merged_rows, name) for name in named),
            thousands(merged_rows.taken),
            thousands(merged_rows.same),
            thousands(merged_rows.refused),
        )
        for merged_rows in found
    ]
    title = f"Into {target.shown}"
    show(output, [merged_rows.to_json() for merged_rows in found], plain_table(title, heads, rows))
    refused = sum(merged_rows.refused for merged_rows in found)
    if refused:
        where = (
            f"{'/'.join(filter(None, (merged_rows.system, merged_rows.condition, merged_rows.what)))}: {merged_rows.first}"
            for merged_rows in found
        )
        note(*(line for line, one in zip(where, found, strict=True) if one.refused))
        note(f"{count_of(refused, 'row')} refused: they contradict the store, or each other")
        raise typer.Exit(1)


def copy(
    source: Annotated[str, Option("The store to copy: a path or URL.", metavar="SOURCE", argument=True)],
    target: Annotated[str, Option("An empty one.", metavar="TARGET", argument=True)],
) -> None:
    """Copy a whole store into an empty one.

    All of it: answers, scores and judgements, and a review or a challenge with its accounts and trail. From a file to
    PostgreSQL or back. Counts of rows and the trail are checked. Stop servers and workers first: what they write during
    the copy stays behind.

    Example: proctor store copy my-review/review.sqlite postgresql+psycopg://proctor@db/review
    """
    from proctor.challenges import copy_store

    with at_work("copying"):
        found = copy_store(source, target)
    tables = sum(1 for count in found.rows.values() if count)
    say(f"{count_of(sum(found.rows.values()), 'row')} in {count_of(tables, 'table')} copied")
    if found.trail:
        note(f"the trail is as recorded; its newest hash is {found.trail}")


def disqualify(
    benchmark: BenchmarkName,
    system: Annotated[str, Option("The system.")],
    reason: Annotated[str, Option("The reason, recorded with the time.")],
    store: StoreUrl = None,
    undo: Annotated[bool, Option("Lift the disqualification; both stay on record.")] = False,
) -> None:
    """Take a system out of every ranking.

    Answers and scores stay; `results` still shows them.

    Example: proctor store disqualify focus --system team-a --reason "addresses the judge in 12 answers"
    """
    from proctor import api
    from proctor.runs import disqualify as rule_out
    from proctor.runs import reinstate

    decide = reinstate if undo else rule_out
    opened = api.open_store(store, create=False)
    ruling = decide(opened, named_in(opened, benchmark), system, reason, at=_now())
    state = "Ranked again" if undo else "Disqualified"
    why = f"; taken back {ruling.lifted[:10]} ({ruling.lifted_because})" if undo else ""
    say(f"{state}: {ruling}{why}")


def decide(
    benchmark: BenchmarkName,
    file: Annotated[
        Path, Option("What `proctor export --format unresolved` wrote, filled in.", metavar="FILE", argument=True)
    ],
    by: Annotated[str, Option("Who decided, recorded with the time.")],
    store: StoreUrl = None,
) -> None:
    """Record a person's decisions on open answers.

    The judge is not asked again for them. A later file replaces decisions of an earlier one; both are kept.

    Example: proctor store decide rexsonovqa open.csv --by "Anna Weber" --store runs.db
    """
    from proctor import api
    from proctor.runs import decide as record

    opened = api.open_store(store, create=False)
    found = record(opened, named_in(opened, benchmark), file, by=by, at=_now())
    counts = {"Answers decided": found.answers, "of these again": found.again}
    counts |= {"decided so before": found.unchanged, "still unresolved": found.left}
    say("; ".join(f"{name}: {count}" for name, count in counts.items() if count or name == "Answers decided"))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
