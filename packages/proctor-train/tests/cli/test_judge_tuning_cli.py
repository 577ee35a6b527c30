"""Judges tuned on a store's ratings: examples searched, judges chosen, each dimension by the chosen one."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

import proctor_train
from proctor.core import UsageError, generator
from proctor.judges.dimensions.calibration import read_choice
from proctor.results import judges_of
from proctor.runs import Store
from proctor_train import FittedJudge
from tests.support.faulty_server import FaultyServer
from tests.support.lamp_benchmark import lamps
from tests.support.program import within
from tests.support.rated_pool import CHINESE, Model

HEAD = "dataset,encounter_id,lang,candidate,candidate_author_id,metric,rater_id,value"


def test_choosing_and_judging_on_the_real_answers(data: Path, tmp_path: Path) -> None:
    folder, store = data / "mediqa-eval", tmp_path / "runs.db"
    length, choice, out = (tmp_path / name for name in ("length.csv", "c.json", "out.csv"))
    lines = (folder / "submission_overlap.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(lines, newline="")))
    with length.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, rows[0])
        writer.writeheader()
        writer.writerows(one | {"value": min(len(one["candidate"]), 600) / 600} for one in rows)
    common = ("--data", folder, "--store", store)
    for file, more in (
        (folder / "ratings.csv", ()),
        (folder / "submission_overlap.csv", ("--scorer", "words")),
        (length, ("--scorer", "length")),
    ):
        code, said = within("import", "mediqa-eval", file, *common, *more)
        assert code == 0, said
    code, said = within(
        "judge", "fit", "mediqa-eval", "--method", "choice", "--store", store, "--out", choice, "--draws", "100"
    )
    assert code == 0, said
    assert "Agreement on encounters that the choice was not made on (5 folds)" in said
    found = read_choice(choice)
    made = proctor_train.fit_judge(store, "mediqa-eval", method="choice", out=tmp_path / "python.json", draws=100)
    assert made.out.read_text(encoding="utf-8") == choice.read_text(encoding="utf-8")
    assert all(cell in said for row in made.tables[0].texts for cell in row)
    ends = [re.match(r"(-?[\d.]+) to (-?[\d.]+)", str(row[5])) for row in made.tables[0].texts]
    assert any(ends)
    assert all(float(one[1]) < float(one[2]) for one in ends if one)
    assert len(found.folds) == 121
    assert found.judges == ["length", "words"]
    wanted = ("score", "mediqa-eval", "--judge", "per-dimension", "--option", f"choice={choice}", "--store", store)
    code, said = within(*wanted)
    assert code == 0, said
    (scorer,) = (one for one in judges_of(Store(store), "mediqa-eval") if one.startswith("per-dimension["))
    given = ("--format", "submission", "--scorer", scorer, "--out", out)
    code, said = within("export", "mediqa-eval", "--store", store, *given)
    assert code == 0, said
    code, said = within("check", "mediqa-eval", out, "--ratings", folder / "ratings.csv")
    assert (code, "0 errors, 0 warnings" in said) == (0, True), said
    bare = tmp_path / "bare.db"
    assert within("import", "mediqa-eval", folder / "ratings.csv", "--data", folder, "--store", bare)[0] == 0
    code, said = within(*wanted[:-1], bare)
    assert code == 1
    assert "per-dimension: found the judges none, expected " in said


def test_examples_are_searched_and_judges_chosen_and_run(tmp_path: Path) -> None:
    store, examples, choice = tmp_path / "runs.db", tmp_path / "examples.json", tmp_path / "choice.json"
    rated(tmp_path, store, 12)
    model = Model(score=lambda request: by_text(request.texts[-1]))
    with FaultyServer(model) as server:
        asked = ("--model", "openai:judge", "--base-url", server.url)
        plan = ("--sets", "2", "--shots", "2", "--held-out", "4")
        search = (
            "judge",
            "fit",
            "mediqa-eval",
            "--method",
            "examples",
            *asked,
            *plan,
            "--store",
            store,
            "--out",
            examples,
        )
        code, said = within(*search)
        assert code == 0, said
        assert "at most 8 answers to rate (2 × 4 in zh)" in said
        assert server.count == 8
        assert all(request.body["temperature"] == 0 for request in server.requests)
        tried = json.loads(examples.read_text(encoding="utf-8"))["languages"]["zh"]
        rated_by = {name: [one["ratings"][name] for one in tried["held_out"]] for name in CHINESE}
        merits = [
            np.mean(
                [
                    merit([one["scores"][index][name] for one in tried["held_out"]], own)
                    for name, own in rated_by.items()
                    if len(set(own)) > 1
                ]
            )
            for index in (0, 1)
        ]
        (row,) = (line.split() for line in said.splitlines() if line.startswith("zh "))
        highest = f"{max(merits):.3f}".replace("-", "−")
        assert row[1:] == ["4", f"{min(merits):.3f}".replace("-", "−"), f"{np.mean(merits):.3f}".replace("-", "−"),
                           highest, str(merits.index(max(merits)) + 1)]  # fmt: skip
        code, said = within(*search)
        assert (code, server.count) == (0, 8)
        score = ("score", "mediqa-eval", "--store", store, *asked)
        option = ("--option", f"examples={examples}")
        for judge, more in (("few-shot-judge", option), ("mediqa-judge", ())):
            code, said = within(*score, "--judge", judge, *more)
            assert code == 0, said
        code, said = within(
            "judge",
            "fit",
            "mediqa-eval",
            "--method",
            "choice",
            "--store",
            store,
            "--folds",
            "3",
            "--draws",
            "100",
            "--out",
            choice,
        )
        assert code == 0, said
        names = ["few-shot-judge[openai:judge]", "mediqa-judge[openai:judge]"]
        assert read_choice(choice).judges == names
        paid = server.count
        best = ("--judge", "per-dimension", "--option", f"choice={choice}")
        code, said = within(*score, *best)
        assert (code, server.count) == (0, paid), said  # taken from what the chosen judges gave
        assert f"{12 * 3} answers scored by per-dimension[" in said
        other = tmp_path / "other.db"
        rated(tmp_path, other, 12)
        live = (
            *best,
            "--option",
            "judges=few-shot-judge,mediqa-judge",
            "--option",
            f"few-shot-judge.examples={examples}",
        )
        code, said = within("score", "mediqa-eval", "--store", other, *asked, *live, "--rated", store)
        assert code == 0, said  # run now, in a store that has no scores by them
        assert server.count == paid + new_calls(choice)
    broken = Model(score="no")
    with FaultyServer(broken) as server:
        none = tmp_path / "none.json"
        code, said = within(
            "judge", "fit", "mediqa-eval", "--method", "examples", "--model", "openai:judge", "--base-url", server.url, *plan,
            "--store", other, "--out", none,
        )  # fmt: skip
        assert code != 0
        assert ": no score for " in said
    assert not none.exists()


def merit(scores: list[float], ratings: list[float]) -> float:
    """The mean of three correlations with SciPy; 0 for scores that are all the same."""
    if len(set(scores)) == 1:
        return 0.0
    return float(np.mean([of(scores, ratings).statistic for of in (kendalltau, pearsonr, spearmanr)]))


def new_calls(choice: Path) -> int:
    """Of 36 answers in 12 encounters, how many times a chosen judge is asked."""
    found = read_choice(choice)
    return sum(3 * len({found.judge_for(f"iiyi/E{k}", "zh", name) for name in CHINESE}) for k in range(12))


@pytest.mark.parametrize("command", ["examples", "choice", "calibration", "embedded"])
def test_without_ratings_there_is_nothing_to_tune_on(command: str, tmp_path: Path) -> None:
    store, out = tmp_path / "runs.db", tmp_path / "out"
    rated(tmp_path, store, 2, "--answers-only")
    more = {"examples": ("--model", "openai:judge"), "calibration": ("--scorer", "mine")}.get(command, ())
    code, said = within("judge", "fit", "mediqa-eval", "--method", command, "--store", store, "--out", out, *more)
    assert code == 1
    assert ("has no ratings of" in said) or ("found 'mine'" in said)
    assert not out.exists()


@pytest.mark.parametrize("command", ["examples", "choice", "calibration"])
def test_where_nothing_can_be_written_nothing_is_paid(command: str, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    rated(tmp_path, store, 2)
    with FaultyServer("no") as server:
        more = {
            "examples": ("--model", "openai:judge", "--base-url", server.url),
            "calibration": ("--scorer", "human:r"),
        }.get(command, ())
        for out in (tmp_path, tmp_path / "no" / "out.json"):
            code, said = within(
                "judge", "fit", "mediqa-eval", "--method", command, "--store", store, "--out", out, *more
            )
            assert (code, server.count) == (1, 0)
            assert "to write" in said
        for out in (store, tmp_path / "mine.py"):
            (tmp_path / "mine.py").write_text("print(1)")
            before = out.read_bytes()
            code, said = within(
                "judge", "fit", "mediqa-eval", "--method", command, "--store", store, "--out", out, *more
            )
            assert (code, server.count, out.read_bytes()) == (1, 0, before)
            assert "expected another name" in said


def by_text(user: str) -> dict[str, Any]:
    text = user.rsplit("<<<ANSWER\n", maxsplit=1)[-1]
    value = sum(map(ord, text)) % 20 / 20
    return {"reason": "r", "factual-consistency-wgold": value, "writing-style": 1 - value}


def rated(folder: Path, store: Path, count: int, *more: str) -> None:
    """A store with three systems' answers to so many encounters in Chinese, rated at random."""
    ratings = folder / "ratings.csv"
    draw = generator(0, "files")
    rows = [
        f"iiyi,E{k},zh,回答{k}{system}。,{system},{name},r,{draw.choice([0.0, 0.5, 1.0])}"
        for k in range(count)
        for system in ("S1", "S2", "S3")
        for name in CHINESE
    ]
    ratings.write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
    lines = [
        json.dumps(
            {"dataset": "iiyi", "encounter_id": f"E{k}", "lang": "zh", "query": f"问题{k}", "references": ["疹"]}
        )
        for k in range(count)
    ]
    (folder / "encounters.jsonl").write_text("\n".join(lines), encoding="utf-8")
    code, said = within("import", "mediqa-eval", ratings, "--data", folder, "--store", store, *more)
    assert code == 0, said


