"""Kinds of sentences in an answer, and its core: what it says about the case, without greetings and disclaimers.

A greeting, a good wish, a disclaimer or an unspecific "ask a doctor" says nothing about the case (generic); "none of this
is true" says something about the other sentences (verdict). Both are left out before anything is measured, so that they
change no measure; a verdict turns what it is about into its denial. The kinds are learned from the sentences in
`sentences.yaml`, by a logistic regression on embeddings and n-grams of characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from proctor.core import content_hash, read_yaml
from proctor.metrics.text import Encoder, tokens
from proctor.stats import Floats
from proctor_train.mediqa_eval.embedded.assertions import Part

Kind = Literal["content", "generic", "verdict"]

KINDS: tuple[Kind, ...] = ("content", "generic", "verdict")
"""The kinds of sentences, in the order of their probabilities."""

_SENTENCE_ENDS = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_HEAD = re.compile(r"[:：]|\bthat\b(?= \w)")
_GRAMS: dict[str, tuple[Literal["char_wb", "char"], tuple[int, int]]] = {
    "en": ("char_wb", (2, 5)),
    "zh": ("char", (1, 3)),
}
_CLAUSE = re.compile(r"[,;，；]")
_LONGEST_HEAD = 90  # characters
_SHORTEST_CLAUSE = 3  # words or Chinese characters
_SURE, _SURE_OF_CLAUSE = 0.5, 0.7  # the probability of a kind
_FREEDOM = 20.0  # of the regression; more is freer


def sentences(text: str) -> list[str]:
    """The sentences of a text that have a letter or digit.

    >>> sentences("Eczema. 外用激素软膏。避免搔抓。")
    ['Eczema.', '外用激素软膏。', '避免搔抓。']
    """
    parts = (part.strip() for part in _SENTENCE_ENDS.split(text))
    return [part for part in parts if any(char.isalnum() for char in part)]


@cache
def _bank() -> dict[str, dict[Kind, list[str]]]:
    return read_yaml(Path(__file__).with_name("sentences.yaml"))


def bank_hash() -> str:
    """The hash of the sentences from which kinds are learned."""
    rows = ((language, kind, said) for language, kinds in _bank().items() for kind, said in kinds.items())
    return content_hash([f"{language} {kind} {one}" for language, kind, said in rows for one in said])


@dataclass(frozen=True)
class Core:
    """What an answer says about the case: its text, and its sentences with what the answer says about them."""

    text: str
    parts: tuple[Part, ...]


class SentenceKinds:
    """Tells kinds of sentences apart in one language; `encoder` gives the embeddings of texts."""

    def __init__(self, language: str, encoder: Encoder) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        known = [(sentence, kind) for kind in KINDS for sentence in _bank()[language][kind]]
        texts = [_plain(sentence) for sentence, _ in known]
        analyzer, sizes = _GRAMS[language]
        self.language = language
        self._grams = TfidfVectorizer(analyzer=analyzer, ngram_range=sizes, sublinear_tf=True).fit(texts)
        self._model = LogisticRegression(C=_FREEDOM, class_weight="balanced", max_iter=1000)
        vectors = np.asarray(encoder([sentence for sentence, _ in known]), dtype=np.float64)
        self._centre = vectors.mean(axis=0)
        self._model.fit(self._columns(texts, vectors), [KINDS.index(kind) for _, kind in known])

    def _columns(self, texts: Sequence[str], vectors: Floats) -> Any:
        from scipy.sparse import hstack

        grams = self._grams.transform([_plain(text) for text in texts])
        apart = vectors - self._centre  # the embeddings of some encoders are all in one direction
        lengths = np.linalg.norm(apart, axis=1, keepdims=True)
        return hstack([apart / np.maximum(lengths, 1e-9), grams]).tocsr()

    def chances(self, texts: Sequence[str], vectors: Floats) -> Floats:
        """The probability of each kind: texts × `KINDS`."""
        return np.asarray(self._model.predict_proba(self._columns(texts, vectors)), dtype=np.float64)


@cache
def sentence_kinds(language: str, encoder: Encoder) -> SentenceKinds:
    """The kinds of a language, learned once for an encoder."""
    return SentenceKinds(language, encoder)


def _plain(text: str) -> str:
    return text.lower().replace("’", "'").strip(" .,:;!?。，：；！？")


class Piece(NamedTuple):
    """A sentence and what separates it from the next, its head and rest if it has a head (what stands before a colon or
    "that"), and its clauses."""

    whole: str
    gap: str
    head: str
    rest: str
    clauses: tuple[str, ...]


def _pieces(text: str) -> list[Piece]:
    found, start = [], 0
    for stop, after in (*(end.span() for end in _SENTENCE_ENDS.finditer(text)), (len(text), len(text))):
        sentence, gap = text[start:stop].strip(), text[stop:after]
        at = _HEAD.search(sentence)
        head, rest = (sentence[: at.end()].strip(" :："), sentence[at.end() :].strip()) if at else ("", "")
        if len(head) > _LONGEST_HEAD or not any(map(str.isalnum, rest)):
            head, rest = "", ""
        clauses = (clause.strip() for clause in _CLAUSE.split(rest or sentence))
        said = tuple(clause for clause in clauses if len(tokens(clause)) >= _SHORTEST_CLAUSE)
        found.append(Piece(sentence, gap, head, rest, said))
        start = after
    return found


def cores(texts: Sequence[str], kinds: SentenceKinds, vectors: Callable[[Sequence[str]], Floats]) -> list[Core]:
    """The cores of answers. `vectors` gives the embeddings of texts.

    A verdict is about all that follows if nothing about the case came before it, else about all that came before. A second
    verdict confirms the first. An answer that has nothing but generic sentences keeps the one that is most about the case.
    """
    pieces = [_pieces(text) for text in texts]
    told = {text for given in pieces for one in given for text in (one.whole, one.head, one.rest, *one.clauses)}
    asked = sorted(text for text in told if any(map(str.isalnum, text)))
    chances = dict(zip(asked, kinds.chances(asked, vectors(asked)), strict=True)) if asked else {}
    return [_core(given, chances) for given in pieces]


def _kind(text: str, clauses: Sequence[str], chances: Mapping[str, Floats]) -> Kind:
    """The kind of a sentence or a head. A sentence with a clause that is clearly about the case is content."""
    content, generic, verdict = chances[text].tolist()
    if verdict > max(content, generic):
        return "verdict"
    said = any(chances[clause][0] >= _SURE_OF_CLAUSE for clause in clauses)
    return "generic" if generic >= _SURE and not said else "content"


def _core(pieces: Sequence[Piece], chances: Mapping[str, Floats]) -> Core:
    kept: list[str] = []
    parts: list[Part] = []
    left: list[str] = []
    denied = False
    for piece in pieces:
        if piece.whole not in chances:  # no letter and no digit
            kept.append(piece.whole + piece.gap)
            continue
        head = _kind(piece.head, (), chances) if piece.head else "content"
        headless = head == "verdict" or (head == "generic" and not piece.head.endswith("that"))
        sentence = piece.rest if headless else piece.whole
        denied |= head == "verdict"
        kind = _kind(sentence, piece.clauses, chances)
        if kind == "content":
            kept.append(sentence + piece.gap)
            parts.append(Part(sentence, denied))
        elif kind == "generic":
            left.append(sentence)
        elif parts:
            parts = [Part(part.text, True) for part in parts]
        else:
            denied = True
    if not parts and left:
        kept = [max(left, key=lambda sentence: (float(chances[sentence][0]), sentence))]
        parts = [Part(kept[0], denied)]
    return Core("".join(kept).strip(), tuple(parts))
