"""Podman or docker as an executor, by their command line: no network, no capability, no new privilege, a root that
can't be written to, a user of its own, and a limit for everything that a machine has only so much of. The filter of system calls that a container runs under. Podman's own lets every program make namespaces of users, in
which it has all rights over mounts and networks of its own; docker's does not. So podman's is narrowed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import select
import shlex
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from proctor.containers.executors import (
    SOCKET,
    BoxEnd,
    BoxError,
    BoxFolder,
    BoxLimits,
    StartedBox,
    connect_below,
    orphans,
    remove_folders,
    same_label,
)
from proctor.containers.images import ImageStore, engine, last_line, succeeded
from proctor.core import ConfigurationError, InfrastructureError, InputError, read_json

ARGUMENTS = "PROCTOR_PODMAN_ARGS"
"""The variable with further arguments of `run` that this machine needs, such as `--runtime runc`."""

USER = "10001:10001"
_LABEL = "proctor.box"
_MOUNT = "proctor"  # of the root: below `/run` an image may have a link
_IMAGE = re.compile(r"[A-Za-z0-9][\w./:@-]{0,255}")
_SOCKET_BYTES = 2**16
_PODMAN = (
    "--read-only-tmpfs=false",
    "--http-proxy=false",
    "--no-hosts",
    "--no-healthcheck",
    "--image-volume=ignore",
    "--log-driver=k8s-file",
)
_DOCKER = (
    "--no-healthcheck",
    "--dns=127.0.0.1",
    "--log-driver=json-file",
    *(f"--env={name}=" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")),
)


class PodmanExecutor:
    """Runs images by `podman` or `docker`. `arguments` stand before all others of `run`; None takes those of the
    environment (`PROCTOR_PODMAN_ARGS`)."""

    def __init__(
        self, command: Literal["podman", "docker"] = "podman", *, arguments: Sequence[str] | None = None
    ) -> None:
        self.name = command
        self.arguments = shlex.split(os.environ.get(ARGUMENTS, "")) if arguments is None else list(arguments)
        self._profile: str | None = None
        self._images = ImageStore(command)

    async def start(self, image: str, limits: BoxLimits, *, label: str) -> StartedBox:
        """As `Executor.start`."""
        found = await self._inspected(image)
        if self.name == "docker" and found.get("Volumes"):
            raise BoxError("the image declares volumes, which docker would let grow without a limit", late=False)
        await self._remove_orphans()
        name = f"proctor-{secrets.token_hex(8)}"
        folder = BoxFolder(label, f"{self.name} {name}")
        box = PodmanBox(self.name, name, folder, limits)
        try:
            given = [f"--name={name}", f"--volume={folder.media}:/input:ro,Z", *await self._filter(folder.path)]
            await self._run_image([*given, *box_arguments(self.name, limits, label), "--", image], folder.path)
            await box.attach()
        except BaseException:
            await asyncio.shield(box.stop())
            raise
        return box

    async def _remove_orphans(self) -> None:
        """Removes what processes of this machine left that were killed: a container that nobody asks, and its media."""
        for folder, box in [*orphans()]:
            command, _, name = box.partition(" ")
            if command == self.name:
                await _remove(command, name)
            if command in {self.name, ""}:
                shutil.rmtree(folder, ignore_errors=True)

    async def _filter(self, folder: Path) -> list[str]:
        """The filter of system calls: docker's own, or podman's narrowed."""
        if self.name == "docker":
            return []
        if self._profile is None:
            path = (await succeeded(self.name, "info", "--format={{.Host.Security.SECCOMPProfilePath}}")).strip()
            try:
                self._profile = json.dumps(narrowed(await asyncio.to_thread(read_json, Path(path))))
            except (InputError, ValueError) as error:
                raise InfrastructureError(f"podman's filter of system calls: {error}") from error
        (folder / "seccomp.json").write_text(self._profile)
        return [f"--security-opt=seccomp={folder}/seccomp.json"]

    async def _run_image(self, arguments: Sequence[str], folder: Path) -> None:
        code, out, told = await engine(self.name, "run", "--detach", *self.arguments, *arguments, folder=folder)
        del out
        if code == 0:
            return
        if code == 127 or (code == 126 and "exec:" in told):
            raise BoxError("the image's program was not found, or can't be executed", late=False)
        raise InfrastructureError(f"{self.name} run: {last_line(told)}")

    async def _inspected(self, image: str) -> Mapping[str, object]:
        """The configuration of an image that is there. Raises `ConfigurationError` for a name that no image has, and
        `InfrastructureError` for a digest: that one was loaded."""
        if not _IMAGE.fullmatch(image):
            raise ConfigurationError(f"found {image[:80]!r}, expected the name or the digest of an image")
        code, out, told = await engine(self.name, "image", "inspect", "--format", "{{json .Config}}", image)
        if code:
            missing = f"{image}: {self.name} has no such image ({last_line(told)})"
            raise InfrastructureError(missing) if image.startswith("sha256:") else ConfigurationError(missing)
        config = json.loads(out)
        return config if isinstance(config, dict) else {}

    async def remove_left(self, label: str) -> int:
        """As `Executor.remove_left`."""
        listed = await succeeded(self.name, "ps", "--all", "--quiet", "--no-trunc", f"--filter=label={_LABEL}")
        left: dict[str, str] = {}
        for one in listed.split():
            wanted = f'{{{{index .Config.Labels "{_LABEL}"}}}}'
            code, found, _ = await engine(self.name, "inspect", "--type=container", f"--format={wanted}", one)
            if code == 0 and same_label(found.strip(), label):
                left[one] = found.strip()
        for one in left:
            await _remove(self.name, one)
        for one in {label, *left.values()}:
            remove_folders(one)
        return len(left)

    async def load(self, archive: Path) -> str:
        """As `Executor.load`."""
        return await self._images.load(archive)

    async def unload(self, image: str) -> None:
        """As `Executor.unload`."""
        await self._images.unload(image)


async def _remove(command: str, container: str) -> None:
    """Kills it first: podman would ask it to end, and wait for ten seconds."""
    await engine(command, "kill", "--signal=KILL", container)
    await engine(command, "rm", "--force", "--volumes", container)


def box_arguments(command: str, limits: BoxLimits, label: str) -> list[str]:
    """What every box is run with."""
    given = {
        "pull": "never",
        "network": "none",
        "cap-drop": "all",
        "security-opt": "no-new-privileges",
        "user": USER,
        "hostname": "box",
        "memory": f"{limits.memory}b",
        "memory-swap": f"{limits.memory}b",
        "cpus": f"{min(limits.cpus, os.cpu_count() or 1):g}",
        "pids-limit": str(limits.processes),
        "shm-size": f"{limits.shared_memory}b",
        "log-opt": f"max-size={limits.log}b" if command == "podman" else f"max-size={limits.log}",
        "label": f"{_LABEL}={label}",
        "env": f"PROCTOR_SOCKET=/{_MOUNT}/{SOCKET}",
    }
    home = "--env=HOME=/tmp"  # the one place where a library may keep what it makes
    own = "notmpcopyup," if command == "podman" else ""  # else what the image has there is copied, with its rights
    scratch = f"--tmpfs=/tmp:{own}rw,nosuid,nodev,mode=1777,size={limits.scratch}"
    here = f"--tmpfs=/{_MOUNT}:{own}rw,nosuid,nodev,noexec,mode=1777,size={_SOCKET_BYTES}"
    gpu = [f"--device={limits.gpu}"] if limits.gpu else []
    ours = _PODMAN if command == "podman" else _DOCKER
    return [
        *(f"--{name}={value}" for name, value in given.items()),
        "--read-only",
        "--ulimit=core=0",
        home,
        scratch,
        here,
        *gpu,
        *ours,
    ]


class PodmanBox:
    """A container. Its socket lies in a small file system of its own, inside the container alone: we reach it through
    the root folder of the container's first process, so nothing on this side can be filled or replaced."""

    def __init__(self, command: str, name: str, folder: BoxFolder, limits: BoxLimits) -> None:
        self._command = command
        self._name = name
        self._folder = folder
        self._limits = limits
        self._root = -1
        self._process = -1
        self._memory: Path | None = None
        self._peak: int | None = None
        self._end: BoxEnd | None = None

    @property
    def media(self) -> Path:
        """As `StartedBox.media`."""
        return self._folder.media

    @property
    def media_inside(self) -> str:
        """As `StartedBox.media_inside`."""
        return "/input"

    async def attach(self) -> None:
        """Opens the first process and its root folder. Raises `InfrastructureError` where we may not."""
        state = await self._state()
        pid = state.get("Pid")
        if not isinstance(pid, int) or not pid or not state.get("Running"):
            return  # ended already
        identity = str(state.get("Id"))
        try:
            self._process = os.pidfd_open(pid)
            self._root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY)
            groups = _groups(pid)
        except (FileNotFoundError, ProcessLookupError):
            return
        except PermissionError as error:
            expected = "podman of this user, or to be root"
            raise InfrastructureError(
                f"found no access to {self._command}'s containers, expected {expected}"
            ) from error
        if await self.ended():
            return  # its number may be another's by now
        if identity not in groups:
            raise InfrastructureError(
                f"{self._command}: found another process than the container's, expected one machine"
            )
        self._memory = _memory_file(groups)

    def connect(self) -> socket.socket:
        """As `StartedBox.connect`."""
        if self._root < 0:
            raise FileNotFoundError("the container ended")
        return connect_below(self._root, _MOUNT, SOCKET)

    async def ended(self) -> bool:
        """As `StartedBox.ended`."""
        if self._memory is not None:
            with contextlib.suppress(OSError, ValueError):
                self._peak = int(self._memory.read_text())
        if self._process < 0:
            return True
        poll = select.poll()
        poll.register(self._process, select.POLLIN)
        return bool(poll.poll(0))

    async def stop(self) -> BoxEnd:
        """As `StartedBox.stop`."""
        if self._end is None:
            by_itself = await self.ended()
            await engine(self._command, "kill", "--signal=KILL", self._name)  # says no where it ended
            state = await self._state(settled=by_itself)
            _, out, told = await engine(self._command, "logs", self._name)
            await engine(self._command, "rm", "--force", "--volumes", self._name)
            for one in (self._root, self._process):
                if one >= 0:
                    os.close(one)
            self._root = self._process = -1
            self._folder.remove()
            self._end = self._ended(state if by_itself else {}, out + told)
        return self._end

    def _ended(self, state: Mapping[str, object], printed: str) -> BoxEnd:
        code = state.get("ExitCode")
        killed = isinstance(code, int) and code > 128
        return BoxEnd(
            exit_code=code if isinstance(code, int) and not killed else None,
            signal=code - 128 if isinstance(code, int) and killed else None,
            out_of_memory=bool(state.get("OOMKilled")),
            peak_memory=self._peak,
            log=printed[-self._limits.log :],
        )

    async def _state(self, *, settled: bool = False) -> dict[str, object]:
        """The engine's record of the container, empty where there is none; with `settled` once it says that it
        ended."""
        if settled:
            await engine(self._command, "wait", self._name)
        wanted = "{{.Id}} {{json .State}}"
        code, out, _ = await engine(self._command, "inspect", "--type=container", f"--format={wanted}", self._name)
        if code:
            return {}
        identity, _, state = out.partition(" ")
        return {**json.loads(state), "Id": identity}


