"""`text-similarity`: nearest words by TF-IDF, without a look at any frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import JsonValue

from proctor.core import Answer, ConfigurationError, Item, ParseError, RefusalError, System, View
from proctor.core.formats import ChoiceFormat, FreeTextFormat, option_letters
from proctor.systems.wording import reply

__all__ = ["TextSimilarity", "build"]


class TextSimilarity:
    """Words alone (TF-IDF over single words and pairs, cosine similarity).

    A choice gets the option that is most similar to the question; of equals the first. Here the key is
    never used: all that it learns are the words' weights. Every other format gets the reference of the
    most similar question of the same format in *another* group (never in its own, where the same
    moments are asked about again): of equals the first in the benchmark's order, and of the references
    only those that are a valid answer to the item (a class that it does not know can't be said).
    """

    def __init__(self) -> None:
        self._vectorizer: Any = None
        self._donors: dict[str, list[Item]] = {}
        self._matrices: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """As on the command line."""
        return "text-similarity"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """How words are weighed."""
        return {"words": "TF-IDF, 1 and 2 words, sublinear", "donors": "other groups only"}

    def supports(self, item: Item) -> bool:
        """All formats; once it has learned, only where another group offers a reference."""
        if self._vectorizer is None or isinstance(item.answer, ChoiceFormat):
            return True
        return any(donor.group != item.group for donor in self._donors.get(item.answer.kind, ()))

    def learn(self, items: Sequence[Item]) -> None:
        """Weighs the words of all questions and options, and keeps the questions that have references."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = [text for item in items for text in (item.question, *item.options)]
        self._vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, analyzer="word")
        self._vectorizer.fit([*texts, "question"])  # never without a single word
        self._donors = {}
        for item in items:
            if item.reference is not None and not isinstance(item.answer, ChoiceFormat):
                self._donors.setdefault(item.answer.kind, []).append(item)
        self._matrices = {
            kind: self._vectorizer.transform([donor.question for donor in donors])
            for kind, donors in self._donors.items()
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

    def _nearest_option(self, item: Item) -> Answer:
        weights = self._vectorizer.transform([item.question, *item.options])
        near = _cosines(weights[1:], weights[0])
        return reply(item, option_letters(len(item.options))[int(np.argmax(near))])

    def _nearest_reference(self, item: Item) -> Answer:
        donors = self._donors.get(item.answer.kind, [])
        if donors:
            weights = self._vectorizer.transform([item.question])
            near = _cosines(self._matrices[item.answer.kind], weights)
            for place in np.argsort(-near, kind="stable"):
                donor = donors[int(place)]
                answer = _borrowed(item, donor) if donor.group != item.group else None
                if answer is not None:
                    return answer
        raise RefusalError(
            f"no question of another group lends a {item.answer.kind} answer to item {item.id!r}"
        )


def _cosines(rows: Any, one: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Of every row with the one, both of length 1 (or 0, which is similar to nothing); rounded so that
    equal texts are equal whatever the order of the sum."""
    return np.asarray((rows @ one.T).toarray(), dtype=np.float64).ravel().round(12)


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


def build(*, seed: int = 0) -> System:
    """The option, or the answer to another question, with the most similar words (TF-IDF).

    It draws nothing, so the seed changes nothing.
    """
    del seed
    return TextSimilarity()
