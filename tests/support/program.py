"""The program as other programs call it: arguments, an environment, two streams and an exit code.

`proctor` runs it in this process: a start costs no second of imports. `start_proctor` and `proctor_forked` run it in a
process forked from one that has the libraries loaded, for signals, kills and a fresh environment. `proctor_process`
starts an interpreter, for what an import loads.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import subprocess
import sys
import time
import traceback
import unittest.mock
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.forked import Program

_PROGRAM = (sys.executable, "-c", "from proctor.cli.main import main; main()")
_HANGS_S = 600.0  # a guard against a process that never ends; no property of the program


class _Stream(io.TextIOWrapper):
    """A stream of text that keeps what was written, for `sys.stdout` and `sys.stderr`."""

    def __init__(self, *, terminal: bool = False) -> None:
        self._kept = io.BytesIO()
        self._terminal = terminal
        super().__init__(self._kept, encoding="utf-8", newline="\n", write_through=True)

    def isatty(self) -> bool:
        """Whether it passes for a terminal."""
        return self._terminal

    @property
    def text(self) -> str:
        """All that was written, as a pipe would have carried it to a reader of text."""
        return self._kept.getvalue().decode("utf-8").replace("\r\n", "\n")

    def close(self) -> None:
        """Closed streams keep their text: the program closes its own on a broken pipe."""
        self.flush()


def proctor(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `proctor` in this process and returns what it printed and how it ended.

    What a process would leave behind stays here too: the environment, the working folder, standard streams,
    logging, the filters of warnings. An exception that nobody catches is a traceback on standard error and the
    exit code 1, as in the interpreter. A warning is an error, as in all tests.
    """
    words = ["proctor", *map(str, arguments)]
    out, err = _Stream(), _Stream()
    with _as_left(), _standing_in(words, out, err), unittest.mock.patch.dict(os.environ, environment):
        code = _ended()
    return subprocess.CompletedProcess(words, code, out.text, err.text)


def within(*arguments: str | Path) -> tuple[int, str]:
    """The exit code of `proctor` in this process, and what it printed on both streams, in its order."""
    both = _Stream()
    with _as_left(), _standing_in(["proctor", *map(str, arguments)], both, both):
        code = _ended()
    return code, both.text


def within_terminal(*arguments: str | Path, columns: int, styles: bool = False) -> tuple[int, str]:
    """The exit code of `proctor` in this process on a terminal of this many columns, and what it printed on
    standard output, colours and bold type left out unless `styles` is said."""
    out, err = _Stream(terminal=True), _Stream()
    room = {"COLUMNS": str(columns), "LINES": "40", "TERM": "xterm", "NO_COLOR": "1"}
    words = ["proctor", *map(str, arguments)]
    with _as_left(), _standing_in(words, out, err), unittest.mock.patch.dict(os.environ, room):
        code = _ended()
    return code, out.text if styles else re.sub(r"\x1b\[[0-9;]*m", "", out.text)


def proctor_process(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `proctor` in a process of its own and returns what it printed and how it ended."""
    return subprocess.run(
        [*_PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=_HANGS_S,
        check=False,
        env=os.environ | environment,
    )


def start_proctor(*arguments: str | Path, **environment: str) -> Program:
    """Starts `proctor` in a process group of its own, so that signals reach it and nobody else."""
    return Program([*map(str, arguments)], os.environ | environment)


def proctor_forked(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `proctor` in a process of its own that had its libraries at the start."""
    process = start_proctor(*arguments, **environment)
    out, err = process.communicate(_HANGS_S)
    assert process.returncode is not None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_for(happened: Callable[[], bool], process: Program, patience_s: float = _HANGS_S) -> None:
    """Raises where the process ends, or where it hangs, before it happens."""
    deadline = time.monotonic() + patience_s
    while not happened():
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"{process.returncode}: {process.stderr.read()}")
        time.sleep(0.002)


def _ended() -> int:
    """The exit code of the program, whose arguments and streams are set."""
    from proctor.cli.main import main

    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except Exception:  # noqa: BLE001  (the edge of a process)
        traceback.print_exc()
        return 1
    return 0


@contextlib.contextmanager
def _standing_in(words: list[str], out: _Stream, err: _Stream) -> Iterator[None]:
    with (
        unittest.mock.patch.object(sys, "argv", words),
        unittest.mock.patch.object(sys, "stdin", io.StringIO()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        yield


@contextlib.contextmanager
def _as_left() -> Iterator[None]:
    """Working folder, filters of warnings and the root logger are afterwards what they were."""
    folder, root = Path.cwd(), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        with warnings.catch_warnings():
            yield
    finally:
        os.chdir(folder)
        root.handlers[:] = handlers
        root.setLevel(level)
