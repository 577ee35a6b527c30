"""How long the statistics take, and how much memory; with --coverage, --differences and --ranks, how well intervals
cover; with --regression, how often a term that says nothing has p below 0.05.

python bench/statistics.py --format json
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

import numpy as np

from proctor.stats import (
    Difference,
    Estimate,
    Floats,
    Ints,
    RankingPlan,
    Resampling,
    group_mean_slices,
    logistic,
    mean_interval,
    paired_difference,
    paired_differences,
    rank_buckets,
    rank_systems,
    slice_means,
    sums_interval,
)


def timed(work: Callable[[], object]) -> float:
    """Seconds, the best of three."""
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def summary() -> float:
    """25 overlapping slices, 20,000 answers, 200 videos, 1,000 draws."""
    rng = np.random.default_rng(0)
    videos, right = rng.integers(0, 200, 20_000), rng.integers(0, 2, 20_000)
    leaf, form = rng.integers(0, 15, 20_000), rng.integers(0, 4, 20_000)
    inside = np.concatenate(
        [
            leaf[:, None] == np.arange(15),
            leaf[:, None] // 3 == np.arange(5),
            form[:, None] == np.arange(4),
            np.ones((20_000, 1), dtype=bool),
        ],
        axis=1,
    )
    return timed(lambda: group_mean_slices(right, videos, inside, Resampling(draws=1000)))


def leaderboard() -> float:
    """50 systems × 20,000 answers in 200 videos and ten buckets: tests, Copeland, 10,000-draw win rates and
    1,000-draw stability of the whole ranking."""
    rng = np.random.default_rng(4)
    right = (rng.random((50, 20_000)) < rng.uniform(0.4, 0.6, 50)[:, None]).astype(np.float64)
    videos, buckets = rng.integers(0, 200, 20_000), rng.integers(0, 10, 20_000)
    names = [f"system {k}" for k in range(50)]
    start = time.perf_counter()
    rank_buckets(
        right, names, videos, buckets, [f"bucket {k}" for k in range(10)], RankingPlan(draws=10_000, stability=1000)
    )
    return time.perf_counter() - start


def slices(n_groups: int) -> float:
    """3 systems × 200,000 answers in 20 slices each."""
    rng = np.random.default_rng(1)
    groups, facet = rng.integers(0, n_groups, 200_000), rng.integers(0, 20, 200_000)
    right = rng.integers(0, 2, 600_000)
    code = np.concatenate([facet, facet + 20, facet + 40])
    return timed(lambda: slice_means(right, np.tile(groups, 3), code, 60, Resampling(bounds=(0, 1))))


def pairs() -> tuple[float, float]:
    """50 systems × 20,000 answers in 200 videos: all pairs, and the ranking."""
    rng = np.random.default_rng(2)
    matrix = (rng.random((50, 20_000)) < rng.uniform(0.4, 0.6, 50)[:, None]).astype(np.float64)
    videos, names = rng.integers(0, 200, 20_000), [f"system {k}" for k in range(50)]
    compared = timed(lambda: paired_differences(matrix, videos, Resampling(bounds=(0, 1))))
    return compared, timed(lambda: rank_systems(matrix, names, videos, plan=Resampling(bounds=(0, 1))))


MEANS = (0.02, 0.1, 0.5, 0.9, 0.98)
GROUPS = (5, 10, 30, 47, 100, 200)


def coverage(repetitions: int) -> dict[str, dict[str, float]]:
    """Shares of 95 % intervals that hold the truth, by table row and column."""
    rng = np.random.default_rng(3)
    found: dict[str, dict[str, float]] = {}
    for n_groups in GROUPS:
        for alike in (0.3, 0.7):
            row = found.setdefault(f"mean, {n_groups} groups, correlation {alike}", {})
            for share in MEANS:
                held = sum(_holds(rng, n_groups, alike, share) for _ in range(repetitions))
                row[str(share)] = held / repetitions
    for prevalence in (0.1, 0.5):
        truth = {
            name: float(one(_confusions(rng, 100_000, prevalence)[0].sum(axis=0, keepdims=True))[0])
            for name, (one, _) in QUOTIENTS.items()
        }
        for n_groups in (5, 10, 30, 100):
            row = found.setdefault(f"class in {prevalence:.0%}, {n_groups} groups", {})
            kept = [_holds_quotients(rng, n_groups, prevalence, truth) for _ in range(repetitions)]
            for name in QUOTIENTS:
                known = [one[name] for one in kept if one[name] is not None]
                row[name] = sum(map(bool, known)) / max(1, len(known))
                row[f"{name}: none"] = 1 - len(known) / repetitions
    return found


def _held(found: Estimate | Difference, truth: float) -> bool:
    low, high = found.ci_low, found.ci_high
    return low is not None and high is not None and low <= truth <= high


def _holds(rng: np.random.Generator, n_groups: int, alike: float, share: float) -> bool:
    groups = np.repeat(np.arange(n_groups), rng.geometric(0.1, n_groups))
    strength = 1 / alike - 1
    chance = rng.beta(share * strength, (1 - share) * strength, n_groups)[groups]
    return _held(mean_interval(rng.random(len(groups)) < chance, groups, Resampling(draws=500, bounds=(0, 1))), share)


def _two(first: float, second: float, alike: float) -> Answers:
    """Two systems with these means."""
    return lambda rng, groups, n_groups: (
        _clustered(rng, groups, n_groups, first, alike),
        _clustered(rng, groups, n_groups, second, alike),
        first - second,
    )


Answers = Callable[[np.random.Generator, Ints, int], tuple[Ints, Ints, float]]
PAIRS: dict[str, Answers] = {
    "equal means of 0.6, correlation 0": _two(0.6, 0.6, 0.0),
    "equal means of 0.6, correlation 0.7": _two(0.6, 0.6, 0.7),
    "20 points, correlation 0": _two(0.7, 0.5, 0.0),
    "20 points, correlation 0.3": _two(0.7, 0.5, 0.3),
    "20 points, correlation 0.7": _two(0.7, 0.5, 0.7),
    "5 against 2 % errors": _two(0.95, 0.98, 0.2),
    "5 % of groups differ": lambda rng, groups, n: _again(rng, groups, n, 0.05),
    "20 % of groups differ": lambda rng, groups, n: _again(rng, groups, n, 0.2),
    "all groups differ a little": lambda rng, groups, n: _again(rng, groups, n, 1.0),
    "fails on 10 % of groups, else the same": lambda rng, groups, n: _erratic(rng, groups, n, 0.1, made_up_for=False),
    "fails on 5 % of groups, equal means": lambda rng, groups, n: _erratic(rng, groups, n, 0.05, made_up_for=True),
}
"""The answers of two systems, and the true difference."""


def difference_coverage(repetitions: int) -> dict[str, dict[str, float]]:
    """Shares of 95 % intervals of differences that hold the truth; and, in the last row, of those that contradict p."""
    found: dict[str, dict[str, float]] = {}
    for n_groups in (3, 4, 6, 10, 24, 47, 100):
        rng, against = np.random.default_rng(n_groups), 0
        for name, answers in PAIRS.items():
            held = 0
            for _ in range(repetitions):
                groups = np.repeat(np.arange(n_groups), rng.geometric(1 / 8, n_groups))
                first, second, truth = answers(rng, groups, n_groups)
                one = paired_difference(first, second, groups, Resampling(draws=500, bounds=(0, 1)))
                held += _held(one, truth)
                against += _held(one, 0.0) != ((one.p or 0) > 0.05)
            found.setdefault(name, {})[f"{n_groups} groups"] = held / repetitions
        found.setdefault("interval and p contradict each other", {})[f"{n_groups} groups"] = against / repetitions
    return found


def _clustered(rng: np.random.Generator, groups: Ints, n_groups: int, mean: float, alike: float) -> Ints:
    if not alike:
        return (rng.random(len(groups)) < mean).astype(np.int64)
    strength = 1 / alike - 1
    chance = rng.beta(mean * strength, (1 - mean) * strength, n_groups)[groups]
    return (rng.random(len(groups)) < chance).astype(np.int64)


def _again(rng: np.random.Generator, groups: Ints, n_groups: int, touched: float) -> tuple[Ints, Ints, float]:
    """Right on 0.6; the second system answers half of a touched group's questions (a twentieth, where all groups are)
    again, and is right on 0.3 of them."""
    again = 0.5 if touched < 1 else 0.05
    first = rng.random(len(groups)) < 0.6
    other = (rng.random(n_groups) < touched)[groups] & (rng.random(len(groups)) < again)
    second = np.where(other, rng.random(len(groups)) < 0.3, first)
    return first.astype(np.int64), second.astype(np.int64), touched * again * 0.3


def _erratic(
    rng: np.random.Generator, groups: Ints, n_groups: int, share: float, *, made_up_for: bool
) -> tuple[Ints, Ints, float]:
    """The second system is right on 0.7 (correlation 0.2). The first gives the same answers, but fails on a share of the
    groups as a whole; if this is made up for, it is right on more of the others, so that the means are equal."""
    second = _clustered(rng, groups, n_groups, 0.7, 0.2)
    better = (0.7 / (1 - share) - 0.7) / 0.3 if made_up_for else 0.0
    first = np.where(second == 1, 1, rng.random(len(groups)) < better)
    first = np.where((rng.random(n_groups) < share)[groups], 0, first).astype(np.int64)
    return first, second, 0.0 if made_up_for else -0.7 * share


def _confusions(rng: np.random.Generator, n_groups: int, prevalence: float) -> tuple[Floats, Ints]:
    """Hits, false alarms, misses and right rejections of each item; prevalence, sensitivity (0.7) and specificity
    (0.85) vary by group (correlation 0.2)."""
    groups = np.repeat(np.arange(n_groups), rng.geometric(0.1, n_groups))
    share, seen, kept = (rng.beta(4 * mean, 4 * (1 - mean), n_groups)[groups] for mean in (prevalence, 0.7, 0.85))
    there = rng.random(len(groups)) < share
    said = np.where(there, rng.random(len(groups)) < seen, rng.random(len(groups)) >= kept)
    return np.stack([there & said, ~there & said, there & ~said, ~there & ~said], axis=1).astype(float), groups


def _ratio(top: Floats, bottom: Floats) -> Floats:
    found: Floats = np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0)
    return found


def _matthews(sums: Floats) -> Floats:
    tp, fp, fn, tn = sums.T
    return _ratio(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


QUOTIENTS: dict[str, tuple[Callable[[Floats], Floats], tuple[float, float]]] = {
    "precision": (lambda s: _ratio(s[:, 0], s[:, 0] + s[:, 1]), (0, 1)),
    "F1": (lambda s: _ratio(2 * s[:, 0], 2 * s[:, 0] + s[:, 1] + s[:, 2]), (0, 1)),
    "balanced accuracy": (
        lambda s: (_ratio(s[:, 0], s[:, 0] + s[:, 2]) + _ratio(s[:, 3], s[:, 1] + s[:, 3])) / 2,
        (0, 1),
    ),
    "MCC": (_matthews, (-1, 1)),
}


def _holds_quotients(
    rng: np.random.Generator, n_groups: int, prevalence: float, truth: dict[str, float]
) -> dict[str, bool | None]:
    columns, groups = _confusions(rng, n_groups, prevalence)
    held: dict[str, bool | None] = {}
    for name, (statistic, bounds) in QUOTIENTS.items():
        trials = (((0,), (2,)), ((1,), (3,))) if name == "balanced accuracy" else ()
        found = sums_interval(columns, groups, statistic, trials, plan=Resampling(draws=500, bounds=bounds))
        held[name] = None if found.ci_low is None else _held(found, truth[name])
    return held


def rank_coverage(repetitions: int) -> dict[str, float]:
    """Share of benchmarks whose simultaneous 95 % intervals hold all true ranks, every rank that equal systems share
    included, and the share of systems whose spread of places over samples, printed as an interval before, does. Five
    systems, four buckets of two questions a video, each video with an ease of its own for all and for each system."""
    truths = {
        "equal": np.zeros(5),
        "distinct": np.linspace(-1.0, 1.0, 5),
        "one better": np.array([0.8, 0.0, 0.0, 0.0, 0.0]),
    }
    rng = np.random.default_rng(6)
    found = {}
    for name, skills in truths.items():
        for n_videos in (10, 30, 100):
            held, spread = zip(*(_ranks_hold(rng, skills, n_videos) for _ in range(repetitions)), strict=True)
            found[f"ranks {name} {n_videos}"] = sum(held) / repetitions
            found[f"spread {name} {n_videos}"] = sum(spread) / repetitions
    for n_videos in (10, 30, 47, 100):
        held, spread = zip(*(_erratic_ranks_hold(rng, n_videos) for _ in range(repetitions)), strict=True)
        found[f"ranks equal means, one fails on 5 % of videos {n_videos}"] = sum(held) / repetitions
        found[f"spread equal means, one fails on 5 % of videos {n_videos}"] = sum(spread) / repetitions
    return found


def _erratic_ranks_hold(rng: np.random.Generator, n_videos: int) -> tuple[bool, float]:
    videos = np.repeat(np.arange(n_videos), 8)
    first, second, _ = _erratic(rng, videos, n_videos, 0.05, made_up_for=True)
    ranked = rank_systems(np.stack([first, second]).astype(float), ["0", "1"], videos, plan=Resampling(draws=200))
    held = all((one.rank_low, one.rank_high) == (1, 2) for one in ranked)
    return held, float(np.mean([(one.place_low, one.place_high) == (1, 2) for one in ranked]))


def _ranks_hold(rng: np.random.Generator, skills: np.ndarray, n_videos: int) -> tuple[bool, float]:
    n = len(skills)
    videos, buckets = np.repeat(np.arange(n_videos), 8), np.tile(np.repeat(np.arange(4), 2), n_videos)
    ease = rng.normal(0, 1, n_videos)[videos] + rng.normal(0, 0.7, (n, n_videos))[:, videos]
    right = (rng.random((n, len(videos))) < 1 / (1 + np.exp(-(skills[:, None] + ease)))).astype(float)
    names = [str(k) for k in range(n)]
    ranked = rank_systems(right, names, videos, plan=Resampling(draws=200))
    board = rank_buckets(right, names, videos, buckets, list("wxyz"), RankingPlan(draws=1))
    best = {name: 1 + int(np.sum(skills > skills[int(name)])) for name in names}
    worst = {name: int(np.sum(skills >= skills[int(name)])) for name in names}
    intervals = [(one.name, one.rank_low, one.rank_high) for one in ranked]
    intervals += [(one.name, one.rank_low, one.rank_high) for one in board.systems]
    held = all((low or 0) <= best[name] and worst[name] <= (high or 0) for name, low, high in intervals)
    inside = [(one.place_low or 0) <= best[one.name] and worst[one.name] <= (one.place_high or 0) for one in ranked]
    return held, float(np.mean(inside))


def regression_level(repetitions: int) -> dict[str, dict[str, float]]:
    """The share of p < 0.05 of columns that say nothing, by the number of groups; each group has an ease of its own."""
    found: dict[str, dict[str, float]] = {}
    for n_groups in (10, 24, 100):
        for share in (2, 5):
            rng = np.random.default_rng([n_groups, share])
            p = [_p_of_nothing(rng, n_groups, share) for _ in range(repetitions)]
            for number, name in enumerate((f"1 in {share} groups carries it", f"within groups, beside 1 in {share}")):
                known = [one[number] for one in p if one[number] is not None]
                row = found.setdefault(name, {})
                row[f"{n_groups} groups"] = sum((one or 0) < 0.05 for one in known) / len(known)
    return found


def _p_of_nothing(rng: np.random.Generator, n_groups: int, share: int) -> tuple[float | None, float | None]:
    """p of a column that one in `share` groups carries, and of one that changes within groups."""
    groups = np.repeat(np.arange(n_groups), rng.geometric(0.1, n_groups))
    carried = np.isin(groups, rng.choice(n_groups, n_groups // share, replace=False))
    within = rng.integers(0, 2, len(groups))
    chance = 1 / (1 + np.exp(-rng.normal(size=n_groups)[groups]))
    right = (rng.random(len(groups)) < chance).astype(float)
    terms = {term.name: term.p for term in logistic(right, {"carried": carried, "within": within}, groups).terms}
    return terms.get("carried"), terms.get("within")


def markdown(found: dict[str, dict[str, float]]) -> str:
    """The tables of docs/reference/statistics.md."""
    lines, heads = [], None
    for name, row in found.items():
        if heads != list(row):
            heads = list(row)
            lines += ["", f"| | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
        lines.append(f"| {name} | {' | '.join(f'{share:.1%}' for share in row.values())} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=["json", "text"], default="text")
    parser.add_argument("--coverage", type=int, default=0, metavar="REPETITIONS")
    parser.add_argument("--differences", type=int, default=0, metavar="REPETITIONS")
    parser.add_argument("--ranks", type=int, default=0, metavar="REPETITIONS")
    parser.add_argument("--regression", type=int, default=0, metavar="REPETITIONS")
    arguments = parser.parse_args()
    if arguments.coverage or arguments.regression:
        repetitions = arguments.coverage or arguments.regression
        held = coverage(repetitions) if arguments.coverage else regression_level(repetitions)
        print(json.dumps(held) if arguments.format == "json" else markdown(held))
        return
    if arguments.differences:
        apart = difference_coverage(arguments.differences)
        print(json.dumps(apart) if arguments.format == "json" else markdown(apart))
        return
    if arguments.ranks:
        found = rank_coverage(arguments.ranks)
        print(json.dumps(found) if arguments.format == "json" else "\n".join(f"{k}: {v}" for k, v in found.items()))
        return
    compared, ranked = pairs()
    figures: dict[str, float] = {
        "summary_s": summary(),
        "leaderboard_s": leaderboard(),
        "slices_500_groups_s": slices(500),
        "slices_200000_groups_s": slices(200_000),
        "pairs_s": compared,
        "ranking_s": ranked,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    if arguments.format == "json":
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name}: {value:.3f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
