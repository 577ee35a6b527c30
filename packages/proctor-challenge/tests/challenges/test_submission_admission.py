"""What is no submission is refused, and what is late, missing or unreadable is wrong: the same for `proctor check`, an
import, a hosted challenge (files and images), both packs, and the official toolkit. On hundreds of files at random."""

from __future__ import annotations

import asyncio
import json
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.api import import_answers, rank, results
from proctor.core import InputError, generator
from proctor.metrics import AccuracyScorer
from proctor.metrics.accuracy import cause_of
from proctor.tasks.focus import READER
from proctor_challenge.admission import Admission, admission
from proctor_challenge.challenge import Challenge, SealedPart
from proctor_challenge.folder import NewChallenge, check_challenge, new_challenge
from proctor_challenge.opening import open_phase
from proctor_challenge.packs.parts import PhaseSource
from proctor_challenge.packs.platforms import write_jobs, write_pack
from proctor_challenge.packs.programs import evaluate_grand_challenge, figures_of
from proctor_challenge.scoring import Entrant, score_entrant
from proctor_challenge.settings import Budget, read_challenge
from proctor_challenge.submissions import submissions_of
from proctor_challenge.uploads import submit_file
from proctor_challenge.worker import Worker
from tests.support.focus_fuzz import fuzzed
from tests.support.focus_toolkit import toolkit
from tests.support.hosted import team
from tests.support.whole_challenge import PRE, ArchivedPrograms, OwnScorer, archive_of, program, whole_folder_of

Rng = np.random.Generator
PHASE = "pre-evaluation"
CODE_SCORES = {"binary", "number", "percentage", "fo_class", "time"}
"""The formats that the toolkit scores without a judge."""
FILES, HOSTED = 200, 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hidden phase of questions at random, in five formats."""
    where = tmp_path_factory.mktemp("admission")
    requests, references, _ = fuzzed(160, 7)
    kept = {one["qID"] for one in references if one["format"] in CODE_SCORES}
    data = where / "data"
    data.mkdir()
    for name, rows in (("requests", requests), ("references", references)):
        (data / f"{name}.json").write_text(json.dumps([one for one in rows if one["qID"] in kept]))
    groups = len({one["videoID"] for one in requests if one["qID"] in kept})
    new_challenge(where / "c", NewChallenge("focus", data, pre_evaluation=groups))
    return where / "c"


@pytest.fixture(scope="module")
def answered() -> list[dict[str, Any]]:
    """Answers to these questions, some of which are missing, late, null, or not in their format."""
    _, references, responses = fuzzed(160, 7)
    kept = {one["qID"] for one in references if one["format"] in CODE_SCORES}
    return [one for one in responses if one["qID"] in kept]


def spoilt(rng: Rng, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same file as another team might hand it in: answers are left out, late, at the limit, null, or nonsense."""
    made = []
    for one in answers:
        fate = rng.random()
        if fate < 0.1:
            continue
        changed = dict(one)
        if fate < 0.2:
            changed["latency"] = float(rng.choice([30.0, np.nextafter(30.0, 31.0), 30.5, 4e5]))
        elif fate < 0.3:
            changed["content"] = str(rng.choice(["about three", "", "I can't see it.", "yes or no", "7 ." * 9]))
        elif fate < 0.33:
            changed["content"] = None
        made.append(changed)
    return made


NO_SUBMISSION: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "an unknown question": lambda some: json.dumps([*some, {"qID": "q9", "content": "yes", "latency": 1}]),
    "an unknown question without an answer": lambda some: json.dumps([*some, {"qID": "q9", "content": None}]),
    "a question twice": lambda some: json.dumps([*some, some[0]]),
    "a question twice, once without an answer": lambda some: json.dumps([*some, {**some[0], "content": None}]),
    "a field twice": lambda some: json.dumps(some)[:-1] + ', {"qID": "q1", "content": "a", "content": "b"}]',
    "an answer that is no text": lambda some: json.dumps([*some[1:], {**some[0], "content": 3}]),
    "a latency that is no time": lambda some: json.dumps([*some[1:], {**some[0], "latency": "fast"}]),
    "a latency below 0": lambda some: json.dumps([*some[1:], {**some[0], "latency": -1}]),
    "an entry that is none": lambda some: json.dumps([*some, 7]),
    "no list": lambda some: json.dumps({"answers": 3}),
    "an empty list": lambda _: "[]",
    "nothing": lambda _: "",
    "no JSON": lambda some: json.dumps(some)[:-30],
    "one entry": lambda some: json.dumps(some[0]),
}


