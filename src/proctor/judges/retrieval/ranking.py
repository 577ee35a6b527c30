"""Passages ranked for a query: by shared words (BM25), by meaning (vectors), and by both fused."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import ConfigurationError
from proctor.judges.retrieval.fusing import fused
from proctor.judges.retrieval.passages import Passage
from proctor.metrics.text import Encoder, tokens

_K1, _B = 1.2, 0.75
Vectors = NDArray[np.float32]


class Words:
    """BM25 over texts: the sum over the query's words of idf · tf / (tf + 1.2 · (0.25 + 0.75 · length / mean
    length)), idf = ln(1 + (N − df + ½) / (df + ½)) (Robertson and Zaragoza 2009, as in Lucene). Words are
    those of `tokens`: in Chinese, characters. Raises `ConfigurationError` without the extra `retrieval`.

    >>> Words(["ice water", "water", "burn"]).scores("Ice!").round(4).tolist()
    [0.3701, 0.0, 0.0]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        try:
            from bm25s import BM25
        except ImportError as error:
            raise ConfigurationError(
                f"retrieval needs the extra 'retrieval' (pip install 'proctor-eval[retrieval]'): {error}"
            ) from error
        split = [tokens(text) for text in texts]
        self._known = {word for words in split for word in words}
        self._count = len(split)
        self._index: Any = BM25(method="lucene", k1=_K1, b=_B)
        if self._known:
            self._index.index(split, show_progress=False)

    def scores(self, query: str) -> NDArray[np.float64]:
        """The score of each text; 0 where it shares no word with the query."""
        known = [word for word in tokens(query) if word in self._known]
        if not known:
            return np.zeros(self._count)
        return np.asarray(self._index.get_scores(known), dtype=np.float64)

    def ranking(self, query: str, most: int) -> list[int]:
        """The places of the best texts, best first; only those that share a word with the query."""
        scores = self.scores(query)
        order = np.argsort(-scores, kind="stable")[:most]
        return [int(one) for one in order if scores[one] > 0]


@dataclass(frozen=True, slots=True)
class Match:
    """A passage that was found, with its fused score and its best ranks (from 1) by words and by meaning over
    the queries; None where it was not among the best."""

    passage: Passage
    score: float
    by_words: int | None
    by_meaning: int | None


class PassageIndex:
    """Passages and their vectors, each of length 1. Safe to be used from several threads.

    Every search compares all of them, by one matrix product: 100,000 passages of 384 numbers are 150 MB on disk, read
    as they are needed; a million are 1.5 GB and want as much free memory to be fast.
    """

    def __init__(self, passages: Sequence[Passage], vectors: Vectors, encoder: Encoder) -> None:
        self.passages = tuple(passages)
        self._vectors = vectors
        self._encoder = encoder
        self._words = Words([one.text for one in self.passages])
        self._lock = threading.Lock()
        self._found: dict[tuple[str, int], tuple[list[int], list[int]]] = {}

    def search(self, queries: Sequence[str], most: int, *, pool: int = 24) -> list[Match]:
        """The best `most` passages for any of the queries: for each query the best `pool` by words and by
        meaning, all these rankings fused. Queries without a letter or digit find nothing."""
        asked = [one for one in dict.fromkeys(queries) if tokens(one)]
        pairs = [self._rankings(one, pool) for one in asked]
        by_words, by_meaning = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return [
            Match(self.passages[place], score, _best(place, by_words), _best(place, by_meaning))
            for place, score in fused([ranking for pair in pairs for ranking in pair])[:most]
        ]

    def _rankings(self, query: str, pool: int) -> tuple[list[int], list[int]]:
        with self._lock:  # encoders are not made for threads
            if (query, pool) not in self._found:
                self._found[query, pool] = (self._words.ranking(query, pool), self._near(query, pool))
            return self._found[query, pool]

    def _near(self, query: str, pool: int) -> list[int]:
        vector = np.asarray(self._encoder([query])[0], dtype=np.float32)
        length = float(np.linalg.norm(vector))
        apart = 1 - self._vectors @ (vector / (length or 1.0))
        # Rounded, so that passages of one text keep their order whatever the processor's last digits are.
        return [int(place) for place in np.argsort(np.round(apart, 6), kind="stable")[:pool]]


def _best(place: int, rankings: Sequence[Sequence[int]]) -> int | None:
    ranks = [one.index(place) + 1 for one in rankings if place in one]
    return min(ranks, default=None)
