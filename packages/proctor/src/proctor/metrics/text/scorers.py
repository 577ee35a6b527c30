"""The text metrics by name, each over several references, and the scorers that use them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from proctor.core import Answer, InputError, Item, Metric, RatingScheme, Score, Status, count_of
from proctor.core.formats import FreeTextFormat, OrderingFormat
from proctor.metrics.text.encoders import EncoderSettings, default_similarity
from proctor.metrics.text.learned import (
    BertScore,
    BertScoreSettings,
    BertSimilarity,
    Bleurt,
    load_bertscore,
    load_bleurt,
)
from proctor.metrics.text.overlap import bleu, chrf, rouge_l, rouge_n

Pairwise = Callable[[str, str, str], float]
"""From candidate, reference and language to a number from 0 to 1."""


@dataclass(frozen=True)
class TextMetric:
    """How alike a text is to its references, 0 to 1 (embeddings: from −1); more is better.

    `prepare` takes all texts beforehand, and `prepare_pairs` all (candidate, reference) pairs: some metrics are faster
    in batches. `notes` are remarks for a reader of the scores, once they are computed; `extra` names the optional
    dependencies that it needs.

    >>> TEXT_METRICS["rouge-1-best"].score("chronic eczema", ["Eczema.", "Chronic eczema"], "en")
    1.0
    """

    name: str
    label: str
    score: Callable[[str, Sequence[str], str], float]
    prepare: Callable[[Sequence[str]], None] = lambda _: None
    extra: str = ""
    prepare_pairs: Callable[[Sequence[tuple[str, str]]], None] = lambda _: None
    notes: Callable[[], tuple[str, ...]] = lambda: ()


def best(pairwise: Pairwise, candidate: str, references: Sequence[str], language: str) -> float:
    """The greatest value over the references. Raises `InputError` where there is none.

    >>> best(lambda text, reference, language: float(text == reference), "a", ["b", "a"], "en")
    1.0
    """
    return max(_each(pairwise, candidate, references, language))


def mean(pairwise: Pairwise, candidate: str, references: Sequence[str], language: str) -> float:
    """The mean value over the references. Raises `InputError` where there is none.

    >>> mean(lambda text, reference, language: float(text == reference), "a", ["b", "a"], "en")
    0.5
    """
    values = _each(pairwise, candidate, references, language)
    return sum(values) / len(values)


def _each(pairwise: Pairwise, candidate: str, references: Sequence[str], language: str) -> list[float]:
    if not references:
        raise InputError("references", found="none", expected="one or more")
    return [pairwise(candidate, reference, language) for reference in references]


def _without_language(alike: Callable[[str, str], float]) -> Pairwise:
    return lambda candidate, reference, _language: alike(candidate, reference)


def _best_and_mean(name: str, label: str, pairwise: Pairwise, **more: Any) -> list[TextMetric]:
    return [
        TextMetric(f"{name}-{over.__name__}", f"{label}, {over.__name__}", partial(over, pairwise), **more)
        for over in (best, mean)
    ]


@cache
def _bert(name: str = "", layer: int | None = None) -> BertSimilarity:
    """BERTScore by an encoder, the embedded one without a name. Loaded at its first use."""
    encoder = EncoderSettings(name=name, layer=layer) if name else EncoderSettings()
    return BertSimilarity(lambda: load_bertscore(BertScoreSettings(encoder)))


def _bertscores(name: str = "bertscore", encoder: str = "", layer: int | None = None) -> list[TextMetric]:
    bert = _bert(encoder, layer)
    return _best_and_mean(
        name,
        f"BERTScore F1 ({encoder})" if encoder else "BERTScore F1",
        _without_language(bert),
        extra="semantic",
        prepare=bert.prepare,
        prepare_pairs=bert.prepare_pairs,
        notes=lambda: bert.notes,
    )


@cache
def _bleurt(folder: str) -> Bleurt:
    return load_bleurt(Path(folder))


def _bleurts(folder: str) -> list[TextMetric]:
    bleurt = _bleurt(folder)

    def notes() -> tuple[str, ...]:
        return (f"{count_of(bleurt.cut, 'pair')} cut: longer than the checkpoint reads",) if bleurt.cut else ()

    return _best_and_mean(
        f"bleurt:{folder}",
        "BLEURT",
        _without_language(bleurt),
        extra="semantic",
        prepare_pairs=bleurt.prepare_pairs,
        notes=notes,
    )


def _declared() -> dict[str, TextMetric]:
    metrics = [
        *_best_and_mean("rouge-1", "ROUGE-1", _without_language(rouge_n)),
        *_best_and_mean(
            "rouge-1-characters", "ROUGE-1 of characters", _without_language(partial(rouge_n, units="characters"))
        ),
        *_best_and_mean("rouge-2", "ROUGE-2", _without_language(partial(rouge_n, n=2))),
        *_best_and_mean("rouge-l", "ROUGE-L", _without_language(rouge_l)),
        *_best_and_mean("bleu", "BLEU", lambda candidate, reference, language: bleu(candidate, [reference], language)),
        *_best_and_mean("chrf", "chrF", lambda candidate, reference, _language: chrf(candidate, [reference])),
        TextMetric("bleu-all", "BLEU, all references together", bleu),
        *_best_and_mean(
            "embedding",
            "Sentence embeddings",
            lambda candidate, reference, _language: default_similarity()(candidate, reference),
            extra="semantic",
            prepare=lambda texts: default_similarity().prepare(texts),
        ),
        *_bertscores(),
    ]
    return {metric.name: metric for metric in metrics}


TEXT_METRICS = _declared()
"""All text metrics by name: `-best` and `-mean` over the references."""


def text_metrics(names: Sequence[str] = ()) -> list[TextMetric]:
    """The metrics with these names, each once; without names, all that need no extra.

    Beside the names in `TEXT_METRICS`, "all" is all of them; "bertscore:ENCODER" and "bertscore:ENCODER@LAYER" are
    BERTScore, best and mean, by another encoder (a folder or a model's id); "bleurt:FOLDER" is BLEURT by the
    checkpoint in a folder, best and mean. Raises `InputError` for an unknown name, and what `load_bleurt` raises.

    >>> [metric.name for metric in text_metrics(["bleu-all", "bertscore:roberta-large@17", "bleu-all"])]
    ['bleu-all', 'bertscore:roberta-large@17-best', 'bertscore:roberta-large@17-mean']
    """
    if not names:
        return [metric for metric in TEXT_METRICS.values() if not metric.extra]
    found = [metric for name in names for metric in _named(name)]
    return list({metric.name: metric for metric in found}.values())


def _named(name: str) -> list[TextMetric]:
    if name == "all":
        return list(TEXT_METRICS.values())
    if name in TEXT_METRICS:
        return [TEXT_METRICS[name]]
    kind, _, rest = name.partition(":")
    if kind == "bleurt" and rest:
        return _bleurts(rest)
    if kind == "bertscore" and rest:
        encoder, at, layer = rest.rpartition("@")
        numbered = bool(at) and layer.isdecimal()
        return _bertscores(name, encoder if numbered else rest, int(layer) if numbered else None)
    expected = f"one of {', '.join(TEXT_METRICS)}, all, bertscore:ENCODER[@LAYER], bleurt:FOLDER"
    raise InputError("text metric", found=repr(name), expected=expected)


Key = TypeVar("Key", bound=Hashable)


def similarity_values(metric: TextMetric, texts: Mapping[Key, tuple[str, Sequence[str], str]]) -> dict[Key, float]:
    """The similarity of each text to its references, 0 to 1. `texts` holds text, references and language by key; one
    call for all is faster than many.

    >>> from proctor.metrics.text import text_metrics
    >>> similarity_values(text_metrics(["rouge-1-best"])[0], {"q": ("a b", ["a b", "c"], "en")})
    {'q': 1.0}
    """
    references = {tuple(others): None for _, others, _ in texts.values()}
    metric.prepare([*(text for text, _, _ in texts.values()), *(one for some in references for one in some)])
    metric.prepare_pairs([(text, one) for text, others, _ in texts.values() for one in others])
    return {key: metric.score(text, others, language) for key, (text, others, language) in texts.items()}


class SimilarityScorer:
    """Scores free-text answers by one text metric.

    With a scheme the similarity is mapped to each dimension's range, reversed where lower is better. Without one there
    is one metric of the scorer's own name. An answer that was never given scores as an empty text.

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
        self.name = metric.name
        own = Metric(self.name, f"Text similarity: {self.name}", formats=("free_text",))
        self.metrics: tuple[Metric, ...] = scheme.metrics if scheme else (own,)

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
            if metric.scores(item.answer.kind, language)
        ]

    def notes(self) -> tuple[str, ...]:
        """Remarks on the texts that were scored."""
        return self._metric.notes()


