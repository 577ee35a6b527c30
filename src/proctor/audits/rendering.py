"""An audit as plain data: flat rows and nested JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from proctor.audits.agreement import Agreement, Audit, Ceiling
from proctor.audits.bias import Bias, LengthSlope
from proctor.audits.calibration import Calibration
from proctor.audits.comparing import Board
from proctor.audits.frames import ALL
from proctor.audits.whole import Audits, Portrait
from proctor.stats import Estimate

_KINDS = ("kendall", "pearson", "spearman", "mean")


@runtime_checkable
class NamesAuditFigures(Protocol):
    """A benchmark's reader whose organisers publish an audit under keys of their own."""

    def official_audit(self, audit: Audit) -> dict[str, float | None]:
        """One metric's figures under these keys; None where there is no correlation."""


def agreement_rows(audit: Audit) -> list[dict[str, JsonValue]]:
    """One flat row per agreement and per aggregate (dimension "ALL"), raters apart included."""
    rows: list[dict[str, JsonValue]] = []
    for row in (*audit.agreements, *audit.by_rater):
        flat: dict[str, JsonValue] = {"metric": audit.metric} | _where(row) | {"rater": row.rater}
        for kind in _KINDS:
            flat |= _flat(kind, _of(row, kind))
        counts = {"ratings": row.mean.n, "answers": row.answers, "groups": row.mean.groups}
        rows.append(flat | counts | {"raters": row.raters, "reason": row.reason, "note": row.note})
    empty = Estimate(None, None, None, 0, 0)
    for one in audit.aggregates:
        flat = {"metric": audit.metric, "dataset": ALL, "language": one.language, "dimension": ALL, "rater": ""}
        for kind in _KINDS:
            flat |= _flat(kind, one.mean if kind == "mean" else empty)
        flat |= {"ratings": None, "answers": None, "groups": one.mean.groups}
        rows.append(flat | {"raters": None, "reason": one.reason, "note": one.note})
    return rows


def to_json(audits: Sequence[Audit], boards: Sequence[Board]) -> dict[str, JsonValue]:
    """Everything, nested; never NaN."""
    return {
        "settings": asdict(audits[0].settings) if audits else {},
        "metrics": [_audit_json(audit) for audit in audits],
        "boards": [_board_json(board) for board in boards],
    }


def whole_json(found: Audits) -> dict[str, JsonValue]:
    """What `to_json` gives, and beside it what each metric's scores mean and favour, and what all stands on."""
    boards = found.boards if len(found.metrics) > 1 else ()
    return to_json(found.each, boards) | {
        "portraits": [_portrait_json(one) for one in found.portraits],
        "coverage": [asdict(one) | {"raters": list(one.raters)} for one in found.coverage],
        "scored": [asdict(one) for one in found.scored],
    }


def _portrait_json(portrait: Portrait) -> dict[str, JsonValue]:
    return {
        "metric": portrait.metric,
        "calibration": [_calibration_json(one) for one in portrait.calibration],
        "bias": [_bias_json(one) for one in portrait.bias],
        "length_slopes": [_bias_json(one) for one in portrait.length_slopes],
    }


def _calibration_json(one: Calibration) -> dict[str, JsonValue]:
    return {
        "dataset": one.dataset,
        "language": one.language,
        "dimension": one.dimension,
        "bins": [
            {
                "low": part.low,
                "high": part.high,
                "score": part.score,
                "rating": _estimate(part.rating),
                "ratings": part.rating.n,
                "groups": part.rating.groups,
            }
            for part in one.bins
        ],
        "levels": [asdict(level) for level in one.levels],
        "reason": one.reason or None,
    }


def _bias_json(one: Bias | LengthSlope) -> dict[str, JsonValue]:
    flat: dict[str, JsonValue] = asdict(one)
    return flat | {"dimension": one.dimension or ALL, "reason": one.reason or None}


