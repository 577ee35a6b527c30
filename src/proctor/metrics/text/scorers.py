"""Text metrics and BERTScores of rationales as scorers of answers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from proctor.core import Answer, Item, Metric, RatingScheme, Score, Status
from proctor.core.formats import FreeTextFormat, OrderingFormat
from proctor.metrics.text.bertscore import BertScore
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


RATIONALE_F1 = Metric("rationale_f1", "Rationale, BERTScore F1", formats=("ordering",))

NO_RATIONALE = "no rationale"
"""The label of the score of an answer that gives no reason."""

INVALID_ORDER = "invalid order"
"""The label of the score of an answer whose order misses, repeats or invents a label."""


def rationale_of(answer: Answer) -> str:
    """The rationale of an answer: the text under `rationale` in its `extra`, empty where there is none.

    >>> rationale_of(Answer(item_id="q1", parsed=["B", "A"], extra={"rationale": " First the pads. "}))
    'First the pads.'
    """
    found = answer.extra.get("rationale")
    return found.strip() if isinstance(found, str) else ""


def gives_rationales(answers: Iterable[Answer]) -> bool:
    """Whether rationales were asked for, or kept, in a run: any answer has one, even an empty one. Where none has,
    there is nothing to measure, and a score of 0 would be made up.

    >>> gives_rationales([Answer(item_id="q1", parsed=["B", "A"])])
    False
    >>> gives_rationales([Answer(item_id="q1", parsed=["B", "A"], extra={"rationale": ""})])
    True
    """
    return any("rationale" in answer.extra for answer in answers)


def rationale_f1(said: Mapping[str, tuple[str, str]], bertscore: BertScore) -> tuple[dict[str, float], tuple[str, ...]]:
    """By key the BERTScore F1, 0 to 1, of (rationale, reference's rationale); one without text is 0, and so is one
    below 0 (which a rescaled F1 can be). And what the scorer notes of the texts."""
    told = {key: pair for key, pair in said.items() if pair[0].strip()}
    scores = bertscore.score(list(told.values()))
    known = dict(zip(told, scores.f1.tolist(), strict=True))
    return {key: min(1.0, max(0.0, known.get(key, 0.0))) for key in said}, scores.notes


class RationaleScorer:
    """`RATIONALE_F1` for answers in a run: 0 for an answer without a valid order (each label once) or without a
    rationale.

    `prepare` may be told all answers beforehand, which are then scored at once. The name holds the BERTScore's hash,
    since another encoder gives other numbers.
    """

    def __init__(self, bertscore: BertScore) -> None:
        self._bertscore = bertscore
        self._known: dict[tuple[str, str], float] = {}

    @property
    def name(self) -> str:
        """With the hash."""
        return f"bertscore[{self._bertscore.hash}]"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The one."""
        return (RATIONALE_F1,)

    def applies(self, item: Item) -> bool:
        """To orders whose reference has a rationale."""
        return item.answer.kind == "ordering" and item.reference is not None and bool(item.reference.rationale.strip())

    def prepare(self, answers: Sequence[tuple[Item, Answer]]) -> None:
        """Scores all these rationales at once."""
        pairs = [
            (rationale_of(answer), item.reference.rationale)
            for item, answer in answers
            if item.reference is not None and self.applies(item)
        ]
        new = {str(number): pair for number, pair in enumerate(dict.fromkeys(pairs)) if pair not in self._known}
        found, _ = rationale_f1(new, self._bertscore)
        self._known |= {new[key]: value for key, value in found.items()}

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The one score. Raises `ValueError` for a failed answer, and for an item that it does not apply to."""
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is never marked")
        if item.reference is None or not self.applies(item):
            raise ValueError(f"item {item.id!r}: its reference has no rationale")
        self.prepare([(item, answer)])
        given = answer.status is Status.ANSWERED and bool(answer.parsed) and bool(rationale_of(answer))
        label = NO_RATIONALE if not given else "" if _valid(item, answer) else INVALID_ORDER
        value = 0.0 if label else self._known[rationale_of(answer), item.reference.rationale]
        return [Score(item_id=item.id, metric=RATIONALE_F1.name, value=value, scorer=self.name, label=label)]


def _valid(item: Item, answer: Answer) -> bool:
    said = answer.parsed if isinstance(answer.parsed, list) else []
    return isinstance(item.answer, OrderingFormat) and sorted(map(str, said)) == sorted(item.answer.labels)
