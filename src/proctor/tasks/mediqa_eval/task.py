"""What the MEDIQA-EVAL 2026 task lays down: datasets, languages, dimensions, columns, sizes of its splits."""

from __future__ import annotations

from proctor.core import DerivedDimension, Dimension, RatingRule, RatingScheme

DATASETS = ("iiyi", "woundcare")

DIMENSIONS = {
    "en": ("disagree_flag", "completeness", "factual-accuracy", "relevance", "writing-style", "overall"),
    "zh": ("factual-consistency-wgold", "writing-style"),
}
"""What clinicians rated, by language."""

LOWER_IS_BETTER = frozenset({"disagree_flag"})

ORDER = tuple((language, dimension) for language, names in DIMENSIONS.items() for dimension in names)

COLUMNS = ("dataset", "encounter_id", "lang", "candidate", "candidate_author_id", "metric", "rater_id", "value")
"""Of ratings and of submissions alike; `metric` is the dimension."""

LEVELS = (0.0, 0.5, 1.0)

OPTED_OUT = -1.0
"""The value by which a submission leaves a row out on purpose (a language that it does not score)."""

ANSWERS = {"valid": {"iiyi": 168, "woundcare": 315}, "test": {"iiyi": 300, "woundcare": 279}}
"""Answers in each language of the published splits: encounters × three systems."""

SPLITS = tuple(ANSWERS)


_NAMES = (*DIMENSIONS["en"][:-2], DIMENSIONS["zh"][0], *DIMENSIONS["en"][-2:])
"""In an order that is the task's in both languages."""

_PARTS = ("completeness", "factual-accuracy")


def levels(dimension: str) -> tuple[float, ...]:
    """The values that a rating on a dimension can have.

    >>> levels("disagree_flag")
    (0.0, 1.0)
    """
    return (0.0, 1.0) if dimension == "disagree_flag" else LEVELS


SCHEME = RatingScheme(
    dimensions=tuple(
        Dimension(
            name,
            levels(name),
            lower_is_better=name in LOWER_IS_BETTER,
            languages=tuple(language for language, names in DIMENSIONS.items() if name in names),
        )
        for name in _NAMES
    ),
    rules=(
        RatingRule(name="overall-above-both", dimension="overall", others=_PARTS),
        RatingRule(name="overall-above-half", dimension="overall", others=_PARTS, limit=0.5, where=0.5),
    ),
    derived=(
        DerivedDimension(dimension="overall", others=_PARTS, how="lowest"),
        DerivedDimension(dimension="disagree_flag", others=("factual-accuracy",), how="at-lowest"),
    ),
    step=0.05,
)
"""What answers are rated on, in the task's order, with the task's rules.

Where a judge is asked for levels, overall and disagreement are derived as its clinicians rated: overall is the lower of
completeness and factual accuracy in 330 of 363 ratings of the validation data, and a candidate disagrees with the
references where its factual accuracy is 0 in 327 of 363. The overview of the task does not say how.
"""


def dimensions(language: str) -> tuple[Dimension, ...]:
    """What answers in a language are judged on, in the task's order.

    >>> [one.name for one in dimensions("zh")]
    ['factual-consistency-wgold', 'writing-style']
    """
    return tuple(one for name in DIMENSIONS[language] for one in SCHEME.dimensions if one.name == name)
