"""`proctor import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.options import BenchmarkName, Data, Seed, StoreUrl, TrackName
from proctor.cli.output import console, note
from proctor.cli.results import DEFAULT_STORE
from proctor.core import reader_of


def import_recorded(
    benchmark: BenchmarkName,
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="The recorded answers, in the benchmark's own format.", show_default=False),
    ],
    data: Data = None,
    name: Annotated[
        str,
        typer.Option("--name", help="The system's name in the store. [default: as the file says]", show_default=False),
    ] = "",
    condition: Annotated[
        str,
        typer.Option(
            "--condition", help="What the system had seen. [default: as the files say, else video]", show_default=False
        ),
    ] = "",
    answers_only: Annotated[
        bool, typer.Option("--answers-only", help="Do not read people's ratings in the file.")
    ] = False,
    scorer: Annotated[
        str,
        typer.Option(
            "--scorer",
            help="The file holds this automatic scorer's scores of answers in the store.",
            show_default=False,
        ),
    ] = "",
    track: TrackName = "",
    store: StoreUrl = DEFAULT_STORE,
    seed: Seed = 0,
) -> None:
    """Import answers recorded elsewhere.

    A file of ratings names its systems; people's ratings become scores by human:RATER.

    Their latencies, failures and judge's ratings come with them.

    Example: proctor import rexsonovqa results/gemini-3-pro --data rexsonovqa --name gemini-3-pro
    """
    from proctor.api import import_answers

    if scorer:
        _import_scores(benchmark, path, scorer, store)
        return
    rated = reader_of(benchmark, track).ratings
    if rated and name:
        raise typer.BadParameter("the file names its systems", param_hint="--name")
    if answers_only and not rated:
        raise typer.BadParameter(f"files of {benchmark} hold no ratings", param_hint="--answers-only")
    if not rated and not name:
        raise typer.BadParameter("needed: the file does not name its system", param_hint="--name")
    made = import_answers(
        benchmark,
        path,
        name=name,
        condition=condition,
        data=data,
        store=store,
        track=track,
        seed=seed,
        answers_only=answers_only,
    )
    for line in made.notes:
        note(line)
    for line in made.done:
        console.print(line, markup=False, highlight=False)


def _import_scores(benchmark: str, path: Path, scorer: str, store: str) -> None:
    from proctor.runs import Store, add_recorded_scores, answer_keys

    reader = reader_of(benchmark)
    if not reader.ratings:
        raise typer.BadParameter(f"files of {benchmark} hold no scores", param_hint="--scorer")
    opened = Store(store, create=False)
    found = reader.read_scores(path, answer_keys(opened, benchmark))
    added = add_recorded_scores(opened, benchmark, scorer, found.scores)
    for line in found.notes:
        note(f"{scorer}: {line}")
    console.print(f"{added} scores by {scorer} in {opened.shown}", markup=False, highlight=False)
