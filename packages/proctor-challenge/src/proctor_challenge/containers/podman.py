"""Podman or docker as an executor, by their command line.

A container has no network, no capabilities, no new privileges, a read-only root, a user of its own, and a limit for
every resource of the machine. Podman's default seccomp profile lets every program create user namespaces, in which it
has all rights over mounts and networks of its own; docker's does not. So podman's profile is narrowed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import select
import shlex
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from proctor.core import ConfigurationError, InfrastructureError, InputError, read_json
from proctor_challenge.containers.executors import (
    SOCKET,
    BoxEnd,
    BoxError,
    BoxFolder,
    BoxLimits,
    StartedBox,
    connect_below,
    remove_folders,
    remove_orphans,
    same_label,
)
from proctor_challenge.containers.images import ImageStore, engine, last_line, succeeded

ARGUMENTS = "PROCTOR_PODMAN_ARGS"
"""The environment variable with further arguments of `run` for this machine, such as `--runtime runc`."""
_LOW_LIMITS = "--ulimit nofile=1024:1024 --ulimit nproc=1024:1024"

USER = "10001:10001"
_LABEL = "proctor.box"
_MOUNT = "proctor"  # in the root, since an image may have a link below `/run`
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
_REFUSED_CALLS = frozenset(
    {
        "add_key", "bpf", "fsconfig", "fsmount", "fsopen", "fspick", "io_uring_enter", "io_uring_register",
        "io_uring_setup", "keyctl", "mount", "mount_setattr", "move_mount", "name_to_handle_at", "open_by_handle_at",
        "open_tree", "perf_event_open", "pivot_root", "request_key", "setns", "umount", "umount2", "unshare",
        "userfaultfd",
    }
)  # fmt: skip
_CLONE_CALLS = frozenset({"clone", "clone3"})
_NEW_NAMESPACES = 0x7E020000
_ENOSYS = 38


def _cure(errors: str) -> str:
    """What to do about an error of the container engine, where that is known."""
    if "rlimit" not in errors:
        return ""
    return f" (the engine may not raise its limits here: set {ARGUMENTS}='{_LOW_LIMITS}')"


class PodmanExecutor(ImageStore):
    """Runs images by `podman` or `docker`. `arguments` come before all other arguments of `run`; None takes those of
    the environment variable `PROCTOR_PODMAN_ARGS`."""

    def __init__(
        self, command: Literal["podman", "docker"] = "podman", *, arguments: Sequence[str] | None = None
    ) -> None:
        super().__init__(command)
        self.arguments = shlex.split(os.environ.get(ARGUMENTS, "")) if arguments is None else list(arguments)
        self._profile: str | None = None

    async def start(self, image: str, limits: BoxLimits, *, label: str) -> StartedBox:
        found = await self._configuration(image)
        if self.name == "docker" and found.get("Volumes"):
            raise BoxError("the image declares volumes, which docker would let grow without a limit", late=False)
        await remove_orphans(self.name, partial(_remove, self.name))
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

    async def _filter(self, folder: Path) -> list[str]:
        """The arguments for the filter of system calls: docker's default, or podman's narrowed."""
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
        code, _, errors = await engine(self.name, "run", "--detach", *self.arguments, *arguments, folder=folder)
        if code == 127 or (code == 126 and "exec:" in errors):
            raise BoxError("the image's program was not found, or can't be executed", late=False)
        if code:
            raise InfrastructureError(f"{self.name} run: {last_line(errors)}{_cure(errors)}")

    async def _configuration(self, image: str) -> Mapping[str, object]:
        """The configuration of an image. Raises `ConfigurationError` for an unknown name, and `InfrastructureError` for
        an unknown digest, since that image was loaded."""
        if not _IMAGE.fullmatch(image):
            raise ConfigurationError(f"found {image[:80]!r}, expected the name or the digest of an image")
        code, out, errors = await engine(self.name, "image", "inspect", "--format", "{{json .Config}}", image)
        if code:
            missing = f"{image}: {self.name} has no such image ({last_line(errors)})"
            raise InfrastructureError(missing) if image.startswith("sha256:") else ConfigurationError(missing)
        config = json.loads(out)
        return config if isinstance(config, dict) else {}

    async def remove_left(self, label: str) -> int:
        """As `Executor.remove_left`."""
        listed = await succeeded(self.name, "ps", "--all", "--quiet", "--no-trunc", f"--filter=label={_LABEL}")
        form = f'--format={{{{index .Config.Labels "{_LABEL}"}}}}'
        left: dict[str, str] = {}
        for container in listed.split():
            code, found, _ = await engine(self.name, "inspect", "--type=container", form, container)
            if code == 0 and same_label(found.strip(), label):
                left[container] = found.strip()
        for container in left:
            await _remove(self.name, container)
        for own in {label, *left.values()}:
            remove_folders(own)
        return len(left)


async def _remove(command: str, container: str) -> None:
    """Removes a container. It is killed first, since podman would ask it to end and wait for ten seconds."""
    await engine(command, "kill", "--signal=KILL", container)
    await engine(command, "rm", "--force", "--volumes", container)


def box_arguments(command: str, limits: BoxLimits, label: str) -> list[str]:
    """The arguments of `run` for every box."""
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
    own = "notmpcopyup," if command == "podman" else ""  # or the image's files there are copied, with their rights
    return [
        *(f"--{name}={value}" for name, value in given.items()),
        "--read-only",
        "--ulimit=core=0",
        "--env=HOME=/tmp",  # the only folder where libraries can write
        f"--tmpfs=/tmp:{own}rw,nosuid,nodev,mode=1777,size={limits.scratch}",
        f"--tmpfs=/{_MOUNT}:{own}rw,nosuid,nodev,noexec,mode=1777,size={_SOCKET_BYTES}",
        *([f"--device={limits.gpu}"] if limits.gpu else []),
        *(_PODMAN if command == "podman" else _DOCKER),
    ]


class PodmanBox:
    """A container. Its socket lies in a small file system inside the container; we reach it through the root folder of
    the container's first process, so that the container can fill or replace nothing on the host."""

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
        return self._folder.media

    @property
    def media_inside(self) -> str:
        return "/input"

    async def attach(self) -> None:
        """Opens the first process and its root folder. Raises `InfrastructureError` without permission."""
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
            problem = f"found no access to {self._command}'s containers, expected podman of this user, or to be root"
            raise InfrastructureError(problem) from error
        if await self.ended():
            return  # its process id may belong to another process by now
        if identity not in groups:
            problem = f"{self._command}: found another process than the container's, expected one machine"
            raise InfrastructureError(problem)
        self._memory = _memory_file(groups)

    def connect(self) -> socket.socket:
        if self._root < 0:
            raise FileNotFoundError("the container ended")
        return connect_below(self._root, _MOUNT, SOCKET)

    async def ended(self) -> bool:
        if self._memory is not None:
            with contextlib.suppress(OSError, ValueError):
                self._peak = int(self._memory.read_text())
        if self._process < 0:
            return True
        poll = select.poll()
        poll.register(self._process, select.POLLIN)
        return bool(poll.poll(0))

    async def stop(self) -> BoxEnd:
        if self._end is None:
            by_itself = await self.ended()
            await engine(self._command, "kill", "--signal=KILL", self._name)  # fails if it has ended
            state = await self._state(settled=by_itself)
            _, out, errors = await engine(self._command, "logs", self._name)
            await engine(self._command, "rm", "--force", "--volumes", self._name)
            for descriptor in (self._root, self._process):
                if descriptor >= 0:
                    os.close(descriptor)
            self._root = self._process = -1
            self._folder.remove()
            self._end = self._ended(state if by_itself else {}, out + errors)
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
        """The engine's record of the container, empty without one; with `settled`, once the engine has seen its end."""
        if settled:
            await engine(self._command, "wait", self._name)
        form = "--format={{.Id}} {{json .State}}"
        code, out, _ = await engine(self._command, "inspect", "--type=container", form, self._name)
        if code:
            return {}
        identity, _, state = out.partition(" ")
        return {**json.loads(state), "Id": identity}


