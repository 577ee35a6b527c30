"""Ways to answer a choice without looking: fixed rules, and classifiers on features of the options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proctor.audits.items.options import OptionTable, p_above_chance, tfidf
from proctor.core import Item, TagValue, generator
from proctor.core.formats import option_letters
from proctor.metrics import Constants, is_right
from proctor.stats import Estimate, Resampling, holm_known, mean_interval

_Rows = NDArray[np.int64]


@dataclass(frozen=True)
class BaselineResult:
    """One way to answer without looking.

    The `accuracy` of a "learned" baseline is out of fold: every item was guessed by a fit without items of its group.
    `chance` is the chance level (None if the format has none), `p` is one-sided against it, `p_holm` by Holm over the
    format's baselines; both are None without a chance level or with only one group. The accuracy of a "model" is over
    the items that its reply says something of; `missing` ones are not in it.
    """

    name: str
    label: str
    kind: Literal["rule", "learned", "model"]
    accuracy: Estimate
    chance: float | None
    p: float | None
    p_holm: float | None
    missing: int = 0


@dataclass(frozen=True)
class ModelReplies:
    """What a model says of the options of items, without the media: by item id the letters of those that it leaves, one of
    which is then chosen at random; None where its reply says nothing. Items that it was not asked about are missing."""

    name: str
    label: str
    left: Mapping[str, tuple[str, ...] | None]


@dataclass(frozen=True)
class FacetAccuracy:
    """The selected baselines' accuracy on the items that have one value of one tag."""

    facet: str
    value: str
    accuracy: Estimate
    chance: float | None


@dataclass(frozen=True)
class SelectedBaseline:
    """The best text-only accuracy, without selection bias.

    For each fold of groups the baseline is selected on the other folds (learned ones by an inner cross-validation) and
    tested on this one; if none beats chance there, the fold is answered at random ("random"). `chosen` gives the number
    of items by selected baseline; `covers_chance` says whether the interval covers the chance level: then the audit has
    found nothing. A weak artefact (on 250 items of four options: a rule that is right in a third of them) may not be
    selected; the baselines' own p values show it.
    """

    accuracy: Estimate
    chance: float | None
    covers_chance: bool | None
    chosen: dict[str, int]
    folds: int
    facets: tuple[FacetAccuracy, ...]


@dataclass(frozen=True)
class TextBaseline:
    """A baseline's hits for the selection: `hits[i, f]` says whether item i is answered by a fit without i's own fold and
    without fold f."""

    name: str
    label: str
    kind: Literal["rule", "learned", "random"]
    hits: NDArray[np.bool_]


@dataclass(frozen=True)
class ModelHits:
    """Whether each item is answered by a model's reply, and whether it `said` anything of the item."""

    name: str
    label: str
    hits: NDArray[np.bool_]
    said: NDArray[np.bool_]


def model_hits(table: OptionTable, right: NDArray[np.bool_], replies: ModelReplies) -> ModelHits:
    """The hits of a model: of the options that its reply leaves, one is chosen by the table's lots."""
    left = np.zeros(table.present.shape)
    said = np.zeros(len(table.items), dtype=np.bool_)
    for row, item in enumerate(table.items):
        kept = replies.left.get(item.id)
        if kept is not None:
            said[row] = True
            left[row, [option_letters(len(item.options)).index(letter) for letter in kept]] = 1.0
    return ModelHits(replies.name, replies.label, table.hits(left, right) & said, said)


def _unfitted(hits: NDArray[np.bool_], folds: int) -> NDArray[np.bool_]:
    """The hits of a baseline without a fit: the same whatever fold is left out."""
    return np.repeat(hits[:, None], folds, axis=1)


def random_baseline(items: Sequence[Item], chance: NDArray[np.float64], fold: _Rows, seed: int) -> TextBaseline:
    """Random hits with each item's own probability, by systematic sampling: each fold has the expected number of hits
    (± 1), so that the fallback on this baseline is never mistaken for a finding.
    """
    lots = [float(generator(seed, "audit", "by lot", item.id).random()) for item in items]
    order = np.lexsort((np.asarray(lots), fold))
    start = generator(seed, "audit", "by lot").random()
    reached = np.floor(np.cumsum(chance[order]) + start + 1e-9)
    hits = np.zeros(len(items), dtype=np.bool_)
    hits[order] = np.diff(reached, prepend=0.0) > 0
    return TextBaseline("random", "chance", "random", _unfitted(hits, int(fold.max()) + 1))


