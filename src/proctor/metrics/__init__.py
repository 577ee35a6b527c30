"""From parsed answers to numbers, without asking a model."""

from proctor.metrics.accuracy import AccuracyScorer, is_right

__all__ = ["AccuracyScorer", "is_right"]
