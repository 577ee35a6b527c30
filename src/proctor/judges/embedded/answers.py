"""Answers read once: their measures, texts and embeddings, one row per case."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, read_json
from proctor.judges.dimensions import Case
from proctor.judges.embedded.assertion import contradictions
from proctor.judges.passage_index import load_sentence_encoder
from proctor.metrics.text import (
    BertScore,
    Encoder,
    EncoderSettings,
    TokenEncoder,
    bleu,
    chrf,
    default_encoder,
    load_encoder,
    rouge_l,
    tokens,
)

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
"""Languages that answers can be read in."""

CUES = tuple(_WORDS["en"])
"""The kinds of words, the same in every language."""

_SENTENCE_ENDS = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")


def cue_counts(text: str, language: str) -> dict[str, int]:
    """How often each kind of words occurs.

    >>> cue_counts("Possibly eczema. See a dermatologist.", "en")["refer"]
    2
    """
    return {name: len(pattern.findall(text)) for name, pattern in _patterns(language).items()}


def sentences(text: str) -> list[str]:
    """The sentences of a text that have a letter or digit.

    >>> sentences("Eczema. 外用激素软膏。避免搔抓。")
    ['Eczema.', '外用激素软膏。', '避免搔抓。']
    """
    parts = (part.strip() for part in _SENTENCE_ENDS.split(text))
    return [part for part in parts if any(char.isalnum() for char in part)]


@cache
def _patterns(language: str) -> dict[str, re.Pattern[str]]:
    return {name: re.compile(words, re.IGNORECASE) for name, words in _WORDS[language].items()}


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
        _likeness(reading)
        | _coverage(reading)
        | _question(reading)
        | _case(reading)
        | _style(reading)
        | _cues(reading)
        | contradictions(reading.candidate, reading.references, reading.language)
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


Part = Literal["candidate", "references", "query"]

STACKED = "judge:"
"""How the names of measures begin that are other judges' scores."""

BESIDE_OTHERS = ("others-", "beside-")
"""How the names of measures begin that compare with other answers to the same question."""

_PARTS: tuple[Part, ...] = ("candidate", "references", "query")
_GRAMS = {"en": ("char_wb", (2, 4)), "zh": ("char", (1, 3))}


@dataclass(frozen=True)
class Encoders:
    """What turns texts into vectors: one for each text, and one for each token of a text (for BERTScore)."""

    texts: Encoder
    tokens: TokenEncoder


def encoders_in(folder: Path) -> Encoders:
    """The encoder of sentence-transformers in a folder, for texts and, by its last layer, for tokens. Raises
    `InputError` for a folder without one, and `ConfigurationError` without the extra."""
    texts = load_sentence_encoder(str(folder))
    config = read_json(folder / "config.json", "the folder of an encoder")
    layers = config.get("num_hidden_layers") if isinstance(config, dict) else None
    if not isinstance(layers, int):
        raise InputError(folder / "config.json", "field 'num_hidden_layers'", found=repr(layers), expected="a number")
    return Encoders(texts, load_encoder(EncoderSettings(str(folder), layer=layers)))


@dataclass(frozen=True)
class Counts:
    """How often each n-gram of characters occurs in each text: texts × n-grams (sparse), and their columns."""

    table: Any
    column: dict[str, int]


@dataclass(frozen=True)
class Answers:
    """Answers in one language, a row each. `question` numbers the question that each one answers.

    `measured` is rows × `names`, NaN where a measure needs what is not there; `meanings` holds embeddings
    of each part of a case (of the references the mean), rows × their length.
    """

    language: str
    names: tuple[str, ...]
    measured: Floats
    meanings: dict[Part, Floats]
    question: NDArray[np.int64]
    texts: dict[Part, tuple[str, ...]]
    _counts: dict[Part, Counts] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.measured)

    def part(self, rows: Sequence[int] | NDArray[np.int64]) -> Answers:
        """Some rows. What was compared with other answers stays as it was read, and n-grams are not counted
        again: they are columns to choose from, and nothing is learned from them here."""
        kept = np.asarray(rows, dtype=np.int64)
        return Answers(
            self.language,
            self.names,
            self.measured[kept],
            {name: block[kept] for name, block in self.meanings.items()},
            np.unique(self.question[kept], return_inverse=True)[1],
            {name: tuple(texts[k] for k in kept) for name, texts in self.texts.items()},
            {name: Counts(self.counts(name).table[kept], self.counts(name).column) for name in _PARTS},
        )

    def stacked(self, names: Sequence[str], values: Floats) -> Answers:
        """With further measures, scores that other judges gave: rows × `names`."""
        return replace(self, names=(*self.names, *names), measured=np.hstack([self.measured, values]))

    def counts(self, part: Part) -> Counts:
        """The n-grams of a part of all cases; counted when first asked for."""
        if part not in self._counts:
            from sklearn.feature_extraction.text import CountVectorizer

            analyzer, sizes = _GRAMS[self.language]
            counter = CountVectorizer(analyzer=analyzer, ngram_range=sizes)
            # All answers to a question have its text: each is read once. A last text that no row takes: a vectorizer
            # refuses texts without a single n-gram.
            place = {text: row for row, text in enumerate(dict.fromkeys(self.texts[part]))}
            table = counter.fit_transform([*place, "no"]).tocsr()
            self._counts[part] = Counts(table[[place[text] for text in self.texts[part]]], dict(counter.vocabulary_))
        return self._counts[part]