@dataclass(frozen=True)
class BaselineComparison:
    """The items of one format with the fold of each, the chance level of each (None where the format
    has none), and how intervals are drawn."""

    items: Sequence[Item]
    fold: _Rows
    chance: NDArray[np.float64] | None
    draws: int
    seed: int

    @property
    def groups(self) -> _Rows:
        """A number for each item's group."""
        return np.asarray(np.unique([item.group for item in self.items], return_inverse=True)[1])

    def results(
        self, baselines: Sequence[TextBaseline], models: Sequence[ModelHits] = ()
    ) -> tuple[BaselineResult, ...]:
        """All baselines except the random one, and the models, best first (ties in their order)."""
        contestants = [baseline for baseline in baselines if baseline.kind != "random"]
        if not contestants and not models:
            return ()
        everything = np.arange(len(self.items))
        every: list[TextBaseline | ModelHits] = [*contestants, *models]
        hits = [(own_fold(baseline.hits, self.fold), everything) for baseline in contestants]
        hits += [(model.hits, np.flatnonzero(model.said)) for model in models]
        p: list[float | None] = [None] * len(hits)
        if self.chance is not None:
            whole = [own for own, _ in hits[: len(contestants)]]
            p = p_above_chance(np.stack(whole), self.chance, self.groups).tolist() if whole else []
            p += [self._p_of_some(own[rows], rows) for own, rows in hits[len(contestants) :]]
        adjusted = holm_known(p)
        found = [
            BaselineResult(
                name=one.name,
                label=one.label,
                kind="model" if isinstance(one, ModelHits) else "rule" if one.kind == "rule" else "learned",
                accuracy=self.estimate(own, rows),
                chance=self.mean_chance(rows) if len(rows) else None,
                p=p[row],
                p_holm=adjusted[row],
                missing=len(self.items) - len(rows),
            )
            for row, (one, (own, rows)) in enumerate(zip(every, hits, strict=True))
        ]
        return tuple(sorted(found, key=lambda result: -(result.accuracy.value or 0.0)))

    def _p_of_some(self, hits: _Hits, rows: _Rows) -> float | None:
        if self.chance is None or not len(rows):
            return None
        return float(p_above_chance(hits[None], self.chance[rows], self.groups[rows])[0])

    def selected(
        self, baselines: Sequence[TextBaseline], facets: Sequence[str]
    ) -> tuple[SelectedBaseline, NDArray[np.bool_]]:
        """The selection, and the items that a selected baseline solves (random hits do not count). The first baseline is
        the fallback."""
        hits = np.stack([baseline.hits for baseline in baselines])
        chosen = chosen_for_folds(hits, self.fold, self.groups, self.chance)[self.fold]
        solved = hits[chosen, np.arange(len(self.items)), self.fold]
        accuracy = self.estimate(solved)
        chance = self.mean_chance()
        record = SelectedBaseline(
            accuracy=accuracy,
            chance=chance,
            covers_chance=_covers(accuracy, chance),
            chosen={baselines[row].name: int((chosen == row).sum()) for row in np.unique(chosen)},
            folds=hits.shape[2],
            facets=tuple(part for facet in facets for part in self._by_facet(facet, solved)),
        )
        skilled = np.array([baseline.kind != "random" for baseline in baselines])
        return record, solved & skilled[chosen]

    def estimate(self, hits: NDArray[np.bool_], rows: _Rows | None = None) -> Estimate:
        """The accuracy over the items (or these rows), with its clustered interval."""
        indices = np.arange(len(self.items)) if rows is None else rows
        return mean_interval(
            hits[indices].astype(np.float64),
            self.groups[indices],
            Resampling(draws=self.draws, seed=self.seed, bounds=(0.0, 1.0)),
        )

    def mean_chance(self, rows: _Rows | None = None) -> float | None:
        """The chance level over the items (or these rows)."""
        if self.chance is None:
            return None
        return float(np.mean(self.chance if rows is None else self.chance[rows]))

    def _by_facet(self, facet: str, solved: NDArray[np.bool_]) -> list[FacetAccuracy]:
        rows: dict[str, list[int]] = {}
        for row, item in enumerate(self.items):
            for value in facet_values(item.tags.get(facet)):
                rows.setdefault(value, []).append(row)
        return [
            FacetAccuracy(facet, value, self.estimate(solved, np.array(of)), self.mean_chance(np.array(of)))
            for value, of in sorted(rows.items())
        ]


def facet_values(value: TagValue | None) -> tuple[str, ...]:
    """The distinct values of a tag."""
    if value is None:
        return ()
    return tuple(dict.fromkeys(value)) if isinstance(value, tuple) else (str(value),)


