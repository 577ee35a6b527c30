"""The comparisons for which the p of a pair of runs is adjusted: the same ones wherever the pair is compared.

Of two systems under one condition these are all pairs of systems there that are no baselines, as in a ranking; of a condition and text-only
all such comparisons. So a pair has the same adjusted p in a report, in an analysis, and compared alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from proctor.core import FailedPolicy, count_of
from proctor.results.arrays import ItemTable
from proctor.results.results import Options
from proctor.results.run_scores import BOTH, RunScores, both_ends, policies, policy_of
from proctor.runs import BASELINES, ORACLE, BenchmarkCard, Run
from proctor.stats import Difference, Resampling, holm_known

BLIND = "text-only"

_SYSTEMS, _TEXT_ONLY, _ASKED = "systems", BLIND, "asked"


@dataclass(frozen=True)
class PairTest:
    """The test of two runs by one metric and scorer."""

    first: Run
    second: Run
    metric: str
    scorer: str
    p: float | None


@dataclass(frozen=True)
class Adjusted:
    """An adjusted p, and the comparisons that it is adjusted for: in words (empty for the pair alone), and their number."""

    p_holm: float | None
    family: str
    family_size: int


def both_readings(
    first: RunScores, second: RunScores, items: ItemTable, chosen: tuple[FailedPolicy, ...], plan: Resampling
) -> tuple[str, Difference, Difference, Difference]:
    """The policy of a pair, and its difference: by the policy, with lacking items wrong, and with them left out. Without a
    policy the difference has no value, an interval that covers both, and the larger p unless they point different ways."""
    policy = policy_of(not (first.settled and second.settled), chosen)
    excluded = first.difference(second, FailedPolicy.EXCLUDE, items, plan)
    wrong = first.difference(second, FailedPolicy.WRONG, items, plan) if policy else excluded
    return (
        policy,
        {BOTH: _either(wrong, excluded), FailedPolicy.WRONG.value: wrong}.get(policy, excluded),
        wrong,
        excluded,
    )


def _either(wrong: Difference, excluded: Difference) -> Difference:
    low, high = both_ends(wrong.ci_low, excluded.ci_low, wrong.ci_high, excluded.ci_high)
    apart = (wrong.value or 0) * (excluded.value or 0) < 0
    p = None if apart or wrong.p is None or excluded.p is None else max(wrong.p, excluded.p)
    return replace(wrong, value=None, ci_low=low, ci_high=high, p=p)


class Families:
    """The families of some pairs of runs; `known` are all runs of the benchmark."""

    def __init__(
        self, known: Sequence[Run], card: BenchmarkCard, pairs: Sequence[tuple[Run, Run]], options: Options
    ) -> None:
        self._known, self._card, self._options = known, card, options
        self._pairs = {key: self._whole(*key) for key in {self._key(*pair) for pair in pairs}}

    def others(self, runs: Sequence[Run]) -> list[Run]:
        """The runs beside these whose comparisons count."""
        there = {run.id for run in runs}
        found = {run.id: run for pairs in self._pairs.values() for pair in pairs for run in pair}
        return [run for run in found.values() if run.id not in there]

    def adjusted(
        self, tests: Sequence[PairTest], scores: Mapping[int, Sequence[RunScores]], items: ItemTable
    ) -> list[Adjusted]:
        """The p of each test, adjusted by Holm over its family per metric and scorer. `scores` are those of single items, by
        run: tests of metrics over many items are adjusted among themselves. A pair whose readings point different ways was
        tested, too: it counts with p 1, or a run that lacks scores would make the adjustment of the others smaller."""
        groups: dict[tuple[str, str, tuple[str, str]], list[int]] = {}
        for k, test in enumerate(tests):
            groups.setdefault((test.metric, test.scorer, self._key(test.first, test.second)), []).append(k)
        found: dict[int, Adjusted] = {}
        for (_, _, key), rows in groups.items():
            own = [tests[k] for k in rows]
            family = [*own, *self._others_of(key, own, scores, items)]
            size = sum(test.p is not None for test in family)
            systems = {run.system for test in family for run in (test.first, test.second)}
            label = _label(key[0], size, len(systems)) if size > 1 else ""
            both = zip(rows, holm_known([test.p for test in family])[: len(own)], strict=True)
            found |= {k: Adjusted(p_holm, label, size) for k, p_holm in both}
        return [found[k] for k in range(len(tests))]

    def _others_of(
        self, key: tuple[str, str], own: Sequence[PairTest], scores: Mapping[int, Sequence[RunScores]], items: ItemTable
    ) -> list[PairTest]:
        """The tests of a family beside these."""
        metric, scorer, chosen = own[0].metric, own[0].scorer, policies(self._options.failed, self._card)
        asked = {frozenset((test.first.id, test.second.id)) for test in own}
        by_run = {
            run: next((one for one in some if (one.metric.name, one.scorer) == (metric, scorer)), None)
            for run, some in scores.items()
        }
        if by_run.get(own[0].first.id) is None:  # a metric over many items
            return []
        found = []
        for first, second in self._pairs[key]:
            a, b = by_run.get(first.id), by_run.get(second.id)
            if a is None or b is None or frozenset((first.id, second.id)) in asked:
                continue
            plan = replace(self._options.plan(a.metric), draws=1)  # p draws nothing
            _, difference, wrong, excluded = both_readings(a, b, items, chosen, plan)
            undecided = difference.p is None and wrong.p is not None and excluded.p is not None
            found.append(PairTest(first, second, metric, scorer, 1.0 if undecided else difference.p))
        return found

    def _key(self, first: Run, second: Run) -> tuple[str, str]:
        """The kind of a pair's family, and the condition of two systems."""
        if self._options.by:
            return _ASKED, ""
        if first.condition == second.condition and self._contests(first) and self._contests(second):
            return _SYSTEMS, first.condition
        if first.system == second.system and BLIND in {first.condition, second.condition}:
            return _TEXT_ONLY, ""
        return _ASKED, ""

    def _whole(self, kind: str, condition: str) -> list[tuple[Run, Run]]:
        """All pairs of a family; empty for the comparisons that were asked for."""
        if kind == _SYSTEMS:
            runs = [run for run in self._known if run.condition == condition and self._contests(run)]
            return list(combinations(runs, 2))
        if kind == _TEXT_ONLY:
            blind = {run.system: run for run in self._known if run.condition == BLIND}
            return [(run, blind[run.system]) for run in self._known if run.condition != BLIND and run.system in blind]
        return []

    def _contests(self, run: Run) -> bool:
        """Whether a run is one of a system that `rank` would rank: then it is tested against all others."""
        out = run.system in self._card.disqualified or run.system in BASELINES
        return not out and not run.settings.get(ORACLE, False)


def _label(kind: str, size: int, systems: int) -> str:
    if kind == _SYSTEMS:
        return f"the {count_of(size, 'pair')} of {count_of(systems, 'system')}"
    return f"the {count_of(size, 'comparison')} {'with text-only' if kind == _TEXT_ONLY else 'asked for'}"
