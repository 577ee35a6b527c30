"""The scorers that ask no model, by name: those built in, and those of other packages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from proctor.core import Benchmark, ConfigurationError, Registry, Scorer
from proctor.metrics.accuracy import AccuracyScorer
from proctor.metrics.graded import GradedScorer
from proctor.metrics.ordering.orders import OrderingScorer

SCORERS: Registry[Callable[[], Scorer] | Scorer] = Registry("metric", group="proctor.scorers")
"""By name functions decorated by `proctor.metric`, scorers, or factories of scorers. `accuracy`, `ordering` and
`graded` are built in: their names are taken."""
SCORERS.add("accuracy", AccuracyScorer)
SCORERS.add("ordering", OrderingScorer)
SCORERS.add("graded", GradedScorer)


def code_scorers(benchmark: Benchmark | None = None) -> list[Scorer]:
    """Every scorer that scores answers the moment they come; each applies to the formats that it knows. Those that the
    benchmark brings come last. Raises `ConfigurationError` where two of them give one metric under one name.

    >>> [type(scorer).__name__ for scorer in code_scorers()]
    ['AccuracyScorer', 'OrderingScorer', 'GradedScorer']
    """
    scorers: list[Scorer] = [
        AccuracyScorer(),
        OrderingScorer(),
        GradedScorer(),
        *(() if benchmark is None else benchmark.scorers),
    ]
    given = Counter((scorer.name, metric.name) for scorer in scorers for metric in scorer.metrics)
    for (scorer, name), count in given.items():
        if count > 1:
            raise ConfigurationError(f"{count} scorers give the metric {name!r} as {scorer!r}: rename one")
    return scorers


def build_scorer(name: str) -> Scorer:
    """The registered scorer of that name. Raises `UnknownNameError` that lists the choices.

    >>> build_scorer("accuracy").name
    'code'
    """
    known: Any = SCORERS.get(name)
    made: Scorer = known() if isinstance(known, type) or not hasattr(known, "score") else known
    return made
