"""Learned ways to answer a choice without looking: classifiers of right and wrong options, each option also used once."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.audits.items.assignment import Assignment
from proctor.audits.items.baselines import TextBaseline, cross_fit, known_answers, rule_baselines
from proctor.audits.items.options import OptionTable, tfidf
from proctor.core import generator

_Rows = NDArray[np.int64]
_Bools = NDArray[np.bool_]
_Score = Callable[[_Rows, _Rows], NDArray[np.float64]]
"""Scores (items × options) of the options of the second rows, by a fit on the first."""

ONCE = "-once"
"""Ends the name of a baseline that uses each option text at most once."""

_FITS_AT_ONCE = 4  # each in a thread
_READS_QUESTIONS = ("question-words", "question-similarity", "question-characters", "meaning")
_QUESTION_WORDS, _OPTION_WORDS = 50, 150  # the most frequent ones, whose pairs are counted


def once_rules(table: OptionTable, right: _Bools, folds: int, assignment: Assignment) -> list[TextBaseline]:
    """The rules that compare options with the question, each text used at most once; none where too few items are
    assigned together."""
    if not assignment.applies:
        return []
    rows = np.arange(len(table.items))
    found = []
    plain = {baseline.name: baseline for baseline in rule_baselines(table, right, folds)}
    for index, feature in enumerate(table.features):
        if feature.name in _READS_QUESTIONS:
            hits = assignment.hits(table.values[:, :, index], right, rows)
            found.append(_once(replace(plain[feature.most], hits=np.repeat(hits[:, None], folds, axis=1))))
    return found


def _once(baseline: TextBaseline) -> TextBaseline:
    return replace(baseline, name=f"{baseline.name}{ONCE}", label=f"{baseline.label}; each option text at most once")


def learned_baselines(
    table: OptionTable, right: _Bools, fold: _Rows, seed: int, assignment: Assignment
) -> list[TextBaseline]:
    """Classifiers of right and wrong options, which choose each item's most likely option, and where items share texts
    also with each text used at most once; and baselines that know the right answers of other folds (`known_answers`).
    Needs three folds (see `cross_fit`).

    Each fit uses one thread: on a busy machine OpenMP's threads mostly wait for each other.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    scores: dict[tuple[str, str], _Score] = {
        ("logistic-features", "logistic regression on the features"): by_features(table, right, logistic),
        ("boosting-features", "gradient boosting on the features"): by_features(table, right, lambda: boosting(seed)),
        ("logistic-words", "logistic regression on the options' words"): _by_words(table, right, lambda: table.words),
        (
            "logistic-pairs",
            "logistic regression on the features, the options' words and their pairs with words of the question",
        ): _by_words(table, right, lambda: _pairs(table), 1e-2),
    }

    def both(score: _Score) -> Callable[[_Rows, _Rows], _Bools]:
        def guess(train: _Rows, test: _Rows) -> _Bools:
            found = score(train, test)
            plain = table.hits(found, right)[test]
            return np.stack([plain, assignment.hits(found, right, test) if assignment.applies else plain], axis=-1)

        return guess

    at_once = min(_FITS_AT_ONCE, os.cpu_count() or 1)
    with threadpool_limits(limits=1), ThreadPoolExecutor(at_once, initializer=threadpool_limits, initargs=(1,)) as pool:
        found = []
        for (name, label), score in scores.items():
            hits = cross_fit(both(score), fold, pool, each=2)
            plain = TextBaseline(name, label, "learned", hits[..., 0])
            found += [plain, _once(replace(plain, hits=hits[..., 1]))] if assignment.applies else [plain]
        told = known_answers(table, right).items()
        return [*found, *(TextBaseline(*named, "learned", cross_fit(guess, fold, pool)) for named, guess in told)]


def by_features(table: OptionTable, right: _Bools, make: Callable[[], Any]) -> _Score:
    """Scores by a classifier of the options' features: the logarithm of the odds to be right."""

    def score(train: _Rows, test: _Rows) -> NDArray[np.float64]:
        seen, asked = table.options_of(train), table.options_of(test)
        known = table.relative[seen]
        # A constant feature has no weight and only costs time.
        varied = known.min(axis=0) < known.max(axis=0)
        varied[0] |= not varied.any()
        model = make().fit(known[:, varied], right[seen])
        scores = np.zeros(table.present.shape)
        scores[asked] = model.decision_function(table.relative[asked][:, varied]).round(9)
        return scores

    return score


def _by_words(table: OptionTable, right: _Bools, counts: Callable[[], Any], tol: float = 1e-3) -> _Score:
    """Scores by a logistic regression on `counts`: sparse, one row per option, in the order of `present.nonzero()`. `tol` is
    where it stops."""
    rows: list[Any] = []

    def score(train: _Rows, test: _Rows) -> NDArray[np.float64]:
        if not rows:
            rows.append(counts())
        seen, asked = table.options_of(train), table.options_of(test)
        model = _words_model(tol).fit(rows[0][seen[table.present]], right[seen])
        scores = np.zeros(table.present.shape)
        scores[asked] = model.decision_function(rows[0][asked[table.present]]).round(9)
        return scores

    return score


def _pairs(table: OptionTable) -> Any:
    """The features in standard deviations, the options' words, and the products of frequent words of questions and options:
    sparse, one row per option. Nothing in it depends on the key."""
    from scipy.sparse import csr_array, hstack

    features = table.relative[table.present]
    spread = features.std(axis=0)
    spread[spread == 0] = 1.0
    asked = tfidf([item.question for item in table.items], (1, 1), min_df=2)[table.present.nonzero()[0]].tocsc()
    offered = table.words.tocsc()
    of_questions, of_options = _frequent(asked, _QUESTION_WORDS), _frequent(offered, _OPTION_WORDS)
    pairs = [offered[:, of_options].multiply(asked[:, [word]]) for word in of_questions]
    return hstack([csr_array(features / spread), offered, *pairs], format="csr")


def _frequent(counts: Any, most: int) -> list[int]:
    """The columns that are not 0 in most rows, at most as many as `most`, in ascending order."""
    often = np.diff(counts.indptr)
    return sorted(int(column) for column in np.argsort(-often, kind="stable")[:most])


def logistic() -> Any:
    """A logistic regression on standardised features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2000))


def boosting(seed: int) -> Any:
    """Gradient-boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    state = int(generator(seed, "audit", "boosting").integers(2**31))
    return HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=8, learning_rate=0.1, early_stopping=False, random_state=state
    )


def _words_model(tol: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1.0, max_iter=2000, tol=tol)
