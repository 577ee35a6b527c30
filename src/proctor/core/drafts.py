"""Files and folders that are written, whole or not at all, and what goes with the object that needs it."""

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
"""The endings of a page that is written."""

_DATABASE = b"SQLite format 3\0"  # what every database of SQLite begins with


def output_file(out: str | Path, kinds: Iterable[str] = (), read: Iterable[str | Path] = ()) -> Path:
    """The place of a file that somebody asked for, which may replace an earlier one of its kind: a file that ends in
    one of `kinds` (none named: in anything). Raises `InputError` where it would replace a file that is `read` by the
    same command, a file of another kind, a database, or what is no file at all.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     program = Path(folder) / "mine.py"
    ...     _ = program.write_text("print(1)")
    ...     try:
    ...         output_file(program, PAGES)
    ...     except InputError as error:
    ...         print(str(error).removeprefix(f"{program}: "))
    ...     output_file("new.py", PAGES).name
    found a file of another kind, expected another name: what is replaced ends in .html or .htm
    'new.py'
    """
    path = Path(out)
    if any(_same(path, Path(one)) for one in read):
        raise InputError(path, found="a file that this command reads", expected="another name for the file to write")
    if not path.exists() or path.is_dir():  # a folder is refused by the system
        return path
    if not path.is_file():
        raise InputError(path, found="something that is no file", expected="another name for the file to write")
    try:
        with path.open("rb") as file:
            database = file.read(len(_DATABASE)) == _DATABASE
    except OSError as error:
        raise InputError(path, found=error.strerror or str(error), expected="a place to write to") from error
    if database:
        raise InputError(path, found="a database", expected="another name for the file to write")
    endings = tuple(kinds)
    if endings and path.suffix.lower() not in endings:
        expected = f"another name: what is replaced ends in {' or '.join(endings)}"
        raise InputError(path, found="a file of another kind", expected=expected)
    return path


def _same(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, by whatever links and names; also where it is not there yet."""
    return os.path.realpath(path) == os.path.realpath(other) or (
        path.exists() and other.exists() and path.samefile(other)
    )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A draft beside `path` that takes its name when the block ends, so that nobody ever sees half a file; the folder
    is made where there is none, and the draft is removed where the block raises. Raises `OSError`.

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
    """Does it with what is given once nobody has the owner any more, or at the end of the program: `weakref.finalize`,
    in this process alone. A fork that lets go of its copy leaves alone what its parent still uses.

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
    """The same for a file that a person asked for. Raises `InputError` where it can't be written, and where it would
    replace a database or what is no file (`output_file`).

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = Path(folder) / "a.txt"
    ...     out.mkdir()
    ...     try:
    ...         with whole_file(out) as draft:
    ...             _ = draft.write_bytes(b"abc")
    ...     except InputError as error:
    ...         print(str(error).removeprefix(f"{out}: "))
    found Is a directory, expected a place to write to
    """
    try:
        with replacing(output_file(out)) as draft:
            yield draft
    except OSError as error:
        raise InputError(out, found=error.strerror or str(error), expected="a place to write to") from error


def write_whole(out: Path, text: str) -> int:
    """Writes a text in UTF-8 as it stands; the file appears only when it is whole. Gives its bytes. Raises `InputError`
    where it can't be written.

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
    """A folder to write into, whose content is in `out` when the block ends, and which is removed where it raises.
    Where `out` is there already, empty, it stays the same folder: it may be a mount, or the one that somebody is in.

    Raises `InputError` where `out` holds something, can't be made, or can't be written to: a full disk, a read-only
    one.

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
        place = out if there else out.parent
        place.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=place))
        yield half
        if there:
            for one in half.iterdir():
                one.replace(out / one.name)
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
