"""The rationales of a file of predictions: F1 by item."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from proctor.benchmarks.clinicalskillqa.native import NativePrediction, NativeReference
from proctor.metrics.text import BertScore, MissingExtraError, rationale_f1

__all__ = ["NO_RATIONALE_SCORE", "Rationales", "score_rationales"]

NO_RATIONALE_SCORE = "no text similarity was computed for the rationales"
"""Why the rationale's F1, and with it the overall score, is not there."""

NO_RATIONALE_GIVEN = "no prediction has a rationale"
"""Said of a file that leaves no room for them; an empty one among others is an answer without a reason, and scores 0."""


@dataclass(frozen=True, slots=True)
class Rationales:
    """F1 by item, 0 to 1, of all items whose reference has a rationale; the BERTScore's hash, and what a reader
    should know."""

    f1: dict[str, float]
    hash: str
    notes: tuple[str, ...]


def score_rationales(
    keys: Mapping[str, NativeReference],
    answers: Mapping[str, NativePrediction],
    load: Callable[[], BertScore] | None,
    wrong: Collection[str] = (),
) -> tuple[Rationales | None, str]:
    """The rationales' scores, or None and the reason. An item without an answer, or without a rationale, scores 0, and
    so do those whose order makes them `wrong`; one whose reference has no rationale has no score."""
    if load is None:
        return None, NO_RATIONALE_SCORE
    known = {name: key.rationale for name, key in keys.items() if key.rationale.strip()}
    if not known:
        return None, "no reference has a rationale"
    if not any("rationale" in answer.model_fields_set for answer in answers.values()):
        return None, NO_RATIONALE_GIVEN
    try:
        bertscore = load()
    except MissingExtraError as error:
        return None, str(error)
    said = {
        name: answers[name].rationale if name in answers and answers[name].order else "" for name in known
    }
    counted = {name: "" if name in wrong else said[name] for name in known}
    f1, notes = rationale_f1({name: (counted[name], known[name]) for name in known}, bertscore)
    silent = sum(name in answers and bool(answers[name].order) and not said[name].strip() for name in known)
    more = [f"{silent} of {len(keys)} answers have no rationale and score 0"] if silent else []
    if len(known) < len(keys):
        more.append(
            f"{len(keys) - len(known)} of {len(keys)} references have no rationale: F1 is over the others"
        )
    return Rationales(f1, bertscore.hash, (*more, *notes)), ""