def chosen(folder: Path, ratings: list[list[str]], constant: set[str]) -> FittedJudge:
    """A choice between two made judges of these ratings; on the first dimension they give all answers to the
    encounters in `constant` the same score."""
    folder.mkdir()
    store, never = folder / "runs.db", next(iter(CHINESE))
    tables = {"ratings": [row[7] for row in ratings]}
    for name in ("first", "second"):
        draw = generator(0, name)
        scores = [f"{draw.random():.3f}" for _ in ratings]
        tables[name] = [
            "0.5" if row[5] == never and row[1] in constant else score
            for row, score in zip(ratings, scores, strict=True)
        ]
    for name, values in tables.items():
        rows = [",".join([*row[:7], value]) for row, value in zip(ratings, values, strict=True)]
        (folder / f"{name}.csv").write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
        more = () if name == "ratings" else ("--scorer", name)
        wanted = ("import", "mediqa-eval", folder / f"{name}.csv", "--data", folder.parent, "--store", store, *more)
        code, said = within(*wanted)
        assert code == 0, said
    return proctor_train.fit_judge(store, "mediqa-eval", method="choice", out=folder / "c.json", folds=3, draws=100)


def test_where_a_choice_has_no_agreement_it_says_why(tmp_path: Path) -> None:
    rated(tmp_path, tmp_path / "first.db", 12)
    ratings = [line.split(",") for line in (tmp_path / "ratings.csv").read_text(encoding="utf-8").splitlines()[1:]]
    plain = chosen(tmp_path / "plain", ratings, set())
    assert plain.notes == ()
    folds = {name.rpartition("/")[2]: fold for name, fold in read_choice(plain.out).folds.items()}
    never, once = CHINESE
    for row in ratings:
        if row[5] == once and folds[row[1]] == 2:
            row[7] = "0.5"
    made = chosen(tmp_path / "made", ratings, {name for name, fold in folds.items() if fold == 0})
    assert made.notes == (
        f"zh, {never}: no agreement: in one of the folds all scores are the same",
        f"zh, {once}: in 1 of 3 folds all ratings are the same: left out",
    )


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("guess", {}, "--method 'guess' is unknown: choose calibration, choice, examples, embedded or pipeline"),
        ("calibration", {}, "No scorer: one judge's scores are calibrated"),
    ],
)
def test_what_can_not_be_fitted_is_said_before_anything_is_written(
    method: Any, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    Store(tmp_path / "runs.db").add_benchmark(lamps())
    with pytest.raises(UsageError, match=re.escape(said)):
        proctor_train.fit_judge(tmp_path / "runs.db", "lamps", method=method, out=tmp_path / "out.json", **options)
    assert not (tmp_path / "out.json").exists()
