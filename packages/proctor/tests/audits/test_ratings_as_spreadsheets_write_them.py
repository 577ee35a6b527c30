"""Tables of ratings and scores in the forms that spreadsheets give them, and groups that contradict each other."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from proctor.audits import read_metrics, read_ratings, read_scores
from proctor.core import InputError

RATED = [["item", "system", "rater", "value", "group"]]
RATED += [[f"q{k}", "a,b", rater, value, f"g{k}"] for k in range(3) for rater, value in (("r1", "0.5"), ("r2", "2"))]
SCORED = [["item", "system", "m1", "m2"], *([f"q{k}", "a,b", f"{k}.25", "7"] for k in range(3))]


def written(file: Path, rows: list[list[str]], delimiter: str, score: str, comma: bool) -> Path:
    """As a spreadsheet of that country writes it: numbers with a comma, where something else separates columns."""
    lines = io.StringIO(newline="")
    told = [[one.replace(".", ",") if comma and one[0].isdigit() else one for one in row] for row in rows]
    csv.writer(lines, delimiter=delimiter, lineterminator="\r\n").writerows(told)
    file.write_bytes((score + lines.getvalue()).encode())
    return file


@pytest.mark.parametrize("score", ["", "\ufeff"])
@pytest.mark.parametrize(("delimiter", "comma"), [(",", False), (";", True), (";", False), ("\t", True)])
def test_the_same_table_in_every_form(delimiter: str, comma: bool, score: str, tmp_path: Path) -> None:
    plain = read_ratings(written(tmp_path / "plain.csv", RATED, ",", "", False))
    table = read_ratings(written(tmp_path / "r.csv", RATED, delimiter, score, comma))
    assert table == plain
    assert [(one.system, one.value, one.group) for one in table.ratings][:3] == [
        ("a,b", 0.5, "g0"), ("a,b", 2.0, "g0"), ("a,b", 0.5, "g1"),
    ]  # fmt: skip
    one, two = read_metrics(written(tmp_path / "wide.csv", SCORED, delimiter, score, comma), table)
    assert [one.scores[f"q{k}", "a,b", "quality"] for k in range(3)] == [0.25, 1.25, 2.25]
    assert set(two.scores.values()) == {7.0}
    long = [["item", "system", "value"], *(row[:3] for row in SCORED[1:])]
    assert read_scores(written(tmp_path / "s.csv", long, delimiter, score, comma), table).scores == one.scores


def test_an_answer_is_of_one_group(tmp_path: Path) -> None:
    rows = [*RATED[:4], [*RATED[4][:4], "g9"], *RATED[5:]]
    with pytest.raises(InputError, match=r"r\.csv: row 5, column 'group': found another group, expected that of row 4"):
        read_ratings(written(tmp_path / "r.csv", rows, ",", "", False))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "item;system;rater\nq;s;r\n",
            "row 1: found no column of the ratings among 'item', 'system', 'rater', expected one, or --map value=COLUMN",
        ),
        ("item;system;rater;value\nq;s;r;high\n", "row 2, column 'value': found 'high', expected a finite number"),
        ("item;system;rater;value\nq;s;r\n", "row 2: found 3 columns, expected 4 columns"),
    ],
)
def test_faults_keep_their_place(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"r.csv: {said}"):
        read_ratings(tmp_path / "r.csv")
