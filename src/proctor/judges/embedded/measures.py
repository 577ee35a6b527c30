"""What is measured of an answer: how like the references, what it covers, how it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from proctor.judges.embedded.cues import cue_counts, sentences
from proctor.metrics.text import bleu, chrf, rouge_l, tokens

T = TypeVar("T")
Floats = NDArray[np.float64]
Vector = Callable[[str], Floats]
"""From a text to its embedding, of length 1 (or 0 for a text without words)."""
Matched = Callable[[str, str], tuple[float, float, float]]
"""From an answer and a reference to BERTScore's precision, recall and F1."""

_CONSENSUS = 4.0  # how strongly references that are like the others count more
_WEIGHTED = ("rouge-1", "embedding", "chrf")


@dataclass(frozen=True)
class Reading:
    """One answer beside its question and references, read once."""

    candidate: str
    query: str
    references: tuple[str, ...]
    language: str
    vector: Vector
    matched: Matched

    @cached_property
    def words(self) -> list[str]:
        """The answer's tokens."""
        return tokens(self.candidate)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each of them occurs."""
        return Counter(self.words)

    @cached_property
    def reference_words(self) -> list[list[str]]:
        """The tokens of each reference."""
        return [tokens(one) for one in self.references]

    @cached_property
    def meaning(self) -> Floats:
        """The answer's embedding."""
        return self.vector(self.candidate)

    @cached_property
    def reference_meanings(self) -> Floats:
        """The references' embeddings, one a row."""
        return np.array([self.vector(one) for one in self.references])

    @cached_property
    def agreement(self) -> Floats:
        """The cosines between references."""
        return self.reference_meanings @ self.reference_meanings.T


def measures(reading: Reading) -> dict[str, float]:
    """All measures of one answer by itself, by name; the same names in every language."""
    return (
        _likeness(reading) | _coverage(reading) | _question(reading) | _case(reading) | _style(reading) | _cues(reading)
    )


COMPARED = (
    *("rouge-1-mean", "rouge-1-precision-mean", "rouge-1-recall-mean", "rouge-l-mean", "chrf-mean"),
    *("embedding-mean", "embedding-max", "covers-meaning-recall", "covers-meaning-precision"),
    *("covers-words-recall", "words", "sentences", "query-embedding"),
    *(f"bert-{part}-{over}" for part in ("precision", "recall", "f1") for over in ("mean", "max")),
)
"""Measures in which an answer is set against the other answers to the same question."""


def beside_others(
    own: Mapping[str, float], reading: Reading, others: Sequence[tuple[Mapping[str, float], Reading]]
) -> dict[str, float]:
    """The answer beside the other answers to its question; NaN where there are none."""
    if not others:
        names = ("others-embedding", "others-rouge-1", *(f"beside-{name}" for name in COMPARED))
        return dict.fromkeys(names, float("nan"))
    alike = [float(reading.meaning @ other.meaning) for _, other in others]
    shared = [_overlap(reading.counts, other.counts)[2] for _, other in others]
    found = {"others-embedding": _mean(alike), "others-rouge-1": _mean(shared)}
    for name in COMPARED:
        found[f"beside-{name}"] = own[name] - _mean([measured[name] for measured, _ in others])
    return found


def _likeness(reading: Reading) -> dict[str, float]:
    pairs = Counter(pairwise(reading.words))
    each: dict[str, list[float]] = {}
    for text, words, vector in zip(
        reading.references, reading.reference_words, reading.reference_meanings, strict=True
    ):
        precision, recall, f1 = _overlap(reading.counts, Counter(words))
        values = {
            "rouge-1-precision": precision,
            "rouge-1-recall": recall,
            "rouge-1": f1,
            "rouge-2": _overlap(pairs, Counter(pairwise(words)))[2],
            "rouge-l": rouge_l(reading.candidate, text),
            "chrf": chrf(reading.candidate, [text]),
            "embedding": float(reading.meaning @ vector),
        }
        matched = reading.matched(reading.candidate, text)
        values |= dict(zip(("bert-precision", "bert-recall", "bert-f1"), matched, strict=True))
        for name, value in values.items():
            each.setdefault(name, []).append(value)
    weights = np.exp(_CONSENSUS * reading.agreement.mean(axis=1))
    found = {}
    for name, listed in each.items():
        found[f"{name}-mean"], found[f"{name}-max"] = _mean(listed), max(listed)
        if name in _WEIGHTED:
            found[f"{name}-consensus"] = float(np.average(listed, weights=weights))
            found[f"{name}-min"] = min(listed)
    said = Counter(word for words in reading.reference_words for word in set(words))
    found["bleu"] = bleu(reading.candidate, reading.references, reading.language)
    found["supported"] = _mean([word in said for word in reading.words])
    found["covered"] = sum(n for word, n in said.items() if word in reading.counts) / max(1, said.total())
    return found


