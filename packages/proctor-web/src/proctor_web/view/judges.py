"""Scorers of a benchmark: what each gave, how far those of one metric agree, which runs each has scored, and what is without a
verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proctor.core import ACCURACY, interval, number, number_interval, plain_name, value
from proctor.judges import JUDGEMENT_MISSING, NO_VERDICT, TIE
from proctor.results import reading_once
from proctor.runs import CODE
from proctor_web.view.site import Asked, Page, View

if TYPE_CHECKING:
    from proctor.results import JudgePair, ScorerCoverage, ScorerSummary
    from proctor.runs import Run

_PATIENCE_S = 0.4
_MOST_SCORERS = 12

WAITING = "no judgement"
_FOLLOWS = {
    WAITING: "not asked yet, or the call failed, of which a store keeps no reason; proctor score asks",
    NO_VERDICT: "the judge declined, or its reply had another form; proctor score asks it again",
    TIE: "its judgements are equal; another judge (--fallback-model) or a person decides",
    JUDGEMENT_MISSING: "a judgement that would decide is missing; proctor score asks for it again",
}


@dataclass(frozen=True)
class Agreement:
    """The scorers of one metric: what each gave, how far each two agree, and all of them (Krippendorff's alpha of equal
    values, with its interval over groups)."""

    metric: str
    scorers: tuple[ScorerSummary, ...]
    pairs: tuple[JudgePair, ...]
    alpha: tuple[float | None, float | None, float | None, int, int] | None
    coverage: tuple[ScorerCoverage, ...] = ()

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

    @property
    def names(self) -> list[str]:
        """The scorers by name: those that gave a value, and those that left all without a verdict."""
        return list(dict.fromkeys([*(one.scorer for one in self.scorers), *(one.scorer for one in self.coverage)]))

    @property
    def matrix(self) -> list[tuple[str, list[JudgePair | None]]]:
        """A row for each scorer with its agreement with each other one; None with itself and where no answer has scores of
        both. Empty with one scorer."""
        known = {(pair.first, pair.second): pair for pair in self.pairs if pair.n}
        names = [name for name in self.names if any(name in key for key in known)]
        return [(one, [known.get((one, other)) or known.get((other, one)) for other in names]) for one in names]

    @property
    def runs(self) -> list[tuple[Run, list[ScorerCoverage | None]]]:
        """A row for each run with the coverage by each scorer. Empty where code alone scores."""
        if set(self.names) <= {CODE}:
            return []
        known = {(one.run.id, one.scorer): one for one in self.coverage}
        runs = {one.run.id: one.run for one in self.coverage}
        return [(run, [known.get((number, name)) for name in self.names]) for number, run in runs.items()]

    @property
    def causes(self) -> list[tuple[str, str, int, str, str]]:
        """What is without a verdict: by scorer and cause how many answers, of which systems, and what follows."""
        counts: Counter[tuple[str, str]] = Counter()
        systems: dict[tuple[str, str], dict[str, None]] = {}
        for one in self.coverage:
            waiting = {WAITING: one.waiting} if one.scorer != CODE else {}
            for cause, count in [*one.unresolved.items(), *waiting.items()]:
                if count:
                    counts[one.scorer, cause] += count
                    systems.setdefault((one.scorer, cause), {})[one.run.system] = None
        return [
            (scorer, cause, count, ", ".join(systems[scorer, cause]), _FOLLOWS.get(cause, ""))
            for (scorer, cause), count in counts.most_common()
        ]


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
            {
                "metric": each.metric,
                "first": pair.first,
                "second": pair.second,
                "answers": pair.n,
                "groups": pair.groups,
                "agreement": pair.share,
                "ci_low": pair.ci_low,
                "ci_high": pair.ci_high,
            }
            for each in found
            for pair in each.pairs
        ],
        "coverage": [
            {
                "metric": each.metric,
                "scorer": one.scorer,
                "system": one.run.system,
                "condition": one.run.condition,
                "answers": one.answers,
                "scored": one.scored,
                "waiting": one.waiting,
                "unresolved": dict(one.unresolved),
            }
            for each in found
            for one in each.coverage
        ],
        "alpha": {each.metric: each.alpha[:3] for each in found if each.alpha is not None},
    }
    context = {"figures": figures, "found": found, "rows": rows, "ends": _ends}
    return Page("judges", context, data, [row | {"flags": "; ".join(row["flags"])} for row in rows], "judges")


def _ends(pair: JudgePair) -> str:
    """The interval of a pair's agreement."""
    return interval(ACCURACY, pair.ci_low, pair.ci_high)


@reading_once()
def compute_judges(view: View, benchmark: str) -> tuple[Agreement, ...]:
    """The scorers of each metric, how far they agree on first answers, and which runs they have scored."""
    from proctor.results import judge_agreement, scorer_coverage, scorer_summaries

    order = view.store.card(benchmark).conditions
    positions = {name: number for number, name in enumerate(order)}
    runs = sorted(view.store.runs(benchmark), key=lambda run: (run.system, positions.get(run.condition, len(order))))
    summaries: dict[str, list[ScorerSummary]] = {}
    for one in scorer_summaries(view.store, benchmark, runs):
        summaries.setdefault(one.metric.name, []).append(one)
    coverage: dict[str, list[ScorerCoverage]] = {}
    for each in scorer_coverage(view.store, benchmark, runs):
        coverage.setdefault(each.metric.name, []).append(each)
    found = []
    for name in dict.fromkeys([*summaries, *coverage]):
        some, own = summaries.get(name, []), coverage.get(name, [])
        metric = (some or own)[0].metric
        names = [one.scorer for one in some][:_MOST_SCORERS]
        pairs: tuple[JudgePair, ...] = ()
        alpha = None
        if len(names) > 1:
            agreement = judge_agreement(view.store, benchmark, runs, names, metric=metric, all_items=True)
            pairs = tuple(pair for pair in agreement.pairs if pair.n)
            known = agreement.alpha
            alpha = known.value, known.ci_low, known.ci_high, known.n, known.groups
        found.append(Agreement(metric.label, tuple(some), pairs, alpha, tuple(own)))
    return tuple(found)
