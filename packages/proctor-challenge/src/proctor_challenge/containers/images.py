"""Images of podman and docker: uploaded archives are checked, loaded and removed, and an image of this machine's own
Python runs the doctor and the cheat oracle, so that nothing is fetched."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import io
import json
import os
import re
import secrets
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from proctor.core import ConfigurationError, InfrastructureError, InputError, parse_json
from proctor_challenge.containers.executors import Executor, base_folder

MOST_BYTES = 64 * 2**30
"""The maximum size of an unpacked image."""

CHEAT_ORACLE = Path(__file__).parent / "cheat_oracle.py"
"""The program that tries to reach the references from inside a container."""

BOX_PROBE = Path(__file__).parent / "box_probe.py"
"""The program that reports what a container can do."""

_TIMEOUT_S = 120.0
_LOADING_S = 3600.0
_MAX_OUTPUT = 2**20
_MOST_MEMBERS = 10_000
_MAX_JSON = 4 * 2**20
_BLOB = re.compile(r"sha256:([0-9a-f]{64})")
_OURS = "localhost/proctor-upload"
_LEFT_OUT = {
    "config-3", "curses", "dbm", "distutils", "ensurepip", "idlelib", "lib2to3", "msilib", "pydoc_data", "site-packages",
    "sqlite3", "test", "tests", "tkinter", "turtledemo", "unittest", "venv", "wsgiref", "xmlrpc",
}  # fmt: skip
_LEFT_OUT_MODULES = re.compile(
    r"/(_tkinter|_curses|_ssl|_sqlite3|_dbm|_gdbm|nis|_test|_ctypes_test|readline|xxlimited)\w*\."
)
_LIBRARY = re.compile(r"(/\S+) \(0x")
_FORM = b"3"  # of the image; change it to have another one made
_FOLDERS = ("dev", "etc", "input", "proc", "sys", "tmp")
_CHANGES = (
    "ENV PYTHONHOME=/usr",
    "ENV LD_LIBRARY_PATH=/usr/lib:/usr/lib64:/usr/lib/x86_64-linux-gnu",
    "ENV PYTHONUNBUFFERED=1",
    'ENTRYPOINT ["/usr/bin/python3", "-S", "/program.py"]',
)


async def engine(
    command: str, *arguments: str, timeout_s: float = _TIMEOUT_S, folder: Path | None = None
) -> tuple[int, str, str]:
    """Runs podman or docker; returns the exit code, standard output and errors, at most the last megabyte of each.
    `folder` is the working folder, where podman leaves a file when memory runs out. Raises `ConfigurationError` when
    the command is not installed, `InfrastructureError` after the timeout."""
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *arguments,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError as error:
        raise ConfigurationError(f"{command}: found no such program, expected it to be installed") from error
    try:
        async with asyncio.timeout(timeout_s):
            out, errors = await asyncio.gather(_tail(process.stdout), _tail(process.stderr))
            return await process.wait(), out, errors
    except TimeoutError:
        raise InfrastructureError(f"{command} {arguments[0]}: no reply after {timeout_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def succeeded(command: str, *arguments: str, timeout_s: float = _TIMEOUT_S) -> str:
    """The standard output of a command. Raises `InfrastructureError` when it fails."""
    code, out, errors = await engine(command, *arguments, timeout_s=timeout_s)
    if code:
        raise InfrastructureError(f"{command} {arguments[0]}: {last_line(errors)}")
    return out


async def _tail(stream: asyncio.StreamReader | None) -> str:
    tail = bytearray()
    while stream is not None and (piece := await stream.read(2**16)):
        tail += piece
        del tail[: max(0, len(tail) - _MAX_OUTPUT)]
    return tail.decode(errors="replace")


def last_line(errors: str) -> str:
    """The last line of an engine's errors, for a message. A pointer to its help ends the errors of its options."""
    lines = errors.strip().splitlines()
    told = [line for line in lines if not line.startswith("See '")] or lines
    return told[-1][:300] if told else "it said nothing"


@dataclass(frozen=True, slots=True)
class ImageArchive:
    """The digest of an archive's only image, and the names that the archive gives it."""

    digest: str
    names: tuple[str, ...] = ()


def image_digest(archive: Path) -> ImageArchive:
    """The only image of an archive (docker's or OCI's, also compressed), checked before an engine sees it. Its digest
    is that of its configuration, computed here. Raises `InputError` for what is no archive of one image, for names
    that lead out of it, for anything but files, folders and links, and for more than 64 GB unpacked."""
    try:
        with tarfile.open(archive, "r:*") as opened:
            return _Members(archive, opened).image()
    except (tarfile.TarError, EOFError, OSError, UnicodeError, ValueError) as error:
        raise InputError(archive, found="no whole tar archive", expected="an image by podman save") from error


