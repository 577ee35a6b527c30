"""Solved instances to show before the question; never the item itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from proctor.core import Frame, InputError, content_hash, read_json, read_jsonl, validated
from proctor.media import MediaSettings, distances, encode, hashes, read_image

SAME = 0.05
"""Two pictures whose hashes differ in at most this share of their bits count as the same picture, re-encoded."""

_EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
_REFERENCES = ("references.jsonl", "references.json")


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(min_length=1)
    order: tuple[str, ...] = Field(min_length=2)
    rationale: str = ""
    frames: dict[str, str] | None = None


@dataclass(frozen=True)
class Demonstration:
    """A solved instance: its frames by label, in the labels' order, the right order, and the rationale."""

    id: str
    frames: Mapping[str, Frame]
    order: tuple[str, ...]
    rationale: str


@dataclass(frozen=True)
class Picked:
    """The demonstrations for one item, and the instances that were passed over, with the reason."""

    shown: tuple[Demonstration, ...]
    passed_over: Mapping[str, str]


class Demonstrations:
    """Solved instances of a file or folder, in its order.

    An entry of a file (JSON, or JSON lines) has `id`, `order`, `rationale` and `frames`: for each label the path of a
    picture, relative to the file. A folder has the task's own form: `references.jsonl` or `.json`, and pictures
    `ID/A.jpg` … in it or in its subfolders (`instances`, `CPR`). Pictures are read when they are first shown.

    Raises `InputError` for what can't be read, an order that is no permutation of the frames' labels, a repeated id,
    and missing pictures.
    """

    def __init__(self, source: Path) -> None:
        self._file, self._root = _found(source)
        self._entries = _read(self._file)
        self._folder = source.is_dir()
        self._loaded: dict[str, Demonstration] = {}
        self.sha256 = content_hash([entry.model_dump(mode="json") for entry in self._entries])
        """The hash of ids, orders, rationales and names of pictures (not of the pictures)."""

    def pick(self, item: str, frames: Sequence[Frame], count: int) -> Picked:
        """The first `count` (or fewer) instances that are not the item, neither by id nor by a picture that is one of its
        `frames` (see `SAME`)."""
        asked = [hashes(frame.jpeg) for frame in frames]
        shown: list[Demonstration] = []
        passed_over: dict[str, str] = {}
        for entry in self._entries:
            if entry.id == item:
                passed_over[entry.id] = "it is the item"
                continue
            if len(shown) == count:
                break
            if entry.id not in self._loaded:
                self._loaded[entry.id] = self._load(entry)
            one = self._loaded[entry.id]
            same = _same(one, asked)
            if same:
                passed_over[one.id] = f"its picture {same} is one of the item's"
            else:
                shown.append(one)
        return Picked(tuple(shown), passed_over)

    def all(self) -> Iterator[Demonstration]:
        """All instances, each read when it is reached and not kept."""
        return map(self._load, self._entries)

    def _load(self, entry: _Entry) -> Demonstration:
        paths = self._paths(entry)
        settings = MediaSettings()
        frames = {
            label: Frame(encode(read_image(paths[label]), None, settings), None, label) for label in sorted(paths)
        }
        return Demonstration(entry.id, frames, entry.order, entry.rationale)

    def _paths(self, entry: _Entry) -> dict[str, Path]:
        location = f"item {entry.id!r}"
        if not self._folder:
            paths = {label: self._root / name for label, name in (entry.frames or {}).items()}
        else:
            name = _plain(self._file, entry.id)
            folders = [
                self._root / name,
                *sorted(self._root.glob(f"*/{name}")),
                *sorted(self._root.glob(f"*/*/{name}")),
            ]
            folder = next((one for one in folders if one.is_dir()), folders[0])
            files = {label: _named(folder, label) for label in entry.order}
            paths = {label: file for label, file in files.items() if file is not None}
        if sorted(paths) != sorted(entry.order):
            expected = f"pictures of {', '.join(sorted(entry.order))}"
            raise InputError(self._file, location, found=", ".join(sorted(paths)) or "no picture", expected=expected)
        for path in paths.values():
            if not path.resolve().is_relative_to(self._root.resolve()):
                raise InputError(self._file, location, found=f"the picture {path.name!r} outside of the folder")
        return paths


def _named(folder: Path, label: str) -> Path | None:
    files = (folder / f"{label}{extension}" for extension in _EXTENSIONS)
    return next((file for file in files if file.is_file()), None)


def _plain(file: Path, name: str) -> str:
    """An id as the name of a folder, without a path or wildcards. Raises `InputError`."""
    if any(sign in name for sign in "/\\*?[]") or name.startswith("."):
        raise InputError(file, f"item {name!r}", found="an id that is no name of a folder")
    return name


def _found(source: Path) -> tuple[Path, Path]:
    """The file with the orders, and the folder that the pictures' names are relative to."""
    if source.is_file():
        return source, source.parent
    if not source.is_dir():
        raise InputError(source, found="nothing there", expected="a file or a folder of demonstrations")
    file = next((source / name for name in _REFERENCES if (source / name).is_file()), None)
    if file is None:
        raise InputError(source, found="no references", expected=" or ".join(_REFERENCES))
    return file, source


def _read(file: Path) -> list[_Entry]:
    if file.suffix == ".jsonl":
        native = read_jsonl(file, "demonstrations")
    else:
        listed = read_json(file, "demonstrations")
        native = [(f"entry {number}", one) for number, one in enumerate(listed if isinstance(listed, list) else (), 1)]
    entries = [validated(_Entry, one, file, position) for position, one in native]
    if not entries:
        raise InputError(file, found="no demonstration", expected="a list of them")
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise InputError(file, f"item {entry.id!r}", found="it twice", expected="each id once")
        if len(set(entry.order)) != len(entry.order):
            raise InputError(file, f"item {entry.id!r}", found=" > ".join(entry.order), expected="each label once")
        seen.add(entry.id)
    return entries


def _same(demonstration: Demonstration, asked: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.uint64]]]) -> str:
    """The label of a picture that is one of the item's; "" where there is none."""
    if not asked:
        return ""
    for label, frame in demonstration.frames.items():
        if distances(hashes(frame.jpeg)[None], np.stack(asked)).min() <= SAME:
            return label
    return ""
