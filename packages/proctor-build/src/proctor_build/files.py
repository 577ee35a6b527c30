"""Read and write files of tracks: COCO JSON with instances over time, CVAT's XML, and Proctor's own JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proctor.core import InputError, parse_json, read_bytes, refusal, validated, whole_folder
from proctor.tracks import (
    FORMAT_VERSION,
    AnnotatedBox,
    AnnotatedMoment,
    AnnotatedVideo,
    Annotation,
    MomentKind,
    ReadDefaults,
    Sighting,
    video_id,
)
from proctor_build.cvat import read_cvat, to_cvat

_ONE_VIDEO = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


Part = TypeVar("Part", bound="_Numbered")


class _Numbered(_Part):
    id: int


class _CocoMoment(_Part):
    kind: MomentKind
    instance: str
    class_name: str
    time: float


class _CocoVideo(_Numbered):
    name: str = Field(min_length=1)
    file_name: str = ""
    width: int | None = None
    height: int | None = None
    fps: float | None = None
    duration: float | None = None
    procedure_type: str = ""
    moments: tuple[_CocoMoment, ...] = ()
    begins: float | None = Field(default=None, ge=0)
    unseen: tuple[int, ...] = ()


class _CocoImage(_Numbered):
    file_name: str = ""
    width: int | None = None
    height: int | None = None
    video_id: int = _ONE_VIDEO
    time: float | None = Field(default=None, ge=0)
    frame_index: int | None = Field(default=None, ge=0, le=10**9)
    frame_id: int | None = Field(default=None, ge=0, le=10**9)


class _CocoCategory(_Numbered):
    name: str = Field(min_length=1)


class _CocoBox(_Numbered):
    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float] | None = None
    track_id: int | str | None = None
    instance: str | None = None
    attributes: dict[str, bool | int | float | str] = Field(default_factory=dict)


def read_coco(file: Path, content: dict[str, Any], defaults: ReadDefaults) -> list[Annotation]:
    """The annotation of each video in a COCO file.

    `images` have a `video_id` (optional with one video) and a `time` in seconds, or a `frame_index` or `frame_id`,
    or a name such as `frame_000025.PNG` (as CVAT writes it), which need a frame rate (`videos[].fps`, or `defaults`).
    The annotated stretch is that from the first image to the last; of whole seconds there without an image nothing is
    known, unless the video states what is annotated (`begins`, `unseen`). Only the image nearest to each whole second is used.
    `annotations` have an `instance` or a `track_id`, there or among their `attributes`. Other attributes: `occluded`,
    `outside` (there and covered), `in_patient`, `filled`, `visibility`. The optional `videos` hold `fps`, `duration` in
    seconds (default: to the last image), `procedure_type` and `moments`. Raises `InputError` for inconsistent parts.
    """
    videos = _parts(file, content, "videos", _CocoVideo, optional=True)
    images = _parts(file, content, "images", _CocoImage)
    categories = {part.id: part.name for part in _parts(file, content, "categories", _CocoCategory)}
    boxes = _parts(file, content, "annotations", _CocoBox)
    if not images:
        raise InputError(file, "images", found="none", expected="one or more")
    if not videos:
        videos = [_CocoVideo(id=_ONE_VIDEO, name=file.stem)]
    by_image: dict[int, list[tuple[int, _CocoBox]]] = {coco_image.id: [] for coco_image in images}
    for number, box in enumerate(boxes, start=1):
        location = f"annotations, entry {number}"
        if box.image_id not in by_image:
            raise InputError(file, location, found=f"image_id {box.image_id}", expected="the id of an image")
        if box.category_id not in categories:
            raise InputError(file, location, found=f"category_id {box.category_id}", expected="the id of a category")
        by_image[box.image_id].append((number, box))
    known = {video.id for video in videos}
    for number, image in enumerate(images, start=1):
        if image.video_id not in known:
            location, found = f"images, entry {number}", f"video_id {image.video_id}"
            raise InputError(file, location, found=found, expected="the id of a video")
    return [
        _annotation(
            file,
            video,
            [coco_image for coco_image in images if coco_image.video_id == video.id],
            (by_image, categories),
            defaults,
        )
        for video in videos
    ]


def _parts(file: Path, content: dict[str, Any], name: str, model: type[Part], *, optional: bool = False) -> list[Part]:
    raw = content.get(name, [] if optional else None)
    if not isinstance(raw, list):
        found = "nothing" if raw is None else f"a {type(raw).__name__}"
        raise InputError(file, f"field {name!r}", found=found, expected="a list, as COCO writes it")
    parts = [validated(model, entry, file, f"{name}, entry {number}") for number, entry in enumerate(raw, start=1)]
    seen: set[int] = set()
    for number, part in enumerate(parts, start=1):
        if part.id in seen:
            raise InputError(file, f"{name}, entry {number}", found=f"id {part.id} again", expected="each id once")
        seen.add(part.id)
    return parts


def _annotation(
    file: Path,
    video: _CocoVideo,
    images: Sequence[_CocoImage],
    boxes: tuple[dict[int, list[tuple[int, _CocoBox]]], dict[int, str]],
    defaults: ReadDefaults,
) -> Annotation:
    by_image, categories = boxes
    location = f"video {video.name!r}"
    fps = video.fps or defaults.fps
    nearest = _nearest(file, images, fps)
    width = video.width or next((image.width for image in images if image.width), None)
    height = video.height or next((image.height for image in images if image.height), None)
    if width is None or height is None:
        raise InputError(file, location, found="no width and height", expected="the picture's size in pixels")
    if fps is None:
        raise InputError(file, location, found="no frame rate", expected="fps of the video, or --fps")
    try:
        return Annotation(
            video=AnnotatedVideo(
                id=video_id(video.name),
                file=video.file_name or video.name,
                width=width,
                height=height,
                fps=fps,
                procedure=video.procedure_type or defaults.procedure,
                **_stretch(video, nearest),
            ),
            sightings=tuple(
                _sighting(file, number, box, second, categories)
                for second, image in nearest.items()
                for number, box in by_image[image.id]
            ),
            moments=tuple(AnnotatedMoment.model_validate(moment.model_dump()) for moment in video.moments),
        )
    except ValidationError as error:
        raise refusal(file, location, error) from error


_FRAME = re.compile(r"(?:.*/)?frame_(\d{1,9})\.\w{2,4}", re.IGNORECASE)


def _stretch(video: _CocoVideo, seconds: Iterable[int]) -> dict[str, Any]:
    """The length of a video, and what of it is annotated."""
    known = set(seconds)
    first, last = min(known, default=0), max(known, default=0)
    if video.begins is not None:
        return {"seconds": video.duration or last + 1.0, "begins": video.begins, "unseen": video.unseen}
    until = max([last + 1.0, *(moment.time for moment in video.moments)])
    length = until if video.duration is None else min(video.duration, until)
    return {"seconds": length, "begins": float(first), "unseen": tuple(sorted(set(range(first, last)) - known))}


def _nearest(file: Path, images: Sequence[_CocoImage], fps: float | None) -> dict[int, _CocoImage]:
    """The image nearest to each whole second that has one."""
    found: dict[int, tuple[float, _CocoImage]] = {}
    for image in images:
        named = _FRAME.fullmatch(image.file_name)
        frames = (image.frame_index, image.frame_id, int(named[1]) if named is not None else None)
        frame = next((number for number in frames if number is not None), None)
        time = image.time
        if time is None and frame is not None:
            if fps is None:
                raise InputError(file, f"image {image.id}", found="a frame number", expected="fps, or --fps")
            time = frame / fps
        if time is None:
            raise InputError(
                file,
                f"image {image.id}",
                found="no time",
                expected="time, frame_index, frame_id or frame_000025 in its name",
            )
        second = math.floor(time + 0.5)
        off = abs(time - second)
        if second not in found or off < found[second][0]:
            found[second] = (off, image)
    return {second: image for second, (_, image) in sorted(found.items())}


def _sighting(file: Path, number: int, box: _CocoBox, second: int, categories: dict[int, str]) -> Sighting:
    location = f"annotations, entry {number}"
    attributes = dict(box.attributes)
    given = (box.instance, attributes.pop("instance", None), box.track_id, attributes.pop("track_id", None))
    names = [one for one in given if one is not None]
    if not names:
        raise InputError(file, location, found="no instance", expected="track_id or instance")
    outside = attributes.pop("outside", False) is True
    attributes.pop("keyframe", None)  # written by CVAT
    if box.bbox is None:
        expected = "bbox (x, y, width, height): masks and polygons are not read"
        raise InputError(file, location, found="no bbox", expected=expected)
    x, y, width, height = box.bbox
    try:
        return Sighting(
            second=second,
            instance=names[0] if isinstance(names[0], str) else f"track-{names[0]}",
            class_name=categories[box.category_id],
            box=None if outside else AnnotatedBox(x=x, y=y, width=width, height=height),
            occluded=attributes.pop("occluded", False) is True,
            in_patient=attributes.pop("in_patient", True) is not False,
            filled=attributes.pop("filled", False) is True,
            visibility=_share(file, location, attributes.pop("visibility", None)),
            attributes={name: str(value) for name, value in attributes.items() if str(value)},
        )
    except ValidationError as error:
        raise refusal(file, location, error) from error


def _share(file: Path, location: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(file, f"{location}, field 'visibility'", found=repr(value)[:60], expected="a number")
    return float(value)


def to_coco(annotations: Sequence[Annotation]) -> dict[str, Any]:
    """A COCO file that `read_coco` reads back as the same annotations, with an image for every second that has a
    sighting. Covered instances have an empty box and the attribute `outside`."""
    names = sorted({name for one in annotations for name in one.classes})
    category = {name: number for number, name in enumerate(names, start=1)}
    images: list[dict[str, Any]] = []
    boxes: list[dict[str, Any]] = []
    for number, annotation in enumerate(annotations, start=1):
        for second, sightings in annotation.by_second().items() or [(0, [])]:
            images.append(_image(annotation.video, number, second, len(images) + 1))
            boxes += [
                {"id": len(boxes) + 1 + more, "image_id": len(images)} | _box(one, category)
                for more, one in enumerate(sightings)
            ]
    return {
        "info": {"description": "foreign objects, second by second", "version": "1"},
        "videos": [_video(one, number) for number, one in enumerate(annotations, start=1)],
        "images": images,
        "categories": [{"id": number, "name": name} for name, number in category.items()],
        "annotations": boxes,
    }


def _video(annotation: Annotation, number: int) -> dict[str, Any]:
    video = annotation.video
    return {
        "id": number,
        "name": video.id,
        "file_name": video.file,
        "width": video.width,
        "height": video.height,
        "fps": video.fps,
        "duration": video.seconds,
        "procedure_type": video.procedure,
        "moments": [moment.model_dump(mode="json") for moment in annotation.moments],
        "begins": video.begins,
        "unseen": list(video.unseen),
    }


def _image(video: AnnotatedVideo, video_id: int, second: int, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "video_id": video_id,
        "file_name": f"{video.id}/{second:06d}.jpg",
        "width": video.width,
        "height": video.height,
        "frame_index": video.frame_of(second),
        "time": float(second),
    }


def _box(sighting: Sighting, category: dict[str, int]) -> dict[str, Any]:
    box = sighting.box or AnnotatedBox(x=0, y=0, width=0, height=0)
    flags: dict[str, Any] = {"occluded": sighting.occluded}
    flags |= {"outside": True} if sighting.box is None else {}
    flags |= {} if sighting.in_patient else {"in_patient": False}
    flags |= {"filled": True} if sighting.filled else {}
    flags |= {} if sighting.visibility is None else {"visibility": sighting.visibility}
    return {
        "category_id": category[sighting.class_name],
        "bbox": [box.x, box.y, box.width, box.height],
        "area": box.area,
        "iscrowd": 0,
        "instance": sighting.instance,
        "attributes": flags | sighting.attributes,
    }


TrackFormat = Literal["cvat", "coco", "json"]
KINDS: tuple[TrackFormat, ...] = get_args(TrackFormat)
"""CVAT for video 1.1, COCO with instances, Proctor's own."""

