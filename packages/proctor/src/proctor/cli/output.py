"""What commands print: tables, JSON and CSV on standard output; notes and progress on standard error."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from rich.console import Console, ConsoleDimensions
from rich.markup import escape

from proctor import core
from proctor.core import Option, Status, Usage, count_of, dollars

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

    from proctor.judges.dimensions import SearchProgress
    from proctor.reports import Block
    from proctor.runs import JudgeTally, PaidJudgements, Store, Tally

T = TypeVar("T")

_WIDE = 240  # of what is no terminal: nobody wants a table that is wrapped in a file


class OutputFormat(StrEnum):
    """How a table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


Output = Annotated[OutputFormat, Option("For people or for programs.", "--format")]


class _Terminal(Console):
    """Standard output, looked up when something is printed. What is no terminal is wide."""

    @property
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        if self.file.isatty():
            return super().size
        return ConsoleDimensions(_WIDE, super().size.height)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._width, self._height = new_size


console = _Terminal(emoji=False, force_jupyter=False)

_notes = Console(stderr=True, soft_wrap=True, emoji=False, force_jupyter=False)


def print_line(text: str, *, bold: bool = False) -> None:
    """Print a line on standard output, never cut. Control characters and markup are removed, since texts may be
    hostile."""
    from proctor.core import clean

    console.print(clean(text), style="bold" if bold else "", markup=False, highlight=False, soft_wrap=True)


def print_note(*lines: str) -> None:
    """Print lines for people on standard error, without control characters."""
    from proctor.core import clean

    for line in lines:
        _notes.print(escape(clean(line)), style="dim", highlight=False)


def print_json(value: Any) -> None:
    """Print JSON without NaN on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def print_text(text: str) -> None:
    """Print a text for programs on standard output, as it is."""
    sys.stdout.write(text)


def print_records(rows: Sequence[Mapping[str, Any]], *, names: Sequence[str] = (), tabs: bool = False) -> None:
    """Print records with the same keys as CSV, or tab-separated, on standard output. Without records, `names` are the
    header; nothing is printed without any. In CSV, a text that a spreadsheet would take for a formula gets a leading
    apostrophe."""
    header = list(rows[0]) if rows else list(names)
    lines = [header, *(list(row.values()) for row in rows)] if header else []
    if tabs:  # a tab or a line's end within a cell becomes a space
        cleaned = (["" if cell is None else " ".join(str(cell).split()) for cell in line] for line in lines)
        sys.stdout.write("".join("\t".join(line) + "\n" for line in cleaned))
    else:
        csv.writer(sys.stdout).writerows([core.safe_cell(cell) for cell in line] for line in lines)


def print_blocks(*blocks: Block | str, apart: bool = False) -> None:
    """Print tables and prose; with `apart`, a blank line after each."""
    from proctor.reports import show_block

    for block in blocks:
        show_block(console, block)
        if apart:
            console.print()


def show(
    output: OutputFormat,
    rows: Sequence[Mapping[str, Any]],
    *blocks: Block | str,
    apart: bool = False,
    names: Sequence[str] = (),
) -> None:
    """Print records for programs (`names` are the header of a CSV without records), or blocks for people."""
    if output is OutputFormat.JSON:
        print_json(rows)
    elif output is OutputFormat.TABLE:
        print_blocks(*blocks, apart=apart)
    else:
        print_records(rows, names=names)


def named_in(store: Store, benchmark: str) -> str:
    """The name of a benchmark in a store (see `api.name_in`); a note says it where the name of its file was given."""
    from proctor.core import benchmark_path
    from proctor.shell import name_in

    name = name_in(store, benchmark)
    if name != benchmark and benchmark_path(benchmark) is None:
        print_note(f"{benchmark} is called {name} in {store.shown}.")
    return name


def settings_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the bootstrap, for JSON output."""
    return {"settings": {name: options[name] for name in ("draws", "seed", "two_level") if name in options}}


def drawn_over(draws: int, seed: int, *, two_level: bool) -> str:
    """A sentence on how the intervals of a table were computed."""
    if two_level:
        return f"Intervals: 95 %, bootstrap over groups, and over items within each, {draws} draws, seed {seed}."
    return f"Intervals: 95 %, over groups: exact for shares, bootstrap for other scores ({draws} draws, seed {seed})."


_REASON = 60  # characters of a failure beside the bar

_EVERY_S = 10.0  # without a terminal: a line now and then, so that a log shows life


class _Line:
    """A progress bar with a text; without a terminal, a plain line every few seconds."""

    def __init__(self, progress: Progress | None, task: TaskID | None, what: str) -> None:
        self._progress = progress
        self._task = task
        self._what = what
        self._last = time.monotonic()

    def update(self, done: int, total: int, text: str) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, total=total, text=text)
        elif time.monotonic() - self._last > _EVERY_S:
            self._last = time.monotonic()
            sys.stderr.write(f"{self._what}: {done}/{total} {text}\n")


_NARROW = 100  # columns of a terminal with a shorter bar


