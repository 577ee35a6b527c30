"""What answers are seen as: blocks of columns that a linear model weighs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.core import generator
from proctor.judges.embedded.answers import BESIDE_OTHERS, STACKED, Answers, Part

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]

VIEWS = {
    "measures": "measures of the answer, each standardised",
    "bends": "the same, with bends and interactions (random Fourier features of a Gaussian kernel)",
    "wording": "n-grams of characters of the answer (TF-IDF)",
    "wording-apart": "how far they differ from those of the references",
    "wording-shared": "those that the references have too",
    "wording-of-references": "n-grams of the references",
    "wording-of-all": "n-grams of all answers to the question, on average",
    "wording-of-query": "n-grams of the question",
    "meaning": "embedding of the answer",
    "meaning-of-references": "mean embedding of the references",
    "meaning-of-query": "embedding of the question",
    "meaning-shared": "product of the answer's and the references' embeddings",
    "meaning-apart": "how far they differ",
    "likeness": "the mean of plain measures of likeness to the references (`LIKENESS`)",
    "judges": "scores that other judges gave, each standardised; no column where none was stacked",
}
"""What an answer is seen as, by name. Each view is a block of columns that a linear model weighs."""

FREE = ("likeness", "judges")
"""Views of few columns that designs weigh almost freely."""

OF_OTHERS = ("wording-of-all",)
"""Views that look at other answers to the same question (some measures do so too)."""

LIKENESS = ("rouge-1-mean", "bert-f1-mean")
"""Measures that are good metrics by themselves, whatever was learned."""

PARTS: tuple[Part, ...] = ("candidate", "references", "query")
"""The texts of an answer that have a vocabulary each."""

_FARTHEST = 4.0  # standardised measures are cut there
_WAVES = 400
_LEAST_TEXTS = 2  # n-grams of fewer training texts are left out


@dataclass(frozen=True)
class Views:
    """How answers become blocks of columns; everything in it was learned from training answers alone.

    `means` holds each view's mean of every column and `sizes` its block's size, so that every block has mean 0 and
    mean squared length 1 over the training answers.
    """

    columns: tuple[int, ...]
    centre: Floats
    spread: Floats
    waves: Floats
    phases: Floats
    grams: dict[str, tuple[str, ...]]
    rarity: dict[str, Floats]
    means: dict[str, Floats]
    sizes: dict[str, float]

    def blocks(self, answers: Answers) -> dict[str, Floats]:
        """The blocks of answers: rows × columns, by view."""
        return self.scaled(_raw(self, answers))

    def scaled(self, raw: dict[str, Floats]) -> dict[str, Floats]:
        """Blocks as they are, centred and of comparable size."""
        return {name: (raw[name] - mean) / self.sizes[name] for name, mean in self.means.items()}


def fit_views(answers: Answers, rows: Rows, seed: int, *, alone: bool = False) -> tuple[Views, dict[str, Floats]]:
    """Fits all views to these rows of answers, and gives the blocks of all rows; `alone` leaves out the
    measures that look at other answers."""
    columns = tuple(k for k, name in enumerate(answers.names) if not (alone and name.startswith(BESIDE_OTHERS)))
    training = answers.measured[rows][:, list(columns)]
    centre, spread = _moments(training)
    rng = generator(seed, "embedded-judge", "waves")
    # exp(−|x − y|² / 2n) for n measures: a Gaussian kernel of the width that random pairs are apart.
    waves = rng.standard_normal((len(columns), _WAVES)) / np.sqrt(len(columns))
    phases = rng.uniform(0, 2 * np.pi, _WAVES)
    grams: dict[str, tuple[str, ...]] = {}
    rarity: dict[str, Floats] = {}
    for part in PARTS:
        grams[part], rarity[part] = _vocabulary(answers, part, rows)
    views = Views(columns, centre, spread, waves, phases, grams, rarity, {}, {})
    raw = _raw(views, answers)
    for name, block in raw.items():
        views.means[name] = block[rows].mean(axis=0)
        size = float(np.sqrt(((block[rows] - views.means[name]) ** 2).sum(axis=1).mean()))
        views.sizes[name] = size if size > 1e-9 else 1.0
    return views, views.scaled(raw)


def _raw(views: Views, answers: Answers) -> dict[str, Floats]:
    measured = (answers.measured[:, list(views.columns)] - views.centre) / views.spread
    measured = np.clip(np.nan_to_num(measured, nan=0.0), -_FARTHEST, _FARTHEST)
    wording = _tfidf(answers, "candidate", views, "candidate")
    expected = _tfidf(answers, "references", views, "candidate")
    meaning, meant, asked = (answers.meanings[part] for part in ("candidate", "references", "query"))
    names = [answers.names[k] for k in views.columns]
    blocks = {
        "likeness": measured[:, [names.index(one) for one in LIKENESS]].mean(axis=1, keepdims=True),
        "judges": measured[:, [k for k, name in enumerate(names) if name.startswith(STACKED)]],
        "measures": measured,
        "bends": np.cos(measured @ views.waves + views.phases),
        "wording": wording,
        "wording-apart": np.abs(wording - expected),
        "wording-shared": np.minimum(wording, expected),
        "wording-of-references": _tfidf(answers, "references", views, "references"),
        "wording-of-all": _mean_by(wording, answers.question),
        "wording-of-query": _tfidf(answers, "query", views, "query"),
        "meaning": meaning,
        "meaning-of-references": meant,
        "meaning-of-query": asked,
        "meaning-shared": meaning * meant,
        "meaning-apart": np.abs(meaning - meant),
    }
    return {name: blocks[name] for name in VIEWS}


def _moments(values: Floats) -> tuple[Floats, Floats]:
    """Mean and spread of each column over what is known of it; 0 and 1 where nothing is."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, values, 0.0).sum(axis=0) / count
    squares = np.where(known, (values - centre) ** 2, 0.0).sum(axis=0) / count
    spread = np.sqrt(squares)
    return centre, np.where(spread > 1e-9, spread, 1.0)


