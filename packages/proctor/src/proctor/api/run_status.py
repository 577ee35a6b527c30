"""The state of a store's runs, once or repeatedly."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from proctor import shell

if TYPE_CHECKING:
    from proctor.runs import RunStatus, Store

LOOK_S = 1.0
"""The seconds between two looks of a watch."""


def status(
    store: Store | str | Path | None = None,
    benchmark: str = "",
    *,
    watch: Callable[[Sequence[RunStatus]], None] | None = None,
) -> list[RunStatus]:
    """How the runs of a store (of one `benchmark`) stand: answers, failures, cost, who is at work, paused or not.

    Works from any process and machine that reaches the store, and writes nothing. With `watch`, it is called with the state
    once a second for as long as somebody is at work on a run, or a run waits for workers; the last state is returned. Raises
    `InputError` if there is no store, or no such benchmark in it. The command is `proctor status`.
    """
    from proctor.runs import BUSY, run_statuses

    opened = shell.open_store(store, create=False)
    names = [shell.name_in(opened, benchmark)] if benchmark else []
    found = run_statuses(opened, names)
    while watch is not None:
        watch(found)
        if not any(one.state in BUSY or (one.state == "paused" and one.by) for one in found):
            break
        time.sleep(LOOK_S)
        found = run_statuses(opened, names)
    return found