def files_at_random(answers: list[dict[str, Any]], count: int, seed: int) -> list[tuple[str, str]]:
    """Texts of files, each with what is wrong with it as a whole ("" for nothing)."""
    rng, made = generator(seed, "files to be admitted"), []
    for number in range(count):
        some = spoilt(rng, answers)
        kinds = [*NO_SUBMISSION]
        fault = kinds[number % len(kinds)] if rng.random() < 0.3 else ""
        made.append((fault, NO_SUBMISSION[fault](some) if fault else json.dumps(some)))
    return made


def admitted(folder: Path, file: Path) -> Admission:
    return admission("focus", "", folder / "public" / PHASE, Budget(question_s=30), file)


def official(folder: Path, text: str) -> dict[str, bool]:
    """The toolkit's correctness of each question. An answer that is null would end it: it is none."""
    kit, data = toolkit(), folder / "sealed" / PHASE
    said = [kit.models.Response(**one) for one in json.loads(text) if one["content"] is not None]
    evaluator = kit.evaluator.Evaluator(judges=[], n_boot=2)
    evaluator._hierarchical_summary = lambda rows: rows  # nobody reads it here, and it takes most of the time
    found, _ = evaluator.run(
        requests_of(kit, data), kit.models.load_references(data / "references.json"), said, track="procedure"
    )
    return dict(zip(found["qID"], map(bool, found["correctness"]), strict=True))


def requests_of(kit: Any, data: Path) -> list[Any]:
    names = ("qID", "videoID", "start_time", "end_time", "procedure_type", "question")
    rows = json.loads((data / "requests.json").read_text())
    return [kit.models.Request(**{name: row[name] for name in names}) for row in rows]


def test_hundreds_of_files_are_admitted_and_scored_alike(
    folder: Path, answered: list[dict[str, Any]], tmp_path: Path
) -> None:
    sealed = SealedPart(folder, read_challenge(folder, sealed=True)).benchmark(PHASE)
    file, scorer, seen = tmp_path / "answers.json", AccuracyScorer(), Counter[str]()
    for fault, text in files_at_random(answered, FILES, 3):
        file.write_text(text)
        found = admitted(folder, file)
        assert bool(found.problems) == bool(fault), (fault, found.problems[:3])
        if fault:
            with pytest.raises(InputError):
                READER.read_recorded(file, sealed)
            seen[fault] += 1
            continue
        answers = READER.read_recorded(file, sealed).answers
        by_rule = {line.split(": ")[2] for line in found.wrong}
        assert by_rule == {answer.item_id for answer in answers if cause_of(answer)}
        assert found.count == len(by_rule)
        seen.update(line.split(": ")[1] for line in found.wrong)
        scores = {
            item.id: scorer.compute(item, one).value == 1 for item, one in zip(sealed.items, answers, strict=True)
        }
        assert scores == official(folder, text)
    assert min(seen[name] for name in ("missing", "late", "format")) > FILES
    assert all(seen[name] for name in NO_SUBMISSION), seen


