"""Predictions marked against references, as the task does it and beyond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from numpy import int64
from numpy.typing import NDArray

from proctor.benchmarks.clinicalskillqa.native import (
    NativePrediction,
    NativeReference,
    read_predictions,
    read_references,
)
from proctor.benchmarks.clinicalskillqa.rationales import Rationales, score_rationales
from proctor.benchmarks.clinicalskillqa.recorded import spelled
from proctor.core import InputError
from proctor.metrics.marks import Mark
from proctor.metrics.ordering import (
    ORDERING_METRICS,
    OVERALL,
    WEIGHTS,
    Comparison,
    InvalidOrders,
    compare_orders,
    order_chance,
    order_marks,
    overall_score,
    place_confusion,
    rationale_marks,
    tracking_mark,
)
from proctor.metrics.text import RATIONALE_F1, BertScore

__all__ = ["Scored", "Slice", "score_predictions"]


@dataclass(frozen=True, slots=True)
class Slice:
    """The marks of some of the items: `by` and `value` say which ("scenario", "CPR"; "all", ""), `chances` are what
    orders by lot reach, by metric, where that is known. The first two marks are task and pairwise accuracy; where rationales were scored
    their F1 and the overall score follow at the end, and of all items whether F1 goes with the order."""

    by: str
    value: str
    items: int
    chances: dict[str, float]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """What `score_predictions` gives.

    `comparisons` has one entry per reference, `unanswered` are items without any order, `confusion` is
    `place_confusion`. Where `rationales` is None, there is no F1 and no overall score, and `rationale_reason` says
    why: what was not measured is not 0.
    """

    comparisons: dict[str, Comparison]
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
    def faulty(self) -> dict[str, Comparison]:
        """The answered items whose order misses, repeats or invents a label."""
        return {
            name: one
            for name, one in self.comparisons.items()
            if name not in self.unanswered and not one.valid
        }


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
) -> Scored:
    """Marks a file of predictions: every reference counts, and what is not answered is wrong.

    An order that misses, repeats or invents a label is invalid: `wrong` gives it, and its rationale, nothing on any
    figure; `partial` counts the pairs that it has in order.

    `weights` are α and β of the overall score. Intervals are clustered by the source video that the references name, else by item. `bertscore` gives what scores
    the rationales; it is not called where no reference has one. Without it, and without the extra that it needs,
    there is no F1 and no overall score, with the reason. Raises what else it raises, and `InputError` for files that can't be read, a prediction for an unknown item, and weights outside 0 to 1; with `strict` also for
    an item without an answer, and for an order that misses, repeats or invents a label.
    """
    alpha, beta = weights
    overall_score(
        0, 0, 0, alpha=alpha, beta=beta
    )  # a weight that makes no sense is said before anything else
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
    return Scored(
        comparisons=compared,
        unanswered=tuple(name for name in keys if name not in answers or not answers[name].order),
        slices=tuple(
            _slice(by, value, {name: counted[name] for name in names}, plan)
            for by, value, names in _parts(keys)
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

    keys: dict[str, NativeReference]
    f1: dict[str, float]
    weights: tuple[float, float]
    draws: int
    seed: int


def _check_labels(
    predictions: Path, keys: dict[str, NativeReference], compared: dict[str, Comparison]
) -> None:
    for name, one in compared.items():
        place, expected = f"item {name!r}", f"each of {', '.join(sorted(keys[name].order))} once"
        if not one.answered and not one.unknown:
            raise InputError(predictions, place, found="no answer", expected=expected)
        faults = (("no", one.missing), ("more than one", one.repeated), ("the unknown", one.unknown))
        said = "; ".join(f"{what} {', '.join(labels)}" for what, labels in faults if labels)
        if said:
            raise InputError(predictions, f"{place}, field 'order'", found=said, expected=expected)


def _compared(key: NativeReference, answer: NativePrediction | None) -> Comparison:
    return compare_orders(key.order, spelled(answer.order, key.order) if answer is not None else None)


def _parts(keys: dict[str, NativeReference]) -> list[tuple[str, str, list[str]]]:
    """All items, then those of every scenario that is named, then those of every number of frames."""
    parts = [("all", "", list(keys))]
    cuts: tuple[tuple[str, Callable[[NativeReference], str]], ...] = (
        ("scenario", lambda key: key.scenario or ""),
        ("frames", lambda key: str(len(key.order))),
    )
    for by, cut in cuts:
        values = sorted({cut(key) for key in keys.values()} - {""}, key=lambda one: (len(one), one))
        parts += [(by, value, [name for name, key in keys.items() if cut(key) == value]) for value in values]
    return parts


def _slice(by: str, value: str, compared: dict[str, Comparison], plan: _Plan) -> Slice:
    some = list(compared.values())
    groups = [plan.keys[name].video or name for name in compared]
    marks = order_marks(some, groups, draws=plan.draws, seed=plan.seed)
    marks += rationale_marks(
        compared, groups, plan.f1, weights=plan.weights, draws=plan.draws, seed=plan.seed
    )
    if plan.f1 and by == "all":
        marks.append(tracking_mark(compared, groups, plan.f1, draws=plan.draws, seed=plan.seed))
    frames = [one.frames for one in some]
    chances = {one.name: order_chance(one.name, frames) for one in ORDERING_METRICS}
    known = {name: chance for name, chance in chances.items() if chance is not None}
    return Slice(by, value, len(some), known, tuple(marks))
