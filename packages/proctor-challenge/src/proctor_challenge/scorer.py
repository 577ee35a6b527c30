"""The scorer's process: scores answers and publishes boards apart from the worker, so that a judge's library or a file
that fills the memory can't end the worker. A scorer that was killed is started again; one whose database is away waits for
it, and says so in one line."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from proctor.core import ProctorError, error_line
from proctor.runs import StoreAwayError, away
from proctor_challenge.board_pages import publish
from proctor_challenge.boards import Figures
from proctor_challenge.challenge import Challenge
from proctor_challenge.queue import Leased
from proctor_challenge.scoring import score_submission, scorer_fingerprint

SCORING_S = 6 * 3600.0
"""The time limit for scoring one submission; a longer one is an error of the scorer."""

OUTAGE_S = 600.0
"""How long the scorer waits for a database that is away before that is a fault."""

_TRIES = 2
_REST_S = 1.0
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
    `tell` receives a line when it has to wait. Close it, or the program waits for it."""

    def __init__(
        self,
        folder: Path,
        store: str | None,
        scoring: Scoring = OWN,
        *,
        context: str = "spawn",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._arguments = (folder, store, scoring)
        self._tell = tell
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
        while True:
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
            if ok is not None:
                return ok, reply
            self._tell(reply)  # it waits

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
    replies = _Replies(folder, store, scoring, tell=lambda line: pipe.send((None, line)))
    while True:
        try:
            action, argument = pipe.recv()
        except EOFError:
            return
        pipe.send(replies.reply(action, argument))


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


@dataclass
class _Replies:
    """What the process replies to requests. It opens the challenge at the first one. All of them are safe to repeat."""

    folder: Path
    store: str | None
    scoring: Scoring
    tell: Callable[[str], None]
    _challenge: Challenge | None = field(default=None, init=False)

    def reply(self, action: str, argument: Any) -> tuple[bool, Any]:
        """Whether it succeeded, and the result or one line on what failed. A database that is away is waited for."""
        ends, told = time.monotonic() + OUTAGE_S, False
        while True:
            try:
                return True, self._perform(action, argument)
            except Exception as error:  # noqa: BLE001 - the edge of a process: the reply names whatever failed in a judge
                gone = _outage(error)
                if gone is None or time.monotonic() > ends:
                    return False, error_line(error)[:500]
            if not told:
                self.tell(f"the scorer waits for {gone}"[:500])
                told = True
            time.sleep(_REST_S)

    def _perform(self, action: str, argument: Any) -> Any:
        if self._challenge is None:
            self._challenge = Challenge.open(self.folder, "worker", store=self.store, create=False)
        match action:
            case "score":
                return self.scoring.score(self._challenge, argument), self.scoring.fingerprint(self._challenge)
            case "publish":
                self.scoring.publish(self._challenge, argument)
                return None
            case _:
                return self.scoring.fingerprint(self._challenge)


def _outage(error: Exception) -> StoreAwayError | None:
    """What is waited for; None for an error that does not go away by itself."""
    if isinstance(error, DBAPIError):
        sqlite = isinstance(error.orig, sqlite3.Error)
        return away("the challenge", error, "sqlite" if sqlite else "")
    return error if isinstance(error, StoreAwayError) else None