def test_the_same_scores_in_a_hosted_challenge_in_packs_and_in_rank(
    folder: Path, answered: list[dict[str, Any]], tmp_path: Path
) -> None:
    settings = read_challenge(folder, sealed=True)
    sealed, phase = SealedPart(folder, settings), settings.phase(PHASE)
    source = PhaseSource(folder, settings, phase)
    for number, (fault, text) in enumerate(files_at_random(answered, HOSTED, 4)):
        file = tmp_path / f"{number}.json"
        file.write_text(text)
        if fault:
            with pytest.raises(InputError):
                figures_of(folder, settings, phase, file)
            continue
        expected = official(folder, text)
        hosted = score_entrant(sealed, PHASE, Entrant(f"Team#{number}", file, ".json"))
        with sealed.store(PHASE) as store:
            run = next(run for run in store.runs("focus") if run.system == f"Team#{number}")
            rows = store.score_rows(run, metric="accuracy")
        assert {row.item_id: row.value == 1 for row in rows} == expected
        packed = {figure.name: figure.value for figure in figures_of(folder, settings, phase, file)}
        assert packed["technical"] == hosted.boards[0].mean
        assert packed["accuracy"] == pytest.approx(sum(expected.values()) / len(expected), abs=1e-12)
        store_file = tmp_path / f"{number}.db"
        import_answers("focus", file, name="team", data=folder / "sealed" / PHASE, store=store_file)
        ranked = rank(store_file, "focus", systems="team", baselines="none", latency="optional").rows
        assert {row["mean"] for row in ranked if row["board"] == "technical"} == {hosted.boards[0].mean}
        evaluated = grand_challenge(source, file, tmp_path / f"gc-{number}")
        assert evaluated["technical"] == pytest.approx(packed["technical"], abs=5e-4)
        assert evaluated["accuracy"] == pytest.approx(packed["accuracy"], abs=5e-4)


def grand_challenge(source: PhaseSource, file: Path, where: Path) -> dict[str, float]:
    """The aggregates of Grand Challenge's evaluation of jobs with these answers."""
    pack = source.folder / "sealed/packs/grand-challenge"
    if not pack.is_dir():
        write_pack("grand-challenge", source.folder, pack)
    write_jobs(source, file, where / "input")
    with tarfile.open(pack / PHASE / "ground_truth.tar.gz") as archive:
        archive.extractall(where / "truth", filter="data")
    (where / "output").mkdir()
    evaluate_grand_challenge(where / "input", where / "output", where / "truth")
    found: dict[str, float] = json.loads((where / "output/metrics.json").read_text())["aggregates"]
    return found


def test_a_baseline_is_admitted_by_the_same_rule(folder: Path, tmp_path: Path, answered: list[dict[str, Any]]) -> None:
    whole = json.loads((folder / "sealed" / PHASE / "requests.json").read_text())
    late = [{"qID": one["qID"], "content": "maybe", "latency": 31.0} for one in whole[:5]]
    settings = folder / "challenge.yaml"
    before = settings.read_text()
    try:
        settings.write_text(
            before.replace("baselines: []", f"baselines: [{{name: b, answers: {{{PHASE}: sealed/b.json}}}}]")
        )
        (folder / "sealed/b.json").write_text(json.dumps(late))
        assert check_challenge(folder).problems == ()
        (folder / "sealed/b.json").write_text(json.dumps([*late, late[0]]))
        (problem,) = check_challenge(folder).problems
        assert "baseline b: error: duplicate" in problem
    finally:
        settings.write_text(before)


# Files and images


ODD = {
    "unreadable": 'answer = "hard to say"',
    "late": "time.sleep(3600)",
    "missing": 'self.said(500, {"error": "ValueError"}); return',
}


def test_a_file_and_an_image_with_the_same_answers_get_the_same_scores(tmp_path: Path) -> None:
    folder = whole_folder_of(tmp_path)
    asked = [one["qID"] for one in json.loads((folder / "sealed" / PRE / "requests.json").read_text())]
    odd = dict(zip(asked[::7], [*ODD] * 2, strict=False))
    lines = [f"kind = {odd!r}.get(asked, '')"]
    lines += [f"if kind == {name!r}: {code}" for name, code in ODD.items()]
    source = program(folder, "odd", 0.8, 3, code="\n".join(lines))
    image = archive_of(source, podman=False)
    namespace: dict[str, Any] = {}
    known = source.read_text().split("KNOWN = ", 1)[1].split("\n", 1)[0]
    exec(f"known = {known}", namespace)
    answers = []
    for name in asked:
        kind = odd.get(name, "")
        if kind != "missing":
            text = "hard to say" if kind == "unreadable" else namespace["known"][name]
            answers.append({"qID": name, "content": text, "latency": 31.0 if kind == "late" else 0.1})
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(answers))
    challenge = Challenge.open(folder, "organiser")
    try:
        open_phase(challenge, PRE, None)
        mine = team(challenge, "Both")
        number, problems = submit_file(challenge, PRE, "both", file)
        assert (number, problems) == (1, [])
        assert submit_file(challenge, PRE, "both", image) == (2, [])
        worker = Worker(challenge, ArchivedPrograms(tmp_path), OwnScorer(challenge), ("file", "image"), gpu="")
        asyncio.run(worker.work(asyncio.Event(), once=True))
        with challenge.reading() as connection:
            states = {row["number"]: row for row in submissions_of(connection, mine)}
        assert {number: row["state"] for number, row in states.items()} == {1: "scored", 2: "scored"}
        assert states[1]["log"]["wrong"]["count"] == len(odd) == 5
        with challenge.sealed.store(PRE) as store:
            runs = {run.system: run for run in store.runs("focus")}
            scores = [
                {row.item_id: row.value for row in store.score_rows(runs[name], metric="accuracy")}
                for name in ("Both#1", "Both#2")
            ]
        assert scores[0] == scores[1]
        assert all(scores[0][name] == 0 for name in odd)
        assert sum(scores[0].values()) > 15
    finally:
        challenge.close()


