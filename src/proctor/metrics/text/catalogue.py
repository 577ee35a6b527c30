"""The text metrics by name, each over several references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from proctor.core import InputError
from proctor.metrics.text.embedding import default_similarity
from proctor.metrics.text.rouge import rouge_l, rouge_n
from proctor.metrics.text.translation import bleu, chrf

__all__ = ["TEXT_METRICS", "TextMetric", "best", "mean"]

Pairwise = Callable[[str, str, str], float]
"""From candidate, reference and language to a number from 0 to 1."""


@dataclass(frozen=True)
class TextMetric:
    """How alike a text is to its references, 0 to 1 (embeddings: from −1); more is better.

    `prepare` may be told all texts beforehand, which some metrics read faster at once; `extra` names the
    optional dependencies that it needs.

    >>> TEXT_METRICS["rouge-1-best"].score("chronic eczema", ["Eczema.", "Chronic eczema"], "en")
    1.0
    """

    name: str
    label: str
    score: Callable[[str, Sequence[str], str], float]
    prepare: Callable[[Sequence[str]], None] = lambda _: None
    extra: str = ""


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
        raise InputError(None, "references", found="none", expected="one or more")
    return [pairwise(candidate, reference, language) for reference in references]


def _rouge_1(candidate: str, reference: str, _language: str) -> float:
    return rouge_n(candidate, reference, 1)


def _rouge_1_characters(candidate: str, reference: str, _language: str) -> float:
    return rouge_n(candidate, reference, 1, "characters")


def _rouge_2(candidate: str, reference: str, _language: str) -> float:
    return rouge_n(candidate, reference, 2)


def _rouge_l(candidate: str, reference: str, _language: str) -> float:
    return rouge_l(candidate, reference)


def _bleu(candidate: str, reference: str, language: str) -> float:
    return bleu(candidate, [reference], language)


def _chrf(candidate: str, reference: str, _language: str) -> float:
    return chrf(candidate, [reference])


def _embedding(candidate: str, reference: str, _language: str) -> float:
    return default_similarity()(candidate, reference)


def _prepare_embeddings(texts: Sequence[str]) -> None:
    default_similarity().prepare(texts)


def _declared() -> dict[str, TextMetric]:
    pairs: dict[str, tuple[str, Pairwise]] = {
        "rouge-1": ("ROUGE-1", _rouge_1),
        "rouge-1-characters": ("ROUGE-1 of characters", _rouge_1_characters),
        "rouge-2": ("ROUGE-2", _rouge_2),
        "rouge-l": ("ROUGE-L", _rouge_l),
        "bleu": ("BLEU", _bleu),
        "chrf": ("chrF", _chrf),
    }
    found = {
        f"{name}-{over.__name__}": TextMetric(
            f"{name}-{over.__name__}", f"{label}, {over.__name__}", partial(over, one)
        )
        for name, (label, one) in pairs.items()
        for over in (best, mean)
    }
    for over in (best, mean):
        name = f"embedding-{over.__name__}"
        label = f"Sentence embeddings, {over.__name__}"
        found[name] = TextMetric(name, label, partial(over, _embedding), _prepare_embeddings, "semantic")
    found["bleu-all"] = TextMetric("bleu-all", "BLEU, all references together", bleu)
    return found


TEXT_METRICS = _declared()
"""All text metrics by name: `-best` and `-mean` over the references."""
