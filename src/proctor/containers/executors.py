"""What runs a system that comes as an image: the protocols of an executor and of a box, its limits and its end. The folders of boxes: a question's media while it is asked, and whose box it is, so that nothing stays of a worker
that was killed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from proctor.core import ConfigurationError, InfrastructureError, UsageError

SOCKET = "socket"
"""The name of the Unix socket on which a box answers, in the folder that it finds by the variable `PROCTOR_SOCKET`."""


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """What a box may use, in bytes: `memory` (swap included), `shared_memory` (`/dev/shm`), `scratch` (`/tmp`) and
    `log` (what it prints); `cpus` cores, `processes` with their threads, `gpu` a CDI device (`nvidia.com/gpu=0`).

    >>> BoxLimits().memory // 2**30
    16
    """

    memory: int = 16 * 2**30
    cpus: float = 4.0
    processes: int = 256
    shared_memory: int = 2 * 2**30
    scratch: int = 4 * 2**30
    log: int = 2**20
    gpu: str | None = None

    @property
    def settings(self) -> dict[str, JsonValue]:
        """As they are recorded with a run."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class BoxEnd:
    """How a box ended: its exit code or the signal that ended it (None: we did), whether that was for its memory, its
    highest use of memory in bytes (None: not measured), and the end of what it printed, which says what it likes."""

    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False
    peak_memory: int | None = None
    log: str = ""


class StartedBox(Protocol):
    """A box that runs."""

    @property
    def media(self) -> Path:
        """The folder on this side whose files the box can read, and not change."""

    @property
    def media_inside(self) -> str:
        """The same folder's name inside the box."""

    def connect(self) -> socket.socket:
        """A connection to the box's socket, which does not block. Raises `OSError` where nothing listens, and where
        there is something else than a socket: no link is followed."""

    async def ended(self) -> bool:
        """Whether it ended by itself."""

    async def stop(self) -> BoxEnd:
        """Kills it with all that it started and removes what it leaves; says how it ended. A second call does nothing
        more."""


class Executor(Protocol):
    """Starts boxes."""

    @property
    def name(self) -> str:
        """podman, docker or process."""

    async def start(self, image: str, limits: BoxLimits, *, label: str) -> StartedBox:
        """Starts an image (a digest; a command of the process executor). `label` is CHALLENGE/SUBMISSION/FENCE. Raises
        `ConfigurationError` where the image can't be started, `InfrastructureError` where the machine is at fault."""

    async def remove_left(self, label: str) -> int:
        """Kills and removes what a worker that died left behind: the boxes with this label, or whose label begins with
        it before a `/`. Gives their number."""

    async def load(self, archive: Path) -> str:
        """Loads the one image of an archive and gives its digest. Raises `InputError` where it is none."""

    async def unload(self, image: str) -> None:
        """Gives an image back that was loaded: what nobody else loaded needs no room any more."""


class BoxError(ConfigurationError):
    """A box answers no more: nothing else is asked. `late` says that it ran and did not answer in time; else it ended.

    >>> BoxError("three answers in a row were late", late=True).late
    True
    """

    def __init__(self, message: str, *, late: bool) -> None:
        super().__init__(message)
        self.late = late


def connect_below(folder: int, *names: str) -> socket.socket:
    """A connection to the socket `names` (folders, then the socket) below an opened folder. Each step is opened without
    following a link and checked before it is used, so that what a box puts there leads nowhere else."""
    opened: list[int] = []
    try:
        for name in names[:-1]:
            opened.append(
                os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=opened[-1] if opened else folder)
            )
        opened.append(os.open(names[-1], os.O_PATH | os.O_NOFOLLOW, dir_fd=opened[-1] if opened else folder))
        if not stat.S_ISSOCK(os.fstat(opened[-1]).st_mode):
            raise FileNotFoundError(f"{names[-1]} is no socket")
        return _connected(f"/proc/self/fd/{opened[-1]}")
    finally:
        for one in opened:
            os.close(one)


def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def same_label(found: str, wanted: str) -> bool:
    """Whether a box's label is the wanted one or lies below it.

    >>> same_label("focus/12/3", "focus/12"), same_label("focus/123/1", "focus/12")
    (True, False)
    """
    return found == wanted or found.startswith(f"{wanted}/")


EXECUTORS = ("podman", "docker", "process")


def executor_of(name: str) -> Executor:
    """The executor of that name. Raises `UsageError` for another one, and `ConfigurationError` where this is no
    Linux."""
    from proctor.containers.podman import PodmanExecutor
    from proctor.containers.process import ProcessExecutor

    if platform.system() != "Linux":
        raise ConfigurationError(f"found {platform.system()}, expected Linux to run images on")
    match name:
        case "podman" | "docker":
            return PodmanExecutor(name)
        case "process":
            return ProcessExecutor()
    raise UsageError("--executor", f"one of {', '.join(EXECUTORS)}", found=repr(name))


_BOX = "box"


class BoxFolder:
    """A new folder for a box, in one that nobody else can open; its name says nothing of the label to the box. `box` is
    what its executor knows it by ("podman NAME"). While this process lives it holds a lock in it. Raises
    `InfrastructureError` where somebody else made the folder of folders."""

    def __init__(self, label: str, box: str) -> None:
        base = base_folder()
        draft = Path(tempfile.mkdtemp(prefix=".", dir=base))  # not seen as an orphan until its lock is held
        (draft / "input").mkdir()
        (draft / "input").chmod(0o755)
        self._lock = (draft / _BOX).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._lock.write(box)
        self._lock.flush()
        self.path = draft.rename(base / f"{_hash(label.rpartition('/')[0])}-{_hash(label)}-{draft.name[1:]}")

    @property
    def media(self) -> Path:
        """The part of it that the box can read."""
        return self.path / "input"

    def remove(self) -> None:
        """Removes all of it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def orphans() -> Iterator[tuple[Path, str]]:
    """The folders of boxes whose process ended without removing them, each with the box."""
    for folder in base_folder().glob("[!.]*-*-*"):
        try:
            with (folder / _BOX).open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                yield folder, file.read()
        except BlockingIOError:
            continue
        except FileNotFoundError:
            yield folder, ""


def remove_folders(label: str) -> None:
    """Removes the folders of this label, and of those right below it."""
    for pattern in (f"{_hash(label)}-*", f"*-{_hash(label)}-*"):
        for folder in base_folder().glob(pattern):
            shutil.rmtree(folder, ignore_errors=True)


def base_folder() -> Path:
    """The folder of this user's boxes. Raises `InfrastructureError` where others can open it."""
    base = Path(tempfile.gettempdir()) / f"proctor-boxes-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    found = base.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise InfrastructureError(f"{base}: found something that others can open, expected a folder of our own")
    return base


def _hash(label: str) -> str:
    return hashlib.sha256(label.encode()).hexdigest()[:16]
