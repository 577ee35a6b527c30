"""A local command as a box: for trusted baselines and for tests. It answers on the same socket by the same contract,
and nothing keeps it away from the machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import sys
from pathlib import Path

from proctor.containers.executors import (
    SOCKET,
    BoxEnd,
    BoxFolder,
    BoxLimits,
    StartedBox,
    connect_below,
    orphans,
    remove_folders,
    same_label,
)
from proctor.core import ConfigurationError, InputError

_LABEL = b"PROCTOR_BOX="
_LOOK_AGAIN_S = 0.005
_LAST_WORDS_S = 5.0  # nobody is left who could write more
_LONGEST_PLACE = 100  # of a socket's name, with a little room below the kernel's 108


class ProcessExecutor:
    """Starts a program: an executable, or a Python file (by this interpreter)."""

    name = "process"

    async def start(self, image: str, limits: BoxLimits, *, label: str) -> StartedBox:
        """As `Executor.start`; of the limits, only the one of what is printed holds."""
        argv = _command(image)
        await self._remove_orphans()
        name = f"{label} {secrets.token_hex(8)}"
        box = BoxFolder(label, f"{self.name} {name}")
        folder = box.path
        known = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        place = str(folder / SOCKET)
        place = place if len(place) < _LONGEST_PLACE else SOCKET  # in the folder that the program starts in
        told = {"PROCTOR_SOCKET": place, "PROCTOR_BOX": name, "PYTHONUNBUFFERED": "1"}
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=folder,
                env=known | told,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            box.remove()
            raise ConfigurationError(f"{image}: {error.strerror or error}, expected a program") from error
        return ProcessBox(process, box, name, limits.log)

    async def _remove_orphans(self) -> None:
        """Ends what processes of this machine left that were killed."""
        for folder, box in [*orphans()]:
            kind, _, name = box.partition(" ")
            if kind == self.name:
                await _kill_all(name)
            if kind in {self.name, ""}:
                shutil.rmtree(folder, ignore_errors=True)

    async def remove_left(self, label: str) -> int:
        """As `Executor.remove_left`."""
        found = {name: name.rpartition(" ")[0] for name in named().values()}
        left = {name: one for name, one in found.items() if same_label(one, label)}
        for name in left:
            await _kill_all(name)
        for one in {label, *left.values()}:
            remove_folders(one)
        return len(left)

    async def load(self, archive: Path) -> str:
        """Raises `InputError`: there is nothing to keep an uploaded program away from the machine."""
        raise InputError(archive, found="an uploaded image", expected="podman or docker to run it")

    async def unload(self, image: str) -> None:
        """Does nothing."""


def _command(image: str) -> list[str]:
    program = Path(image).absolute()  # it starts in another folder
    if not program.is_file():
        raise ConfigurationError(f"{image}: found no such program, expected an executable or a Python file")
    return [sys.executable, str(program)] if program.suffix == ".py" else [str(program)]


class ProcessBox:
    """A program that runs as a box."""

    def __init__(self, process: asyncio.subprocess.Process, folder: BoxFolder, name: str, log: int) -> None:
        self._process = process
        self._folder = folder
        self._name = name
        self._log = bytearray()
        self._reading = asyncio.create_task(self._read(log))
        self._end: BoxEnd | None = None

    @property
    def media(self) -> Path:
        return self._folder.media

    @property
    def media_inside(self) -> str:
        return str(self.media)

    def connect(self) -> socket.socket:
        folder = os.open(self._folder.path, os.O_PATH | os.O_DIRECTORY)
        try:
            return connect_below(folder, SOCKET)
        finally:
            os.close(folder)

    async def ended(self) -> bool:
        return self._process.returncode is not None

    async def stop(self) -> BoxEnd:
        if self._end is None:
            by_itself = self._process.returncode
            peak = _peak_memory(self._process.pid)
            if by_itself is None:
                self._process.kill()
            await _kill_all(self._name)
            await self._process.wait()
            await asyncio.wait({self._reading}, timeout=_LAST_WORDS_S)
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._folder.remove()
            code = None if by_itself is None else by_itself
            self._end = BoxEnd(
                exit_code=code if code is not None and code >= 0 else None,
                signal=-code if code is not None and code < 0 else None,
                peak_memory=peak,
                log=self._log.decode(errors="replace"),
            )
        return self._end

    async def _read(self, most: int) -> None:
        stream = self._process.stdout
        while stream is not None and (piece := await stream.read(2**16)):
            self._log += piece
            del self._log[: max(0, len(self._log) - most)]


def named() -> dict[int, str]:
    """Label and name of the box that a process was started for, also of one that left its parent; by process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for one in (folder / "environ").read_bytes().split(b"\0"):
                if one.startswith(_LABEL):
                    found[int(folder.name)] = one[len(_LABEL) :].decode(errors="replace")
    return found


async def _kill_all(box: str) -> None:
    """Kills the processes of a box until two looks in a row find none: one may be missed while it leaves its parent."""
    missed = 0
    while missed < 2:
        left = {pid for pid, name in named().items() if name == box}
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        missed = 0 if left else missed + 1
        await asyncio.sleep(_LOOK_AGAIN_S)


def _peak_memory(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