def _covers(estimate: Estimate, chance: float | None) -> bool | None:
    if chance is None or estimate.ci_low is None or estimate.ci_high is None:
        return None
    return estimate.ci_low <= chance <= estimate.ci_high


FOLDS = 5
"""The largest number of folds."""

_LEVEL = 0.05  # the significance with which a baseline must beat chance on the other folds to be chosen

_Hits = NDArray[np.bool_]


def fold_of_groups(groups: Sequence[str], seed: int) -> _Rows:
    """The fold of each item: whole groups, in random order, go to the fold with the fewest items. There are `FOLDS` folds,
    or as many as groups if these are fewer.
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


def cross_fit(
    guess: Callable[[_Rows, _Rows], _Hits], fold: _Rows, pool: Executor | None = None, *, each: int = 0
) -> _Hits:
    """`hits[i, f]`: whether item i is guessed by a fit without the fold of i and without the fold f. With a `pool` fits run
    in its threads. If each fit guesses in several ways, `each` of them, `hits[i, f, way]`.

    `guess(train, test)` gets row numbers and returns the hits of the test rows (× ways). Leaving out folds f and g is symmetric,
    so K folds take K(K+1)/2 fits. Raises `ValueError` below three folds: to test, to select, and to train on.
    """
    folds = int(fold.max()) + 1
    if folds < 3:
        raise ValueError(f"cross-fitting takes at least 3 folds, not {folds}")
    hits = np.zeros((len(fold), folds, *([each] if each else [])), dtype=np.bool_)

    def fitted(pair: tuple[int, int]) -> None:
        one, other = pair
        train = np.flatnonzero((fold != one) & (fold != other))
        test = np.flatnonzero((fold == one) | (fold == other))
        hits[test, np.where(fold[test] == one, other, one)] = guess(train, test)

    list((pool.map if pool else map)(fitted, combinations_with_replacement(range(folds), 2)))
    return hits


def own_fold(hits: _Hits, fold: _Rows) -> _Hits:
    """The hits of `cross_fit` by the fits on all folds but the item's own."""
    return np.asarray(hits[np.arange(len(fold)), fold])


def chosen_for_folds(hits: NDArray[np.bool_], fold: _Rows, groups: _Rows, chance: NDArray[np.float64] | None) -> _Rows:
    """The baseline (position in `hits`) selected for each fold by the other folds.

    `hits` is baselines × items × folds as of `cross_fit`: for fold f only fits without f count. The first baseline is the
    fallback. Another is selected if it has the most hits among those that beat `chance` on the other folds (one-sided,
    5 %, Bonferroni over the baselines; ties: the first). Without this test the luckiest of many useless baselines would
    be selected in every fold, and its interval would be too narrow by a third. Without a chance level (None) the baseline
    with the most hits is selected.
    """
    chosen = np.zeros(hits.shape[2], dtype=np.int64)
    for left_out in range(hits.shape[2]):
        others = fold != left_out
        seen = hits[:, others, left_out]
        scores = seen.sum(axis=1)
        if chance is not None:
            p = p_above_chance(seen, chance[others], groups[others])
            scores = np.where(p * len(hits) < _LEVEL, scores, -1)
            scores[0] = 0
        chosen[left_out] = scores.argmax()
    return chosen


_Guess = Callable[[_Rows, _Rows], NDArray[np.bool_]]


def rule_baselines(table: OptionTable, right: NDArray[np.bool_], folds: int) -> list[TextBaseline]:
    """All fixed rules: each position, the second longest and second shortest option, the most and the least of each feature.
    Ties are broken at random. `right` (items × options) says which options are right.
    """
    scores = {**_rows(table), **_by_rank(table)}
    for index, feature in enumerate(table.features):
        values = table.values[:, :, index]
        scores[feature.most, f"most: {feature.label}"] = values
        scores[feature.least, f"least: {feature.label}"] = -values
    return [
        TextBaseline(name, label, "rule", _unfitted(table.hits(score, right), folds))
        for (name, label), score in scores.items()
    ]


def _rows(table: OptionTable) -> dict[tuple[str, str], NDArray[np.float64]]:
    rows = np.broadcast_to(np.arange(table.width), table.present.shape)
    return {
        (f"always-{letter}", f"always the option {letter}"): (rows == row).astype(np.float64)
        for row, letter in enumerate(option_letters(table.width))
    }


