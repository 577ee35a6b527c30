"""The folders of boxes: a question's media while it is asked, and whose box it is, so that nothing stays of a worker
that was killed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from proctor.core import InfrastructureError

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
