"""`proctor train`: judges that learn from rated answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.options import Seed
from proctor.cli.output import console, print_table

if TYPE_CHECKING:
    from proctor.judges.embedded import Held

__all__ = ["group"]


def group() -> typer.Typer:
    """The commands below `proctor train`."""
    trains = typer.Typer(no_args_is_help=True, help="Trains judges on rated answers.")
    trains.callback()(_training)
    trains.command("embedded-judge")(embedded_judge)
    return trains


def _training() -> None:
    """Trains judges on rated answers."""


def embedded_judge(
    ratings: Annotated[
        Path, typer.Option("--ratings", help="The clinicians' ratings (MEDIQA-EVAL).", show_default=False)
    ],
    encounters: Annotated[
        Path, typer.Option("--encounters", help="Questions and references.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option("--out", help="A new folder for the learned judge.", show_default=False)
    ],
    seed: Seed = 0,
    alone: Annotated[
        bool, typer.Option("--alone", help="Never compare an answer with other answers to its question.")
    ] = False,
    draws: Annotated[
        int, typer.Option("--draws", min=100, help="Bootstrap draws behind each interval.")
    ] = 2000,
) -> None:
    """Learns how clinicians rate answers, without any model; says how well by nested cross-validation.

    Example: proctor train embedded-judge --ratings ratings.csv --encounters encounters.jsonl --out judge
    """
    from proctor.audit import CorrelationSettings
    from proctor.benchmarks.mediqa_eval import read_encounters, read_native_ratings, text_scores
    from proctor.benchmarks.mediqa_eval.answers import rated_cases
    from proctor.judges.embedded import (
        EmbeddedJudge,
        Recipe,
        beside_best,
        out_of_fold,
        read_rated,
        refuse_taken,
        scores_of,
    )

    refuse_taken(out)
    table, known_encounters = read_native_ratings(ratings), read_encounters(encounters)
    recipe = Recipe(seed=seed, alone=alone)
    rated = rated_cases(table, known_encounters, file=encounters)
    known = read_rated(list(rated.values()))
    validated = scores_of("embedded-judge", list(rated), [(one, out_of_fold(one, recipe)) for one in known])
    texts = text_scores(table, known_encounters, ["all"], file=encounters)
    _print_held(
        beside_best(table, [validated], texts, CorrelationSettings(draws=draws, seed=seed)), recipe.folds
    )
    judge = EmbeddedJudge.train(list(rated.values()), known, recipe)
    judge.save(out)
    counted = ", ".join(f"{len(one.answers)} in {one.answers.language}" for one in known)
    console.print(f"{judge.name} learned from {counted}; written to {out}", markup=False, highlight=False)


def _print_held(rows: Sequence[Held], folds: int) -> None:
    print_table(
        f"Agreement on encounters it did not learn from ({folds} folds, all choices made inside the training folds)",
        [
            "language",
            "dimension",
            ">judge",
            ">interval",
            "best on text",
            ">its",
            ">difference",
            ">interval",
            ">p",
        ],
        [
            [
                *(one.language, one.dimension or "ALL", _number(one.judge.value)),
                *(_span(one.judge.ci_low, one.judge.ci_high), one.other, _number(one.beside.value)),
                *(_number(one.difference.value), _span(one.difference.ci_low, one.difference.ci_high)),
                "–" if one.difference.p is None else f"{one.difference.p:.2g}",
            ]
            for one in rows
        ],
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _span(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.3f} to {high:.3f}"
