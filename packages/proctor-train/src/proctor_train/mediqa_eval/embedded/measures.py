"""Measures of one answer: similarity to the references and the question, style, kinds of words, and contradictions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np

from proctor.metrics.text import Encoder, bleu, chrf, rouge_l, tokens
from proctor.stats import Floats
from proctor_train.mediqa_eval.embedded.assertions import Part, claims, contradictions
from proctor_train.mediqa_eval.embedded.sentences import sentences

_WORDS = {
    "en": {
        "hedge": r"\b(?:may|might|could|possibl\w+|likely|probabl\w+|suspect\w*|suggest\w*|consider|appears?"
        r"|seems?|unclear)\b",
        "refer": r"\b(?:doctor|dermatologist|physician|specialist|provider|professional|hospital|clinic"
        r"|evaluation|consult\w*|see a)\b",
        "negation": r"\b(?:no|not|never|without|avoid\w*|unlikely|cannot|don't|isn't|rather than)\b",
        "urgency": r"\b(?:emergency|immediate\w*|urgent\w*|promptly|fever|pus|spreading|infection|redness"
        r"|swelling)\b",
        "drug": r"\b(?:ointment|cream|antibiotic\w*|steroid\w*|topical|oral|antihistamine\w*|antifungal\w*"
        r"|\w+(?:cillin|mycin|azole|sone|olone|tinib|cort|dine))\b",
        "limit": r"\b(?:without (?:more|further|an image|seeing)|more information"
        r"|cannot (?:determine|diagnose|tell)|unable|sorry|as an ai|image|photo|picture)\b",
        "test": r"\b(?:biops\w+|test\w*|culture|x-?ray|mri|exam\w*|imaging|koh)\b",
    },
    "zh": {
        "hedge": r"可能|考虑|也许|疑似|大概|或许|怀疑|似乎|不排除|倾向",
        "refer": r"就医|医院|医生|就诊|面诊|专科|门诊|咨询",
        "negation": r"不|没|无|避免|勿|别|非",
        "urgency": r"立即|尽快|及时|紧急|发热|发烧|脓|红肿|感染|加重",
        "drug": r"膏|素|药|激素|口服|外用|注射|消炎|霜|碘伏|酒精",
        "limit": r"图片|照片|无法|不能确定|更多信息|抱歉|不清楚",
        "test": r"检查|活检|化验|切片|镜检|培养|拍片",
    },
}

LANGUAGES = tuple(_WORDS)
"""The languages of answers that can be read."""

CUES = tuple(_WORDS["en"])
"""The kinds of words, the same in every language."""


class TextVectors:
    """Embeddings of texts, each computed once and rounded to `digits`, if given. Texts are encoded in alphabetical order,
    so that the order of cases does not change the result. A text without words has a vector of zeros."""

    def __init__(self, encoder: Encoder, *, digits: int | None = None) -> None:
        self._encoder, self._digits = encoder, digits
        self._known: dict[str, Floats] = {}
        self._width = 0

    def prepare(self, texts: Sequence[str]) -> None:
        """Encodes those of the texts that are new, in one batch."""
        new = sorted({text for text in texts if text.strip() and text not in self._known})
        if new:
            vectors = np.asarray(self._encoder(new), dtype=np.float64)
            vectors = vectors if self._digits is None else np.round(vectors, self._digits)
            self._width = vectors.shape[1]
            self._known |= dict(zip(new, vectors, strict=True))

    def rows(self, texts: Sequence[str]) -> Floats:
        """The vectors of texts: texts × width."""
        self.prepare(texts)
        blank = np.zeros(self._width)
        return np.array([self._known.get(text, blank) for text in texts]).reshape(len(texts), self._width)

    def __call__(self, text: str) -> Floats:
        """The vector of one text."""
        self.prepare([text])
        return self._known[text] if text in self._known else np.zeros(self._width)


def cue_counts(text: str, language: str) -> dict[str, int]:
    """The number of words of each kind in a text.

    >>> cue_counts("Possibly eczema. See a dermatologist.", "en")["refer"]
    2
    """
    return {name: len(pattern.findall(text)) for name, pattern in _patterns(language).items()}


@cache
def _patterns(language: str) -> dict[str, re.Pattern[str]]:
    return {name: re.compile(words, re.IGNORECASE) for name, words in _WORDS[language].items()}


T = TypeVar("T")
Vector = Callable[[str], Floats]
"""From a text to its embedding, a unit vector (or zeros for a text without words)."""
Matched = Callable[[str, str], tuple[float, float, float]]
"""From an answer and a reference to BERTScore's precision, recall and F1."""

