"""`proctor train classifier-judge`: trains, judges, is audited, and pays for each caption once."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy.stats import kendalltau, pearsonr, spearmanr

from proctor.audits import read_metrics
from proctor.judges.dimensions import RatedCase
from proctor.results import compared, judges_of, people_ratings
from proctor.runs import Store
from tests.support.faulty_server import FaultyServer, Request
from tests.support.mediqa_folder import write_task
from tests.support.program import proctor
from tests.support.rated_answers import made_up
from tests.support.tiny_encoder import make_tiny_encoder

pytestmark = [pytest.mark.training, pytest.mark.xdist_group("training-classifier")]

RATED = made_up(12, signal=0.9)


def imported(folder: Path, rated: Sequence[RatedCase] = RATED) -> Path:
    """The task's files, a tiny encoder, and a store with all answers and ratings."""
    torch.set_num_threads(1)
    write_task(folder, rated)
    texts = [text for one in rated for text in (one.case.query, one.case.candidate, one.case.references[0].text)]
    make_tiny_encoder(folder / "encoder", texts)
    store = folder / "runs.db"
    done = proctor("import", "mediqa-eval", folder / "ratings.csv", "--data", folder, "--store", store)
    assert done.returncode == 0, done.stderr
    return store


def training(store: Path, out: Path, *more: str | Path) -> list[str | Path]:
    small = ("--seeds", "2", "--folds", "2", "--epochs", "2", "--draws", "100")
    encoder = ("--encoder", store.parent / "encoder")
    return ["train", "classifier-judge", "mediqa-eval", "--store", store, "--out", out, *encoder, *small, *more]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("task"))


@pytest.fixture(scope="module")
def trained(store: Path) -> tuple[Path, str]:
    done = proctor(*training(store, store.parent / "trained", "--references"))
    assert done.returncode == 0, done.stderr
    assert "2 seeds: too few to say how far seeds are apart; 5 or more do." in done.stderr
    return store.parent / "trained", done.stdout


def test_it_tells_how_good_it_is_and_its_scores_can_be_audited(store: Path, trained: tuple[Path, str]) -> None:
    out, told = trained
    assert "Agreement on left-out encounters (2 folds, 2 seeds)" in told
    (scorer,) = (
        one for one in judges_of(Store(store), "mediqa-eval") if one.startswith("classifier-judge/out-of-fold[")
    )
    assert f"as {scorer} in" in told
    table = people_ratings(Store(store), "mediqa-eval")
    given = {one.name: one for one in read_metrics(out / "out-of-fold.csv", table)}
    assert list(given) == ["classifier-judge", "seed 1", "seed 2"]
    _, (kept,) = compared(Store(store), "mediqa-eval", [scorer])
    assert kept.scores == given["classifier-judge"].scores
    audited = proctor("audit", "mediqa-eval", "--scorer", scorer, "--store", store, "--draws", "100")
    assert audited.returncode == 0, audited.stderr
    lines = [line.split() for line in told.splitlines() if line.startswith(("en", "zh"))]
    assert [line[1] for line in lines[:2]] == ["ALL", "completeness"]


def test_its_agreement_is_that_of_the_scores_it_wrote(store: Path, trained: tuple[Path, str]) -> None:
    """Means, standard deviations and extremes of the seeds, computed again with SciPy from the tables."""
    out, told = trained
    rated = pd.read_csv(store.parent / "ratings.csv", dtype={"encounter_id": str})
    rated["item"] = rated["dataset"] + "/" + rated["encounter_id"] + "/" + rated["lang"]
    keys = {"candidate_author_id": "system", "metric": "dimension", "value": "rating"}
    table = pd.read_csv(out / "out-of-fold.csv").merge(rated.rename(columns=keys), on=["item", "system", "dimension"])
    shown = {
        (row[0], row[1]): row[4:7]
        for line in told.splitlines()
        if line.startswith(("en ", "zh ")) and (row := re.split(r"\s{2,}", line.strip()))[1] != "ALL"
    }
    expected = {}
    for key, own in table.groupby(["lang", "dimension"]):
        seeds = [
            float(np.mean([of(own[name], own["rating"]).statistic for of in (kendalltau, pearsonr, spearmanr)]))
            for name in ("seed 1", "seed 2")
        ]
        expected[key] = [
            f"{np.mean(seeds):.3f}", f"{np.std(seeds, ddof=1):.3f}", f"{min(seeds):.3f} to {max(seeds):.3f}",
        ]  # fmt: skip
    assert shown == expected
    assert len(shown) == 8


def test_a_second_call_trains_nothing(store: Path, trained: tuple[Path, str]) -> None:
    steps = (trained[0] / "steps.jsonl").stat().st_mtime_ns
    again = proctor(*training(store, trained[0], "--references"))
    assert (again.returncode, again.stdout) == (0, trained[1]), again.stderr
    assert (trained[0] / "steps.jsonl").stat().st_mtime_ns == steps
    other = proctor(*training(store, trained[0]))
    assert (other.returncode, "a training with other references" in other.stderr) == (1, True), other.stderr


