"""The scorer's process: marks answers and publishes boards apart from the worker, so that neither a judge's library nor
a file that fills the memory ends the worker, and a killed scorer is started again."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from proctor.challenges.boards import Figures
from proctor.challenges.challenge import Challenge
from proctor.challenges.marking import mark, scorer_fingerprint
from proctor.challenges.publishing import publish
from proctor.challenges.queue import Leased
from proctor.core import ProctorError

MARKING_S = 6 * 3600.0
"""A scorer that marks one submission for longer is ended: a fault of the scorer."""

_TRIES = 2
_POLL_S = 0.5


@dataclass(frozen=True)
class Marking:
    """How answers are marked (`mark`), boards made (`publish`, of a phase), and by what (`fingerprint`, of code, judge
    and references). Functions of modules, since another process imports them."""

    mark: Callable[[Challenge, Leased], Figures]
    publish: Callable[[Challenge, str], None]
    fingerprint: Callable[[Challenge], str]


def _fingerprint(challenge: Challenge) -> str:
    return scorer_fingerprint(challenge.sealed)


OWN = Marking(mark, publish, _fingerprint)
"""Proctor's own."""


class ScorerError(ProctorError):
    """Marking or publishing failed; the organiser's to repair."""


class ScorerProcess:
    """One process, started when it is needed; what is asked while it dies is asked of the next one, once. Close it: the
    program waits for it else."""

    def __init__(self, folder: Path, store: str | None, marking: Marking = OWN, *, context: str = "spawn") -> None:
        self._given = (folder, store, marking)
        self._context = multiprocessing.get_context(context)
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """Of the process, where there is one."""
        return None if self._process is None else self._process.pid

    async def mark(self, leased: Leased) -> tuple[Figures, str]:
        """The figures of a submission, and the fingerprint of what marked it. Raises `ScorerError`."""
        figures, fingerprint = await self._asked(("mark", leased))
        return figures, fingerprint

    async def publish(self, phase: str) -> None:
        """Makes a phase's boards from all results. Raises `ScorerError`."""
        await self._asked(("publish", phase))

    async def fingerprint(self) -> str:
        """Of what marks. Raises `ScorerError`."""
        return str(await self._asked(("fingerprint", None)))

    def close(self) -> None:
        """Ends the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join()
            self._pipe.close()

    async def _asked(self, asked: tuple[str, Any]) -> Any:
        try:
            return await asyncio.to_thread(self._ask, asked)
        except asyncio.CancelledError:
            self.close()  # its thread ends with it
            raise

    def _ask(self, asked: tuple[str, Any]) -> Any:
        with self._lock:
            for _ in range(_TRIES):
                with suppress(EOFError, BrokenPipeError, ConnectionResetError):
                    ok, answer = self._answer(asked)
                    if not ok:
                        raise ScorerError(answer)
                    return answer
                self.close()
        raise ScorerError(f"the scorer's process ended {_TRIES} times")

    def _answer(self, asked: tuple[str, Any]) -> tuple[bool, Any]:
        process, pipe = self._started()
        pipe.send(asked)
        waited = 0.0
        while not pipe.poll(_POLL_S):
            waited += _POLL_S
            if waited > MARKING_S:
                self.close()
                raise ScorerError(f"marking took longer than {MARKING_S / 3600:g} h")
            if not process.is_alive() and not pipe.poll():
                raise EOFError
        try:
            ok, answer = pipe.recv()
        except OSError as error:  # killed in the middle of its answer
            raise EOFError from error
        return ok, answer

    def _started(self) -> tuple[multiprocessing.process.BaseProcess, Connection]:
        if self._process is None or not self._process.is_alive():
            self.close()
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(theirs, *self._given))  # type: ignore[attr-defined]
            process.start()
            theirs.close()
            self._process, self._pipe = process, ours
        return self._process, self._pipe


def _serve(pipe: Connection, folder: Path, store: str | None, marking: Marking) -> None:
    """In the process: answers until its worker is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    challenge = Challenge.open(folder, "worker", store=store)
    while True:
        try:
            what, given = pipe.recv()
        except EOFError:
            return
        pipe.send(_done(challenge, marking, what, given))


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _done(challenge: Challenge, marking: Marking, what: str, given: Any) -> tuple[bool, Any]:
    try:
        if what == "mark":
            return True, (marking.mark(challenge, given), marking.fingerprint(challenge))
        if what == "publish":
            return True, marking.publish(challenge, given)  # type: ignore[func-returns-value]
        return True, marking.fingerprint(challenge)
    except Exception as error:  # noqa: BLE001 - the edge of a process: whatever breaks in a judge is told
        return False, " ".join(f"{type(error).__name__}: {error}".split())[:500]
