"""What the right answers of other items give away: baselines that were told them, and what pools of options cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.audits.items.options import OptionTable, tfidf, words
from proctor.core import OPTION_POOL, Item
from proctor.stats import Estimate, Resampling, linked, mean_interval

_Rows = NDArray[np.int64]
_Bools = NDArray[np.bool_]
_CHUNK = 500  # questions compared at a time


@dataclass(frozen=True)
class OptionPools:
    """`pools` of groups within which right answers serve as wrong options of other items. `known` is the accuracy of
    who knows the right answers of all other groups, those of the pool too, and takes the option that is right there
    least often; the baselines are never told answers of the own pool."""

    pools: int
    known: Estimate


def fold_units(items: Sequence[Item]) -> list[str]:
    """What is kept together in folds: the group, and all groups that an option pool links."""
    labels = [
        [("group", item.group), *([("pool", item.tags[OPTION_POOL])] if OPTION_POOL in item.tags else [])]
        for item in items
    ]
    if not any(OPTION_POOL in item.tags for item in items):
        return [item.group for item in items]
    return [f"{code:06d}" for code in linked(labels)]


def option_pools(table: OptionTable, right: _Bools, *, draws: int, seed: int) -> OptionPools | None:
    """What the pools cost; None where no item is in one."""
    pools = {str(item.tags[OPTION_POOL]) for item in table.items if OPTION_POOL in item.tags}
    if not pools:
        return None
    said = _phrases(table)
    everywhere, in_group = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for row, item in enumerate(table.items):
        of_item = {said[row][place] for place in np.flatnonzero(right[row])}
        everywhere.update(of_item)
        in_group[item.group].update(of_item)
    scores = np.zeros(table.present.shape)
    for row, item in enumerate(table.items):
        for place, phrase in enumerate(said[row]):
            scores[row, place] = in_group[item.group][phrase] - everywhere[phrase]
    groups = np.unique([item.group for item in table.items], return_inverse=True)[1]
    plan = Resampling(draws=draws, seed=seed, bounds=(0.0, 1.0))
    return OptionPools(len(pools), mean_interval(table.hits(scores, right).astype(np.float64), groups, plan))


def told_answers(table: OptionTable, right: _Bools) -> dict[tuple[str, str], Callable[[_Rows, _Rows], _Bools]]:
    """Baselines that are told the right answers of the training rows, by name and label."""
    products = _similar(table, right)
    number: dict[str, int] = {}
    said = np.zeros(table.present.shape, dtype=np.int64)
    said[table.present] = [number.setdefault(one, len(number)) for phrases in _phrases(table) for one in phrases]

    def recurring(sign: int) -> Callable[[_Rows, _Rows], _Bools]:
        def guess(train: _Rows, test: _Rows) -> _Bools:
            known = np.bincount(said[train][right[train]], minlength=len(number))
            return table.hits(sign * known[said].astype(np.float64), right)[test]

        return guess

    return {
        ("right-elsewhere", "the option that is right most often in other groups"): recurring(1),
        ("not-right-elsewhere", "the option that is right least often in other groups"): recurring(-1),
        ("similar-questions", "the option most like the right answers to similar questions of other groups"): products,
    }


def _phrases(table: OptionTable) -> list[list[str]]:
    return [[" ".join(words(option)) for option in item.options] for item in table.items]


def _similar(table: OptionTable, right: _Bools) -> Callable[[_Rows, _Rows], _Bools]:
    asked: Any = tfidf([item.question for item in table.items], (1, 2))
    offered: Any = tfidf([option for item in table.items for option in item.options], (1, 2))
    first = np.concatenate([[0], np.cumsum(table.counts)[:-1]])
    key = first + right.argmax(axis=1)

    def guess(train: _Rows, test: _Rows) -> _Bools:
        scores = np.zeros(table.present.shape)
        answers = asked[train].T @ offered[key[train]]  # what words of questions have to do with words of right options
        for start in range(0, len(test), _CHUNK):
            rows = test[start : start + _CHUNK]
            # The answers to similar questions, weighed by how similar they are: one text for each row.
            expected = asked[rows] @ answers
            for place in range(table.width):
                there = table.present[rows, place]
                options = offered[first[rows[there]] + place]
                products = np.asarray(options.multiply(expected[there]).sum(axis=1), dtype=np.float64).ravel()
                scores[rows[there], place] = products.round(9)
        return table.hits(scores, right)[test]

    return guess
