"""Whether a machine can hold containers: what their limits are worth is found by trying, from inside a box."""

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

from proctor.containers.executors import BoxLimits, Executor, StartedBox
from proctor.containers.gateway import BoxGoneError, invoke, wait_until_ready
from proctor.containers.images import BOX_PROBE, program_image
from proctor.core import ProctorError

_TIGHT = BoxLimits(memory=2**28, cpus=1, processes=64, shared_memory=2**20, scratch=2**22, log=2**16)
_SOCKET_BYTES = 2**16
_STARTUP_S = 120.0
_PATIENCE_S = 60.0
_SHORT_S = 0.2
_OVERRUN_S = 0.05
_TIMES = 50


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """One property: whether it holds (None: for your information), what was found, and what is expected."""

    name: str
    ok: bool | None
    found: str
    expected: str = ""

    @property
    def line(self) -> str:
        """For people."""
        word = "-" if self.ok is None else "ok" if self.ok else "FAILED"
        expected = f", expected {self.expected}" if self.ok is False else ""
        return f"{word} {self.name}: {self.found}{expected}"


async def examine(executor: Executor, limits: BoxLimits) -> list[MachineCheck]:
    """Tries on this machine what an executor promises, with tight limits, and then that a box with the challenge's own
    `limits` starts. Raises `ConfigurationError` where the engine is not installed."""
    found = [*_machine(limits)]
    try:
        image = await program_image(executor, BOX_PROBE)
        async with _box(executor, image, _TIGHT) as box:
            found += [*_rights(await _asked(box, "rights")), *_network(await _asked(box, "network"))]
            found += [*_writes(await _asked(box, "written")), *_processes(await _asked(box, "processes"))]
            found += [await _overhead(box), await _deadlines(box)]
        found.append(await _memory(executor, image))
        found += await _as_it_will_run(executor, image, limits)
    except ProctorError as error:
        found.append(MachineCheck("containers", False, str(error), "one that runs"))
    finally:
        await executor.remove_left(_label())
    return found


def _machine(limits: BoxLimits) -> list[MachineCheck]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = os.cpu_count() or 1
    free = shutil.disk_usage(tempfile.gettempdir()).free
    return [
        MachineCheck(
            "memory", memory > limits.memory, _size(memory), f"more than a container's {_size(limits.memory)}"
        ),
        MachineCheck("cores", cores >= limits.cpus, str(cores), f"at least a container's {limits.cpus:g}"),
        MachineCheck("space for media", None, f"{_size(free)} in {tempfile.gettempdir()}"),
    ]


def _rights(said: dict[str, Any]) -> list[MachineCheck]:
    user, filtered = said["user"], "on" if said["filter"] else "off"
    return [
        MachineCheck("user", user != 0, str(user), "not root"),
        MachineCheck("capabilities", not said["capabilities"], f"{said['capabilities']:#x}", "none"),
        MachineCheck(
            "new privileges",
            said["no_new_privileges"],
            "refused" if said["no_new_privileges"] else "possible",
            "refused",
        ),
        MachineCheck("filter of system calls", said["filter"], filtered, "on"),
        MachineCheck(
            "own namespaces", not said["namespaces"], "possible" if said["namespaces"] else "refused", "refused"
        ),
    ]


def _network(said: dict[str, Any]) -> list[MachineCheck]:
    interfaces = ", ".join(said["interfaces"])
    closed = said["interfaces"] == ["lo"] and not said["route"]
    return [
        MachineCheck("network", closed, interfaces + (", a route to the world" if said["route"] else ""), "lo alone")
    ]


def _writes(said: dict[str, int]) -> list[MachineCheck]:
    most = {"scratch": _TIGHT.scratch, "shared": _TIGHT.shared_memory, "socket": _SOCKET_BYTES}
    names = {"scratch": "/tmp", "shared": "/dev/shm", "socket": "the socket's folder"}  # noqa: S108 - inside
    found = [
        MachineCheck(f"limit of {names[name]}", 0 < said[name] <= limit, _size(said[name]), f"at most {_size(limit)}")
        for name, limit in most.items()
    ]
    closed = said["root"] < 0 and said["input"] < 0
    return [*found, MachineCheck("other folders", closed, "read-only" if closed else "writable", "read-only")]


def _processes(count: int) -> list[MachineCheck]:
    return [MachineCheck("limit of processes", count < _TIGHT.processes, str(count), f"fewer than {_TIGHT.processes}")]


async def _overhead(box: StartedBox) -> MachineCheck:
    times = []
    for _ in range(_TIMES):
        started = time.monotonic()
        await _asked(box, "nothing")
        times.append(time.monotonic() - started)
    return MachineCheck("a question's way to the container and back", None, f"{1000 * median(times):.1f} ms (median)")


async def _deadlines(box: StartedBox) -> MachineCheck:
    overruns = []
    for _ in range(3):
        started = time.monotonic()
        try:
            await _asked(box, "sleep", _SHORT_S)
        except TimeoutError:
            overruns.append(time.monotonic() - started - _SHORT_S)
    worst = max(overruns, default=float("inf"))
    return MachineCheck(
        "deadlines", worst <= _OVERRUN_S, f"{1000 * worst:.0f} ms late", f"at most {1000 * _OVERRUN_S:.0f}"
    )


async def _memory(executor: Executor, image: str) -> MachineCheck:
    name, expected = "limit of memory", f"an end at {_size(_TIGHT.memory)}"
    async with _box(executor, image, _TIGHT) as box:
        try:
            taken = await _asked(box, "memory")
        except (BoxGoneError, TimeoutError):
            return MachineCheck(name, True, "holds")
    return MachineCheck(name, False, f"{_size(taken)} taken", expected)


async def _as_it_will_run(executor: Executor, image: str, limits: BoxLimits) -> list[MachineCheck]:
    started = time.monotonic()
    async with _box(executor, image, limits) as box:
        seconds = time.monotonic() - started
        found = [MachineCheck("a container with the challenge's limits", True, f"ready after {seconds:.1f} s")]
        if limits.gpu:
            said = await _asked(box, "gpu")
            told = f"{said['devices']} ({said['found']})"
            found.append(MachineCheck("GPU", said["devices"] > 0, told, f"a device that {limits.gpu} names"))
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


async def _asked(box: StartedBox, probe: str, deadline_s: float = _PATIENCE_S) -> Any:
    return json.loads(await invoke(box, {"question": probe}, deadline_s))


def _size(count: int) -> str:
    if count < 2**20:
        return f"{max(count, 0) / 2**10:.0f} KB"
    return f"{count / 2**20:.0f} MB" if count < 2**30 else f"{count / 2**30:.1f} GB"
