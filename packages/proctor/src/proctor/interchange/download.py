"""Downloads with limits and resumption, and safe unpacking of archives."""

from __future__ import annotations

import json
import shutil
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from proctor import __version__
from proctor.core import InfrastructureError, InputError, JsonError, UsageError, load_json, write_whole
from proctor.interchange.export_source import file_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2


MB = 2**20
_TRIES = 5
_LONGEST_WAIT_S = 60.0
_REDIRECTS = 5
_RETRIED = {408, 425, 429, 500, 502, 503, 504}
_OFFLINE = "a connection: look at the network and the proxy (HTTPS_PROXY), or name a mirror or a file with --url"


def _wait(seconds: float) -> None:
    time.sleep(seconds)


class _BrokenOffError(Exception):
    """A failed attempt that may succeed on retry; `wait_s` is the server's requested delay."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


@dataclass(frozen=True)
class Downloader:
    """How a file is downloaded. `hosts` are allowed targets of redirects, `most_bytes` is the maximum size. `on_change`
    gets the bytes received and expected (0 if unknown), and `pause` waits between attempts."""

    most_bytes: int
    hosts: tuple[str, ...] = ()
    on_change: Callable[[int, int], None] | None = None
    pause: Callable[[float], None] = _wait

    def fetch(self, url: str, folder: Path) -> Path:
        """Downloads the file at an address into `folder`, under the hash of the address, and returns its path. An
        earlier incomplete download is resumed if the server confirms that the file is the same.

        Raises `InputError` for permanent errors (a refused address, no such file, too large), and `InfrastructureError`
        after five attempts.
        """
        _check(url)
        part = folder / f"{sha256(url.encode()).hexdigest()[:24]}.part"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return self._retry(url, part)
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(folder, found=reason, expected="a folder to write to, with room in it") from error

    def _retry(self, url: str, part: Path) -> Path:
        from httpx2 import Client, HTTPError, Timeout

        last = ""
        headers = {"User-Agent": f"proctor/{__version__}", "Accept-Encoding": "identity"}
        with Client(headers=headers, timeout=Timeout(60.0, connect=20.0), follow_redirects=False) as client:
            for number in range(_TRIES):
                try:
                    self._attempt(client, url, part)
                    return part
                except _BrokenOffError as error:
                    last, wait = str(error), error.wait_s
                except HTTPError as error:  # no connection, or one that broke
                    last, wait = f"{type(error).__name__}: {error}".rstrip(": "), None
                if number < _TRIES - 1:
                    self.pause(min(2.0**number if wait is None else wait, _LONGEST_WAIT_S))
        raise InfrastructureError(f"{url}: found no file after {_TRIES} tries ({last[:200]}), expected {_OFFLINE}")

    def _attempt(self, client: httpx2.Client, url: str, part: Path) -> None:
        there, validator = _resumable(part)
        headers = {"Range": f"bytes={there}-", "If-Range": validator} if there else {}
        with self._opened(client, url, headers) as response:
            if response.status_code == 416:  # the partial file is longer than the server's file
                part.unlink(missing_ok=True)
                raise _BrokenOffError("the server has another file now", 0.0)
            start = _start(response, there)
            length = response.headers.get("content-length", "")
            expected = start + int(length) if length.isdigit() else 0
            self._check_size(url, expected)
            validator = response.headers.get("etag") or response.headers.get("last-modified") or ""
            write_whole(_notes_on(part), json.dumps({"url": url, "validator": validator}))
            done = start
            with part.open("ab" if start else "wb") as file:
                for block in response.iter_raw():
                    done += len(block)
                    self._check_size(url, done)
                    file.write(block)
                    if self.on_change is not None:
                        self.on_change(done, expected)
            if expected and done != expected:
                raise _BrokenOffError(f"{done:,} of {expected:,} bytes")

    def _check_size(self, url: str, size: int) -> None:
        if size > self.most_bytes:
            raise InputError(
                url, found=f"{size / MB:,.1f} MB or more", expected=f"at most {self.most_bytes / MB:,.0f} MB"
            )

    @contextmanager
    def _opened(self, client: httpx2.Client, url: str, headers: dict[str, str]) -> Iterator[httpx2.Response]:
        """The response after at most five redirects. Raises `InputError` for a redirect to another host or no file, and
        for a permanent error status."""
        file_location = url
        for _ in range(_REDIRECTS + 1):
            with client.stream("GET", file_location, headers=headers) as response:
                status = response.status_code
                if status in (301, 302, 303, 307, 308):
                    file_location = self._redirected(url, file_location, response.headers.get("location", ""))
                    continue
                _check_status(url, response)
                yield response
                return
        raise InputError(url, found=f"more than {_REDIRECTS} redirects", expected="a file")

    def _redirected(self, url: str, file_location: str, location: str) -> str:
        found = urljoin(file_location, location)
        before, after = urlsplit(file_location), urlsplit(found)
        if after.scheme not in ("http", "https") or (before.scheme == "https" and after.scheme == "http"):
            raise InputError(url, found=f"a redirect to {found[:200]}", expected="one to https")
        if after.hostname != urlsplit(url).hostname and after.hostname not in self.hosts:
            expected = f"the same host; if you trust this one: --url {found[:200]}"
            raise InputError(url, found=f"a redirect to another host, {after.hostname}", expected=expected)
        return found


def _check(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--url {url} can't be used: give an address with http:// or https://, or a file.")
    if parts.username or parts.password:
        raise UsageError(f"--url has a name or a password for {parts.hostname} in it: give the address without them.")


def _check_status(url: str, response: httpx2.Response) -> None:
    status = response.status_code
    if status in (200, 206, 416):
        if response.headers.get("content-encoding", "identity") != "identity":
            raise InputError(url, found="a compressed reply that nobody asked for", expected="the file as it is")
        return
    if status in _RETRIED:
        wait = response.headers.get("retry-after", "")
        raise _BrokenOffError(f"status {status}", float(wait) if wait.isdigit() else None)
    closed = " (its owner lets only some people in)" if status in (401, 403) else ""
    raise InputError(url, found=f"status {status}{closed}", expected="a file; the address may have changed: --url")


def _start(response: httpx2.Response, there: int) -> int:
    """The first byte of the reply: 0 if the server sends the whole file."""
    if response.status_code != 206:
        return 0
    sent = response.headers.get("content-range", "")
    if not sent.startswith(f"bytes {there}-"):
        raise _BrokenOffError(f"another part than was asked for ({sent[:60]!r})", 0.0)
    return there


def _notes_on(part: Path) -> Path:
    return part.with_suffix(".json")


def _resumable(part: Path) -> tuple[int, str]:
    """The size of a partial file, and the validator by which the server recognises the file; (0, "") without one."""
    try:
        notes: Any = load_json(_notes_on(part).read_text(encoding="utf-8"))
        validator = notes["validator"] if isinstance(notes, dict) else ""
        size = part.stat().st_size
    except (OSError, JsonError, KeyError, UnicodeDecodeError):
        size, validator = 0, ""
    usable = isinstance(validator, str) and validator and not validator.startswith("W/")
    return (size, validator) if size and usable else (0, "")


# -- archives

_MOST_MEMBERS = 100_000
_BLOCK = 2**20


@dataclass(frozen=True)
class _Member:
    """A member of an archive with its stated size; `odd` names its kind if it is no plain file."""

    name: str
    size: int
    odd: str = ""


def is_archive(file: Path) -> bool:
    """Whether the content is a tar archive (compressed or not) or a zip file."""
    return zipfile.is_zipfile(file) or tarfile.is_tarfile(file)


def unpack(archive: Path, folder: Path, taken: Mapping[str, str], most_bytes: int) -> int:
    """Unpacks an archive into a folder and returns the number of files. `taken` maps a folder or file of the archive to
    its new path; empty, it means everything. A top folder with all members is left out of their names.

    Raises `InputError` for a member outside the folder, a taken link or device, duplicate names, more than 100,000
    members, more bytes than `most_bytes`, a `taken` name that is missing, and a broken archive.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened, closing(_zip_members(opened)) as members:
                return _written(archive, members, folder, taken, most_bytes)
        with tarfile.open(archive) as tar, closing(_tar_members(tar)) as members:
            return _written(archive, members, folder, taken, most_bytes)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError(archive, found=f"a broken archive ({error})"[:200], expected="a whole one") from error
    except OSError as error:
        if type(error) is OSError and error.errno is None:  # raised by gzip
            raise InputError(archive, found=f"a broken archive ({error})"[:200], expected="a whole one") from error
        raise


