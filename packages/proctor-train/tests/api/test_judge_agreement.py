"""`proctor judge compare`: everything at hand beside people's ratings, on made-up ratings and an encoder of words."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import proctor_train
from proctor.audits.comparison import ORDER, TRUE_BETWEEN, TRUE_WITHIN
from proctor.core import InputError
from proctor.metrics import text
from proctor_train import ComparedJudges
from proctor_train.mediqa_eval import embedded
from tests.support import program
from tests.support.mediqa_folder import write_task
from tests.support.rated_answers import hashed, made_up

_METRICS = ("rouge-1-mean", "chrf-mean")
HOW: dict[str, Any] = {"lead_over": ["rouge-1-mean"], "repeats": 1, "draws": 100}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agreement")
    write_task(folder, made_up(9, languages=["en"], signal=0.9))
    done = program.proctor(
        "import", "mediqa-eval", folder / "ratings.csv", "--data", folder, "--store", folder / "runs.db"
    )
    assert done.returncode == 0, done.stderr
    return folder / "runs.db"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, read = text.text_metrics, embedded.read_rated
    monkeypatch.setattr(text, "text_metrics", lambda names: metrics(_METRICS if list(names) == ["all"] else names))
    monkeypatch.setattr(embedded, "read_rated", partial(read, encoders=hashed))
    monkeypatch.setattr(embedded, "Recipe", partial(embedded.Recipe, folds=3, designs=2, kept=1))


def test_all_stand_in_one_table_and_a_second_call_learns_nothing(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = HOW | {"curve": True, "keep": store.parent / "kept"}
    found = proctor_train.judge_agreement(store, "mediqa-eval", **how)
    names = {row.metric for row in found.rows}
    assert names == {*_METRICS, "embedded-judge", "blend-mean", "blend-stacked", "blend-best"}
    assert {one.share for one in found.curve} == {0.125, 0.25, 0.5, 0.75, 1.0}
    (whole,) = {one.encounters for one in found.curve if one.share == 1}  # two of three folds
    assert 5 <= whole <= 8
    assert all(abs(one.encounters - one.share * whole) <= 1 for one in found.curve)
    (learned,) = [
        row
        for row in found.rows
        if (row.metric, row.language, row.dimension, row.part) == ("embedded-judge", "en", "", "all")
    ]
    assert (learned.figure.value or 0) > 0.4  # what was made up can be learned
    assert {row.metric for row in found.bounds} >= {ORDER, TRUE_BETWEEN, TRUE_WITHIN}
    told = json.loads(found.write(tmp_path / "out.json").read_text(encoding="utf-8"))
    assert told["over"] == ["rouge-1-mean"]
    assert len(told["tables"]) == len(found.tables)

    def never(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(embedded, "read_rated", never)
    again = proctor_train.judge_agreement(store, "mediqa-eval", **how)
    assert again.rows == found.rows
    assert again.curve == found.curve


def test_kept_scores_are_of_these_ratings_and_seed_alone(store: Path, tmp_path: Path) -> None:
    proctor_train.judge_agreement(store, "mediqa-eval", **HOW, keep=tmp_path)
    with pytest.raises(InputError, match=r"a training with other recipe\.seed"):
        proctor_train.judge_agreement(store, "mediqa-eval", **HOW, keep=tmp_path, seed=1)


def test_a_learned_scorer_joins_the_mean_and_is_never_stacked(store: Path, tmp_path: Path) -> None:
    """One that was told the ratings: stacked, it would carry the mixture to 1."""
    ratings, scores = store.parent / "ratings.csv", tmp_path / "told.csv"
    with ratings.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with scores.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    done = program.proctor(
        "import", "mediqa-eval", scores, "--scorer", "told", "--data", store.parent, "--store", store
    )
    assert done.returncode == 0, done.stderr
    how = HOW | {"keep": store.parent / "kept"}
    plain = proctor_train.judge_agreement(store, "mediqa-eval", **how)
    beside = proctor_train.judge_agreement(store, "mediqa-eval", **how, learned=["told"])

    def figure(found: ComparedJudges, name: str) -> float:
        return next(
            row.figure.value or 0.0 for row in found.rows if (row.metric, row.part, row.dimension) == (name, "all", "")
        )

    assert figure(beside, "told") == pytest.approx(1)
    assert figure(beside, "blend-mean") > figure(plain, "blend-mean")
    for name in ("blend-stacked", "blend-best", "embedded-judge"):
        assert figure(beside, name) == figure(plain, name)


def test_the_command_prints_tables_and_what_is_ahead(store: Path, tmp_path: Path) -> None:
    given = (
        "--repeats",
        "1",
        "--draws",
        "100",
        "--lead-over",
        "rouge-1-mean",
        "--out",
        tmp_path / "x.json",
        "--keep",
        store.parent / "kept",
    )
    done = program.proctor("judge", "compare", "mediqa-eval", *given, "--store", store)
    assert done.returncode == 0, done.stderr
    assert "English: agreement, and leads over rouge-1-mean" in done.stdout
    assert "Ahead of rouge-1-mean by the adjusted test:" in done.stdout + done.stderr
    assert (tmp_path / "x.json").exists()
    refused = program.proctor("judge", "compare", "mediqa-eval", "--out", store, "--store", store)
    assert (refused.returncode, "found a database, expected another name" in refused.stderr) == (1, True)


def test_an_unknown_scorer_is_told_before_anything_is_read(store: Path) -> None:
    with pytest.raises(InputError, match="found 'nobody', expected one of"):
        proctor_train.judge_agreement(store, "mediqa-eval", scorer=["nobody"])
