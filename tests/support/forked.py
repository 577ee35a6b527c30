"""`proctor` in processes of its own that start at once: each is forked from one that has imported the libraries.

A forked process is a process: it has an id, a process group, streams and an exit code, and takes signals. What it does
not show is what an import loads or costs; `tests/support/program.py` has `proctor_process` for that.
"""

from __future__ import annotations

import importlib
import io
import multiprocessing
import os
import pkgutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path

_LIBRARIES = (
    "anyio._backends._asyncio",
    "jinja2.sandbox",
    "openai.resources.chat.completions",
    "pydantic_ai.direct",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai_compatible",
    "rich.progress",
    "scipy.stats",
    "sklearn.feature_extraction.text",
    "sqlalchemy.dialects.sqlite",
)


class Program:
    """A running `proctor`; what it needs of `subprocess.Popen`, with text streams."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        context = _context()
        out, out_end = context.Pipe(duplex=False)
        err, err_end = context.Pipe(duplex=False)
        begun, begun_end = context.Pipe(duplex=False)
        ends = (out_end, err_end, begun_end)
        given = (arguments, environment, str(Path.cwd()), *ends)
        self._process = context.Process(target=_run, args=given, daemon=True)
        self._process.start()
        for end in ends:
            end.close()
        self.stdout, self.stderr = _text(out), _text(err)
        self.args = ["proctor", *arguments]
        begun.recv_bytes()  # from here on signals reach its process group, and nobody else
        begun.close()

    @property
    def pid(self) -> int:
        """Its number, which is that of its process group."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The same."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """To this process alone."""
        os.kill(self.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Waits for its end; gives what it wrote that was not read yet. Raises `TimeoutError` where it does not end."""
        with ThreadPoolExecutor(2) as pool, self.stdout, self.stderr:
            written = [pool.submit(stream.read) for stream in (self.stdout, self.stderr)]
            self._process.join(timeout)
            if self._process.exitcode is None:
                self._process.kill()
                raise TimeoutError(f"{self.args} did not end within {timeout} s")
            out, err = (text.result() for text in written)
        return out, err


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    rooms = (importlib.import_module(f"proctor.{room}") for room in ("cli", "systems", "tasks"))
    own = [module.name for room in rooms for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")]
    context.set_forkserver_preload([*own, *_LIBRARIES])
    return context


def _text(pipe: Connection) -> io.TextIOWrapper:
    with pipe:
        return open(os.dup(pipe.fileno()), encoding="utf-8")  # noqa: PTH123  (closed by `communicate`)


def _run(
    arguments: list[str], environment: dict[str, str], folder: str, out: Connection, err: Connection, begun: Connection
) -> None:
    """In the forked process: takes its streams, its group and its surroundings, and is the program."""
    os.setsid()
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.argv = ["proctor", *arguments]
    for pipe in (out, err):
        pipe.close()
    begun.send_bytes(b"1")
    begun.close()
    from proctor.cli.main import main

    main()