def _groups(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text()


def _memory_file(groups: str) -> Path | None:
    """The file with the highest use of memory of a process's control group (version 2, else 1)."""
    for line in groups.splitlines():
        number, controllers, path = line.split(":", 2)
        for file in (
            Path("/sys/fs/cgroup", path.lstrip("/"), "memory.peak") if number == "0" else None,
            Path("/sys/fs/cgroup/memory", path.lstrip("/"), "memory.max_usage_in_bytes")
            if controllers == "memory"
            else None,
        ):
            if file is not None and file.is_file():
                return file
    return None


_REFUSED = frozenset(
    {
        "add_key", "bpf", "fsconfig", "fsmount", "fsopen", "fspick", "io_uring_enter", "io_uring_register",
        "io_uring_setup", "keyctl", "mount", "mount_setattr", "move_mount", "name_to_handle_at", "open_by_handle_at",
        "open_tree", "perf_event_open", "pivot_root", "request_key", "setns", "umount", "umount2", "unshare",
        "userfaultfd",
    }
)  # fmt: skip
_BY_FLAGS = frozenset({"clone", "clone3"})
_NEW_NAMESPACES = 0x7E020000
_ENOSYS = 38


def narrowed(profile: object) -> dict[str, Any]:
    """A profile (an allowlist, as podman and docker keep them) without the calls that make or enter namespaces and
    mounts, or reach the kernel's keys, programs and counters. `clone` makes processes alone, and `clone3`, whose
    arguments can't be looked at, says that it is not there, so that libraries use `clone`. Raises `ValueError` for no
    allowlist.

    >>> allowed = {"defaultAction": "SCMP_ACT_ERRNO",
    ...            "syscalls": [{"names": ["read", "unshare", "clone"], "action": "SCMP_ACT_ALLOW"}]}
    >>> [one["names"] for one in narrowed(allowed)["syscalls"]]
    [['read'], ['clone'], ['clone3']]
    """
    allowlist = profile if isinstance(profile, dict) else {}
    rules = allowlist.get("syscalls")
    if allowlist.get("defaultAction") not in {"SCMP_ACT_ERRNO", "SCMP_ACT_KILL"} or not isinstance(rules, list):
        raise ValueError("found no allowlist of system calls")
    kept = [{**rule, "names": [name for name in rule["names"] if name not in _REFUSED | _BY_FLAGS]} for rule in rules]
    processes = {
        "names": ["clone"],
        "action": "SCMP_ACT_ALLOW",
        "args": [{"index": 0, "value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}],
    }
    absent = {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS}
    return {**allowlist, "syscalls": [*(rule for rule in kept if rule["names"]), processes, absent]}