def _audit_json(audit: Audit) -> dict[str, JsonValue]:
    return {
        "metric": audit.metric,
        "notes": list(audit.notes),
        "agreement": [_row_json(row) for row in audit.agreements],
        "aggregates": [
            {
                "language": one.language,
                "dimensions": one.dimensions,
                "mean": _estimate(one.mean),
                "reason": one.reason or None,
                "note": one.note or None,
            }
            for one in audit.aggregates
        ],
        "by_rater": [_row_json(row) for row in audit.by_rater],
        "by_system": [
            {
                "dataset": one.dataset,
                "language": one.language,
                "dimension": one.dimension,
                "kendalltau": one.kendall,
                "pearson": one.pearson,
                "spearman": one.spearman,
                "reason": one.reason or None,
                "systems": [
                    {"system": name, "score": score, "rating": rating, "ratings": n}
                    for name, score, rating, n in one.systems
                ],
            }
            for one in audit.by_system
        ],
        "by_length": [
            {
                "dataset": one.dataset,
                "language": one.language,
                "dimension": one.dimension,
                "scores": _estimate(one.scores),
                "ratings": _estimate(one.ratings),
                "excess": asdict(one.excess),
                "partial": one.partial,
                "reason": one.reason or None,
            }
            for one in audit.by_length
        ],
        "ceilings": [_ceiling_json(one) for one in audit.ceilings],
    }


def _row_json(row: Agreement) -> dict[str, JsonValue]:
    return (
        _where(row)
        | {"rater": row.rater or None}
        | _four(row)
        | {
            "ratings": row.mean.n,
            "answers": row.answers,
            "groups": row.mean.groups,
            "raters": row.raters,
            "reason": row.reason or None,
            "note": row.note or None,
        }
    )


def _ceiling_json(one: Ceiling) -> dict[str, JsonValue]:
    return (
        _where(one)
        | {"first": one.first, "second": one.second}
        | _four(one)
        | {"krippendorff_alpha": _estimate(one.alpha), "perfect_metric_pearson": one.perfect}
        | {"answers": one.mean.n, "reason": one.reason or None}
    )


def _board_json(board: Board) -> dict[str, JsonValue]:
    return {
        "language": board.language,
        "dimension": board.dimension or ALL,
        "places": [
            {
                "metric": one.metric,
                "rank": one.rank,
                "ties": list(one.ties),
                "kendalltau": one.kendall,
                "pearson": one.pearson,
                "spearman": one.spearman,
                "mean": _estimate(one.mean),
                "reason": one.reason or None,
                "note": one.note or None,
            }
            for one in board.places
        ],
        "comparisons": [
            {
                "first": one.first,
                "second": one.second,
                "difference": one.difference.value,
                "ci_low": one.difference.ci_low,
                "ci_high": one.difference.ci_high,
                "p": one.difference.p,
                "p_holm": one.p_holm,
                "williams": None if one.williams is None else asdict(one.williams),
                "steiger": None if one.steiger is None else asdict(one.steiger),
            }
            for one in board.comparisons
        ],
    }


def _where(row: Agreement | Ceiling) -> dict[str, JsonValue]:
    return {"dataset": row.dataset, "language": row.language, "dimension": row.dimension}


def _four(row: Agreement | Ceiling) -> dict[str, JsonValue]:
    return {("kendalltau" if kind == "kendall" else kind): _estimate(_of(row, kind)) for kind in _KINDS}


def _of(row: Agreement | Ceiling, kind: str) -> Estimate:
    found: Estimate = getattr(row, kind)
    return found


def _estimate(one: Estimate) -> dict[str, JsonValue]:
    return {"value": one.value, "ci_low": one.ci_low, "ci_high": one.ci_high}


def _flat(kind: str, one: Estimate) -> dict[str, JsonValue]:
    name = "kendalltau" if kind == "kendall" else kind
    return {name: one.value, f"{name}_low": one.ci_low, f"{name}_high": one.ci_high}