class _Members:
    """The members of an opened archive by name, checked."""

    def __init__(self, archive: Path, opened: tarfile.TarFile) -> None:
        self._archive, self._opened = archive, opened
        self._found: dict[str, tarfile.TarInfo] = {}
        size = 0
        for member in opened:
            name = member.name.removeprefix("./")
            size += max(0, member.size)
            if len(self._found) >= _MOST_MEMBERS or size > MOST_BYTES:
                at_most = f"at most {_MOST_MEMBERS:,} files of {MOST_BYTES // 2**30} GB"
                raise InputError(archive, found="a larger archive", expected=at_most)
            self._check(member, name)
            self._found[name] = member

    def _check(self, member: tarfile.TarInfo, name: str) -> None:
        location = repr(name[:80])
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            raise InputError(self._archive, location, found="a device or a pipe", expected="files")
        if not _inside(name) or (member.issym() and not _inside(member.linkname, PurePosixPath(name).parent)):
            raise InputError(self._archive, location, found="a name outside the archive", expected="one inside")
        if member.islnk() and not _inside(member.linkname):
            raise InputError(self._archive, location, found="a link out of the archive", expected="one inside")
        if name in self._found and not member.isdir():
            raise InputError(self._archive, location, found="the name twice", expected="each name once")

    def image(self) -> ImageArchive:
        if "manifest.json" in self._found:  # docker's form, else OCI's
            listed = self._only("manifest.json", self._json("manifest.json"))
            names = listed.get("RepoTags")
            digest = self._digest(str(listed.get("Config")))
            return ImageArchive(digest, tuple(map(str, names)) if isinstance(names, list) else ())
        listed = self._only("index.json", _object(self._json("index.json")).get("manifests"))
        manifest = _object(self._json(self._blob(listed)))
        return ImageArchive(self._digest(self._blob(_object(manifest.get("config")))))

    def _only(self, location: str, images: Any) -> dict[str, Any]:
        if isinstance(images, list) and len(images) == 1:
            return _object(images[0])
        count = len(images) if isinstance(images, list) else 0
        raise InputError(self._archive, location, found=f"{count} images", expected="one image")

    def _blob(self, descriptor: dict[str, Any]) -> str:
        digest = descriptor.get("digest")
        match = _BLOB.fullmatch(digest) if isinstance(digest, str) else None
        if match is None:
            raise InputError(self._archive, found="no digest (SHA-256)", expected="an image by podman save")
        return f"blobs/sha256/{match[1]}"

    def _digest(self, name: str) -> str:
        return f"sha256:{hashlib.sha256(self._bytes(name)).hexdigest()}"

    def _json(self, name: str) -> Any:
        return parse_json(self._archive, self._bytes(name), name)

    def _bytes(self, name: str) -> bytes:
        member = self._found.get(name)
        if member is None or not member.isreg() or member.size > _MAX_JSON:
            raise InputError(self._archive, repr(name[:80]), found="no such file", expected="an image by podman save")
        source = self._opened.extractfile(member)
        return b"" if source is None else source.read(_MAX_JSON)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _inside(name: str, folder: PurePosixPath | None = None) -> bool:
    """Whether a name, relative to a folder of the archive, stays inside the archive."""
    depth = len(folder.parts) if folder else 0
    if name.startswith("/") or "\0" in name:
        return False
    for part in PurePosixPath(name).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


