"""A local program as a box, for trusted baselines and tests. It has the same contract as a container, and nothing
isolates it from the machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from pathlib import Path

from proctor.core import ConfigurationError, InputError
from proctor_challenge.containers.executors import (
    SOCKET,
    BoxEnd,
    BoxFolder,
    BoxLimits,
    StartedBox,
    connect_below,
    remove_folders,
    remove_orphans,
    same_label,
)

_LABEL = b"PROCTOR_BOX="
_LOOK_AGAIN_S = 0.005
_LAST_OUTPUT_S = 5.0  # all processes that could write are gone
_MAX_PATH = 100  # of a socket, below the kernel's limit of 108


class ProcessExecutor:
    """Starts a program: an executable, or a Python file (by this interpreter)."""

    name = "process"

    async def start(self, image: str, limits: BoxLimits, *, label: str) -> StartedBox:
        """As `Executor.start`. Only the limit of the output holds."""
        argv = _command(image)
        await remove_orphans(self.name, _kill_all)
        name = f"{label} {secrets.token_hex(8)}"
        box = BoxFolder(label, f"{self.name} {name}")
        folder = box.path
        known = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        location = str(folder / SOCKET)
        location = location if len(location) < _MAX_PATH else SOCKET  # relative to the working folder
        own = {"PROCTOR_SOCKET": location, "PROCTOR_BOX": name, "PYTHONUNBUFFERED": "1"}
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=folder,
                env=known | own,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            box.remove()
            raise ConfigurationError(f"{image}: {error.strerror or error}, expected a program") from error
        return ProcessBox(process, box, name, limits.log)

    async def remove_left(self, label: str) -> int:
        """As `Executor.remove_left`."""
        labels = {name: name.rpartition(" ")[0] for name in named().values()}
        left = {name: own for name, own in labels.items() if same_label(own, label)}
        for name in left:
            await _kill_all(name)
        for own in {label, *left.values()}:
            remove_folders(own)
        return len(left)

    async def load(self, archive: Path) -> str:
        """Raises `InputError`, since nothing would isolate an uploaded program from the machine."""
        raise InputError(archive, found="an uploaded image", expected="podman or docker to run it")

    async def unload(self, image: str) -> None:
        """Does nothing."""


def _command(image: str) -> list[str]:
    program = Path(image).absolute()  # its working folder is another one
    if not program.is_file():
        raise ConfigurationError(f"{image}: found no such program, expected an executable or a Python file")
    return [sys.executable, str(program)] if program.suffix == ".py" else [str(program)]


class ProcessBox:
    """A running program."""

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
            code = self._process.returncode  # None unless it ended by itself
            peak = _peak_memory(self._process.pid)
            if code is None:
                self._process.kill()
            await _kill_all(self._name)
            await self._process.wait()
            await asyncio.wait({self._reading}, timeout=_LAST_OUTPUT_S)
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._folder.remove()
            self._end = BoxEnd(
                exit_code=code if code is not None and code >= 0 else None,
                signal=-code if code is not None and code < 0 else None,
                peak_memory=peak,
                log=self._log.decode(errors="replace"),
            )
        return self._end

    async def _read(self, max_bytes: int) -> None:
        stream = self._process.stdout
        while stream is not None and (piece := await stream.read(2**16)):
            self._log += piece
            del self._log[: max(0, len(self._log) - max_bytes)]


def named() -> dict[int, str]:
    """By process id the label and name of its box, also for processes that left their parent."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for variable in (folder / "environ").read_bytes().split(b"\0"):
                if variable.startswith(_LABEL):
                    found[int(folder.name)] = variable.removeprefix(_LABEL).decode(errors="replace")
    return found


async def _kill_all(box: str) -> None:
    """Kills the processes of a box until two scans in a row find none, since a scan may miss a process that is leaving
    its parent."""
    empty = 0
    while empty < 2:
        left = {pid for pid, name in named().items() if name == box}
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        empty = 0 if left else empty + 1
        await asyncio.sleep(_LOOK_AGAIN_S)


def _peak_memory(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