def _coverage(reading: Reading) -> dict[str, float]:
    """How well each sentence of the references is found in the answer ("recall"), and the reverse."""
    own = sentences(reading.candidate)
    theirs = [one for text in reading.references for one in sentences(text)]
    tables = {"meaning": np.zeros((1, 1)), "words": np.zeros((1, 1))}
    if own and theirs:
        tables["meaning"] = (
            np.array([reading.vector(one) for one in own]) @ np.array([reading.vector(one) for one in theirs]).T
        )
        counted = [Counter(tokens(one)) for one in theirs]
        tables["words"] = np.array([[_overlap(Counter(tokens(one)), other)[2] for other in counted] for one in own])
    found: dict[str, float] = {}
    for name, table in tables.items():
        recall, precision = table.max(axis=0), table.max(axis=1)
        found |= {
            f"covers-{name}-recall": float(recall.mean()),
            f"covers-{name}-recall-min": float(recall.min()),
            f"covers-{name}-precision": float(precision.mean()),
            f"covers-{name}-precision-min": float(precision.min()),
            f"covers-{name}-first": float(precision[0]),
        }
    return found


def _question(reading: Reading) -> dict[str, float]:
    question = reading.vector(reading.query)
    precision, recall, _ = _overlap(reading.counts, Counter(tokens(reading.query)))
    own, theirs = float(reading.meaning @ question), float((reading.reference_meanings @ question).mean())
    return {
        "query-precision": precision,
        "query-recall": recall,
        "query-embedding": own,
        "query-references-embedding": theirs,
        "query-embedding-excess": own - theirs,
    }


def _case(reading: Reading) -> dict[str, float]:
    """The question and its references alone: the same for all answers to it."""
    lengths = np.log1p([len(words) for words in reading.reference_words])
    n = len(reading.references)
    bags = [Counter(words) for words in reading.reference_words]
    shared = [_overlap(bags[i], bags[j])[2] for i in range(n) for j in range(i)]
    several = n > 1
    return {
        "references": float(np.log(n)),
        "reference-words-mean": float(lengths.mean()),
        "reference-words-max": float(lengths.max()),
        "reference-words-spread": float(lengths.std()),
        "query-words": float(np.log1p(len(tokens(reading.query)))),
        "references-agree-meaning": float((reading.agreement.sum() - n) / (n * (n - 1))) if several else float("nan"),
        "references-agree-words": _mean(shared) if several else float("nan"),
    }


def _style(reading: Reading) -> dict[str, float]:
    text, words = reading.candidate.strip(), reading.words
    lengths = np.log1p([len(one) for one in reading.reference_words])
    count, parts = float(np.log1p(len(words))), len(sentences(text))
    return {
        "words": count,
        "sentences": float(np.log1p(parts)),
        "words-per-sentence": float(np.log1p(len(words) / max(1, parts))),
        "words-less-references": count - float(lengths.mean()),
        "words-less-longest-reference": count - float(lengths.max()),
        "different-words": len(set(words)) / max(1, len(words)),
        "word-length": _mean([len(word) for word in words]),
        "ends-as-sentence": float(text.endswith((".", "!", "?", "。", "！", "？"))),
        "asks": float("?" in text or "？" in text),
        "numbers": float(np.log1p(sum(word[0].isdigit() for word in words))),
        "commas": float(np.log1p(sum(text.count(mark) for mark in ",，、"))),
        "lines": float("\n" in text),
    }


def _cues(reading: Reading) -> dict[str, float]:
    """How often each kind of words occurs, in what share of the references, and whether the two differ."""
    theirs = [cue_counts(text, reading.language) for text in reading.references]
    found = {}
    for name, count in cue_counts(reading.candidate, reading.language).items():
        share = _mean([one[name] > 0 for one in theirs])
        found[f"says-{name}"] = float(np.log1p(count))
        found[f"references-say-{name}"] = share
        found[f"differs-on-{name}"] = abs(float(count > 0) - share)
    return found


def _overlap(one: Counter[T], other: Counter[T]) -> tuple[float, float, float]:
    """Shares of the first and of the second that are in both, and the F1."""
    shared = sum(min(n, other[key]) for key, n in one.items())
    first, second = one.total(), other.total()
    return shared / max(1, first), shared / max(1, second), 2 * shared / max(1, first + second)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
