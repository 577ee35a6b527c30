"""The text metrics by name, each over several references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from proctor.core import InputError
from proctor.metrics.text.bertscore import BertScoreSettings, BertSimilarity, load_bertscore
from proctor.metrics.text.bleurt import Bleurt, load_bleurt
from proctor.metrics.text.encoders import EncoderSettings, default_similarity
from proctor.metrics.text.overlap import bleu, chrf, rouge_l, rouge_n

Pairwise = Callable[[str, str, str], float]
"""From candidate, reference and language to a number from 0 to 1."""


@dataclass(frozen=True)
class TextMetric:
    """How alike a text is to its references, 0 to 1 (embeddings: from −1); more is better.

    `prepare` may be told all texts beforehand, and then `prepare_pairs` all (candidate, reference) pairs, which some
    metrics read faster at once; `notes` says afterwards what a reader of the scores should know; `extra` names the
    optional dependencies that it needs.

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


@cache
def _bert(name: str = "", layer: int | None = None) -> BertSimilarity:
    """BERTScore by an encoder; none is the embedded one. Loaded when it is first asked."""
    encoder = EncoderSettings(name=name, layer=layer) if name else EncoderSettings()
    return BertSimilarity(lambda: load_bertscore(BertScoreSettings(encoder)))


@cache
def _bleurt(folder: str) -> Bleurt:
    return load_bleurt(Path(folder))


def _without_language(alike: Callable[[str, str], float]) -> Pairwise:
    return lambda candidate, reference, _language: alike(candidate, reference)


def _bertscores(name: str = "bertscore", encoder: str = "", layer: int | None = None) -> list[TextMetric]:
    bert = _bert(encoder, layer)
    label = f"BERTScore F1 ({encoder})" if encoder else "BERTScore F1"
    return [
        TextMetric(
            f"{name}-{over.__name__}",
            f"{label}, {over.__name__}",
            partial(over, _without_language(bert)),
            bert.prepare,
            "semantic",
            bert.prepare_pairs,
            lambda: bert.notes,
        )
        for over in (best, mean)
    ]


def _bleurts(folder: str) -> list[TextMetric]:
    bleurt = _bleurt(folder)

    def notes() -> tuple[str, ...]:
        return (f"{bleurt.cut} pairs are longer than the checkpoint reads and were cut",) if bleurt.cut else ()

    return [
        TextMetric(
            f"bleurt:{folder}-{over.__name__}",
            f"BLEURT, {over.__name__}",
            partial(over, _without_language(bleurt)),
            extra="semantic",
            prepare_pairs=bleurt.prepare_pairs,
            notes=notes,
        )
        for over in (best, mean)
    ]


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
    found["bleu-all"] = TextMetric("bleu-all", "BLEU, all references together", bleu)
    for over in (best, mean):
        name = f"embedding-{over.__name__}"
        label = f"Sentence embeddings, {over.__name__}"
        found[name] = TextMetric(name, label, partial(over, _embedding), _prepare_embeddings, "semantic")
    return found | {one.name: one for one in _bertscores()}


TEXT_METRICS = _declared()
"""All text metrics by name: `-best` and `-mean` over the references."""


def text_metrics(names: Sequence[str] = ()) -> list[TextMetric]:
    """The metrics of these names, each once; none named: all that need no extra.

    Beside the names in `TEXT_METRICS`: "all" is all of them; "bertscore:ENCODER" and "bertscore:ENCODER@LAYER" are
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
    raise InputError(None, "text metric", found=repr(name), expected=expected)
