"""Tables of scores and ratings, from files, frames or rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.api.options import listed
from proctor.core import InputError

if TYPE_CHECKING:
    from proctor.audits import MetricScores, RatingsTable


def tables_of(
    scores: Any, ratings: Any, scorers: Sequence[str], against: Sequence[str], *, allow_missing: bool
) -> tuple[RatingsTable, list[MetricScores]]:
    """Scores and ratings as `proctor.audit` takes them, read and matched (see `compared_tables`)."""
    from proctor.audits import compared_tables

    table = _rated(ratings)
    return compared_tables(table, _scored(scores, table), scorers, against, allow_missing=allow_missing)


def _rated(ratings: Any) -> RatingsTable:
    from proctor.audits import RatingsTable, read_ratings

    if isinstance(ratings, RatingsTable):
        return ratings
    with _as_file(ratings, "ratings") as file:
        return read_ratings(file)


def _scored(scores: Any, table: RatingsTable) -> list[MetricScores]:
    from proctor.audits import MetricScores, read_metrics

    named = list(scores.items()) if isinstance(scores, Mapping) else [("", one) for one in listed(scores)]
    found = []
    for name, one in named:
        if isinstance(one, MetricScores):
            found.append(one)
            continue
        with _as_file(one, name or "scores") as file:
            read = read_metrics(file, table, allow_missing=True)
        if name and len(read) > 1:
            raise InputError(name, found=f"{len(read)} metrics", expected="one of each name, or a list of tables")
        found += [replace(read[0], name=name)] if name else read
    return found


@contextmanager
def _as_file(given: Any, name: str) -> Iterator[Path]:
    """A path as it is; a frame, or rows, as a file, since one reader checks them all. Errors name it as it is
    called."""
    if isinstance(given, str | Path):
        yield Path(given)
        return
    import pandas as pd

    with tempfile.TemporaryDirectory(prefix="proctor-") as folder:
        file = Path(folder) / name
        pd.DataFrame(given).to_csv(file, index=False)
        try:
            yield file
        except InputError as error:
            raise InputError(str(error).replace(f"{folder}{os.sep}", "")) from None
