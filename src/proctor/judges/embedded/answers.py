"""Answers read once: their measures, texts and embeddings, one row per case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.judges.dimensions import Case
from proctor.judges.embedded.cues import LANGUAGES, sentences
from proctor.judges.embedded.measures import Matched, Reading, beside_others, measures
from proctor.metrics.text import BertScore, Encoder, TokenEncoder, default_encoder, load_encoder

Floats = NDArray[np.float64]
Part = Literal["candidate", "references", "query"]

BESIDE_OTHERS = ("others-", "beside-")
"""How the names of measures begin that compare with other answers to the same question."""

_PARTS: tuple[Part, ...] = ("candidate", "references", "query")
_GRAMS = {"en": ("char_wb", (2, 4)), "zh": ("char", (1, 3))}


@dataclass(frozen=True)
class Encoders:
    """What turns texts into vectors: one for each text, and one for each token of a text (for BERTScore)."""

    texts: Encoder
    tokens: TokenEncoder


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

    def counts(self, part: Part) -> Counts:
        """The n-grams of a part of all cases; counted when first asked for."""
        if part not in self._counts:
            from sklearn.feature_extraction.text import CountVectorizer

            analyzer, sizes = _GRAMS[self.language]
            counter = CountVectorizer(analyzer=analyzer, ngram_range=sizes)
            # A last row that is dropped again: a vectorizer refuses texts without a single n-gram.
            table = counter.fit_transform([*self.texts[part], "no"])[:-1]
            self._counts[part] = Counts(table.tocsr(), dict(counter.vocabulary_))
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
        raise InputError(None, "language", found=found, expected=f"one of {', '.join(LANGUAGES)}")
    bare = next((case for case in cases if not case.references), None)
    if bare is not None:
        raise InputError(None, f"case {bare.id}", found="no references", expected="one or more")
    encoders = encoders or Encoders(default_encoder(), load_encoder())
    vectors = _Vectors(encoders.texts)
    texts = [_texts(case) for case in cases]
    vectors.prepare([text for candidate, query, references in texts for text in (candidate, query, *references)])
    vectors.prepare(
        [one for candidate, _, references in texts for text in (candidate, *references) for one in sentences(text)]
    )
    matched = _matched(texts, encoders.tokens)
    readings = [
        Reading(candidate, query, references, languages[0], vectors, matched) for candidate, query, references in texts
    ]
    own = [measures(one) for one in readings]
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
