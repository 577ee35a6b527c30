"""The task's own files: instances (a folder each, or a manifest), references and predictions. Every picture is opened
while reading, before any call of a model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from proctor.core import (
    InputError,
    check_wrapped,
    input_bytes,
    parse_json,
    read_bytes,
    read_jsonl,
    read_table,
    unique_keys,
    validated,
)
from proctor.media import open_picture

_EXPECTED = "a .json, .jsonl or .csv file"
Model = TypeVar("Model", bound=BaseModel)


def records(file: Path, inside: str) -> list[tuple[str, JsonValue]]:
    """(location, record) of a `.json`, `.jsonl` or `.csv` file in UTF-8.

    JSON is a list of objects, such a list under the key `inside`, or an object from ids to records or to orders.
    Raises `InputError` for anything else, and for a repeated key.
    """
    suffix = file.suffix.casefold()
    if suffix == ".csv":
        return list(_rows(file))
    if suffix == ".jsonl":
        return read_jsonl(file, _EXPECTED, pairs=unique_keys)
    if suffix != ".json":
        input_bytes(file, _EXPECTED)
        raise InputError(file, found=f"a file named {file.name!r}", expected=_EXPECTED)
    return _listed(file, parse_json(file, input_bytes(file, _EXPECTED), pairs=unique_keys), inside)


def read_unique(file: Path, inside: str, model: type[Model]) -> dict[str, Model]:
    """The records of a file by their `id`. Raises `InputError` that names file and item for an invalid field, a repeated
    id, and an empty file."""
    found: dict[str, Model] = {}
    for location, raw in records(file, inside):
        given = raw.get("id") if isinstance(raw, dict) else None
        where = f"item {given!r}" if isinstance(given, str) and given else location
        one = validated(model, raw, file, where)
        name = str(given)
        if name in found:
            raise InputError(file, where, found=f"it a second time ({location})", expected="each item once")
        found[name] = one
    if not found:
        raise InputError(file, found="no entry", expected="one or more")
    return found


def _listed(file: Path, value: JsonValue, inside: str) -> list[tuple[str, JsonValue]]:
    if isinstance(value, dict) and isinstance(value.get(inside), list):
        value = value[inside]
    if isinstance(value, dict):
        check_wrapped(file, value)
        return [
            (f"item {name!r}", {"id": name, **entry} if isinstance(entry, dict) else {"id": name, "order": entry})
            for name, entry in value.items()
        ]
    if isinstance(value, list):
        return [(f"entry {number}", entry) for number, entry in enumerate(value, 1)]
    raise InputError(file, found=type(value).__name__, expected="a list of objects")


def _rows(file: Path) -> Iterator[tuple[str, JsonValue]]:
    for row in read_table(file, ("id", "order"), lenient=True).checked(file):
        location = f"row {row.number}"
        cells: dict[str, JsonValue] = dict(row.cells)
        order = row.cells["order"].strip()
        if order.startswith("["):
            cells["order"] = parse_json(file, order, location, pairs=unique_keys)
        yield location, cells


Scenario = Literal["CPR", "AED", "BMV"]

SCENARIOS: dict[Scenario, str] = {
    "CPR": "cardiopulmonary resuscitation",
    "AED": "the use of an automated external defibrillator",
    "BMV": "bag-mask ventilation",
}


def scenario_named(name: str) -> Scenario | None:
    """A scenario by its name in any case; None for another name."""
    return next((scenario for scenario in SCENARIOS if scenario.casefold() == name.casefold()), None)


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SEPARATOR = re.compile(r"\s*(?:>|→|->|,|;)\s*|\s+")


def labels_of(count: int) -> tuple[str, ...]:
    """The labels of n frames: the first letters of the alphabet (n ≤ 26).

    >>> labels_of(4)
    ('A', 'B', 'C', 'D')
    """
    return tuple(_LETTERS[:count])


def _order(value: object) -> object:
    """`D > B > A > C` (also joined by commas, arrows or spaces) as a list; a list stays one."""
    if isinstance(value, str):
        return split_order(value)
    if isinstance(value, list):
        return tuple(label.strip() if isinstance(label, str) else label for label in value)
    if value is None:
        return ()
    if not isinstance(value, tuple):
        raise ValueError("a list of labels, or a text such as D > B > A > C")
    return value


def split_order(text: str) -> tuple[str, ...]:
    """The labels of an order as a person writes it.

    >>> split_order("D > B, A C")
    ('D', 'B', 'A', 'C')
    """
    return tuple(label for label in _SEPARATOR.split(text.strip()) if label)


Order = Annotated[tuple[str, ...], BeforeValidator(_order)]


class _Native(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    id: str = Field(min_length=1)


class NativeInstance(_Native):
    """One set of shuffled key frames: `frames` names a picture below the media folder for each label, from A on."""

    frames: dict[str, str] = Field(min_length=2, max_length=26)
    scenario: Scenario | None = None
    video: str = ""


class ReferenceOrder(_Native):
    """The right order with its rationale; scenario and source video where the file states them."""

    order: Order
    rationale: str = ""
    scenario: Scenario | None = None
    video: str = ""


class NativePrediction(_Native):
    """One answer. Its order may miss, repeat or invent labels; empty is no answer."""

    order: Order = ()
    rationale: str = ""


def read_instances(file: Path) -> dict[str, NativeInstance]:
    """A manifest by id, frames sorted by label. Raises `InputError` for labels that are not the first letters, a picture
    named twice in one instance, and as `read_unique`."""
    found = read_unique(file, "instances", NativeInstance)
    for name, one in found.items():
        location = f"item {one.id!r}"
        expected = labels_of(len(one.frames))
        if set(one.frames) != set(expected):
            shown = ", ".join(sorted(one.frames))
            raise InputError(file, f"{location}, field 'frames'", found=shown, expected=", ".join(expected))
        pictures = list(one.frames.values())
        twice = next((picture for number, picture in enumerate(pictures) if picture in pictures[:number]), "")
        if twice:
            raise InputError(file, location, found=f"the image {twice!r} twice", expected="an image per label")
        found[name] = one.model_copy(update={"frames": {label: one.frames[label] for label in expected}})
    return found


def read_references(file: Path) -> dict[str, ReferenceOrder]:
    """References by id. Raises `InputError` for an order that is no permutation of the first letters (A, B, C …), and as
    `read_unique`."""
    found = read_unique(file, "references", ReferenceOrder)
    for reference_order in found.values():
        labels = labels_of(len(reference_order.order))
        if len(reference_order.order) < 2 or sorted(reference_order.order) != list(labels):
            expected = f"a permutation of {', '.join(labels)}" if len(labels) > 1 else "two labels or more"
            shown = " > ".join(reference_order.order) or "an empty order"
            raise InputError(file, f"item {reference_order.id!r}, field 'order'", found=shown, expected=expected)
    return found


def read_predictions(file: Path) -> dict[str, NativePrediction]:
    """Predictions by id: JSON, JSON lines or CSV (columns id, order, rationale). Labels are not checked: an invalid order
    is an answer, too. Raises as `read_unique`."""
    return read_unique(file, "predictions", NativePrediction)


def spelled(order: tuple[str, ...], labels: tuple[str, ...]) -> tuple[str, ...]:
    """The order with known labels in their own case, as `OrderingFormat` reads them.

    >>> spelled(("b", "x", "A"), ("A", "B"))
    ('B', 'x', 'A')
    """
    known = {label.casefold(): label for label in labels}
    return tuple(known.get(label.casefold(), label) for label in order)


_MANIFESTS = ("manifest.json", "manifest.jsonl")
_EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
_MAX_FRAMES = 26


def find_instances(data: Path, media: Path) -> list[NativeInstance]:
    """All instances, sorted by id. From `manifest.json` or `manifest.jsonl` in `data` where there is one; else
    every folder `ID` or `CPR/ID`, `AED/ID`, `BMV/ID` below `media`, or below its folder `instances`, that holds
    `A.jpg`, `B.jpg` … (or .png, .webp, .bmp).

    Raises `InputError`, naming file and item, for a picture that is missing, unreadable or repeated (by name or by
    content), for other files' names, and where there is no instance.
    """
    manifest = only_one(data, _MANIFESTS)
    found = list(read_instances(manifest).values()) if manifest is not None else _from_folders(media)
    if not found:
        expected = "a manifest, or a folder per instance with A.jpg, B.jpg …"
        raise InputError(data, found="no instance", expected=expected)
    for instance in found:
        _check_pictures(instance, media)
    return sorted(found, key=lambda native_instance: native_instance.id)


def only_one(folder: Path, names: Sequence[str]) -> Path | None:
    """The file with one of these names; None where there is none. Raises `InputError` where there are two."""
    there = [folder / name for name in names if (folder / name).is_file()]
    if len(there) > 1:
        raise InputError(there[1], found=f"{there[0].name} beside it", expected="one of them alone")
    return there[0] if there else None


def _from_folders(media: Path) -> list[NativeInstance]:
    root = media / "instances" if (media / "instances").is_dir() else media
    found: dict[str, NativeInstance] = {}
    for scenario, folder in _folders(root):
        instance = _from_folder(folder, media, scenario)
        if instance.id in found:
            raise InputError(folder, f"item {instance.id!r}", found="a second folder", expected="one per item")
        found[instance.id] = instance
    return list(found.values())


def _folders(root: Path) -> list[tuple[Scenario | None, Path]]:
    below: list[tuple[Scenario | None, Path]] = [
        (None, folder) for folder in _inside(root) if folder.name not in SCENARIOS
    ]
    for scenario in SCENARIOS:
        below += [(scenario, folder) for folder in _inside(root / scenario)]
    return below


def _inside(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith((".", "_")))


def _from_folder(folder: Path, media: Path, scenario: Scenario | None) -> NativeInstance:
    location = f"item {folder.name!r}"
    pictures: dict[str, str] = {}
    for file in sorted(folder.iterdir()):
        if file.name.startswith(".") or file.suffix.casefold() not in _EXTENSIONS:
            continue
        label = file.stem.upper()
        if label not in labels_of(_MAX_FRAMES):
            raise InputError(file, location, found=f"the name {file.name!r}", expected="a label, A to Z, as name")
        if label in pictures:
            raise InputError(file, location, found=f"the image {label} twice", expected="an image per label")
        pictures[label] = file.relative_to(media).as_posix()
    if len(pictures) < 2:
        raise InputError(folder, location, found=f"{len(pictures)} images", expected="A.jpg, B.jpg …")
    expected = labels_of(labels_of(_MAX_FRAMES).index(max(pictures)) + 1)
    gap = next((label for label in expected if label not in pictures), None)
    if gap is not None:
        raise InputError(
            folder / f"{gap}.jpg", location, found="no such image", expected=f"all of {', '.join(expected)}"
        )
    return NativeInstance(id=folder.name, frames=pictures, scenario=scenario)


def _check_pictures(instance: NativeInstance, media: Path) -> None:
    """Decodes every picture, at a small size, so that an unreadable one is found before any call of a model."""
    seen: dict[bytes, str] = {}
    for label, name in instance.frames.items():
        location = f"item {instance.id!r}, label {label}"
        content = _content(media, name, location)
        digest = hashlib.sha256(content).digest()
        if digest in seen:
            raise InputError(
                media / name, location, found=f"the same picture as {seen[digest]}", expected="another one"
            )
        seen[digest] = label
        open_picture(content, media / name, location, draft=64)


def _content(media: Path, name: str, location: str) -> bytes:
    path = media / name
    if not path.resolve().is_relative_to(media.resolve()):
        raise InputError(path, location, found="a name that leads out of the folder", expected="a file in it")
    try:
        return read_bytes(path)
    except FileNotFoundError as error:
        raise InputError(path, location, found="no such image", expected="an image") from error
    except OSError as error:
        raise InputError(path, location, found=error.strerror or "an unreadable file") from error
