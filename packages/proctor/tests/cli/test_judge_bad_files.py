"""Answers that can't be read, in more than twenty ways: one line that names the row, no call, nothing written."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.dimension_cases import ENGLISH
from tests.support.program import within

COLUMNS = ("dataset", "encounter_id", "lang", "candidate", "candidate_author_id", "metric", "rater_id", "value")
LOOKED_AT = "dataset, encounter_id, lang, candidate, candidate_author_id, metric"


def rows() -> list[list[str]]:
    """Two systems' answers on six dimensions: rows 2 to 13 of a file."""
    return [
        ["iiyi", "E1", "en", f"Answer of {system}", system, name, "A", "1.0"]
        for system in ("S1", "S2")
        for name in ENGLISH
    ]


def text(lines: Sequence[Sequence[str]], header: Sequence[str] = COLUMNS, delimiter: str = ",") -> str:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter).writerows([header, *lines])
    return out.getvalue()


def changed(row: int, column: str, cell: str) -> str:
    lines = rows()
    lines[row - 2][COLUMNS.index(column)] = cell
    return text(lines)


def without(column: str) -> str:
    index = COLUMNS.index(column)
    kept = [[cell for number, cell in enumerate(row) if number != index] for row in rows()]
    return text(kept, [name for name in COLUMNS if name != column])


BAD: dict[str, tuple[str | bytes, str]] = {
    "semicolons": (text(rows(), delimiter=";"), "row 1: found ';' between the columns, expected commas"),
    "tabs": (text(rows(), delimiter="\t"), "row 1: found tabs between the columns, expected commas"),
    "bars": (text(rows(), delimiter="|"), "row 1: found '|' between the columns, expected commas"),
    "byte order mark": (text(rows()).encode("utf-8-sig"), "row 1: found a byte order mark, expected UTF-8 without one"),
    "UTF-16": (text(rows()).encode("utf-16"), "row 1: found UTF-16, expected UTF-8"),
    "UTF-16 without a score": (text(rows()).encode("utf-16-le"), "row 1: found a zero byte, expected UTF-8"),
    "GBK": (
        changed(3, "candidate", "湿疹").encode("gbk"),
        "row 3: found the byte 0xd5, which is not UTF-8, expected UTF-8",
    ),
    "zero byte": (changed(4, "candidate", "Ecz\0ema"), "row 4: found a zero byte, expected UTF-8"),
    "empty file": ("", f"found an empty file, expected the columns {LOOKED_AT}"),
    "header alone": (text([]), "found no rows, expected one or more below the header"),
    "no header": (
        text(rows()[1:], header=rows()[0]),
        f"row 1: found no column 'dataset', expected the columns {LOOKED_AT}",
    ),
    "no column for the candidate": (
        without("candidate"),
        f"row 1: found no column 'candidate', expected the columns {LOOKED_AT}",
    ),
    "no column for the dimension": (
        without("metric"),
        f"row 1: found no column 'metric', expected the columns {LOOKED_AT}",
    ),
    "column twice": (
        text([[*row, "x"] for row in rows()], (*COLUMNS, "candidate")),
        "row 1: found two columns 'candidate', expected each column once",
    ),
    "short row": (text([*rows()[:4], rows()[4][:-1], *rows()[5:]]), "row 6: found 7 columns, expected 8 columns"),
    "comma without quotes": (
        text(rows()).replace("Answer of", "Answer, of", 1),
        "row 2: found 9 columns, expected 8 columns",
    ),
    "open quote": (
        text(rows()).replace("Answer of", '"Answer of', 1),
        "row 2: found broken quotes (unexpected end of data), expected a row of CSV",
    ),
    "unknown language": (changed(9, "lang", "fr"), "row 9, column 'lang': found 'fr', expected one of en, zh"),
    "no language": (changed(9, "lang", ""), "row 9, column 'lang': found nothing, expected one of en, zh"),
    "unknown dataset": (
        changed(9, "dataset", "Iiyi"),
        "row 9, column 'dataset': found 'Iiyi', expected one of iiyi, woundcare",
    ),
    "a dimension of the other language": (
        changed(2, "metric", "factual-consistency-wgold"),
        (
            "row 2, column 'metric': found 'factual-consistency-wgold', expected one of disagree_flag, completeness, "
            "factual-accuracy, relevance, writing-style, overall"
        ),
    ),
    "no encounter": (changed(9, "encounter_id", ""), "row 9, column 'encounter_id': found nothing, expected a name"),
    "no system": (
        changed(9, "candidate_author_id", " "),
        "row 9, column 'candidate_author_id': found ' ', expected a name",
    ),
    "a row without candidate": (
        changed(4, "candidate", ""),
        "row 4, column 'candidate': found another text, expected that of row 2",
    ),
    "two candidates for one key": (
        text([*rows(), ["iiyi", "E1", "en", "Something else.", *rows()[0][4:6], "B", "1.0"]]),
        "row 14, column 'candidate': found another text, expected that of row 2",
    ),
}


def encounters(folder: Path) -> Path:
    """The folder of the task's data."""
    data = folder / "data"
    data.mkdir()
    one = {"dataset": "iiyi", "encounter_id": "E1", "lang": "en", "query": "?", "references": ["Eczema."]}
    (data / "encounters.jsonl").write_text(json.dumps(one), encoding="utf-8")
    return data


def imported(folder: Path, ratings: Path, *more: str) -> tuple[int, str]:
    store = folder / "runs.db"
    return within("import", "mediqa-eval", ratings, "--data", encounters(folder), "--store", store, *more)


@pytest.mark.parametrize("more", [(), ("--answers-only",)])
@pytest.mark.parametrize("name", BAD)
def test_bad_answers_are_told_in_one_line_and_nothing_is_written(
    name: str, more: tuple[str, ...], tmp_path: Path
) -> None:
    ratings = tmp_path / "ratings.csv"
    content, said = BAD[name]
    ratings.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert imported(tmp_path, ratings, *more) == (1, f"proctor: {ratings}: {said}\n")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data", "ratings.csv"]


def test_twenty_ways_and_more() -> None:
    assert len(BAD) >= 20


@pytest.mark.parametrize("value", ["good", "NaN", "", "-1", "7", "1,5"])
def test_what_stands_in_value_is_looked_at_for_ratings_alone(value: str, tmp_path: Path) -> None:
    ratings = tmp_path / "ratings.csv"
    ratings.write_text(changed(5, "value", value), encoding="utf-8", newline="")
    code, said = imported(tmp_path, ratings, "--answers-only")
    assert (code, "1 answer with 0 ratings as S2" in said) == (0, True), said
    (tmp_path / "other").mkdir()
    code, said = imported(tmp_path / "other", ratings)
    assert (code, "row 5, column 'value': found" in said) == (1, True), said


def test_no_such_file(tmp_path: Path) -> None:
    code, said = imported(tmp_path, tmp_path / "none.csv")
    assert (code, said) == (1, f"proctor: {tmp_path / 'none.csv'}: found no such file, expected a CSV file\n")
