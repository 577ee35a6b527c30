"""`proctor disqualify`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from proctor.cli.options import BenchmarkName, StoreUrl
from proctor.cli.output import console
from proctor.cli.results import DEFAULT_STORE

__all__ = ["disqualify"]


def disqualify(
    benchmark: BenchmarkName,
    system: Annotated[str, typer.Option("--system", help="Whom.", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with the time.", show_default=False)],
    store: StoreUrl = DEFAULT_STORE,
    undo: Annotated[bool, typer.Option("--undo", help="Take it back; both stay on record.")] = False,
) -> None:
    """Takes a system out of every ranking, or back in. Answers and scores stay; `results` still shows them.

    Example: proctor disqualify focus --system team-a --reason "addresses the judge in 12 answers"
    """
    from proctor.runs import Store, reinstate
    from proctor.runs import disqualify as rule_out

    decide = reinstate if undo else rule_out
    now = datetime.now(UTC).isoformat(timespec="seconds")
    ruling = decide(Store(store, create=False), benchmark, system, reason, at=now)
    state = "Ranked again" if undo else "Disqualified"
    why = f"; taken back {ruling.lifted[:10]} ({ruling.lifted_because})" if undo else ""
    console.print(f"{state}: {ruling}{why}", markup=False, highlight=False)
