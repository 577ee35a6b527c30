"""`--data`, `--media` and `--track` are named once: the store remembers them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.api import load
from proctor.core import FilesOrigin
from proctor.results import public_copy
from proctor.runs import Store
from proctor.shell.benchmarks import recalled, remember
from tests.support.program import proctor
from tests.support.text_folder import write_text_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_text_folder(tmp_path / "data", 12)


def run(store: Path, *more: str | Path) -> tuple[int, str]:
    given = ("run", "simulated", "--system", "classical-vision", "--condition", "text-only", "--store", store)
    done = proctor(*given, *more)
    return done.returncode, done.stderr


def test_the_second_run_needs_no_data(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    assert run(store, "--data", folder, "--limit", "3")[0] == 0
    assert run(store)[0] == 0
    opened = Store(store, create=False)
    (mine,) = [one for one in opened.runs("simulated") if one.system == "classical-vision"]
    assert opened.count_answers(mine) == (12, 0)
    assert opened.card("simulated").folders == {"data": str(folder.resolve()), "media": str(folder.resolve())}


def test_the_track_is_remembered_with_the_files(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    assert run(store, "--data", folder, "--limit", "3")[0] == 0
    opened = Store(store)
    remember(opened, replace(load("simulated", folder), origin=FilesOrigin(folder, "frame")))
    assert recalled("simulated", opened) == (str(folder.resolve()), str(folder.resolve()), "frame")
    assert recalled("simulated", opened, track="segment")[2] == "segment"
    assert recalled("simulated", opened, tmp_path) == (tmp_path, None, "")


def test_the_first_run_says_what_it_needs(tmp_path: Path) -> None:
    code, said = run(tmp_path / "runs.db")
    assert (code, (tmp_path / "runs.db").exists()) == (2, False)
    assert said == (
        "proctor: --data is missing. Give the folder with the files of simulated (a store remembers it): "
        "--data simulated\n"
    )


def test_a_benchmark_that_nobody_knows_is_named_first(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("id,answer\nq1,yes\n")
    done = proctor("import", "simulatd", tmp_path / "answers.csv", "--name", "me", "--store", tmp_path / "new.db")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("proctor: unknown benchmark 'simulatd': expected one of ")
    assert done.stderr.rstrip().endswith("did you mean 'simulated'?")


def test_files_that_moved_are_told(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    assert run(store, "--data", folder, "--limit", "3")[0] == 0
    moved = shutil.move(folder, tmp_path / "moved")
    code, said = run(store)
    assert code == 2
    assert (
        said == f"proctor: Nothing is at {folder.resolve()} any more, where the files of simulated were. Give their "
        "folder: --data FOLDER\n"
    )
    assert run(store, "--data", moved)[0] == 0
    assert run(store)[0] == 0


def test_no_path_is_published(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    run(store, "--data", folder, "--limit", "3")
    assert public_copy(Store(store, create=False), "simulated").card("simulated").folders == {}


def test_a_dry_run_counts_and_asks_nothing(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    model = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")  # nobody listens there
    given = ("run", "simulated", "--data", folder, "--condition", "text-only", "--store", store)
    done = proctor(*given, *model, "--system", "random", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert not store.exists()
    lines = done.stdout.splitlines()
    assert ["System", "Condition", "Already", "To", "ask", "Pictures", "Input", "tokens", "Input", "cost"] in map(
        str.split, lines
    )
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:]}
    assert rows["random"] == ["text-only", "0", "12", "0", "0", "–"]
    assert rows["m"][:4] == ["text-only", "0", "12", "0"]
    assert 12 * 150 < int("".join(rows["m"][4:-1])) < 12 * 400
    assert rows["m"][-1] == "unknown"
    assert "Nothing was asked." in done.stderr
    assert run(store, "--data", folder, "--limit", "5")[0] == 0
    again = proctor(*given, "--system", "classical-vision", "--dry-run").stdout.splitlines()[-1].split()
    assert again == ["classical-vision", "text-only", "5", "7", "0", "0", "–"]
