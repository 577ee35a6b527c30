"""An image of this machine's own Python with one program in it: what the doctor and the cheat oracle run as, so that
nothing has to be fetched."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Literal

from proctor.containers.engine import engine
from proctor.containers.executors import Executor
from proctor.core import InfrastructureError

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
    found = await _digest(command, name)
    if found:
        return found
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        await asyncio.to_thread(_write, archive, code)
        changes = [part for change in _CHANGES for part in ("--change", change)]
        status, _, told = await engine(command, "import", *changes, archive.name, name)
    if status or not (found := await _digest(command, name)):
        raise InfrastructureError(f"{command} import: {told.strip()[-300:]}")
    return found


async def _digest(command: str, name: str) -> str:
    status, out, _ = await engine(command, "image", "inspect", "--format={{.Id}}", name)
    found = out.strip()
    return "" if status else found if found.startswith("sha256:") else f"sha256:{found}"


def _write(archive: tempfile._TemporaryFileWrapper[bytes], code: bytes) -> None:
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
