"""Whether hiding the evidence takes away what a system looks at, and hiding as much elsewhere does not: `classical-vision` on
simulated procedures, whose questions say where and when their answer is visible.

python bench/evidence.py --videos 24                (the table of docs/reference/conditions.md; 4 minutes of one core)
python bench/evidence.py --videos 24 --format json  (the same for programs)
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

import numpy as np

import proctor
from proctor.core import ACCURACY, Item, interval, percent, points
from proctor.results import load_items, reliances
from proctor.results.run_scores import load_run_scores
from proctor.stats import Resampling, mean_interval, paired_difference
from proctor.tasks.simulated import READER, simulate

SYSTEM = "classical-vision"
CONDITIONS = ("video", "occlude-elsewhere", "occlude-evidence", "black")
SIZE = (256, 144)


def scores(made: proctor.Evaluation, condition: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Right (1), wrong (0) or not asked (NaN), in the order of the store's items."""
    card = made.store.card(made.benchmark)
    items = load_items(made.store, card)
    (run,) = [run for run in made.store.runs(made.benchmark) if (run.system, run.condition) == (SYSTEM, condition)]
    (one,) = [part for part in load_run_scores(made.store, run, items, card) if part.metric.name == ACCURACY.name]
    return np.where(one.scorable, one.scores, np.nan)


def chance_of(item: Item) -> float | None:
    """The chance level of one question; None for a format that has none (counts, kinds, times)."""
    return None if item.reference is None else item.answer.chance([item.reference.answer], item.options)


def rows_of(made: proctor.Evaluation) -> list[dict[str, Any]]:
    """A row for all questions that were asked under all conditions, for those with a chance level, and for each format."""
    by_id = {item.id: item for item in made.store.items(made.benchmark)}
    table = load_items(made.store, made.store.card(made.benchmark))
    items = [by_id[name] for name in table.ids]
    found = {name: scores(made, name) for name in CONDITIONS}
    both = ~np.isnan(found["occlude-elsewhere"]) & ~np.isnan(found["occlude-evidence"])
    chances = np.array([np.nan if (level := chance_of(item)) is None else level for item in items])
    kinds = np.array([item.answer.kind for item in items])
    parts: dict[str, Any] = {"all": both, "with a chance level": both & ~np.isnan(chances)}
    parts |= {str(kind): both & (kinds == kind) for kind in np.unique(kinds[both])}
    rows = []
    for name, kept in parts.items():
        row: dict[str, Any] = {"questions": name, "n": int(kept.sum())}
        row["chance"] = None if np.isnan(chances[kept]).any() else float(chances[kept].mean())
        for condition in CONDITIONS:
            one = mean_interval(found[condition][kept], table.group[kept], Resampling(bounds=(0, 1)))
            row[condition] = [one.value, one.ci_low, one.ci_high]
        rows.append(row)
    return rows


NEAR = 0.02
"""How far hiding as much elsewhere may move the accuracy at most."""


def claims_of(made: proctor.Evaluation) -> dict[str, Any]:
    """The two claims, each on the same questions, with an interval over videos: what hiding elsewhere costs (`elsewhere`
    minus `video`), and what is left above chance without the evidence, of questions with a chance level."""
    by_id = {item.id: item for item in made.store.items(made.benchmark)}
    table = load_items(made.store, made.store.card(made.benchmark))
    found = {name: scores(made, name) for name in CONDITIONS}
    levels = np.array([np.nan if (level := chance_of(by_id[name])) is None else level for name in table.ids])
    claims: dict[str, Any] = {}
    for name, moved, still in (
        ("elsewhere - video", found["occlude-elsewhere"], found["video"]),
        ("evidence - chance", found["occlude-evidence"], levels),
        ("evidence - black", found["occlude-evidence"], found["black"]),
    ):
        both = ~np.isnan(moved) & ~np.isnan(still) & ~np.isnan(found["occlude-elsewhere"])
        gap = paired_difference(moved[both], still[both], table.group[both], Resampling(bounds=(0, 1)))
        claims[name] = {
            "n": gap.n,
            "groups": gap.groups,
            "difference": gap.value,
            "interval": [gap.ci_low, gap.ci_high],
            "p": gap.p,
        }
    low, high = claims["elsewhere - video"]["interval"]
    claims["elsewhere - video"]["within 2 points"] = abs(claims["elsewhere - video"]["difference"]) <= NEAR
    claims["elsewhere - video"]["interval within 2 points"] = bool(low >= -NEAR and high <= NEAR)
    low, high = claims["evidence - chance"]["interval"]
    claims["evidence - chance"]["chance within the interval"] = bool(low <= 0 <= high)
    return claims


def claim_lines(claims: dict[str, Any]) -> list[str]:
    """A line for each claim, with what is true of it."""
    lines = []
    for name, one in claims.items():
        says = "; ".join(f"{what}: {'yes' if kept else 'no'}" for what, kept in one.items() if isinstance(kept, bool))
        gap = points(ACCURACY, one["difference"], *one["interval"])
        lines.append(
            f"{name}: {gap}, p {one['p']:.2g}, {one['n']} questions in {one['groups']} videos"
            + (f". {says}" if says else "")
        )
    return lines


def shown(row: dict[str, Any]) -> list[str]:
    """The cells of a row."""
    cells = [row["questions"], str(row["n"]), "–" if row["chance"] is None else percent(row["chance"])]
    for condition in CONDITIONS:
        value, low, high = row[condition]
        cells.append(f"{percent(value)} ({interval(ACCURACY, low, high)})")
    return cells


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=24, help="how many are simulated")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="proctor-evidence-") as named:
        folder = simulate(Path(named) / "data", videos=given.videos, seed=given.seed, size=SIZE)
        made = proctor.run(
            READER.load(folder),
            [SYSTEM],
            conditions=list(CONDITIONS),
            store=Path(named) / "runs.db",
            media=folder,
            cache=Path(named) / "cache",
            baselines=False,
        )
        rows, claims = rows_of(made), claims_of(made)
        (lost,) = reliances(made.store, made.benchmark, made.store.runs(made.benchmark))
        asked = {name: int(np.sum(~np.isnan(scores(made, name)))) for name in CONDITIONS}
    if given.format == "json":
        print(json.dumps({"rows": rows, "claims": claims, "reliance": lost.to_json(), "asked": asked}, indent=1))
        return
    heads = ["Questions", "n", "Chance", *CONDITIONS]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(shown(row))} |")
    each = lost.comparison.difference
    print(
        f"\nReliance {points(ACCURACY, each.value, each.ci_low, each.ci_high)}, p {each.p:.2g}, {each.n} questions in "
        f"{each.groups} videos. Asked: {asked}"
    )
    print("\n".join(claim_lines(claims)))


if __name__ == "__main__":
    main()