# Somebody's own questions


@pytest.fixture
def own(tmp_path: Path) -> Path:
    rows = ["id,group,question,options,answer"]
    rows += [f"q{n:02d},p{n % 4},Is lamp {n} on?,,{'yes' if n % 2 else 'no'}" for n in range(20)]
    (tmp_path / "questions.csv").write_text("\n".join(rows) + "\n")
    new_challenge(tmp_path / "own", NewChallenge("own-questions", tmp_path / "questions.csv", pre_evaluation=4))
    return tmp_path / "own"


def table(file: Path, lines: list[str]) -> Path:
    file.write_text("id,answer\n" + "".join(f"{line}\n" for line in lines))
    return file


def test_own_questions_are_admitted_by_the_same_rule(own: Path, tmp_path: Path) -> None:
    public, right = own / "public" / PHASE, [f"q{n:02d},{'yes' if n % 2 else 'no'}" for n in range(20)]
    some = table(tmp_path / "some.csv", [*right[:14], "q14,perhaps"])  # 14 right, one unreadable, five missing
    found = admission("own-questions", "", public, Budget(), some)
    assert (found.problems, found.count) == ((), 6)
    assert [line.split(": ")[1:3] for line in found.wrong][:2] == [["format", "q14"], ["missing", "q15"]]
    sealed = SealedPart(own, read_challenge(own, sealed=True))
    figures = score_entrant(sealed, PHASE, Entrant("A#1", some, ".csv"))
    assert figures.boards[0].mean == 14 / 20
    assert figures.statuses == {"readable": 14, "unreadable": 1, "not_submitted": 5}
    packed = figures_of(own, sealed.settings, sealed.settings.phase(PHASE), some)
    assert packed[0].value == 14 / 20
    given: dict[str, Any] = {"name": "a", "data": own / "sealed" / PHASE}
    plain = import_answers("own-questions", some, store=tmp_path / "plain.db", **given)
    (row,) = results(plain, metrics="accuracy", failed="wrong").rows
    assert row["value"] == 14 / 20
    whole = import_answers("own-questions", some, store=tmp_path / "whole.db", submission=True, **given)
    (row,) = results(whole, metrics="accuracy").rows
    assert (row["value"], row["n"]) == (14 / 20, 20)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["q00,no", "q99,yes"], "error: unknown: q99: found an answer, expected an item of the benchmark"),
        (["q00,no", "q00,no"], "error: duplicate: q00: found several answers, expected one answer"),
        (["q00,no", "q00,yes"], "found another answer to q00"),
        (["q99,yes"], "found 'q99', expected the id of an item"),
        ([], "found no rows"),
    ],
)
def test_what_is_no_submission_to_own_questions(own: Path, tmp_path: Path, lines: list[str], problem: str) -> None:
    file = table(tmp_path / "a.csv", lines)
    found = admission("own-questions", "", own / "public" / PHASE, Budget(), file)
    assert len(found.problems) == 1
    assert problem in found.problems[0]
    sealed = read_challenge(own, sealed=True)
    with pytest.raises(InputError):
        figures_of(own, sealed, sealed.phase(PHASE), file)
