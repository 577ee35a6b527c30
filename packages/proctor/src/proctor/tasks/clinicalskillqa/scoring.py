"""Predictions scored against references: the task's own figures and further ones, beside the published results."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from numpy import int64
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import DASH, InputError, PluginReport, Table, count_of, interval, number, percent, plain_table, value
from proctor.metrics import MetricEstimate
from proctor.metrics.ordering import (
    ORDERING_METRICS,
    OVERALL,
    WEIGHTS,
    InvalidOrders,
    OrderComparison,
    compare_orders,
    order_chance,
    order_estimates,
    overall_score,
    position_confusion,
    rationale_estimates,
    tracking_estimate,
)
from proctor.metrics.text import RATIONALE_F1, BertScore, MissingExtraError, rationale_f1
from proctor.stats import Resampling
from proctor.tasks.clinicalskillqa.native import (
    NativePrediction,
    ReferenceOrder,
    read_predictions,
    read_references,
    spelled,
)

NAMED_WEIGHTS: Mapping[str, float] = MappingProxyType(dict(zip(("alpha", "beta"), WEIGHTS, strict=True)))
"""The weights of the overall score, as the task sets them, by their names on the command line."""

NO_RATIONALE_SCORE = "no text similarity was computed for the rationales"
"""Why there is no rationale F1, and with it no overall score."""

NO_RATIONALE_GIVEN = "no prediction has a rationale"
"""For a file without the field; an empty rationale among others scores 0."""


@dataclass(frozen=True, slots=True)
class Rationales:
    """F1 by item, 0 to 1, of all items whose reference has a rationale; the BERTScore's hash; and notes."""

    f1: dict[str, float]
    hash: str
    notes: tuple[str, ...]


def score_rationales(
    keys: Mapping[str, ReferenceOrder],
    answers: Mapping[str, NativePrediction],
    load: Callable[[], BertScore] | None,
    wrong: Collection[str] = (),
) -> tuple[Rationales | None, str]:
    """The rationales' scores, or None and the reason. Items without an answer or rationale score 0, and so do the `wrong`
    ones; an item whose reference has no rationale has no score."""
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
    texts = {name: answers[name].rationale if name in answers and answers[name].order else "" for name in known}
    counted = {name: "" if name in wrong else texts[name] for name in known}
    f1, notes = rationale_f1({name: (counted[name], known[name]) for name in known}, bertscore)
    silent = sum(name in answers and bool(answers[name].order) and not texts[name].strip() for name in known)
    more = [f"{silent} of {count_of(len(keys), 'answer')} without a rationale: score 0"] if silent else []
    if len(known) < len(keys):
        references = count_of(len(keys), "reference")
        more.append(f"{len(keys) - len(known)} of {references} without a rationale: F1 is over the others")
    return Rationales(f1, bertscore.hash, (*more, *notes)), ""


@dataclass(frozen=True, slots=True)
class Slice:
    """The figures of some items: `by` and `value` name them ("scenario", "CPR"; "all", ""), `chances` are the chance
    levels by metric, where they are known. The first two `scores` are task and pairwise accuracy; scored rationales add
    F1 and the overall score at the end, and for all items the correlation of F1 with the order."""

    by: str
    value: str
    items: int
    chances: dict[str, float]
    scores: tuple[MetricEstimate, ...]


@dataclass(frozen=True, slots=True)
class ScoredPredictions:
    """The result of `score_predictions`.

    `comparisons` has one entry per reference, `unanswered` are items without any order, `confusion` is
    `position_confusion`. Without `rationales` there is no F1 and no overall score, and `rationale_reason` says why.
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
        """The pairwise accuracy if invalid orders were counted in this way."""
        some = [comparison.counted(invalid) for comparison in self.comparisons.values()]
        return order_estimates(some, [*self.comparisons], plan=Resampling(draws=1))[1].estimate.value

    @property
    def rationale_f1(self) -> float | None:
        """The mean F1 over all items, 0 to 1, where rationales were scored."""
        return self._whole(RATIONALE_F1.name)

    @property
    def overall(self) -> float | None:
        """The task's overall score, 0 to 100, where rationales were scored."""
        return self._whole(OVERALL.name)

    def _whole(self, name: str) -> float | None:
        return next((score.estimate.value for score in self.slices[0].scores if score.metric.name == name), None)

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
    """Scores a file of predictions: every reference counts, and an item without an answer is wrong.

    An order that misses, repeats or invents a label is invalid: with `invalid="wrong"` it and its rationale score 0 on
    every figure; with "partial" the pairs that it has in order count.

    `weights` are α and β of the overall score. Intervals are clustered by the source video in the references, else by
    item. `bertscore` loads the scorer of rationales; it is not called where no reference has one. Without it, or without
    the extra that it needs, there is no F1 and no overall score. Raises `InputError` for files that can't be read, a
    prediction for an unknown item, and weights outside 0 to 1; with `strict` also for an item without an answer, and
    for an invalid order.
    """
    alpha, beta = weights
    overall_score(0, 0, 0, alpha=alpha, beta=beta)  # refuses bad weights before any work
    keys = read_references(references)
    answers = read_predictions(predictions)
    unknown = sorted(answers.keys() - keys.keys())
    if unknown:
        expected = f"an item of {references.name}"
        raise InputError(predictions, f"item {unknown[0]!r}", found="an unknown item", expected=expected)
    orders = {name: spelled(answers[name].order, key.order) for name, key in keys.items() if name in answers}
    compared = {name: compare_orders(key.order, orders.get(name)) for name, key in keys.items()}
    if strict:
        _check_labels(predictions, keys, compared)
    wrong = [name for name, one in compared.items() if invalid == "wrong" and not one.valid]
    rationales, reason = score_rationales(keys, answers, bertscore, wrong)
    counted = {name: one.counted(invalid) for name, one in compared.items()}
    f1, plan = rationales.f1 if rationales else {}, Resampling(draws=draws, seed=seed)
    return ScoredPredictions(
        comparisons=compared,
        unanswered=tuple(name for name in keys if name not in answers or not answers[name].order),
        slices=tuple(
            _slice(by, value, {name: counted[name] for name in names}, keys=keys, f1=f1, weights=weights, plan=plan)
            for by, value, names in _parts(keys)
        ),
        confusion=position_confusion(list(compared.values())),
        rationales=rationales,
        rationale_reason=reason,
        alpha=alpha,
        beta=beta,
        invalid=invalid,
        without_video=sum(not key.video for key in keys.values()),
    )


