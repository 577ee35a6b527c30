"""The rationales of a file of predictions: F1 by item, and the marks that stand on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proctor.benchmarks.clinicalskillqa.native import NativePrediction, NativeReference
from proctor.core import Metric
from proctor.metrics.marks import Mark
from proctor.metrics.ordering import Comparison
from proctor.metrics.text import RATIONALE_F1, BertScore, MissingExtraError, rationale_f1
from proctor.stats import correlation, mean_interval, sums_interval
from proctor.stats.clusters import Floats

__all__ = [
    "NO_RATIONALE_SCORE",
    "OVERALL",
    "Rationales",
    "rationale_marks",
    "score_rationales",
    "tracking_mark",
]

NO_RATIONALE_SCORE = "no text similarity was computed for the rationales"
"""Why the rationale's F1, and with it the overall score, is not there."""

OVERALL = Metric("overall", "Overall score (0–100)", high=100.0, formats=("ordering",))
TRACKING = Metric(
    "rationale_tracks_order",
    "Rationale F1 with share of pairs in order (Spearman)",
    low=-1.0,
    formats=("ordering",),
)


@dataclass(frozen=True, slots=True)
class Rationales:
    """F1 by item, 0 to 1, of all items whose reference has a rationale; the BERTScore's hash, and what a reader
    should know."""

    f1: dict[str, float]
    hash: str
    notes: tuple[str, ...]


def score_rationales(
    keys: Mapping[str, NativeReference],
    answers: Mapping[str, NativePrediction],
    load: Callable[[], BertScore] | None,
) -> tuple[Rationales | None, str]:
    """The rationales' scores, or None and the reason. An item without an answer, or without a rationale, scores 0; one
    whose reference has no rationale has no score."""
    if load is None:
        return None, NO_RATIONALE_SCORE
    known = {name: key.rationale for name, key in keys.items() if key.rationale.strip()}
    if not known:
        return None, "no reference has a rationale"
    try:
        bertscore = load()
    except MissingExtraError as error:
        return None, str(error)
    said = {
        name: answers[name].rationale if name in answers and answers[name].order else "" for name in known
    }
    f1, notes = rationale_f1({name: (said[name], known[name]) for name in known}, bertscore)
    silent = sum(name in answers and bool(answers[name].order) and not said[name].strip() for name in known)
    more = [f"{silent} of {len(keys)} answers have no rationale and score 0"] if silent else []
    if len(known) < len(keys):
        more.append(
            f"{len(keys) - len(known)} of {len(keys)} references have no rationale: F1 is over the others"
        )
    return Rationales(f1, bertscore.hash, (*more, *notes)), ""


def rationale_marks(
    compared: Mapping[str, Comparison],
    groups: Sequence[str],
    f1: Mapping[str, float],
    *,
    weights: tuple[float, float],
    draws: int,
    seed: int,
) -> list[Mark]:
    """The mean F1 of some items and their overall score (`weights` are α and β), with intervals clustered by
    `groups`; none where no item has an F1."""
    scored = [(f1[name], group) for name, group in zip(compared, groups, strict=True) if name in f1]
    if not scored:
        return []
    values, theirs = zip(*scored, strict=True)
    mean = mean_interval(values, theirs, draws=draws, seed=seed, bounds=(0, 1))
    columns = np.array(
        [
            (one.exact, 1, one.adjacent_right, one.frames - 1, f1.get(name, 0.0), name in f1)
            for name, one in compared.items()
        ],
        dtype=np.float64,
    )

    def overall(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore"):  # a sample without any rationale has no score
            task, pair, f1_mean = (sums[:, k] / sums[:, k + 1] for k in (0, 2, 4))
        alpha, beta = weights
        return np.asarray(100 * (beta * (alpha * task + (1 - alpha) * pair) + (1 - beta) * f1_mean))

    whole = sums_interval(columns, groups, overall, draws=draws, seed=seed, bounds=(0, 100))
    return [Mark(RATIONALE_F1, mean), Mark(OVERALL, whole)]


def tracking_mark(
    compared: Mapping[str, Comparison],
    groups: Sequence[str],
    f1: Mapping[str, float],
    *,
    draws: int,
    seed: int,
) -> Mark:
    """Whether better rationales go with better orders, over the answered items: Spearman's correlation of F1 and the
    share of pairs in order. The task's paper remarks that they need not."""
    rows = [
        (f1[name], one.adjacent_right / (one.frames - 1), group)
        for (name, one), group in zip(compared.items(), groups, strict=True)
        if name in f1 and one.answered
    ]
    scores, orders, theirs = zip(*rows, strict=True) if rows else ((), (), ())
    return Mark(TRACKING, correlation(scores, orders, theirs, "spearman", draws=draws, seed=seed))
