"""The baselines: systems that never look at what is shown, and what a blind guess or a constant scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import Answer, ConfigurationError, Item, ParseError, RefusalError, View, generator
from proctor.core.formats import ChoiceFormat, FreeTextFormat, OrderingFormat, option_letters
from proctor.metrics import Constants
from proctor.systems.replies import reply

Floats = NDArray[np.float64]


class AsGiven:
    """Frames in the order in which they are given; no look at them.

    Orderings alone. On well-mixed instances it scores at chance: more says that the mixing leaks.
    """

    name = "as-given"
    settings: ClassVar[dict[str, JsonValue]] = {}

    def supports(self, item: Item) -> bool:
        return isinstance(item.answer, OrderingFormat)

    async def answer(self, item: Item, view: View) -> Answer:
        """The labels as they are; asks for no frame. Raises `ValueError` for another format."""
        del view
        if not isinstance(item.answer, OrderingFormat):
            raise ValueError(f"an answer of the format {item.answer.kind} has no order")
        return reply(item, list(item.answer.labels))


class OptionLength:
    """The option with the most (or fewest) characters; of several as long, the first.

    Items of another format than choice have no options to measure: they are answered as `random`
    answers them under the same seed, and `extra["fallback"]` of such an answer is "random". Free text and orders are
    not supported: of orders alone, all that is left would be the row of `random` once more.
    """

    name: str
    sign: int

    def __init__(self, seed: int = 0) -> None:
        self.settings: dict[str, JsonValue] = {"seed": seed}
        self._otherwise = RandomGuess(seed)

    def supports(self, item: Item) -> bool:
        return not isinstance(item.answer, OrderingFormat) and self._otherwise.supports(item)

    async def answer(self, item: Item, view: View) -> Answer:
        """Counts characters; asks the view for nothing where there are options."""
        if not isinstance(item.answer, ChoiceFormat):
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
"""Where a view shows no video, times are drawn from its first ten minutes."""

HIGHEST_COUNT = 5
"""Counts are drawn from 0 to this, both included."""

_MOST_NAMED = 3  # where several times may be named, one to three are


class RandomGuess:
    """A valid random answer: what blind luck scores.

    The draw belongs to (seed, item), so that an item gets the same answer whenever and in whichever order it is asked.
    Choice: each option alike. Ordering: each permutation alike. Binary: a fair coin. Count: 0 to `HIGHEST_COUNT` alike.
    Percentage: a whole number from 0 to 100. Classes: each class with probability 1/2. Timestamps: uniform over the
    view's span (`DEFAULT_SPAN_S` where it has none), one moment, or one to three where several may be named. Intervals:
    between two moments of the span, one or one to three; boxes likewise, between two places on each axis; a point
    anywhere in the picture. Choices: each set of at least one option alike. Scale and preference: each level, each side
    alike. Ratings: uniform from low to high. Texts can't be drawn at random and are not supported.
    """

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self.settings: dict[str, JsonValue] = {"seed": seed}

    def supports(self, item: Item) -> bool:
        return item.answer.kind in _DRAWS

    async def answer(self, item: Item, view: View) -> Answer:
        """Draws; of the view it only asks for the span, and no frame."""
        return reply(item, self.draw(item, view.span))

    def draw(self, item: Item, span: tuple[float, float] | None = None) -> JsonValue:
        """The item's value at random. Raises `ValueError` for free text and for a choice of nothing."""
        rng = generator(self._seed, "random", item.id)
        known = _DRAWS.get(item.answer.kind)
        if known is None:
            raise ValueError(f"an answer of the format {item.answer.kind} can't be drawn at random")
        return known(_Draw(len(item.options), item.answer, span or DEFAULT_SPAN_S, rng))


@dataclass(frozen=True)
class _Draw:
    """What a value is drawn for, and from what."""

    options: int
    form: Any
    span: tuple[float, float]
    rng: np.random.Generator

    @property
    def count(self) -> int:
        """How many times or places are named."""
        return int(self.rng.integers(1, _MOST_NAMED + 1)) if self.form.several else 1


