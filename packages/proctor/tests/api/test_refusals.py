"""What the functions of the API refuse, and with which words: each refusal is met once, and its message held."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pandas as pd
import pytest

import proctor
from proctor import core, runs, shell
from proctor.api import import_export, score_predictions
from proctor.core import Answer, ProctorError, RecordedAnswers
from tests.support.fuzzed_store import JUDGE, NAME, fuzzed
from tests.support.lamp_benchmark import lamps
from tests.support.text_folder import write_text_folder


def yes(question: str) -> str:
    return "yes"


def no(question: str) -> str:
    return "no"


def run(*systems: Any, **options: Any) -> Any:
    return proctor.run(lamps(), list(systems), **({"conditions": "text-only", "store": ":memory:"} | options))


TABLE = {"item": ["q1"], "system": ["a"], "value": [1.0]}
RATED = TABLE | {"rater": ["x"]}
LONG = "x" * 200


def with_another(folder: Path) -> Any:
    """A store with a second benchmark."""
    made = fuzzed(folder / "two", 1, items=12).store
    run("random", store=made)
    return made


def without_one(folder: Path) -> Any:
    """A store in which one system has one condition alone."""
    made = fuzzed(folder / "one", 1, items=12).store
    runs.delete_runs(made, [one for one in made.runs(NAME) if (one.system, one.condition) == ("alpha", "video")])
    return made


VERBS: tuple[Any, ...] = (proctor.results, proctor.compare, proctor.rank, proctor.leaderboard, proctor.analyze)

REFUSED: list[tuple[str, Callable[[Any, Path], Any]]] = [
    ("Nothing to ask. Give --system NAME", lambda _s, _f: run()),
    ("--system random is given twice: give each once", lambda _s, _f: run("random", "random")),
    ("--model openai:m is given twice: give each once", lambda _s, _f: run(model=["openai:m", "openai:m"])),
    ("Two systems would both be stored as 'yes'. Run them one after the other, with another --name.", lambda _s, _f: run(yes, proctor.system(name="yes")(no))),
    ("Two systems would both be stored as 'openai:m'",
     lambda _s, _f: run(model=["openai:m temperature=0", "openai:m temperature=1"])),
    ("Two systems would both be stored as 'openai:m'",
     lambda _s, _f: run(proctor.system(name="openai:m")(no), model="openai:m")),
    ("--settings temperature are a model's. Leave them out",
     lambda _s, _f: run(yes, settings={"temperature": 0})),
    ("--concurrency 0 can't be used: give a whole number of 1 or more", lambda _s, _f: run(yes, concurrency=0)),
    ("--concurrency True can't be used: give a whole number of 1 or more", lambda _s, _f: run(yes, concurrency=True)),
    ("--limit -1 can't be used: give a whole number of 1 or more", lambda _s, _f: run(yes, limit=-1)),
    ("--limit 0 can't be used: give a whole number of 1 or more", lambda _s, _f: run(yes, limit=0)),
    ("--limit 2.5 can't be used: give a whole number of 1 or more", lambda _s, _f: run(yes, limit=2.5)),
    ("--budget 'a' can't be used: give a number of 0.001 or more", lambda _s, _f: run(yes, budget_s="a")),
    ("lamps: found ids twice: room-1/q1, room-1/q2, room-1/q3, expected each id once",
     lambda _s, _f: proctor.run(replace(lamps(), items=lamps().items * 2), yes, conditions="text-only", store=":memory:")),
    ("--condition text-only is given twice: give each once", lambda _s, _f: run(yes, conditions=["text-only"] * 2)),
    ("Nothing is no name of a condition: proctor list conditions",
     lambda _s, _f: run(yes, conditions=[])),
    ("None is no name of a condition", lambda _s, _f: run(yes, conditions=None)),
    ("3 is no name of a condition", lambda _s, _f: run(yes, conditions=3)),
    ("--model is empty. Give PROVIDER:NAME", lambda _s, _f: run(model=" ")),
    ("--base-url is given 2 times: give it once for all models, or once for each (3).",
     lambda _s, _f: run(model=["openai:m", "openai:n", "openai:o"], base_url=["http://a/v1", "http://b/v1"])),
    ("--price is given 3 times: give it once for all models, or once for each (2).",
     lambda _s, _f: run(model=["openai:m", "openai:n"], price=["1/2"] * 3)),
    ("--name mine is for one system, and several are asked", lambda _s, _f: run(yes, no, name="mine")),
    ("random keeps its own name. Leave --name mine out", lambda _s, _f: run("random", name="mine")),
    ("--prompt paper is for models without a method. Leave it out.", lambda _s, _f: run(yes, prompt="paper")),
    ("--option kind belongs to one named system. Give that alone", lambda _s, _f: run(yes, options={"kind": 1})),
    ("--option kind belongs to one named system. Give that alone",
     lambda _s, _f: run("random", "majority", options={"kind": 1})),
    ("overlay: found 'sideways', expected ", lambda _s, _f: run(yes, overlay="sideways")),
    (f"overlay: found '{LONG[:79]}, expected ", lambda _s, _f: run(yes, overlay=LONG)),
    ("'big' is no size: write it like 20GB or 500MB", lambda _s, _f: run(yes, cache_size="big")),
    ("--data is missing. Give the folder with the files of focus", lambda _s, _f: proctor.load("focus")),
    ("The figures of --protocol official have two levels as they are. Leave --two-level out",
     lambda s, _f: shell.official_summary(s, NAME, two_level=True)),
    ("--protocol prints one summary as a whole. Leave --metric out",
     lambda s, _f: shell.official_summary(s, NAME, metrics="accuracy")),
    (f"--protocol 'official' does not fit: {NAME} has no summary of its own, so leave it out.",
     lambda s, _f: shell.official_summary(s, NAME)),
    *((f"--draws {draws!r} can't be used: give a whole number of 100 or more", lambda s, _f, of=of, draws=draws: of(s, NAME, draws=draws))
      for of in VERBS for draws in (1, 99, "x", 150.5, True, None, float("nan"))),
    *((f"--seed {seed!r} can't be used: give a whole number", lambda s, _f, of=of, seed=seed: of(s, NAME, seed=seed))
      for of in VERBS for seed in ("a", 0.5, None, False)),
    ("--level 'x' can't be used: give a number", lambda s, _f: proctor.results(s, NAME, level="x")),  # type: ignore[arg-type]
    ("--max-side 2000 can't be used: give a whole number from 16 to 1024",
     lambda s, f: proctor.report(s, f / "r.html", NAME, max_side=2000)),
    ("--timeout 0 can't be used: give a number of 0.1 or more", lambda _s, _f: run(model="openai:m", timeout_s=0)),
    ("failed: found 'never', expected one of wrong, exclude", lambda s, _f: proctor.results(s, NAME, failed="never")),
    ("--against 'alpha' names no run. Write SYSTEM/CONDITION.", lambda s, _f: proctor.compare(s, NAME, against="alpha")),
    ("--against '/video' names no run. Write SYSTEM/CONDITION.", lambda s, _f: proctor.compare(s, NAME, against="/video")),
    ("--against 'alpha/' names no run. Write SYSTEM/CONDITION.", lambda s, _f: proctor.compare(s, NAME, against="alpha/")),
    ("--pseudonyms works with --publish only", lambda s, f: proctor.report(s, f / "r.html", NAME, pseudonyms=True)),
    ("--publish leaves out items, so that --media pictures has no use",
     lambda s, f: proctor.report(s, f / "r.html", NAME, publish=True, media="pictures")),
    ("nothing: found no such folder, expected the folder of the benchmark's media",
     lambda s, f: proctor.report(s, f / "r.html", NAME, media=f / "nothing")),
    ("found a name that ends in .xyz, expected one that ends in .jsonl, .csv, .parquet, .xlsx, or --format: jsonl, csv",
     lambda s, f: proctor.export(s, f / "rows.xyz", NAME)),
    (f"--scorer of {NAME}: found 'nobody', expected one of {JUDGE}",
     lambda s, f: proctor.export(s, f / "said.jsonl", NAME, format="judgements", scorer="nobody", conditions="video")),
    ("alpha was run under several conditions. Choose one",
     lambda s, f: proctor.export(s, f / "said.jsonl", NAME, format="judgements", scorer=JUDGE, systems="alpha")),
    ("--media is missing. Give the folder of the benchmark's media", lambda s, _f: proctor.reproduce(s, NAME)),
    ("nothing: found no such folder, expected the folder of the benchmark's media",
     lambda s, f: proctor.reproduce(s, NAME, media=f / "nothing")),
    ("nothing: found no such folder, expected a folder with recorded answers", lambda _s, f: proctor.verify(f / "nothing")),
    ("benchmark: found 'simulated', expected one with published figures", lambda _s, f: proctor.verify(f, "simulated")),
    ("The file does not name its system. Give its name: --name NAME",
     lambda _s, f: proctor.import_answers(lamps(), f / "answers.csv", store=":memory:")),
    ("answers.csv holds no ratings. Leave --answers-only out",
     lambda _s, f: proctor.import_answers(lamps(), f / "answers.csv", name="a", answers_only=True, store=":memory:")),
    ("has no ratings of fuzzed by people. Import them: proctor import fuzzed RATINGS.csv",
     lambda s, f: proctor.import_answers(NAME, f / "answers.csv", scorer="mine", store=s)),
    ("benchmark 'focus': found a file of predictions, expected no file: import it",
     lambda _s, f: score_predictions("focus", f / "answers.csv", None)),
    ("A file of predictions needs its references. Give their file: --references FILE",
     lambda _s, f: score_predictions("clinicalskillqa", f / "answers.csv", None)),
    ("encode: found 'x', expected no field of this name",
     lambda s, _f: proctor.score(s, NAME, judge="bertscore", options={"encode": "x"})),
    ("prompted-order, random can't be asked together. Give one method alone.",
     lambda _s, _f: run("prompted-order", "random", model="openai:m")),
    ("The file does not name its system. Give its name: --name NAME",
     lambda _s, f: proctor.import_answers("simulated", f / "answers.json", data=write_text_folder(f / "data", 4), store=":memory:")),
    ("benchmark: found 'other', expected 'lamps', or a store",
     lambda _s, _f: proctor.results(run("random"), "other")),
    ("benchmark: found 2 benchmarks (fuzzed, lamps), expected the name of one", lambda _s, f: proctor.results(with_another(f))),
    ("found no benchmark, expected the name of one", lambda _s, _f: proctor.results(proctor.open_store(":memory:"))),
    ("found no run of alpha under video, expected a run of both",
     lambda _s, f: proctor.compare(without_one(f), NAME, against="alpha/video")),
    ("--media-as cropped does not fit: these videos are no parts of others",
     lambda _s, _f: proctor.run(lamps(), "random", store=":memory:", media_as="cropped")),
    ("lamps: found no answers in free text, expected some", lambda _s, _f: proctor.perturb(run("random"), scorer="rouge-l")),
    ("m: found 2 metrics, expected one of each name, or a list of tables",
     lambda _s, _f: proctor.audit({"m": pd.DataFrame({"item": ["q1"], "system": ["a"], "m1": [1.0], "m2": [1.0]})}, pd.DataFrame(RATED))),
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fuzzed(tmp_path_factory.mktemp("refused"), 1, items=12).store


@pytest.mark.parametrize(
    ("message", "call"), REFUSED, ids=[f"{n}-{message[:40]}" for n, (message, _) in enumerate(REFUSED)]
)
def test_a_refusal(message: str, call: Any, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "answers.csv").write_text("id,answer\nroom-1/q1,yes\n")
    with pytest.raises(ProctorError, match=re.escape(message)):
        call(store, tmp_path)


FOUND = RecordedAnswers((Answer(item_id="room-1/q1", text="no", parsed=False),), condition="muted", system="theirs")


@pytest.mark.parametrize(
    ("given", "under"),
    [({}, "theirs / muted"), ({"condition": "muted"}, "theirs / muted"), ({"name": "mine"}, "mine / muted")],
)
def test_files_may_name_condition_and_system(
    given: dict[str, Any], under: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_export, "read_foreign", lambda *_: FOUND)
    made = proctor.import_answers(lamps(), tmp_path / "x.json", form="inspect", store=":memory:", **given)
    assert made.done[0].startswith(f"1 answer and 0 judgements as {under} in ")
    assert (made.systems, made.conditions) == ((under.partition(" / ")[0],), ("muted",))


def test_a_condition_that_the_files_contradict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_export, "read_foreign", lambda *_: FOUND)
    with pytest.raises(ProctorError, match="--condition: found video, expected muted, as the files' names say"):
        proctor.import_answers(lamps(), tmp_path / "x.json", form="inspect", condition="video", store=":memory:")


@pytest.mark.parametrize(("given", "under"), [({}, "video"), ({"condition": "muted"}, "muted")])
def test_a_file_of_ratings_is_of_one_condition(
    given: dict[str, Any], under: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    async def import_systems(store: Any, benchmark: Any, _systems: Any, *, condition: str) -> list[Any]:
        store.add_benchmark(benchmark)
        found.append(condition)
        return []

    benchmark = lamps()
    one, two = [core.Answer(item_id=item.id) for item in benchmark.items[:2]]
    scores = [
        core.Score(item_id=of.item_id, metric=name, value=1, scorer="human:A")
        for of, name in ((one, "a"), (one, "b"), (two, "a"))
    ]
    rated = core.RecordedAnswers((one, two), scores=tuple(scores), system="theirs", notes=("a note",))
    reader = MagicMock(read_ratings=lambda *_, **__: [rated])
    monkeypatch.setattr(core.RATING_READERS, "of", lambda _: reader)
    monkeypatch.setattr(import_export, "form_of", lambda *_: "")
    monkeypatch.setattr(runs, "import_systems", import_systems)
    made = proctor.import_answers(benchmark, tmp_path / "x.csv", store=":memory:", **given)
    assert found == [under]
    assert made.done[0].startswith(f"2 answers with 3 ratings as theirs / {under} in ")
    assert made.notes == ("theirs: a note",)


@pytest.mark.parametrize("pseudonyms", [True, {"alpha": "A", "beta": "B", "gamma": "C", "delta": "D"}])
def test_pseudonyms_replace_names(pseudonyms: Any, store: Any, tmp_path: Path) -> None:
    proctor.report(store, tmp_path / "r.html", NAME, publish=True, pseudonyms=pseudonyms, draws=100)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "alpha" not in page
    assert ("System 1" if pseudonyms is True else ">A<") in page


def test_a_typo_in_an_option_is_told() -> None:
    misspelt: Any = {"system": "a"}
    for function in (proctor.results, proctor.compare, proctor.rank, proctor.analyze, proctor.export):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'system'; did you mean 'systems'\?"):
            function(**misspelt)
