"""A file of predictions scored against a file of references, as the task does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from proctor.core import InputError, PluginReport
from proctor.metrics.ordering import InvalidOrders
from proctor.metrics.text import BertScoreSettings, load_bertscore
from proctor.tasks.clinicalskillqa.scoring import NAMED_WEIGHTS, report, score_predictions


class SkillPredictions:
    """The task's own figures and further ones; rationales by BERTScore (see `proctor.metrics.PredictionScorer`)."""

    weights = NAMED_WEIGHTS

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
        unknown = sorted(weights.keys() - self.weights.keys())
        if unknown:
            raise InputError("weight", found=repr(unknown[0]), expected=f"one of {', '.join(self.weights)}")
        chosen = {**self.weights, **weights}
        scored = score_predictions(
            predictions,
            references,
            weights=(chosen["alpha"], chosen["beta"]),
            draws=draws,
            seed=seed,
            strict=strict,
            bertscore=lambda: load_bertscore(similarity or BertScoreSettings()),
            invalid=invalid,
        )
        return report(scored, predictions, references)


PREDICTIONS = SkillPredictions()
