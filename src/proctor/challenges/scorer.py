"""The scorer's process: scores answers and publishes boards apart from the worker, so that a judge's library or a file
that fills the memory can't end the worker. A scorer that was killed is started again."""

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

from proctor.challenges.board_pages import publish
from proctor.challenges.boards import Figures
from proctor.challenges.challenge import Challenge
from proctor.challenges.queue import Leased
from proctor.challenges.scoring import score_submission, scorer_fingerprint
from proctor.core import ProctorError, error_line

SCORING_S = 6 * 3600.0
"""The time limit for scoring one submission; a longer one is a fault of the scorer."""

_TRIES = 2
_POLL_S = 0.5


@dataclass(frozen=True)
class Scoring:
    """The functions that score a submission, publish the boards of a phase, and give the fingerprint of code, judge and
    references. They are functions of modules, since another process imports them."""

    score: Callable[[Challenge, Leased], Figures]
    publish: Callable[[Challenge, str], None]
    fingerprint: Callable[[Challenge], str]


def _fingerprint(challenge: Challenge) -> str:
    return scorer_fingerprint(challenge.sealed)


OWN = Scoring(score_submission, publish, _fingerprint)
"""Proctor's own."""


class ScorerError(ProctorError):
    """Scoring or publishing failed; the organiser has to repair it."""


class ScorerProcess:
    """A process that is started when it is needed. A request during which it dies is repeated once, in a new process.
    Close it, or the program waits for it."""

    def __init__(self, folder: Path, store: str | None, scoring: Scoring = OWN, *, context: str = "spawn") -> None:
        self._arguments = (folder, store, scoring)
        self._context = multiprocessing.get_context(context)
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The id of the process; None when there is none."""
        return None if self._process is None else self._process.pid

    async def score(self, leased: Leased) -> tuple[Figures, str]:
        """The figures of a submission, and the fingerprint of the scorer. Raises `ScorerError`."""
        figures, fingerprint = await self._request("score", leased)
        return figures, fingerprint

    async def publish(self, phase: str) -> None:
        """Publishes the boards of a phase. Raises `ScorerError`."""
        await self._request("publish", phase)

    async def fingerprint(self) -> str:
        """The fingerprint of code, judge and references. Raises `ScorerError`."""
        return str(await self._request("fingerprint", None))

    def close(self) -> None:
        """Kills the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join()
            self._pipe.close()

    async def _request(self, action: str, argument: Any) -> Any:
        try:
            return await asyncio.to_thread(self._ask, (action, argument))
        except asyncio.CancelledError:
            self.close()  # this ends the thread as well
            raise

    def _ask(self, request: tuple[str, Any]) -> Any:
        with self._lock:
            for _ in range(_TRIES):
                with suppress(EOFError, BrokenPipeError, ConnectionResetError):
                    ok, reply = self._reply(request)
                    if not ok:
                        raise ScorerError(reply)
                    return reply
                self.close()
        raise ScorerError(f"the scorer's process ended {_TRIES} times")

    def _reply(self, request: tuple[str, Any]) -> tuple[bool, Any]:
        process, pipe = self._started()
        pipe.send(request)
        waited = 0.0
        while not pipe.poll(_POLL_S):
            waited += _POLL_S
            if waited > SCORING_S:
                self.close()
                raise ScorerError(f"scoring took longer than {SCORING_S / 3600:g} h")
            if not process.is_alive() and not pipe.poll():
                raise EOFError
        try:
            ok, reply = pipe.recv()
        except OSError as error:  # killed in the middle of its reply
            raise EOFError from error
        return ok, reply

    def _started(self) -> tuple[multiprocessing.process.BaseProcess, Connection]:
        if self._process is None or not self._process.is_alive():
            self.close()
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(theirs, *self._arguments))  # type: ignore[attr-defined]
            process.start()
            theirs.close()
            self._process, self._pipe = process, ours
        return self._process, self._pipe


def _serve(pipe: Connection, folder: Path, store: str | None, scoring: Scoring) -> None:
    """The process: replies to requests until its worker is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    challenge = Challenge.open(folder, "worker", store=store, create=False)
    while True:
        try:
            action, argument = pipe.recv()
        except EOFError:
            return
        pipe.send(_perform(challenge, scoring, action, argument))


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _perform(challenge: Challenge, scoring: Scoring, action: str, argument: Any) -> tuple[bool, Any]:
    try:
        match action:
            case "score":
                return True, (scoring.score(challenge, argument), scoring.fingerprint(challenge))
            case "publish":
                scoring.publish(challenge, argument)
                return True, None
            case _:
                return True, scoring.fingerprint(challenge)
    except Exception as error:  # noqa: BLE001 - the edge of a process: the reply names whatever failed in a judge
        return False, error_line(error)[:500]
