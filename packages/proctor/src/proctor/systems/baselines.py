"""The baselines: systems that use no pictures, and what a random guess or a constant answer scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import Answer, ConfigurationError, Item, ParseError, RefusalError, View, current_repetition, generator
from proctor.core.formats import option_letters
from proctor.metrics import Constants
from proctor.systems.replies import reply

Floats = NDArray[np.float64]


class AsGiven:
    """Frames in the order in which they are given; no look at them.

    Orderings only. On well-shuffled instances it scores at chance level; a higher score means that the shuffling leaks.
    """

    name = "as-given"
    settings: ClassVar[dict[str, JsonValue]] = {}

    def supports(self, item: Item) -> bool:
        return item.answer.kind == "ordering"

    async def answer(self, item: Item, view: View) -> Answer:
        """The labels in the item's order. Raises `ValueError` for another format."""
        del view
        if item.answer.kind != "ordering":
            raise ValueError(f"an answer of the format {item.answer.kind} has no order")
        return reply(item, list(item.answer.labels))


class OptionLength:
    """The option with the most (or fewest) characters; the first of several.

    Items of another format than choice have no options: they are answered as by `random` with the same seed, and
    `extra["fallback"]` is then "random". Free text and orders are not supported.
    """

    name: str
    sign: int

    def __init__(self, seed: int = 0) -> None:
        self.settings: dict[str, JsonValue] = {"seed": seed}
        self._otherwise = RandomGuess(seed)

    def supports(self, item: Item) -> bool:
        return item.answer.kind != "ordering" and self._otherwise.supports(item)

    async def answer(self, item: Item, view: View) -> Answer:
        if item.answer.kind != "choice":
            return reply(item, self._otherwise.draw(item, view.span), fallback=self._otherwise.name)
        number = min(range(len(item.options)), key=lambda index: self.sign * len(item.options[index]))
        return reply(item, option_letters(len(item.options))[number])


class LongestOption(OptionLength):
    """The option with the most characters; a rule that reads no question."""

    name, sign = "longest-option", -1


class ShortestOption(OptionLength):
    """The option with the fewest characters; a rule that reads no question."""

    name, sign = "shortest-option", 1


DEFAULT_SPAN_S = (0.0, 600.0)
"""The span from which times are drawn where a view has no video: ten minutes."""

HIGHEST_COUNT = 5
"""Counts are drawn from 0 to this, both included."""

_MAX_NAMED = 3  # where a format allows several times, boxes or points, one to three are drawn


class RandomGuess:
    """A valid random answer: what blind luck scores.

    The draw depends on seed, item and repetition only, so that an item always gets the same answer. All draws are uniform: over the
    options of a choice, permutations of an ordering, non-empty sets of choices, yes and no, counts from 0 to
    `HIGHEST_COUNT`, whole percentages from 0 to 100, levels of a scale, sides of a preference, and ratings from low to
    high; each class is named with probability 1/2. Timestamps are uniform over the view's span (`DEFAULT_SPAN_S` where
    it has none), intervals lie between two such times, boxes between two positions on each axis, a point anywhere in the
    picture; where a format allows several, one to three are drawn. Free text is not supported.
    """

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self.settings: dict[str, JsonValue] = {"seed": seed}

    def supports(self, item: Item) -> bool:
        return item.answer.kind in _DRAWS

    async def answer(self, item: Item, view: View) -> Answer:
        """A random answer; uses the view's span, and no frame."""
        return reply(item, self.draw(item, view.span))

    def draw(self, item: Item, span: tuple[float, float] | None = None) -> JsonValue:
        """A random value for the item. Raises `ValueError` for free text and for a choice without options."""
        number = current_repetition().number
        rng = generator(self._seed, "random", item.id, *([f"repetition {number}"] if number else []))
        known = _DRAWS.get(item.answer.kind)
        if known is None:
            raise ValueError(f"an answer of the format {item.answer.kind} can't be drawn at random")
        return known(_Draw(len(item.options), item.answer, span or DEFAULT_SPAN_S, rng))