def _vocabulary(answers: Answers, part: Part, rows: Rows) -> tuple[tuple[str, ...], Floats]:
    """The n-grams of two or more of the rows' texts, sorted, and ln((1 + n) / (1 + texts with it)) + 1."""
    counts = answers.counts(part)
    having = np.asarray((counts.table[rows] > 0).sum(axis=0)).ravel()
    kept = sorted((name, k) for name, k in counts.column.items() if having[k] >= _LEAST_TEXTS)
    within = having[[k for _, k in kept]]
    return tuple(name for name, _ in kept), np.log((1 + len(rows)) / (1 + within)) + 1


def _tfidf(answers: Answers, texts: Part, views: Views, vocabulary: Part) -> Floats:
    """TF-IDF (1 + ln of counts, times rarity) of a part's texts, each row of length 1, or 0 without n-grams."""
    counts = answers.counts(texts)
    names = views.grams[vocabulary]
    found = np.zeros((len(answers), len(names)))
    places = [(k, counts.column[name]) for k, name in enumerate(names) if name in counts.column]
    if places:
        here, there = (np.array(one) for one in zip(*places, strict=True))
        times = counts.table[:, there].astype(np.float64)
        times.data = (np.log(times.data) + 1) * views.rarity[vocabulary][here[times.indices]]
        length = np.sqrt(np.asarray(times.power(2).sum(axis=1)).ravel())
        times.data /= np.repeat(length, np.diff(times.indptr))
        found[:, here] = times.toarray()
    return found


def _mean_by(values: Floats, group: Sequence[int] | Rows) -> Floats:
    """Each row's mean over the rows of its group."""
    code = np.asarray(group)
    sums = np.zeros((int(code.max()) + 1, values.shape[1]))
    np.add.at(sums, code, values)
    return np.asarray(sums[code] / np.bincount(code)[code][:, None], dtype=np.float64)
