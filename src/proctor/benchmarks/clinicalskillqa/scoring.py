"""Predictions marked against references, as the task does it and beyond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from proctor.benchmarks.clinicalskillqa.recorded import spelled
from proctor.core import InputError
from proctor.metrics.marks import Mark
from proctor.metrics.ordering import (
    Comparison,
    compare_orders,
    exact_chance,
    order_marks,
    overall_score,
    place_confusion,
)

__all__ = ["NO_RATIONALE_SCORE", "Scored", "Slice", "score_predictions"]

NO_RATIONALE_SCORE = "no text similarity was computed for the rationales"
"""Why the rationale's F1, and with it the overall score, is not there."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The marks of some of the items: `by` and `value` say which ("scenario", "CPR"; "all", ""), `chance` is the
    task accuracy of orders by lot."""

    by: str
    value: str
    items: int
    chance: float | None
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """What `score_predictions` gives.

    `comparisons` has one entry per reference, `unanswered` are items without any order, `confusion` is
    `place_confusion`. Where `rationale_f1` is None, so is `overall`, and `rationale_reason` says why: what was not
    measured is not 0.
    """

    comparisons: dict[str, Comparison]
    unanswered: tuple[str, ...]
    slices: tuple[Slice, ...]
    confusion: dict[int, NDArray[int64]]
    rationale_f1: float | None
    rationale_reason: str
    overall: float | None
    alpha: float
    beta: float

    @property
    def faulty(self) -> dict[str, Comparison]:
        """The answered items whose order misses, repeats or invents a label."""
        return {
            name: one
            for name, one in self.comparisons.items()
            if name not in self.unanswered and (one.missing or one.repeated or one.unknown)
        }


def score_predictions(
    predictions: Path,
    references: Path,
    *,
    alpha: float = 0.7,
    beta: float = 0.8,
    draws: int = 2000,
    seed: int = 0,
    strict: bool = False,
    rationale_f1: float | None = None,
) -> Scored:
    """Marks a file of predictions: every reference counts, and what is not answered is wrong.

    Intervals are clustered by the source video that the references name, else by item. `rationale_f1` is the
    mean similarity of the rationales over all references, from 0 to 1, where it was computed. Raises `InputError`
    for files that can't be read, a prediction for an unknown item, and weights outside 0 to 1; with `strict` also for
    an item without an answer, and for an order that misses, repeats or invents a label.
    """
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
    slices = tuple(_slice(by, value, names, compared, keys, draws, seed) for by, value, names in _parts(keys))
    task, pair = (slices[0].marks[place].estimate.value for place in (0, 1))
    known = rationale_f1 is not None and task is not None and pair is not None
    return Scored(
        comparisons=compared,
        unanswered=tuple(name for name in keys if name not in answers or not answers[name].order),
        slices=slices,
        confusion=place_confusion(list(compared.values())),
        rationale_f1=rationale_f1,
        rationale_reason="" if rationale_f1 is not None else NO_RATIONALE_SCORE,
        overall=overall_score(task or 0.0, pair or 0.0, rationale_f1 or 0.0, alpha=alpha, beta=beta)
        if known
        else None,
        alpha=alpha,
        beta=beta,
    )


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


def _slice(
    by: str,
    value: str,
    names: Sequence[str],
    compared: dict[str, Comparison],
    keys: dict[str, NativeReference],
    draws: int,
    seed: int,
) -> Slice:
    some = [compared[name] for name in names]
    groups = [keys[name].video or name for name in names]
    marks = order_marks(some, groups, draws=draws, seed=seed)
    return Slice(by, value, len(some), exact_chance([one.frames for one in some]), tuple(marks))
