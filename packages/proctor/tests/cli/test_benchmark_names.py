"""A benchmark of one's own has a name that is said when its file is first read, and is found by its file too; a command
without the store that knows it says that names live in stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import proctor

TABLE = "id,question,answer,patient\nq1,Is it on?,yes,a\nq2,Is it off?,no,b\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROCTOR_STORE", raising=False)
    (tmp_path / "u1").mkdir()
    (tmp_path / "u1" / "questions.csv").write_text(TABLE)
    (tmp_path / "perguntas.csv").write_text(TABLE)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("u1", "Name: u1 (that of the folder; `name:` in benchmark.yaml changes it)"),
        ("u1/questions.csv", "Name: u1 (that of the folder; `name:` in benchmark.yaml changes it)"),
        ("perguntas.csv", "Name: perguntas (that of the file; `name:` in benchmark.yaml changes it)"),
    ],
)
def test_the_name_is_said_when_the_file_is_first_read(path: str, line: str, folder: Path) -> None:
    assert line in proctor("check", path).stderr.splitlines()
    (run,) = [proctor("run", path, "--system", "random", "--condition", "text-only", "--store", "a.db")]
    assert (run.returncode, line in run.stderr.splitlines()) == (0, True), run.stderr


def test_a_name_of_its_own_is_said_too(folder: Path) -> None:
    (folder / "u1" / "benchmark.yaml").write_text("name: pilot\n")
    assert "Name: pilot (from benchmark.yaml)" in proctor("check", "u1").stderr.splitlines()


@pytest.fixture
def store(folder: Path) -> Path:
    for path in ("u1/questions.csv", "perguntas.csv"):
        done = proctor("run", path, "--system", "random", "--condition", "text-only", "--store", "a.db")
        assert done.returncode == 0, done.stderr
    return folder / "a.db"


def test_the_name_the_file_and_the_path_are_one(store: Path) -> None:
    for command, word in (
        ("results", "u1"),
        ("results", "questions"),
        ("show", "questions"),
        ("show", "u1/questions.csv"),
    ):
        done = proctor(command, word, "--store", store)
        assert done.returncode == 0, done.stderr
        assert (f"questions is called u1 in {store}." in done.stderr) == (word == "questions"), done.stderr
    for word in ("u1", "questions"):
        again = proctor("run", word, "--system", "random", "--condition", "text-only", "--store", store)
        assert (again.returncode, again.stdout) == (0, f"Asked 0: nothing left to ask; in {store}\n"), again.stderr


def test_what_writes_takes_the_same_words(store: Path) -> None:
    done = proctor(
        "store", "change", "rename", "questions", "--system", "random", "--to", "dice", "--store", store, "--yes"
    )
    assert (done.returncode, done.stdout) == (0, "random is dice now, in 1 run\n"), done.stderr
    gone = proctor("store", "change", "delete", "questions", "--all", "--store", store, "--yes")
    assert gone.returncode == 0, gone.stderr
    assert "u1" not in proctor("list", "runs", "--store", store).stdout


def test_two_files_of_one_name_are_not_guessed(folder: Path) -> None:
    (folder / "u2").mkdir()
    (folder / "u2" / "questions.csv").write_text(TABLE)
    for path in ("u1", "u2"):
        assert proctor("run", path, "--system", "random", "--condition", "text-only", "--store", "a.db").returncode == 0
    done = proctor("results", "questions", "--store", "a.db")
    assert done.returncode == 1
    assert "a.db: found no benchmark 'questions', expected one of u1, u2" in done.stderr


def test_another_store_says_where_names_live(store: Path, folder: Path) -> None:
    assert (
        proctor("run", "perguntas.csv", "--system", "random", "--condition", "text-only", "--store", "b.db").returncode
        == 0
    )
    (folder / "u1").rename(folder / "away")
    done = proctor("run", "u1", "--system", "random", "--store", "b.db")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith("proctor: unknown benchmark 'u1': expected one of ")
    assert line.endswith("(--store); b.db has perguntas")
    assert "Your own questions go by their path, or by their name in the store that knows it" in line
    assert "go by their path" not in proctor("run", "rexsonvqa", "--system", "random").stderr, "that was a slip"