def _check_labels(predictions: Path, keys: dict[str, ReferenceOrder], compared: dict[str, OrderComparison]) -> None:
    for name, one in compared.items():
        location, expected = f"item {name!r}", f"each of {', '.join(sorted(keys[name].order))} once"
        if not one.answered and not one.unknown:
            raise InputError(predictions, location, found="no answer", expected=expected)
        faults = (("no", one.missing), ("more than one", one.repeated), ("the unknown", one.unknown))
        shown = "; ".join(f"{what} {', '.join(labels)}" for what, labels in faults if labels)
        if shown:
            raise InputError(predictions, f"{location}, field 'order'", found=shown, expected=expected)


def _parts(keys: dict[str, ReferenceOrder]) -> list[tuple[str, str, list[str]]]:
    """All items, then those of each scenario, then those of each number of frames."""
    parts = [("all", "", list(keys))]
    cuts: tuple[tuple[str, Callable[[ReferenceOrder], str]], ...] = (
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
    compared: Mapping[str, OrderComparison],
    *,
    keys: Mapping[str, ReferenceOrder],
    f1: Mapping[str, float],
    weights: tuple[float, float],
    plan: Resampling,
) -> Slice:
    orders = list(compared.values())
    groups = [keys[name].video or name for name in compared]
    scores = order_estimates(orders, groups, plan=plan)
    scores += rationale_estimates(compared, groups, f1, weights=weights, plan=plan)
    if f1 and by == "all":
        scores.append(tracking_estimate(compared, groups, f1, plan=plan))
    chances = {
        metric.name: order_chance(metric.name, [order.frames for order in orders]) for metric in ORDERING_METRICS
    }
    known = {name: chance for name, chance in chances.items() if chance is not None}
    return Slice(by, value, len(orders), known, tuple(scores))


class PublishedTeam(NamedTuple):
    """A team's overall score, 0 to 100, and its parts, 0 to 1, as rounded in the paper."""

    team: str
    overall: float
    task_accuracy: float
    pairwise_accuracy: float
    bertscore_f1: float


class Published(NamedTuple):
    """The published table with its source and a note."""

    source: str
    note: str
    teams: tuple[PublishedTeam, ...]


@cache
def published() -> Published:
    """Table 2 of the overview paper, best first. The overall score of six teams follows from the rounded parts as
    nearly as rounding allows (0.5); that of FBK is 0.65 higher, which rounding does not explain.

    >>> [row.team for row in published().teams][:2]
    ['ZZUNLP', 'qqpprun']
    """
    known = json.loads(files(__package__).joinpath("published.json").read_text(encoding="utf-8"))
    return Published(known["source"], known["note"], tuple(PublishedTeam(**row) for row in known["teams"]))


OTHER_ENCODER = (
    "The published rows used another encoder, which their paper does not name: their F1 and overall scores are not to "
    "be compared with these"
)
"""A note on the published table."""


def without_video(alone: int, items: int) -> str:
    """A note on intervals where instances do not name their source video."""
    return (
        f"{alone} of {count_of(items, 'instance')} without a source video, each a group of its own: if several were cut "
        "from one video, the intervals are too narrow. Name it as `video` in the references or the manifest."
    )


def report(scored: ScoredPredictions, predictions: Path, references: Path) -> PluginReport:
    """The output of `proctor score clinicalskillqa`. An unknown figure is null, with the reason beside it."""
    return PluginReport(_json(scored, predictions, references), _tables(scored, predictions), _notes(scored))


