"""Guessers for formats without options: the usual answer, and the answer to the nearest question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.build.audit.contest import Guesser
from proctor.build.audit.features import tfidf
from proctor.build.audit.selection import cross_fit
from proctor.core import Item
from proctor.metrics.accuracy import is_right
from proctor.systems.majority import Constants

__all__ = ["answer_guessers", "constant_share"]

_Rows = NDArray[np.int64]
_Guess = Callable[[_Rows, _Rows], NDArray[np.bool_]]
_CHUNK = 500  # questions compared at a time


def constant_share(items: Sequence[Item]) -> float:
    """The share that the best constant answer gets right, chosen in sample: what `majority` scores."""
    everything = np.arange(len(items))
    return float(_usual(items)(everything, everything).mean())


def answer_guessers(items: Sequence[Item], fold: _Rows) -> list[Guesser]:
    """Two guessers, learned from other groups only. Needs three folds (see `cross_fit`)."""
    return [
        Guesser("usual-answer", "the best constant answer of other groups", "learned", cross_fit(_usual(items), fold)),
        Guesser("nearest-question", "the answer to the most similar question of other groups", "learned", cross_fit(_nearest(items), fold)),
    ]  # fmt: skip


def _usual(items: Sequence[Item]) -> _Guess:
    def guess(train: _Rows, test: _Rows) -> NDArray[np.bool_]:
        constants = Constants([items[row] for row in train])
        tried = [items[row] for row in test]
        return np.array(
            [constants.knows(item) and is_right(item, constants.answer(item)) for item in tried],
            dtype=np.bool_,
        )

    return guess


def _nearest(items: Sequence[Item]) -> _Guess:
    weights = tfidf([item.question for item in items], (1, 2))

    def guess(train: _Rows, test: _Rows) -> NDArray[np.bool_]:
        donors = train[_most_similar(weights[test], weights[train])]
        return np.array([_lends(items[donor], items[row]) for donor, row in zip(donors, test, strict=True)])

    return guess


def _most_similar(rows: Any, among: Any) -> _Rows:
    """For each row the place of the most similar one, of equals the first."""
    places = [
        np.asarray((rows[start : start + _CHUNK] @ among.T).toarray()).round(9).argmax(axis=1)
        for start in range(0, rows.shape[0], _CHUNK)
    ]
    return np.concatenate(places)


def _lends(donor: Item, item: Item) -> bool:
    return donor.reference is not None and is_right(item, donor.reference.answer)
