"""The signals of `local-pipeline`: how an answer matches the pictures, the question and the references, by local encoders.

After SloCal-Net (Kocbek et al. 2026, in section 6.2 of the overview), whose local pipeline joins DermLIP, SBERT and
KeyBERT. The overview does not say which figures it takes of them; these are ours. Key phrases are those of KeyBERT
(Grootendorst 2020): phrases whose embeddings are similar to the text's and different from one another. This is the only
module that imports `keybert` (the extra `pipeline`).
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import JsonValue

from proctor.core import ConfigurationError, pip_install
from proctor.judges.dimensions.case import Case
from proctor.judges.dimensions.model_judge import Pictures
from proctor.judges.embedded.measures import TextVectors, sentences
from proctor.judges.passage_index import load_sentence_encoder
from proctor.metrics.text import EMBEDDED_ENCODER, Encoder, tokens
from proctor.models import MultimodalEncoder, weights_hash
from proctor.stats import Floats

LONGEST = 400
"""The number of words (characters in a script without spaces) at the start of a text that are searched for phrases."""

KEPT = 8
"""The number of key phrases of a text."""

_DIVERSITY = 0.5  # KeyBERT's own
_WORDS, _CHARACTERS = (1, 2), (2, 3)
_BREAKS = re.compile(r"[^\w\s/%.'-]+|\.\s|\n")
_NO_STOPS = {"fire", "serious", "thick", "thin"}  # stop words for scikit-learn, but meaningful here
_STOP_CHARACTERS = frozenset("的了是在和与及或也就都而于对为有这那你您我他她它们不请可以能会")


def phrases_in(text: str) -> list[str]:
    """The candidate phrases of a text, each once: one or two words that do not begin or end with a stop word, or two or
    three characters in Chinese. Punctuation ends a phrase.

    >>> phrases_in("Keep the wound clean.")
    ['wound', 'clean', 'wound clean']
    >>> phrases_in("湿疹，外用激素。")[:3]
    ['湿疹', '外用', '用激']
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    parts = [tokens(one) for one in _BREAKS.split(text)]
    words = [word for part in parts for word in part]
    spaced = sum(len(word) > 1 for word in words) * 2 >= len(words)
    stops, (low, high), between = (
        (ENGLISH_STOP_WORDS - _NO_STOPS, _WORDS, " ") if spaced else (_STOP_CHARACTERS, _CHARACTERS, "")
    )
    found: dict[str, None] = {}
    left = LONGEST
    for part in parts:
        kept, left = part[:left], left - len(part[:left])
        for size in range(low, high + 1):
            for start in range(len(kept) - size + 1):
                piece = kept[start : start + size]
                if not stops & {piece[0], piece[-1]} and any(one.isalpha() for one in "".join(piece)):
                    found[between.join(piece)] = None
    return list(found)


def key_phrases(texts: Sequence[str], embed: Callable[[Sequence[str]], Floats]) -> list[tuple[str, ...]]:
    """At most `KEPT` phrases for each text, the most relevant first; none for a text without words. `embed` gives a unit
    vector for each text. Raises `ConfigurationError` without the extra `pipeline`."""
    worded = [text for text in dict.fromkeys(texts) if phrases_in(text)]
    if not worded:
        return [()] * len(texts)
    from sklearn.feature_extraction.text import CountVectorizer

    model = _keybert(embed)
    counter = CountVectorizer(analyzer=phrases_in)
    # The first text is given twice, since for a single text the library returns a list of another form.
    found = model.extract_keywords(
        [*worded, worded[0]], vectorizer=counter, top_n=KEPT, use_mmr=True, diversity=_DIVERSITY
    )
    by_text = {text: tuple(phrase for phrase, _ in one) for text, one in zip(worded, found, strict=False)}
    return [by_text.get(text, ()) for text in texts]


