"""How long the statistics take, and how much memory; with --coverage, --differences and --ranks, how well intervals
cover, and with --repetitions those of items that were answered several times; with --margins, the level and the planned
and found power of non-inferiority, and the level of interactions; with --regression, how often a term that says nothing
has p below 0.05.

python bench/statistics.py --format json
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
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
    Share,
    StudyPlan,
    VarianceParts,
    fleiss_kappa,
    group_mean_slices,
    gwet_ac1,
    interaction,
    krippendorff_alpha,
    logistic,
    paired_difference,
    paired_differences,
    percent_agreement,
    plan_power,
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


GROUPS = (3, 4, 6, 10, 24, 47, 100)
CLASSES = (0.01, 0.02, 0.05, 0.1)

Cells = dict[str, dict[str, float]]


def coverage(repetitions: int, groups: Sequence[int] = GROUPS) -> dict[str, Cells]:
    """By table, row and column (number of groups): the share of 95 % intervals that hold the truth, their median width,
    and how often there is none."""
    tables = {"shares": _share_cells, "ratios": _ratio_cells, "agreement": _agreement_cells}
    found: dict[str, Cells] = {}
    for n_groups in groups:
        for name, cells in tables.items():
            for row, (held, width, none) in cells(np.random.default_rng([n_groups, len(name)]), n_groups, repetitions):
                for what, value in (("coverage", held), ("width", width), ("none", none)):
                    found.setdefault(f"{name}: {what}", {}).setdefault(row, {})[f"{n_groups} groups"] = value
    return found


Cell = tuple[float, float, float]


def _cell(estimates: Sequence[Estimate], truth: float) -> Cell:
    known = [(one.ci_low, one.ci_high) for one in estimates if one.ci_low is not None and one.ci_high is not None]
    held = [low <= truth <= high for low, high in known]
    if not known:
        return float("nan"), float("nan"), 1.0
    return float(np.mean(held)), float(np.median(np.diff(known))), 1 - len(known) / len(estimates)


def _sizes(rng: np.random.Generator, n_groups: int, repetitions: int, *, half: bool) -> Ints:
    """Geometric sizes of 10 on average; or 5, with one group that has half of all."""
    if not half:
        return rng.geometric(0.1, (repetitions, n_groups))
    sizes = np.full((repetitions, n_groups), 5)
    sizes[:, 0] = 5 * (n_groups - 1)
    return sizes


def _share_cells(rng: np.random.Generator, n_groups: int, repetitions: int) -> Iterator[tuple[str, Cell]]:
    shape, designs = (repetitions, n_groups), []
    for half, shares in ((False, (0.01, 0.02, 0.05, 0.1, 0.5, 0.8)), (True, (0.02, 0.1, 0.5, 0.8))):
        for share in shares:
            for alike in (0.0, 0.1, 0.3, 0.7):
                strength = 1 / alike - 1 if alike else 1e9
                chance = rng.beta(share * strength, (1 - share) * strength, shape)
                size = "one group has half of all, " if half else ""
                designs.append((f"{size}share {share:g}, correlation {alike:g}", half, chance, share))
    for right in (0.99, 0.8):
        for fails in (0.02, 0.05, 0.1):
            chance = np.where(rng.random(shape) < fails, 0.0, right)
            row = f"right on {right:.0%}, but all wrong in {fails:.0%} of groups"
            designs.append((row, False, chance, right * (1 - fails)))
    for row, half, chance, truth in designs:
        sizes = _sizes(rng, n_groups, repetitions, half=half)
        of = np.repeat(np.arange(repetitions * n_groups), sizes.ravel())
        values = rng.random(len(of)) < chance.ravel()[of]
        found = slice_means(values, of, of // n_groups, repetitions, Resampling(bounds=(0, 1)))
        yield row, _cell(found, truth)


def _ratio_cells(rng: np.random.Generator, n_groups: int, repetitions: int) -> Iterator[tuple[str, Cell]]:
    for prevalence in CLASSES:
        everything = _confusions(np.random.default_rng(1), 200_000, prevalence)[0].sum(axis=0, keepdims=True)
        drawn = [_confusions(rng, n_groups, prevalence) for _ in range(repetitions)]
        for name, (statistic, bounds) in QUOTIENTS.items():
            trials = () if isinstance(statistic, Share) else (((0,), (2,)), ((3,), (1,)))
            plan = Resampling(draws=500, bounds=bounds)
            found = [sums_interval(columns, groups, statistic, trials, plan) for columns, groups in drawn]
            yield f"{name}, class in {prevalence:.0%}", _cell(found, float(statistic(everything)[0]))


def _agreement_cells(rng: np.random.Generator, n_groups: int, repetitions: int) -> Iterator[tuple[str, Cell]]:
    for prevalence, errors in ((0.5, 0.1), (0.05, 0.01)):
        shared = (prevalence, errors)
        first, second, _ = _rated(np.random.default_rng(1), 200_000, *shared)
        share, same = (first.mean() + second.mean()) / 2, float((first == second).mean())
        by_chance = {"Krippendorff's α": share**2 + (1 - share) ** 2, "Gwet's AC1": 2 * share * (1 - share)}
        truths = {name: (same - chance) / (1 - chance) for name, chance in by_chance.items()}
        truths = {"percent agreement": same, "Fleiss' κ": truths["Krippendorff's α"]} | truths
        found: dict[str, list[Estimate]] = {name: [] for name in truths}
        for _ in range(repetitions):
            first, second, groups = _rated(rng, n_groups, *shared)
            labels, of = np.stack([first, second], axis=1).ravel().tolist(), np.repeat(groups, 2).astype(str).tolist()
            items, plan = np.repeat(np.arange(len(first)), 2).tolist(), Resampling(draws=500)
            found["percent agreement"].append(percent_agreement(labels, [0, 1], items, of, plan))
            found["Fleiss' κ"].append(fleiss_kappa(labels, [0, 1], items, of, plan))
            found["Krippendorff's α"].append(krippendorff_alpha(labels, items, of, "nominal", plan))
            found["Gwet's AC1"].append(gwet_ac1(labels, [0, 1], items, of, plan))
        for name, truth in truths.items():
            yield f"{name}, label in {prevalence:.0%}, errors {errors:.0%}", _cell(found[name], truth)


def _rated(rng: np.random.Generator, n_groups: int, prevalence: float, errors: float) -> tuple[Ints, Ints, Ints]:
    """Two ratings of each item; prevalence and errors vary by group (correlation 0.2)."""
    groups = np.repeat(np.arange(n_groups), 1 + rng.poisson(5, n_groups))
    share, wrong = (rng.beta(4 * mean, 4 * (1 - mean), n_groups)[groups] for mean in (prevalence, errors))
    truth = rng.random(len(groups)) < share
    first, second = (np.asarray(truth ^ (rng.random(len(groups)) < wrong), dtype=np.int64) for _ in "ab")
    return first, second, groups


def _held(found: Estimate | Difference, truth: float) -> bool:
    low, high = found.ci_low, found.ci_high
    return low is not None and high is not None and low <= truth <= high


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
    "precision": (Share((1, 0, 0, 0), (1, 1, 0, 0)), (0, 1)),
    "recall": (Share((1, 0, 0, 0), (1, 0, 1, 0)), (0, 1)),
    "F1": (Share((1, 0, 0, 0), (1, 1, 1, 0), f1=True), (0, 1)),
    "balanced accuracy": (
        lambda s: (_ratio(s[:, 0], s[:, 0] + s[:, 2]) + _ratio(s[:, 3], s[:, 1] + s[:, 3])) / 2,
        (0, 1),
    ),
    "MCC": (_matthews, (-1, 1)),
}


def rank_coverage(repetitions: int) -> dict[str, float]:
    """Share of benchmarks whose simultaneous 95 % intervals hold all true ranks, every rank that equal systems share
    included, and the share of systems whose spread of ranks over samples, printed as an interval before, does. Five
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
    return held, float(np.mean([(one.resampled_rank_low, one.resampled_rank_high) == (1, 2) for one in ranked]))


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
    inside = [
        (one.resampled_rank_low or 0) <= best[one.name] and worst[one.name] <= (one.resampled_rank_high or 0)
        for one in ranked
    ]
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


