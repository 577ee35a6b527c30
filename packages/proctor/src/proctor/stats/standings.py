"""The ranking over buckets: significant ranks in each bucket, their aggregation, tie-breaking, and stability."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, generator
from proctor.stats.bootstrap import weights
from proctor.stats.buckets import (
    BucketSums,
    Correction,
    KnownTests,
    bucket_ranks,
    bucket_sums,
    bucket_table,
    resampled_ranks,
)
from proctor.stats.clusters import Floats, Groups, Ints
from proctor.stats.ranking import (
    RANK_RULES,
    check_systems,
    competition_ranks,
    pairwise_wins,
    rank_intervals,
    undecided_p,
)
from proctor.stats.signflip import sign_flip
from proctor.stats.ties import (
    BROKEN_UP_TO,
    TIE_RULES,
    BrokenTies,
    Removal,
    SampledScores,
    TieOrder,
    TieRule,
    break_ties,
    mean_of_buckets,
    removal_of,
    tie_orders,
)

Rule = Literal["copeland", "borda", "mean"]
"""How ranks in the buckets are aggregated to one score ("mean": the mean of the scores in the buckets)."""

RULES: tuple[Rule, ...] = ("copeland", "borda", "mean")
"""The rules of `rank_buckets`."""

_INNER_DRAWS = 200  # samples of a sample, used to break its ties
_EQUAL_BOARDS, _EQUAL_SAMPLES = 10, 40  # rankings, and samples of each, for the τ of equal systems


@dataclass(frozen=True, slots=True)
class RankingPlan:
    """The settings of a ranking over buckets.

    rule: aggregation of the ranks in the buckets. alpha: level of the tests. correction: "holm" over the pairs of each
    bucket, "holm-board" over the pairs of all buckets, or "none". draws: number of samples for the win rates.
    ties: what breaks ties in the first three ranks, the win rate over the "tied" systems or over "all" of them.
    stability: number of samples on which the whole ranking is repeated, 0 for none. leave_out: whether to repeat it
    without each system. level: level of the rank intervals and of the quantiles of ranks. seed: seed of the resampling.

    >>> RankingPlan(rule="best")
    Traceback (most recent call last):
    proctor.core.errors.InputError: rule: found 'best', expected one of copeland, borda, mean
    """

    rule: Rule = "copeland"
    alpha: float = 0.05
    correction: Correction = "holm"
    ties: TieRule = "tied"
    draws: int = 10_000
    stability: int = 0
    leave_out: bool = False
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise InputError("rule", found=repr(self.rule), expected=f"one of {', '.join(RULES)}")
        if self.correction not in ("holm", "holm-board", "none"):
            expected = "'holm', 'holm-board' or 'none'"
            raise InputError("correction", found=repr(self.correction), expected=expected)
        if self.ties not in TIE_RULES:
            raise InputError("ties", found=repr(self.ties), expected=f"one of {', '.join(TIE_RULES)}")
        if not 0 < self.alpha < 1:
            raise InputError("alpha", found=str(self.alpha), expected="a share between 0 and 1")
        if self.draws < 1 or self.stability < 0:
            found = f"{self.draws} and {self.stability}"
            raise InputError("draws and stability", found=found, expected="at least 1, and at least 0")
        if not 0.5 <= self.level < 1:
            raise InputError("level", found=str(self.level), expected="a share from 0.5 to below 1")


@dataclass(frozen=True, slots=True)
class Stability:
    """The distribution of a system's rank over bootstrap samples of groups: quantiles (at `level`), and the share of
    samples with each rank from 1. This is not a confidence interval: samples repeat the random error of the data, so
    of equal systems the one with the best observed score leads in most samples.

    >>> Stability(resampled_rank_low=1, resampled_rank_high=2, chances=(0.9, 0.1)).chances[0]
    0.9
    """

    resampled_rank_low: int
    resampled_rank_high: int
    chances: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """A system in the ranking.

    `rank` is 1 + the number of systems before it. `score` is that of the rule. `scores` and `ranks` are per bucket
    (None for buckets without questions). `mean` is the mean of the bucket scores. `win_rate` is the mean over buckets
    of the share of samples in which the system is best of all. If the system shares one of the first three ranks by the
    rule, `win_rate_tied` is the same among those that share it, and `head_to_head` the mean over these others of the
    share of samples in which it is better than the other one. `tie_broken` is true if the rank results from
    tie-breaking. `ahead`, `behind` and `tied` count buckets by comparison with each other system. `stability` is None
    if not requested or with fewer than two groups.

    `mean_rank` is the rank by the mean over buckets, and `rank_low` to `rank_high` its simultaneous confidence interval
    from the paired tests of these means (`rank_intervals`); None with fewer than two groups. A system without any value
    stands last, and has None for all of these, for `mean` and for `win_rate`.

    >>> Standing("a", 1, 2.0, (0.5,), (1,), 0.5, 0.9).tie_broken
    False
    """

    name: str
    rank: int
    score: float
    scores: tuple[float | None, ...]
    ranks: tuple[int | None, ...]
    mean: float | None
    win_rate: float | None
    tie_broken: bool = False
    win_rate_tied: float | None = None
    head_to_head: float | None = None
    ahead: dict[str, int] = field(default_factory=dict)
    behind: dict[str, int] = field(default_factory=dict)
    tied: dict[str, int] = field(default_factory=dict)
    stability: Stability | None = None
    mean_rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None


@dataclass(frozen=True, slots=True)
class Standings:
    """The ranking, best first, then by name.

    `empty` names buckets without questions, which are ignored. `tau` is the mean of Kendall's τ-b between the ranking
    and those of the samples, and `tau_low` its 2.5 % quantile; None without stability, or if all systems share a rank.
    `taus` are the values of the samples in which τ is defined. `tau_equal` is the expected mean if all systems were
    equal (names permuted within groups). `p_values` has the adjusted p of each bucket, with systems in the order of
    `systems`. `bucket_groups` is the number of groups in each bucket, and `reach` the smallest adjusted p possible with
    that number. `ties` is the rule that broke ties, and `tie_orders` the orders by it, by the other one, and by pairwise
    comparisons. `removals` has the ranking without each system, in the order of `systems` (empty if not requested).

    >>> rank_buckets([[1, 1], [0, 0]], ["a", "b"], ["v1", "v2"], [0, 0], ["all"], RankingPlan(draws=100)).empty
    ()
    """

    rule: Rule
    buckets: tuple[str, ...]
    systems: tuple[Standing, ...]
    items: int
    groups: int
    empty: tuple[str, ...] = ()
    tau: float | None = None
    tau_low: float | None = None
    p_values: tuple[NDArray[np.float64], ...] = ()
    taus: tuple[float, ...] = ()
    tau_equal: float | None = None
    bucket_groups: tuple[int, ...] = ()
    reach: tuple[float | None, ...] = ()
    ties: TieRule = "tied"
    tie_orders: tuple[TieOrder, ...] = ()
    removals: tuple[Removal, ...] = ()

    def powerless(self, alpha: float) -> dict[str, float]:
        """The buckets with too few groups for any difference to be significant at `alpha`, and their smallest possible
        adjusted p."""
        pairs = zip(self.buckets, self.reach, strict=True) if self.reach else ()
        return {name: smallest for name, smallest in pairs if smallest is not None and smallest > alpha}


def rank_buckets(
    matrix: Sequence[Sequence[float]] | NDArray[Any],
    names: Sequence[str],
    groups: Groups,
    buckets: Sequence[int] | NDArray[Any],
    bucket_names: Sequence[str],
    plan: RankingPlan = RankingPlan(),
) -> Standings:
    """Rank the rows of `matrix` (systems × items, higher is better) over buckets of items.

    1. In each bucket, the rank is 1 + the number of significantly better systems, but not better than that of a system
       with a higher score (`bucket_ranks`).
    2. The rule aggregates these ranks to one score ("mean": the mean of the bucket scores).
    3. Ties for the first three ranks are broken by the mean win rate over buckets, which is the share of bootstrap
       samples of groups (`draws`) in which a system has the best mean of those that are tied or, with `ties` "all", of
       all systems; k equal systems count 1/k each. Systems that are still tied share their rank.

    With `leave_out` the ranking is repeated without each system, on the same samples. With `stability` the ranking is repeated on that number of samples of groups, with step 1 by `resampled_ranks` and
    200 samples of each sample in step 3.

    The result does not depend on names or on the order of systems, groups and items. An item for which a system has no
    value (NaN) is excluded from the scores of that system and from the tests of its pairs only. Edges: without items,
    or with one group, all systems share rank 1 under a rank rule. Raises `InputError` for infinite values, unequal
    lengths, and duplicate names.

    >>> right = [[1] * 8, [0] * 8, [1] * 8]
    >>> ranking = rank_buckets(right, ["a", "b", "c"], list("stuvwxyz"), [0] * 8, ["all"], RankingPlan(draws=100))
    >>> [(system.name, system.rank, system.score) for system in ranking.systems]
    [('a', 1, 1.0), ('c', 1, 1.0), ('b', 3, -2.0)]
    """
    check_systems(names, len(matrix))
    values = np.asarray(matrix, dtype=np.float64)
    codes = np.asarray(buckets, dtype=np.int64)
    sums = bucket_sums(values, groups, codes, len(bucket_names), plan.seed)
    known = KnownTests.none(len(bucket_names), len(values))
    tests = bucket_ranks(sums, alpha=plan.alpha, correction=plan.correction, known=known)
    n_units = sums.counts.shape[1]
    scores = sums.scores()
    score = _rule(plan.rule, tests.ranks, scores)
    sampled = _sampled_scores(sums, plan)
    rates, pairwise = sampled.win_rates(), np.full(len(score), np.nan)
    found = break_ties(score, sampled.of, plan.ties)
    for tied in _tied(score, found.tied_rate):
        pairwise[tied] = sampled.of(tied).head_to_head()
    moved = _moved(sums, plan) if plan.stability and n_units > 1 else None
    own = [names[system] for system in sums.order]
    between = _mean_ranks(sums, plan) if n_units > 1 else None
    three = (rates, found.tied_rate, pairwise)
    numbers = _Numbers(own, score, scores, tests.ranks, three, found, moved, between, plan.level)
    rank = found.rank
    order = sorted(range(len(own)), key=lambda k: (rank[k], -float(mean_of_buckets(scores)[k]), own[k]))
    tau = _taus(rank, moved) if moved is not None else np.zeros(0)
    groups_in = sums.filled().sum(axis=1)
    without = _removals(sums, sampled, known, own, rank, plan) if plan.leave_out else {}
    return Standings(
        rule=plan.rule,
        buckets=tuple(bucket_names),
        systems=tuple(numbers.standing(k) for k in order),
        items=int(np.sum(codes >= 0)),
        groups=n_units,
        empty=tuple(name for name, size in zip(bucket_names, groups_in, strict=True) if not size),
        tau=float(tau.mean()) if tau.size else None,
        tau_low=float(np.quantile(tau, 0.025)) if tau.size else None,
        p_values=tuple(table[np.ix_(order, order)] for table in tests.p_values),
        taus=tuple(tau.tolist()),
        tau_equal=_tau_of_equals(sums, plan) if moved is not None else None,
        bucket_groups=tuple(groups_in.tolist()),
        reach=tests.reach,
        ties=plan.ties,
        tie_orders=tie_orders(own, score, three),
        removals=tuple(without[k] for k in order if k in without),
    )


class BucketRankReadings:
    """The ranks of `rank_buckets` under alternative values of systems, such as for missing scores. `rows`
    (alternatives × items) has several rows per system; each pair of rows is tested once.

    >>> right = [[1] * 8, [0] * 8, [1] * 8, [0] * 8]
    >>> ranks = BucketRankReadings(right, list("stuvwxyz"), [0] * 8, 1, RankingPlan(draws=100))
    >>> ranks.of([0, 1], [0, 1]), ranks.of([1, 2], [1, 2]), ranks.of([1, 3], [1])
    ([1, 2], [2, 1], [1, 1])
    """

    def __init__(
        self,
        rows: Sequence[Sequence[float]] | NDArray[Any],
        groups: Groups,
        buckets: Sequence[int] | NDArray[Any],
        n_buckets: int,
        plan: RankingPlan,
    ) -> None:
        values, codes = np.asarray(rows, dtype=np.float64), np.asarray(buckets, dtype=np.int64)
        self._table = bucket_table(values, groups, codes, n_buckets, plan.seed)
        self._known = None if self._table.bundled else KnownTests.none(n_buckets, len(values))
        self._plan = plan

    def of(self, rows: Sequence[int], needed: Collection[int]) -> list[int]:
        """The ranks, in this order, if the systems have the values of these rows. Ties among rows of which none is
        `needed` are not broken."""
        sums, plan = self._table.of(np.array(rows, dtype=np.int64)), self._plan
        tests = bucket_ranks(sums, alpha=plan.alpha, correction=plan.correction, known=self._known)
        score = _rule(plan.rule, tests.ranks, sums.scores())
        found = break_ties(
            score, lambda systems: _sampled_scores(sums.of(systems), plan), plan.ties, np.isin(sums.order, list(needed))
        )
        by_row = dict(zip(sums.order.tolist(), found.rank.tolist(), strict=True))
        return [by_row[row] for row in rows]


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The arrays from which standings are made, with systems in canonical order."""

    names: list[str]
    score: Floats
    scores: Floats
    ranks: Floats
    rates: tuple[Floats, Floats, Floats]
    ties: BrokenTies
    moved: Ints | None
    between: tuple[Ints, Ints] | None
    level: float

    def standing(self, k: int) -> Standing:
        """The standing of system k."""
        filled, scored = ~np.isnan(self.ranks).all(axis=1), not np.isnan(self.scores[:, k]).all()
        mean, between = mean_of_buckets(self.scores), self.between if scored else None
        ahead, behind = pairwise_wins(self.ranks[filled])
        others = [other for other in range(len(self.names)) if other != k]
        tied = int(filled.sum()) - ahead[k] - behind[k]
        return Standing(
            name=self.names[k],
            rank=int(self.ties.rank[k]),
            score=float(self.score[k]),
            scores=tuple(None if np.isnan(score) else float(score) for score in self.scores[:, k]),
            ranks=tuple(None if np.isnan(rank) else int(rank) for rank in self.ranks[:, k]),
            mean=float(mean[k]) if scored else None,
            win_rate=float(self.rates[0][k]) if scored else None,
            tie_broken=bool(self.ties.broken[k]),
            win_rate_tied=_known(self.rates[1][k]),
            head_to_head=_known(self.rates[2][k]),
            ahead={self.names[other]: int(ahead[k, other]) for other in others},
            behind={self.names[other]: int(behind[k, other]) for other in others},
            tied={self.names[other]: int(tied[other]) for other in others},
            stability=None if self.moved is None else _stability(self.moved[:, k], self.level, len(others) + 1),
            mean_rank=int(competition_ranks(mean)[k]) if between else None,
            rank_low=int(between[0][k]) if between else None,
            rank_high=int(between[1][k]) if between else None,
        )


