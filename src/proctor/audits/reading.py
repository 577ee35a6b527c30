"""Ratings and scores of any task, as plain tables."""

from __future__ import annotations

from pathlib import Path

from proctor.audits.ratings import Key, MetricScores, Rating, RatingsTable
from proctor.core import TableFault, TableRow, cell_number, printable, read_table

RATING_COLUMNS = ("item", "candidate", "system", "dimension", "rater", "value")
SCORE_COLUMNS = ("item", "system", "dimension", "value")


def read_ratings(file: Path) -> RatingsTable:
    """Ratings from a CSV file with the columns `item, candidate, system, dimension, rater, value`, and where
    they are wanted `group`, `dataset` and `language` (see `Rating`).

    Raises `InputError`, with the row, for anything else.
    """
    ratings: list[Rating] = []
    seen: dict[tuple[Key, str], int] = {}
    texts: dict[tuple[str, str], tuple[str, int]] = {}
    for row in read_table(file, RATING_COLUMNS).checked(file):
        cells = row.cells
        one = Rating(
            value=_value(file, row),
            **{name: _named(file, row, name) for name in ("item", "system", "dimension", "rater")},
            candidate=cells["candidate"],
            group=cells.get("group", ""),
            dataset=cells.get("dataset", ""),
            language=cells.get("language", ""),
        )
        first = seen.setdefault((one.key, one.rater), row.number)
        if first != row.number:
            found = f"a second rating by {one.rater!r}, after row {first}"
            raise TableFault(row.number, "rater", found, "one of each rater").error(file)
        text, where = texts.setdefault((one.item, one.system), (one.candidate, row.number))
        if text != one.candidate:
            raise TableFault(row.number, "candidate", "another text", f"that of row {where}").error(file)
        ratings.append(one)
    return RatingsTable(tuple(ratings))


def read_scores(file: Path, table: RatingsTable) -> MetricScores:
    """One metric's scores of rated answers from a CSV file with the columns `item, system, dimension, value`;
    a column `candidate`, where there is one, must hold the rated texts. The metric is named after the file.

    Raises `InputError`, with the row, for anything else: answers that nobody rated, two scores of one
    answer, and ratings without a score.
    """
    texts = {one.key: one.candidate for one in table.ratings}
    scores: dict[Key, float | None] = {}
    for row in read_table(file, SCORE_COLUMNS).checked(file):
        item, system, dimension = (_named(file, row, name) for name in SCORE_COLUMNS[:3])
        key = (item, system, dimension)
        value = _value(file, row)
        if key not in texts:
            raise TableFault(row.number, "", _shown(key), "an answer that was rated").error(file)
        if row.cells.get("candidate", texts[key]) != texts[key]:
            raise TableFault(row.number, "candidate", "another text", "the rated one").error(file)
        if key in scores:
            raise TableFault(row.number, "", f"{_shown(key)} again", "one score of each").error(file)
        scores[key] = value
    for key in table.keys:
        if key not in scores:
            raise TableFault(0, "", f"no score of {_shown(key)}", "one of every rated answer").error(file)
    return MetricScores(file.stem, scores)


def _shown(key: Key) -> str:
    return ", ".join(printable(part) for part in key)


def _named(file: Path, row: TableRow, column: str) -> str:
    text = row.cells[column]
    if not text.strip():
        raise TableFault(row.number, column, "nothing", "a name").error(file)
    return text


def _value(file: Path, row: TableRow) -> float:
    value = cell_number(row.cells["value"])
    if value is None:
        raise TableFault(row.number, "value", repr(row.cells["value"])[:80], "a finite number").error(file)
    return value
