"""How well the embedded judge agrees with clinicians on encounters that it has not learned from.

PROCTOR_DATA=… python bench/embedded_judge.py --format markdown      (the tables of docs/tasks/embedded-judge.md)

Nested cross-validation, five folds of whole encounters: designs, calibration and everything else are chosen
inside the training folds. The outer folds are drawn several times, and the figures averaged. Beside it: all
metrics on text (the best is chosen on these ratings), which dataset an answer is of (a constant for each),
the same judge without a look at other answers, and what folds that part encounters would have shown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

import numpy as np

from proctor.audits import ALL, CorrelationSettings, MetricScores, RatingCell, RatingCells, RatingsTable, paired
from proctor.core import generator
from proctor.results import people_ratings, rated_cases, similarity_scores
from proctor.runs import Store, import_systems
from proctor.stats import Contrast, Estimate, Sampled, average, contrast
from proctor.tasks.mediqa_eval import READER, SCHEME
from proctor.tasks.mediqa_eval.ratings import RATINGS
from proctor_train.mediqa_eval.embedded import (
    Held,
    Recipe,
    beside_best,
    out_of_fold_each,
    read_rated,
    scores_of,
    split_encounters,
)

LANGUAGES = ("en", "zh")

SET_ASIDE = 40
"""Encounters that nobody looked at while views and designs were thought out."""


Draws = Sequence[MetricScores]
"""The judge's scores from each draw of the outer folds (of a metric on text, the only ones)."""


@dataclass
class Found:
    """What was measured: rows of the tables, remarks, and how long it took."""

    held: list[Held] = field(default_factory=list)
    others: list[tuple[str, dict[str, Estimate]]] = field(default_factory=list)
    metrics: list[tuple[str, dict[str, tuple[Estimate, Contrast]]]] = field(default_factory=list)
    parted: dict[str, tuple[int, int]] = field(default_factory=dict)
    datasets: list[tuple[str, str, str, float | None, float | None]] = field(default_factory=list)
    seconds: float = 0.0


def stored(folder: Path, file: Path) -> Store:
    """The task's answers and ratings in a store."""
    benchmark = READER.load(folder)
    store = Store(file)
    recorded = RATINGS.read_ratings(folder / "ratings.csv", benchmark)
    asyncio.run(import_systems(store, benchmark, recorded, condition="video"))
    return store


def measured(folder: Path, recipe: Recipe, *, repeats: int, draws: int) -> Found:
    """Everything, on the task's ratings and encounters."""
    start = time.perf_counter()
    with TemporaryDirectory() as location:
        store = stored(folder, Path(location) / "runs.db")
        table, rated = people_ratings(store, READER.name), rated_cases(store, READER.name, SCHEME)
        store.close()
    keys, known = list(rated), read_rated(list(rated.values()))
    settings = CorrelationSettings(draws=draws)
    texts = similarity_scores(table, rated, SCHEME)

    def scored(chosen: Recipe, *, draw: int = 0, numbers: Sequence[int] = ()) -> list[MetricScores]:
        numbers = numbers or (chosen.kept,)
        tables = [(one, out_of_fold_each(one, chosen, numbers, folds_seed=recipe.seed + draw)) for one in known]
        return [
            scores_of("embedded-judge", keys, [(one, each[k]) for one, each in tables]) for k in range(len(numbers))
        ]

    kept = (recipe.kept, 1, recipe.designs)
    judge, one, everything = zip(*(scored(recipe, draw=k, numbers=kept) for k in range(repeats)), strict=True)
    found = Found(held=list(beside_best(table, judge, texts, settings)))
    leaking = replace(recipe, grouped=False)
    rows: list[tuple[str, Draws]] = [
        (f"nested, folds of whole encounters, mean over {repeats} draws (as above)", judge),
        *((f"the same, draw {k}", [scores]) for k, scores in enumerate(judge, start=1)),
        ("one design, the best of the inner folds", one),
        ("all designs averaged, none chosen", everything),
        ("without a look at other answers to the question (draw 1)", scored(replace(recipe, alone=True))),
        ("folds that part encounters (leaking; draw 1)", scored(leaking)),
        ("no judge: which dataset the answer is of", [by_dataset(table)]),
    ]
    frame = RatingCells(table, settings)
    found.others = [(name, estimates(frame, metric)) for name, metric in rows]
    found.metrics = beside_all(frame, judge, texts)
    found.parted = {one.answers.language: split_encounters(one, leaking) for one in known}
    best = {row.language: next(one for one in texts if one.name == row.other) for row in found.held}
    found.datasets = by_part(table, judge, best)
    found.others += unseen(table, judge, best, settings)
    found.seconds = time.perf_counter() - start
    return found


def figure(frame: RatingCells, draws: Draws, language: str) -> Sampled:
    """The mean over draws and over the language's dimensions."""
    cells = [cell for cell in frame.cells if (cell.dataset, cell.language) == (ALL, language)]
    return average([frame.measure(cell, *paired(cell, one)).mean for one in draws for cell in cells])


