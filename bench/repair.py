"""What the published and the repaired questions give away, by cross-validation over videos: `python bench/repair.py`.

The questions of ReXSonoVQA are repaired by `accepted_repair`, or read from the folder `--repaired`. Every baseline of the
item audit is tried before and after: those that are asked for by name, and the best of all. Folds are whole videos; with
`--folds pool` whole pools of videos that exchange options, as in the item audit. By video a learned baseline may know
right answers of the item's own pool. Exit code 1 if a baseline that is asked for is above `--most` after the repair.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from proctor.audits.items.assignment import Assignment, answered_together
from proctor.audits.items.audit import fold_units, option_pools
from proctor.audits.items.baselines import BaselineComparison, BaselineResult, fold_of_groups, rule_baselines
from proctor.audits.items.classifiers import learned_baselines, once_rules
from proctor.audits.items.options import OptionTable, right_options
from proctor.core import Item, option_writer, percent, reader_of
from proctor.metrics import chance_of
from proctor_build.repair import RepairSettings, accepted_repair

WANTED = (
    "shortest-option", "longest-option", "nearest-to-question", "nearest-in-characters", "logistic-features",
    "boosting-features", "logistic-words", "logistic-pairs", "similar-questions", "nearest-to-question-once",
    "nearest-in-characters-once", "logistic-features-once", "boosting-features-once", "logistic-words-once", "logistic-pairs-once",
)  # fmt: skip


def tried(items: Sequence[Item], folds: str, draws: int) -> dict[str, BaselineResult]:
    """All baselines by name, best first."""
    table = OptionTable(items, 0)
    right = right_options(table)
    fold = fold_of_groups([item.group for item in items] if folds == "video" else fold_units(items), 0)
    count, assignment = int(fold.max()) + 1, Assignment(table)
    baselines = [*rule_baselines(table, right, count), *once_rules(table, right, count, assignment)]
    baselines += learned_baselines(table, right, fold, 0, assignment)
    chance = np.array([chance_of(item) or 0.0 for item in items])
    results = BaselineComparison(items, fold, chance, draws, 0).results(baselines)
    return {result.name: result for result in results}


def shown(result: BaselineResult | None) -> str:
    """An accuracy with its interval by video."""
    if result is None:
        return "-"
    accuracy = result.accuracy
    return f"{percent(accuracy.value)} ({percent(accuracy.ci_low)} to {percent(accuracy.ci_high)})"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("PROCTOR_DATA", "data")))
    parser.add_argument("--repaired", type=Path, help="a folder written by proctor build repair")
    parser.add_argument("--folds", choices=("video", "pool"), default="video")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--most", type=float, default=0.33)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    reader = reader_of("rexsonovqa")
    loaded = reader.load(given.data / "rexsonovqa")
    before = [item for item in loaded.counted() if item.options]
    if given.repaired:
        after = [item for item in reader.load(given.repaired).counted() if item.options]
    else:
        settings = RepairSettings(seed=given.seed, same=tuple(option_writer("rexsonovqa", given.data).exchange_within))
        after = list(accepted_repair(before, settings, beside=loaded.items)[0].items.values())
    old, new = (tried(items, given.folds, given.draws) for items in (before, after))
    print(f"{len(after)} of {len(before)} items; folds: {given.folds}; 95 % intervals by video")
    print(f"{'baseline':30s} {'before':28s} after")
    for name in WANTED:
        print(f"{name:30s} {shown(old.get(name)):28s} {shown(new.get(name))}")
    for name, result in list(new.items())[:3]:
        print(f"best of {len(new)}: {name:30s} {shown(result)}")
    table = OptionTable(after, 0)
    right = right_options(table)
    if (pools := option_pools(table, right, draws=given.draws, seed=0)) is not None:
        print(f"knows all other right answers: {percent(pools.known.value)}")
    if (both := answered_together(table, right, seed=0)) is not None:
        print(
            f"right in {percent(both.alone)} alone: {percent(both.together)} if all questions are seen at once (simulated)"
        )
    raise SystemExit(any((new[name].accuracy.value or 0.0) > given.most for name in WANTED if name in new))


if __name__ == "__main__":
    main()