_Members = Generator[tuple[_Member, IO[bytes] | None]]


def _tar_members(tar: tarfile.TarFile) -> _Members:
    for one in tar:
        odd = "" if one.isreg() else "a link" if one.issym() or one.islnk() else "a device or a pipe"
        if not one.isdir():
            yield _Member(one.name, one.size, odd), tar.extractfile(one) if one.isreg() else None


def _zip_members(opened: zipfile.ZipFile) -> _Members:
    for one in opened.infolist():
        odd = "a link" if stat.S_ISLNK(one.external_attr >> 16) else ""
        if not one.is_dir():
            if odd:
                yield _Member(one.filename, one.file_size, odd), None
            else:
                with opened.open(one) as stream:
                    yield _Member(one.filename, one.file_size), stream


def _written(archive: Path, members: _Members, folder: Path, taken: Mapping[str, str], most_bytes: int) -> int:
    seen: set[str] = set()
    used: set[str] = set()
    total, top = 0, ""
    for member, stream in members:
        path = _inside(archive, member.name)
        top = top or path.parts[0]
        if str(path) in seen or len(seen) >= _MOST_MEMBERS:
            found = f"{path} twice" if str(path) in seen else f"more than {_MOST_MEMBERS:,} files"
            raise InputError(archive, found=found, expected=f"at most {_MOST_MEMBERS:,} files, each once")
        seen.add(str(path))
        total += member.size
        if total > most_bytes:
            raise InputError(
                archive, found=f"{total:,} bytes or more when unpacked", expected=f"at most {most_bytes:,}"
            )
        source = _taken_from(path, taken)
        if source is None:
            continue
        if stream is None:
            raise InputError(archive, found=f"{path}, {member.odd}", expected="plain files and folders")
        used.add(source)
        _copy_member(archive, stream, folder.joinpath(*_location(path, source, taken)), member.size)
    missing = [name for name in taken if name not in used]
    if missing:
        raise InputError(archive, found=f"no {missing[0]}", expected=", ".join(taken))
    if not taken:
        _lift(folder, top)
    return sum(one.is_file() for one in folder.rglob("*"))


