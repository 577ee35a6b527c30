"""`proctor judge`: judges of dimensions tuned on rated answers, and documents for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.judge_choose import choose
from proctor.cli.judge_examples import examples
from proctor.cli.judge_index import index
from proctor.cli.judge_train import train
from proctor.cli.options import BenchmarkName, Seed, StoreUrl
from proctor.cli.output import console
from proctor.cli.rating import refuse_unwritable
from proctor.cli.results import DEFAULT_STORE
from proctor.cli.tree import add, new_group
from proctor.core import write_whole


def group() -> typer.Typer:
    """The commands below `proctor judge`."""
    judges = new_group("Tune judges on ratings; index documents.")
    add(judges, "calibrate", calibrate)
    add(judges, "examples", examples)
    add(judges, "choose", choose)
    add(judges, "train", train)
    add(judges, "index", index)
    return judges


def calibrate(
    benchmark: BenchmarkName,
    scorer: Annotated[str, typer.Option("--scorer", help="The judge whose scores are calibrated.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The calibration to be written (JSON).", show_default=False)],
    store: StoreUrl = DEFAULT_STORE,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Parts of the groups that are left out in turn.")] = 5,
    seed: Seed = 0,
) -> None:
    """Calibrate a judge's scores on ratings.

    The result is for logprob-judge with calibration=FILE. An encounter that it was learned from is later judged by a curve that was learned without it.

    Example: proctor judge calibrate mediqa-eval --scorer logprob-judge[openai:gpt-4o] --out calibration.json
    """
    from proctor.judges.dimensions.fitted import fit_calibration, rated_scores
    from proctor.runs import Store, compared

    refuse_unwritable(out)
    table, (given,) = compared(Store(store, create=False), benchmark, (scorer,))
    learned = fit_calibration(rated_scores(given, table), judge=given.name, folds=folds, seed=seed)
    write_whole(out, learned.model_dump_json(indent=1) + "\n")
    console.print(
        f"{len(learned.curves)} curves from {len(learned.folds)} encounters in {folds} folds: {out}",
        markup=False,
        highlight=False,
    )