def _keybert(embed: Callable[[Sequence[str]], Floats]) -> Any:
    try:
        with warnings.catch_warnings():  # importing it changes the filters of the whole process
            from keybert import KeyBERT
            from keybert.backend import BaseEmbedder
    except ImportError as error:
        raise ConfigurationError(
            f"key phrases need the extra 'pipeline' ({pip_install('pipeline')}): {error}"
        ) from error

    class Given(BaseEmbedder):  # type: ignore[misc]  # the library has no types
        """The pipeline's own sentence encoder."""

        def embed(self, documents: Any, verbose: bool = False) -> Floats:
            del verbose
            return embed([str(one) for one in documents])

    return KeyBERT(model=Given())


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

_DIGITS = 6  # more digits of an embedding depend on the other texts of the batch


@dataclass(frozen=True)
class Signals:
    """The signals of one answer (None where an input is missing), and the key phrases of the answer (`own`) and of all
    references (`expected`)."""

    values: Mapping[str, float | None]
    own: tuple[str, ...]
    expected: tuple[str, ...]

    @property
    def record(self) -> dict[str, JsonValue]:
        """The signals as evidence."""
        return {"signals": dict(self.values), "key phrases": {"candidate": [*self.own], "references": [*self.expected]}}


class SignalReader:
    """Reads the signals of answers by a sentence encoder and optionally an encoder of pictures and texts.

    `encoder` is a name as in `load_sentence_encoder`, `pictures` a folder or id of a model like CLIP. An answer has the
    same signals in any batch. Raises `ConfigurationError` and `InputError` as these do.
    """

    def __init__(self, encoder: str = "", pictures: str = "", *, embed: Encoder | None = None) -> None:
        name = encoder or EMBEDDED_ENCODER
        self._texts = TextVectors(embed or load_sentence_encoder(name), digits=_DIGITS)
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
        """Whether it uses pictures."""
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
        """Texts are compared by sentences, since these encoders read only a few dozen words."""
        own, theirs = sentences(case.candidate), [part for text in _references(case) for part in sentences(text)]
        if not pictures.frames:
            return dict.fromkeys(_SEEN)
        shown = self._looked([str(one) for one in pictures.hashes], [one.jpeg for one in pictures.frames], sight)
        said = _mean(shown @ self._told(own, sight).T) if own else None
        expected = _mean(shown @ self._told(theirs, sight).T) if theirs else None
        excess = None if said is None or expected is None else said - expected
        return {"picture-answer": said, "picture-references": expected, "picture-excess": excess}

    def _told(self, texts: Sequence[str], sight: MultimodalEncoder) -> Floats:
        for text in texts:  # one by one, so that a vector does not depend on other texts
            if f"text:{text}" not in self._seen:
                self._seen[f"text:{text}"] = sight.read([text])[0]
        return np.array([self._seen[f"text:{text}"] for text in texts])

    def _looked(self, names: Sequence[str], jpegs: Sequence[bytes], sight: MultimodalEncoder) -> Floats:
        for name, jpeg in zip(names, jpegs, strict=True):
            if name not in self._seen:
                self._seen[name] = sight.see([jpeg])[0]
        return np.array([self._seen[name] for name in names])


def _references(case: Case) -> list[str]:
    return [one.text for one in case.sorted_references]


def _met(wanted: Floats, given: Floats) -> float | None:
    """The mean over the wanted vectors of the cosine with the nearest given vector."""
    return _mean((wanted @ given.T).max(axis=1)) if len(wanted) and len(given) else None


def _length(case: Case) -> dict[str, float | None]:
    lengths = [len(tokens(one)) for one in _references(case)]
    expected = _mean(lengths)
    return {"length": None if not expected else float(np.log((1 + len(tokens(case.candidate))) / (1 + expected)))}


def _mean(values: Floats | Sequence[float]) -> float | None:
    return float(np.mean(values)) if np.size(values) else None


def _known_as(name: str) -> str:
    """An encoder's name in settings: for a folder the hash of its weights."""
    return weights_hash(Path(name)) or name
