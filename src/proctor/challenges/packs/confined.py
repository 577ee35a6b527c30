"""A pack's program started as its platform does: the same paths, no network; in its image where that is there, else in
a process of this machine with what the pack carries."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proctor.challenges.packs.programs import DIGITS
from proctor.containers import PodmanExecutor
from proctor.core import ConfigurationError

ENGINES = ("podman", "docker")
FULL_DIGITS = 17
"""As many digits as tell any two numbers apart."""

_LIMIT_S = 3600.0
_SHOWN = 2000
_NO_NETWORK = """\
import sys

def _refused(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        raise OSError(f"no network: {event}")

sys.addaudithook(_refused)
"""


@dataclass(frozen=True)
class PackProgram:
    """What a platform starts: `command` in the folder `inside` of the `image`, with folders of this machine `mounts` by
    their paths in there. `wheel` is the Proctor that the image is made with; `digits` how figures are rounded."""

    image: str
    command: Sequence[str]
    inside: str
    mounts: Mapping[str, Path]
    wheel: Path
    digits: int = FULL_DIGITS
    read_only: frozenset[str] = frozenset()
    held: Mapping[str, Path] = field(default_factory=dict)


def start_program(program: PackProgram) -> str:
    """Runs it to its end and says where: "podman IMAGE" or "a process". Raises `ConfigurationError` where it fails."""
    engine = next((name for name in ENGINES if _has_image(name, program.image)), "")
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        if engine:
            _run(_contained(engine, program), {**os.environ})
            return f"{engine} {program.image}"
        arguments = [_outside(one, {**program.mounts, **program.held}) for one in program.command]
        arguments[0] = sys.executable if arguments[0].startswith("python") else arguments[0]
        _run(arguments, _environment(program, Path(scratch)), cwd=program.mounts.get(program.inside))
        return "a process"


def _has_image(engine: str, image: str) -> bool:
    found = shutil.which(engine)
    if found is None:
        return False
    asked = subprocess.run([found, "image", "inspect", image], capture_output=True, check=False)  # noqa: S603 - a list
    return asked.returncode == 0


def _contained(engine: str, program: PackProgram) -> list[str]:
    more = PodmanExecutor().arguments if engine == "podman" else []
    mounts = [
        part
        for inside, folder in program.mounts.items()
        for part in ("--volume", f"{folder}:{inside}{':ro' if inside in program.read_only else ''}")
    ]
    fixed = [engine, "run", "--rm", "--network", "none", "--pull", "never", "--workdir", program.inside]
    settings = ["--env", f"{DIGITS}={program.digits}", "--entrypoint", program.command[0]]
    return [*fixed, *more, *mounts, *settings, program.image, *program.command[1:]]


def _outside(argument: str, mounts: Mapping[str, Path]) -> str:
    """A path in there as it is called here."""
    for inside in sorted(mounts, key=len, reverse=True):
        if argument == inside or argument.startswith(f"{inside}/"):
            return f"{mounts[inside]}{argument.removeprefix(inside)}"
    return argument


def _environment(program: PackProgram, scratch: Path) -> dict[str, str]:
    """No more than a program needs, and the pack's own Proctor before the one that is installed."""
    with zipfile.ZipFile(program.wheel) as wheel:
        wheel.extractall(scratch / "wheel")
    (scratch / "hook").mkdir()
    (scratch / "hook" / "sitecustomize.py").write_text(_NO_NETWORK, encoding="utf-8")
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "OMP_NUM_THREADS") if name in os.environ}
    paths = os.pathsep.join(str(scratch / name) for name in ("hook", "wheel"))
    return {**kept, "PYTHONPATH": paths, "HOME": str(scratch), "TMPDIR": str(scratch), DIGITS: str(program.digits)}


def _run(arguments: Sequence[str], environment: Mapping[str, str], cwd: Path | None = None) -> None:
    try:
        ended = subprocess.run(  # noqa: S603 - a list, no shell
            arguments, env=environment, cwd=cwd, capture_output=True, check=False, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigurationError(f"the pack's program did not end in {_LIMIT_S:g} s") from error
    if ended.returncode:
        said = (ended.stderr or ended.stdout).decode(errors="replace").strip()[-_SHOWN:]
        raise ConfigurationError(f"the pack's program ended with exit code {ended.returncode}: {said}")
