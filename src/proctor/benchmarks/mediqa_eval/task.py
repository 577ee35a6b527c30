"""What the MEDIQA-EVAL 2026 task lays down: datasets, languages, dimensions, columns, sizes of its splits."""

from __future__ import annotations

from proctor.judges.dimensions import Dimension

__all__ = [
    "ANSWERS",
    "COLUMNS",
    "DATASETS",
    "DIMENSIONS",
    "LEVELS",
    "LOWER_IS_BETTER",
    "OPTED_OUT",
    "ORDER",
    "SPLITS",
    "dimensions",
    "levels",
]

DATASETS = ("iiyi", "woundcare")

DIMENSIONS = {
    "en": ("disagree_flag", "completeness", "factual-accuracy", "relevance", "writing-style", "overall"),
    "zh": ("factual-consistency-wgold", "writing-style"),
}
"""What clinicians rated, by language."""

LOWER_IS_BETTER = frozenset({"disagree_flag"})

ORDER = tuple((language, dimension) for language, names in DIMENSIONS.items() for dimension in names)

COLUMNS = (
    "dataset",
    "encounter_id",
    "lang",
    "candidate",
    "candidate_author_id",
    "metric",
    "rater_id",
    "value",
)
"""Of ratings and of submissions alike; `metric` is the dimension."""

LEVELS = (0.0, 0.5, 1.0)

OPTED_OUT = -1.0
"""The value by which a submission leaves a row out on purpose (a language that it does not score)."""

ANSWERS = {
    "valid": {"iiyi": 168, "woundcare": 315},
    "test": {"iiyi": 300, "woundcare": 279},
}
"""Answers in each language of the published splits: encounters × three systems."""

SPLITS = tuple(ANSWERS)


def levels(dimension: str) -> tuple[float, ...]:
    """The values that a rating on a dimension can have.

    >>> levels("disagree_flag")
    (0.0, 1.0)
    """
    return (0.0, 1.0) if dimension == "disagree_flag" else LEVELS


def dimensions(language: str) -> tuple[Dimension, ...]:
    """What answers in a language are judged on, in the task's order.

    >>> [one.name for one in dimensions("zh")]
    ['factual-consistency-wgold', 'writing-style']
    """
    return tuple(Dimension(name, levels(name)) for name in DIMENSIONS[language])
