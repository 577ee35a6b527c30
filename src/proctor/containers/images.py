"""Podman and docker by their command line: lists of arguments, bounded output, a limit of time. Archives of images, as `docker save` and `podman save` write them: checked before an engine sees them. Uploaded images on a machine: loaded one at a time, known by their digests, removed when nobody needs them. An image of this machine's own Python with one program in it: what the doctor and the cheat oracle run as, so that
nothing has to be fetched."""

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
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from proctor.containers.executors import Executor, base_folder
from proctor.core import ConfigurationError, InfrastructureError, InputError, parse_json

_PATIENCE_S = 120.0
_MOST_OUTPUT = 2**20


async def engine(
    command: str, *arguments: str, patience_s: float = _PATIENCE_S, folder: Path | None = None
) -> tuple[int, str, str]:
    """Runs podman or docker, in a folder where podman leaves a file when memory ran out: exit code, standard output and
    errors, of which no more than a megabyte each is kept. Raises `ConfigurationError` where it is not installed,
    `InfrastructureError` where it does not come back."""
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
        async with asyncio.timeout(patience_s):
            out, told = await asyncio.gather(_kept(process.stdout), _kept(process.stderr))
            return await process.wait(), out, told
    except TimeoutError:
        raise InfrastructureError(f"{command} {arguments[0]}: no reply after {patience_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def succeeded(command: str, *arguments: str, patience_s: float = _PATIENCE_S) -> str:
    """Its standard output. Raises `InfrastructureError` where it fails."""
    code, out, told = await engine(command, *arguments, patience_s=patience_s)
    if code:
        raise InfrastructureError(f"{command} {arguments[0]}: {last_line(told)}")
    return out


async def _kept(stream: asyncio.StreamReader | None) -> str:
    kept = bytearray()
    while stream is not None and (piece := await stream.read(2**16)):
        kept += piece
        del kept[: max(0, len(kept) - _MOST_OUTPUT)]
    return kept.decode(errors="replace")


def last_line(told: str) -> str:
    """The last line of what it said, for a message."""
    lines = told.strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"


MOST_BYTES = 64 * 2**30
"""Of an image, unpacked from its archive."""

_MOST_MEMBERS = 10_000
_MOST_JSON = 4 * 2**20
_BLOB = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class ImageArchive:
    """The digest of an archive's one image, and the names that the archive gives it."""

    digest: str
    names: tuple[str, ...] = ()


def image_digest(archive: Path) -> ImageArchive:
    """The one image of an archive (docker's or OCI's, also gzipped): its digest is that of its configuration, computed
    here. Raises `InputError` for what is no archive of one image, for names that lead out of it, for anything but
    files, folders and links, and where it unpacks to more than 64 GB."""
    try:
        with tarfile.open(archive, "r:*") as opened:
            members = _members(archive, opened)
            if "manifest.json" in members:
                return _of_docker(archive, opened, members)
            return _of_oci(archive, opened, members)
    except (tarfile.TarError, EOFError, OSError, UnicodeError, ValueError) as error:
        raise InputError(archive, found="no whole tar archive", expected="an image by podman save") from error


def _members(archive: Path, opened: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    found: dict[str, tarfile.TarInfo] = {}
    size = 0
    for member in opened:
        name = member.name.removeprefix("./")
        size += max(0, member.size)
        if len(found) >= _MOST_MEMBERS or size > MOST_BYTES:
            at_most = f"at most {_MOST_MEMBERS:,} files of {MOST_BYTES // 2**30} GB"
            raise InputError(archive, found="a larger archive", expected=at_most)
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            raise InputError(archive, repr(name[:80]), found="a device or a pipe", expected="files")
        if not _inside(name) or (member.issym() and not _inside(member.linkname, PurePosixPath(name).parent)):
            raise InputError(archive, repr(name[:80]), found="a name outside the archive", expected="one inside")
        if member.islnk() and not _inside(member.linkname):
            raise InputError(archive, repr(name[:80]), found="a link out of the archive", expected="one inside")
        if name in found and not member.isdir():
            raise InputError(archive, repr(name[:80]), found="the name twice", expected="each name once")
        found[name] = member
    return found


def _inside(name: str, folder: PurePosixPath | None = None) -> bool:
    depth = len(folder.parts) if folder else 0
    if name.startswith("/") or "\0" in name:
        return False
    for part in PurePosixPath(name).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


def _of_docker(archive: Path, opened: tarfile.TarFile, members: Mapping[str, tarfile.TarInfo]) -> ImageArchive:
    listed = _json_member(archive, opened, members, "manifest.json")
    if not isinstance(listed, list) or len(listed) != 1 or not isinstance(listed[0], dict):
        count = len(listed) if isinstance(listed, list) else 0
        raise InputError(archive, "manifest.json", found=f"{count} images", expected="one image")
    names = listed[0].get("RepoTags") or []
    config = _member(archive, opened, members, str(listed[0].get("Config")))
    return ImageArchive(f"sha256:{hashlib.sha256(config).hexdigest()}", tuple(map(str, names)))


def _of_oci(archive: Path, opened: tarfile.TarFile, members: Mapping[str, tarfile.TarInfo]) -> ImageArchive:
    index = _json_member(archive, opened, members, "index.json")
    manifests = index.get("manifests") if isinstance(index, dict) else None
    if not isinstance(manifests, list) or len(manifests) != 1:
        count = len(manifests) if isinstance(manifests, list) else 0
        raise InputError(archive, "index.json", found=f"{count} images", expected="one image")
    manifest = _json_member(archive, opened, members, _blob(archive, manifests[0]))
    config = _member(archive, opened, members, _blob(archive, manifest.get("config")))
    return ImageArchive(f"sha256:{hashlib.sha256(config).hexdigest()}")


def _blob(archive: Path, told: Any) -> str:
    digest = told.get("digest") if isinstance(told, dict) else None
    match = _BLOB.fullmatch(digest) if isinstance(digest, str) else None
    if match is None:
        raise InputError(archive, found="no digest (SHA-256)", expected="an image by podman save")
    return f"blobs/sha256/{match[1]}"


def _json_member(archive: Path, opened: tarfile.TarFile, members: Mapping[str, tarfile.TarInfo], name: str) -> Any:
    return parse_json(archive, _member(archive, opened, members, name), name)


def _member(archive: Path, opened: tarfile.TarFile, members: Mapping[str, tarfile.TarInfo], name: str) -> bytes:
    member = members.get(name)
    if member is None or not member.isreg() or member.size > _MOST_JSON:
        raise InputError(archive, repr(name[:80]), found="no such file", expected="an image by podman save")
    source = opened.extractfile(member)
    return b"" if source is None else source.read(_MOST_JSON)


_OURS = "localhost/proctor-upload"
_LOADING_S = 3600.0


class ImageStore:
    """Uploaded images of podman or docker. Each load has a name of its own for the image, so that another one that
    needs the same image does not lose it."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._kept: defaultdict[str, list[str]] = defaultdict(list)

    async def load(self, archive: Path) -> str:
        """As `Executor.load`. Names that the archive gives its image are taken off: they could be another one's. Raises
        `InputError` where another image has such a name already, since loading would take it away."""
        checked = await asyncio.to_thread(image_digest, archive)
        async with self._alone() as journal:
            await self._take_off(journal)
            new = await self._new_names(archive, checked)
            before = await self._names(checked.digest)
            journal.write_text(json.dumps(new))
            await succeeded(self._command, "load", "--quiet", f"--input={archive}", patience_s=_LOADING_S)
            added = await self._names(checked.digest) - before
            name = f"{_OURS}:{secrets.token_hex(16)}"
            await succeeded(
                self._command, "tag", checked.digest, name
            )  # without one, it could be removed as one that nobody needs
            self._kept[checked.digest].append(name)
            for other in added:
                await self._untag(other)
            journal.unlink()
        return checked.digest

    async def unload(self, digest: str) -> None:
        """Gives one load of an image back; its layers are removed with the last one."""
        if self._kept[digest]:
            await self._untag(self._kept[digest].pop())

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Path]:
        """While no other process of this user loads: two archives may name their images alike."""
        with (base_folder() / f"{self._command}.lock").open("w") as lock:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            yield base_folder() / f"{self._command}.loading"

    async def _take_off(self, journal: Path) -> None:
        """The names that a process left which ended while it loaded."""
        for name in await asyncio.to_thread(_read_journal, journal):
            await self._untag(name)

    async def _new_names(self, archive: Path, checked: ImageArchive) -> list[str]:
        """Those of an archive's names that no image has here."""
        found = {name: await self._inspected("{{.Id}}", name) for name in checked.names}
        for name, other in found.items():
            if other and other.removeprefix("sha256:") not in checked.digest:
                expected = "a name that is free, or none: save it by its digest"
                raise InputError(archive, found=f"the name {name[:80]!r}, which another image has", expected=expected)
        return [name for name, other in found.items() if not other]

    async def _names(self, digest: str) -> set[str]:
        return set(json.loads(await self._inspected("{{json .RepoTags}}", digest) or "null") or ())

    async def _inspected(self, wanted: str, image: str) -> str:
        """What an image says of itself; nothing where it is not there."""
        code, out, _ = await engine(self._command, "image", "inspect", f"--format={wanted}", "--", image)
        return "" if code else out.strip()

    async def _untag(self, name: str) -> None:
        """Takes a name off; an image without any other is removed."""
        await engine(self._command, "rmi", "--", name)


def _read_journal(journal: Path) -> list[str]:
    with suppress(FileNotFoundError, ValueError):
        return [str(name) for name in json.loads(journal.read_text())]
    return []


_LEFT_OUT = {
    "config-3", "curses", "dbm", "distutils", "ensurepip", "idlelib", "lib2to3", "msilib", "pydoc_data", "site-packages",
    "sqlite3", "test", "tests", "tkinter", "turtledemo", "unittest", "venv", "wsgiref", "xmlrpc",
}  # fmt: skip
_LEFT_OUT_MODULES = re.compile(
    r"/(_tkinter|_curses|_ssl|_sqlite3|_dbm|_gdbm|nis|_test|_ctypes_test|readline|xxlimited)\w*\."
)
_LIBRARY = re.compile(r"(/\S+) \(0x")
_FORM = b"3"  # of the image: another one is made where this changed
_FOLDERS = ("dev", "etc", "input", "proc", "sys", "tmp")
_CHANGES = (
    "ENV PYTHONHOME=/usr",
    "ENV LD_LIBRARY_PATH=/usr/lib:/usr/lib64:/usr/lib/x86_64-linux-gnu",
    "ENV PYTHONUNBUFFERED=1",
    'ENTRYPOINT ["/usr/bin/python3", "-S", "/program.py"]',
)


async def own_image(command: Literal["podman", "docker"], program: Path) -> str:
    """The digest of an image that runs a program of Python's own library; made the first time, known by the program's
    hash afterwards. Raises `InfrastructureError` where the engine does not take it."""
    code = await asyncio.to_thread(program.read_bytes)
    version = hashlib.sha256(code + sys.version.encode() + _FORM).hexdigest()[:16]
    name = f"localhost/proctor-own:{version}"
    found = await _image_id(command, name)
    if found:
        return found
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        await asyncio.to_thread(_write_image, archive, code)
        changes = [part for change in _CHANGES for part in ("--change", change)]
        status, _, told = await engine(command, "import", *changes, archive.name, name)
    if status or not (found := await _image_id(command, name)):
        raise InfrastructureError(f"{command} import: {told.strip()[-300:]}")
    return found


async def _image_id(command: str, name: str) -> str:
    status, out, _ = await engine(command, "image", "inspect", "--format={{.Id}}", name)
    found = out.strip()
    return "" if status else found if found.startswith("sha256:") else f"sha256:{found}"


def _write_image(archive: tempfile._TemporaryFileWrapper[bytes], code: bytes) -> None:
    archive.write(_python())
    with tarfile.open(fileobj=archive, mode="w") as out:  # what follows the end of the first part is not read
        info = tarfile.TarInfo("program.py")
        info.size, info.mode = len(code), 0o444
        out.addfile(info, io.BytesIO(code))
    archive.flush()


@cache
def _python() -> bytes:
    """This interpreter with its library and the shared libraries that these need, as a tar archive without an end."""
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


CHEAT_ORACLE = Path(__file__).parent / "cheat_oracle.py"
"""A program that tries to reach the references from inside (see there)."""

BOX_PROBE = Path(__file__).parent / "box_probe.py"


async def program_image(executor: Executor, program: Path) -> str:
    """What an executor starts to run a program of Python's own library: an image, or the program itself."""
    if executor.name == "process":
        return str(program)
    return await own_image("docker" if executor.name == "docker" else "podman", program)
