"""The locks of teams that upload, among servers of several accounts of this machine: whoever lives holds them, and nobody
who was killed does."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from proctor_challenge.pages.desk import OccupiedError, UploadDesk
from proctor_web import WriterGate
from tests.support.killed_child import in_a_fork, killed
from tests.support.means import missing

FORMER, LATER, GROUP = 61_101, 61_102, 61_103
TEAM = 3
TAKEN = 5


@pytest.fixture
def uploads() -> Iterator[Path]:
    """A folder of uploads in which both accounts may write."""
    if os.geteuid() != 0:
        missing("only root can be two other users")
    folder = Path(tempfile.mkdtemp(prefix="proctor-locks-"))
    os.chown(folder, FORMER, GROUP)
    folder.chmod(0o2775)
    yield folder
    shutil.rmtree(folder)


def as_account(user: int, work: Callable[[], object]) -> Callable[[], object]:
    """The same work, done as another user with a careful umask; to be called in a process of its own."""

    def there() -> object:
        os.setgroups([GROUP])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        os.umask(0o077)
        return work()

    return there


def occupy(uploads: Path, within: Callable[[], object] = lambda: None) -> int:
    """What a server does while a team uploads; its exit code."""
    desk = UploadDesk(SimpleNamespace(uploads=uploads), WriterGate(Counter()))  # type: ignore[arg-type]
    try:
        with desk.occupied(TEAM):
            within()
    except OccupiedError:
        return TAKEN
    return 0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_server_of_another_account_left_keeps_no_team_from_uploading(uploads: Path) -> None:
    killed(as_account(FORMER, lambda: occupy(uploads, die)))
    (left,) = uploads.iterdir()
    assert left.stat().st_uid == FORMER
    assert in_a_fork(as_account(LATER, lambda: occupy(uploads))) == 0
    assert list(uploads.iterdir()) == []


def test_a_file_that_nobody_else_can_open_keeps_no_team_from_uploading(uploads: Path) -> None:
    """As servers left it whose locks only their own account could open."""
    left = uploads / f".team-{TEAM}"
    left.touch(mode=0o600)
    os.chown(left, FORMER, FORMER)
    assert in_a_fork(as_account(LATER, lambda: occupy(uploads))) == 0
    assert list(uploads.iterdir()) == []


def test_a_living_server_of_another_account_keeps_the_team(uploads: Path) -> None:
    told: list[int] = []

    def another() -> None:
        told.append(in_a_fork(as_account(LATER, lambda: occupy(uploads))))

    assert occupy(uploads, another) == 0
    assert told == [TAKEN]
    assert in_a_fork(as_account(LATER, lambda: occupy(uploads))) == 0
