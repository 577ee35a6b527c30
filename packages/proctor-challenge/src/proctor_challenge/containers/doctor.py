"""Checks whether a machine can run containers: each limit is tried from inside a box."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from proctor.core import ProctorError
from proctor_challenge.containers.executors import BoxLimits, Executor, StartedBox
from proctor_challenge.containers.gateway import BoxGoneError, invoke, wait_until_ready
from proctor_challenge.containers.images import BOX_PROBE, program_image

_TIGHT = BoxLimits(memory=2**28, cpus=1, processes=64, shared_memory=2**20, scratch=2**22, log=2**16)
_SOCKET_BYTES = 2**16
_STARTUP_S = 120.0
_TIMEOUT_S = 60.0
_SHORT_S = 0.2
_OVERRUN_S = 0.05
_TIMES = 50


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """One property: whether it holds (None: for information only), what was found, and what is expected."""

    name: str
    ok: bool | None
    found: str
    expected: str = ""

    @property
    def line(self) -> str:
        """The check as a line of text."""
        word = "-" if self.ok is None else "ok" if self.ok else "FAILED"
        expected = f", expected {self.expected}" if self.ok is False else ""
        return f"{word} {self.name}: {self.found}{expected}"


async def examine(executor: Executor, limits: BoxLimits) -> list[MachineCheck]:
    """Tests the guarantees of an executor on this machine with tight limits, and then that a box with the challenge's
    own `limits` starts. Raises `ConfigurationError` when the engine is not installed."""
    found = [*_machine(limits)]
    try:
        image = await program_image(executor, BOX_PROBE)
        async with _box(executor, image, _TIGHT) as box:
            found += [*_rights(await _ask(box, "rights")), _network(await _ask(box, "network"))]
            found += _writes(await _ask(box, "written"))
            count, expected = await _ask(box, "processes"), f"fewer than {_TIGHT.processes}"
            found.append(MachineCheck("limit of processes", count < _TIGHT.processes, str(count), expected))
            found += [await _overhead(box), await _deadlines(box)]
        found.append(await _memory(executor, image))
        found += await _start_with(executor, image, limits)
    except ProctorError as error:
        found.append(MachineCheck("containers", False, str(error), "one that runs"))
    finally:
        await executor.remove_left(_label())
    return found


def _machine(limits: BoxLimits) -> list[MachineCheck]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = os.cpu_count() or 1
    free = shutil.disk_usage(tempfile.gettempdir()).free
    enough = f"more than a container's {_size(limits.memory)}"
    return [
        MachineCheck("memory", memory > limits.memory, _size(memory), enough),
        MachineCheck("cores", cores >= limits.cpus, str(cores), f"at least a container's {limits.cpus:g}"),
        MachineCheck("space for media", None, f"{_size(free)} in {tempfile.gettempdir()}"),
    ]


def _rights(probe: dict[str, Any]) -> list[MachineCheck]:
    user, capabilities = probe["user"], probe["capabilities"]
    return [
        MachineCheck("user", user != 0, str(user), "not root"),
        MachineCheck("capabilities", not capabilities, f"{capabilities:#x}", "none"),
        _either("new privileges", probe["no_new_privileges"], "refused", "possible"),
        _either("filter of system calls", probe["filter"], "on", "off"),
        _either("own namespaces", not probe["namespaces"], "refused", "possible"),
    ]


def _either(name: str, ok: bool, expected: str, otherwise: str) -> MachineCheck:
    return MachineCheck(name, ok, expected if ok else otherwise, expected)


def _network(probe: dict[str, Any]) -> MachineCheck:
    found = ", ".join(probe["interfaces"]) + (", a route to the world" if probe["route"] else "")
    return MachineCheck("network", probe["interfaces"] == ["lo"] and not probe["route"], found, "lo alone")


def _writes(probe: dict[str, int]) -> list[MachineCheck]:
    limits = {
        "scratch": ("/tmp", _TIGHT.scratch),  # noqa: S108 - inside
        "shared": ("/dev/shm", _TIGHT.shared_memory),  # noqa: S108 - inside
        "socket": ("the socket's folder", _SOCKET_BYTES),
    }
    found = [
        MachineCheck(f"limit of {folder}", 0 < probe[name] <= limit, _size(probe[name]), f"at most {_size(limit)}")
        for name, (folder, limit) in limits.items()
    ]
    closed = probe["root"] < 0 and probe["input"] < 0
    return [*found, _either("other folders", closed, "read-only", "writable")]


async def _overhead(box: StartedBox) -> MachineCheck:
    times = []
    for _ in range(_TIMES):
        started = time.monotonic()
        await _ask(box, "nothing")
        times.append(time.monotonic() - started)
    return MachineCheck("a question's way to the container and back", None, f"{1000 * median(times):.1f} ms (median)")


async def _deadlines(box: StartedBox) -> MachineCheck:
    overruns = []
    for _ in range(3):
        started = time.monotonic()
        try:
            await _ask(box, "sleep", _SHORT_S)
        except TimeoutError:
            overruns.append(time.monotonic() - started - _SHORT_S)
    worst = max(overruns, default=float("inf"))
    late, expected = f"{1000 * worst:.0f} ms late", f"at most {1000 * _OVERRUN_S:.0f}"
    return MachineCheck("deadlines", worst <= _OVERRUN_S, late, expected)


async def _memory(executor: Executor, image: str) -> MachineCheck:
    name, expected = "limit of memory", f"an end at {_size(_TIGHT.memory)}"
    async with _box(executor, image, _TIGHT) as box:
        try:
            taken = await _ask(box, "memory")
        except (BoxGoneError, TimeoutError):
            return MachineCheck(name, True, "holds")
    return MachineCheck(name, False, f"{_size(taken)} taken", expected)


async def _start_with(executor: Executor, image: str, limits: BoxLimits) -> list[MachineCheck]:
    started = time.monotonic()
    async with _box(executor, image, limits) as box:
        seconds = time.monotonic() - started
        found = [MachineCheck("a container with the challenge's limits", True, f"ready after {seconds:.1f} s")]
        if limits.gpu:
            probe = await _ask(box, "gpu")
            devices = f"{probe['devices']} ({probe['found']})"
            found.append(MachineCheck("GPU", probe["devices"] > 0, devices, f"a device that {limits.gpu} names"))
    return found


def _label() -> str:
    return f"proctor-doctor/{os.getpid()}"


@asynccontextmanager
async def _box(executor: Executor, image: str, limits: BoxLimits) -> AsyncIterator[StartedBox]:
    box = await executor.start(image, limits, label=_label())
    try:
        await wait_until_ready(box, _STARTUP_S)
        yield box
    finally:
        await box.stop()


async def _ask(box: StartedBox, probe: str, deadline_s: float = _TIMEOUT_S) -> Any:
    return json.loads(await invoke(box, {"question": probe}, deadline_s))


def _size(count: int) -> str:
    if count < 2**20:
        return f"{max(count, 0) / 2**10:.0f} KB"
    return f"{count / 2**20:.0f} MB" if count < 2**30 else f"{count / 2**30:.1f} GB"
