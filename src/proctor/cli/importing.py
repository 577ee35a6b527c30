"""`proctor import`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.options import BenchmarkName, Data, Seed, StoreUrl, TrackName, reader_of
from proctor.cli.output import console, note
from proctor.cli.results import DEFAULT_STORE
from proctor.cli.running import note_skipped

__all__ = ["import_recorded"]


def import_recorded(
    benchmark: BenchmarkName,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="The recorded answers, in the benchmark's own format.", show_default=False
        ),
    ],
    data: Data,
    name: Annotated[str, typer.Option("--as", help="The system's name in the store.", show_default=False)],
    condition: Annotated[
        str,
        typer.Option(
            "--condition",
            help="What the system had seen. [default: as the files say, else video]",
            show_default=False,
        ),
    ] = "",
    track: TrackName = "",
    store: StoreUrl = DEFAULT_STORE,
    seed: Seed = 0,
) -> None:
    """Answers that were recorded elsewhere, with their latencies, failures and judge's marks.

    Example: proctor import rexsonovqa results/gemini-3-pro --data rexsonovqa --as gemini-3-pro
    """
    from proctor.core import InputError
    from proctor.media import CONDITIONS
    from proctor.metrics import code_scorers
    from proctor.runs import Store, add_floor, import_answers

    if condition:
        CONDITIONS.get(condition)
    reader = reader_of(benchmark, track)
    loaded = reader.load(data, seed=seed)
    recorded = reader.read_recorded(path, loaded)
    if condition and recorded.condition and condition != recorded.condition:
        raise InputError(
            path, "--condition", found=condition, expected=f"{recorded.condition}, as the files' names say"
        )
    condition = condition or recorded.condition or "video"
    scorers = code_scorers()
    opened = Store(store)
    asyncio.run(import_answers(opened, loaded, recorded, name=name, condition=condition, scorers=scorers))
    asyncio.run(add_floor(opened, loaded, scorers, seed=seed))
    note_skipped(loaded)
    for line in recorded.notes:
        note(line)
    console.print(
        f"{len(recorded.answers)} answers and {len(recorded.votes)} votes as {name} / {condition} in {opened.shown}",
        markup=False,
        highlight=False,
    )
