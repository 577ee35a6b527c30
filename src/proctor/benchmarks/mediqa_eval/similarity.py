"""Text metrics as submissions: how alike each answer is to the clinicians' references."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.audit import Key, MetricScores, RatingsTable
from proctor.benchmarks.mediqa_eval.native import Encounter
from proctor.core import InputError
from proctor.metrics.text import text_metrics

__all__ = ["text_scores"]


def text_scores(
    table: RatingsTable,
    encounters: Sequence[Encounter],
    names: Sequence[str] = (),
    *,
    file: str | Path = "encounters",
) -> tuple[MetricScores, ...]:
    """The scores of text metrics by name (see `text_metrics`), the same for every dimension of an answer.

    `disagree_flag` gets 1 − the score: the more alike, the less a clinician disagrees. An empty answer is
    like nothing. Raises `InputError` for an unknown name, and (naming `file`) for an item without an encounter.
    """
    chosen = text_metrics(names)
    by_item = {one.item: one for one in encounters}
    answers: dict[tuple[str, str], str] = {}
    for one in table.ratings:
        if one.item not in by_item:
            raise InputError(file, found=f"no encounter {one.item}", expected="one for every rated answer")
        answers[one.item, one.system] = one.candidate
    texts = [*answers.values(), *(text for one in encounters for text in one.references)]
    pairs = [(text, other) for (item, _), text in answers.items() for other in by_item[item].references]
    found = []
    for metric in chosen:
        metric.prepare(texts)
        metric.prepare_pairs(pairs)
        alike = {
            (item, system): metric.score(text, by_item[item].references, by_item[item].lang)
            for (item, system), text in answers.items()
        }
        scores: dict[Key, float | None] = {
            key: 1 - alike[key[:2]] if key[2] == "disagree_flag" else alike[key[:2]] for key in table.keys
        }
        found.append(MetricScores(metric.name, scores, notes=metric.notes()))
    return tuple(found)