def _inside(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    drive = ":" in (path.parts[0] if path.parts else "")
    if path.is_absolute() or ".." in path.parts or not path.parts or drive or "\0" in name:
        raise InputError(archive, found=f"a member {name[:100]!r}", expected="names below the archive's folder")
    return path


def _taken_from(path: PurePosixPath, taken: Mapping[str, str]) -> str | None:
    """The name in `taken` that a member belongs to: "" if everything is taken, None for a member that is not."""
    if not taken:
        return ""
    rest = _below_top(path)
    return next((name for name in taken if rest.is_relative_to(name)), None)


def _location(path: PurePosixPath, source: str, taken: Mapping[str, str]) -> tuple[str, ...]:
    if not taken:
        return path.parts
    return (*PurePosixPath(taken[source]).parts, *_below_top(path).relative_to(source).parts)


def _below_top(path: PurePosixPath) -> PurePosixPath:
    return PurePosixPath(*path.parts[1:]) if len(path.parts) > 1 else path


def _copy_member(archive: Path, stream: IO[bytes], file: Path, size: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    done = 0
    with file.open("xb") as out:
        while block := stream.read(_BLOCK):
            done += len(block)
            if done > size:
                raise InputError(archive, found=f"more bytes of {file.name} than it says", expected=f"{size:,}")
            out.write(block)
    if done != size:
        raise InputError(archive, found=f"{done:,} bytes of {file.name}", expected=f"{size:,}")


def _lift(folder: Path, top: str) -> None:
    """Moves the content of the only folder up."""
    if not top or [path.name for path in folder.iterdir()] != [top] or not (folder / top).is_dir():
        return
    shutil.move(folder / top, folder / ".top")
    for path in (folder / ".top").iterdir():
        path.replace(folder / path.name)
    (folder / ".top").rmdir()


def content_sha256(folder: Path) -> str:
    """SHA-256 over the files of a folder: of the lines "PATH SHA-256", sorted by path. It does not depend on the
    archive."""
    files = sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file())
    return sha256("".join(f"{name} {file_hash(one)}\n" for name, one in files).encode()).hexdigest()
