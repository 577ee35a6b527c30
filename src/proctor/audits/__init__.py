"""The audit: a judge or metric compared with human ratings, whatever they rate."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.audits.agreement import Aggregate, Agreement, Audit, Ceiling, SystemLevel, audit
    from proctor.audits.bias import Bias, LengthSlope
    from proctor.audits.calibration import Calibration, RatedLevel, ScoreBin
    from proctor.audits.comparing import Board, Comparison, Place, compare
    from proctor.audits.counts import Coverage, Scored, coverage, scored
    from proctor.audits.frames import ALL, KINDS, Cell, CorrelationSettings, Frame, paired
    from proctor.audits.gaps import rank_gaps
    from proctor.audits.length import LengthBias, lengths
    from proctor.audits.ratings import Key, MetricScores, Rating, RatingsTable, recorded_by_system
    from proctor.audits.reading import read_ratings, read_scores
    from proctor.audits.rendering import NamesAuditFigures, agreement_rows, to_json, whole_json
    from proctor.audits.whole import Audits, Portrait, portray
else:
    export_lazily(__name__)

__all__ = [
    "ALL",
    "KINDS",
    "Aggregate",
    "Agreement",
    "Audit",
    "Audits",
    "Bias",
    "Board",
    "Calibration",
    "Ceiling",
    "Cell",
    "Comparison",
    "CorrelationSettings",
    "Coverage",
    "Frame",
    "Key",
    "LengthBias",
    "LengthSlope",
    "MetricScores",
    "NamesAuditFigures",
    "Place",
    "Portrait",
    "RatedLevel",
    "Rating",
    "RatingsTable",
    "ScoreBin",
    "Scored",
    "SystemLevel",
    "agreement_rows",
    "audit",
    "compare",
    "coverage",
    "lengths",
    "paired",
    "portray",
    "rank_gaps",
    "read_ratings",
    "read_scores",
    "recorded_by_system",
    "scored",
    "to_json",
    "whole_json",
]