@dataclass(frozen=True)
class _Draw:
    """The number of options, the format, the span of times, and the generator of one draw."""

    options: int
    form: Any
    span: tuple[float, float]
    rng: np.random.Generator

    @property
    def count(self) -> int:
        """The number of times, boxes or points to draw."""
        return int(self.rng.integers(1, _MAX_NAMED + 1)) if self.form.several else 1


def _timestamps(draw: _Draw) -> JsonValue:
    return [float(time) for time in sorted(draw.rng.uniform(*draw.span, size=draw.count))]


def _intervals(draw: _Draw) -> JsonValue:
    return [[float(end) for end in sorted(draw.rng.uniform(*draw.span, size=2))] for _ in range(draw.count)]


def _box(draw: _Draw) -> JsonValue:
    across, down = (sorted(draw.rng.uniform(0, end, size=2)) for end in (draw.form.width, draw.form.height))
    return [float(across[0]), float(down[0]), float(across[1]), float(down[1])]


def _some(letters: Sequence[str], rng: np.random.Generator) -> JsonValue:
    """A random non-empty set."""
    bits = int(rng.integers(1, 2 ** len(letters)))
    return [letter for bit, letter in enumerate(letters) if bits >> bit & 1]


_DRAWS: dict[str, Callable[[_Draw], JsonValue]] = {
    "choice": lambda one: str(one.rng.choice(option_letters(one.options))),
    "ordering": lambda one: [str(label) for label in one.rng.permutation(list(one.form.labels))],
    "binary": lambda one: bool(one.rng.random() < 0.5),
    "count": lambda one: int(one.rng.integers(HIGHEST_COUNT + 1)),
    "percentage": lambda one: float(one.rng.integers(101)),
    "classes": lambda one: [name for name in sorted(one.form.classes) if one.rng.random() < 0.5],
    "timestamps": _timestamps,
    "intervals": _intervals,
    "boxes": lambda one: [_box(one) for _ in range(one.count)],
    "point": lambda one: [float(one.rng.uniform(0, one.form.width)), float(one.rng.uniform(0, one.form.height))],
    "choices": lambda one: _some(option_letters(one.options), one.rng),
    "scale": lambda one: int(one.rng.integers(one.form.low, one.form.high + 1)),
    "preference": lambda one: str(one.rng.choice(["A", "B", "tie"] if one.form.ties else ["A", "B"])),
    "ratings": lambda one: {name: float(one.rng.uniform(one.form.low, one.form.high)) for name in one.form.dimensions},
}


class Majority:
    """The best constant answer of each format, chosen by the reference answers: an oracle baseline.

    It is chosen on the same items that it answers, so it is optimistic: it shows what the distribution of the answers
    alone is worth (see `Constants` for which items share a constant). Free text is not supported.
    """

    name = "majority"
    settings: ClassVar[dict[str, JsonValue]] = {"learned_from": "the references of the same items"}

    def __init__(self) -> None:
        self._constants: Constants | None = None

    def supports(self, item: Item) -> bool:
        """All formats but free text; after `learn`, only formats with a reference."""
        if item.answer.kind == "free_text":
            return False
        return self._constants is None or self._constants.knows(item)

    def learn(self, items: Sequence[Item]) -> None:
        """Finds the constants; items without a reference are ignored."""
        self._constants = Constants([item for item in items if item.answer.kind != "free_text"])

    async def answer(self, item: Item, view: View) -> Answer:
        """The constant. Raises `ConfigurationError` where `learn` saw no reference of this format."""
        del view
        if self._constants is None or not self._constants.knows(item):
            raise ConfigurationError(f"majority has learned no {item.answer.kind} reference before item {item.id!r}")
        return reply(item, self._constants.answer(item))


