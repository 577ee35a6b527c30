"""`proctor status`: how the runs of a store stand."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from proctor.cli.output import Output, OutputFormat, console, print_blocks, print_line, show
from proctor.core import Option
from proctor.shell import BenchmarkName, StoreUrl

if TYPE_CHECKING:
    from proctor.runs import RunStatus

_EVERY_S = 10.0  # without a terminal: counts now and then, and every change of a state at once


def status(
    benchmark: BenchmarkName = "",
    store: StoreUrl = None,
    watch: Annotated[bool, Option("Look each second until nobody is at work.")] = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the state of runs, from any machine.

    Answers, failures, cost, who is at work, and why a run stopped; read from the store, also while another process or
    machine writes. States: running, paused, waiting (for proctor worker), complete, stopped (the same command goes on),
    recorded (imported).

    With --watch, prints again until nobody is at work and nothing waits for workers: on a terminal a table, elsewhere a line
    for each run that changed, with --format json a line of JSON for each change.

    Pause, resume, ask items again: proctor store change pause|resume|requeue.

    Example: proctor status --store postgresql+psycopg://proctor@db/runs --watch
    """
    from proctor import api

    if watch:
        api.status(store, benchmark, watch=_Watch(output).show)
        return
    found = api.status(store, benchmark)
    from proctor.reports import status_table

    rows = [one.to_json() for one in found]
    show(output, rows, status_table(found) if found else "No run.", names=[] if rows else ["benchmark", "system"])


class _Watch:
    """Prints what changed since the last look."""

    def __init__(self, output: OutputFormat) -> None:
        self._output = output
        self._begun = time.monotonic()
        self._told = -_EVERY_S
        self._first: Sequence[RunStatus] = ()
        self._last: Sequence[RunStatus] = ()

    def show(self, found: Sequence[RunStatus]) -> None:
        """Prints the states once."""
        from proctor.reports import status_line, status_table

        self._first = self._first or found
        seconds = time.monotonic() - self._begun
        rates = self._rates(found, seconds)
        if self._output is OutputFormat.TABLE and console.is_terminal:
            console.clear()
            print_blocks(status_table(found, rates))
            return
        changed = [one for one in found if one not in self._last]
        states = {(one.benchmark, one.system, one.condition): one.state for one in self._last}
        sudden = any(states.get((one.benchmark, one.system, one.condition)) != one.state for one in changed)
        if not changed or not (sudden or seconds - self._told >= _EVERY_S):
            return
        if self._output is OutputFormat.JSON:
            sys.stdout.write(json.dumps([one.to_json() for one in changed], ensure_ascii=False) + "\n")
        else:
            for one, rate in zip(found, rates, strict=True):
                if one in changed:
                    print_line(status_line(one, rate))
        sys.stdout.flush()
        self._last, self._told = found, seconds

    def _rates(self, found: Sequence[RunStatus], seconds: float) -> list[float | None]:
        """Settled answers per second since the watch began; None where it does not know yet."""
        before = {(one.benchmark, one.system, one.condition): one.answered for one in self._first}
        new = [one.answered - before.get((one.benchmark, one.system, one.condition), 0) for one in found]
        return [count / seconds if count > 0 and seconds > 0 else None for count in new]
