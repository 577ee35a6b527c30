"""The audit: a judge or metric held against human ratings, whatever they rate."""

from proctor.audit.agreement import ALL, Aggregate, Agreement, Audit, audit
from proctor.audit.comparing import Board, Comparison, Place, compare
from proctor.audit.frames import CorrelationSettings
from proctor.audit.length import LengthBias
from proctor.audit.ratings import Key, MetricScores, Rating, RatingsTable
from proctor.audit.reading import read_ratings, read_scores
from proctor.audit.rendering import agreement_rows, official, to_json

__all__ = [
    "ALL",
    "Aggregate",
    "Agreement",
    "Audit",
    "Board",
    "Comparison",
    "CorrelationSettings",
    "Key",
    "LengthBias",
    "MetricScores",
    "Place",
    "Rating",
    "RatingsTable",
    "agreement_rows",
    "audit",
    "compare",
    "official",
    "read_ratings",
    "read_scores",
    "to_json",
]
