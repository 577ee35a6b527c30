"""One module per benchmark: reads its native files, states its protocol."""

from proctor.benchmarks.predictions import PredictionReport, PredictionTable, ScoresPredictions
from proctor.core import BenchmarkReader, Registry

__all__ = ["BENCHMARKS", "PredictionReport", "PredictionTable", "ScoresPredictions"]

BENCHMARKS: Registry[BenchmarkReader] = Registry("benchmark", group="proctor.benchmarks")
