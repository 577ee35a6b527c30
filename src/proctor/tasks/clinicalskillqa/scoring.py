"""Predictions marked against references, as the task does it and beyond."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from numpy import int64
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.metrics import MetricEstimate
from proctor.metrics.ordering import (
    ORDERING_METRICS,
    OVERALL,
    WEIGHTS,
    InvalidOrders,
    OrderComparison,
    compare_orders,
    order_chance,
    order_marks,
    overall_score,
    place_confusion,
    rationale_marks,
    tracking_mark,
)
from proctor.metrics.text import RATIONALE_F1, BertScore, MissingExtraError, rationale_f1
from proctor.tasks.clinicalskillqa.native import (
    NativePrediction,
    ReferenceOrder,
    read_predictions,
    read_references,
    spelled,
)

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
    keys: Mapping[str, ReferenceOrder],
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
    said = {name: answers[name].rationale if name in answers and answers[name].order else "" for name in known}
    counted = {name: "" if name in wrong else said[name] for name in known}
    f1, notes = rationale_f1({name: (counted[name], known[name]) for name in known}, bertscore)
    silent = sum(name in answers and bool(answers[name].order) and not said[name].strip() for name in known)
    more = [f"{silent} of {len(keys)} answers have no rationale and score 0"] if silent else []
    if len(known) < len(keys):
        more.append(f"{len(keys) - len(known)} of {len(keys)} references have no rationale: F1 is over the others")
    return Rationales(f1, bertscore.hash, (*more, *notes)), ""


@dataclass(frozen=True, slots=True)
class Slice:
    """The marks of some of the items: `by` and `value` say which ("scenario", "CPR"; "all", ""), `chances` are what
    random orders reach, by metric, where that is known. The first two marks are task and pairwise accuracy; where rationales were scored
    their F1 and the overall score follow at the end, and of all items whether F1 goes with the order."""

    by: str
    value: str
    items: int
    chances: dict[str, float]
    marks: tuple[MetricEstimate, ...]


@dataclass(frozen=True, slots=True)
class ScoredPredictions:
    """What `score_predictions` gives.

    `comparisons` has one entry per reference, `unanswered` are items without any order, `confusion` is
    `place_confusion`. Where `rationales` is None, there is no F1 and no overall score, and `rationale_reason` says
    why: what was not measured is not 0.
    """

    comparisons: dict[str, OrderComparison]
    unanswered: tuple[str, ...]
    slices: tuple[Slice, ...]
    confusion: dict[int, NDArray[int64]]
    rationales: Rationales | None
    rationale_reason: str
    alpha: float
    beta: float
    invalid: InvalidOrders = "wrong"
    without_video: int = 0

    def pairwise(self, invalid: InvalidOrders) -> float | None:
        """The pairwise accuracy with invalid orders counted so, whichever way all other figures count them."""
        some = [one.counted(invalid) for one in self.comparisons.values()]
        return order_marks(some, [*self.comparisons], draws=1)[1].estimate.value

    @property
    def rationale_f1(self) -> float | None:
        """The mean F1 over all items, 0 to 1, where rationales were scored."""
        return self._whole(RATIONALE_F1.name)

    @property
    def overall(self) -> float | None:
        """The task's overall score, 0 to 100, where rationales were scored."""
        return self._whole(OVERALL.name)

    def _whole(self, name: str) -> float | None:
        return next((mark.estimate.value for mark in self.slices[0].marks if mark.metric.name == name), None)

    @property
    def faulty(self) -> dict[str, OrderComparison]:
        """The answered items whose order misses, repeats or invents a label."""
        return {name: one for name, one in self.comparisons.items() if name not in self.unanswered and not one.valid}


