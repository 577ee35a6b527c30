"""Marks in the form in which programs and people read them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from pydantic import JsonValue

from proctor.benchmarks.clinicalskillqa.published import published
from proctor.benchmarks.clinicalskillqa.scoring import Scored, Slice
from proctor.benchmarks.predictions import PredictionReport, PredictionTable
from proctor.metrics.marks import Mark
from proctor.metrics.ordering import OVERALL, Comparison
from proctor.metrics.text import RATIONALE_F1

__all__ = ["report", "without_video"]

_DASH = "–"

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


def report(scored: Scored, predictions: Path, references: Path) -> PredictionReport:
    """What `proctor score clinicalskillqa` prints. A figure that is not known is null, with the reason beside it."""
    return PredictionReport(
        json=_json(scored, predictions, references), tables=_tables(scored, predictions), notes=_notes(scored)
    )


def _json(scored: Scored, predictions: Path, references: Path) -> dict[str, JsonValue]:
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


def _values(scored: Scored) -> dict[str, float | None]:
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


def _chance(mark: Mark, part: Slice) -> float | None:
    return part.chances.get(mark.metric.name)


def _rationales(scored: Scored) -> JsonValue:
    if scored.rationales is None:
        return None
    return {
        "hash": scored.rationales.hash,
        "notes": [*scored.rationales.notes, OTHER_ENCODER],
        "f1": {**scored.rationales.f1},
    }


def _fault(name: str, one: Comparison) -> JsonValue:
    return {
        "id": name,
        "missing": list(one.missing),
        "repeated": list(one.repeated),
        "unknown": list(one.unknown),
    }


def _tables(scored: Scored, predictions: Path) -> tuple[PredictionTable, ...]:
    whole = scored.slices[0]
    marks = PredictionTable(
        f"{predictions.name}: {whole.items} items",
        ("metric", ">value", ">95 % interval", ">chance"),
        (
            *(
                (
                    mark.metric.label,
                    _shown(mark, mark.estimate.value),
                    _interval(mark),
                    _shown(mark, _chance(mark, whole)),
                )
                for mark in whole.marks
            ),
            *(
                ()
                if scored.rationales
                else tuple((mark.label, _DASH, _DASH, _DASH) for mark in (RATIONALE_F1, OVERALL))
            ),
        ),
    )
    parts = PredictionTable(
        "By scenario and number of frames",
        ("by", "", ">items", ">task accuracy", ">chance", ">pairwise accuracy", ">chance"),
        tuple(_part(part) for part in scored.slices[1:]),
    )
    teams = PredictionTable(
        f"Published ({published().source})",
        ("team", ">overall", ">task accuracy", ">pairwise accuracy", ">BERTScore F1", ""),
        tuple(
            (
                row.team,
                _number(row.overall),
                _number(row.task_accuracy),
                _number(row.pairwise_accuracy),
                _number(row.bertscore_f1),
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
        f"{_shown(task, task.estimate.value)} ({_interval(task)})",
        _shown(task, _chance(task, part)),
        f"{_shown(pair, pair.estimate.value)} ({_interval(pair)})",
        _shown(pair, _chance(pair, part)),
    )


def _notes(scored: Scored) -> tuple[str, ...]:
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


def _invalid(scored: Scored) -> str:
    """How invalid orders count, and what the other way would give."""
    what = f"{len(scored.faulty)} of {len(scored.comparisons)} orders are invalid (a label is missing, repeated or unknown)"
    if scored.invalid == "wrong":
        other = _percent(scored.pairwise("partial"))
        return (
            f"{what} and wrong in every figure. With --invalid partial, pairwise accuracy would be {other}."
        )
    other = _percent(scored.pairwise("wrong"))
    return (
        f"{what}: never exact, but their pairs and rationales count (--invalid partial). With --invalid wrong, "
        f"pairwise accuracy would be {other}."
    )


def _percent(value: float | None) -> str:
    return _DASH if value is None else f"{100 * value:.1f} %"


def _shown(mark: Mark, value: float | None) -> str:
    return _DASH if value is None else mark.metric.show(value)


def _interval(mark: Mark) -> str:
    low, high = mark.estimate.ci_low, mark.estimate.ci_high
    return _DASH if low is None or high is None else f"{mark.metric.show(low)} to {mark.metric.show(high)}"


def _number(value: float | None) -> str:
    return _DASH if value is None else f"{value:.2f}"
