"""The program as other programs call it: a process with arguments, two streams and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import time
import unittest.mock
from collections.abc import Callable
from pathlib import Path

__all__ = ["proctor", "start_proctor", "wait_for", "within"]

_PROGRAM = (sys.executable, "-c", "from proctor.cli.main import main; main()")


def proctor(
    *arguments: str | Path, timeout: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs `proctor` and returns what it printed and how it ended."""
    return subprocess.run(
        [*_PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=os.environ | environment,
    )


def within(*arguments: str | Path) -> tuple[int, str]:
    """The program in this process: its exit code, and what it printed."""
    out = io.StringIO()
    with (
        unittest.mock.patch.object(sys, "argv", ["proctor", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        from proctor.cli.main import main

        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


def start_proctor(*arguments: str | Path) -> subprocess.Popen[str]:
    """Starts `proctor` in a process group of its own, so that signals reach it and nobody else."""
    return subprocess.Popen(
        [*_PROGRAM, *map(str, arguments)],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[str], patience_s: float = 60.0) -> None:
    """Raises where the process ends, or where it takes far too long, before it happens."""
    deadline = time.monotonic() + patience_s
    while not happened():
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"{process.returncode}: {process.stderr.read() if process.stderr else ''}")
        time.sleep(0.002)
