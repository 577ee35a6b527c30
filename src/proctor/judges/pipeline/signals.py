"""What encoders tell of an answer: how it goes with the pictures, the question and the references.

After SloCal-Net (Kocbek et al. 2026, in section 6.2 of the overview), whose local pipeline joins DermLIP, SBERT and
KeyBERT. The overview does not say which figures it takes of them; these are ours.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.judges.dimensions.case import Case
from proctor.judges.dimensions.model_judge import Pictures
from proctor.judges.embedded.answers import sentences
from proctor.judges.passage_index import load_sentence_encoder
from proctor.judges.pipeline.key_phrases import key_phrases
from proctor.metrics.text import EMBEDDED_ENCODER, Encoder, tokens
from proctor.models import MultimodalEncoder, weights_hash

Floats = NDArray[np.float64]

_SAID = {
    "answer-references": "likeness in meaning of the candidate and the references, on average",
    "answer-best-reference": "likeness in meaning of the candidate and the most similar reference",
    "answer-question": "likeness in meaning of the candidate and the question",
    "references-covered": "how well each sentence of the references is met by a sentence of the candidate",
    "answer-supported": "how well each sentence of the candidate is met by a sentence of the references",
    "phrases-covered": "how well the references' key phrases are met by those of the candidate",
    "phrases-supported": "how well the candidate's key phrases are met by those of the references",
    "phrases-shared": "share of the references' key phrases whose words all stand in the candidate",
    "length": "logarithm of the candidate's number of words over the references' mean number",
}
_SEEN = {
    "picture-answer": "likeness of the pictures and the candidate's sentences, on average",
    "picture-references": "likeness of the pictures and the references' sentences, on average",
    "picture-excess": "by how much the pictures are more like the candidate than like the references",
}
SIGNALS: Mapping[str, str] = {**_SAID, **_SEEN}
"""The signals by name, in words. Likenesses are cosines, −1 to 1."""

_DIGITS = 6  # beyond them, a text's company in a batch changes its embedding


@dataclass(frozen=True)
class Signals:
    """The signals of one answer, None where something that it takes is not there, and the key phrases of the answer
    and of all references."""

    values: Mapping[str, float | None]
    own: tuple[str, ...]
    expected: tuple[str, ...]

    @property
    def told(self) -> dict[str, JsonValue]:
        """For the record."""
        return {"signals": dict(self.values), "key phrases": {"candidate": [*self.own], "references": [*self.expected]}}


class SignalReader:
    """Reads the signals of answers by a sentence encoder and, where one is given, one of pictures and texts.

    `encoder` is a name as in `load_sentence_encoder`, `pictures` a folder or id of a model like CLIP. The same answer
    has the same signals, whatever it is read with. Raises `ConfigurationError` and `InputError` as these do.
    """

    def __init__(self, encoder: str = "", pictures: str = "", *, embed: Encoder | None = None) -> None:
        name = encoder or EMBEDDED_ENCODER
        self._texts = _Embeddings(embed or load_sentence_encoder(name))
        self._sight = MultimodalEncoder(pictures) if pictures else None
        self._seen: dict[str, Floats] = {}
        self._guard = threading.Lock()
        self.names = (*_SAID, *(_SEEN if pictures else ()))
        self.settings: dict[str, JsonValue] = {
            "encoder": _known_as(name),
            "pictures": _known_as(pictures) if pictures else None,
        }

    @property
    def sees(self) -> bool:
        """Whether it looks at pictures."""
        return self._sight is not None

    def read(self, cases: Sequence[Case], pictures: Sequence[Pictures]) -> list[Signals]:
        """The signals of each answer; `pictures` are those of each case."""
        texts = [text for case in cases for text in (case.candidate, case.query, *_references(case))]
        parts = [part for case in cases for text in (case.candidate, *_references(case)) for part in sentences(text)]
        with self._guard:
            self._texts.prepare([*texts, *parts])
            phrases = dict(zip(texts, key_phrases(texts, self._texts.rows), strict=True))
            self._texts.prepare([phrase for some in phrases.values() for phrase in some])
            return [self._of(case, seen, phrases) for case, seen in zip(cases, pictures, strict=True)]

    def _of(self, case: Case, pictures: Pictures, phrases: Mapping[str, tuple[str, ...]]) -> Signals:
        own = phrases[case.candidate]
        expected = tuple(dict.fromkeys(phrase for one in _references(case) for phrase in phrases[one]))
        values = self._meanings(case) | self._phrases(case, own, expected) | _length(case)
        if self._sight is not None:
            values |= self._pictures(case, pictures, self._sight)
        rounded = {
            name: None if (value := values[name]) is None else round(float(value), _DIGITS) for name in self.names
        }
        return Signals(rounded, own, expected)

    def _meanings(self, case: Case) -> dict[str, float | None]:
        answer, references = self._texts.rows([case.candidate]), self._texts.rows(_references(case))
        alike = (references @ answer.T)[:, 0]
        own = self._texts.rows(sentences(case.candidate))
        theirs = self._texts.rows([part for text in _references(case) for part in sentences(text)])
        return {
            "answer-references": _mean(alike),
            "answer-best-reference": _mean(alike.max(keepdims=True)) if len(alike) else None,
            "answer-question": _mean(self._texts.rows([case.query]) @ answer.T),
            "references-covered": _met(theirs, own),
            "answer-supported": _met(own, theirs),
        }

    def _phrases(self, case: Case, own: Sequence[str], expected: Sequence[str]) -> dict[str, float | None]:
        words = set(tokens(case.candidate))
        mine, theirs = self._texts.rows(own), self._texts.rows(expected)
        return {
            "phrases-covered": _met(theirs, mine),
            "phrases-supported": _met(mine, theirs),
            "phrases-shared": _mean([words.issuperset(tokens(one)) for one in expected]),
        }

    def _pictures(self, case: Case, pictures: Pictures, sight: MultimodalEncoder) -> dict[str, float | None]:
        """Each text by its sentences, since these encoders read no more than a few dozen words."""
        own, theirs = sentences(case.candidate), [part for text in _references(case) for part in sentences(text)]
        if not pictures.frames:
            return dict.fromkeys(_SEEN)
        shown = self._looked([str(one) for one in pictures.hashes], [one.jpeg for one in pictures.frames], sight)
        said = _mean(shown @ self._told(own, sight).T) if own else None
        expected = _mean(shown @ self._told(theirs, sight).T) if theirs else None
        excess = None if said is None or expected is None else said - expected
        return {"picture-answer": said, "picture-references": expected, "picture-excess": excess}

    def _told(self, texts: Sequence[str], sight: MultimodalEncoder) -> Floats:
        for text in texts:  # one by one: a text's vector does not depend on others
            if f"text:{text}" not in self._seen:
                self._seen[f"text:{text}"] = sight.read([text])[0]
        return np.array([self._seen[f"text:{text}"] for text in texts])

    def _looked(self, names: Sequence[str], jpegs: Sequence[bytes], sight: MultimodalEncoder) -> Floats:
        for name, jpeg in zip(names, jpegs, strict=True):
            if name not in self._seen:
                self._seen[name] = sight.see([jpeg])[0]
        return np.array([self._seen[name] for name in names])


class _Embeddings:
    """Embeddings by text, each computed once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, Floats] = {}
        self._width = 0

    def prepare(self, texts: Sequence[str]) -> None:
        new = sorted({text for text in texts if text.strip() and text not in self._known})
        if new:
            found = np.round(np.asarray(self._encoder(new), dtype=np.float64), _DIGITS)
            self._width = found.shape[1]
            self._known |= dict(zip(new, found, strict=True))

    def rows(self, texts: Sequence[str]) -> Floats:
        """Texts × the encoder's numbers; 0 for a text without words."""
        self.prepare(texts)
        blank = np.zeros(self._width)
        return np.array([self._known.get(text, blank) for text in texts]).reshape(len(texts), self._width)


def _references(case: Case) -> list[str]:
    return [one.text for one in case.sorted_references]


def _met(wanted: Floats, given: Floats) -> float | None:
    """The mean over what is wanted of its cosine with the nearest that is given."""
    return _mean((wanted @ given.T).max(axis=1)) if len(wanted) and len(given) else None


def _length(case: Case) -> dict[str, float | None]:
    lengths = [len(tokens(one)) for one in _references(case)]
    expected = _mean(lengths)
    return {"length": None if not expected else float(np.log((1 + len(tokens(case.candidate))) / (1 + expected)))}


def _mean(values: Floats | Sequence[float]) -> float | None:
    return float(np.mean(values)) if np.size(values) else None


def _known_as(name: str) -> str:
    """An encoder's name in the record: the hash of its weights where it is a folder."""
    return weights_hash(Path(name)) or name
