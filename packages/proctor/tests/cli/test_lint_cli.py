"""`proctor check`: everything that is wrong with a submission, in one list."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.program import proctor, within


@pytest.fixture(scope="module")
def task(data: Path) -> Path:
    return data / "mediqa-eval"


@pytest.fixture
def spoilt(task: Path, tmp_path: Path) -> Callable[[Callable[[list[dict[str, str]]], None]], Path]:
    """Writes the submission, changed."""

    def write(change: Callable[[list[dict[str, str]]], None]) -> Path:
        with (task / "submission_overlap.csv").open(encoding="utf-8", newline="") as source:
            rows = list(csv.DictReader(source))
        columns = list(rows[0])
        change(rows)
        file = tmp_path / "mine.csv"
        with file.open("w", encoding="utf-8", newline="") as target:
            writer = csv.DictWriter(target, columns)
            writer.writeheader()
            writer.writerows(rows)
        return file

    return write


def test_a_good_submission(task: Path) -> None:
    done = proctor("check", "mediqa-eval", task / "submission_overlap.csv", "--ratings", task / "ratings.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "0 errors, 0 warnings"


def test_everything_is_listed_at_once(
    task: Path, spoilt: Callable[[Callable[[list[dict[str, str]]], None]], Path]
) -> None:
    def change(rows: list[dict[str, str]]) -> None:
        rows[0]["value"] = "nan"
        rows[1]["lang"] = "de"
        rows[2]["candidate"] += " "
        rows[3]["value"] = "1.5"
        rows[4]["value"] = "-1"
        rows.append({**rows[5], "value": "0.9"})
        rows.append({**rows[5], "candidate_author_id": "SYSTEM009"})
        del rows[6]
        for row in rows:
            if row["lang"] == "zh":
                row["value"] = "-1" if row["metric"] == "writing-style" else "0.5"

    file = spoilt(change)
    done = proctor("check", "mediqa-eval", file, "--ratings", task / "ratings.csv", "--format", "json")
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    listed = [(one["level"], one["row"], one["column"], one["found"], one["expected"]) for one in found["findings"]]
    beside = ", or it is one of the faulty rows"
    every = "one for every answer to be scored"
    assert listed[:10] == [
        ("error", None, None, f"no row for iiyi, ENC00853, en, SYSTEM001, completeness{beside}", every),
        ("error", None, None, f"no row for iiyi, ENC00853, en, SYSTEM001, disagree_flag{beside}", every),
        ("error", None, None, f"no row for iiyi, ENC00853, en, SYSTEM002, completeness{beside}", every),
        ("error", None, None, "790 different rows of iiyi, en", "792"),
        ("error", 2, "value", "'nan'", "a finite number"),
        ("error", 3, "lang", "'de'", "one of en, zh"),
        ("error", 4, "candidate", "the given text with other white space", "the same"),
        ("error", 5, "value", "1.5", "0 to 1, or -1 to opt out"),
        ("error", 6, "value", "-1 (opted out), as in 1 of 132 rows of iiyi, en, relevance", "all or none"),
        ("error", 2906, None, "iiyi, ENC00853, en, SYSTEM009, writing-style", "an answer that is to be scored"),
    ]
    warnings = [one[3] for one in listed if one[0] == "warning"]
    assert sorted(warnings) == [
        "'overlap-baseline' in an opted-out row of iiyi, zh, writing-style",
        "'overlap-baseline' in an opted-out row of woundcare, zh, writing-style",
        "0.5 in all 132 rows of iiyi, zh, factual-consistency-wgold: there is no correlation",
        "0.5 in all 231 rows of woundcare, zh, factual-consistency-wgold: there is no correlation",
        "iiyi, ENC00853, en, SYSTEM001, writing-style again",
    ]
    assert (found["errors"], found["warnings"]) == (10, 5)
    assert found["counts"][0] == {
        "dataset": "iiyi",
        "language": "en",
        "rows": 790,
        "expected": 792,
        "repeated": 1,
        "opted_out": 1,
        "splits": [],
    }


def test_published_splits_and_other_scales(
    task: Path, spoilt: Callable[[Callable[[list[dict[str, str]]], None]], Path]
) -> None:
    def change(rows: list[dict[str, str]]) -> None:
        rows[0]["value"] = "-3.5"

    command = ("check", "mediqa-eval", spoilt(change), "--ratings", task / "ratings.csv")
    assert "row 2, column 'value': found -3.5, expected 0 to 1, or -1 to opt out" in proctor(*command).stdout
    assert proctor(*command, "--option", "any-scale=true").returncode == 0
    done = proctor(*command, "--option", "any-scale=true", "--option", "split=valid")
    assert done.returncode == 1
    assert done.stdout.splitlines()[:4] == [
        "error: found 792 different rows of iiyi, en (valid), expected 1008",
        "error: found 264 different rows of iiyi, zh (valid), expected 336",
        "error: found 1 386 different rows of woundcare, en (valid), expected 1890",
        "error: found 462 different rows of woundcare, zh (valid), expected 630",
    ]


def test_a_template_without_ratings_is_enough(
    task: Path, spoilt: Callable[[Callable[[list[dict[str, str]]], None]], Path], tmp_path: Path
) -> None:
    def change(rows: list[dict[str, str]]) -> None:
        for row in rows:
            row["rater_id"] = row["value"] = ""

    template = spoilt(change).rename(tmp_path / "template.csv")
    good = task / "submission_overlap.csv"
    code, said = within("check", "mediqa-eval", good, "--ratings", template)
    assert (code, said.splitlines()[-1]) == (0, "0 errors, 0 warnings")
    wrong = spoilt(lambda rows: rows[2].update(candidate="Another text."))
    code, said = within("check", "mediqa-eval", wrong, "--ratings", template)
    assert code == 1
    assert said.startswith(
        "error: row 4, column 'candidate': found another text than the given one, expected the same\n"
    )


def test_without_answers_the_split_is_checked_and_the_rest_said(task: Path) -> None:
    command = ("check", "mediqa-eval", task / "submission_overlap.csv")
    code, said = within(*command, "--option", "split=test")
    lines = said.splitlines()
    assert code == 1
    assert lines[0].startswith("error: found 792 different rows of iiyi, en (test), expected ")
    assert lines[-2].startswith("not checked: whether each row is of the task and its text unchanged")
    assert "no row for" not in said
    code, said = within(*command)
    assert code == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfea\x00", "error: row 1: found UTF-16, expected UTF-8"),
        (b"a;b;c\n", "error: row 1: found ';' between the columns, expected commas"),
        (b"", "error: found an empty file, expected the columns dataset, encounter_id, lang, candidate"),
    ],
)
def test_a_file_that_cannot_be_read(content: bytes, said: str, task: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_bytes(content)
    done = proctor("check", "mediqa-eval", file, "--ratings", task / "ratings.csv")
    assert done.returncode == 1
    assert done.stdout.startswith(said)
    assert done.stdout.endswith("1 error, 0 warnings\n")
