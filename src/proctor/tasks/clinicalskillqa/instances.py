"""Instances on disk: a folder each, or a manifest; every picture is opened before anything is asked."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.core import InputError, read_bytes
from proctor.tasks.clinicalskillqa.native import SCENARIOS, NativeInstance, labels_of, read_instances

_MANIFESTS = ("manifest.json", "manifest.jsonl")
_EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
_MOST = 26


@dataclass(frozen=True, slots=True)
class Instance:
    """One set of shuffled key frames; `pictures` are their names below the media folder, by label from A on."""

    id: str
    pictures: dict[str, str]
    scenario: str = ""
    video: str = ""


def find_instances(data: Path, media: Path) -> list[Instance]:
    """All instances, sorted by id. From `manifest.json` or `manifest.jsonl` in `data` where there is one; else
    every folder `ID` or `CPR/ID`, `AED/ID`, `BMV/ID` below `media`, or below its folder `instances`, that holds
    `A.jpg`, `B.jpg` … (or .png, .webp, .bmp).

    Raises `InputError`, naming file and item, for a picture that is missing, unreadable or there twice (by name
    or by content), for other files' names, and where there is no instance at all.
    """
    manifest = only_one(data, _MANIFESTS)
    if manifest is not None:
        found = [_from_manifest(entry) for entry in read_instances(manifest).values()]
    else:
        found = _from_folders(media)
    if not found:
        expected = "a manifest, or a folder per instance with A.jpg, B.jpg …"
        raise InputError(data, found="no instance", expected=expected)
    for instance in found:
        _check_pictures(instance, media)
    return sorted(found, key=lambda one: one.id)


def only_one(folder: Path, names: Sequence[str]) -> Path | None:
    """The file that has one of these names; None where none is there. Raises `InputError` where two are: nobody says
    which of them holds."""
    there = [folder / name for name in names if (folder / name).is_file()]
    if len(there) > 1:
        raise InputError(there[1], found=f"{there[0].name} beside it", expected="one of them alone")
    return there[0] if there else None


def _from_manifest(entry: NativeInstance) -> Instance:
    pictures = {label: entry.frames[label] for label in labels_of(len(entry.frames))}
    return Instance(entry.id, pictures, entry.scenario or "", entry.video)


def _from_folders(media: Path) -> list[Instance]:
    root = media / "instances" if (media / "instances").is_dir() else media
    found: dict[str, Instance] = {}
    for scenario, folder in _folders(root):
        instance = _from_folder(folder, media, scenario)
        if instance.id in found:
            raise InputError(folder, f"item {instance.id!r}", found="a second folder", expected="one per item")
        found[instance.id] = instance
    return list(found.values())


def _folders(root: Path) -> list[tuple[str, Path]]:
    below = [("", folder) for folder in _inside(root) if folder.name not in SCENARIOS]
    for scenario in SCENARIOS:
        below += [(scenario, folder) for folder in _inside(root / scenario)]
    return below


def _inside(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return sorted(one for one in root.iterdir() if one.is_dir() and not one.name.startswith((".", "_")))


def _from_folder(folder: Path, media: Path, scenario: str) -> Instance:
    place = f"item {folder.name!r}"
    pictures: dict[str, str] = {}
    for file in sorted(folder.iterdir()):
        if file.name.startswith(".") or file.suffix.casefold() not in _EXTENSIONS:
            continue
        label = file.stem.upper()
        if label not in labels_of(_MOST):
            raise InputError(file, place, found=f"the name {file.name!r}", expected="a label, A to Z, as name")
        if label in pictures:
            raise InputError(file, place, found=f"the image {label} twice", expected="an image per label")
        pictures[label] = file.relative_to(media).as_posix()
    if len(pictures) < 2:
        raise InputError(folder, place, found=f"{len(pictures)} images", expected="A.jpg, B.jpg …")
    expected = labels_of(labels_of(_MOST).index(max(pictures)) + 1)
    gap = next((label for label in expected if label not in pictures), None)
    if gap is not None:
        raise InputError(folder / f"{gap}.jpg", place, found="no such image", expected=f"all of {', '.join(expected)}")
    return Instance(folder.name, pictures, scenario)


def _check_pictures(instance: Instance, media: Path) -> None:
    """Opens every picture of an instance whole, though small: what can't be read is known before it is paid for."""
    seen: dict[bytes, str] = {}
    for label, name in instance.pictures.items():
        place = f"item {instance.id!r}, label {label}"
        content = _content(media, name, place)
        digest = hashlib.sha256(content).digest()
        if digest in seen:
            raise InputError(media / name, place, found=f"the same picture as {seen[digest]}", expected="another one")
        seen[digest] = label
        _open(media / name, content, place)


def _content(media: Path, name: str, place: str) -> bytes:
    path = media / name
    if not path.resolve().is_relative_to(media.resolve()):
        raise InputError(path, place, found="a name that leads out of the folder", expected="a file in it")
    try:
        return read_bytes(path)
    except FileNotFoundError as error:
        raise InputError(path, place, found="no such image", expected="an image") from error
    except OSError as error:
        raise InputError(path, place, found=error.strerror or "an unreadable file") from error


def _open(path: Path, content: bytes, place: str) -> None:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as opened:
            opened.draft("RGB", (64, 64))
            opened.load()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        found = f"an unreadable image ({type(error).__name__})"
        raise InputError(path, place, found=found, expected="an image") from error
