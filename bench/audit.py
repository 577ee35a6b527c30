"""How long an audit takes: all 98 figures of MEDIQA-EVAL, each correlation with 2,000 clustered draws.

python bench/audit.py --format json            (on real ratings where PROCTOR_DATA is set, else on made-up ones)
python bench/audit.py --coverage 1000          (intervals, and the level of the paired test, by simulation)
python bench/audit.py --sparse 400             (metrics that flag a few answers at random: coverage of 0, and the level)
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

import numpy as np

from proctor.audits import CorrelationSettings, MetricScores, Rating, RatingsTable, audit
from proctor.stats import Floats, Kind, Resamples, Resampling, average, contrast
from proctor.tasks.mediqa_eval import DIMENSIONS, official, read_native_ratings, read_submission

KINDS: tuple[Kind, ...] = ("kendall", "pearson", "spearman")


def real(folder: Path) -> tuple[RatingsTable, MetricScores]:
    """The validation data and the word-overlap metric."""
    table = read_native_ratings(folder / "ratings.csv")
    return table, read_submission(folder / "submission_overlap.csv", table)


def made_up() -> tuple[RatingsTable, MetricScores]:
    """As many ratings in the same cells, drawn."""
    rng = np.random.default_rng(0)
    ratings = tuple(
        Rating(
            item=f"{dataset}/{number}/{language}",
            candidate=f"text {system}",
            system=system,
            dimension=dimension,
            rater="r1",
            value=float(rng.integers(0, 3) / 2),
            group=f"{dataset}/{number}",
            dataset=dataset,
            language=language,
        )
        for dataset, encounters in (("iiyi", 44), ("woundcare", 77))
        for language, dimensions in DIMENSIONS.items()
        for number in range(encounters)
        for system in ("s1", "s2", "s3")
        for dimension in dimensions
    )
    return RatingsTable(ratings), MetricScores("drawn", {one.key: float(rng.random()) for one in ratings})


def all_figures(rounds: int = 3) -> dict[str, float]:
    """Seconds for everything that `proctor audit` computes, the best of some rounds."""
    named = os.environ.get("PROCTOR_DATA")
    table, metric = real(Path(named) / "mediqa-eval") if named else made_up()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        found = audit(table, metric, CorrelationSettings(draws=2000))
        taken.append(time.perf_counter() - start)
    return {"figures": len(official(found)), "seconds": min(taken), "target": 5.0, "real": float(bool(named))}


def clinic(rng: np.random.Generator, n_groups: int) -> tuple[Floats, Floats, Floats, list[str]]:
    """Ratings on three levels and two equally good metrics of them, in clusters of three answers."""
    groups = np.repeat(np.arange(n_groups), 3)
    quality = rng.normal(size=n_groups)[groups] + rng.normal(size=3 * n_groups)
    ratings = np.digitize(quality + 0.5 * rng.normal(size=3 * n_groups), [-1, 0.8]) / 2
    shared = 0.7 * rng.normal(size=n_groups)[groups]
    one, other = (
        quality + shared + 0.7 * rng.normal(size=n_groups)[groups] + rng.normal(size=3 * n_groups) for _ in range(2)
    )
    return ratings, one, other, [str(group) for group in groups]


def coverage(repetitions: int) -> dict[str, dict[str, float]]:
    """Shares of 95 % intervals that hold the truth, and of paired tests with p < 0.05 where there is nothing."""
    truth = _truth()
    found = {}
    for n_groups in (12, 44, 121):
        rng = np.random.default_rng(n_groups)
        held = dict.fromkeys((*KINDS, "mean"), 0)
        false_alarms = 0
        for _ in range(repetitions):
            ratings, one, other, groups = clinic(rng, n_groups)
            samples = Resamples(groups, plan=Resampling(draws=1000, seed=int(rng.integers(1 << 30))))
            both = [[samples.correlation(kind, a, ratings, groups) for kind in KINDS] for a in (one, other)]
            means = [average(kinds) for kinds in both]
            for name, sampled in zip(held, (*both[0], means[0]), strict=True):
                estimate = sampled.estimate()
                low, high = estimate.ci_low, estimate.ci_high
                held[name] += low is not None and high is not None and low <= truth[name] <= high
            p = contrast(means[0], means[1]).p
            false_alarms += p is not None and p < 0.05
        shares = {name: count / repetitions for name, count in held.items()}
        found[f"{n_groups} groups"] = shares | {"false alarms": false_alarms / repetitions}
    return found


def sparse(repetitions: int) -> dict[str, dict[str, float]]:
    """Two metrics that each flag one answer in k of 121 encounters at random, ratings drawn: how often there is an
    interval and a p, the share of intervals that hold 0, and the share of p < 0.05; of the mean of Kendall's and
    Pearson's."""
    found = {}
    for k in (4, 5, 6, 7, 8, 10, 12):
        rng = np.random.default_rng(k)
        given = held = tested = alarms = 0
        for _ in range(repetitions):
            ratings, _, _, groups = clinic(rng, 121)
            samples = Resamples(groups, plan=Resampling(draws=300, seed=int(rng.integers(1 << 30))))
            pair = []
            for _ in range(2):
                flags = np.zeros(len(ratings))
                flags[3 * rng.choice(121, k, replace=False) + rng.integers(0, 3, k)] = 1.0
                kinds = [samples.correlation(kind, flags, ratings, groups) for kind in KINDS[:2]]
                pair.append(average(kinds))
            estimate, p = pair[0].estimate(), contrast(*pair).p
            if estimate.ci_low is not None and estimate.ci_high is not None:
                given += 1
                held += estimate.ci_low <= 0 <= estimate.ci_high
            tested += p is not None
            alarms += p is not None and p < 0.05
        found[f"{k} flagged"] = {
            "intervals": given / repetitions,
            "hold 0": held / given if given else float("nan"),
            "tests": tested / repetitions,
            "false alarms": alarms / tested if tested else float("nan"),
        }
    return found


def _truth() -> dict[str, float]:
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(30):
        ratings, one, _, groups = clinic(rng, 700)
        samples = Resamples(groups, drawing=False)
        rows.append([samples.correlation(kind, one, ratings, groups).observed for kind in KINDS])
    means = np.array(rows).mean(axis=0)
    return dict(zip((*KINDS, "mean"), [*means.tolist(), float(means.mean())], strict=True))


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--coverage", type=int, default=0, metavar="REPETITIONS")
    parser.add_argument("--sparse", type=int, default=0, metavar="REPETITIONS")
    options = parser.parse_args()
    if options.sparse:
        found: dict[str, object] = dict(sparse(options.sparse))
    else:
        found = dict(coverage(options.coverage) if options.coverage else all_figures())
    if options.format == "json":
        print(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        print(f"{name:<16}{value}")


if __name__ == "__main__":
    main()
