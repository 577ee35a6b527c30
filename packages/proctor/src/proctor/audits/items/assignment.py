"""Answering all items at once: each option text is chosen once at most, so that the items' options tell about each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.audits.items.options import OptionTable
from proctor.core import generator
from proctor.stats import linked

_Floats = NDArray[np.float64]
_Bools = NDArray[np.bool_]
_Rows = NDArray[np.int64]

MOST_LINKED = 1500
"""The largest number of items that are assigned at once: an assignment takes the square of it in memory."""

_WORTH = 0.1
_NEVER = -1e9  # the score of a text that an item does not offer


class Assignment:
    """The assignment of option texts to the items that offer them, each text to one item at most, with the highest sum of
    scores (Kuhn and Munkres). Texts are equal if their words are.

    Items are assigned together if shared texts link them, directly or through other items. Where linked items have fewer
    texts than there are items, or are more than `MOST_LINKED`, each is answered alone, by its highest score.
    """

    def __init__(self, table: OptionTable) -> None:
        self._table = table
        codes: dict[str, int] = {}
        self._text = np.full(table.present.shape, -1)
        for row, phrases in enumerate(table.phrases):
            self._text[row, : len(phrases)] = [codes.setdefault(phrase, len(codes)) for phrase in phrases]
        part = linked([[int(code) for code in own[own >= 0]] for own in self._text])
        self._parts = [rows for rows in _split(part) if self._fits(rows)]

    def _fits(self, rows: _Rows) -> bool:
        texts = np.unique(self._text[rows][self._table.present[rows]])
        return 2 <= len(rows) <= min(MOST_LINKED, len(texts))

    @property
    def applies(self) -> bool:
        """Whether enough items are assigned together to be worth a try: a tenth of them."""
        return sum(map(len, self._parts)) >= max(2, _WORTH * len(self._table.items))

    def hits(self, scores: _Floats, right: _Bools, rows: _Rows) -> _Bools:
        """Whether each of `rows` is answered, if these items alone are seen at once. `scores` and `right` are items ×
        options; ties are broken by the table's lots."""
        found = self._table.hits(scores, right)
        lots = self._table.lots * 1e-9 * max(1.0, float(np.abs(scores).max(initial=0.0)))
        asked = np.zeros(len(found), dtype=np.bool_)
        asked[rows] = True
        for part in self._parts:
            own = part[asked[part]]
            if len(own) > 1:
                found[own] = self._assigned((scores + lots)[None, own], right, own)[0]
        return np.asarray(found[rows])

    def simulated(self, scores: _Floats, right: _Bools) -> float:
        """The accuracy over several draws of scores (draws × items × options) with all items seen at once."""
        hits = np.stack([self._table.hits(drawn, right) for drawn in scores])
        for part in self._parts:
            hits[:, part] = self._assigned(scores[:, part], right, part)
        return float(hits.mean())

    def _assigned(self, scores: _Floats, right: _Bools, rows: _Rows) -> _Bools:
        """For each draw of the scores of `rows` (draws × rows × options) whether the assigned option is right."""
        from scipy.optimize import linear_sum_assignment

        present, text = self._table.present[rows], self._text[rows]
        used = np.unique(text[present])
        column = np.searchsorted(used, text)
        items, indices = np.nonzero(present)
        is_right = np.zeros((len(rows), len(used)), dtype=np.bool_)
        np.logical_or.at(is_right, (items, column[items, indices]), right[rows][present])
        found = np.zeros(scores.shape[:2], dtype=np.bool_)
        for draw, drawn in enumerate(scores):
            value = np.full((len(rows), len(used)), _NEVER)
            value[items, column[items, indices]] = drawn[items, indices]
            _, chosen = linear_sum_assignment(value, maximize=True)
            found[draw] = is_right[np.arange(len(rows)), chosen]
        return found


def _split(codes: _Rows) -> list[_Rows]:
    """The row numbers of each code, in ascending order."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(codes) else []


@dataclass(frozen=True)
class Together:
    """The accuracy of a system alone, item by item, and when it uses each option text at most once over all items."""

    alone: float
    together: float


_ALONE = 0.6
_DRAWS = 200


def answered_together(table: OptionTable, right: _Bools, *, seed: int) -> Together | None:
    """What a system that knows no answer gains from answering all items at once (see `Assignment`).

    Simulated: a score is standard normal, plus a constant for right options by which the system alone is right in 60 %;
    200 draws from the seed. None where too few items are assigned together, and for items with several right options.
    """
    assignment = Assignment(table)
    if not assignment.applies or (right.sum(axis=1) != 1).any():
        return None
    noise = generator(seed, "audit", "answered together").standard_normal((_DRAWS, *table.present.shape))
    noise[:, ~table.present] = -np.inf
    lead = (noise.max(axis=2, where=~right[None], initial=-np.inf) - noise[:, right]).ravel()
    better = float(np.quantile(lead, _ALONE))  # the right option then has the highest score in 60 %
    return Together(float((lead < better).mean()), assignment.simulated(noise + better * right, right))