def _json(scored: ScoredPredictions, predictions: Path, references: Path) -> dict[str, JsonValue]:
    values = {score.metric.name: score.estimate.value for score in scored.slices[0].scores}
    known = scored.rationales
    notes = [*known.notes, OTHER_ENCODER] if known else []
    rationales: JsonValue = {"hash": known.hash, "notes": [*notes], "f1": {**known.f1}} if known else None
    return {
        "benchmark": "clinicalskillqa",
        "predictions": str(predictions),
        "references": str(references),
        "items": len(scored.comparisons),
        "task_accuracy": values["task_accuracy"],
        "pairwise_accuracy": values["pairwise_accuracy"],
        "rationale_f1": scored.rationale_f1,
        "overall": scored.overall,
        "reason": scored.rationale_reason or None,
        "rationales": rationales,
        "without_video": scored.without_video,
        "alpha": scored.alpha,
        "beta": scored.beta,
        "results": [row for part in scored.slices for row in _rows(part)],
        "confusion": {str(n): table.tolist() for n, table in scored.confusion.items()},
        "unanswered": list(scored.unanswered),
        "invalid": {
            "orders": len(scored.faulty),
            "counted": scored.invalid,
            "pairwise_accuracy_wrong": scored.pairwise("wrong"),
            "pairwise_accuracy_partial": scored.pairwise("partial"),
        },
        "faults": [
            {"id": name, "missing": list(one.missing), "repeated": list(one.repeated), "unknown": list(one.unknown)}
            for name, one in scored.faulty.items()
        ],
        "published": [{**row._asdict(), "published": True} for row in published().teams],
    }


def _rows(part: Slice) -> list[JsonValue]:
    return [
        {
            "by": part.by,
            "value_of": part.value,
            "metric": score.metric.name,
            "label": score.metric.label,
            **asdict(score.estimate),
            "chance": part.chances.get(score.metric.name),
        }
        for score in part.scores
    ]


def _tables(scored: ScoredPredictions, predictions: Path) -> tuple[Table, ...]:
    whole = scored.slices[0]
    scores = plain_table(
        f"{predictions.name}: {count_of(whole.items, 'item')}",
        ("Metric", ">Score", ">95 % CI", ">Chance"),
        (
            *(
                (
                    score.metric.label,
                    value(score.metric, score.estimate.value),
                    interval(score.metric, score.estimate.ci_low, score.estimate.ci_high),
                    value(score.metric, whole.chances.get(score.metric.name)),
                )
                for score in whole.scores
            ),
            *(() if scored.rationales else tuple((score.label, DASH, DASH, DASH) for score in (RATIONALE_F1, OVERALL))),
        ),
    )
    parts = plain_table(
        "By scenario and number of frames",
        ("by", "", ">items", ">task accuracy", ">chance", ">pairwise accuracy", ">chance"),
        tuple(_part(part) for part in scored.slices[1:]),
    )
    teams = plain_table(
        f"Published ({published().source})",
        ("team", ">overall", ">task accuracy", ">pairwise accuracy", ">BERTScore F1", ""),
        tuple((row.team, *(number(figure, 2) for figure in row[1:]), "published") for row in published().teams),
    )
    return scores, parts, teams


def _part(part: Slice) -> tuple[str, ...]:
    cells: list[str] = [part.by, part.value, str(part.items)]
    for score in part.scores[:2]:
        one = score.estimate
        cells += [
            f"{value(score.metric, one.value)} ({interval(score.metric, one.ci_low, one.ci_high)})",
            value(score.metric, part.chances.get(score.metric.name)),
        ]
    return tuple(cells)


def _notes(scored: ScoredPredictions) -> tuple[str, ...]:
    items = len(scored.comparisons)
    lines = []
    if scored.without_video:
        lines.append(without_video(scored.without_video, items))
    if scored.unanswered:
        lines.append(f"{len(scored.unanswered)} of {count_of(items, 'item')} without an answer, counted as wrong.")
    faults = scored.faulty
    if faults:
        lines += [_invalid(scored), f"{count_of(len(faults), 'invalid order')}:"]
    for name, one in faults.items():
        found = (("lacks", one.missing), ("repeats", one.repeated), ("invents", one.unknown))
        shown = "; ".join(f"{what} {', '.join(labels)}" for what, labels in found if labels)
        lines.append(f"  item {name!r} {shown}")
    if scored.rationales is not None:
        lines.append(f"Rationales: BERTScore F1 by {scored.rationales.hash}. {OTHER_ENCODER}.")
        lines += [f"Rationales: {note}." for note in scored.rationales.notes]
    if scored.rationale_reason:
        lines.append(f"No rationale F1 and no overall score: {scored.rationale_reason}.")
    return tuple(lines)


def _invalid(scored: ScoredPredictions) -> str:
    """How invalid orders are counted, and the result of the other way."""
    what = (
        f"Invalid: {len(scored.faulty)} of {count_of(len(scored.comparisons), 'order')} (a label is missing, repeated or "
        "unknown)"
    )
    if scored.invalid == "wrong":
        other = percent(scored.pairwise("partial"))
        return f"{what}, wrong in every figure. With --option invalid=partial, pairwise accuracy would be {other}."
    other = percent(scored.pairwise("wrong"))
    return (
        f"{what}, never exact, but pairs and rationales count (--option invalid=partial). With --option invalid=wrong, "
        f"pairwise accuracy would be {other}."
    )