def read_answers(cases: Sequence[Case], encoders: Encoders | None = None) -> Answers:
    """Reads cases of one language; none given, both encoders are the embedded all-MiniLM-L6-v2.

    Nothing but question, references and candidates is looked at. What is compared with other answers is
    compared with the other cases here that have the same `id`. Raises `InputError` for no cases, several
    languages, a language that can't be read, and a case without references; `ConfigurationError` without
    the extra `train`.
    """
    languages = sorted({case.language for case in cases})
    if len(languages) != 1 or languages[0] not in LANGUAGES:
        found = ", ".join(repr(one) for one in languages) or "no cases"
        raise InputError("language", found=found, expected=f"one of {', '.join(LANGUAGES)}")
    bare = next((case for case in cases if not case.references), None)
    if bare is not None:
        raise InputError(f"case {bare.id}", found="no references", expected="one or more")
    encoders = encoders or Encoders(default_encoder(), load_encoder())
    vectors = _Vectors(encoders.texts)
    texts = [_texts(case) for case in cases]
    vectors.prepare([text for candidate, query, references in texts for text in (candidate, query, *references)])
    vectors.prepare(
        [one for candidate, _, references in texts for text in (candidate, *references) for one in sentences(text)]
    )
    matched = _matched(texts, encoders.tokens)
    read = {one: Reading(*one, languages[0], vectors, matched) for one in dict.fromkeys(texts)}
    measured_once = {one: measures(reading) for one, reading in read.items()}
    readings, own = [read[one] for one in texts], [measured_once[one] for one in texts]
    order = {name: number for number, name in enumerate(dict.fromkeys(case.id for case in cases))}
    question = np.array([order[case.id] for case in cases], dtype=np.int64)
    rows = []
    for place, (measured, reading) in enumerate(zip(own, readings, strict=True)):
        others = [k for k in np.flatnonzero(question == question[place]) if k != place]
        rows.append(measured | beside_others(measured, reading, [(own[k], readings[k]) for k in others]))
    names = tuple(rows[0])
    return Answers(
        languages[0],
        names,
        np.array([[row[name] for name in names] for row in rows]),
        {
            "candidate": np.array([one.meaning for one in readings]),
            "references": np.array([one.reference_meanings.mean(axis=0) for one in readings]),
            "query": np.array([vectors(one.query) for one in readings]),
        },
        question,
        {
            "candidate": tuple(one.candidate for one in readings),
            "references": tuple("\n".join(one.references) for one in readings),
            "query": tuple(one.query for one in readings),
        },
    )


class _Vectors:
    """Embeddings by text, each computed once. Texts are encoded in the order of their characters, so that
    the order of the cases changes nothing."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, Floats] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        new = sorted({text for text in texts if text.strip() and text not in self._known})
        if new:
            found = np.asarray(self._encoder(new), dtype=np.float64)
            self._known |= dict(zip(new, found, strict=True))

    def __call__(self, text: str) -> Floats:
        if not text.strip():
            return np.zeros(len(next(iter(self._known.values()))))
        return self._known[text]


def _matched(texts: Sequence[tuple[str, str, tuple[str, ...]]], encoder: TokenEncoder) -> Matched:
    """BERTScore of each answer and its references, all computed at once, in the order of their characters."""
    pairs = sorted({(candidate, one) for candidate, _, references in texts for one in references})
    found = BertScore(encoder).score(pairs)
    rows = np.column_stack([found.precision, found.recall, found.f1]).tolist()
    known: dict[tuple[str, str], tuple[float, float, float]] = {
        pair: (row[0], row[1], row[2]) for pair, row in zip(pairs, rows, strict=True)
    }
    return lambda candidate, reference: known[candidate, reference]


def _texts(case: Case) -> tuple[str, str, tuple[str, ...]]:
    return case.candidate, case.query, tuple(one.text for one in case.references)
