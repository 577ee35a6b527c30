"""From parsed answers to numbers, without asking a model."""

from proctor.metrics.accuracy import AccuracyScorer

__all__ = ["AccuracyScorer"]
