"""Uploads: a form with one file, streamed to disk.

Fields must come before the file: the visitor's token is checked before a byte of the file is written. Room on the disk
is reserved before a byte is read: the name of each temporary file holds the bytes that it may need, and its process
keeps it locked, so that all processes that share the folder see what is reserved and what was left by a killed one.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, BinaryIO

from fastapi import HTTPException, Request
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from proctor_web.sessions import check_token, site_of, visitor_of
from proctor_web.site import upload_limit

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

_MOST_TEXT = 100_000  # of all fields together
_MOST_PARTS = 40
_INCOMING = ".incoming-"


class NoRoomError(HTTPException):
    """The disk has no room for an upload (503)."""

    def __init__(self) -> None:
        super().__init__(503)


@dataclass
class Upload:
    """An uploaded form: its `fields`, and its file with the sender's `name` for it (without folders), `sha256` and
    `size` in bytes. `path` is the temporary file, which exists until the block ends."""

    path: Path
    name: str = ""
    sha256: str = ""
    size: int = 0
    fields: dict[str, str] = field(default_factory=dict)


@asynccontextmanager
async def receive_upload(request: Request, folder: Path, *, keep_free: int = 0) -> AsyncIterator[Upload]:
    """Streams the form of a request into a temporary file in `folder`, which is removed afterwards unless it was moved.

    Raises `HTTPException`: 400 for another or an incomplete form, 403 where the visitor's token is missing or comes
    after the file, 413 for fields that are too long, and `NoRoomError` where the disk has no room for the body beside
    `keep_free` bytes and all other uploads under way. The site limits the size of the body (`Site.uploads`).
    """
    needed = min(_stated(request), upload_limit(site_of(request), request.url.path) or sys.maxsize)
    handle, path = await asyncio.to_thread(_reserved, folder, needed, keep_free)
    upload = Upload(path)
    try:
        with os.fdopen(handle, "wb") as file:  # open, and so locked, until it was moved
            try:
                await _read(request, _Form(request, upload, file))
                await asyncio.to_thread(_to_disk, file)
            except OSError as error:
                if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                    raise NoRoomError from error
                raise
            yield upload
    finally:
        upload.path.unlink(missing_ok=True)


def _stated(request: Request) -> int:
    """The length of the body that a request states; without one it may be of any length."""
    stated = request.headers.get("content-length", "")
    return int(stated) if stated.isdecimal() else sys.maxsize


def _reserved(folder: Path, needed: int, keep_free: int) -> tuple[int, Path]:
    """A new temporary file for which the disk has room."""
    door = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(door, fcntl.LOCK_EX)  # one process at a time
        if _free_bytes(folder) - _outstanding(folder) < needed + keep_free:
            raise NoRoomError
        handle, name = tempfile.mkstemp(prefix=f"{_INCOMING}{needed}-", dir=folder)
        os.fchmod(handle, 0o640)  # another account of the group that serves the folder, too, sees whether it is locked
        fcntl.flock(handle, fcntl.LOCK_EX)
        return handle, Path(name)
    finally:
        os.close(door)


def _free_bytes(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _outstanding(folder: Path) -> int:
    """The bytes that uploads under way may still write."""
    total = 0
    for file in folder.glob(f"{_INCOMING}*"):
        reserved = file.name.removeprefix(_INCOMING).partition("-")[0]
        if reserved.isdecimal():
            with suppress(FileNotFoundError):  # it has ended
                total += max(0, int(reserved) - file.stat().st_size)
    return total


def remove_unfinished(folder: Path) -> None:
    """Deletes what killed processes have left of uploads; those of living ones stay."""
    for file in folder.glob(f"{_INCOMING}*"):
        with suppress(OSError), file.open("rb") as opened:  # it has ended, or somebody holds it
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.unlink(missing_ok=True)


async def _read(request: Request, form: _Form) -> None:
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not 0 < len(options.get(b"boundary", b"")) <= 200:
        raise HTTPException(400)
    parser = MultipartParser(options[b"boundary"], form.callbacks())
    try:
        async for piece in request.stream():  # slow senders are disconnected by the server
            parser.write(piece)
    except (MultipartParseError, ClientDisconnect):
        raise HTTPException(400) from None
    form.check()


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


class _Form:
    """The parts of a form, from the parser's callbacks."""

    def __init__(self, request: Request, upload: Upload, file: BinaryIO) -> None:
        self._request, self._upload, self._file = request, upload, file
        self._hash = hashlib.sha256()
        self._header, self._value, self._described = b"", b"", b""
        self._name: str | None = None
        self._text = b""
        self._parts = self._taken = 0
        self._is_file = self._had_file = self._ended = False

    def callbacks(self) -> MultipartCallbacks:
        """The parser's callbacks."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._on_header,
            "on_header_value": self._on_value,
            "on_header_end": self._on_header_end,
            "on_headers_finished": self._opened,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def check(self) -> None:
        """Raises `HTTPException` for an incomplete form."""
        if not self._had_file:
            self._check_token()
        if not self._ended:
            raise HTTPException(400)
        self._upload.sha256 = self._hash.hexdigest()

    def _check_token(self) -> None:
        given = self._request.headers.get("x-csrf-token") or self._upload.fields.get("csrf", "")
        check_token(self._request, visitor_of(self._request), given)

    def _begin(self) -> None:
        self._header, self._value, self._described, self._name, self._text = b"", b"", b"", None, b""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise HTTPException(413)

    def _on_header(self, data: bytes, start: int, end: int) -> None:
        self._header += self._counted(data[start:end])

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += self._counted(data[start:end])

    def _on_header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._described = self._value
        self._header, self._value = b"", b""

    def _opened(self) -> None:
        _, options = parse_options_header(self._described)
        self._name = options.get(b"name", b"").decode(errors="replace")
        self._is_file = b"filename" in options
        if self._is_file:
            self._check_token()
            if self._had_file:
                raise HTTPException(400)
            self._had_file = True
            self._upload.name = _plain_name(options[b"filename"].decode(errors="replace"))

    def _data(self, data: bytes, start: int, end: int) -> None:
        piece = data[start:end]
        if not self._is_file:
            self._text += self._counted(piece)
            return
        self._file.write(piece)
        self._hash.update(piece)
        self._upload.size += len(piece)

    def _end(self) -> None:
        if not self._is_file and self._name:
            self._upload.fields.setdefault(self._name, self._text.decode(errors="replace"))

    def _finish(self) -> None:
        self._ended = True

    def _counted(self, data: bytes) -> bytes:
        self._taken += len(data)
        if self._taken > _MOST_TEXT:
            raise HTTPException(413)
        return data


def _plain_name(given: str) -> str:
    """The last part of a file's path, from any operating system, without unprintable characters.

    >>> _plain_name("../../etc/pass wd"), _plain_name("C:\\\\a\\\\b.json"), _plain_name("..")
    ('pass wd', 'b.json', '')
    """
    name = PureWindowsPath(PurePosixPath(given).name).name
    return "".join(one for one in name if one.isprintable()).strip(". ")[:200]
