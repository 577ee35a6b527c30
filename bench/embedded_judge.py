"""How well the embedded judge agrees with clinicians on encounters that it has not learned from.

PROCTOR_DATA=… python bench/embedded_judge.py --format markdown      (the tables of docs/tasks/embedded-judge.md)

Nested cross-validation, five folds of whole encounters: designs, calibration and everything else are chosen
inside the training folds. Beside it: the best metric on text (chosen on these very ratings), which dataset an
answer is of (a constant for each), the same judge without a look at other answers, other outer folds, and what
folds that part encounters would have shown.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from proctor.audit import CorrelationSettings, MetricScores, RatingsTable, audit
from proctor.benchmarks.mediqa_eval import read_encounters, read_native_ratings, text_scores
from proctor.benchmarks.mediqa_eval.answers import rated_cases
from proctor.core import generator
from proctor.judges.embedded import (
    Held,
    Recipe,
    beside_best,
    out_of_fold_each,
    read_rated,
    scores_of,
    split_encounters,
)
from proctor.stats import Estimate

SET_ASIDE = 40
"""Encounters that nobody looked at while views and designs were thought out."""


@dataclass
class Found:
    """What was measured: rows of two tables, remarks, and how long it took."""

    held: list[Held] = field(default_factory=list)
    others: list[tuple[str, str, list[tuple[str, Estimate]]]] = field(default_factory=list)
    parted: dict[str, tuple[int, int]] = field(default_factory=dict)
    datasets: list[tuple[str, str, str, float | None, float | None]] = field(default_factory=list)
    seconds: float = 0.0


def measured(folder: Path, recipe: Recipe, *, repeats: int, draws: int) -> Found:
    """Everything, on the task's ratings and encounters."""
    start = time.perf_counter()
    table = read_native_ratings(folder / "ratings.csv")
    encounters = read_encounters(folder / "encounters.jsonl")
    rated = rated_cases(table, encounters)
    keys, known = list(rated), read_rated(list(rated.values()))
    settings = CorrelationSettings(draws=draws)
    texts = text_scores(table, encounters)

    def scored(chosen: Recipe, *, seed: int | None = None, numbers: Sequence[int] = ()) -> list[MetricScores]:
        numbers = numbers or (chosen.kept,)
        tables = [(one, out_of_fold_each(one, chosen, numbers, folds_seed=seed)) for one in known]
        return [
            scores_of("embedded-judge", keys, [(one, each[k]) for one, each in tables])
            for k in range(len(numbers))
        ]

    judge, one, everything = scored(recipe, numbers=(recipe.kept, 1, recipe.designs))
    found = Found(held=list(beside_best(table, judge, texts, settings)))
    leaking = replace(recipe, grouped=False)
    rows = [
        ("nested, folds of whole encounters (as above)", judge),
        *(
            (f"the same, outer folds drawn anew ({k})", scored(recipe, seed=recipe.seed + k)[0])
            for k in range(1, repeats)
        ),
        ("without a look at other answers to the question", scored(replace(recipe, alone=True))[0]),
        ("one design, the best of the inner folds", one),
        ("all designs averaged, none chosen", everything),
        ("folds that part encounters (leaking)", scored(leaking)[0]),
        ("no judge: which dataset the answer is of", by_dataset(table)),
    ]
    found.others = [("", name, figures(table, metric, settings)) for name, metric in rows]
    found.parted = {one.answers.language: split_encounters(one, leaking) for one in known}
    found.datasets = by_part(table, judge, {row.language: row.other for row in found.held}, texts)
    found.others += unseen(table, judge, texts, found.held, settings)
    found.seconds = time.perf_counter() - start
    return found


def figures(
    table: RatingsTable, metric: MetricScores, settings: CorrelationSettings
) -> list[tuple[str, Estimate]]:
    """The mean over each language's dimensions."""
    return [(one.language, one.mean) for one in audit(table, metric, settings).aggregates]


def by_dataset(table: RatingsTable) -> MetricScores:
    """For every answer the mean rating in its dataset: what is reached without reading any answer. It is
    taken from the very ratings that it is held against."""
    given: dict[tuple[str, str, str], list[float]] = {}
    for one in table.ratings:
        given.setdefault((one.dataset, one.language, one.dimension), []).append(one.value)
    means = {where: float(np.mean(values)) for where, values in given.items()}
    return MetricScores(
        "dataset", {one.key: means[one.dataset, one.language, one.dimension] for one in table.ratings}
    )