def score_predictions(
    predictions: Path,
    references: Path,
    *,
    weights: tuple[float, float] = WEIGHTS,
    draws: int = 2000,
    seed: int = 0,
    strict: bool = False,
    bertscore: Callable[[], BertScore] | None = None,
    invalid: InvalidOrders = "wrong",
) -> ScoredPredictions:
    """Marks a file of predictions: every reference counts, and what is not answered is wrong.

    An order that misses, repeats or invents a label is invalid: `wrong` gives it, and its rationale, nothing on any
    figure; `partial` counts the pairs that it has in order.

    `weights` are α and β of the overall score. Intervals are clustered by the source video that the references name, else by item. `bertscore` gives what scores
    the rationales; it is not called where no reference has one. Without it, and without the extra that it needs,
    there is no F1 and no overall score, with the reason. Raises what else it raises, and `InputError` for files that can't be read, a prediction for an unknown item, and weights outside 0 to 1; with `strict` also for
    an item without an answer, and for an order that misses, repeats or invents a label.
    """
    alpha, beta = weights
    overall_score(0, 0, 0, alpha=alpha, beta=beta)  # a weight that makes no sense is said before anything else
    keys = read_references(references)
    answers = read_predictions(predictions)
    unknown = sorted(answers.keys() - keys.keys())
    if unknown:
        expected = f"an item of {references.name}"
        raise InputError(predictions, f"item {unknown[0]!r}", found="an unknown item", expected=expected)
    compared = {name: _compared(key, answers.get(name)) for name, key in keys.items()}
    if strict:
        _check_labels(predictions, keys, compared)
    wrong = [name for name, one in compared.items() if invalid == "wrong" and not one.valid]
    rationales, reason = score_rationales(keys, answers, bertscore, wrong)
    plan = _Plan(keys, rationales.f1 if rationales else {}, weights, draws, seed)
    counted = {name: one.counted(invalid) for name, one in compared.items()}
    return ScoredPredictions(
        comparisons=compared,
        unanswered=tuple(name for name in keys if name not in answers or not answers[name].order),
        slices=tuple(
            _slice(by, value, {name: counted[name] for name in names}, plan) for by, value, names in _parts(keys)
        ),
        confusion=place_confusion(list(compared.values())),
        rationales=rationales,
        rationale_reason=reason,
        alpha=alpha,
        beta=beta,
        invalid=invalid,
        without_video=sum(not key.video for key in keys.values()),
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What all slices are made from."""

    keys: dict[str, ReferenceOrder]
    f1: dict[str, float]
    weights: tuple[float, float]
    draws: int
    seed: int


def _check_labels(predictions: Path, keys: dict[str, ReferenceOrder], compared: dict[str, OrderComparison]) -> None:
    for name, one in compared.items():
        place, expected = f"item {name!r}", f"each of {', '.join(sorted(keys[name].order))} once"
        if not one.answered and not one.unknown:
            raise InputError(predictions, place, found="no answer", expected=expected)
        faults = (("no", one.missing), ("more than one", one.repeated), ("the unknown", one.unknown))
        said = "; ".join(f"{what} {', '.join(labels)}" for what, labels in faults if labels)
        if said:
            raise InputError(predictions, f"{place}, field 'order'", found=said, expected=expected)


def _compared(key: ReferenceOrder, answer: NativePrediction | None) -> OrderComparison:
    return compare_orders(key.order, spelled(answer.order, key.order) if answer is not None else None)


def _parts(keys: dict[str, ReferenceOrder]) -> list[tuple[str, str, list[str]]]:
    """All items, then those of every scenario that is named, then those of every number of frames."""
    parts = [("all", "", list(keys))]
    cuts: tuple[tuple[str, Callable[[ReferenceOrder], str]], ...] = (
        ("scenario", lambda key: key.scenario or ""),
        ("frames", lambda key: str(len(key.order))),
    )
    for by, cut in cuts:
        values = sorted({cut(key) for key in keys.values()} - {""}, key=lambda one: (len(one), one))
        parts += [(by, value, [name for name, key in keys.items() if cut(key) == value]) for value in values]
    return parts


def _slice(by: str, value: str, compared: dict[str, OrderComparison], plan: _Plan) -> Slice:
    some = list(compared.values())
    groups = [plan.keys[name].video or name for name in compared]
    marks = order_marks(some, groups, draws=plan.draws, seed=plan.seed)
    marks += rationale_marks(compared, groups, plan.f1, weights=plan.weights, draws=plan.draws, seed=plan.seed)
    if plan.f1 and by == "all":
        marks.append(tracking_mark(compared, groups, plan.f1, draws=plan.draws, seed=plan.seed))
    frames = [one.frames for one in some]
    chances = {one.name: order_chance(one.name, frames) for one in ORDERING_METRICS}
    known = {name: chance for name, chance in chances.items() if chance is not None}
    return Slice(by, value, len(some), known, tuple(marks))
