"""What the shell does, Python does: the same answers, the same numbers, the same sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import proctor
from tests.support.program import proctor as shell

SYSTEM = '''
def first(question, options):
    """Always the first option."""
    return "Answer: A"


async def broken(item, view):
    raise KeyError(item.id)
'''

DRAWN = {"draws": 2000, "seed": 0, "two_level": False}
"""What JSON says beside the rows that Python has."""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(SYSTEM, encoding="utf-8")
    return file


def test_a_function_in_a_file_is_a_system_in_the_shell(data: Path, mine: Path, tmp_path: Path) -> None:
    files, store = data / "rexsonovqa", tmp_path / "runs.db"
    done = shell(
        "run", "rexsonovqa", "--data", files, "--system", f"{mine}:first", "--condition", "text-only",
        "--store", store,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Asked 514: 514 answered" in done.stdout
    made = proctor.run("rexsonovqa", f"{mine}:first", data=files, conditions="text-only", store=tmp_path / "python.db")
    assert made.done[0] == f"Asked 514: 514 answered; in {tmp_path / 'python.db'}"
    assert made.done[1].startswith("265 questions in free text: a judge has to score the answers")
    told = shell("results", "rexsonovqa", "--store", store, "--format", "json")
    in_shell = [row for row in json.loads(told.stdout) if row["system"] == "first"]
    in_python = [{**row, "facets": {}, "settings": DRAWN} for row in made.results()]
    assert in_python == in_shell
    # The same function: nothing is asked again, whoever began.
    again = proctor.run("rexsonovqa", f"{mine}:first", data=files, conditions="text-only", store=store)
    assert again.outcome is not None
    assert again.outcome.tally.done == 0


def test_an_error_of_ones_own_code_is_shown_with_its_line(data: Path, mine: Path, tmp_path: Path) -> None:
    done = shell(
        "run", "rexsonovqa", "--data", data / "rexsonovqa", "--system", f"{mine}:broken", "--condition", "text-only",
        "--limit", "3", "--store", tmp_path / "runs.db",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Asked 3: 3 error" in done.stdout
    assert "KeyError: " in done.stderr
    assert "(mine.py, line 8)" in " ".join(done.stderr.split())


def test_a_name_that_is_no_system_is_one_line(data: Path, tmp_path: Path) -> None:
    done = shell(
        "run", "rexsonovqa", "--data", data / "rexsonovqa", "--system", "mine.py:gone", "--condition", "text-only",
        "--store", tmp_path / "runs.db",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "proctor: mine.py: found no such file, expected a Python file\n")


def test_missing_media_come_with_the_way_to_get_them(data: Path, tmp_path: Path) -> None:
    with pytest.raises(proctor.InputError, match="found 0 of 47 media files, missing") as caught:
        proctor.run("rexsonovqa", "shortest-option", data=data / "rexsonovqa", media=tmp_path, store=":memory:")
    assert "yt-dlp" in "".join(caught.value.__notes__)


def test_answers_are_imported_alike(data: Path, tmp_path: Path) -> None:
    recorded = next(path for path in sorted((data / "rexsonovqa" / "results").iterdir()))
    made = proctor.import_answers(
        "rexsonovqa", recorded, name="recorded", data=data / "rexsonovqa", store=tmp_path / "python.db"
    )
    done = shell(
        "import", "rexsonovqa", recorded, "--data", data / "rexsonovqa", "--name", "recorded",
        "--store", tmp_path / "shell.db",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line.replace("python.db", "shell.db") for line in made.done] == done.stdout.splitlines()
    told = shell("results", "rexsonovqa", "--store", tmp_path / "shell.db", "--format", "json")
    in_python = [{**row, "facets": {}, "settings": DRAWN} for row in proctor.results(made.store)]
    assert in_python == json.loads(told.stdout)