def _text(answer: Answer) -> str:
    if answer.status is not Status.ANSWERED:
        return ""
    return answer.wording


def _references(item: Item) -> tuple[str, ...]:
    given = item.reference
    texts = () if given is None else (given.answer, *given.accepted)
    return tuple(text for text in texts if isinstance(text, str))


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
    """Whether any answer of a run has a rationale, even an empty one. Where none has, there is nothing to measure.

    >>> gives_rationales([Answer(item_id="q1", parsed=["B", "A"])])
    False
    >>> gives_rationales([Answer(item_id="q1", parsed=["B", "A"], extra={"rationale": ""})])
    True
    """
    return any("rationale" in answer.extra for answer in answers)


def rationale_f1(said: Mapping[str, tuple[str, str]], bertscore: BertScore) -> tuple[dict[str, float], tuple[str, ...]]:
    """By key the BERTScore F1, 0 to 1, of (rationale, reference's rationale), and the scorer's notes. An empty
    rationale scores 0, and so does one below 0 (which a rescaled F1 can be)."""
    told = {key: pair for key, pair in said.items() if pair[0].strip()}
    scores = bertscore.score(list(told.values()))
    known = dict(zip(told, scores.f1.tolist(), strict=True))
    return {key: min(1.0, max(0.0, known.get(key, 0.0))) for key in said}, scores.notes


class RationaleScorer:
    """`RATIONALE_F1` of answers: 0 without a valid order (each label once) or without a rationale.

    `prepare` scores many answers in one batch. The name holds the BERTScore's hash, since another encoder gives other
    numbers.
    """

    metrics = (RATIONALE_F1,)

    def __init__(self, bertscore: BertScore) -> None:
        self._bertscore = bertscore
        self._known: dict[tuple[str, str], float] = {}

    @property
    def name(self) -> str:
        """`bertscore[HASH]`."""
        return f"bertscore[{self._bertscore.hash}]"

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
            raise ValueError(f"item {item.id!r}: a failed answer is never scored")
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
