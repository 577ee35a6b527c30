"""`proctor judge train`: the embedded judge, which learns from rated answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.options import BenchmarkName, Seed, StoreUrl
from proctor.cli.output import console, print_table
from proctor.cli.rating import ratings_in
from proctor.cli.results import DEFAULT_STORE
from proctor.core import number, number_interval

if TYPE_CHECKING:
    from proctor.judges.embedded import Held


def train(
    benchmark: BenchmarkName,
    out: Annotated[Path, typer.Option("--out", help="A new folder for the learned judge.", show_default=False)],
    store: StoreUrl = DEFAULT_STORE,
    seed: Seed = 0,
    alone: Annotated[
        bool, typer.Option("--alone", help="Never compare an answer with other answers to its question.")
    ] = False,
    draws: Annotated[int, typer.Option("--draws", min=100, help="Bootstrap draws behind each interval.")] = 2000,
) -> None:
    """Train the embedded judge on ratings.

    No model is asked. It says how well the judge does by nested cross-validation.

    Example: proctor judge train mediqa-eval --store runs.db --out judge
    """
    from proctor.audits import CorrelationSettings
    from proctor.judges.embedded import (
        EmbeddedJudge,
        Recipe,
        beside_best,
        out_of_fold,
        read_rated,
        refuse_taken,
        scores_of,
    )
    from proctor.runs import Store, people_ratings, similarity_scores

    refuse_taken(out)
    opened = Store(store, create=False)
    scheme, rated = ratings_in(opened, benchmark)
    table = people_ratings(opened, benchmark)
    recipe = Recipe(seed=seed, alone=alone)
    known = read_rated(list(rated.values()))
    validated = scores_of("embedded-judge", list(rated), [(one, out_of_fold(one, recipe)) for one in known])
    texts = similarity_scores(table, rated, scheme)
    _print_held(beside_best(table, [validated], texts, CorrelationSettings(draws=draws, seed=seed)), recipe.folds)
    judge = EmbeddedJudge.train(list(rated.values()), known, recipe)
    judge.save(out)
    counted = ", ".join(f"{len(one.answers)} in {one.answers.language}" for one in known)
    console.print(f"{judge.name} learned from {counted}; written to {out}", markup=False, highlight=False)


def _print_held(rows: Sequence[Held], folds: int) -> None:
    print_table(
        f"Agreement on encounters it did not learn from ({folds} folds, all choices made inside the training folds)",
        ["language", "dimension", ">judge", ">interval", "best on text", ">its", ">difference", ">interval", ">p"],
        [
            [
                *(one.language, one.dimension or "ALL", number(one.judge.value)),
                *(number_interval(one.judge.ci_low, one.judge.ci_high), one.other, number(one.beside.value)),
                *(number(one.difference.value), number_interval(one.difference.ci_low, one.difference.ci_high)),
                "–" if one.difference.p is None else f"{one.difference.p:.2g}",
            ]
            for one in rows
        ],
    )