def _moments(one: _Draw) -> JsonValue:
    return [float(moment) for moment in sorted(one.rng.uniform(*one.span, size=one.count))]


def _intervals(one: _Draw) -> JsonValue:
    return [[float(end) for end in sorted(one.rng.uniform(*one.span, size=2))] for _ in range(one.count)]


def _sides(one: _Draw) -> JsonValue:
    across, down = (sorted(one.rng.uniform(0, end, size=2)) for end in (one.form.width, one.form.height))
    return [float(across[0]), float(down[0]), float(across[1]), float(down[1])]


def _some(letters: Sequence[str], rng: np.random.Generator) -> JsonValue:
    """A set of at least one, each set alike."""
    number = int(rng.integers(1, 2 ** len(letters)))
    return [letter for place, letter in enumerate(letters) if number >> place & 1]


_DRAWS: dict[str, Callable[[_Draw], JsonValue]] = {
    "choice": lambda one: str(one.rng.choice(option_letters(one.options))),
    "ordering": lambda one: [str(label) for label in one.rng.permutation(list(one.form.labels))],
    "binary": lambda one: bool(one.rng.random() < 0.5),
    "count": lambda one: int(one.rng.integers(HIGHEST_COUNT + 1)),
    "percentage": lambda one: float(one.rng.integers(101)),
    "classes": lambda one: [name for name in sorted(one.form.classes) if one.rng.random() < 0.5],
    "timestamps": _moments,
    "intervals": _intervals,
    "boxes": lambda one: [_sides(one) for _ in range(one.count)],
    "point": lambda one: [float(one.rng.uniform(0, one.form.width)), float(one.rng.uniform(0, one.form.height))],
    "choices": lambda one: _some(option_letters(one.options), one.rng),
    "scale": lambda one: int(one.rng.integers(one.form.low, one.form.high + 1)),
    "preference": lambda one: str(one.rng.choice(["A", "B", "tie"] if one.form.ties else ["A", "B"])),
    "ratings": lambda one: {name: float(one.rng.uniform(one.form.low, one.form.high)) for name in one.form.dimensions},
}


class Majority:
    """The best constant answer of each format, chosen by the reference answers: an oracle baseline.

    It is found on the very items that it then answers, so it is optimistic: what the distribution of the answers alone
    is worth (see `Constants` for what shares a constant). Free text has no majority and is not supported.
    """

    name = "majority"
    settings: ClassVar[dict[str, JsonValue]] = {"learned_from": "the references of the same items"}

    def __init__(self) -> None:
        self._constants: Constants | None = None

    def supports(self, item: Item) -> bool:
        """All formats but free text; once it has learned, only those of which it saw a reference."""
        if isinstance(item.answer, FreeTextFormat):
            return False
        return self._constants is None or self._constants.knows(item)

    def learn(self, items: Sequence[Item]) -> None:
        """Finds the constants; items without a reference teach nothing."""
        self._constants = Constants([item for item in items if not isinstance(item.answer, FreeTextFormat)])

    async def answer(self, item: Item, view: View) -> Answer:
        """The constant. Raises `ConfigurationError` where it was not told a reference of this format."""
        del view
        if self._constants is None or not self._constants.knows(item):
            raise ConfigurationError(f"majority has learned no {item.answer.kind} reference before item {item.id!r}")
        return reply(item, self._constants.answer(item))


