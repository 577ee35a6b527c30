"""What an archive holds, unpacked into a folder: never outside of it, no links, bounded."""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO

from proctor.core import InputError
from proctor.interchange.item_files import file_hash

_MOST_MEMBERS = 100_000
_BLOCK = 2**20


@dataclass(frozen=True)
class _Member:
    """A file in an archive: where it lies and how large it says it is; `odd` says what it is where it is no plain
    file."""

    name: str
    size: int
    odd: str = ""


def is_archive(file: Path) -> bool:
    """Whether a file is a tar archive (compressed or not) or a zip file, by its content."""
    return zipfile.is_zipfile(file) or tarfile.is_tarfile(file)


def unpack(archive: Path, folder: Path, taken: Mapping[str, str], most_bytes: int) -> int:
    """Writes what is `taken` of an archive (a folder or a file in it, by where it is to lie; all of it where nothing is
    named) into a folder and gives the number of files. A folder that all members lie in is left out of their names.

    Raises `InputError` for a member that would lie outside of the folder, for one that is taken and is a link or a
    device, for two of one name, for more than 100,000 of them, for more bytes than `most_bytes`, for a folder that the
    archive lacks and for a broken archive.
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
        if type(error) is OSError and error.errno is None:  # gzip's way to say it
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
        _copy(archive, stream, folder.joinpath(*_place(path, source, taken)), member.size)
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
    """Which of the names a member belongs to: "" where everything is taken, None for one that nobody wants."""
    if not taken:
        return ""
    rest = PurePosixPath(*path.parts[1:]) if len(path.parts) > 1 else path
    for name in taken:
        if rest == PurePosixPath(name) or PurePosixPath(name) in rest.parents:
            return name
    return None


def _place(path: PurePosixPath, source: str, taken: Mapping[str, str]) -> tuple[str, ...]:
    if not taken:
        return path.parts
    rest = PurePosixPath(*path.parts[1:]) if len(path.parts) > 1 else path
    return (*PurePosixPath(taken[source]).parts, *rest.relative_to(source).parts)


def _copy(archive: Path, stream: IO[bytes], file: Path, size: int) -> None:
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
    """Takes what lies in the one folder out of it."""
    if not top or [one.name for one in folder.iterdir()] != [top] or not (folder / top).is_dir():
        return
    shutil.move(folder / top, folder / ".top")
    for one in (folder / ".top").iterdir():
        one.replace(folder / one.name)
    (folder / ".top").rmdir()


def content_sha256(folder: Path) -> str:
    """SHA-256 over the files of a folder: of the lines "PATH SHA-256" in the order of the paths, whatever archive they
    came in."""
    files = sorted((one.relative_to(folder).as_posix(), one) for one in folder.rglob("*") if one.is_file())
    return sha256("".join(f"{name} {file_hash(one)}\n" for name, one in files).encode()).hexdigest()