def test_its_scores_lead_to_probabilities_and_say_what_it_was_trained_on(
    store: Path, trained: tuple[Path, str]
) -> None:
    done = proctor("score", "mediqa-eval", "--judge", f"classifier-judge:{trained[0] / 'judge'}", "--store", store)
    assert done.returncode == 0, done.stderr
    (scorer,) = (one for one in judges_of(Store(store), "mediqa-eval") if one.startswith("classifier-judge["))
    opened = Store(store)
    (run, *_) = opened.runs("mediqa-eval")
    rows = opened.score_rows(run, scorer=scorer)
    judgements = opened.judgements({one.judgement_key for one in rows})
    assert all(one.flags == ("trained-on",) for one in judgements.values())
    assert all("probabilities" in json.dumps(one.reply["evidence"]) for one in judgements.values())
    asked = proctor(
        "score", "mediqa-eval", "--judge", f"classifier-judge:{trained[0] / 'judge'}", "--model", "openai:m",
        "--base-url", "http://127.0.0.1:9/v1", "--store", store,
    )  # fmt: skip
    assert (asked.returncode, "expected no model" in asked.stderr) == (1, True), asked.stderr


def test_what_is_to_be_audited_is_not_trained_on(store: Path, tmp_path: Path) -> None:
    renamed = [
        RatedCase(replace(one.case, encounter=f"{one.case.encounter}9"), one.values)
        for one in RATED
        if one.case.encounter == "two/2"
    ]
    other = tmp_path / "other"
    other.mkdir()
    audited = imported(other, renamed)
    done = proctor(*training(store, tmp_path / "out", "--audited", audited))
    assert done.returncode == 1
    assert (
        "encounters in both: woundcare/29 (the same text as woundcare/2), expected each in one of them" in done.stderr
    )
    assert not (tmp_path / "out").exists()


def test_a_control_writes_no_judge_and_no_scores(store: Path, tmp_path: Path) -> None:
    before = judges_of(Store(store), "mediqa-eval")
    done = proctor(*training(store, tmp_path / "out", "--shuffled-ratings"))
    assert done.returncode == 0, done.stderr
    assert "(shuffled ratings, a control, 2 seeds)" in done.stdout
    assert not (tmp_path / "out" / "judge").exists()
    assert judges_of(Store(store), "mediqa-eval") == before


def test_each_picture_is_put_into_words_once(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    folder.mkdir()
    pictured = [
        RatedCase(replace(one.case, images=(f"{one.case.encounter.replace('/', '-')}.png",)), one.values)
        for one in RATED
    ]
    for number, name in enumerate(sorted({one.case.images[0] for one in pictured})):
        Image.new("RGB", (8, 8), (20 * number, 9, 9)).save(folder / name)
    store = imported(folder, pictured)

    def said(request: Request) -> str:
        assert "eczema" not in request.text  # neither the question nor an answer to it
        return json.dumps({"caption": "A red eczema on an arm."})

    with FaultyServer(said) as server:
        model = ("--base-url", server.url, "--media", folder)
        done = proctor(*training(store, tmp_path / "out", "--caption-model", "openai:eye", *model))
        assert done.returncode == 0, done.stderr
        assert "12 new captions" in done.stderr
        assert len(server.requests) == 12  # one for each encounter, in both languages
        again = proctor(*training(store, tmp_path / "again", "--caption-model", "openai:eye", *model, "--seed", "1"))
        assert "0 new captions" in again.stderr
        judge = ("score", "mediqa-eval", "--judge", f"classifier-judge:{tmp_path / 'out' / 'judge'}", "--store", store)
        scored = proctor(*judge, "--model", "openai:eye", *model)
        assert scored.returncode == 0, scored.stderr
        assert len(server.requests) == 12
        wrong = proctor(*judge, "--model", "openai:other", *model)
    assert (wrong.returncode, "expected captions by openai:eye" in wrong.stderr) == (1, True), wrong.stderr
    blind = proctor(*judge)
    assert (blind.returncode, "expected one model, found no model" in blind.stderr) == (1, True), blind.stderr
    opened = Store(store)
    (run, *_) = opened.runs("mediqa-eval")
    (scorer,) = (one for one in judges_of(opened, "mediqa-eval") if one.startswith("classifier-judge["))
    (judgement, *_) = opened.judgements({one.judgement_key for one in opened.score_rows(run, scorer=scorer)}).values()
    assert "A red eczema on an arm." in json.dumps(judgement.reply["evidence"])
    assert judgement.reply["judgements"]  # the caption's judgement
    manifest = json.loads((tmp_path / "out" / "judge" / "manifest.json").read_text())
    assert manifest["captions"] == "openai:eye"
    plain = proctor(*training(store, tmp_path / "plain", "--media", folder, "--folds", "0"))
    assert "No captions: the pictures of 12 encounters are not seen (--caption-model)." in plain.stderr
    lost = proctor(*training(store, tmp_path / "lost", "--caption-model", "openai:eye"))
    assert (lost.returncode, "--caption-model needs the folder of the pictures: --media" in lost.stderr) == (1, True), (
        lost.stderr
    )
