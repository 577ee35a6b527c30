"""Copies of a benchmark's files with one of them damaged: as time, tools and people do it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_TEXTS = {".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", ".txt"}
_LARGEST = 2_000_000
_MOST_FILES = 4
_COPIED = 5_000_000  # larger files are linked
_MOST_DAMAGES = 30  # of one file
_ALWAYS = 5  # of them
_VALUES: tuple[Any, ...] = (None, "", 7, [], {"a": 1}, float("nan"))


def native_files(data: Path) -> list[Path]:
    """The text files at a path that are worth damaging: at most 4, of at most 2 MB, two folders deep; the largest first.

    >>> native_files(Path("no-such-folder"))
    []
    """
    if data.is_file():
        return [data] if data.suffix.lower() in _TEXTS else []
    found = [file for pattern in ("*", "*/*", "*/*/*") for file in data.glob(pattern)] if data.is_dir() else []
    texts = [file for file in found if file.is_file() and file.suffix.lower() in _TEXTS]
    sizes = {file: file.stat().st_size for file in texts}
    kept = [file for file in texts if 0 < sizes[file] <= _LARGEST]
    return sorted(kept, key=lambda file: (-sizes[file], file.name))[:_MOST_FILES]


@contextmanager
def copy_of(data: Path, file: Path) -> Iterator[tuple[Path, Path]]:
    """A copy of `data`, and the location of a file in it, which may be written. Other large files are linked."""
    with TemporaryDirectory(prefix="proctor-check-") as named:
        copy = Path(named) / data.name
        if data.is_file():
            shutil.copyfile(data, copy)
            yield copy, copy
        else:
            _mirror(data, copy)
            yield copy, copy / file.relative_to(data)


def _mirror(folder: Path, copy: Path) -> None:
    copy.mkdir()
    for entry in os.scandir(folder):
        location = copy / entry.name
        if entry.is_dir():
            _mirror(Path(entry.path), location)
        elif entry.stat().st_size <= _COPIED:
            shutil.copyfile(entry.path, location)
        else:
            location.symlink_to(Path(entry.path).resolve())


def damaged(file: Path, most: int = _MOST_DAMAGES) -> list[tuple[str, bytes]]:
    """What a file may become, each with its name: empty, cut off, not UTF-8, without a field, with a value of another type.
    Of more than `most`, the first five and others at equal distances."""
    found = list(_damaged(file.read_bytes(), file.suffix.lower()))
    rest = found[_ALWAYS:]
    step = max(1, -(-len(rest) // max(1, most - _ALWAYS)))
    return [*found[:_ALWAYS], *rest[::step]]


def _damaged(content: bytes, suffix: str) -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "blank", b"\n \n"
    yield "cut off in the middle", content[: len(content) // 2]
    yield "not UTF-8", content[: len(content) // 2] + b"\xff\xfe\x80" + content[len(content) // 2 :]
    yield "binary", bytes(range(256)) * 4
    if suffix in {".json", ".jsonl"}:
        yield from _damaged_json(content, lines=suffix == ".jsonl")
    elif suffix in {".csv", ".tsv"}:
        yield from _damaged_table(content.decode("utf-8", "replace"), "\t" if suffix == ".tsv" else ",")


def _damaged_json(content: bytes, *, lines: bool) -> Iterator[tuple[str, bytes]]:
    try:
        value = [json.loads(line) for line in content.splitlines() if line.strip()] if lines else json.loads(content)
    except ValueError:
        return
    others: tuple[Any, ...] = (None, [], {}, "text", 3)
    for other in others:
        yield f"{other!r} alone", json.dumps(other).encode()
    path = _first_record(value)
    record = _at(value, path)
    if not isinstance(record, dict):
        return
    for name in list(record)[:12]:
        kept = record[name]
        del record[name]
        yield f"without {name!r}", _written(value, lines)
        for other in _VALUES:
            record[name] = other
            yield f"{name!r} as {other!r}", _written(value, lines)
        record[name] = kept
    record["no such field"] = 1
    yield "with another field", _written(value, lines)


def _first_record(value: Any) -> list[Any]:
    """The way to the first object with several fields."""
    path: list[Any] = []
    while True:
        if isinstance(value, dict) and sum(not isinstance(part, dict | list) for part in value.values()) >= 2:
            return path
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        step = next((key for key, part in inner if isinstance(part, dict | list) and part), None)
        if step is None:
            return path
        path.append(step)
        value = value[step]


def _at(value: Any, path: Sequence[Any]) -> Any:
    for step in path:
        value = value[step]
    return value


def _written(value: Any, lines: bool) -> bytes:
    text = "".join(json.dumps(one) + "\n" for one in value) if lines else json.dumps(value)
    return text.encode()


def _damaged_table(text: str, separator: str) -> Iterator[tuple[str, bytes]]:
    lines = text.splitlines()
    if len(lines) < 2:
        return
    head, first, rest = lines[0], lines[1], lines[2:]
    for index, name in enumerate(head.split(separator)[:12]):
        other = separator.join(part for k, part in enumerate(head.split(separator)) if k != index)
        yield f"without the column {name!r}", "\n".join([other, first, *rest, ""]).encode()
        cells = first.split(separator)
        if index < len(cells):
            for value in ("", "?", "nan", "-1"):
                cells[index] = value
                yield f"{name!r} as {value!r}", "\n".join([head, separator.join(cells), *rest, ""]).encode()
            cells = first.split(separator)
    yield "a column twice", "\n".join([separator.join([head, head]), first, *rest, ""]).encode()
    yield "a row twice", "\n".join([head, first, first, *rest, ""]).encode()
    yield "the head alone", f"{head}\n".encode()
    yield "a short row", "\n".join([head, first.split(separator)[0], *rest, ""]).encode()
    yield "a long row", "\n".join([head, f"{first}{separator}x{separator}y", *rest, ""]).encode()
