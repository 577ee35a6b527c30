"""`proctor audit` as participants and other programs use it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.support.program import proctor


@pytest.fixture(scope="module")
def task(data: Path) -> Path:
    return data / "mediqa-eval"


def test_the_official_figures(task: Path) -> None:
    done = proctor(
        "audit",
        "mediqa-eval",
        task / "submission_overlap.csv",
        "--ratings",
        task / "ratings.csv",
        "--format",
        "official",
    )
    assert done.returncode == 0, done.stderr
    expected = json.loads((task / "expected_scores_overlap.json").read_text(encoding="utf-8"))
    assert json.loads(done.stdout) == pytest.approx(expected, abs=1e-9)


def test_two_metrics_for_programs(task: Path, tmp_path: Path) -> None:
    flat = tmp_path / "flat.csv"
    with (task / "submission_overlap.csv").open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    for row in rows:
        row["value"] = (
            "0.5" if row["lang"] == "en" else "-1" if row["metric"] == "writing-style" else row["value"]
        )
    with flat.open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    command = (
        "audit",
        "mediqa-eval",
        task / "submission_overlap.csv",
        flat,
        "--ratings",
        task / "ratings.csv",
    )
    done = proctor(*command, "--format", "json", "--draws", "100")
    assert done.returncode == 0, done.stderr
    assert "flat: 363 of 2904 rows are opted out (-1)" in done.stderr
    found = json.loads(done.stdout)
    real, constant = found["metrics"]
    assert len(real["agreement"]) == 24
    row = next(
        one for one in constant["agreement"] if one["dimension"] == "overall" and one["dataset"] == "ALL"
    )
    assert row["mean"] == {"value": None, "ci_low": None, "ci_high": None}
    assert row["reason"] == "all scores are 0.5"
    assert [one["reason"] for one in constant["aggregates"]] == [
        (
            "disagree_flag: all scores are 0.5; completeness: all scores are 0.5; factual-accuracy: all scores are 0.5; "
            "relevance: all scores are 0.5; writing-style: all scores are 0.5; overall: all scores are 0.5"
        ),
        "writing-style: opted out",
    ]
    board = next(one for one in found["boards"] if one["dimension"] == "factual-consistency-wgold")
    assert [(one["metric"], one["rank"]) for one in board["places"]] == [
        ("flat", 1),
        ("submission_overlap", 1),
    ]
    assert board["comparisons"][0]["difference"] == 0.0

    done = proctor(*command, "--format", "csv", "--draws", "100")
    table = list(csv.DictReader(io.StringIO(done.stdout)))
    # 24 cells, 2 aggregates, and two raters of each of six English dimensions
    assert len(table) == 2 * (24 + 2 + 12)
    assert {one["metric"] for one in table} == {"submission_overlap", "flat"}


def test_text_metrics_stand_beside_each_other_and_a_submission(task: Path) -> None:
    command = ("audit", "mediqa-eval", task / "submission_overlap.csv", "--ratings", task / "ratings.csv")
    some = ("--text-metric", "rouge-1-mean", "--text-metric", "bleu-best", "--draws", "200")
    done = proctor(*command, "--encounters", task / "encounters.jsonl", *some, "--dimension", "overall")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    titles = [line for line in lines if "rank is" in line]
    assert [title.split(":")[0] for title in titles] == [
        "en all dimensions",
        "en overall",
        "zh all dimensions",
    ]
    best = lines[lines.index(titles[2]) + 2].split()
    assert best[:4] == ["1", "1", "rouge-1-mean", "0.317"]
    done = proctor(*command, *some)
    assert done.returncode == 2
    assert "--text-metric compares with references" in done.stderr
    done = proctor(*command, "--encounters", task / "encounters.jsonl", "--text-metric", "meteor")
    assert done.returncode == 1
    assert done.stderr.startswith("proctor: text metric: found 'meteor', expected one of rouge-1-best, ")


def test_a_bad_file_ends_with_one_line_and_writes_nothing(task: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("a;b\n1;2\n", encoding="utf-8")
    done = proctor("audit", "mediqa-eval", bad, "--ratings", task / "ratings.csv")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"proctor: {bad}: row 1: found ';' between the columns, expected commas\n"
    assert [one.name for one in tmp_path.iterdir()] == ["bad.csv"]


def test_any_ratings_table(tmp_path: Path) -> None:
    ratings, scores = tmp_path / "ratings.csv", tmp_path / "mine.csv"
    values = [0, 0.5, 0.5, 1, 0, 1]
    ratings.write_text(
        "item,candidate,system,dimension,rater,value\n"
        + "".join(
            f"q{k},text {k},s{k % 2},quality,{rater},{value}\n"
            for k, value in enumerate(values)
            for rater in "ab"
        ),
        encoding="utf-8",
    )
    scores.write_text(
        "item,system,dimension,value\n" + "".join(f"q{k},s{k % 2},quality,{k}\n" for k in range(6)),
        encoding="utf-8",
    )
    done = proctor("audit", "table", scores, "--ratings", ratings, "--draws", "100")
    assert done.returncode == 0, done.stderr
    assert "By rater, and with the raters' mean" in done.stdout
    assert "The raters compared with each other; a perfect metric has √Pearson with one rater" in done.stdout
    done = proctor("audit", "table", scores, "--ratings", ratings, "--format", "official")
    assert set(json.loads(done.stdout)) == {
        *(f"ALL-quality-{kind}" for kind in ("kendalltau", "pearson", "spearman", "mean")),
        "ALL-ALL-mean",
    }
