"""The scorers that ask no model, by name: those built in, and those of other packages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

from pydantic import JsonValue

from proctor.core import Benchmark, ConfigurationError, Item, Registry, Scorer, VideoClip
from proctor.core.formats import ScaleFormat
from proctor.metrics.accuracy import AccuracyScorer
from proctor.metrics.corpus import (
    COUNT_METRICS,
    MCC,
    NOMINAL_METRICS,
    PERCENTAGE_METRICS,
    SCALE_METRICS,
    UNANSWERED,
    ItemSums,
    count_sums,
    nominal_sums,
    percentage_sums,
    scale_sums,
)
from proctor.metrics.graded import POOLED_PRECISION, GradedScorer, located_sums
from proctor.metrics.named import (
    SET_F1,
    SET_METRICS,
    SET_PRECISION,
    TIME_F1,
    TIME_METRICS,
    TIME_PRECISION,
    set_sums,
    time_sums,
)
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


CORPUS_METRICS = (
    *COUNT_METRICS,
    *NOMINAL_METRICS,
    *PERCENTAGE_METRICS,
    *SCALE_METRICS,
    *SET_METRICS,
    *TIME_METRICS,
    POOLED_PRECISION,
    UNANSWERED,
)
"""The metrics over many items: no score of a single answer, but a statistic of what is summed up over answers."""

SILENCE_HELPS = (MCC, SET_PRECISION, SET_F1, TIME_PRECISION, TIME_F1, POOLED_PRECISION)
"""Those to which an answer without a value does less harm than a wrong one, by their definitions."""

_SUMS: dict[str, Callable[[Any, Any], list[ItemSums]]] = {"count": count_sums, "percentage": percentage_sums}
"""Where an answer without a value costs as much as the worst."""

_SUMS_OF_NAMED: dict[str, Callable[[Any, Any, Sequence[bool]], list[ItemSums]]] = {
    "classes": set_sums,
    "intervals": located_sums,
    "boxes": located_sums,
    "binary": nominal_sums,
    "choice": nominal_sums,
    "preference": nominal_sums,
}


def item_sums(
    items: Sequence[Item], said: Sequence[JsonValue], wrong: Sequence[bool] = (), *, among: Sequence[Item] = ()
) -> list[ItemSums]:
    """What the metrics over many items sum up, of items of one format that have references and of what was `said` to
    each: a value of the format, or None (late, missing, unreadable). None costs as much as the worst answer, but in
    those of `SILENCE_HELPS`, where it names nothing; where `wrong` is true, an answer without a value is as wrong as can
    be there, too. Parts are named as they are `among` all items of a benchmark. Empty for other formats.

    >>> from proctor.core import Reference
    >>> from proctor.core.formats import CountFormat
    >>> items = [Item(id=name, group=name, question="How many?", answer=CountFormat(), reference=Reference(answer=2))
    ...          for name in ("q1", "q2")]
    >>> [one.named.name for one in item_sums(items, [2, None])][:3]
    ['normalised_cost', 'absolute_error', 'absolute_error:answered only']
    """
    truth: Any = [None if item.reference is None else item.reference.answer for item in items]
    kind = items[0].answer.kind if items else ""
    if kind == "timestamps":
        return time_sums(truth, cast("Any", said), spans=[_span(item) for item in items], wrong=wrong)
    if kind == "scale":
        return scale_sums(truth, cast("Any", said), _scales(items), named=len(set(_scales(among))) > 1)
    if kind in _SUMS_OF_NAMED:
        return _SUMS_OF_NAMED[kind](truth, said, wrong)
    return _SUMS[kind](truth, said) if kind in _SUMS else []


def _scales(items: Sequence[Item]) -> list[tuple[float, float]]:
    return [(item.answer.low, item.answer.high) for item in items if isinstance(item.answer, ScaleFormat)]


def _span(item: Item) -> tuple[float, float] | None:
    """From when to when a question's one clip shows its video, where that is known."""
    clips = [one for one in item.media if isinstance(one, VideoClip)]
    if len(clips) != 1 or clips[0].end is None:
        return None
    return clips[0].start, clips[0].end