def covered(found: dict[str, Cells]) -> str:
    """The tables of docs/reference/statistics.md: in each cell the coverage and the median width."""
    lines = []
    for name in dict.fromkeys(key.partition(":")[0] for key in found):
        held, width, none = (found[f"{name}: {what}"] for what in ("coverage", "width", "none"))
        heads = list(dict.fromkeys(column for row in held.values() for column in row))
        lines += ["", f"| {name} | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
        for row, cells in held.items():
            shown = [
                "none" if none[row][column] > 0.95 else f"{100 * value:.1f} % ({width[row][column]:.2f})"
                for column, value in cells.items()
            ]
            lines.append(f"| {row} | {' | '.join(shown)} |")
    return "\n".join(lines)


def markdown(found: dict[str, dict[str, float]]) -> str:
    """The tables of docs/reference/statistics.md."""
    lines, heads = [], None
    for name, row in found.items():
        if heads != list(row):
            heads = list(row)
            lines += ["", f"| | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
        lines.append(f"| {name} | {' | '.join(f'{share:.1%}' for share in row.values())} |")
    return "\n".join(lines)


def margins(repetitions: int) -> dict[str, dict[str, float]]:
    """For 6, 20 and 60 groups: the share of studies of right and wrong answers to five questions that show non-inferiority at
    the margin (level); of normal differences of four questions the planned power, and the share that shows it; and the
    share of interactions with p ≤ 0.05 of right and wrong answers to six questions, where there is none."""
    rows: dict[str, dict[str, float]] = {}
    for groups in (6, 20, 60):
        rng = np.random.default_rng(groups)
        parts = VarianceParts(0.05, 0.2)
        error = parts.of_mean(StudyPlan(difference=1.0, items=4), groups) ** 0.5
        plan = StudyPlan(difference=3 * error - 0.1, items=4, margin=0.1)
        level = power = crossed = within = 0
        for _ in range(repetitions):
            codes = np.repeat(np.arange(groups), 5)
            skill = rng.beta(4, 2, groups)[codes]
            a, b = rng.random(len(codes)) < skill * 0.9, rng.random(len(codes)) < skill
            low = paired_difference(a, b, codes, Resampling(draws=400, bounds=(0, 1))).ci_low
            level += low is not None and low > -0.1 * 2 / 3
            codes = np.repeat(np.arange(groups), 4)
            apart = rng.normal(plan.difference, parts.group**0.5, groups)[codes] + rng.normal(
                0, parts.item**0.5, 4 * groups
            )
            low = paired_difference(apart, np.zeros(len(apart)), codes, Resampling(draws=400)).ci_low
            power += low is not None and low > -0.1
            codes = np.repeat(np.arange(groups), 6)
            skill = rng.beta(1, 1.5, groups)[codes]
            gap = np.asarray(rng.random(len(codes)) < skill, dtype=np.float64) - (rng.random(len(codes)) < skill)
            found = [
                interaction(gap, (which % 2).astype(str).tolist(), codes).p for which in (np.arange(len(codes)), codes)
            ]
            within += found[0] is not None and found[0] <= 0.05
            crossed += found[1] is not None and found[1] <= 0.05
        rows[f"{groups} groups"] = {
            "non-inferiority at the margin": level / repetitions,
            "planned power": plan_power(parts, plan, groups),
            "found power": power / repetitions,
            "interaction, parts within groups": within / repetitions,
            "interaction, groups within parts": crossed / repetitions,
        }
    return rows


def repetition_coverage(repetitions: int, groups: Sequence[int] = (6, 10, 24, 47, 100)) -> dict[str, dict[str, float]]:
    """Shares of 95 % intervals of a score that hold the truth, where each item is answered 1, 3 or 5 times and its score is
    the mean; groups have 8 items on average, and items differ in how often they are answered right."""
    found: dict[str, dict[str, float]] = {}
    for n_groups in groups:
        for asked in (1, 3, 5):
            for mean, alike in ((0.6, 0.1), (0.6, 0.5), (0.85, 0.3), (0.95, 0.3)):
                rng = np.random.default_rng([n_groups, asked, int(100 * mean)])
                strength = 1 / alike - 1
                of = np.repeat(np.arange(repetitions * n_groups), rng.geometric(1 / 8, repetitions * n_groups))
                group = rng.beta(mean * strength, (1 - mean) * strength, repetitions * n_groups)[of]
                chance = np.where(rng.random(len(of)) < 0.5, group, rng.random(len(of)) < group)  # half never waver
                scores = rng.binomial(asked, chance) / asked
                estimates = slice_means(scores, of, of // n_groups, repetitions, Resampling(bounds=(0, 1), shares=True))
                row = f"{asked} answers to an item, mean {mean:g}, correlation {alike:g}"
                found.setdefault(row, {})[f"{n_groups} groups"] = _cell(estimates, mean)[0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=["json", "text"], default="text")
    parser.add_argument("--coverage", type=int, default=0, metavar="REPETITIONS")
    parser.add_argument("--differences", type=int, default=0, metavar="REPETITIONS")
    parser.add_argument("--ranks", type=int, default=0, metavar="REPETITIONS")
    parser.add_argument("--regression", type=int, default=0, metavar="REPETITIONS")
    parser.add_argument("--margins", type=int, default=0, metavar="REPETITIONS")
    parser.add_argument("--repetitions", type=int, default=0, metavar="STUDIES")
    arguments = parser.parse_args()
    if arguments.margins or arguments.repetitions:
        shown = margins(arguments.margins) if arguments.margins else repetition_coverage(arguments.repetitions)
        print(json.dumps(shown) if arguments.format == "json" else markdown(shown))
        return
    if arguments.coverage:
        cells = coverage(arguments.coverage)
        print(json.dumps(cells) if arguments.format == "json" else covered(cells))
        return
    if arguments.regression:
        level = regression_level(arguments.regression)
        print(json.dumps(level) if arguments.format == "json" else markdown(level))
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
