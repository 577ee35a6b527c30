"""How often the repetitions of an item differ, run by run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor import stats
from proctor.results.answer_index import AnswerIndex
from proctor.results.answer_repetitions import RESULT, answer_codes, results_differ
from proctor.runs import Run, Store
from proctor.stats import Estimate, Resampling

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Flips:
    """How often the `repetitions` of a run differ: `answers` is the share of items whose answers are not all the same, over
    items with at least two (one that can't be read equals no other), `results` the share of items of which some answers
    are right, partial or wrong and others another of these, over items with at least two results. Both have an interval
    over groups; without such items the value is None."""

    run: Run
    repetitions: int
    answers: Estimate
    results: Estimate


def repetition_flips(store: Store, index: AnswerIndex, *, draws: int = 2000, seed: int = 0) -> list[Flips]:
    """The flips of each run of an index that was asked several times."""
    plan = Resampling(draws=draws, seed=seed, bounds=(0.0, 1.0), shares=True)

    def share(differ: Mask, counted: Mask) -> Estimate:
        return stats.mean_interval(differ[counted].astype(np.float64), index.items.group[counted], plan)

    found = []
    for run, states in index.repeated:
        alike = stats.same_answers(answer_codes(store, run, index.items, states))
        decided = (RESULT[states] >= 0).sum(axis=1) > 1
        answers = share(alike < 1, ~np.isnan(alike))
        found.append(Flips(run, states.shape[1], answers, share(results_differ(states), decided)))
    return found