def estimates(frame: RatingCells, draws: Draws) -> dict[str, Estimate]:
    """The figure of each language."""
    return {language: figure(frame, draws, language).estimate() for language in LANGUAGES}


def beside_all(
    frame: RatingCells, judge: Draws, texts: Draws
) -> list[tuple[str, dict[str, tuple[Estimate, Contrast]]]]:
    """Each metric on text: its figures, and how far the judge is ahead."""
    own = {language: figure(frame, judge, language) for language in LANGUAGES}
    rows = []
    for metric in texts:
        theirs = {language: figure(frame, [metric], language) for language in LANGUAGES}
        rows.append((metric.name, {k: (theirs[k].estimate(), contrast(own[k], theirs[k])) for k in LANGUAGES}))
    return rows


def by_dataset(table: RatingsTable) -> MetricScores:
    """For every answer the mean rating in its dataset: what is reached without reading any answer. It is
    taken from the very ratings that it is compared with."""
    given: dict[tuple[str, str, str], list[float]] = {}
    for one in table.ratings:
        given.setdefault((one.dataset, one.language, one.dimension), []).append(one.value)
    means = {where: float(np.mean(values)) for where, values in given.items()}
    return MetricScores("dataset", {one.key: means[one.dataset, one.language, one.dimension] for one in table.ratings})


def by_part(
    table: RatingsTable, judge: Draws, best: dict[str, MetricScores]
) -> list[tuple[str, str, str, float | None, float | None]]:
    """Dataset, language, dimension, and the figures of the judge and of the best metric on text there."""
    frame = RatingCells(table, CorrelationSettings(draws=0))

    def value(cell: RatingCell, draws: Draws) -> float | None:
        return average([frame.measure(cell, *paired(cell, one)).mean for one in draws]).estimate().value

    return [
        (*(cell.dataset, cell.language, cell.dimension), value(cell, judge), value(cell, [best[cell.language]]))
        for cell in frame.cells
        if cell.dataset != ALL
    ]


def unseen(
    table: RatingsTable, judge: Draws, best: dict[str, MetricScores], settings: CorrelationSettings
) -> list[tuple[str, dict[str, Estimate]]]:
    """The same scores on the encounters that were set aside while the views were thought out, and on the rest."""
    groups = sorted({one.group for one in table.ratings})
    order = generator(0, "embedded-judge", "lockbox").permutation(len(groups))[:SET_ASIDE]
    aside = {groups[k] for k in order}
    rows = []
    for which, where in ((aside, "encounters set aside"), (set(groups) - aside, "development encounters")):
        part = tuple(one for one in table.ratings if one.group in which)
        frame = RatingCells(RatingsTable(part, table.order), settings)
        rows.append((f"nested, mean over draws, on {len(which)} {where}", estimates(frame, judge)))
        theirs = {language: figure(frame, [best[language]], language).estimate() for language in LANGUAGES}
        rows.append((f"the best metric on text, on {len(which)} {where}", theirs))
    return rows


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
            (
                f"{number(apart.value, sign=True)} ({number(apart.ci_low, sign=True)} to "
                f"{number(apart.ci_high, sign=True)})"
            ),
            chance(apart),
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| mean over the dimensions | English | Chinese |", "|---|---|---|"]
    lines += [f"| {name} | {shown(by['en'])} | {shown(by['zh'])} |" for name, by in found.others]
    lines += ["", "| metric on text | English | judge's lead, p | Chinese | judge's lead, p |", "|---|---|---|---|---|"]
    for name, by_language in sorted(found.metrics, key=lambda row: -(row[1]["zh"][0].value or 0.0)):
        both = (
            cell
            for one, lead in by_language.values()
            for cell in (shown(one), f"{number(lead.value, sign=True)}, {chance(lead)}")
        )
        lines.append(f"| {' | '.join((f'`{name}`', *both))} |")
    lines += ["", "| dataset | language | dimension | embedded judge | best metric on text |", "|---|---|---|---|---|"]
    lines += [
        f"| {dataset} | {language} | `{dimension}` | {number(own)} | {number(other)} |"
        for dataset, language, dimension, own, other in found.datasets
    ]
    leaks = "; ".join(f"{language}: {parted} of {whole}" for language, (parted, whole) in found.parted.items())
    return "\n".join([*lines, "", f"Encounters that the leaking folds part: {leaks}."])


def shown(one: Estimate) -> str:
    """Value and interval."""
    return f"{number(one.value)} ({number(one.ci_low)} to {number(one.ci_high)})"


def chance(one: Contrast) -> str:
    """p, or a dash where it is not known."""
    return "–" if one.p is None else f"{one.p:.2g}"


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
            {"name": name, **{language: one.value for language, one in means.items()}} for name, means in found.others
        ],
        "metrics": [
            {
                "name": name,
                **{language: one.value for language, (one, _) in by.items()},
                **{f"{language} lead": lead.value for language, (_, lead) in by.items()},
                **{f"{language} p": lead.p for language, (_, lead) in by.items()},
            }
            for name, by in found.metrics
        ],
        "parted": found.parted,
        "seconds": found.seconds,
    }


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=("markdown", "json"), default="markdown")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5, help="draws of the outer folds")
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
