"""`proctor check`: which of its checks is meant, and which options go with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import proctor as python
from proctor.runs import Store
from tests.support.program import proctor

QUESTIONS = "id,question,answer,patient\nq1,Is it on?,yes,p1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROCTOR_STORE", raising=False)
    return tmp_path


@pytest.mark.parametrize("what", ["focus", "receipt", "documents", "rexsonovqa"])
def test_the_name_of_a_benchmark_or_kind_needs_a_file(what: str, folder: Path) -> None:
    done = proctor("check", what)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"proctor: FILE is missing. Give the file to check: proctor check {what} FILE\n"


def test_questions_in_a_folder_of_such_a_name_are_named_by_its_path(folder: Path) -> None:
    (folder / "focus").mkdir()
    (folder / "focus" / "questions.csv").write_text(QUESTIONS)
    (folder / "focus" / "benchmark.yaml").write_text("name: mine\n")
    done = proctor("check", "focus", "--out", "page.html")
    told = "Give the file to check: proctor check focus FILE; your questions in focus: proctor check ./focus"
    assert (done.returncode, done.stderr) == (2, f"proctor: FILE is missing. {told}\n")
    done = proctor("check", "./focus", "--out", "page.html")
    assert (done.returncode, done.stdout) == (0, "1 question in 1 group, no faults; 1 of them in page.html\n")


def test_what_is_neither_a_path_nor_a_name(folder: Path) -> None:
    done = proctor("check", "mine.csv")
    assert "mine.csv: found nothing there, expected a folder or a file with questions" in done.stderr
    done = proctor("check", "nothing", "mine.csv")
    assert (done.returncode, "unknown validator 'nothing': expected one of " in done.stderr) == (1, True)


@pytest.mark.parametrize("option", ["--data d", "--track t", "--option key=k", "--budget 0", "--latency required"])
def test_an_option_of_a_submission_is_refused_with_questions(option: str, folder: Path) -> None:
    (folder / "mine.csv").write_text(QUESTIONS)
    done = proctor("check", "mine.csv", *option.split())
    name = option.partition(" ")[0]
    told = f"proctor: {name} has no part here: it goes with a FILE: proctor check BENCHMARK FILE\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)
    assert not (folder / "preview.html").exists()


@pytest.mark.parametrize("option", ["--map question=Frage", "--out page.html"])
def test_an_option_of_questions_is_refused_with_a_file(option: str, folder: Path) -> None:
    done = proctor("check", "store", "runs.db", *option.split())
    told = f"{option.partition(' ')[0]} has no part here: it goes with your own questions: proctor check PATH"
    assert (done.returncode, done.stderr) == (2, f"proctor: {told}\n")


def test_a_store_is_named_as_a_file_by_the_option_or_by_the_environment(folder: Path) -> None:
    for name in ("runs.db", "proctor.db"):
        Store(folder / name).close()
    sound = (0, "Every row can be read.\n")
    for done in (
        proctor("check", "store", "runs.db"),
        proctor("check", "store", f"sqlite:///{folder / 'runs.db'}"),
        proctor("check", "store", "--store", "runs.db"),
        proctor("check", "store"),
        proctor("check", "store", PROCTOR_STORE="runs.db"),
    ):
        assert (done.returncode, done.stdout) == sound, done.stderr
    (folder / "proctor.db").unlink()
    (folder / "store").mkdir()  # no questions: these would be ./store
    none = proctor("check", "store")
    assert none.stderr == "proctor: proctor.db: found no such file, expected a store\n"
    assert sorted(one.name for one in folder.iterdir()) == ["runs.db", "store"]


def test_the_check_of_a_store_in_python_and_as_json(folder: Path) -> None:
    Store(folder / "runs.db").close()
    report = python.validate("store", "runs.db")
    assert (report.ok, report.json) == (True, {"damaged": []})
    assert json.loads(proctor("check", "store", "runs.db", "--format", "json").stdout) == {"damaged": []}