_MOST_BYTES = 512 * 1024 * 1024
_ENDINGS = (".xml", ".json")
_EXPECTED = "CVAT for video 1.1 (XML), COCO (JSON) or Proctor's own JSON"


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files, and the .xml and .json files of folders, sorted by name. Raises `InputError` for a missing path and for
    a folder without such a file."""
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
    paths: Sequence[Path], defaults: ReadDefaults | None = None, *, progress: Callable[[int, int], None] | None = None
) -> list[Annotation]:
    """The annotations in files or folders, sorted by the video's name; formats are recognised by content.

    `progress` is called with files done and files in all. Raises `InputError` for a file that is unreadable, larger
    than 512 MiB, of another format, or invalid, and for a video that comes twice.
    """
    found: dict[str, tuple[Path, Annotation]] = {}
    files = files_of(paths)
    for number, file in enumerate(files, start=1):
        for annotation in _read(file, defaults or ReadDefaults()):
            if annotation.video.id in found:
                expected = f"each video once; {found[annotation.video.id][0].name} has it"
                raise InputError(file, found=f"video {annotation.video.id!r} again", expected=expected)
            found[annotation.video.id] = (file, annotation)
        if progress is not None:
            progress(number, len(files))
    return [one for _, (_, one) in sorted(found.items())]


def _read(file: Path, defaults: ReadDefaults) -> list[Annotation]:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise InputError(file, found=f"{file.stat().st_size} bytes", expected=f"at most {_MOST_BYTES}")
        content = read_bytes(file)
    except OSError as error:
        raise InputError(file, found=error.strerror or "an unreadable file", expected=_EXPECTED) from error
    start = content[:200].lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\x00")
    if start.startswith(b"<"):
        return [read_cvat(file, content, defaults)]
    if not start.startswith(b"{"):
        found = f"{content[:40]!r}" if content else "an empty file"
        raise InputError(file, found=found, expected=_EXPECTED)
    parsed: dict[str, object] = dict(parse_json(file, content))
    if parsed.get("kind") == "annotated video":
        return [_own(file, parsed, defaults)]
    if "images" in parsed or "annotations" in parsed:
        return read_coco(file, parsed, defaults)
    fields = ", ".join(sorted(parsed)[:6]) or "nothing"
    raise InputError(file, found=f"JSON with {fields}", expected=_EXPECTED)


def _own(file: Path, parsed: dict[str, object], defaults: ReadDefaults) -> Annotation:
    version = parsed.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        found = f"{version}, written by a newer version of Proctor"
        raise InputError(file, "field 'format_version'", found=found, expected=f"at most {FORMAT_VERSION}")
    try:
        annotation = Annotation.model_validate(parsed)
    except ValidationError as error:
        raise refusal(file, "", error) from error
    if annotation.video.procedure or not defaults.procedure:
        return annotation
    video = annotation.video.model_copy(update={"procedure": defaults.procedure})
    return annotation.model_copy(update={"video": video})


def write_annotations(annotations: Sequence[Annotation], kind: TrackFormat) -> dict[str, bytes]:
    """File names and contents: one file per video (`cvat`, `json`), or one for all (`coco`). Raises `InputError` if two
    videos' names make the same file name."""
    if kind == "coco":
        return {"coco.json": _dump(to_coco(annotations))}
    found: dict[str, bytes] = {}
    for annotation in annotations:
        name = f"{_plain(annotation.video.id)}.{'xml' if kind == 'cvat' else 'json'}"
        if name in found:
            raise InputError(f"video {annotation.video.id!r}", found=f"a second file {name}", expected="plain names")
        found[name] = to_cvat(annotation) if kind == "cvat" else _dump(annotation.model_dump(mode="json"))
    return found


def write_folder(annotations: Sequence[Annotation], kind: TrackFormat, out: Path) -> list[str]:
    """Writes the files of `write_annotations` into the new folder `out`, all or nothing; returns their names. Raises
    `InputError` if `out` is not empty."""
    contents = write_annotations(annotations, kind)
    with whole_folder(out) as half:
        for name, content in contents.items():
            (half / name).write_bytes(content)
    return list(contents)


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name).lstrip(".") or "_"
