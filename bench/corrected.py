"""Whether corrected scores cover what they say: by simulation, and on the ratings of MEDIQA-EVAL 2026.

python bench/corrected.py                           (coverage: 20 to 120 groups × 10 to 50 % drawn × correlation 0 to 0.9)
PROCTOR_DATA=… python bench/corrected.py --ratings  (the table of docs/tasks/corrected-scores.md)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

import numpy as np

from proctor.core import number, plain_table
from proctor.core import percent as share
from proctor.stats import FEWEST_DRAWN, CorrectedMean, Floats, Ints, corrected_mean

GROUPS = (20, 40, 60, 120)
DRAWN = (0.1, 0.3, 0.5)
CORRELATIONS = (0.0, 0.3, 0.6, 0.9)
FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures" / "corrected-scores.md"


class Cell(NamedTuple):
    """What simulations of one cell say: shares of intervals that cover (corrected, labels alone, judge alone), the mean
    width beside that of the labels alone, and the largest one."""

    corrected: float
    labels: float
    judge: float
    width: float
    widest: float


def simulated(rng: np.random.Generator, groups: int, drawn: float, correlation: float) -> CorrectedMean | None:
    """A corrected mean of groups of one to nine items with true mean 0, drawn in two strata by the judge's group mean with a
    probability that is 1.5 times as high in the second; None with too few drawn groups."""
    sizes = rng.integers(1, 10, groups)
    of = np.repeat(np.arange(groups), sizes)
    common, own = rng.normal(size=(2, groups)), rng.normal(size=(2, len(of)))
    slope, rest = correlation, np.sqrt(1 - correlation**2)
    label = 0.6 * common[0][of] + 0.8 * own[0]
    judge = 0.5 + slope * label + rest * (0.6 * common[1][of] + 0.8 * own[1])
    return drawn_and_corrected(rng, judge, label, of, drawn)


def drawn_and_corrected(
    rng: np.random.Generator, judge: Floats, label: Floats, of: Ints, drawn: float
) -> CorrectedMean | None:
    """Draw groups in two strata by the judge's group mean, at least two in each, and correct."""
    groups = int(of.max()) + 1
    means = np.bincount(of, judge) / np.bincount(of)
    wanted = round(drawn * groups)
    if wanted < FEWEST_DRAWN:
        return None
    stratum = (np.argsort(np.argsort(means)) >= groups // 2).astype(np.int64)
    inside, chance = np.zeros(groups, dtype=bool), np.zeros(groups)
    low = max(2, round(0.4 * wanted))
    for layer, number_of in ((0, low), (1, wanted - low)):
        members = np.flatnonzero(stratum == layer)
        inside[rng.choice(members, min(number_of, len(members)), replace=False)] = True
        chance[members] = min(1.0, number_of / len(members))
    return corrected_mean(judge, label, of, chance[of], inside[of], stratum[of])


def cell(groups: int, drawn: float, correlation: float, repetitions: int) -> Cell | None:
    """The figures of one cell; None where too few groups are drawn."""
    rng = np.random.default_rng([groups, round(drawn * 100), round(correlation * 100)])
    found = [simulated(rng, groups, drawn, correlation) for _ in range(repetitions)]
    return _cell([one for one in found if one is not None], 0.0)


def _cell(found: list[CorrectedMean], truth: float) -> Cell | None:
    if not found:
        return None
    widths = [one.relative_width for one in found]
    reach = [(one.ci_high - one.ci_low) / 2 for one in found]
    return Cell(
        float(np.mean([one.ci_low <= truth <= one.ci_high for one in found])),
        float(np.mean([one.labels_low <= truth <= one.labels_high for one in found])),
        float(np.mean([abs(one.judge_alone - truth) <= half for one, half in zip(found, reach, strict=True)])),
        float(np.mean(widths)),
        max(widths),
    )


def coverage(repetitions: int) -> Iterator[tuple[str, ...]]:
    """The rows of the table of simulations."""
    for groups, drawn, correlation in product(GROUPS, DRAWN, CORRELATIONS):
        found = cell(groups, drawn, correlation, repetitions)
        lead = (str(groups), share(drawn), number(correlation))
        if found is None:
            yield (*lead, "refused", "", "", "")
        else:
            yield (*lead, share(found.corrected), share(found.labels), number(found.width), number(found.widest))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    given = parser.parse_args()
    heads = (">groups", ">drawn", ">r", ">corrected covers", ">labels cover", ">width", ">widest")
    table = plain_table("Coverage of intervals of 95 %", heads, list(coverage(given.repetitions)))
    print(table)


if __name__ == "__main__":
    main()