def _groups(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text()


def _memory_file(groups: str) -> Path | None:
    """The file with the peak memory of a control group (version 2 or 1)."""
    for line in groups.splitlines():
        number, controllers, path = line.split(":", 2)
        version_2 = Path("/sys/fs/cgroup", path.lstrip("/"), "memory.peak")
        version_1 = Path("/sys/fs/cgroup/memory", path.lstrip("/"), "memory.max_usage_in_bytes")
        if number == "0" and version_2.is_file():
            return version_2
        if controllers == "memory" and version_1.is_file():
            return version_1
    return None


def narrowed(profile: object) -> dict[str, Any]:
    """A seccomp profile (an allowlist, as podman and docker have) without the calls that create or enter namespaces and
    mounts, or reach the kernel's keys, programs and counters. `clone` creates processes only. `clone3`, whose arguments
    can't be inspected, fails with ENOSYS, so that libraries fall back to `clone`. Raises `ValueError` for a profile
    that is no allowlist.

    >>> allowed = {"defaultAction": "SCMP_ACT_ERRNO",
    ...            "syscalls": [{"names": ["read", "unshare", "clone"], "action": "SCMP_ACT_ALLOW"}]}
    >>> [one["names"] for one in narrowed(allowed)["syscalls"]]
    [['read'], ['clone'], ['clone3']]
    """
    allowlist = profile if isinstance(profile, dict) else {}
    rules = allowlist.get("syscalls")
    if allowlist.get("defaultAction") not in {"SCMP_ACT_ERRNO", "SCMP_ACT_KILL"} or not isinstance(rules, list):
        raise ValueError("found no allowlist of system calls")
    kept = [
        {**rule, "names": [name for name in rule["names"] if name not in _REFUSED_CALLS | _CLONE_CALLS]}
        for rule in rules
    ]
    processes = {
        "names": ["clone"],
        "action": "SCMP_ACT_ALLOW",
        "args": [{"index": 0, "value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}],
    }
    absent = {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS}
    return {**allowlist, "syscalls": [*(rule for rule in kept if rule["names"]), processes, absent]}
