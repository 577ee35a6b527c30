"""A benchmark's items as plain rows, and its media beside them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from proctor.core import AudioClip, InputError, Item, UsageError, VideoClip
from proctor.interchange.export_source import ExportSource, references_of

COLUMNS = ("id", "group", "question", "options", "format", "answer", "accepted", "rationale", "media", "start", "end")
"""The columns of every benchmark; behind them stand the facets."""

_PARTS = 2**20


def item_rows(source: ExportSource) -> list[dict[str, Any]]:
    """One row an item: values in words, as a reply would write them; facets behind, those of several values as JSON."""
    facets = facet_names(source)
    return [item_row(item) | {name: _tag(item.tags.get(name)) for name in facets} for item in source.items]


def facet_names(source: ExportSource) -> list[str]:
    """The tags of all items, in the order in which they appear, but those that a column has already."""
    names = dict.fromkeys(name for item in source.items for name in item.tags)
    return [name for name in names if name not in COLUMNS]


def item_row(item: Item) -> dict[str, Any]:
    """The columns of every benchmark for one item."""
    right = references_of(item)
    clip = _timed(item)
    return {
        "id": item.id,
        "group": item.group,
        "question": item.question,
        "options": list(item.options) or list(getattr(item.answer, "classes", ())),
        "format": item.answer.kind,
        "answer": right[0] if right else None,
        "accepted": right[1:],
        "rationale": item.reference.rationale if item.reference else "",
        "media": [one.source for one in item.media],
        "start": clip.start if clip else None,
        "end": clip.end if clip else None,
    }


def _timed(item: Item) -> VideoClip | AudioClip | None:
    """The medium whose times a row holds: the first video, else the first recording."""
    clips = (one for one in item.media if isinstance(one, VideoClip))
    return next(clips, None) or next(iter(item.sounding), None)


def _tag(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(list(value), ensure_ascii=False) if isinstance(value, tuple) else _number(value)


def _number(value: bool | float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(int(value)) if float(value).is_integer() else str(value)


def lost_in_rows(source: ExportSource) -> list[str]:
    """What plain rows have no place for."""
    formats = {
        item.answer.kind for item in source.items if item.answer.model_dump(exclude_defaults=True, exclude={"kind"})
    }
    several = any(len([one for one in item.media if isinstance(one, VideoClip)]) > 1 for item in source.items)
    found = [f"settings of the formats {', '.join(sorted(formats))}: a column holds the kind"] if formats else []
    if several:
        found.append("start and end of second clips: a row has one span")
    if any(one is not _timed(item) or one.kind == "video" for item in source.items for one in item.sounding):
        found.append("times of second recordings, and that a video's sound belongs to the question")
    if any(one.region is not None for item in source.items for one in item.pictured):
        found.append("regions of media: a column holds the file")
    if not source.references:
        found.append("reference answers: left out as asked")
    return found


def media_files(source: ExportSource) -> Iterator[tuple[str, Path]]:
    """(name, file) of each medium that lies in the folder of media. A name that climbs out of it is an `InputError`."""
    if source.media is None:
        return
    root = source.media.resolve()
    for medium in source.media_of_items:
        if PurePosixPath(medium.source).is_absolute() or ".." in PurePosixPath(medium.source).parts:
            raise InputError(source.media, found=f"a medium {medium.source!r}", expected="a name below this folder")
        file = (root / medium.source).resolve()
        if not file.is_relative_to(root):
            raise InputError(source.media, found=f"{medium.source!r}, which leads out of it", expected="files inside")
        if file.is_file():
            yield medium.source, file


def copy_media(source: ExportSource, folder: Path) -> int:
    """Copies the media where that was asked for, and says how many. Raises `UsageError` where nobody knows their
    folder, and `InputError` where one is missing."""
    if not source.copy_media:
        return 0
    if source.media is None:
        raise UsageError("--media", "the folder of the benchmark's videos or images")
    found = dict(media_files(source))
    missing = [one.source for one in source.media_of_items if one.source not in found]
    if missing:
        expected = f"all media ({len(source.media_of_items)}), to copy them"
        raise InputError(source.media, found=f"no {missing[0]} and {len(missing) - 1} more", expected=expected)
    for name, file in found.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    return len(found)


def file_hash(file: Path) -> str:
    """SHA-256 of a file's content."""
    digest = sha256()
    with file.open("rb") as stream:
        while part := stream.read(_PARTS):
            digest.update(part)
    return digest.hexdigest()
