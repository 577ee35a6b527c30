"""Scorers of a benchmark: what each gave, and how far those of one metric agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proctor.core import number, number_interval, percent, plain_name, value
from proctor.results import reading_once
from proctor_web.view.site import Asked, Page, View

if TYPE_CHECKING:
    from proctor.results import ScorerSummary

_PATIENCE_S = 0.4
_MOST_SCORERS = 12


@dataclass(frozen=True)
class Agreement:
    """The scorers of one metric: what each gave, how far each two agree, and all of them (Krippendorff's alpha of equal
    values, with its interval over groups)."""

    metric: str
    scorers: tuple[ScorerSummary, ...]
    pairs: tuple[tuple[str, str, int, float | None], ...]
    alpha: tuple[float | None, float | None, float | None, int, int] | None

    @property
    def sentence(self) -> str:
        """How far all agree, in words; empty with one scorer."""
        if self.alpha is None:
            return ""
        known, low, high, answers, groups = self.alpha
        if known is None:
            return "No answer has scores of two of them that differ from each other: their agreement is not known."
        ends = number_interval(low, high)
        return f"Krippendorff's alpha of equal values {number(known)} (95 % CI {ends}), {answers} answers in {groups} groups."


def judges(asked: Asked) -> Page:
    """The scorers of a benchmark."""
    state, view = asked.state, asked.view
    figures = view.desk.get(
        ("judges", state.name), state.settled_stamp, lambda: compute_judges(view, state.name), _PATIENCE_S
    )
    found: Sequence[Agreement] = figures.value if figures is not None and figures.value is not None else ()
    rows: list[dict[str, Any]] = [
        {
            "metric": one.metric.label,
            "scorer": one.scorer,
            "n": one.n,
            "mean": one.mean,
            "shown": value(one.metric, one.mean),
            "flags": [f"{plain_name(name)}: {count}" for name, count in one.flags.items() if count],
        }
        for each in found
        for one in each.scorers
    ]
    data = {
        "scorers": rows,
        "pairs": [
            {"metric": each.metric, "first": pair[0], "second": pair[1], "answers": pair[2], "agreement": pair[3]}
            for each in found
            for pair in each.pairs
        ],
        "alpha": {each.metric: each.alpha[:3] for each in found if each.alpha is not None},
    }
    shares = {(each.metric, pair[:2]): percent(pair[3]) for each in found for pair in each.pairs}
    context = {"figures": figures, "found": found, "rows": rows, "shares": shares}
    return Page("judges", context, data, [row | {"flags": "; ".join(row["flags"])} for row in rows], "judges")


@reading_once()
def compute_judges(view: View, benchmark: str) -> tuple[Agreement, ...]:
    """The scorers of each metric, and how far they agree on first answers."""
    from proctor.results import judge_agreement, scorer_summaries

    runs = view.store.runs(benchmark)
    by_metric: dict[str, list[ScorerSummary]] = {}
    for one in scorer_summaries(view.store, benchmark, runs):
        by_metric.setdefault(one.metric.name, []).append(one)
    found = []
    for some in by_metric.values():
        names = [one.scorer for one in some][:_MOST_SCORERS]
        pairs: tuple[tuple[str, str, int, float | None], ...] = ()
        alpha = None
        if len(names) > 1:
            agreement = judge_agreement(view.store, benchmark, runs, names, metric=some[0].metric, all_items=True)
            pairs = tuple((pair.first, pair.second, pair.n, pair.share) for pair in agreement.pairs if pair.n)
            known = agreement.alpha
            alpha = known.value, known.ci_low, known.ci_high, known.n, known.groups
        found.append(Agreement(some[0].metric.label, tuple(some), pairs, alpha))
    return tuple(found)
