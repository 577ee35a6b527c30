"""Annotations from files of whatever kind, told apart by what is in them, and to files of a kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

from pydantic import ValidationError

from proctor.construction.tracks.annotation import FORMAT_VERSION, Annotation, Given
from proctor.construction.tracks.coco import read_coco, to_coco
from proctor.construction.tracks.cvat_reading import read_cvat
from proctor.construction.tracks.cvat_writing import to_cvat
from proctor.core import InputError, parse_json, read_bytes, refusal, whole_folder

TrackFormat = Literal["cvat", "coco", "json"]
KINDS: tuple[TrackFormat, ...] = get_args(TrackFormat)
"""CVAT for video 1.1, COCO with instances, Proctor's own."""

_MOST_BYTES = 512 * 1024 * 1024
_ENDINGS = (".xml", ".json")
_EXPECTED = "CVAT for video 1.1 (XML), COCO (JSON) or Proctor's own JSON"


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files named, and of every folder its .xml and .json files in order of name. Raises `InputError` for
    a path that is not there and for a folder without such a file."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.is_file() and one.suffix.lower() in _ENDINGS)
            if not inside:
                raise InputError(path, found="no .xml or .json file", expected="files of tracks")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise InputError(path, found="no such file or folder", expected="tracks")
    return found


def read_annotations(
    paths: Sequence[Path], given: Given | None = None, *, progress: Callable[[int, int], None] | None = None
) -> list[Annotation]:
    """The annotations in files or folders, each video once, in order of the video's name.

    `progress` is called with files done and files in all. The kind of a file is seen from its content. Raises `InputError` for an unreadable or a too large file
    (512 MiB), for one of another kind, for whatever is wrong in it, and for a video that comes twice.
    """
    found: dict[str, tuple[Path, Annotation]] = {}
    files = files_of(paths)
    for number, file in enumerate(files, start=1):
        for one in _read(file, given or Given()):
            if one.video.id in found:
                expected = f"each video once; {found[one.video.id][0].name} has it"
                raise InputError(file, found=f"video {one.video.id!r} again", expected=expected)
            found[one.video.id] = (file, one)
        if progress is not None:
            progress(number, len(files))
    return [one for _, (_, one) in sorted(found.items())]


def _read(file: Path, given: Given) -> list[Annotation]:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise InputError(file, found=f"{file.stat().st_size} bytes", expected=f"at most {_MOST_BYTES}")
        content = read_bytes(file)
    except OSError as error:
        raise InputError(file, found=error.strerror or "an unreadable file", expected=_EXPECTED) from error
    start = content[:200].lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\x00")
    if start.startswith(b"<"):
        return [read_cvat(file, content, given)]
    if not start.startswith(b"{"):
        found = f"{content[:40]!r}" if content else "an empty file"
        raise InputError(file, found=found, expected=_EXPECTED)
    parsed: dict[str, object] = dict(parse_json(file, content))
    if parsed.get("kind") == "annotated video":
        return [_own(file, parsed, given)]
    if "images" in parsed or "annotations" in parsed:
        return read_coco(file, parsed, given)
    fields = ", ".join(sorted(parsed)[:6]) or "nothing"
    raise InputError(file, found=f"JSON with {fields}", expected=_EXPECTED)


def _own(file: Path, parsed: dict[str, object], given: Given) -> Annotation:
    version = parsed.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        found = f"{version}, written by a newer version of Proctor"
        raise InputError(file, "field 'format_version'", found=found, expected=f"at most {FORMAT_VERSION}")
    try:
        annotation = Annotation.model_validate(parsed)
    except ValidationError as error:
        raise refusal(file, "", error) from error
    if annotation.video.procedure or not given.procedure:
        return annotation
    video = annotation.video.model_copy(update={"procedure": given.procedure})
    return annotation.model_copy(update={"video": video})


def write_annotations(annotations: Sequence[Annotation], kind: TrackFormat) -> dict[str, bytes]:
    """File names with contents: one file per video (`cvat`, `json`), or one for all of them (`coco`).
    Raises `InputError` where two videos' names differ in signs alone that no file name should have."""
    if kind == "coco":
        return {"coco.json": _dump(to_coco(annotations))}
    found: dict[str, bytes] = {}
    for one in annotations:
        name = f"{_plain(one.video.id)}.{'xml' if kind == 'cvat' else 'json'}"
        if name in found:
            raise InputError(None, f"video {one.video.id!r}", found=f"a second file {name}", expected="plain names")
        found[name] = to_cvat(one) if kind == "cvat" else _dump(one.model_dump(mode="json"))
    return found


def write_folder(annotations: Sequence[Annotation], kind: TrackFormat, out: Path) -> list[str]:
    """Writes what `write_annotations` makes into the new folder `out`, all of it or nothing; returns the names.
    Raises `InputError` where `out` holds something."""
    contents = write_annotations(annotations, kind)
    with whole_folder(out) as half:
        for name, content in contents.items():
            (half / name).write_bytes(content)
    return list(contents)


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"


def _plain(name: str) -> str:
    """A video's name as a file name: it may come from anybody's file."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name).lstrip(".") or "_"
