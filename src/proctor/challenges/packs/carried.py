"""What a pack carries of this installation: Proctor as a wheel, and the versions of all that it needs."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import proctor
from proctor.core import ConfigurationError, UsageError, write_whole

_PROJECT = "proctor-eval"
_IMAGE = re.compile(r"[A-Za-z0-9][\w./:@-]*", re.ASCII)
_LONGEST_IMAGE = 128
_EPOCH = (1980, 1, 1, 0, 0, 0)
_INFO = ("METADATA", "entry_points.txt")


@dataclass(frozen=True)
class PackSummary:
    """What was written. `notes` are what an organiser should know: what the platform does not do, what was left out."""

    folder: Path
    phases: tuple[str, ...]
    notes: tuple[str, ...]


def write_carried(folder: Path) -> str:
    """Writes Proctor's wheel and `requirements.txt` into a folder, and gives the wheel's name."""
    write_requirements(folder / "requirements.txt")
    return write_wheel(folder)


def write_wheel(folder: Path) -> str:
    """Writes the installed Proctor as a wheel, the same bytes for the same files, and gives its name."""
    found = distribution(_PROJECT)
    stem = f"proctor_eval-{proctor.__version__}"
    files = dict(_package())
    for name in _INFO:
        if (text := found.read_text(name)) is None:
            raise ConfigurationError(f"{_PROJECT} is installed without {name}: install it again")
        files[f"{stem}.dist-info/{name}"] = text.encode()
    files[f"{stem}.dist-info/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: proctor\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = f"{stem}.dist-info/RECORD"
    lines = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items()]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    wheel = f"{stem}-py3-none-any.whl"
    write_zip(folder / wheel, files)
    return wheel


def _package() -> Iterator[tuple[str, bytes]]:
    root = Path(proctor.__file__).parent
    for file in sorted(root.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield f"{root.name}/{file.relative_to(root).as_posix()}", file.read_bytes()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def write_zip(out: Path | IO[bytes], files: Mapping[str, bytes]) -> None:
    """Writes an archive of these contents by name, the same bytes for the same contents."""
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipped_name(name), content)


def zipped_name(name: str) -> zipfile.ZipInfo:
    """A member that everybody may read, compressed, whose time says nothing."""
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def write_requirements(file: Path) -> None:
    """Writes the versions of all packages that Proctor needs here, itself left out: marks are then the same."""
    pins: dict[str, str] = {}
    waiting = [Requirement(_PROJECT)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        asked = waiting.pop()
        for extra in ("", *sorted(asked.extras)):
            name = canonicalize_name(asked.name)
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            try:
                found = distribution(name)
            except PackageNotFoundError as error:
                raise ConfigurationError(
                    f"{name} is not installed, and Proctor needs it: install Proctor again"
                ) from error
            pins[name] = found.version
            needed = [Requirement(line) for line in found.requires or ()]
            waiting += [one for one in needed if one.marker is None or one.marker.evaluate({"extra": extra})]
    del pins[canonicalize_name(_PROJECT)]
    write_whole(file, "".join(f"{name}=={version.partition('+')[0]}\n" for name, version in sorted(pins.items())))


def checked_image(name: str) -> str:
    """An image's name. Raises `UsageError` for one that an engine or a platform would not take."""
    if len(name) > _LONGEST_IMAGE or not _IMAGE.fullmatch(name):
        raise UsageError("--image", f"a name of an image, at most {_LONGEST_IMAGE} characters", found=repr(name[:200]))
    return name


def python_image() -> str:
    """The image with this version of Python."""
    return f"docker.io/library/python:{sys.version_info.major}.{sys.version_info.minor}-slim"
