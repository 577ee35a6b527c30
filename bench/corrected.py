"""Whether corrected scores cover what they say: by simulation, and on the ratings of MEDIQA-EVAL 2026.

python bench/corrected.py                           (coverage: 20 to 120 groups × 10 to 50 % drawn × correlation 0 to 0.9)
PROCTOR_DATA=… python bench/corrected.py --ratings  (the table of docs/tasks/corrected-scores.md)
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

import numpy as np

from proctor.core import number
from proctor.core import percent as share
from proctor.stats import FEWEST_DRAWN, CorrectedMean, Floats, Ints, corrected_mean

GROUPS = (20, 40, 60, 120)
DRAWN = (0.1, 0.3, 0.5)
CORRELATIONS = (0.0, 0.3, 0.6, 0.9)
FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures" / "corrected-scores.json"


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
    rng: np.random.Generator,
    judge: Floats,
    label: Floats,
    of: Ints,
    drawn: float,
    bounds: tuple[float, float] | None = None,
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
    return corrected_mean(judge, label, of, chance[of], inside[of], stratum[of], bounds=bounds)


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


class RatedCell(NamedTuple):
    """A language and dimension: the judge's scores and the raters' means, by answer, and the encounter of each."""

    name: str
    judge: Floats
    label: Floats
    of: Ints


def rated_cells(folder: Path) -> Iterator[RatedCell]:
    """The languages and dimensions that people rated, with the word overlap as the judge."""
    rated: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    overlap: dict[tuple[str, str, str, str], float] = {}
    for file in ("ratings.csv", "submission_overlap.csv"):
        with (folder / file).open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                answer = (row["encounter_id"], row["candidate_author_id"])
                if file == "ratings.csv":
                    rated[row["lang"], row["metric"]][answer].append(float(row["value"]))
                else:
                    overlap[row["lang"], row["metric"], *answer] = float(row["value"])
    for (lang, metric), answers in sorted(rated.items()):
        both = sorted(answer for answer in answers if (lang, metric, *answer) in overlap)
        numbers = {encounter: number for number, encounter in enumerate(dict.fromkeys(answer[0] for answer in both))}
        yield RatedCell(
            f"{lang} {metric}",
            np.array([overlap[lang, metric, *answer] for answer in both]),
            np.array([np.mean(answers[answer]) for answer in both]),
            np.array([numbers[answer[0]] for answer in both]),
        )


def ratings(folder: Path, repetitions: int) -> list[dict[str, object]]:
    """For each language and dimension: whether the interval of the judge alone covers the raters' mean of all answers, how
    many corrected intervals do with a third of the encounters drawn, and their width beside that of the labels alone."""
    rows: list[dict[str, object]] = []
    for position, one in enumerate(rated_cells(folder)):
        rng = np.random.default_rng([2026, position])
        groups, truth = int(one.of.max()) + 1, float(one.label.mean())
        whole = np.ones(len(one.of))
        alone = corrected_mean(one.judge, one.judge, one.of, whole, whole.astype(bool))
        found = [drawn_and_corrected(rng, one.judge, one.label, one.of, 1 / 3, (0.0, 1.0)) for _ in range(repetitions)]
        corrected = _cell([mean for mean in found if mean is not None], truth)
        assert corrected is not None
        rows.append(
            {
                "cell": one.name,
                "encounters": groups,
                "truth": truth,
                "judge": [alone.value, alone.labels_low, alone.labels_high],
                "judge_covers": alone.labels_low <= truth <= alone.labels_high,
                "covers": corrected.corrected,
                "labels_cover": corrected.labels,
                "width": corrected.width,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--ratings", action="store_true", help="the ratings of PROCTOR_DATA, and the page's figures")
    given = parser.parse_args()
    if given.ratings:
        rows = ratings(Path(os.environ["PROCTOR_DATA"]) / "mediqa-eval", given.repetitions)
        FIGURES.write_text(json.dumps({"repetitions": given.repetitions, "rows": rows}, indent=1) + "\n", "utf-8")
        for row in rows:
            print(json.dumps(row))
        return
    heads = ("groups", "drawn", "r", "corrected covers", "labels cover", "width", "widest")
    for line in (heads, *coverage(given.repetitions)):
        print("  ".join(f"{cell_text:>16}" for cell_text in line), flush=True)


if __name__ == "__main__":
    main()
