"""Text metrics as submissions: how alike each answer is to the clinicians' references."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.audit import Key, MetricScores, RatingsTable
from proctor.benchmarks.mediqa_eval.native import Encounter
from proctor.core import InputError
from proctor.metrics.text import TEXT_METRICS

__all__ = ["text_scores"]


def text_scores(
    table: RatingsTable,
    encounters: Sequence[Encounter],
    names: Sequence[str] = (),
    *,
    file: str | Path = "encounters",
) -> tuple[MetricScores, ...]:
    """The scores of text metrics (where none is named, all that need no extra), the same for every dimension of an answer.

    `disagree_flag` gets 1 − the score: the more alike, the less a clinician disagrees. An empty answer is
    like nothing. Raises `InputError` for an unknown name, and (naming `file`) for an item without an encounter.
    """
    chosen = names or [name for name, metric in TEXT_METRICS.items() if not metric.extra]
    unknown = [name for name in chosen if name not in TEXT_METRICS]
    if unknown:
        raise InputError(
            None, "text metric", found=repr(unknown[0]), expected=f"one of {', '.join(TEXT_METRICS)}"
        )
    by_item = {one.item: one for one in encounters}
    answers: dict[tuple[str, str], str] = {}
    for one in table.ratings:
        if one.item not in by_item:
            raise InputError(file, found=f"no encounter {one.item}", expected="one for every rated answer")
        answers[one.item, one.system] = one.candidate
    found = []
    for name in chosen:
        metric = TEXT_METRICS[name]
        metric.prepare([*answers.values(), *(text for one in encounters for text in one.references)])
        alike = {
            (item, system): metric.score(text, by_item[item].references, by_item[item].lang)
            for (item, system), text in answers.items()
        }
        scores: dict[Key, float | None] = {
            key: 1 - alike[key[:2]] if key[2] == "disagree_flag" else alike[key[:2]] for key in table.keys
        }
        found.append(MetricScores(name, scores))
    return tuple(found)
