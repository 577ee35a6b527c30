"""Atomic writing of files and folders, and clean-up when an object is garbage collected."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from proctor.core.errors import InputError

PAGES = (".html", ".htm")
"""The file name extensions of pages."""

_DATABASE = b"SQLite format 3\0"  # the first bytes of every SQLite database


def output_file(out: str | Path, kinds: Iterable[str] = (), read: Iterable[str | Path] = ()) -> Path:
    """Check a requested output path: its ending is one of `kinds` (empty: any), and it may replace an existing file with
    such an ending.

    Raises `InputError` for another ending, and if it would replace a file that the same command reads (`read`), a file
    of another kind, a database, or something other than a file. A new file may have no ending.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     program = Path(folder) / "mine.py"
    ...     _ = program.write_text("print(1)")
    ...     try:
    ...         output_file(program, PAGES)
    ...     except InputError as error:
    ...         print(str(error).removeprefix(f"{program}: "))
    ...     try:
    ...         output_file(Path(folder) / "report.pdf", PAGES)
    ...     except InputError as error:
    ...         print(str(error).removeprefix(f"{Path(folder) / 'report.pdf'}: "))
    ...     output_file("new.html", PAGES).name
    found a file of another kind, expected another name: what is replaced ends in .html or .htm
    found a name that ends in .pdf, expected one that ends in .html or .htm
    'new.html'
    """
    path, endings = Path(out), tuple(kinds)
    if any(_same(path, Path(source)) for source in read):
        raise InputError(path, found="a file that this command reads", expected="another name for the file to write")
    if not path.exists() or path.is_dir():  # writing to a folder fails later
        if endings and path.suffix and path.suffix.lower() not in endings:
            expected = f"one that ends in {' or '.join(endings)}"
            raise InputError(path, found=f"a name that ends in {path.suffix}", expected=expected)
        return path
    if not path.is_file():
        raise InputError(path, found="something that is no file", expected="another name for the file to write")
    try:
        database = is_database(path)
    except OSError as error:
        raise InputError(path, found=error.strerror or str(error), expected="a writable path") from error
    if database:
        raise InputError(path, found="a database", expected="another name for the file to write")
    if endings and path.suffix.lower() not in endings:
        expected = f"another name: what is replaced ends in {' or '.join(endings)}"
        raise InputError(path, found="a file of another kind", expected=expected)
    return path


def is_database(path: Path) -> bool:
    """Whether a file is an SQLite database. Raises `OSError` if it can't be read.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = Path(folder) / "notes.txt"
    ...     _ = text.write_text("no database")
    ...     is_database(text)
    False
    """
    with path.open("rb") as file:
        return file.read(len(_DATABASE)) == _DATABASE


def _same(path: Path, other: Path) -> bool:
    """Whether two paths are the same file, also through links, and also if it does not exist yet."""
    return os.path.realpath(path) == os.path.realpath(other) or (
        path.exists() and other.exists() and path.samefile(other)
    )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A draft file that replaces `path` at the end of the block, so that no incomplete file is ever visible. Missing
    folders are created. If the block raises, the draft is removed. Raises `OSError`.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "new" / "a.txt"
    ...     with replacing(file) as draft:
    ...         _ = draft.write_bytes(b"abc")
    ...         print(file.exists())
    ...     print(file.exists(), draft.exists())
    False
    True False
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name[:80]}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def when_gone(
    owner: object, action: Callable[..., object], *given: object, **named: object
) -> weakref.finalize[..., object]:
    """Call the action when the owner is garbage collected or the program ends: `weakref.finalize`, restricted to this
    process, so that a fork does not clean up what its parent still uses.

    >>> folder = Path(tempfile.mkdtemp())
    >>> owner = {1}
    >>> ended = when_gone(owner, shutil.rmtree, folder, ignore_errors=True)
    >>> del owner
    >>> print(folder.exists(), ended.alive)
    False False
    """
    return weakref.finalize(owner, _in_process, os.getpid(), partial(action, *given, **named))


def _in_process(process: int, action: Callable[[], object]) -> None:
    if os.getpid() == process:
        action()


@contextmanager
def whole_file(out: Path) -> Iterator[Path]:
    """`replacing` for a path that a user requested. Raises `InputError` if it can't be written, and as `output_file`.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = Path(folder) / "a.txt"
    ...     out.mkdir()
    ...     try:
    ...         with whole_file(out) as draft:
    ...             _ = draft.write_bytes(b"abc")
    ...     except InputError as error:
    ...         print(str(error).removeprefix(f"{out}: "))
    found Is a directory, expected a writable path
    """
    try:
        with replacing(output_file(out)) as draft:
            yield draft
    except OSError as error:
        raise InputError(out, found=error.strerror or str(error), expected="a writable path") from error


def write_whole(out: Path, text: str) -> int:
    """Write text in UTF-8 atomically and return the number of bytes. Raises `InputError` if it can't be written.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.txt"
    ...     print(write_whole(file, "37 °C"), file.read_text("utf-8"))
    6 37 °C
    """
    raw = text.encode("utf-8")
    with whole_file(out) as draft:
        draft.write_bytes(raw)
    return len(raw)


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A temporary folder whose content is moved to `out` at the end of the block, or removed if the block raises.

    An existing empty `out` is kept, since it may be a mount or a working directory. Raises `InputError` if `out` is not
    empty, or can't be created or written.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = Path(folder) / "out"
    ...     with whole_folder(out) as draft:
    ...         _ = write_whole(draft / "a.txt", "abc")
    ...         print(out.exists())
    ...     print([file.name for file in out.iterdir()])
    False
    ['a.txt']
    """
    half: Path | None = None
    try:
        there = out.exists()
        if there and (not out.is_dir() or any(out.iterdir())):
            raise InputError(out, found="something there already", expected="a new or an empty folder")
        location = out if there else out.parent
        location.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=location))
        yield half
        if there:
            for entry in half.iterdir():
                entry.replace(out / entry.name)
        else:
            half.chmod(0o755)
            half.replace(out)
    except OSError as error:
        reason = error.strerror or str(error)
        found = reason[:1].lower() + reason[1:]
        raise InputError(out, found=found, expected="a folder to write to, with room in it") from error
    finally:
        if half is not None:
            shutil.rmtree(half, ignore_errors=True)
