"""Which guesser is best, chosen on some groups and tried on others, so that choosing does not flatter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from proctor.build.audit.significance import surplus_p
from proctor.core import generator

__all__ = ["FOLDS", "chosen_for_folds", "cross_fit", "fold_of_groups", "own_fold"]

FOLDS = 5
"""Groups are dealt to at most this many folds."""

_LEVEL = 0.05  # how surely a guesser must beat chance on the other folds to be chosen

_Rows = NDArray[np.int64]
_Hits = NDArray[np.bool_]


def fold_of_groups(groups: Sequence[str], seed: int) -> _Rows:
    """The fold of each item: whole groups, dealt in an order by lot to the fold with the fewest items.

    There are `FOLDS` of them, or as many as groups where those are fewer.
    """
    names, sizes = np.unique(np.asarray(groups), return_counts=True)
    order = generator(seed, "audit", "folds").permutation(len(names))
    filled = np.zeros(min(FOLDS, len(names)), dtype=np.int64)
    fold_of: dict[str, int] = {}
    for index in order:
        fold = int(filled.argmin())
        fold_of[str(names[index])] = fold
        filled[fold] += sizes[index]
    return np.array([fold_of[group] for group in groups], dtype=np.int64)


def cross_fit(guess: Callable[[_Rows, _Rows], _Hits], fold: _Rows) -> _Hits:
    """`hits[i, f]`: item i guessed by a fit that saw neither the fold of i nor the fold f.

    `guess(train, test)` gets row numbers and gives the hits of the test rows. Leaving out the folds
    f and g gives the same fit in either order, so K folds take K(K+1)/2 fits. Needs three folds: one
    to try on, one to choose by, one to learn from.
    """
    folds = int(fold.max()) + 1
    if folds < 3:
        raise ValueError(f"cross-fitting takes at least 3 folds, not {folds}")
    hits = np.zeros((len(fold), folds), dtype=np.bool_)
    for one in range(folds):
        for other in range(one, folds):
            train = np.flatnonzero((fold != one) & (fold != other))
            test = np.flatnonzero((fold == one) | (fold == other))
            hits[test, np.where(fold[test] == one, other, one)] = guess(train, test)
    return hits


def own_fold(hits: _Hits, fold: _Rows) -> _Hits:
    """Of `cross_fit`'s hits those of the fit that saw all folds but the item's own."""
    return np.asarray(hits[np.arange(len(fold)), fold])


def chosen_for_folds(
    hits: NDArray[np.bool_], fold: _Rows, groups: _Rows, chance: NDArray[np.float64] | None
) -> _Rows:
    """The guesser selected for each fold by the other folds alone, by its place in `hits`.

    `hits` is guessers × items × folds as of `cross_fit`: for fold f only fits that never saw f count.
    The first guesser is the one to fall back on. Another is selected only if it has the most hits of
    those that beat `chance` on the other folds (one-sided, 5 %, Bonferroni over the guessers); of
    equals the first. Without this bar the luckiest of many useless guessers would be selected in
    every fold at once, and the interval of its hits would be too narrow by a third. Where the
    format knows no chance level (None), the guesser with the most hits is selected.
    """
    chosen = np.zeros(hits.shape[2], dtype=np.int64)
    for left_out in range(hits.shape[2]):
        others = fold != left_out
        seen = hits[:, others, left_out]
        scores = seen.sum(axis=1)
        if chance is not None:
            p = surplus_p(seen, chance[others], groups[others])
            scores = np.where(p * len(hits) < _LEVEL, scores, -1)
            scores[0] = 0
        chosen[left_out] = scores.argmax()
    return chosen
