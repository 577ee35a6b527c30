"""What a person decides where a judge gave no verdict: the values that a metric takes, and the scores that follow."""

from __future__ import annotations

from collections.abc import Collection

from proctor.core import ACCURACY, Metric, RatingScheme, Score, cell_number
from proctor.judges.panel import PANEL_ACCURACY
from proctor.judges.rationale import RATIONALE_METRICS
from proctor.judges.unresolved import UNRESOLVED
from proctor.judges.verdict import (
    CONTRADICTION,
    RUBRIC,
    RUBRIC_BY_ERROR_TYPE,
    RUBRIC_LABELS,
    VERDICT_METRICS,
    ErrorType,
    verdict_scores,
)

_RIGHT = {"right": 1.0, "wrong": 0.0}
_HALF = dict(
    zip(
        RUBRIC_LABELS,
        (ErrorType.NONE, ErrorType.WRONG_CONCLUSION, ErrorType.WRONG_VISUAL_EVIDENCE, ErrorType.BOTH),
        strict=True,
    )
)
_OF_KIND = {"panel": (PANEL_ACCURACY,), "three-level": VERDICT_METRICS, "rationale": RATIONALE_METRICS}
_FROM_RUBRIC = {RUBRIC_BY_ERROR_TYPE.name, CONTRADICTION.name}


def asked_metrics(judge: str, given: Collection[str]) -> list[str]:
    """Which metrics a person is asked for in a judge's place: those that it has given (or, where it has given none, that
    judges of its kind give), but for those that follow from another. None where they are not known.

    >>> asked_metrics("three-level[m]", ["contradiction", "rubric", "rubric_by_error_type", "unresolved"])
    ['rubric']
    >>> asked_metrics("panel[m]", []), asked_metrics("another", ["unresolved"])
    (['accuracy'], [])
    """
    names = set(given) - {UNRESOLVED.name}
    names = names or {one.name for one in _OF_KIND.get(judge.partition("[")[0].partition(":")[0], ())}
    return sorted(names - _FROM_RUBRIC if RUBRIC.name in names else names)


def decided_values(metric: Metric, rating: RatingScheme | None) -> tuple[str, ...]:
    """The values that a person may give; none named: every number between the metric's bounds.

    >>> decided_values(ACCURACY, None), decided_values(RUBRIC, None)
    (('right', 'wrong'), ('2', '1 wrong conclusion', '1 wrong visual evidence', '0'))
    """
    if metric.name == ACCURACY.name:
        return tuple(_RIGHT)
    if metric.name == RUBRIC.name:
        return RUBRIC_LABELS
    dimensions = rating.dimensions if rating is not None else ()
    return next((tuple(f"{level:g}" for level in one.levels) for one in dimensions if one.name == metric.name), ())


def decided_scores(
    metric: Metric, said: str, rating: RatingScheme | None, *, item_id: str, scorer: str, vote_key: str
) -> list[Score]:
    """The scores that follow from what a person said of a metric; none where that is no value of it.

    >>> keys = {"item_id": "q1", "scorer": "j", "vote_key": ""}
    >>> [(one.metric, one.value) for one in decided_scores(RUBRIC, "1 wrong conclusion", None, **keys)]
    [('rubric', 1.0), ('rubric_by_error_type', 1.0), ('contradiction', 0.0)]
    >>> decided_scores(ACCURACY, "0.5", None, **keys)
    []
    """
    if metric.name == RUBRIC.name:
        if said not in _HALF:
            return []
        return verdict_scores(int(said[0]), _HALF[said], item_id=item_id, scorer=scorer, vote_key=vote_key)
    value, label = cell_number(said), ""
    if metric.name == ACCURACY.name:
        value, label = _RIGHT.get(said), said
    elif allowed := decided_values(metric, rating):
        value = value if value in {float(one) for one in allowed} else None
    if value is None or not metric.low <= value <= metric.high:
        return []
    return [Score(item_id=item_id, metric=metric.name, value=value, scorer=scorer, label=label, vote_key=vote_key)]
