"""The names of columns: one for each figure, in the terminal, in reports, and in what Python shows.

Programs get the keys (JSON, CSV, pandas), people the heads. A figure that has no head here is shown under its key.
"""

from __future__ import annotations

from proctor.core.table import Column

HEADS = {
    "system": "System",
    "condition": "Condition",
    "metric": "Metric",
    "scorer": "Scorer",
    "rank": "Rank",
    "rank_ci": "Rank, 95 % CI",
    "resampled_ranks": "Rank in 95 % of resamples",
    "p_first": "First in resamples",
    "p_best": "First in resamples",
    "mean": "Mean over buckets",
    "rank_by_mean": "Rank by mean (95 % CI)",
    "value": "Score",
    "ci": "95 % CI",
    "gain": "Gain",
    "gain_ci": "Gain, 95 % CI",
    "difference": "Difference",
    "lead": "Lead",
    "p": "p",
    "p_holm": "p (Holm)",
    "p_adjusted": "p (adjusted)",
    "adjusted_for": "Adjusted for",
    "scored_only_first": "Scored only first",
    "scored_only_second": "Scored only second",
    "n": "Items",
    "groups": "Groups",
    "only_first_right": "Only first right",
    "only_second_right": "Only second right",
    "value_of": "Value",
    "sd": "SD",
    "q1": "First quartile",
    "q3": "Third quartile",
    "df": "Degrees of freedom",
}
"""The head of each column by its key. `ci` stands for an interval's two keys (`ci_low`, `ci_high`)."""

_TEXTS = {"system", "condition", "metric", "scorer", "adjusted_for"}


def head(name: str, level: float = 0.95) -> Column:
    """The column of a figure.

    >>> head("value").label, head("ci", 0.9).label, head("p_holm").numeric, head("term").label
    ('Score', '90 % CI', True, 'Term')
    """
    label = HEADS.get(name) or name.replace("_", " ").capitalize()
    return Column(label.replace("95 %", f"{100 * level:g} %"), numeric=name not in _TEXTS, name=name)


def heads(*names: str, level: float = 0.95) -> tuple[Column, ...]:
    """The columns of some figures, in order.

    >>> [column.label for column in heads("system", "value", "ci")]
    ['System', 'Score', '95 % CI']
    """
    return tuple(head(name, level) for name in names)
