"""Rated answers that a judge is shown before it rates: chosen from a rated set, never from the encounter judged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import InputError, content_hash, generator
from proctor.judges.dimensions.case import Case, RatedCase
from proctor.judges.prompt_injection import sanitize
from proctor.metrics.text import Encoder, tokens

Rows = NDArray[np.float64]

_QUERY, _REFERENCE, _CANDIDATE = 600, 200, 800  # characters of each that an exemplar shows
_REFERENCES = 3


class Exemplars(Protocol):
    """Chooses rated answers to show before a case is judged."""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """What decides the choice."""

    def of(self, case: Case) -> tuple[RatedCase, ...]:
        """The exemplars of a case, in the order in which they are shown: in its language, rated on its
        dimensions, none to a question of its encounter. Raises `InputError` where there are too few."""


class RatedPool:
    """Rated answers, each once, in an order that does not depend on that of the file."""

    def __init__(self, rated: Sequence[RatedCase]) -> None:
        once = {case_mark(one.case): one for one in rated}
        self._marks = {id(one): mark for mark, one in once.items()}
        self.rated = tuple(sorted(once.values(), key=lambda one: (one.case.id, one.case.candidate)))

    @property
    def sha256(self) -> str:
        """Of the answers and their ratings, for the record."""
        told: list[JsonValue] = [[self._marks[id(one)], dict(one.values)] for one in self.rated]
        return content_hash(told)

    def others(self, case: Case) -> list[RatedCase]:
        """The rated answers that a case may be judged by: in its language, rated on all its dimensions, and
        to questions of other encounters."""
        wanted = {one.name for one in case.dimensions}
        return [
            one
            for one in self.rated
            if one.case.encounter != case.encounter
            and one.case.language == case.language
            and wanted <= one.values.keys()
        ]


def case_mark(case: Case) -> str:
    """What a rated answer is known by in files: question and answer, not who gave it."""
    return content_hash([case.id, case.candidate])[:16]


def shown(one: RatedCase) -> dict[str, JsonValue]:
    """A rated answer as the prompt shows it: texts cut short and harmless, ratings by dimension."""
    case = one.case
    rating = {of.name: _number(one.values[of.name]) for of in case.dimensions}
    references: list[JsonValue] = [_short(of.text, _REFERENCE) for of in case.sorted_references[:_REFERENCES]]
    return {
        "query": _short(case.query, _QUERY),
        "references": references,
        "candidate": _short(case.candidate, _CANDIDATE),
        "rating": json.dumps(rating, ensure_ascii=False),
    }


class SimilarExemplars:
    """The rated answers whose question and answer are most like the case's, the most similar last; at most
    one to each encounter.

    Alike is the cosine of word counts, in Chinese of characters, rare ones weighing more (tf-idf, learned on
    the texts of the rated set), or, with an encoder, of embeddings.
    """

    def __init__(self, pool: RatedPool, shots: int, encoder: Encoder | None = None) -> None:
        self._pool = pool
        self._shots = shots
        self._by = "words" if encoder is None else "meaning"
        self._place = {id(one): k for k, one in enumerate(pool.rated)}
        texts = [_text(one.case) for one in pool.rated]
        self._likeness = _by_words(texts) if encoder is None else _by_meaning(texts, encoder)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """What decides the choice."""
        how = f"similar by {self._by}"
        return {"exemplars": how, "shots": self._shots, "rated_sha256": self._pool.sha256}

    def of(self, case: Case) -> tuple[RatedCase, ...]:
        """See `Exemplars`."""
        likeness = self._likeness(_text(case))
        ordered = sorted(self._pool.others(case), key=lambda one: -likeness[self._place[id(one)]])
        best: dict[str, RatedCase] = {}
        for one in ordered:
            best.setdefault(one.case.encounter, one)
        return tuple(reversed(_enough(list(best.values()), self._shots, case)))


def _by_words(texts: Sequence[str]) -> Callable[[str], Rows]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer=tokens)
    table = vectorizer.fit_transform(texts)
    return lambda text: np.asarray((table @ vectorizer.transform([text]).T).toarray()[:, 0], dtype=np.float64)


def _by_meaning(texts: Sequence[str], encoder: Encoder) -> Callable[[str], Rows]:
    table = np.asarray(encoder(texts), dtype=np.float64)
    return lambda text: np.round(table @ encoder([text])[0], 6)  # beyond, a text's company changes it


class CoveringExemplars:
    """Rated answers that spread over the scale: one after the other the one whose ratings are least like those
    already chosen, at most one to each encounter.

    The worth of an answer is the sum over its dimensions of 1 / (1 + how many chosen ones are rated at the
    same level); among equals a drawn order decides. The same for all cases, but for their own encounters.
    """

    def __init__(self, pool: RatedPool, shots: int, seed: int) -> None:
        self._pool = pool
        self._shots = shots
        self._seed = seed
        order = generator(seed, "exemplars", "coverage").permutation(len(pool.rated))
        self._turn = {id(one): int(order[k]) for k, one in enumerate(pool.rated)}
        self._levels = {id(one): _levels(one) for one in pool.rated}

    @property
    def settings(self) -> dict[str, JsonValue]:
        """What decides the choice."""
        mine: dict[str, JsonValue] = {"exemplars": "coverage", "shots": self._shots, "seed": self._seed}
        return {**mine, "rated_sha256": self._pool.sha256}

    def of(self, case: Case) -> tuple[RatedCase, ...]:
        """See `Exemplars`."""
        left = sorted(self._pool.others(case), key=lambda one: self._turn[id(one)])
        seen: Counter[tuple[str, float]] = Counter()
        found: list[RatedCase] = []
        while left and len(found) < self._shots:
            best = max(left, key=lambda one: sum(1 / (1 + seen[pair]) for pair in self._levels[id(one)]))
            found.append(best)
            seen.update(self._levels[id(best)])
            left = [one for one in left if one.case.encounter != best.case.encounter]
        return tuple(_enough(found, self._shots, case))


def _levels(one: RatedCase) -> list[tuple[str, float]]:
    """The level nearest to each rating (a mean of raters may lie between two)."""
    return [
        (of.name, min(of.levels, key=lambda level: abs(level - one.values[of.name])))
        for of in one.case.dimensions
        if of.name in one.values
    ]


def _enough(found: list[RatedCase], shots: int, case: Case) -> list[RatedCase]:
    if len(found) < shots:
        raise InputError(
            "rated answers",
            found=f"{len(found)} other encounters in {case.language!r} that {case.id} may be judged by",
            expected=f"{shots}, one for each example",
        )
    return found[:shots]


def _number(value: float) -> float | int:
    """Whole numbers without a point, as the form of the reply wants a flag to be."""
    return int(value) if value == int(value) else round(value, 2)


def _text(case: Case) -> str:
    return f"{case.query}\n{case.candidate}"


def _short(text: str, most: int) -> str:
    plain = sanitize(text)
    return plain if len(plain) <= most else plain[: most - 4].rstrip() + " […]"
