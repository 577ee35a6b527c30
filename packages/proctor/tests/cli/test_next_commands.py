"""The command that a line names can be copied into a shell, whatever the names of folders and stores are; a reason that
quotes a whole page fits on a line."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from proctor.cli.run import causes
from proctor.core import store_word
from proctor.runs import Tally, shown_url
from tests.support.program import proctor


def test_the_next_command_takes_a_path_with_spaces_and_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    made = proctor("new", "Ann's own questions ä")
    check = command_in(made.stderr, "Next: ")
    checked = proctor(*check[1:])
    assert (check[:2], checked.returncode) == (["proctor", "check"], 0), checked.stderr
    run = command_in(checked.stderr, "Next: ")
    Path("all my runs").mkdir()
    asked = proctor(*run[1:], "--condition", "text-only", "--store", "all my runs/a.db")
    assert asked.returncode == 0, asked.stderr
    results = proctor(*command_in(asked.stderr, "Next: ")[1:])
    assert results.returncode == 0, results.stderr


def command_in(told: str, begins: str) -> list[str]:
    (line,) = [one.removeprefix(begins) for one in told.splitlines() if one.startswith(begins)]
    return shlex.split(line)


def test_a_long_reason_is_cut() -> None:
    tally = Tally(causes={f"ValueError: {'y' * 100_000}": 12, "odd returned int": 1})
    assert [len(line) for line in causes(tally)] == [205, 20]


def test_a_hidden_password_is_read_from_the_environment() -> None:
    """`***` can't be copied: without the variable the shell says what is expected, and runs nothing."""
    word = store_word(shown_url("postgresql://me:secret@db/runs"))
    assert "secret" not in word
    command = f"printf %s {word}"
    url = "postgresql://me:se'cret$x@db/runs"
    done = subprocess.run(["sh", "-c", command], env={"PROCTOR_STORE": url}, capture_output=True, text=True, check=True)
    assert done.stdout == url
    unset = subprocess.run(["sh", "-c", command], env={}, capture_output=True, text=True, check=False)
    assert unset.returncode != 0
    assert "export the URL of the store, with its password" in unset.stderr
    assert store_word("all my runs/a.db") == "'all my runs/a.db'"
