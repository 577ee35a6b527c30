"""The audit: a judge or metric held against human ratings, whatever they rate."""

from proctor.audit.agreement import ALL, Aggregate, Agreement, Audit, Ceiling, SystemLevel, audit
from proctor.audit.bias import Bias, LengthSlope
from proctor.audit.calibration import Calibration, RatedLevel, ScoreBin
from proctor.audit.comparing import Board, Comparison, Place, compare
from proctor.audit.counts import Coverage, Scored, coverage, scored
from proctor.audit.frames import CorrelationSettings
from proctor.audit.gaps import rank_gaps
from proctor.audit.length import LengthBias
from proctor.audit.ratings import Key, MetricScores, Rating, RatingsTable
from proctor.audit.reading import read_ratings, read_scores
from proctor.audit.rendering import agreement_rows, official, to_json, whole_json
from proctor.audit.whole import Audits, Portrait, portray

__all__ = [
    "ALL",
    "Aggregate",
    "Agreement",
    "Audit",
    "Audits",
    "Bias",
    "Board",
    "Calibration",
    "Ceiling",
    "Comparison",
    "CorrelationSettings",
    "Coverage",
    "Key",
    "LengthBias",
    "LengthSlope",
    "MetricScores",
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
    "official",
    "portray",
    "rank_gaps",
    "read_ratings",
    "read_scores",
    "scored",
    "to_json",
    "whole_json",
]
