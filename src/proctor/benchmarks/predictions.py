"""What a benchmark offers that marks a file of predictions by itself, without a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from pydantic import JsonValue

from proctor.metrics.text import BertScoreSettings

__all__ = ["PredictionReport", "PredictionTable", "ScoresPredictions"]


@dataclass(frozen=True, slots=True)
class PredictionTable:
    """A table for people; columns beginning with ">" are aligned to the right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PredictionReport:
    """The marks of one file: for programs, for people, and in sentences what a person should know."""

    json: dict[str, JsonValue]
    tables: tuple[PredictionTable, ...]
    notes: tuple[str, ...] = ()


@runtime_checkable
class ScoresPredictions(Protocol):
    """A reader whose benchmark's predictions can be marked from two files alone."""

    @property
    def prediction_weights(self) -> Mapping[str, float]:
        """The weights that its overall score has, with their defaults."""

    def mark_predictions(
        self,
        predictions: Path,
        references: Path,
        *,
        weights: Mapping[str, float],
        draws: int,
        seed: int,
        strict: bool = False,
        similarity: BertScoreSettings | None = None,
        invalid: Literal["wrong", "partial"] = "wrong",
    ) -> PredictionReport:
        """Marks a file; a weight that is not named has its default, and so has `similarity`, by which texts are held
        against texts. Raises `InputError` for what can't be read,
        for a weight that it does not know, and with `strict` for an answer that is missing or not valid, which
        is else wrong and counted. An answer that is not valid is wrong in every figure, or counts as far as it
        goes (`invalid`)."""
