"""A metric on text as a scorer of answers: how alike an answer is to the references, on every dimension."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from proctor.core import Answer, Item, Metric, RatingScheme, Score, Status
from proctor.core.formats import FreeTextFormat
from proctor.metrics.text.catalogue import TextMetric

Key = TypeVar("Key", bound=Hashable)


def similarity_values(metric: TextMetric, texts: Mapping[Key, tuple[str, Sequence[str], str]]) -> dict[Key, float]:
    """How alike each text is to its references, by the metric, 0 to 1; each with its language. All at once is faster.

    >>> from proctor.metrics.text import text_metrics
    >>> similarity_values(text_metrics(["rouge-1-best"])[0], {"q": ("a b", ["a b", "c"], "en")})
    {'q': 1.0}
    """
    references = {tuple(others): None for _, others, _ in texts.values()}
    metric.prepare([*(text for text, _, _ in texts.values()), *(one for some in references for one in some)])
    metric.prepare_pairs([(text, one) for text, others, _ in texts.values() for one in others])
    return {key: metric.score(text, others, language) for key, (text, others, language) in texts.items()}


class SimilarityScorer:
    """Scores answers in free text by one metric on text, without a model of language that is asked.

    With a scheme each dimension gets the same: from its lowest level (nothing in common) to its highest, the other way
    round where lower is better. Without one there is one metric of the scorer's own name. An answer that its system
    never gave has nothing in common with anything.

    >>> import asyncio
    >>> from proctor.core import Dimension, Reference
    >>> from proctor.metrics.text import text_metrics
    >>> item = Item(id="q", group="g", question="?", answer=FreeTextFormat(), reference=Reference(answer="a b"))
    >>> scheme = RatingScheme(dimensions=(Dimension("good", (0.0, 1.0)), Dimension("bad", (0.0, 1.0), lower_is_better=True)))
    >>> scorer = SimilarityScorer(text_metrics(["rouge-1-best"])[0], scheme)
    >>> [one.value for one in asyncio.run(scorer.score(item, Answer(item_id="q", text="a b", parsed="a b")))]
    [1.0, 0.0]
    """

    def __init__(self, metric: TextMetric, scheme: RatingScheme | None = None) -> None:
        self._metric = metric
        self._scheme = scheme

    @property
    def name(self) -> str:
        """The metric's."""
        return self._metric.name

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The dimensions, or the one."""
        own = Metric(self.name, f"Text similarity: {self.name}", formats=("free_text",))
        return self._scheme.metrics if self._scheme else (own,)

    def applies(self, item: Item) -> bool:
        """To free text with references that are texts."""
        return isinstance(item.answer, FreeTextFormat) and bool(_references(item))

    async def see(self, answers: Sequence[tuple[Item, Answer]]) -> None:
        """Prepares the metric for all texts at once, which is faster."""
        mine = [(item, _text(answer)) for item, answer in answers if self.applies(item)]
        items = {item.id: item for item, _ in mine}
        references = [text for item in items.values() for text in _references(item)]
        self._metric.prepare([*(text for _, text in mine), *references])
        self._metric.prepare_pairs([(text, other) for item, text in mine for other in _references(item)])

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """A score on each dimension of the item's language."""
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is never scored")
        language = str(item.tags.get("language", ""))
        alike = self._metric.score(_text(answer), _references(item), language)
        return [
            Score(
                item_id=item.id,
                metric=metric.name,
                value=metric.low + (metric.high - metric.low) * alike
                if metric.higher_is_better
                else metric.high - (metric.high - metric.low) * alike,
                scorer=self.name,
            )
            for metric in self.metrics
            if metric.marks(item.answer.kind, language)
        ]

    def notes(self) -> tuple[str, ...]:
        """What a person should know of the texts that were scored."""
        return self._metric.notes()


def _text(answer: Answer) -> str:
    if answer.status is not Status.ANSWERED:
        return ""
    return answer.parsed if isinstance(answer.parsed, str) else answer.text


def _references(item: Item) -> tuple[str, ...]:
    given = item.reference
    texts = () if given is None else (given.answer, *given.accepted)
    return tuple(one for one in texts if isinstance(one, str))