def _rule(rule: Rule, ranks: Floats, scores: Floats) -> Floats:
    """The score of every system."""
    return RANK_RULES[rule](ranks) if rule in RANK_RULES else mean_of_buckets(scores)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _tied(score: Floats, rate: Floats) -> list[Ints]:
    """The systems that share each of the first three ranks, where `rate` says that they do."""
    rank = np.where(np.isnan(rate), 0, competition_ranks(score))
    return [np.flatnonzero(rank == one) for one in np.unique(rank[rank > 0])]


def _removals(
    sums: BucketSums, sampled: SampledScores, known: KnownTests, names: list[str], rank: Ints, plan: RankingPlan
) -> dict[int, Removal]:
    """What changes without each system: only adjustments, rules and ties are computed again."""
    found = {}
    for removed in range(len(names)) if len(names) > 1 else ():
        kept = np.delete(np.arange(len(names)), removed)
        others = sums.of(kept)
        tests = bucket_ranks(others, alpha=plan.alpha, correction=plan.correction, known=known)
        score = _rule(plan.rule, tests.ranks, others.scores())
        ties = break_ties(score, sampled.of(kept).of, plan.ties)
        found[removed] = removal_of(names, removed, rank, ties.rank)
    return found


def _sampled_scores(sums: BucketSums, plan: RankingPlan) -> SampledScores:
    """The scores in the samples for the win rates."""
    n_units = sums.counts.shape[1]
    drawn = weights(n_units, plan.draws, plan.seed) if n_units else iter([np.zeros((0, 0))])
    return SampledScores.drawn(np.concatenate([sums.scores(part) for part in drawn]))


