"""Child processes that handle untrusted content within limits of time and memory: what exceeds them ends the child and
no other process."""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
from multiprocessing.connection import wait
from typing import IO, Any, cast

from proctor.core.atomic_files import when_gone
from proctor.core.errors import ProctorError
from proctor.core.files import load_json


def limit_resources(*, seconds: int, memory: int, final: bool = False) -> None:
    """Limits this process, from now on, to seconds of processor time and to bytes of memory in all. A later call may
    set others, unless these are `final`.

    >>> child = ChildProcess("-c", "import proctor.core as core; core.limit_resources(seconds=5, memory=2**30); print('{}')")
    >>> child.ask(patience_s=60)
    {}
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = math.ceil(usage.ru_utime + usage.ru_stime)
    for kind, limit in ((resource.RLIMIT_CPU, used + seconds), (resource.RLIMIT_AS, memory)):
        hard = resource.getrlimit(kind)[1]
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (allowed, allowed if final else hard))


class ChildEndedError(ProctorError):
    """A child process ended, or was ended, before it replied: it exceeded a limit."""


class ChildProcess:
    """A Python program that reads requests from its standard input and replies to each with a line of JSON, which raw
    bytes may follow. It ends with this object, and when it fails to reply. Not for several threads at once.

    >>> child = ChildProcess("-c", "print('{}', flush=True); input()")
    >>> child.ask(patience_s=60), child.is_running
    ({}, True)
    """

    def __init__(self, *program: str, **environment: str) -> None:
        self._child = subprocess.Popen(  # noqa: S603 - this interpreter, and a program of this package
            [sys.executable, "-P", *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        self._requests, self._replies = cast("IO[bytes]", self._child.stdin), cast("IO[bytes]", self._child.stdout)
        self.end = when_gone(self, _end, self._child)

    @property
    def is_running(self) -> bool:
        """Whether it can be asked."""
        return self.end.alive and self._child.poll() is None

    def ask(self, *parts: bytes, patience_s: float) -> dict[str, Any]:
        """The reply to a request. Raises `ChildEndedError` if there is none within `patience_s` seconds of wall time (a
        limit of processor time does not stop a process that waits)."""
        try:
            for part in parts:
                self._requests.write(part)
            self._requests.flush()
        except (BrokenPipeError, ValueError):  # ValueError: it was ended before
            raise self.ended() from None
        if not wait([self._replies.fileno()], patience_s):
            raise self.ended()
        line = self._replies.readline()
        if not line.endswith(b"\n"):
            raise self.ended()
        return dict(load_json(line, halves=True))

    def read(self, size: int) -> bytes:
        """The bytes after a reply. Raises `ChildEndedError` if there are fewer."""
        raw = b"" if self._replies.closed else self._replies.read(size)
        if len(raw) < size:
            raise self.ended()
        return raw

    def ended(self) -> ChildEndedError:
        """Ends the process, and returns the error that says so."""
        self.end()
        return ChildEndedError("a child process ended before it replied")


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()
