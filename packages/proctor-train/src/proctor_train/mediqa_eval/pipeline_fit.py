"""The fit of `local-pipeline`: ridge regression of ratings on signals, in folds of whole encounters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import JsonValue

from proctor.judges.dimensions import PerFold, RatedCase, encounter_scores
from proctor_train import encounter_folds, held_out_agreement, refuse_constant
from proctor_train.mediqa_eval.pipeline import LinearRating, PipelineFit, Signals

PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
"""The ridge penalties to choose from, each multiplied by the number of answers."""

_DIGITS = 12


def fit_pipeline(
    rated: Sequence[RatedCase],
    signals: Sequence[Signals],
    settings: Mapping[str, JsonValue],
    *,
    folds: int = 5,
    seed: int = 0,
) -> PipelineFit:
    """Fits each language and dimension on everything and without each of `folds` folds of encounters.

    `signals` are those of each answer, `settings` those of their `SignalReader`. A language's penalty has the best mean
    agreement (see `held_out_agreement`) in inner folds of the training answers; it is chosen again for every left-out
    fold. Raises `InputError` for fewer encounters than folds, and for constant ratings on a dimension of a language.
    """
    parts = encounter_folds(rated, folds, seed)
    fold = {key: number for number, (_, held) in enumerate(parts) for key in held}
    ratings: dict[str, PerFold[LinearRating]] = {}
    levels: dict[str, tuple[float, ...]] = {}
    penalties: dict[str, float] = {}
    for language in dict.fromkeys(rated_case.case.language for rated_case in rated):
        own = [k for k, one in enumerate(rated) if one.case.language == language]
        refuse_constant([rated[k] for k in own])
        everything, penalties[language] = _learned([rated[k] for k in own], [signals[k] for k in own], folds, seed)
        without = []
        for number in range(folds):
            rest = [k for k in own if fold[k] != number]
            without.append(_learned([rated[k] for k in rest], [signals[k] for k in rest], folds, seed)[0])
        for dimension in rated[own[0]].case.dimensions:
            key = f"{language}/{dimension.name}"
            levels[key] = dimension.levels
            ratings[key] = PerFold(
                everything=everything[dimension.name], without=[some[dimension.name] for some in without]
            )
    return PipelineFit(
        signals=dict(settings),
        seed=seed,
        folds={rated[k].case.encounter: number for k, number in sorted(fold.items())},
        scores={
            score: number for k, number in sorted(fold.items()) for score in sorted(encounter_scores(rated[k].case))
        },
        levels=levels,
        penalties=penalties,
        ratings=ratings,
    )


def _learned(
    rated: Sequence[RatedCase], signals: Sequence[Signals], folds: int, seed: int
) -> tuple[dict[str, LinearRating], float]:
    """A function for each dimension, and the penalty, which is chosen in folds of these answers."""
    parts = encounter_folds(rated, folds, seed)
    held: dict[float, list[dict[str, float]]] = {one: [{} for _ in rated] for one in PENALTIES}
    for inside, outside in parts:
        found = _ridge([rated[k] for k in inside], [signals[k] for k in inside], PENALTIES)
        for penalty, functions in found.items():
            for k in outside:
                held[penalty][k] = {name: one.relative(signals[k].values) for name, one in functions.items()}
    best = max(PENALTIES, key=lambda one: held_out_agreement(rated, held[one], draws=0)[0].value or 0.0)
    return _ridge(rated, signals, [best])[best], best


def _ridge(
    rated: Sequence[RatedCase], signals: Sequence[Signals], penalties: Sequence[float]
) -> dict[float, dict[str, LinearRating]]:
    """For each penalty a function of each dimension. Constant signals get no weight."""
    names = list(signals[0].values)
    table = np.array(
        [[np.nan if (value := signal.values[name]) is None else value for name in names] for signal in signals]
    )
    known = ~np.isnan(table)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, table, 0.0).sum(axis=0) / count
    apart = np.where(known, table - centre, 0.0)
    spread = np.sqrt((apart**2).sum(axis=0) / count)
    spread = np.where(spread > 1e-9, spread, np.inf)
    standard = apart / spread
    found: dict[float, dict[str, LinearRating]] = {one: {} for one in penalties}
    for dimension in rated[0].case.dimensions:
        rows = [k for k, one in enumerate(rated) if dimension.name in one.values]
        target = np.array([rated[k].values[dimension.name] for k in rows])
        design, start = standard[rows], float(target.mean())
        middle = design.mean(axis=0)
        centred = design - middle
        for penalty in penalties:
            product = centred.T @ centred + penalty * len(rows) * np.eye(len(names))
            weights = np.linalg.solve(product, centred.T @ (target - start))
            predicted = design @ weights
            found[penalty][dimension.name] = LinearRating(
                start=_plain(start - middle @ weights),
                weights=dict(zip(names, map(_plain, weights / spread), strict=True)),
                centres=dict(zip(names, map(_plain, centre), strict=True)),
                mean=_plain(start - middle @ weights + predicted.mean()),
                spread=_plain(predicted.std()) or 1.0,
            )
    return found


def _plain(value: float | np.floating[Any]) -> float:
    return round(float(value), _DIGITS)
