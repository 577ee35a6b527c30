"""What all executors of images have in common: protocols, limits, sockets, and the folders of running boxes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from proctor.core import ConfigurationError, InfrastructureError

EXECUTORS = ("podman", "docker", "process")

SOCKET = "socket"
"""The name of the Unix socket on which a box answers, in the folder of the path in `PROCTOR_SOCKET`."""

_BOX = "box"


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """What a box may use, in bytes: `memory` (swap included), `shared_memory` (`/dev/shm`), `scratch` (`/tmp`) and
    `log` (its output); `cpus` cores, `processes` with their threads, `gpu` a CDI device (`nvidia.com/gpu=0`).

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
        """The limits as a run records them."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class BoxEnd:
    """How a box ended: its exit code or signal (both None: we killed it), whether it ran out of memory, its peak memory
    in bytes (None: not measured), and the end of its output, which is not trusted."""

    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False
    peak_memory: int | None = None
    log: str = ""


class StartedBox(Protocol):
    """A running box."""

    @property
    def media(self) -> Path:
        """The folder of the host whose files the box can read and not change."""

    @property
    def media_inside(self) -> str:
        """The path of that folder inside the box."""

    def connect(self) -> socket.socket:
        """A non-blocking connection to the box's socket. Raises `OSError` when nothing listens, and for anything but a
        socket: links are not followed."""

    async def ended(self) -> bool:
        """Whether the box ended by itself."""

    async def stop(self) -> BoxEnd:
        """Kills the box with all its processes, removes what it leaves, and returns how it ended. A second call does
        nothing."""


class Executor(Protocol):
    """Starts boxes."""

    @property
    def name(self) -> str:
        """podman, docker or process."""

    async def start(self, image: str, limits: BoxLimits, *, label: str) -> StartedBox:
        """Starts an image (a digest; for the process executor a program). `label` is CHALLENGE/SUBMISSION/FENCE. Raises
        `ConfigurationError` when the image can't be started, `InfrastructureError` when the machine is at fault."""

    async def remove_left(self, label: str) -> int:
        """Kills and removes the boxes that a dead worker left: those with this label or one below it (after a `/`).
        Returns their number."""

    async def load(self, archive: Path) -> str:
        """Loads the only image of an archive and returns its digest. Raises `InputError` for an invalid archive."""

    async def unload(self, image: str) -> None:
        """Releases an image that was loaded. It is removed unless somebody else loaded it."""


class BoxError(ConfigurationError):
    """A box is given up: no more questions are asked. `late` says that it ran and did not answer in time; otherwise it
    ended.

    >>> BoxError("three answers in a row were late", late=True).late
    True
    """

    def __init__(self, message: str, *, late: bool) -> None:
        super().__init__(message)
        self.late = late


def same_label(found: str, wanted: str) -> bool:
    """Whether a box's label is the wanted one or lies below it.

    >>> same_label("focus/12/3", "focus/12"), same_label("focus/123/1", "focus/12")
    (True, False)
    """
    return found == wanted or found.startswith(f"{wanted}/")


def connect_below(folder: int, *names: str) -> socket.socket:
    """A connection to the socket `names` (folders, then the socket) below an opened folder. Each step is opened without
    following links and checked before it is used, so that nothing that a box puts there leads elsewhere."""
    opened = [folder]
    try:
        for name in names[:-1]:
            opened.append(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=opened[-1]))
        opened.append(os.open(names[-1], os.O_PATH | os.O_NOFOLLOW, dir_fd=opened[-1]))
        if not stat.S_ISSOCK(os.fstat(opened[-1]).st_mode):
            raise FileNotFoundError(f"{names[-1]} is no socket")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            connection.connect(f"/proc/self/fd/{opened[-1]}")
        except OSError:
            connection.close()
            raise
        return connection
    finally:
        for descriptor in opened[1:]:
            os.close(descriptor)


class BoxFolder:
    """A new folder for a box, in one that no other user can open. Its name reveals nothing of the label. `box` is the
    name by which its executor finds the box ("podman NAME"). This process holds a lock in the folder while it lives.
    Raises `InfrastructureError` when another user made the folder of folders."""

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
        """The subfolder that the box can read."""
        return self.path / "input"

    def remove(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


async def remove_orphans(executor: str, kill: Callable[[str], Awaitable[None]]) -> None:
    """Kills the executor's boxes whose process was killed, and removes their folders with the media."""
    for folder in [*base_folder().glob("[!.]*-*-*")]:
        box = ""
        try:
            with (folder / _BOX).open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                box = file.read()
        except BlockingIOError:
            continue  # its process lives
        except FileNotFoundError:
            pass
        kind, _, name = box.partition(" ")
        if kind == executor:
            await kill(name)
        if kind in {executor, ""}:
            shutil.rmtree(folder, ignore_errors=True)


def remove_folders(label: str) -> None:
    """Removes the folders of this label, and of labels right below it."""
    for pattern in (f"{_hash(label)}-*", f"*-{_hash(label)}-*"):
        for folder in base_folder().glob(pattern):
            shutil.rmtree(folder, ignore_errors=True)


def base_folder() -> Path:
    """The folder of this user's boxes. Raises `InfrastructureError` when others can open it."""
    base = Path(tempfile.gettempdir()) / f"proctor-boxes-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    found = base.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise InfrastructureError(f"{base}: found something that others can open, expected a folder of our own")
    return base


def _hash(label: str) -> str:
    return hashlib.sha256(label.encode()).hexdigest()[:16]
