"""The published results of the shared task: seven teams, kept as data and always shown as published."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import DASH, PluginReport, PluginTable, interval, number, percent, value
from proctor.metrics import MetricEstimate
from proctor.metrics.ordering import OVERALL, OrderComparison
from proctor.metrics.text import RATIONALE_F1
from proctor.tasks.clinicalskillqa.scoring import ScoredPredictions, Slice


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PublishedTeam(_Frozen):
    """One team: the overall score from 0 to 100, its parts from 0 to 1 as rounded in the paper."""

    team: str
    overall: float = Field(ge=0, le=100)
    task_accuracy: float = Field(ge=0, le=1)
    pairwise_accuracy: float = Field(ge=0, le=1)
    bertscore_f1: float = Field(ge=0, le=1)


class Published(_Frozen):
    """The table with where it stands and what a reader should know of it."""

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
    text = files("proctor.tasks.clinicalskillqa").joinpath("published.json").read_text(encoding="utf-8")
    return Published.model_validate_json(text)


OTHER_ENCODER = (
    "The published rows used another encoder, which their paper does not name: their F1 and overall scores are not to "
    "be compared with these"
)
"""What a reader of the published table must know."""


def without_video(alone: int, items: int) -> str:
    """What a reader of intervals must know where instances do not name their source video."""
    return (
        f"{alone} of {items} instances name no source video, and each is a group of its own: if several were cut from one "
        "video, the intervals are too narrow. Name it as `video` in the references or the manifest."
    )


def report(scored: ScoredPredictions, predictions: Path, references: Path) -> PluginReport:
    """What `proctor score clinicalskillqa` prints. A figure that is not known is null, with the reason beside it."""
    return PluginReport(
        json=_json(scored, predictions, references), shown=_tables(scored, predictions), notes=_notes(scored)
    )


def _json(scored: ScoredPredictions, predictions: Path, references: Path) -> dict[str, JsonValue]:
    values = _values(scored)
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
        "rationales": _rationales(scored),
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
        "faults": [_fault(name, one) for name, one in scored.faulty.items()],
        "published": [{**row.model_dump(), "published": True} for row in published().teams],
    }


def _values(scored: ScoredPredictions) -> dict[str, float | None]:
    return {mark.metric.name: mark.estimate.value for mark in scored.slices[0].marks}


def _rows(part: Slice) -> list[JsonValue]:
    return [
        {
            "by": part.by,
            "value_of": part.value,
            "metric": mark.metric.name,
            "label": mark.metric.label,
            **asdict(mark.estimate),
            "chance": _chance(mark, part),
        }
        for mark in part.marks
    ]


def _chance(mark: MetricEstimate, part: Slice) -> float | None:
    return part.chances.get(mark.metric.name)


def _rationales(scored: ScoredPredictions) -> JsonValue:
    if scored.rationales is None:
        return None
    return {
        "hash": scored.rationales.hash,
        "notes": [*scored.rationales.notes, OTHER_ENCODER],
        "f1": {**scored.rationales.f1},
    }


def _fault(name: str, one: OrderComparison) -> JsonValue:
    return {"id": name, "missing": list(one.missing), "repeated": list(one.repeated), "unknown": list(one.unknown)}


def _tables(scored: ScoredPredictions, predictions: Path) -> tuple[PluginTable, ...]:
    whole = scored.slices[0]
    marks = PluginTable(
        f"{predictions.name}: {whole.items} items",
        ("metric", ">value", ">95 % interval", ">chance"),
        (
            *(
                (
                    mark.metric.label,
                    value(mark.metric, mark.estimate.value),
                    interval(mark.metric, mark.estimate.ci_low, mark.estimate.ci_high),
                    value(mark.metric, _chance(mark, whole)),
                )
                for mark in whole.marks
            ),
            *(() if scored.rationales else tuple((mark.label, DASH, DASH, DASH) for mark in (RATIONALE_F1, OVERALL))),
        ),
    )
    parts = PluginTable(
        "By scenario and number of frames",
        ("by", "", ">items", ">task accuracy", ">chance", ">pairwise accuracy", ">chance"),
        tuple(_part(part) for part in scored.slices[1:]),
    )
    teams = PluginTable(
        f"Published ({published().source})",
        ("team", ">overall", ">task accuracy", ">pairwise accuracy", ">BERTScore F1", ""),
        tuple(
            (
                row.team,
                number(row.overall, 2),
                number(row.task_accuracy, 2),
                number(row.pairwise_accuracy, 2),
                number(row.bertscore_f1, 2),
                "published",
            )
            for row in published().teams
        ),
    )
    return marks, parts, teams


def _part(part: Slice) -> tuple[str, ...]:
    task, pair = part.marks[:2]
    return (
        part.by,
        part.value,
        str(part.items),
        f"{value(task.metric, task.estimate.value)} ({interval(task.metric, task.estimate.ci_low, task.estimate.ci_high)})",
        value(task.metric, _chance(task, part)),
        f"{value(pair.metric, pair.estimate.value)} ({interval(pair.metric, pair.estimate.ci_low, pair.estimate.ci_high)})",
        value(pair.metric, _chance(pair, part)),
    )


def _notes(scored: ScoredPredictions) -> tuple[str, ...]:
    items = len(scored.comparisons)
    lines = []
    if scored.without_video:
        lines.append(without_video(scored.without_video, items))
    if scored.unanswered:
        lines.append(f"{len(scored.unanswered)} of {items} items have no answer and are wrong.")
    faults = scored.faulty
    if faults:
        lines += [_invalid(scored), f"The {len(faults)} invalid orders:"]
    for name, one in faults.items():
        found = (("lacks", one.missing), ("repeats", one.repeated), ("invents", one.unknown))
        said = "; ".join(f"{what} {', '.join(labels)}" for what, labels in found if labels)
        lines.append(f"  item {name!r} {said}")
    if scored.rationales is not None:
        lines.append(f"Rationales: BERTScore F1 by {scored.rationales.hash}. {OTHER_ENCODER}.")
        lines += [f"Rationales: {one}." for one in scored.rationales.notes]
    if scored.rationale_reason:
        lines.append(f"No rationale F1 and no overall score: {scored.rationale_reason}.")
    return tuple(lines)


def _invalid(scored: ScoredPredictions) -> str:
    """How invalid orders count, and what the other way would give."""
    what = f"{len(scored.faulty)} of {len(scored.comparisons)} orders are invalid (a label is missing, repeated or unknown)"
    if scored.invalid == "wrong":
        other = percent(scored.pairwise("partial"))
        return f"{what} and wrong in every figure. With --invalid partial, pairwise accuracy would be {other}."
    other = percent(scored.pairwise("wrong"))
    return (
        f"{what}: never exact, but their pairs and rationales count (--invalid partial). With --invalid wrong, "
        f"pairwise accuracy would be {other}."
    )
