"""`proctor audit` as participants and other programs use it."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest

from tests.support.program import proctor


@pytest.fixture(scope="module")
def task(data: Path) -> Path:
    return data / "mediqa-eval"


@pytest.fixture(scope="module")
def store(task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ratings, and the word overlap's scores."""
    store = tmp_path_factory.mktemp("audit") / "runs.db"
    common = ("--data", task, "--store", store)
    done = proctor("import", "mediqa-eval", task / "ratings.csv", *common)
    assert done.returncode == 0, done.stderr
    done = proctor("import", "mediqa-eval", task / "submission_overlap.csv", *common, "--scorer", "overlap")
    assert done.returncode == 0, done.stderr
    return store


def copied(store: Path, to: Path) -> None:
    """The store with all that is in its journal."""
    with sqlite3.connect(store) as source, sqlite3.connect(to) as target:
        source.backup(target)


def test_the_official_figures(task: Path, store: Path) -> None:
    done = proctor("audit", "mediqa-eval", "--store", store, "--scorer", "overlap", "--protocol", "official")
    assert done.returncode == 0, done.stderr
    expected = json.loads((task / "expected_scores_overlap.json").read_text(encoding="utf-8"))
    assert len(expected) == 98
    assert json.loads(done.stdout) == pytest.approx(expected, abs=1e-9)


def test_what_is_imported_is_exported_again(task: Path, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    given = ("--format", "submission", "--scorer", "overlap", "--template", task / "ratings.csv", "--out", out)
    done = proctor("export", "mediqa-eval", "--store", store, *given)
    assert done.returncode == 0, done.stderr

    def cells(file: Path) -> list[tuple[object, ...]]:
        with file.open(encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened))
        return [(*(row[name] for name in list(row)[:6]), float(row["value"])) for row in rows]

    assert cells(out) == cells(task / "submission_overlap.csv")


def test_two_metrics_for_programs(task: Path, store: Path, tmp_path: Path) -> None:
    flat, both = tmp_path / "flat.csv", tmp_path / "both.db"
    with (task / "submission_overlap.csv").open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    for row in rows:
        row["value"] = "0.5" if row["lang"] == "en" else "-1" if row["metric"] == "writing-style" else row["value"]
    with flat.open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    copied(store, both)
    done = proctor("import", "mediqa-eval", flat, "--data", task, "--store", both, "--scorer", "flat")
    assert done.returncode == 0, done.stderr
    assert "flat: 363 of 2\u202f904 rows opted out (-1)" in done.stderr
    command = ("audit", "mediqa-eval", "--store", both, "--scorer", "overlap", "--scorer", "flat")
    done = proctor(*command, "--format", "json", "--draws", "100")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    real, constant = found["metrics"]
    assert len(real["agreement"]) == 24
    row = next(one for one in constant["agreement"] if one["dimension"] == "overall" and one["dataset"] == "ALL")
    assert row["mean"] == {"value": None, "ci_low": None, "ci_high": None}
    assert row["reason"] == "all scores are 0.5"
    assert [one["reason"] for one in constant["aggregates"]] == [
        (
            "disagree_flag: all scores are 0.5; completeness: all scores are 0.5; factual-accuracy: all scores are "
            "0.5; "
            "relevance: all scores are 0.5; writing-style: all scores are 0.5; overall: all scores are 0.5"
        ),
        "writing-style: opted out",
    ]
    done = proctor(*command, "--protocol", "official")
    both = json.loads(done.stdout)
    alone = proctor(*command[:-2], "--protocol", "official")
    assert both["overlap"] == json.loads(alone.stdout)
    assert (len(both["flat"]), both["flat"]["ALL-en-overall-mean"]) == (98, None)

    board = next(one for one in found["boards"] if one["dimension"] == "factual-consistency-wgold")
    assert [(one["metric"], one["rank"]) for one in board["ranking"]] == [("flat", 1), ("overlap", 1)]
    assert board["comparisons"][0]["difference"] == 0.0

    done = proctor(*command, "--format", "csv", "--draws", "100")
    table = list(csv.DictReader(io.StringIO(done.stdout)))
    # 24 cells, 2 aggregates, and two raters of each of six English dimensions
    assert len(table) == 2 * (24 + 2 + 12)
    assert {one["metric"] for one in table} == {"overlap", "flat"}


