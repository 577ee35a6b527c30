"""Prediction reports: scores of a file of predictions against a file of references, as a benchmark's own program gives them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from proctor.core import Parts, PluginReport
from proctor.metrics.ordering import InvalidOrders
from proctor.metrics.text import BertScoreSettings


class PredictionScorer(Protocol):
    """Scores a file of predictions, for `proctor score BENCHMARK PREDICTIONS`."""

    @property
    def weights(self) -> Mapping[str, float]:
        """The default weights of the overall score."""

    def prediction_report(
        self,
        predictions: Path,
        references: Path,
        *,
        weights: Mapping[str, float],
        draws: int,
        seed: int,
        strict: bool = False,
        similarity: BertScoreSettings | None = None,
        invalid: InvalidOrders = "wrong",
    ) -> PluginReport:
        """Score a file of predictions; missing `weights` have their defaults. Invalid or missing answers count as wrong,
        or raise `InputError` with `strict`. `similarity` is the text similarity, and `invalid` is whether invalid answers
        are "wrong" in every figure or get "partial" credit. Raises `InputError` for unreadable files and unknown
        weights."""


PREDICTION_REPORTS: Parts[PredictionScorer] = Parts(
    "prediction report", "proctor.prediction_reports", "weights", "prediction_report"
)