def _by_rank(table: OptionTable) -> dict[tuple[str, str], NDArray[np.float64]]:
    if table.width < 3:  # of two options the second longest is the shortest
        return {}
    length = np.where(table.present, table.values[:, :, 0], np.nan)
    longer = (length[:, None] > length[:, :, None]).sum(axis=2)
    shorter = (length[:, None] < length[:, :, None]).sum(axis=2)
    return {
        ("second-longest", "the second most characters"): -np.abs(longer - 1.0),
        ("second-shortest", "the second fewest characters"): -np.abs(shorter - 1.0),
    }


_CHUNK = 500  # questions compared at a time


def constant_share(items: Sequence[Item]) -> float:
    """The accuracy of the best constant answer, chosen in sample (the baseline `majority`)."""
    everything = np.arange(len(items))
    return float(_usual(items)(everything, everything).mean())


def answer_baselines(items: Sequence[Item], fold: _Rows) -> list[TextBaseline]:
    """Two baselines that learn from other groups. Needs three folds (see `cross_fit`)."""
    return [
        TextBaseline("usual-answer", "the best constant answer of other groups", "learned", cross_fit(_usual(items), fold)),
        TextBaseline("nearest-question", "the answer to the most similar question of other groups", "learned", cross_fit(_nearest(items), fold)),
    ]  # fmt: skip


def _usual(items: Sequence[Item]) -> _Guess:
    def guess(train: _Rows, test: _Rows) -> NDArray[np.bool_]:
        constants = Constants([items[row] for row in train])
        tried = [items[row] for row in test]
        return np.array(
            [constants.knows(item) and is_right(item, constants.answer(item)) for item in tried], dtype=np.bool_
        )

    return guess


def _nearest(items: Sequence[Item]) -> _Guess:
    weights = tfidf([item.question for item in items], (1, 2))

    def guess(train: _Rows, test: _Rows) -> NDArray[np.bool_]:
        donors = train[_most_similar(weights[test], weights[train])]
        return np.array([_lends(items[donor], items[row]) for donor, row in zip(donors, test, strict=True)])

    return guess


def _most_similar(rows: Any, among: Any) -> _Rows:
    """For each row the position of the most similar one (ties: the first)."""
    indices = [
        np.asarray((rows[start : start + _CHUNK] @ among.T).toarray()).round(9).argmax(axis=1)
        for start in range(0, rows.shape[0], _CHUNK)
    ]
    return np.concatenate(indices)


def _lends(donor: Item, item: Item) -> bool:
    return donor.reference is not None and donor.has_answer and is_right(item, donor.reference.answer)


def known_answers(table: OptionTable, right: _Hits) -> dict[tuple[str, str], Callable[[_Rows, _Rows], _Hits]]:
    """Baselines that know the right answers of the training rows, by name and label."""
    products = _similar(table, right)
    number: dict[str, int] = {}
    code = np.zeros(table.present.shape, dtype=np.int64)
    code[table.present] = [number.setdefault(phrase, len(number)) for phrases in table.phrases for phrase in phrases]

    def recurring(sign: int) -> Callable[[_Rows, _Rows], _Hits]:
        def guess(train: _Rows, test: _Rows) -> _Hits:
            known = np.bincount(code[train][right[train]], minlength=len(number))
            return table.hits(sign * known[code].astype(np.float64), right)[test]

        return guess

    return {
        ("right-elsewhere", "the option that is right most often in other groups"): recurring(1),
        ("not-right-elsewhere", "the option that is right least often in other groups"): recurring(-1),
        ("similar-questions", "the option most like the right answers to similar questions of other groups"): products,
    }


def _similar(table: OptionTable, right: _Hits) -> Callable[[_Rows, _Rows], _Hits]:
    asked: Any = tfidf([item.question for item in table.items], (1, 2))
    offered: Any = tfidf([option for item in table.items for option in item.options], (1, 2))
    first = np.concatenate([[0], np.cumsum(table.counts)[:-1]])
    key = first + right.argmax(axis=1)

    def guess(train: _Rows, test: _Rows) -> _Hits:
        scores = np.zeros(table.present.shape)
        answers = asked[train].T @ offered[key[train]]  # words of questions × words of right options
        for start in range(0, len(test), _CHUNK):
            rows = test[start : start + _CHUNK]
            # The right answers to similar questions, weighted by similarity: one text for each row.
            expected = asked[rows] @ answers
            for index in range(table.width):
                there = table.present[rows, index]
                options = offered[first[rows[there]] + index]
                products = np.asarray(options.multiply(expected[there]).sum(axis=1), dtype=np.float64).ravel()
                scores[rows[there], index] = products.round(9)
        return table.hits(scores, right)[test]

    return guess