def test_text_metrics_stand_beside_each_other_and_a_submission(store: Path, tmp_path: Path) -> None:
    some = tmp_path / "some.db"
    copied(store, some)
    command = ("score", "mediqa-eval", "--store", some)
    done = proctor(*command, "--metric", "rouge-1-mean", "--metric", "bleu-best")
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()[-2:]] == [["rouge-1-mean", "726"], ["bleu-best", "726"]]
    done = proctor("audit", "mediqa-eval", "--store", some, "--draws", "200", "--dimension", "overall")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    first = [row for row, line in enumerate(lines) if line.split()[:2] == ["Metric", "Rank"]]
    titles = [lines[row - 1] for row in first]
    assert [title.split(",")[0] for title in titles] == ["English", "English", "Chinese"]
    assert "overall" in titles[1]
    assert lines[first[2] + 1].split()[:4] == ["rouge-1-mean", "1", "1", "0.317"]
    done = proctor(*command, "--metric", "meteor")
    assert done.returncode == 1
    assert done.stderr.startswith("proctor: text metric: found 'meteor', expected one of rouge-1-best, ")


def test_people_can_be_compared_with_one_another_and_unknown_scorers_are_told(store: Path) -> None:
    command = ("audit", "mediqa-eval", "--store", store, "--draws", "0")
    done = proctor(*command, "--scorer", "human:NM", "--against", "human:A1")
    assert done.returncode == 1  # no answer has two raters
    assert "judges human:NM, human:A1: found no answer that both scored, expected some" in done.stderr
    done = proctor(*command, "--scorer", "mine")
    assert "judge of mediqa-eval: found 'mine', expected one of human:A1, human:NM, overlap" in done.stderr


def test_raters_without_a_shared_answer_are_told(store: Path) -> None:
    done = proctor("audit", "mediqa-eval", "--store", store, "--scorer", "overlap", "--draws", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == (
        "How far people agree with each other is not known: no answer was rated by two of them on the same dimension."
    )


def test_a_bad_file_ends_with_one_line_and_writes_nothing(task: Path, store: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("a;b\n1;2\n", encoding="utf-8")
    done = proctor("import", "mediqa-eval", bad, "--data", task, "--store", store, "--scorer", "bad")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"proctor: {bad}: row 1: found ';' between the columns, expected commas\n"
    assert [one.name for one in tmp_path.iterdir()] == ["bad.csv"]


def test_any_ratings_table(tmp_path: Path) -> None:
    ratings, scores = tmp_path / "ratings.csv", tmp_path / "mine.csv"
    values = [0, 0.5, 0.5, 1, 0, 1]
    ratings.write_text(
        "item,candidate,system,dimension,rater,value\n"
        + "".join(
            f"q{k},text {k},s{k % 2},quality,{rater},{value}\n" for k, value in enumerate(values) for rater in "ab"
        ),
        encoding="utf-8",
    )
    scores.write_text(
        "item,system,dimension,value\n" + "".join(f"q{k},s{k % 2},quality,{k}\n" for k in range(6)), encoding="utf-8"
    )
    done = proctor("audit", "--scores", scores, "--ratings", ratings, "--draws", "100")
    assert done.returncode == 0, done.stderr
    assert "mine and each rater alone" in done.stdout
    assert "the raters' mean" in done.stdout
    assert "The raters compared with each other" in done.stdout
    assert "how far raters agree is not known" not in done.stderr
    wrong = proctor("audit", "--scores", scores, "--ratings", ratings, "--draws", "100", "--dimension", "qualty")
    assert wrong.returncode == 2
    assert "--dimension 'qualty' was not rated: choose one of" in wrong.stderr
    done = proctor("audit", "mediqa-eval", "--scores", scores, "--ratings", ratings, "--protocol", "official")
    assert set(json.loads(done.stdout)) == {
        *(f"ALL-quality-{kind}" for kind in ("kendalltau", "pearson", "spearman", "mean")),
        "ALL-ALL-mean",
    }
