"""What an organiser decides: `proctor store disqualify`, `unresolved` and `decide`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.options import BenchmarkName, Conditions, StoreUrl, Systems
from proctor.cli.output import console
from proctor.cli.results import DEFAULT_STORE


def disqualify(
    benchmark: BenchmarkName,
    system: Annotated[str, typer.Option("--system", help="Whom.", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with the time.", show_default=False)],
    store: StoreUrl = DEFAULT_STORE,
    undo: Annotated[bool, typer.Option("--undo", help="Take it back; both stay on record.")] = False,
) -> None:
    """Take a system out of every ranking.

    Answers and scores stay; `results` still shows them.

    Example: proctor store disqualify focus --system team-a --reason "addresses the judge in 12 answers"
    """
    from proctor.runs import Store, reinstate
    from proctor.runs import disqualify as rule_out

    decide = reinstate if undo else rule_out
    ruling = decide(Store(store, create=False), benchmark, system, reason, at=_now())
    state = "Ranked again" if undo else "Disqualified"
    why = f"; taken back {ruling.lifted[:10]} ({ruling.lifted_because})" if undo else ""
    console.print(f"{state}: {ruling}{why}", markup=False, highlight=False)


def unresolved(
    benchmark: BenchmarkName,
    out: Annotated[Path, typer.Option("--out", help="The CSV file to write.", show_default=False)],
    store: StoreUrl = DEFAULT_STORE,
    systems: Systems = None,
    conditions: Conditions = None,
    decided: Annotated[
        bool, typer.Option("--decided", help="Also those that a person has decided, to decide again.")
    ] = False,
) -> None:
    """Write what judges left unresolved to a file.

    Fill in the columns value and reason, and read the file back with `proctor store decide`.

    Example: proctor store unresolved rexsonovqa --out open.csv --store runs.db
    """
    from proctor.runs import Store, write_open

    chosen = (tuple(systems or ()), tuple(conditions or ()))
    count = write_open(Store(store, create=False), benchmark, out, *chosen, decided=decided)
    console.print(f"Rows in {out}: {count}", markup=False, highlight=False, soft_wrap=True)


def decide(
    benchmark: BenchmarkName,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `store unresolved` wrote, filled in.", show_default=False)
    ],
    by: Annotated[str, typer.Option("--by", help="Who decided; kept with the time.", show_default=False)],
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Record a person's decisions on open answers.

    The judge is not asked again for them. A later file replaces decisions of an earlier one; both are kept.

    Example: proctor store decide rexsonovqa open.csv --by "Anna Weber" --store runs.db
    """
    from proctor.runs import Store
    from proctor.runs import decide as record

    found = record(Store(store, create=False), benchmark, file, by=by, at=_now())
    counts = (
        ("Answers decided", found.answers),
        ("of these again", found.again),
        ("decided so before", found.unchanged),
        ("still unresolved", found.left),
    )
    told = "; ".join(f"{name}: {count}" for name, count in counts if count or name == "Answers decided")
    console.print(told, markup=False, highlight=False)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