class TextSimilarity:
    """The option, or the answer to another question, with the most similar words (TF-IDF).

    Words alone: TF-IDF over single words and pairs, cosine similarity. A choice gets the option that is most similar to
    the question; of equals the first. Here the reference is never used: all that it learns are the words' weights.
    Every other format gets the reference of the most similar question of the same format in *another* group (never in
    its own, where the same moments are asked about again): of equals the first in the benchmark's order, and of the
    references only those that are a valid answer to the item (a class that it does not know can't be said).
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
        """All formats; once it has learned, only where another group offers a reference."""
        if self._vectorizer is None or isinstance(item.answer, ChoiceFormat):
            return True
        return any(donor.group != item.group for donor in self._donors.get(item.answer.kind, ()))

    def learn(self, items: Sequence[Item]) -> None:
        """Weighs the words of all questions and options, and keeps the questions that have references."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = [text for item in items for text in (item.question, *item.options)]
        texts.append("question")  # never without a single word
        self._vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, analyzer="word")
        self._weights = self._vectorizer.fit_transform(texts)
        self._rows = {text: row for row, text in enumerate(texts)}
        self._donors = {}
        for item in items:
            if item.has_answer and not isinstance(item.answer, ChoiceFormat):
                self._donors.setdefault(item.answer.kind, []).append(item)
        self._matrices = {
            kind: self._weighed([donor.question for donor in donors]) for kind, donors in self._donors.items()
        }

    async def answer(self, item: Item, view: View) -> Answer:
        """The nearest option or reference. Raises `ConfigurationError` before it has learned, and
        `RefusalError` where no other group offers a valid answer."""
        del view
        if self._vectorizer is None:
            raise ConfigurationError(f"text-similarity has to learn the questions before item {item.id!r}")
        if isinstance(item.answer, ChoiceFormat):
            return self._nearest_option(item)
        return self._nearest_reference(item)

    def _weighed(self, texts: Sequence[str]) -> Any:
        rows = [self._rows.get(text) for text in texts]
        return self._vectorizer.transform(texts) if None in rows else self._weights[rows]

    def _words(self, text: str) -> tuple[NDArray[np.int32], Floats]:
        """The words of one text, by number, and their weights."""
        known = self._rows.get(text)
        weights, row = (self._vectorizer.transform([text]), 0) if known is None else (self._weights, known)
        part = slice(weights.indptr[row], weights.indptr[row + 1])
        return weights.indices[part], weights.data[part]

    def _spread(self, text: str) -> Floats:
        """The weights of all words in one text. A product with it takes a tenth of the time of one of sparse
        matrices."""
        spread = np.zeros(self._weights.shape[1])
        words, weights = self._words(text)
        spread[words] = weights
        return spread

    def _nearest_option(self, item: Item) -> Answer:
        question = self._spread(item.question)
        near = [float(question[words] @ weights) for words, weights in map(self._words, item.options)]
        return reply(item, option_letters(len(item.options))[int(np.argmax(_rounded(near)))])

    def _nearest_reference(self, item: Item) -> Answer:
        donors = self._donors.get(item.answer.kind, [])
        if donors:
            near = _rounded(self._matrices[item.answer.kind] @ self._spread(item.question))
            for place in np.argsort(-near, kind="stable"):
                donor = donors[int(place)]
                answer = _borrowed(item, donor) if donor.group != item.group else None
                if answer is not None:
                    return answer
        raise RefusalError(f"no question of another group lends a {item.answer.kind} answer to item {item.id!r}")


def _rounded(cosines: Sequence[float] | Floats) -> Floats:
    """Cosines of texts of length 1 (or 0, which is similar to nothing), rounded so that equal texts are equal
    whatever the order of the sum."""
    return np.asarray(cosines, dtype=np.float64).round(12)


def _borrowed(item: Item, donor: Item) -> Answer | None:
    """The donor's reference as an answer to the item; None where it would not be a valid one."""
    if donor.reference is None:
        return None
    value = donor.reference.answer
    if isinstance(item.answer, FreeTextFormat):
        value = str(value)[: item.answer.max_chars].strip()
    try:
        if not isinstance(item.answer, FreeTextFormat):
            value = item.answer.check(value, item.options)
        return reply(item, value, donor=donor.id)
    except ParseError:
        return None
