"""MEDIQA-EVAL's files in a store, as `proctor import` puts them there."""

from __future__ import annotations

import asyncio
from pathlib import Path

from proctor.judges.dimensions import RatedCase
from proctor.results import rated_cases
from proctor.runs import Store, import_systems
from proctor.tasks.mediqa_eval import READER, SCHEME
from proctor.tasks.mediqa_eval.ratings import RATINGS


def stored(task: Path, store: Path, ratings: Path | None = None) -> Store:
    """A store with the task's answers and ratings."""
    benchmark = READER.load(task)
    recorded = RATINGS.read_ratings(ratings or task / "ratings.csv", benchmark)
    opened = Store(store)
    asyncio.run(import_systems(opened, benchmark, recorded, condition="video"))
    return opened


def rated_in(task: Path, folder: Path) -> dict[tuple[str, str], RatedCase]:
    """The rated answers of the task, by item and system."""
    return rated_cases(stored(task, folder / "rated.db"), "mediqa-eval", SCHEME)