def _mean_ranks(sums: BucketSums, plan: RankingPlan) -> tuple[Ints, Ints]:
    """The simultaneous confidence intervals of the ranks by the mean over buckets."""
    n_systems = sums.totals.shape[2]
    apart = sums.mean_apart(*np.triu_indices(n_systems, 1))
    p = sign_flip(apart, undecided_p(apart.shape[1], plan.level))
    return rank_intervals(p, apart.sum(axis=0), n_systems, plan.level)


def _moved(sums: BucketSums, plan: RankingPlan) -> Ints:
    """The ranks in each sample: samples × systems."""
    rng = generator(plan.seed, "samples of samples")
    return np.concatenate(
        [
            _sampled_ranks(sums, plan, chunk, rng)
            for drawn in weights(sums.counts.shape[1], plan.stability, plan.seed + 1)
            for chunk in np.array_split(drawn, max(1, len(drawn) // 100))
        ]
    )


def _sampled_ranks(sums: BucketSums, plan: RankingPlan, drawn: Floats, rng: np.random.Generator) -> Ints:
    ranks, scores = resampled_ranks(sums, drawn, alpha=plan.alpha, correction=plan.correction)
    rows = zip(drawn, ranks, scores, strict=True)
    return np.stack([_rank(sums, plan, *row, rng) for row in rows])


def _tau_of_equals(sums: BucketSums, plan: RankingPlan) -> float | None:
    """The mean τ between a ranking and those of its samples for equal systems: names are permuted within each group."""
    rng = generator(plan.seed, "equal systems")
    taus = []
    for board in range(_EQUAL_BOARDS):
        equal = sums.exchanged(rng)
        n_units = equal.counts.shape[1]
        rank = _sampled_ranks(equal, plan, np.ones((1, n_units)), rng)[0]
        board_plan = replace(plan, stability=_EQUAL_SAMPLES, seed=plan.seed + board)
        taus.append(_taus(rank, _moved(equal, board_plan)))
    all_taus = np.concatenate(taus)
    return float(all_taus.mean()) if all_taus.size else None


def _rank(
    sums: BucketSums, plan: RankingPlan, drawn: Floats, ranks: Floats, scores: Floats, rng: np.random.Generator
) -> Ints:
    """The ranks in one sample; its ties are broken by samples of the sample."""
    n_units = len(drawn)
    score = _rule(plan.rule, ranks, scores)
    first = competition_ranks(score)
    tied = np.flatnonzero((first <= BROKEN_UP_TO) & (np.bincount(first)[first] > 1))
    if not len(tied):
        return first
    inner = rng.multinomial(n_units, drawn / n_units, size=_INNER_DRAWS).astype(np.float64)
    return break_ties(score, lambda systems: SampledScores.drawn(sums.of(systems).scores(inner)), plan.ties).rank


def _taus(rank: Ints, moved: Ints) -> Floats:
    """Kendall's τ-b between the ranks and those of each sample, where it is defined."""
    first, second = np.triu_indices(len(rank), 1)
    own = np.sign(rank[first] - rank[second])
    other = np.sign(moved[:, first] - moved[:, second])
    spread = np.sqrt((own**2).sum() * (other**2).sum(axis=1))
    defined = spread > 0
    taus: Floats = (other @ own)[defined] / spread[defined]
    return taus


def _stability(moved: Ints, level: float, n_systems: int) -> Stability:
    tail = (1 - level) / 2
    low, high = np.quantile(moved, (tail, 1 - tail), method="inverted_cdf")
    chances = np.bincount(moved, minlength=n_systems + 1)[1:] / len(moved)
    return Stability(int(low), int(high), tuple(chances.tolist()))
