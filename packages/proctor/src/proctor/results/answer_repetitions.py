"""Items that a run answered several times: where its answers, or their results, differ from one repetition to another,
and how often."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proctor import stats
from proctor.results.answer_states import CODE_OF, RESULTS, STATES, AnswerState
from proctor.results.arrays import ItemTable, load_repeated_values
from proctor.results.run_scores import NO_ANSWER, NO_REPETITION
from proctor.runs import Run, Store
from proctor.stats import Estimate, Resampling

if TYPE_CHECKING:
    from proctor.results.answer_index import AnswerIndex

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_ABSENT = (AnswerState.NOT_ASKED, AnswerState.FAILED, AnswerState.UNSUPPORTED)


def _by_state(values: Iterable[tuple[Iterable[AnswerState], int]]) -> Ints:
    """A value for each code of a state; -1 for those that are not named."""
    found = np.full(len(STATES), -1, dtype=np.int64)
    for states, value in values:
        found[[CODE_OF[state] for state in states]] = value
    return found


RESULT = _by_state((RESULTS[name], number) for number, name in enumerate(("right", "partial", "wrong")))
"""By the code of a state, the result that it is: 0 right, 1 partial, 2 wrong, -1 missing."""

_THERE = _by_state([([state for state in STATES if state not in _ABSENT], NO_ANSWER), (_ABSENT, NO_REPETITION)])


def results_differ(states: Ints) -> Mask:
    """The items with repetitions of which some are right, partial or wrong and others another of these; what is missing
    (failed, not asked, not scored) differs from nothing. `states` are codes of `STATES` (items × repetitions).

    >>> right, wrong, failed = (CODE_OF[AnswerState(one)] for one in ("right", "refused", "failed"))
    >>> results_differ(np.array([[right, wrong], [right, right], [right, failed]])).tolist()
    [True, False, False]
    """
    found = RESULT[states]
    most = found.max(axis=1, initial=-1)
    least = np.where(found < 0, len(STATES), found).min(axis=1, initial=len(STATES))
    differ: Mask = (most >= 0) & (least < most)
    return differ


def answer_codes(store: Store, run: Run, items: ItemTable, states: Ints) -> Ints:
    """The code of each answer of a run (items × repetitions): equal codes are equal values; `NO_ANSWER` for one that can't
    be read, `NO_REPETITION` where there is none. `states` are codes of `STATES`."""
    codes = _THERE[states]
    for code, (_, rows, repetitions) in enumerate(load_repeated_values(store, run, items)):
        inside = repetitions < codes.shape[1]
        codes[rows[inside], repetitions[inside]] = code
    return codes


def answers_differ(store: Store, run: Run, items: ItemTable, states: Ints) -> Mask:
    """The items whose repetitions are not all the same answer; one with fewer than two differs from nothing, and an answer
    that can't be read equals no other. Arguments are those of `answer_codes`."""
    differ: Mask = stats.same_answers(answer_codes(store, run, items, states)) < 1
    return differ


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
