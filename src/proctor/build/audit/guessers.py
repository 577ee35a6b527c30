"""Ways to answer a choice without looking: fixed rules, and classifiers on features of the options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.build.audit.contest import Guesser
from proctor.build.audit.features import FEATURES, OptionTable
from proctor.build.audit.selection import cross_fit
from proctor.core import generator
from proctor.core.formats import option_letters

__all__ = ["learned_guessers", "rule_guessers"]

_Rows = NDArray[np.int64]
_Guess = Callable[[_Rows, _Rows], NDArray[np.bool_]]


def rule_guessers(table: OptionTable, right: NDArray[np.bool_], folds: int) -> list[Guesser]:
    """Every fixed rule: each place, the second longest and second shortest, most and least of each
    feature. An item in which the rule decides nothing is answered by lot.

    `right` (items × options) says which options are right.
    """
    scores = {**_places(table), **_by_rank(table)}
    for index, feature in enumerate(FEATURES):
        values = table.values[:, :, index]
        scores[feature.most, f"most: {feature.label}"] = values
        scores[feature.least, f"least: {feature.label}"] = -values
    return [
        Guesser.of_rule(name, label, table.hits(score, right), folds)
        for (name, label), score in scores.items()
    ]


def learned_guessers(table: OptionTable, right: NDArray[np.bool_], fold: _Rows, seed: int) -> list[Guesser]:
    """Three classifiers of right against wrong options; each item gets the option that it finds the
    likeliest. Needs three folds (see `cross_fit`).

    One thread fits: on a busy machine OpenMP's threads wait for each other longer than they work.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    fits: dict[tuple[str, str], _Guess] = {
        ("logistic-features", "logistic regression on the features"): _by_features(table, right, _logistic),
        ("boosting-features", "gradient boosting on the features"): _by_features(
            table, right, lambda: _boosting(seed)
        ),
        ("logistic-words", "logistic regression on the options' words"): _by_words(table, right),
    }
    with threadpool_limits(limits=1):
        return [
            Guesser(name, label, "learned", cross_fit(guess, fold)) for (name, label), guess in fits.items()
        ]


def _places(table: OptionTable) -> dict[tuple[str, str], NDArray[np.float64]]:
    places = np.broadcast_to(np.arange(table.width), table.present.shape)
    return {
        (f"always-{letter}", f"always the option {letter}"): (places == place).astype(np.float64)
        for place, letter in enumerate(option_letters(table.width))
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


def _by_features(table: OptionTable, right: NDArray[np.bool_], make: Callable[[], Any]) -> _Guess:
    def guess(train: _Rows, test: _Rows) -> NDArray[np.bool_]:
        seen, asked = table.options_of(train), table.options_of(test)
        model = make().fit(table.relative[seen], right[seen])
        scores = np.zeros(table.present.shape)
        scores[asked] = model.predict_proba(table.relative[asked])[:, 1].round(9)
        return table.hits(scores, right)[test]

    return guess


def _by_words(table: OptionTable, right: NDArray[np.bool_]) -> _Guess:
    def guess(train: _Rows, test: _Rows) -> NDArray[np.bool_]:
        seen, asked = table.options_of(train), table.options_of(test)
        model = _words_model().fit(table.words[seen[table.present]], right[seen])
        scores = np.zeros(table.present.shape)
        scores[asked] = model.decision_function(table.words[asked[table.present]]).round(9)
        return table.hits(scores, right)[test]

    return guess


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2000))


def _boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    state = int(generator(seed, "audit", "boosting").integers(2**31))
    return HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=8, learning_rate=0.1, early_stopping=False, random_state=state
    )


def _words_model() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1.0, max_iter=2000, tol=1e-3)
