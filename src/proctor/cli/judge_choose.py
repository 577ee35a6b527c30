"""`proctor judge choose`: which judge does best on each dimension, and how good it is to choose so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.options import BenchmarkName, Seed, StoreUrl
from proctor.cli.output import console, note, print_table
from proctor.cli.rating import refuse_unwritable
from proctor.cli.results import DEFAULT_STORE
from proctor.core import write_whole

if TYPE_CHECKING:
    from proctor.judges.dimensions.fitted import HonestRow


def choose(
    benchmark: BenchmarkName,
    out: Annotated[Path, typer.Option("--out", help="The choice to be written (JSON).", show_default=False)],
    scorers: Annotated[
        list[str] | None,
        typer.Option(
            "--scorer", help="A judge or metric to choose from. [default: all in the store]", show_default=False
        ),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Parts of the groups.")] = 5,
    draws: Annotated[int, typer.Option("--draws", min=100, help="Bootstrap draws behind each interval.")] = 2000,
    seed: Seed = 0,
) -> None:
    """Choose a scorer for each dimension.

    The result is for per-dimension with choice=FILE. How good that is, is stated for encounters that the choice was not made on (folds that part no encounter):
    on the ratings that it was chosen by, the best of several looks better than it is.

    Example: proctor judge choose mediqa-eval --store runs.db --out choice.json
    """
    from proctor.audits import CorrelationSettings
    from proctor.judges.dimensions.fitted import choose_judges
    from proctor.runs import Store, compared

    refuse_unwritable(out)
    table, given = compared(Store(store, create=False), benchmark, tuple(scorers or ()))
    found = choose_judges(table, given, folds=folds, seed=seed, settings=CorrelationSettings(draws=draws, seed=seed))
    write_whole(out, found.model_dump_json(indent=1) + "\n")
    _tell(found.honest, folds)
    console.print(f"{out}", markup=False, highlight=False)


def _tell(rows: Sequence[HonestRow], folds: int) -> None:
    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.3f}"

    print_table(
        f"Agreement on encounters that the choice was not made on ({folds} folds), and on those it was made on",
        ["language", "dimension", "chosen", ">in folds", ">agreement", ">interval", ">looks like"],
        [
            [
                *(one.language, one.dimension or "ALL", one.chosen or "–"),
                f"{one.same_in_folds} of {folds}" if one.dimension else "–",
                number(one.value),
                f"{number(one.ci_low)} to {number(one.ci_high)}",
                number(one.apparent),
            ]
            for one in rows
        ],
    )
    for one in rows:
        if one.dimension and one.reason:
            note(f"{one.language}, {one.dimension}: no agreement: {one.reason}")
        elif one.dimension and one.folds < folds:
            note(
                f"{one.language}, {one.dimension}: in {folds - one.folds} of {folds} folds all ratings are the same: left out"
            )
