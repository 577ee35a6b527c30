"""Ctrl-C ends with one sentence and the exit code 130 at any moment: while Python's own libraries load, while ours do, in a
command, and where an import hides what interrupted it. Real processes get a real signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from proctor.cli import STOPPED, STOPPED_EXIT
from proctor.cli.main import was_interrupted
from tests.support.program import proctor

# A process that sends itself the signal at a moment, and is the program otherwise: no clock decides.
_AT_AN_IMPORT = """
import builtins, os, runpy, signal, sys
ours = builtins.__import__
def watching(name, *rest, **more):
    if name == {module!r}:
        os.kill(os.getpid(), signal.SIGINT)
    return ours(name, *rest, **more)
builtins.__import__ = watching
sys.argv = ["proctor", *{arguments!r}]
runpy.run_module("proctor", run_name="__main__")
"""


def _interrupted(module: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    code = _AT_AN_IMPORT.format(module=module, arguments=[*map(str, arguments)])
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=os.environ)


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("proctor.cli.main", ["list"]),  # the first import of weight
        ("typer", ["list"]),
        ("pydantic", ["list"]),
        ("proctor.reports", ["list", "systems"]),  # inside of a command
    ],
)
def test_the_signal_ends_it_with_one_sentence(module: str, arguments: list[str]) -> None:
    done = _interrupted(module, *arguments)
    assert (done.returncode, done.stderr, done.stdout) == (STOPPED_EXIT, f"{STOPPED}\n", "")


def test_a_shell_that_ignores_the_signal_is_obeyed() -> None:
    """As in the background of a script: the command goes on."""
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    code += _AT_AN_IMPORT.format(module="typer", arguments=["list", "systems"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert "random" in done.stdout


@pytest.mark.parametrize("where", ["proctor.cli.tree.Command.invoke", "proctor.cli.tree.Command.parse_args"])
def test_what_the_library_takes_for_an_exit_has_a_sentence(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, pressed)
    done = proctor("list", "systems")
    assert (done.returncode, done.stderr, done.stdout) == (130, f"{STOPPED}\n", "")


def test_an_import_that_hides_it_is_looked_through() -> None:
    hidden = ImportError("numpy could not be loaded")
    hidden.__context__ = RuntimeError("in between")
    hidden.__context__.__cause__ = KeyboardInterrupt()
    assert was_interrupted(hidden)
    assert not was_interrupted(typer.Exit(130))


def test_a_question_is_no_dead_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C before the answer changes nothing, and neither does "no"."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.csv").write_text("id,question,answer,patient\nq1,Is it on?,yes,a\n")
    assert proctor("run", "q.csv", "--system", "random", "--condition", "text-only", "--store", "a.db").returncode == 0
    monkeypatch.setattr("proctor.cli.store._asked", lambda: True)
    for pressed, code, said in (
        (KeyboardInterrupt(), 130, f"{STOPPED}\n"),
        (EOFError(), 1, "Nothing was changed.\n"),
        (None, 1, "Nothing was changed.\n"),
    ):

        def confirm(_: str, pressed: BaseException | None = pressed) -> bool:
            if pressed is not None:
                try:
                    raise pressed
                except BaseException:  # noqa: BLE001  (as the library does)
                    raise typer.Abort from None
            return False

        monkeypatch.setattr("typer.confirm", confirm)
        done = proctor("store", "change", "delete", "q", "--all", "--store", "a.db")
        assert (done.returncode, done.stderr) == (code, said)
    assert "random" in proctor("list", "runs", "--store", "a.db").stdout


def test_the_number_is_the_shells() -> None:
    assert 128 + signal.SIGINT == STOPPED_EXIT
