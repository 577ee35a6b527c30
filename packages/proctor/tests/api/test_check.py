"""`proctor.check`: what the command says, from Python; and what a store remembers of files that Python loaded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import proctor
from proctor.core import Frame, InputError
from tests.support.lamp_benchmark import lamps
from tests.support.program import proctor as shell

FAULTY = "id,question,answer,option A,option B,video,patient\nq1,Is it on?,C,yes,no,cups.mp4,p1\nq1,,A,yes,no,,p1\n"


def test_a_check_says_the_same_as_the_command(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(FAULTY)
    found, done = proctor.check(file), shell("check", file, "--format", "json")
    told = json.loads(done.stdout)
    assert (found.ok, len(found), found.rows) == (False, 4, told["faults"])
    assert (found.items, found.groups, list(found.notes)) == (told["items"], told["groups"], told["notes"])
    assert found.to_pandas()["row"].tolist() == [2, 2, 3, 3]
    assert found.title == f"{file}: 4 faults; nothing was written."
    assert "one of A, B, or the text of an option" in repr(found)
    with pytest.raises(InputError, match="found nothing there, expected a folder or a file with questions"):
        proctor.check(tmp_path / "none.csv")


def test_a_check_without_faults_writes_its_page_where_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("name,Frage,answer,patient\nq1,Is it on?,yes,p1\n")
    found = proctor.check(file, columns={"id": "name"})
    assert (found.ok, found.items, found.rows, found.title) == (True, 1, [], "1 question in 1 group, no faults")
    page = tmp_path / "page.html"
    assert proctor.check(file, columns={"id": ["name"]}, out=page).title.endswith(f"1 of them in {page}")
    assert "Is it on?" in page.read_text()


def _looks(frames: list[Frame]) -> str:
    return f"Answer: {'A' if frames else 'B'}"


def test_a_store_knows_where_loaded_questions_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, store = tmp_path / "mine", tmp_path / "runs.db"
    shell("new", folder)
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    made = proctor.run(proctor.load(folder), ["random", _looks], conditions="video", limit=3, store=store)
    card = made.store.card("my-questions")
    assert card.folders == {"data": str(folder), "media": str(folder / "media")}
    done = shell("results", folder, "--store", store)
    assert done.returncode == 0, done.stderr
    again = shell("run", "my-questions", "--system", "random", "--condition", "video", "--store", store)
    assert (again.returncode, "answers there already" in again.stderr) == (0, True), again.stderr
    assert proctor.reproduce(store).ok
    asked = next(iter(made.store.answers(next(run for run in made.runs if run.system == "_looks"))))
    shown = shell("show", "my-questions", asked, "--store", store, "--pictures", tmp_path / "shown")
    assert (shown.returncode, any((tmp_path / "shown").rglob("*.jp*g"))) == (0, True), shown.stderr


def test_a_named_benchmark_that_was_loaded_is_remembered_too(tmp_path: Path) -> None:
    data, store = tmp_path / "data", tmp_path / "s.db"
    shell("new", "simulated", data, "--videos", "1", "--seconds", "8", "--questions", "1")
    proctor.run(proctor.load("simulated", data), "random", conditions="text-only", limit=1, store=store)
    again = shell("run", "simulated", "--system", "random", "--condition", "text-only", "--store", store)
    assert again.returncode == 0, again.stderr


def test_a_benchmark_made_in_python_keeps_its_media_folder(tmp_path: Path) -> None:
    made = proctor.run(
        replace(lamps(), media_root=tmp_path), lambda: "yes", name="y", conditions="text-only", store=tmp_path / "s.db"
    )
    assert made.store.card("lamps").folders == {"media": str(tmp_path)}


def test_a_benchmark_without_facets_is_analyzed_by_answer_format(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    bare = replace(lamps(), facets=(), buckets=())
    made = proctor.run(bare, lambda: "yes", name="yes-man", conditions="text-only", store=store)
    found = made.analyze(condition="text-only", draws=100, stability=100)
    assert found.data.labels == "format"
    rows = found["capabilities"].query("system == 'yes-man'")[["label", "stratum", "n", "value"]].values.tolist()
    assert rows == [["binary", "all", 12, pytest.approx(2 / 3)], ["binary", "alone", 12, pytest.approx(2 / 3)]]
    assert {"pairs", "failures", "videos"} <= {name for name in found.names if len(found[name])}
    done = shell(
        "analyze", "lamps", "--store", store, "--condition", "text-only", "--draws", "100", "--stability", "100"
    )
    assert done.returncode == 0, done.stderr
    assert "no facet" not in done.stdout + done.stderr
    report = shell("report", "lamps", "--store", store, "--out", tmp_path / "r.html", "--draws", "100")
    assert report.returncode == 0, report.stderr