class ImageStore:
    """Uploaded images of podman or docker. Each load gives the image a name of its own, so that it is not removed while
    another process needs it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._loads: defaultdict[str, list[str]] = defaultdict(list)

    async def load(self, archive: Path) -> str:
        """As `Executor.load`. The names in the archive are removed from the image, since they could be another one's.
        Raises `InputError` when another image has such a name already, since loading would take it away."""
        checked = await asyncio.to_thread(image_digest, archive)
        async with self._alone() as journal:
            new = await self._new_names(archive, checked)
            before = await self._names(checked.digest)
            journal.write_text(json.dumps(new))
            await succeeded(self.name, "load", "--quiet", f"--input={archive}", timeout_s=_LOADING_S)
            added = await self._names(checked.digest) - before
            name = f"{_OURS}:{secrets.token_hex(16)}"
            await succeeded(self.name, "tag", checked.digest, name)  # an image without a name could be removed
            self._loads[checked.digest].append(name)
            for other in added:
                await self._untag(other)
            journal.unlink()
        return checked.digest

    async def unload(self, image: str) -> None:
        """As `Executor.unload`."""
        if self._loads[image]:
            await self._untag(self._loads[image].pop())

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Path]:
        """Excludes other loads of this user, since two archives may give their images the same name. Removes the names
        in the journal of a process that was killed while it loaded."""
        with (base_folder() / f"{self.name}.lock").open("w") as lock:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            journal = base_folder() / f"{self.name}.loading"
            try:
                left = json.loads(journal.read_text())
            except (FileNotFoundError, ValueError):
                left = []
            for name in left:
                await self._untag(str(name))
            yield journal

    async def _new_names(self, archive: Path, checked: ImageArchive) -> list[str]:
        """The archive's names that no image has yet."""
        found = {name: await self._inspected("{{.Id}}", name) for name in checked.names}
        for name, other in found.items():
            if other and other.removeprefix("sha256:") not in checked.digest:
                expected = "a name that is free, or none: save it by its digest"
                raise InputError(archive, found=f"the name {name[:80]!r}, which another image has", expected=expected)
        return [name for name, other in found.items() if not other]

    async def _names(self, digest: str) -> set[str]:
        return set(json.loads(await self._inspected("{{json .RepoTags}}", digest) or "null") or ())

    async def _inspected(self, form: str, image: str) -> str:
        """A property of an image; "" for an unknown image."""
        code, out, _ = await engine(self.name, "image", "inspect", f"--format={form}", "--", image)
        return "" if code else out.strip()

    async def _untag(self, name: str) -> None:
        """Removes a name, and the image with its last name."""
        await engine(self.name, "rmi", "--", name)


async def program_image(executor: Executor, program: Path) -> str:
    """What an executor starts to run a program that needs only Python's standard library: an image, or the program
    itself."""
    return str(program) if executor.name == "process" else await own_image(executor.name, program)


async def own_image(command: str, program: Path) -> str:
    """The digest of an image that runs a program with Python's standard library. It is made once and named by the
    program's hash. Raises `InfrastructureError` when the engine refuses it."""
    code = await asyncio.to_thread(program.read_bytes)
    version = hashlib.sha256(code + sys.version.encode() + _FORM).hexdigest()[:16]
    name = f"localhost/proctor-own:{version}"
    found = await _image_id(command, name)
    if found:
        return found
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        await asyncio.to_thread(_write_image, archive, code)
        changes = [part for change in _CHANGES for part in ("--change", change)]
        status, _, errors = await engine(command, "import", *changes, archive.name, name)
    if status or not (found := await _image_id(command, name)):
        raise InfrastructureError(f"{command} import: {errors.strip()[-300:]}")
    return found


async def _image_id(command: str, name: str) -> str:
    status, out, _ = await engine(command, "image", "inspect", "--format={{.Id}}", name)
    return "" if status else f"sha256:{out.strip().removeprefix('sha256:')}"


def _write_image(archive: tempfile._TemporaryFileWrapper[bytes], code: bytes) -> None:
    archive.write(_python())
    with tarfile.open(fileobj=archive, mode="w") as out:
        info = tarfile.TarInfo("program.py")
        info.size, info.mode = len(code), 0o444
        out.addfile(info, io.BytesIO(code))
    archive.flush()


@cache
def _python() -> bytes:
    """This interpreter with its library and the shared libraries that they need, as a tar archive without its end."""
    program, library = Path(os.path.realpath(sys.executable)), Path(os.__file__).parent
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as out:
        out.add(library, f"usr/lib/{version}", filter=_needed)
        out.add(program, "usr/bin/python3")
        for path in sorted(_libraries([program, *library.glob("lib-dynload/*.so")])):
            real = os.path.realpath(path)
            out.add(real, path.lstrip("/") if "/ld-" in path else f"usr/lib/{Path(path).name}")
        for name in _FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            out.addfile(folder)
        return archive.getvalue()


def _needed(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = {part.partition(".")[0] if part.startswith("config-") else part for part in member.name.split("/")}
    left = (
        parts & _LEFT_OUT
        or _LEFT_OUT_MODULES.search(member.name)
        or member.name.endswith((".a", ".opt-1.pyc", ".opt-2.pyc"))
    )
    return None if left else member


def _libraries(files: list[Path]) -> set[str]:
    wanted = [str(file) for file in files if not _LEFT_OUT_MODULES.search(str(file))]
    listed = subprocess.run(["ldd", *wanted], capture_output=True, text=True, check=False)  # noqa: S603, S607 - our own files
    return set(_LIBRARY.findall(listed.stdout))
