"""MEDIQA-EVAL's files: the task's own figures come out, and bad files are told what is wrong."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from proctor.audits import CorrelationSettings, audit
from proctor.core import InputError
from proctor.results import people_ratings, rated_cases, similarity_scores
from proctor.tasks.mediqa_eval import SCHEME, official, read_encounters, read_native_ratings, read_submission
from proctor.tasks.mediqa_eval.native import COLUMNS, DIMENSIONS
from tests.support.mediqa_store import stored


def rows(values: dict[str, float] | None = None, rater: str = "A1") -> list[list[str]]:
    """Two encounters, two languages, two systems, all dimensions; 32 rows below the header."""
    return [
        [
            dataset,
            encounter,
            language,
            f"Answer of {system}.",
            system,
            dimension,
            rater,
            str((values or {}).get(dimension, 1.0)),
        ]
        for dataset, encounter in (("iiyi", "E1"), ("woundcare", "E2"))
        for language, dimensions in DIMENSIONS.items()
        for system in ("SYSTEM001", "SYSTEM002")
        for dimension in dimensions
    ]


def text(cells: list[list[str]], header: tuple[str, ...] = COLUMNS, delimiter: str = ",") -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerows([header, *cells])
    return out.getvalue()


def changed(row: int, column: str, value: str) -> str:
    """The file with one cell changed; `row` as a spreadsheet shows it."""
    cells = rows()
    cells[row - 2][COLUMNS.index(column)] = value
    return text(cells)


def appended(row: int, **cells: str) -> str:
    """The file with a copy of a row at its end (row 34), changed so."""
    copy = list(rows()[row - 2])
    for column, value in cells.items():
        copy[COLUMNS.index(column)] = value
    return text([*rows(), copy])


BAD_SUBMISSIONS: dict[str, tuple[str | bytes, str]] = {
    "semicolons": (text(rows(), delimiter=";"), "row 1: found ';' between the columns, expected commas"),
    "tabs": (text(rows(), delimiter="\t"), "row 1: found tabs between the columns, expected commas"),
    "byte order mark": (text(rows()).encode("utf-8-sig"), "row 1: found a byte order mark, expected UTF-8 without one"),
    "UTF-16": (text(rows()).encode("utf-16"), "row 1: found UTF-16, expected UTF-8"),
    "UTF-16 without a score": (text(rows()).encode("utf-16-le"), "row 1: found a zero byte, expected UTF-8"),
    "GBK": (
        changed(3, "candidate", "湿疹").encode("gbk"),
        "row 3: found the byte 0xd5, which is not UTF-8, expected UTF-8",
    ),
    "empty file": ("", f"found an empty file, expected the columns {', '.join(COLUMNS)}"),
    "header alone": (text([]), "found no rows, expected one or more below the header"),
    "no header": (
        text(rows()[1:], header=tuple(rows()[0])),
        f"row 1: found no column 'dataset', expected the columns {', '.join(COLUMNS)}",
    ),
    "missing column": (
        text([row[:-1] for row in rows()], COLUMNS[:-1]),
        f"row 1: found no column 'value', expected the columns {', '.join(COLUMNS)}",
    ),
    "column twice": (
        text([[*row, "0"] for row in rows()], (*COLUMNS, "value")),
        "row 1: found two columns 'value', expected each column once",
    ),
    "short row": (text([*rows()[:4], rows()[4][:-1], *rows()[5:]]), "row 6: found 7 columns, expected 8 columns"),
    "decimal comma": (text(rows()).replace(",1.0\r\n", ",0,5\r\n", 1), "row 2: found 9 columns, expected 8 columns"),
    "open quote": (
        text(rows()).replace("Answer of", '"Answer of', 1),
        "row 2: found broken quotes (unexpected end of data), expected a row of CSV",
    ),
    "text in value": (changed(5, "value", "good"), "row 5, column 'value': found 'good', expected a finite number"),
    "NaN": (changed(5, "value", "NaN"), "row 5, column 'value': found 'NaN', expected a finite number"),
    "infinity": (changed(5, "value", "1e999"), "row 5, column 'value': found '1e999', expected a finite number"),
    "no value": (changed(5, "value", ""), "row 5, column 'value': found nothing, expected a finite number"),
    "unknown language": (changed(9, "lang", "fr"), "row 9, column 'lang': found 'fr', expected one of en, zh"),
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
    "no system": (
        changed(9, "candidate_author_id", " "),
        "row 9, column 'candidate_author_id': found ' ', expected a name",
    ),
    "an answer that nobody rated": (
        appended(2, candidate_author_id="SYSTEM003"),
        "row 34: found iiyi, E1, en, SYSTEM003, disagree_flag, expected an answer that was rated",
    ),
    "escape sequences": (
        appended(2, encounter_id="\x1b[31mE9"),
        "row 34: found iiyi, \\x1b[31mE9, en, SYSTEM001, disagree_flag, expected an answer that was rated",
    ),
    "a rating without a score": (
        text(rows()[:-1]),
        "found no row for woundcare, E2, zh, SYSTEM002, writing-style, expected one for every rated answer",
    ),
    "another candidate": (
        changed(7, "candidate", "Eczema."),
        "row 7, column 'candidate': found another text than the rated one, expected the same",
    ),
    "no candidate": (
        changed(7, "candidate", ""),
        "row 7, column 'candidate': found another text than the rated one, expected the same",
    ),
    "two candidates for one key": (
        appended(2, candidate="Something else."),
        "row 34, column 'candidate': found another text than the rated one, expected the same",
    ),
    "half opted out": (
        changed(2, "value", "-1"),
        (
            "row 8, column 'value': found 1, and -1 in row 2, expected -1 (opted out) in all rows or none of "
            "iiyi, en, disagree_flag"
        ),
    ),
}


@pytest.mark.parametrize("name", BAD_SUBMISSIONS)
def test_a_bad_submission_is_told_what_is_wrong(name: str, tmp_path: Path) -> None:
    ratings, submission = tmp_path / "ratings.csv", tmp_path / "mine.csv"
    ratings.write_text(text(rows()), encoding="utf-8", newline="")
    content, said = BAD_SUBMISSIONS[name]
    submission.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = read_native_ratings(ratings)
    with pytest.raises(InputError) as caught:
        read_submission(submission, table)
    assert str(caught.value) == f"{submission}: {said}"


BAD_RATINGS = {
    "off the scale": (changed(3, "value", "0.7"), "row 3, column 'value': found '0.7', expected one of 0, 0.5, 1"),
    "half a flag": (changed(2, "value", "0.5"), "row 2, column 'value': found '0.5', expected one of 0, 1"),
    "no rater": (changed(2, "rater_id", ""), "row 2, column 'rater_id': found nothing, expected a name"),
    "a rater's second rating": (
        appended(2, value="0"),
        "row 34: found a second rating by 'A1' of iiyi, E1, en, SYSTEM001, disagree_flag, expected only that of row 2",
    ),
    "two candidates for one key": (
        appended(2, rater_id="B2", candidate="Something else."),
        "row 34, column 'candidate': found another text, expected that of row 2",
    ),
    "a rating without candidate": (
        changed(4, "candidate", ""),
        "row 4, column 'candidate': found another text, expected that of row 2",
    ),
}


@pytest.mark.parametrize("name", BAD_RATINGS)
def test_bad_ratings_are_told_what_is_wrong(name: str, tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    content, said = BAD_RATINGS[name]
    file.write_text(content, encoding="utf-8", newline="")
    with pytest.raises(InputError) as caught:
        read_native_ratings(file)
    assert str(caught.value) == f"{file}: {said}"


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: found no such file, expected a CSV file$"):
        read_native_ratings(tmp_path / "none.csv")


def test_the_first_of_two_rows_counts_and_opting_out_gives_null(tmp_path: Path) -> None:
    ratings, submission = tmp_path / "ratings.csv", tmp_path / "mine.csv"
    ratings.write_text(text(rows()), encoding="utf-8", newline="")
    given = [[*row[:-2], "mine", "-1" if row[2] == "zh" else "0.25"] for row in rows()]
    submission.write_text(text([*given, [*given[0][:-1], "0.75"]]), encoding="utf-8", newline="")
    scores = read_submission(submission, read_native_ratings(ratings))
    assert scores.scores["iiyi/E1/en", "SYSTEM001", "disagree_flag"] == 0.25
    assert scores.scores["iiyi/E1/zh", "SYSTEM001", "writing-style"] is None
    assert scores.notes == (
        "1 row with a repeated key; the first counts (repeated in row 34)",
        "8 of 32 rows opted out (-1)",
    )


def test_a_row_with_line_breaks_and_commas_is_one_row(tmp_path: Path) -> None:
    cells = [[*row[:3], 'Rest, "then"\nreturn.\r\n', *row[4:]] for row in rows()]
    file = tmp_path / "ratings.csv"
    file.write_text(text(cells), encoding="utf-8", newline="")
    assert read_native_ratings(file).ratings[0].candidate == 'Rest, "then"\nreturn.\r\n'


def test_all_98_figures_of_the_task(data: Path) -> None:
    folder = data / "mediqa-eval"
    table = read_native_ratings(folder / "ratings.csv")
    found = audit(table, read_submission(folder / "submission_overlap.csv", table), CorrelationSettings(draws=0))
    expected = json.loads((folder / "expected_scores_overlap.json").read_text(encoding="utf-8"))
    figures = official(found)
    assert list(figures) == list(expected)
    assert len(figures) == 98
    assert sum("-en-" in name for name in figures) == 73
    assert figures == pytest.approx(expected, abs=1e-9)
    first = found.agreements[0]
    assert (first.mean.n, first.answers, first.mean.groups, first.raters) == (363, 363, 121, 2)


def test_encounters(data: Path) -> None:
    encounters = read_encounters(data / "mediqa-eval" / "encounters.jsonl")
    assert len(encounters) == 242
    table = read_native_ratings(data / "mediqa-eval" / "ratings.csv")
    assert {one.item for one in encounters} == {one.item for one in table.ratings}


GOOD = {"dataset": "iiyi", "encounter_id": "E1", "lang": "en", "query": "What is it?", "references": ["Eczema."]}


def test_an_encounter_may_hold_other_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "encounters.jsonl"
    asked = "What is\u2028this?\u0085Is it\u2029eczema?"
    file.write_text(json.dumps({**GOOD, "query": asked}, ensure_ascii=False) + "\n", encoding="utf-8")
    assert read_encounters(file)[0].query == asked


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "found no encounters, expected one JSON object a line"),
        (["{"], "line 1, column 2: found the end of the file: it is cut off, expected JSON"),
        ([{**GOOD, "references": []}], "line 1, field 'references': found an empty list, expected one or more entries"),
        ([{k: v for k, v in GOOD.items() if k != "query"}], "line 1, field 'query': found nothing, expected a value"),
        ([{**GOOD, "lang": "fr"}], "line 1, field 'lang': found 'fr', expected one of en, zh"),
        ([{**GOOD, "dataset": "x"}], "line 1, field 'dataset': found 'x', expected one of iiyi, woundcare"),
        ([GOOD, GOOD], "line 2: found iiyi/E1/en again, expected each encounter once"),
    ],
)  # fmt: skip
def test_bad_encounters(lines: list[object], said: str, tmp_path: Path) -> None:
    file = tmp_path / "encounters.jsonl"
    file.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_encounters(file)
    assert str(caught.value) == f"{file}: {said}"


def test_text_metrics_read_chinese(data: Path, tmp_path: Path) -> None:
    store = stored(data / "mediqa-eval", tmp_path / "runs.db")
    table, rated = people_ratings(store, "mediqa-eval"), rated_cases(store, "mediqa-eval", SCHEME)
    (metric,) = similarity_scores(table, rated, SCHEME, ["rouge-1-mean"])
    found = official(audit(table, metric, CorrelationSettings(draws=0)))
    # The task's paper finds −0.004 with a tokenizer that drops everything but Latin script.
    assert found["ALL-zh-factual-consistency-wgold-mean"] == pytest.approx(0.486, abs=5e-4)
    key = ("iiyi/ENC00853/en", "SYSTEM003")
    assert metric.scores[*key, "disagree_flag"] == pytest.approx(1 - (metric.scores[*key, "overall"] or 0))