def bar_columns(width: int) -> tuple[ProgressColumn, ...]:
    """The columns of a progress bar on a terminal of this width: only the text is shortened, never a number."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.table import Column

    return (
        TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        BarColumn(bar_width=24 if width >= _NARROW else 8),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn(
            "{task.fields[text]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
        ),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
    )


@contextmanager
def _line(what: str, total: int) -> Iterator[_Line]:
    if not sys.stderr.isatty():
        yield _Line(None, None, what)
        return
    from rich.progress import Progress

    screen = Console(stderr=True, emoji=False)
    with Progress(*bar_columns(screen.width), console=screen, refresh_per_second=4, expand=True) as progress:
        yield _Line(progress, progress.add_task(what, total=total, text=""), what)


@contextmanager
def show_asking(total: int) -> Iterator[Callable[[Tally], None]]:
    """A progress bar of a run: answered, failed, rate, cost, unreadable answers, the last failure."""
    from proctor.core import shorten

    with _line("asking", total) as line:

        def update(tally: Tally) -> None:
            failed = tally.by_status[Status.FAILED]
            parts = [f"{tally.done - failed} answered", f"{failed} failed", f"{tally.rate:.1f}/s"]
            if tally.usage.requests:
                parts.append(cost_of(tally.usage))
            if tally.unreadable:
                parts.append(f"{tally.unreadable} unreadable")
            if tally.paused:
                parts.append(f"paused: {', '.join(tally.paused)}")
            if tally.last_reason:
                parts.append(f"last failure: {shorten(tally.last_reason, _REASON)}")
            line.update(tally.done, tally.total, ", ".join(parts))

        yield update


@contextmanager
def show_judging(total: int, paid: PaidJudgements) -> Iterator[Callable[[JudgeTally], None]]:
    """A progress bar of a judge, with the cost of new judgements."""
    with _line("judging", total) as line:

        def update(tally: JudgeTally) -> None:
            parts = [f"{tally.scored} scored", f"{tally.unscored} without a verdict"]
            parts += [f"{tally.unresolved} unresolved"] if tally.unresolved else []
            parts += spent(paid)
            line.update(tally.done, tally.total, ", ".join(parts))

        yield update


@contextmanager
def show_trials(total: int, paid: PaidJudgements) -> Iterator[Callable[[SearchProgress], None]]:
    """A progress bar of the search for few-shot examples, with the cost of new judgements."""
    with _line("trying", total) as line:

        def update(progress: SearchProgress) -> None:
            parts = [f"{progress.missing} with a score missing"] if progress.missing else []
            parts += spent(paid)
            line.update(progress.done, progress.total, ", ".join(parts))

        yield update


def cost_of(usage: Usage) -> str:
    """The cost in dollars, if it is known."""
    return "cost unknown" if usage.cost_usd is None else dollars(usage.cost_usd)


def spent(paid: PaidJudgements) -> list[str]:
    """What new judgements cost, and calls that gave none; empty if nothing was paid."""
    lost = f" and {count_of(paid.lost, 'call')} without one" if paid.lost else ""
    return [f"{count_of(paid.count, 'new judgement')}{lost}, {cost_of(paid.usage)}"] if paid.count or lost else []


@contextmanager
def show_steps(what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """A progress bar of steps."""
    with _line(what, total) as line:
        yield lambda done, of: line.update(done, of, "")


@contextmanager
def at_work(what: str) -> Iterator[None]:
    """On a terminal, a spinner with the elapsed time for work of unknown length; removed when the work is done."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(
        *columns, console=Console(stderr=True, emoji=False), transient=True, refresh_per_second=4
    ) as progress:
        progress.add_task(what, total=None)
        yield


_STDIN = 0

ATTACHED = "PROCTOR_ATTACHED"
"""An environment variable: set for a process that stops once its standard input, which the command that started it
holds open, has ended. A killed command can't send a signal."""


@contextmanager
def stopping() -> Iterator[asyncio.Event]:
    """An event that is set by the first Ctrl-C (or SIGTERM), and by the end of the command that this process is
    attached to: running requests are completed, and no more are sent. A second Ctrl-C interrupts at once. Use it
    inside a running event loop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def pressed() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
            return
        sys.stderr.write("\nstopping: waiting for the answers under way (again to stop at once)\n")
        stop.set()

    def left_alone() -> None:
        loop.remove_reader(_STDIN)
        stop.set()

    signals = (signal.SIGINT, signal.SIGTERM)
    try:
        for one in signals:
            loop.add_signal_handler(one, pressed)
        if ATTACHED in os.environ:
            loop.add_reader(_STDIN, left_alone)  # nothing is ever written to it
        yield stop
    finally:
        loop.remove_reader(_STDIN)
        for one in signals:
            loop.remove_signal_handler(one)


async def watched(ask: Callable[[asyncio.Event, Any], Awaitable[T]], bar: AbstractContextManager[Any]) -> T:
    """Call `ask` with a progress bar and a clean stop on Ctrl-C."""
    with stopping() as stop, bar as update:
        return await ask(stop, update)
