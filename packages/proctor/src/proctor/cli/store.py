"""`proctor store`: what holds answers and scores is joined and copied; runs are renamed and deleted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.output import Output, OutputFormat, at_work, named_in, print_line, print_note, show
from proctor.core import Option, UsageError, count_of, extension, one_of
from proctor.shell import BenchmarkName, Selection, StoreUrl

if TYPE_CHECKING:
    from proctor.runs import Run, Store

Yes = Annotated[bool, Option("Do not ask first.", "--yes -y")]


def _changes() -> list[str]:
    return [*_CHANGES]


@dataclass(frozen=True)
class _Change:
    """What `proctor store change` is asked for, and the opened store."""

    store: Store
    benchmark: str
    systems: tuple[str, ...]
    conditions: tuple[str, ...]
    to: str | None
    reason: str | None
    scorer: str
    items: tuple[str, ...]
    everything: bool
    yes: bool

    def one_system(self) -> str:
        """The only system. Raises `UsageError` for none or several."""
        if len(self.systems) != 1:
            raise UsageError("Give one system: --system NAME")
        return self.systems[0]


def change(
    action: Annotated[
        str,
        Option(
            "rename, delete, disqualify, readmit, pause, resume, or requeue.",
            metavar="ACTION",
            argument=True,
            names=_changes,
        ),
    ],
    benchmark: BenchmarkName,
    options: Selection,
    to: Annotated[str | None, Option("rename: the system's new name.", metavar="NAME")] = None,
    reason: Annotated[str | None, Option("disqualify, readmit, pause, requeue: why, recorded with the time.")] = None,
    item: Annotated[list[str] | None, Option("requeue: this item; may be repeated.", metavar="ID")] = None,
    scorer: Annotated[str, Option("delete: all scores by this scorer; answers stay.")] = "",
    everything: Annotated[bool, Option("delete: the benchmark with its items and all runs.", "--all")] = False,
    store: StoreUrl = None,
    yes: Yes = False,
) -> None:
    """Rename, delete, disqualify, pause runs.

    rename gives a system another name in all its runs. delete removes runs, scores, or a whole benchmark; judges'
    replies stay, so that judging the same answers again costs nothing. disqualify takes a system out of every ranking:
    answers and scores stay, and `results` still shows them; readmit lifts it, and both stay on record.

    pause has every process at work on runs, also on other machines, ask nothing more of them within a second; answers under
    way come in, and resume lets them go on. requeue has items asked again in all repetitions: at once in a shared run, else
    by the same command; former status, time and reason stay on record, and `proctor status` counts them.

    Example: proctor store change disqualify focus --system team-a --reason "addresses the judge in 12 answers"
    """
    from proctor import api

    if action not in _CHANGES:
        raise UsageError(f"ACTION {action!r} is unknown: choose {one_of([*_CHANGES], action)}")
    opened = api.open_store(store, create=False)
    systems, conditions = tuple(options["systems"]), tuple(options["conditions"])
    name = named_in(opened, benchmark)
    _CHANGES[action](_Change(opened, name, systems, conditions, to, reason, scorer, tuple(item or ()), everything, yes))


def _delete(given: _Change) -> None:
    from proctor.runs import chosen_runs, count_scores, delete_benchmark, delete_runs, delete_scores

    opened, benchmark = given.store, given.benchmark
    named = bool(given.systems or given.conditions)
    if [given.everything, named, bool(given.scorer)].count(True) != 1:
        raise UsageError(
            f"{'Several things' if given.everything or named else 'Nothing'} to delete. Give one of: --all, runs by --system and --condition, --scorer NAME."
        )
    if given.scorer:
        told = count_of(count_scores(opened, benchmark, given.scorer), "score")
        _confirm(f"Delete {told} by {given.scorer} of {benchmark} from {opened.shown}?", yes=given.yes)
        print_line(f"Deleted {count_of(delete_scores(opened, benchmark, given.scorer), 'score')} by {given.scorer}")
        return
    runs = chosen_runs(opened, benchmark, given.systems, given.conditions)
    if not runs and not given.everything:
        raise UsageError("No run has this system and this condition: proctor list runs")
    _confirm(f"Delete {_told(opened, runs)} of {benchmark} from {opened.shown}?", yes=given.yes)
    count = delete_benchmark(opened, benchmark) if given.everything else delete_runs(opened, runs)
    print_line(f"Deleted {count_of(len(runs), 'run')}, {count_of(count, 'answer')}")


def _rename(given: _Change) -> None:
    from proctor.runs import chosen_runs, rename_system

    old = given.one_system()
    if given.to is None:
        raise UsageError("--to is missing. Give the new name: --to NAME")
    runs = chosen_runs(given.store, given.benchmark, (old,))
    _confirm(f"Rename {_told(given.store, runs)} of {given.benchmark} to {given.to}?", yes=given.yes)
    rename_system(given.store, given.benchmark, runs, given.to)
    print_line(f"{old} is {given.to} now, in {count_of(len(runs), 'run')}")


def _rule(given: _Change, *, undo: bool) -> None:
    from proctor.runs import disqualify, reinstate

    system = given.one_system()
    if given.reason is None:
        raise UsageError("--reason is missing. Give why, for the record: --reason TEXT")
    ruling = (reinstate if undo else disqualify)(given.store, given.benchmark, system, given.reason, at=_now())
    state = "Ranked again" if undo else "Disqualified"
    why = f"; taken back {ruling.lifted[:10]} ({ruling.lifted_because})" if undo else ""
    print_line(f"{state}: {ruling}{why}")


def _disqualify(given: _Change) -> None:
    _rule(given, undo=False)


def _readmit(given: _Change) -> None:
    _rule(given, undo=True)


def _pause(given: _Change) -> None:
    from proctor.runs import chosen_runs, pause_runs

    runs = chosen_runs(given.store, given.benchmark, given.systems, given.conditions)
    paused = pause_runs(given.store, runs, given.reason or "")
    told = f"; {len(runs) - len(paused)} paused before" if len(paused) < len(runs) else ""
    print_line(f"Paused: {count_of(len(paused), 'run')}{told}")


def _resume(given: _Change) -> None:
    from proctor.runs import chosen_runs, resume_runs

    runs = chosen_runs(given.store, given.benchmark, given.systems, given.conditions)
    print_line(f"Resumed: {count_of(len(resume_runs(given.store, runs)), 'run')}")


def _requeue(given: _Change) -> None:
    from proctor.runs import chosen_runs, requeue

    if not given.items:
        raise UsageError("--item is missing. Give the items to ask again: --item ID")
    if given.reason is None:
        raise UsageError("--reason is missing. Give why, for the record: --reason TEXT")
    runs = chosen_runs(given.store, given.benchmark, given.systems, given.conditions)
    names = ", ".join(f"{run.system} / {run.condition}" for run in runs[:5])
    _confirm(f"Ask {', '.join(given.items[:5])} of {names} again, without the answers there?", yes=given.yes)
    count = requeue(given.store, runs, given.items, given.reason)
    print_line(f"To ask again: {count_of(count, 'answer')}")


_CHANGES: dict[str, Callable[[_Change], None]] = {
    "rename": _rename,
    "delete": _delete,
    "disqualify": _disqualify,
    "readmit": _readmit,
    "pause": _pause,
    "resume": _resume,
    "requeue": _requeue,
}


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
        print_note("Nothing was changed.")
        raise typer.Exit(1)


def merge(
    sources: Annotated[list[str], Option("Stores to read: paths or URLs.", metavar="STORE...", argument=True)],
    store: StoreUrl = None,
    whole: Annotated[bool, Option("One store with its accounts and trail, into an empty one.")] = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Join stores into one, or move a whole store.

    Answers, scores and judgements of several machines are compared by content; no media are needed. Contradicting rows
    are refused and named; the others are merged. The order of the stores does not matter. Exit code 1 where something
    was refused.

    With --whole, all of one store is copied, also a review or a challenge with its accounts and trail, from a file to
    PostgreSQL or back. Counts of rows and the trail are checked. Stop servers and workers first: what they write during
    the copy stays behind.

    Example: proctor store merge site-a.db site-b.db --store all.db
    """
    if whole:
        _copy_whole(sources, store)
        return
    from proctor import shell
    from proctor.reports import merged_table

    with at_work("joining stores"):
        target, found = shell.join_stores(sources, store)
    show(output, [merged_rows.to_json() for merged_rows in found], merged_table(target.shown, found))
    refused = sum(merged_rows.refused for merged_rows in found)
    if refused:
        where = (
            f"{'/'.join(filter(None, (merged_rows.system, merged_rows.condition, merged_rows.what)))}: {merged_rows.first}"
            for merged_rows in found
        )
        print_note(*(line for line, one in zip(where, found, strict=True) if one.refused))
        print_note(f"{count_of(refused, 'row')} refused: they contradict the store, or each other")
        raise typer.Exit(1)


def _copy_whole(sources: Sequence[str], store: StoreUrl) -> None:
    if len(sources) != 1 or store is None:
        raise UsageError("--whole copies one store into another: proctor store merge --whole FROM --store TO")
    copy_store = extension("store.copy", "proctor_challenge", "proctor store merge --whole")
    with at_work("copying"):
        found = copy_store(sources[0], str(store))
    tables = sum(1 for count in found.rows.values() if count)
    print_line(f"{count_of(sum(found.rows.values()), 'row')} in {count_of(tables, 'table')} copied")
    if found.trail:
        print_note(f"the trail is as recorded; its newest hash is {found.trail}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
