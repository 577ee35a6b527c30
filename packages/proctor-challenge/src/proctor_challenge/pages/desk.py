"""The desk where uploads are received: one at a time for each team, from the first byte to the end of its check."""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from starlette.concurrency import run_in_threadpool

from proctor_challenge.challenge import Challenge
from proctor_challenge.submissions import renew_check
from proctor_challenge.uploads import RENEWED_S, check_received, settle_checked
from proctor_web import BusyError, WriterGate

CONCURRENT_CHECKS = 2
"""The number of checks at once in a process."""

_AGAIN_S = 2.0
_READABLE = 0o644  # by other accounts that serve the same folder, whatever the umask


@dataclass(eq=False)
class _Waiting:
    team: int
    order: int
    turn: asyncio.Future[None]


class FairQueue:
    """Gives out `most` slots. Of the teams that wait, the one that has used the fewest seconds so far comes first, and
    of those the one that came first: who sends costly files again and again waits for all others."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._free, self._clock = most, clock
        self._used: dict[int, float] = defaultdict(float)
        self._waiting: list[_Waiting] = []
        self._orders = 0

    @asynccontextmanager
    async def slot(self, team: int) -> AsyncIterator[None]:
        """A slot within the block."""
        await self._turn(team)
        start = self._clock()
        try:
            yield
        finally:
            self._used[team] += self._clock() - start
            self._pass_on()

    async def _turn(self, team: int) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        self._orders += 1
        mine = _Waiting(team, self._orders, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        try:
            await mine.turn
        except asyncio.CancelledError:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:  # its turn came as it left
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        if not self._waiting:
            self._free += 1
            return
        following = min(self._waiting, key=lambda one: (self._used[one.team], one.order))
        self._waiting.remove(following)
        following.turn.set_result(None)


class OccupiedError(Exception):
    """The team uploads already, or its upload is being checked, in this process or another one."""


@dataclass
class UploadDesk:
    """What is in progress: the `teams` that upload in this process, or whose upload it checks, each with a locked file
    in the folder of uploads, so that other processes see it. Changes of the database pass the `gate`."""

    challenge: Challenge
    gate: WriterGate
    teams: dict[int, int] = field(default_factory=dict)
    _queue: FairQueue = field(default_factory=lambda: FairQueue(CONCURRENT_CHECKS))
    _checks: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    @contextmanager
    def occupied(self, team: int) -> Iterator[None]:
        """Keeps the team from another upload within the block, and until the end of a check that begins in it. Raises
        `OccupiedError`."""
        locked = _locked(self._lock_file(team))
        if locked is None:
            raise OccupiedError
        self.teams[team] = locked
        try:
            yield
        finally:
            if team not in self._checks:
                self._leave(team)

    def _leave(self, team: int) -> None:
        self._lock_file(team).unlink(missing_ok=True)
        os.close(self.teams.pop(team))

    def _lock_file(self, team: int) -> Path:
        return self.challenge.uploads / f".team-{team}"

    def check(self, team: int, submission: int) -> asyncio.Task[None]:
        """Begins the check of a received submission. It goes on if nobody waits for it."""
        task = self._checks[team] = asyncio.create_task(self._checked(team, submission))

        def ended(_: asyncio.Task[None]) -> None:
            del self._checks[team]
            self._leave(team)

        task.add_done_callback(ended)
        return task

    async def _checked(self, team: int, submission: int) -> None:
        renewing = asyncio.create_task(self._renew(submission))
        try:
            async with self._queue.slot(team):
                found = await run_in_threadpool(check_received, self.challenge, submission)
            while True:
                try:
                    await self.gate.run(settle_checked, self.challenge, submission, found)
                except BusyError:
                    await asyncio.sleep(_AGAIN_S)
                else:
                    return
        finally:
            renewing.cancel()

    async def _renew(self, submission: int) -> None:
        while True:
            await asyncio.sleep(RENEWED_S)
            with suppress(BusyError):  # until the next time
                await self.gate.run(self._renewed, submission)

    def _renewed(self, submission: int) -> None:
        with self.challenge.writing() as connection:
            renew_check(connection, self.challenge, submission)


def _locked(path: Path) -> int | None:
    """The descriptor of a file that this call has locked, which is made if need be; None where somebody holds it. Who
    unlocks it deletes it before. What a killed server left holds nobody up, under whichever account it ran."""
    while True:
        try:
            opened = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            _make(path)
            continue
        except PermissionError:  # no server of this version made it: its files can be read
            path.unlink(missing_ok=True)
            continue
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(opened)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(opened), path.stat()):
                return opened
        os.close(opened)  # it was deleted by who held it


def _make(path: Path) -> None:
    """Makes the empty file, unless there is one. From the first moment all accounts can read it, and so lock it."""
    handle, draft = tempfile.mkstemp(prefix=".draft-", dir=path.parent)
    try:
        os.fchmod(handle, _READABLE)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(handle)
        Path(draft).unlink(missing_ok=True)
