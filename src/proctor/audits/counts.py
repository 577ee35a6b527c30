"""What an audit stands on: items, groups, systems, raters, and what a metric scored of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from proctor.audits.frames import ALL
from proctor.audits.ratings import MetricScores, RatingsTable


@dataclass(frozen=True, slots=True)
class Coverage:
    """The ratings of one dataset (or all) in one language. `answers` counts texts, `ratings` a rater's value
    of one of their dimensions, `twice` what two or more raters rated (an answer's dimension)."""

    dataset: str
    language: str
    items: int
    groups: int
    systems: int
    answers: int
    dimensions: int
    ratings: int
    raters: tuple[str, ...]
    twice: int


@dataclass(frozen=True, slots=True)
class Scored:
    """How many of the rated answers' dimensions a metric scored, and how many it opted out of."""

    metric: str
    scored: int
    opted_out: int


def coverage(table: RatingsTable) -> tuple[Coverage, ...]:
    """Each language on all datasets, and then on each where there are several.

    >>> from proctor.audits import Rating
    >>> rows = [Rating("e1", "Eczema.", "s1", "overall", rater, 0.5) for rater in ("a", "b")]
    >>> one, = coverage(RatingsTable(tuple(rows)))
    >>> one.answers, one.ratings, one.raters, one.twice
    (1, 2, ('a', 'b'), 1)
    """
    datasets = table.datasets
    found = []
    for language in dict.fromkeys(language for language, _ in table.dimensions):
        for dataset in (ALL, *(datasets if len(datasets) > 1 else ())):
            inside = [one for one in table.ratings if one.language == language and dataset in (ALL, one.dataset)]
            if not inside:
                continue
            each = Counter(one.key for one in inside)
            found.append(
                Coverage(
                    dataset=dataset,
                    language=language,
                    items=len({one.item for one in inside}),
                    groups=len({one.cluster for one in inside}),
                    systems=len({one.system for one in inside}),
                    answers=len({(one.item, one.system) for one in inside}),
                    dimensions=len({one.dimension for one in inside}),
                    ratings=len(inside),
                    raters=tuple(sorted({one.rater for one in inside})),
                    twice=sum(count > 1 for count in each.values()),
                )
            )
    return tuple(found)


def scored(table: RatingsTable, metric: MetricScores) -> Scored:
    """What the metric scored of the table.

    >>> from proctor.audits import Rating
    >>> table = RatingsTable((Rating("e1", "Eczema.", "s1", "overall", "a", 0.5),))
    >>> scored(table, MetricScores("mine", {("e1", "s1", "overall"): None}))
    Scored(metric='mine', scored=0, opted_out=1)
    """
    out = sum(metric.scores.get(key) is None for key in table.keys)
    return Scored(metric.name, len(table.keys) - out, out)