_CONSENSUS = 4.0  # the weight of references that are similar to the others
_WEIGHTED = ("rouge-1", "embedding", "chrf")


@dataclass(frozen=True)
class Reading:
    """One answer with its question and references, and the parts that several measures need."""

    candidate: str
    query: str
    references: tuple[str, ...]
    language: str
    vector: Vector
    matched: Matched
    parts: tuple[Part, ...]

    @cached_property
    def words(self) -> list[str]:
        """The answer's tokens."""
        return tokens(self.candidate)

    @cached_property
    def counts(self) -> Counter[str]:
        """The counts of the answer's tokens."""
        return Counter(self.words)

    @cached_property
    def reference_words(self) -> list[list[str]]:
        """The tokens of each reference."""
        return [tokens(reference) for reference in self.references]

    @cached_property
    def meaning(self) -> Floats:
        """The answer's embedding."""
        return self.vector(self.candidate)

    @cached_property
    def reference_meanings(self) -> Floats:
        """The references' embeddings, one a row."""
        return np.array([self.vector(reference) for reference in self.references])

    @cached_property
    def agreement(self) -> Floats:
        """The cosines between references."""
        return self.reference_meanings @ self.reference_meanings.T


def measures(reading: Reading) -> dict[str, float]:
    """All measures of one answer by name, with the same names in every language."""
    return (
        _likeness(reading)
        | _coverage(reading)
        | _question(reading)
        | _case(reading)
        | _style(reading)
        | _cues(reading)
        | _contradictions(reading)
    )


COMPARED = (
    *("rouge-1-mean", "rouge-1-precision-mean", "rouge-1-recall-mean", "rouge-l-mean", "chrf-mean"),
    *("embedding-mean", "embedding-max", "covers-meaning-recall", "covers-meaning-precision"),
    *("covers-words-recall", "words", "sentences", "query-embedding"),
    *(f"bert-{part}-{over}" for part in ("precision", "recall", "f1") for over in ("mean", "max")),
)
"""Measures that are also taken relative to the other answers to the same question."""


def beside_others(
    own: Mapping[str, float], reading: Reading, others: Sequence[tuple[Mapping[str, float], Reading]]
) -> dict[str, float]:
    """Measures relative to the other answers to the same question; NaN if there are none."""
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
    """How well each sentence of the references is matched by the answer ("recall"), and the reverse ("precision")."""
    own = sentences(reading.candidate)
    theirs = [sentence for text in reading.references for sentence in sentences(text)]
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
    """Measures of the question and its references, the same for all answers."""
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
    lengths = np.log1p([len(word) for word in reading.reference_words])
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
    """The number of words of each kind, the share of references with some, and whether the two differ."""
    theirs = [cue_counts(text, reading.language) for text in reading.references]
    found = {}
    for name, count in cue_counts(reading.candidate, reading.language).items():
        share = _mean([one[name] > 0 for one in theirs])
        found[f"says-{name}"] = float(np.log1p(count))
        found[f"references-say-{name}"] = share
        found[f"differs-on-{name}"] = abs(float(count > 0) - share)
    return found


def _contradictions(reading: Reading) -> dict[str, float]:
    theirs = [claims([Part(one) for one in sentences(text)], reading.language) for text in reading.references]
    return contradictions(claims(reading.parts, reading.language), theirs)


def _overlap(one: Counter[T], other: Counter[T]) -> tuple[float, float, float]:
    """The shares of the first and of the second that are in both, and their F1."""
    shared = sum(min(n, other[key]) for key, n in one.items())
    first, second = one.total(), other.total()
    return shared / max(1, first), shared / max(1, second), 2 * shared / max(1, first + second)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
