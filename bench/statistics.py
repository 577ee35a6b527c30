"""How long the statistics take, and how much memory; with --coverage and --ranks, how well intervals cover.

python bench/statistics.py --format json
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable

import numpy as np

from proctor.stats import (
    group_mean_slices,
    mean_interval,
    paired_differences,
    rank_buckets,
    rank_systems,
    slice_means,
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
    """25 overlapping slices, 20,000 answers, 200 videos, 1,000 two-level draws."""
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
    return timed(
        lambda: group_mean_slices(right, videos, inside, draws=1000, two_level=True, method="percentile")
    )


def leaderboard() -> float:
    """50 systems × 20,000 answers in 200 videos and ten buckets: tests, Copeland, 10,000-draw win rates and
    1,000-draw stability of the whole ranking."""
    rng = np.random.default_rng(4)
    right = (rng.random((50, 20_000)) < rng.uniform(0.4, 0.6, 50)[:, None]).astype(np.float64)
    videos, buckets = rng.integers(0, 200, 20_000), rng.integers(0, 10, 20_000)
    names = [f"system {k}" for k in range(50)]
    start = time.perf_counter()
    rank_buckets(
        right, names, videos, buckets, [f"bucket {k}" for k in range(10)], draws=10_000, stability=1000
    )
    return time.perf_counter() - start


def slices(n_groups: int) -> float:
    """3 systems × 200,000 answers in 20 slices each."""
    rng = np.random.default_rng(1)
    groups, facet = rng.integers(0, n_groups, 200_000), rng.integers(0, 20, 200_000)
    right = rng.integers(0, 2, 600_000)
    code = np.concatenate([facet, facet + 20, facet + 40])
    return timed(lambda: slice_means(right, np.tile(groups, 3), code, 60, bounds=(0, 1)))


def pairs() -> tuple[float, float]:
    """50 systems × 20,000 answers in 200 videos: all pairs, and the ranking."""
    rng = np.random.default_rng(2)
    matrix = (rng.random((50, 20_000)) < rng.uniform(0.4, 0.6, 50)[:, None]).astype(np.float64)
    videos, names = rng.integers(0, 200, 20_000), [f"system {k}" for k in range(50)]
    compared = timed(lambda: paired_differences(matrix, videos, bounds=(0, 1)))
    return compared, timed(lambda: rank_systems(matrix, names, videos, bounds=(0, 1)))


def coverage(repetitions: int) -> dict[str, float]:
    """Share of 95 % intervals that hold the true mean, binary values, intra-class correlation 0.3."""
    rng = np.random.default_rng(3)
    found = {}
    for n_groups in (5, 10, 30, 200):
        for kind in ("geometric", "lognormal"):
            for share in (0.1, 0.5, 0.9):
                held = sum(_holds(rng, n_groups, kind, share) for _ in range(repetitions))
                found[f"{n_groups} {kind} {share}"] = held / repetitions
    return found


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
    return found


def _ranks_hold(rng: np.random.Generator, skills: np.ndarray, n_videos: int) -> tuple[bool, float]:
    n = len(skills)
    videos, buckets = np.repeat(np.arange(n_videos), 8), np.tile(np.repeat(np.arange(4), 2), n_videos)
    ease = rng.normal(0, 1, n_videos)[videos] + rng.normal(0, 0.7, (n, n_videos))[:, videos]
    right = (rng.random((n, len(videos))) < 1 / (1 + np.exp(-(skills[:, None] + ease)))).astype(float)
    names = [str(k) for k in range(n)]
    ranked = rank_systems(right, names, videos, draws=200)
    board = rank_buckets(right, names, videos, buckets, list("wxyz"), draws=1)
    best = {name: 1 + int(np.sum(skills > skills[int(name)])) for name in names}
    worst = {name: int(np.sum(skills >= skills[int(name)])) for name in names}
    intervals = [(one.name, one.rank_low, one.rank_high) for one in ranked]
    intervals += [(one.name, one.rank_low, one.rank_high) for one in board.systems]
    held = all((low or 0) <= best[name] and worst[name] <= (high or 0) for name, low, high in intervals)
    inside = [
        (one.place_low or 0) <= best[one.name] and worst[one.name] <= (one.place_high or 0) for one in ranked
    ]
    return held, float(np.mean(inside))


def _holds(rng: np.random.Generator, n_groups: int, kind: str, share: float) -> bool:
    drawn = (
        rng.geometric(0.1, n_groups) if kind == "geometric" else np.exp(rng.normal(np.log(8), 1, n_groups))
    )
    groups = np.repeat(np.arange(n_groups), np.maximum(1, np.round(drawn)).astype(np.int64))
    chance = rng.beta(share * 7 / 3, (1 - share) * 7 / 3, n_groups)[groups]
    found = mean_interval(rng.random(len(groups)) < chance, groups, draws=1000, bounds=(0, 1))
    return found.ci_low is not None and found.ci_high is not None and found.ci_low <= share <= found.ci_high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=["json", "text"], default="text")
    parser.add_argument("--coverage", type=int, default=0, metavar="REPETITIONS")
    parser.add_argument("--ranks", type=int, default=0, metavar="REPETITIONS")
    arguments = parser.parse_args()
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
    if arguments.coverage:
        figures |= coverage(arguments.coverage)
    if arguments.ranks:
        figures |= rank_coverage(arguments.ranks)
    if arguments.format == "json":
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name}: {value:.3f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