def by_part(
    table: RatingsTable, judge: MetricScores, best: dict[str, str], texts: Sequence[MetricScores]
) -> list[tuple[str, str, str, float | None, float | None]]:
    """Dataset, language, dimension, and the figures of the judge and of the best metric on text there."""
    plain = CorrelationSettings(draws=0)
    own = audit(table, judge, plain).agreements
    theirs = {
        language: {
            (row.dataset, row.dimension): row.mean.value
            for row in audit(table, next(one for one in texts if one.name == name), plain).agreements
            if row.language == language
        }
        for language, name in best.items()
    }
    return [
        (
            row.dataset,
            row.language,
            row.dimension,
            row.mean.value,
            theirs[row.language][row.dataset, row.dimension],
        )
        for row in own
    ]


def unseen(
    table: RatingsTable,
    judge: MetricScores,
    texts: Sequence[MetricScores],
    held: Sequence[Held],
    settings: CorrelationSettings,
) -> list[tuple[str, str, list[tuple[str, Estimate]]]]:
    """The same scores on the encounters that were set aside while the views were thought out."""
    groups = sorted({one.group for one in table.ratings})
    order = generator(0, "embedded-judge", "lockbox").permutation(len(groups))[:SET_ASIDE]
    aside = {groups[k] for k in order}
    part = RatingsTable(tuple(one for one in table.ratings if one.group in aside), table.order)
    best = {row.language: row.other for row in held}
    metrics = {one.name: one for one in texts}
    theirs = [
        figure
        for language, name in best.items()
        for figure in figures(part, metrics[name], settings)
        if figure[0] == language
    ]
    where = f"on {len(aside)} encounters set aside"
    return [
        (where, "nested, grouped folds", figures(part, judge, settings)),
        (where, "the best metric on text", theirs),
    ]


def markdown(found: Found) -> str:
    """The tables of the page."""
    lines = [
        "| language | dimension | embedded judge | best metric on text | difference | p |",
        "|---|---|---|---|---|---|",
    ]
    for row in found.held:
        apart = row.difference
        cells = (
            *(row.language, f"`{row.dimension}`" if row.dimension else "**mean of all**", shown(row.judge)),
            *(f"{shown(row.beside)} (`{row.other}`)" if not row.dimension else shown(row.beside),),
            f"{number(apart.value, sign=True)} ({number(apart.ci_low, sign=True)} to {number(apart.ci_high, sign=True)})",
            "–" if apart.p is None else f"{apart.p:.2g}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| mean over the dimensions | English | Chinese |", "|---|---|---|"]
    for where, name, means in found.others:
        by = dict(means)
        lines.append(
            f"| {', '.join(part for part in (name, where) if part)} | {shown(by['en'])} | {shown(by['zh'])} |"
        )
    lines += [
        "",
        "| dataset | language | dimension | embedded judge | best metric on text |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {dataset} | {language} | `{dimension}` | {number(own)} | {number(other)} |"
        for dataset, language, dimension, own, other in found.datasets
        if dataset != "ALL"
    ]
    leaks = "; ".join(
        f"{language}: {parted} of {whole}" for language, (parted, whole) in found.parted.items()
    )
    return "\n".join([*lines, "", f"Encounters that the leaking folds part: {leaks}."])


def shown(one: Estimate) -> str:
    """Value and interval."""
    return f"{number(one.value)} ({number(one.ci_low)} to {number(one.ci_high)})"


def number(value: float | None, *, sign: bool = False) -> str:
    """Three digits, or a dash for what is not known."""
    return "–" if value is None else f"{value:+.3f}" if sign else f"{value:.3f}"


def plain(found: Found) -> dict[str, object]:
    """The same for programs."""
    return {
        "held": [
            {
                "language": row.language,
                "dimension": row.dimension or "ALL",
                "judge": row.judge.value,
                "other": row.other,
                "beside": row.beside.value,
                "difference": row.difference.value,
                "p": row.difference.p,
            }
            for row in found.held
        ],
        "others": [
            {"where": where, "name": name, **{language: one.value for language, one in means}}
            for where, name, means in found.others
        ],
        "parted": found.parted,
        "seconds": found.seconds,
    }


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--format", choices=("markdown", "json"), default="markdown")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=2, help="draws of the outer folds")
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap draws behind each interval")
    options = parser.parse_args()
    folder = os.environ.get("PROCTOR_DATA")
    if not folder:
        parser.error("PROCTOR_DATA must name the folder of real data")
    found = measured(
        Path(folder) / "mediqa-eval", Recipe(seed=options.seed), repeats=options.repeats, draws=options.draws
    )
    print(json.dumps(plain(found), indent=1) if options.format == "json" else markdown(found))


if __name__ == "__main__":
    main()