class TextSimilarity:
    """The option, or the answer to another question, with the most similar words (TF-IDF).

    TF-IDF over single words and pairs of words, cosine similarity; of equals always the first. A choice gets the option
    that is most similar to the question, and no reference is used. Every other format gets the reference of the most
    similar question of the same format in *another* group (questions of one group are about the same moments), provided
    that the reference is a valid answer to the item.
    """

    name = "text-similarity"
    settings: ClassVar[dict[str, JsonValue]] = {
        "words": "TF-IDF, 1 and 2 words, sublinear",
        "donors": "other groups only",
    }

    def __init__(self) -> None:
        self._vectorizer: Any = None
        self._weights: Any = None
        self._rows: dict[str, int] = {}
        self._donors: dict[str, list[Item]] = {}
        self._matrices: dict[str, Any] = {}

    def supports(self, item: Item) -> bool:
        """All formats; after `learn`, only where another group has a reference."""
        if self._vectorizer is None or item.answer.kind == "choice":
            return True
        return any(donor.group != item.group for donor in self._donors.get(item.answer.kind, ()))

    def learn(self, items: Sequence[Item]) -> None:
        """Fits TF-IDF on all questions and options, and keeps the questions with references."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = [text for item in items for text in (item.question, *item.options)]
        texts.append("question")  # never without a single word
        self._vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, analyzer="word")
        self._weights = self._vectorizer.fit_transform(texts)
        self._rows = {text: row for row, text in enumerate(texts)}
        self._donors = {}
        for item in items:
            if item.has_answer and item.answer.kind != "choice":
                self._donors.setdefault(item.answer.kind, []).append(item)
        self._matrices = {
            kind: self._matrix([donor.question for donor in donors]) for kind, donors in self._donors.items()
        }

    async def answer(self, item: Item, view: View) -> Answer:
        """The nearest option or reference. Raises `ConfigurationError` before `learn`, and `RefusalError` where no other
        group has a valid answer."""
        del view
        if self._vectorizer is None:
            raise ConfigurationError(f"text-similarity has to learn the questions before item {item.id!r}")
        if item.answer.kind == "choice":
            return self._nearest_option(item)
        return self._nearest_reference(item)

    def _matrix(self, texts: Sequence[str]) -> Any:
        rows = [self._rows.get(text) for text in texts]
        return self._vectorizer.transform(texts) if None in rows else self._weights[rows]

    def _words(self, text: str) -> tuple[NDArray[np.int32], Floats]:
        """The indices of the words of one text, and their weights."""
        known = self._rows.get(text)
        weights, row = (self._vectorizer.transform([text]), 0) if known is None else (self._weights, known)
        part = slice(weights.indptr[row], weights.indptr[row + 1])
        return weights.indices[part], weights.data[part]

    def _dense(self, text: str) -> Floats:
        """The weights of one text as a dense vector: its products are ten times faster than those of sparse matrices."""
        dense = np.zeros(self._weights.shape[1])
        words, weights = self._words(text)
        dense[words] = weights
        return dense

    def _nearest_option(self, item: Item) -> Answer:
        question = self._dense(item.question)
        near = [float(question[words] @ weights) for words, weights in map(self._words, item.options)]
        return reply(item, option_letters(len(item.options))[int(np.argmax(_rounded(near)))])

    def _nearest_reference(self, item: Item) -> Answer:
        donors = self._donors.get(item.answer.kind, [])
        if donors:
            near = _rounded(self._matrices[item.answer.kind] @ self._dense(item.question))
            for index in np.argsort(-near, kind="stable"):
                donor = donors[int(index)]
                answer = _borrowed(item, donor) if donor.group != item.group else None
                if answer is not None:
                    return answer
        raise RefusalError(f"no question of another group lends a {item.answer.kind} answer to item {item.id!r}")


def _rounded(cosines: Sequence[float] | Floats) -> Floats:
    """Cosines of unit vectors, rounded so that equal texts have equal cosines whatever the order of the sum."""
    return np.asarray(cosines, dtype=np.float64).round(12)


def _borrowed(item: Item, donor: Item) -> Answer | None:
    """The donor's reference as an answer to the item; None where it is not valid there."""
    if donor.reference is None or donor.unanswerable:
        return None
    value = donor.reference.answer
    if item.answer.kind == "free_text":
        value = str(value)[: item.answer.max_chars].strip()
    try:
        if item.answer.kind != "free_text":
            value = item.answer.check(value, item.options)
        return reply(item, value, donor=donor.id)
    except ParseError:
        return None
