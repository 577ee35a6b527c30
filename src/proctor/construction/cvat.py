"""CVAT's "CVAT for video 1.1" XML: to annotations and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pydantic import ValidationError

from proctor.construction.annotation import (
    MOST_SIGHTINGS,
    AnnotatedBox,
    AnnotatedMoment,
    AnnotatedVideo,
    Annotation,
    MomentKind,
    ReadDefaults,
    Sighting,
)
from proctor.construction.xml import Node, read_xml
from proctor.core import InputError, refusal

_SHAPES = ("polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton")
_MOMENTS: dict[str, MomentKind] = {"inserted_at": "insertion", "retrieved_at": "retrieval"}
_CLICKED: tuple[MomentKind, ...] = ("insertion", "retrieval")


@dataclass(frozen=True)
class _Key:
    """A key frame of a track, with the attributes that hold from it on."""

    frame: int
    box: AnnotatedBox
    outside: bool
    occluded: bool
    attributes: dict[str, str]
    line: int


@dataclass
class _Track:
    """One `<track>`: its label, its number, what holds for all of it, its key frames in order."""

    label: str
    number: str
    line: int
    own: dict[str, str] = field(default_factory=dict)
    keys: list[_Key] = field(default_factory=list)

    @property
    def instance(self) -> str:
        return self.own.get("instance") or f"{self.label}-{self.number}"


def read_cvat(file: Path, content: bytes, defaults: ReadDefaults) -> Annotation:
    """The annotation in one XML file of CVAT, as the tool itself would show it at every whole second.

    Only key frames count. Between two of them a box goes straight from one to the other, whatever the second
    one says; `outside`, `occluded` and attributes hold from a key frame up to the next; after the last one the
    box stays to the end of the task unless it is outside. At second s the frame nearest to s is looked at.

    The attribute `instance` says which instance a track is (tracks of one value are one instance that was
    lost and found again); without it a track is an instance of its own, `label-id`. Moments: the attribute
    `moment` turns to `insertion` or `retrieval` on a key frame, or `inserted_at`/`retrieved_at` hold seconds
    or hh:mm:ss, several separated by commas. An outside box with `hidden` = true says that the object is
    there and covered. `defaults` has what CVAT's file lacks: the frame rate, the procedure.
    """
    root = read_xml(file, content, _is_track)
    if root.tag != "annotations":
        raise InputError(file, f"line {root.line}", found=f"<{root.tag}>", expected="<annotations>, as CVAT writes it")
    if root.find("image") is not None:
        raise InputError(file, found="CVAT for images", expected="CVAT for video 1.1, which has tracks")
    video, stop = _video(file, root, defaults)
    tracks = _Tracks(file, video, stop)
    read_xml(file, content, tracks.ended)
    try:
        return Annotation(video=video, sightings=tuple(tracks.sightings), moments=tuple(tracks.moments))
    except ValidationError as error:
        raise refusal(file, "", error) from error


def _is_track(node: Node, above: Sequence[Node]) -> bool:
    return len(above) > 1 if above and above[-1].tag == "track" else len(above) == 1 and node.tag == "track"


class _Tracks:
    """Takes the tracks of a file one by one, and their boxes one by one, so that only what they show is kept."""

    def __init__(self, file: Path, video: AnnotatedVideo, stop: int) -> None:
        self._file, self._video, self._stop = file, video, stop
        self._track: _Track | None = None
        self.sightings: list[Sighting] = []
        self.moments: set[AnnotatedMoment] = set()

    def ended(self, node: Node, above: Sequence[Node]) -> bool:
        if len(above) == 1:
            if node.tag == "track":
                self._show(self._open(node))
                self._track = None
            return True
        if len(above) == 2 and above[1].tag == "track":
            _add_shape(self._file, self._open(above[1]), node)
            return True
        return False

    def _open(self, element: Node) -> _Track:
        if self._track is None:
            self._track = _track(self._file, element)
        return self._track

    def _show(self, track: _Track) -> None:
        place = f"line {track.line}, <track> {track.number}"
        if not track.keys:
            raise InputError(self._file, place, found="no key frame", expected="one or more")
        for one in _sightings(self._file, track, self._video, self._stop):
            if len(self.sightings) == MOST_SIGHTINGS:
                found = f"more than {MOST_SIGHTINGS:,} boxes, one for each second of each track"
                raise InputError(self._file, place, found=found, expected="several videos")
            self.sightings.append(one)
        self.moments |= set(_moments(self._file, track, self._video))


def _video(file: Path, root: Node, defaults: ReadDefaults) -> tuple[AnnotatedVideo, int]:
    """The video and the last frame of the task."""
    meta = root.find("meta")
    if meta is None:
        raise InputError(file, found="no <meta>", expected="<meta> with the task and its size")
    task = next((found for name in ("task", "job") if (found := meta.find(name)) is not None), meta)
    own = meta.find("proctor")
    name = _text(own, "file") or _text(meta, "source") or _text(task, "source") or _text(task, "name")
    fps = _number(file, own, "fps") or defaults.fps
    if fps is None:
        raise InputError(file, "<meta>", found="no frame rate, CVAT keeps none", expected="--fps")
    frames = _number(file, task, "size")
    stop = _number(file, task, "stop_frame")
    if stop is None:
        if frames is None:
            raise InputError(file, "<meta>", found="no <size>", expected="the number of frames")
        stop = frames - 1
    size = next((found for at in (meta, task) if (found := at.find("original_size")) is not None), None)
    width, height = (_number(file, size, side) for side in ("width", "height"))
    if width is None or height is None:
        raise InputError(file, "<meta>", found="no <original_size>", expected="width and height in pixels")
    try:
        video = AnnotatedVideo(
            id=_text(own, "id") or Path(name or file.stem).stem,
            file=name or file.stem,
            width=int(width),
            height=int(height),
            seconds=_number(file, own, "seconds") or (stop + 1) / fps,
            fps=fps,
            procedure=_text(own, "procedure") or defaults.procedure,
        )
    except ValidationError as error:
        raise refusal(file, "<meta>", error) from error
    return video, int(stop)


def _text(element: Node | None, name: str) -> str:
    found = None if element is None else element.find(name)
    return "" if found is None else found.text.strip()


def _number(file: Path, element: Node | None, name: str) -> float | None:
    text = _text(element, name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise InputError(file, f"<meta>, <{name}>", found=repr(text)[:60], expected="a number")
    return value


def _track(file: Path, element: Node) -> _Track:
    for name in ("id", "label"):
        if not element.get(name).strip():
            place = f"line {element.line}, <track>"
            raise InputError(file, place, found=f"no {name}", expected=f"an attribute {name!r}")
    return _Track(element.get("label").strip(), element.get("id").strip(), element.line)


def _add_shape(file: Path, track: _Track, shape: Node) -> None:
    if shape.tag in _SHAPES:
        raise InputError(file, _line(shape), found=f"<{shape.tag}>", expected="<box>: only boxes are read")
    if shape.tag == "box":
        _add_key(file, track, shape)
    if len(track.keys) > MOST_SIGHTINGS:
        found = f"more than {MOST_SIGHTINGS:,} key frames in a track"
        raise InputError(file, _line(shape), found=found, expected="several videos")


def _add_key(file: Path, track: _Track, shape: Node) -> None:
    """Adds a key frame; attributes that it does not name hold on from the one before."""
    named = {one.get("name"): one.text.strip() for one in shape.all("attribute")}
    for name in ("instance", *_MOMENTS):
        value = named.pop(name, "")
        known = track.own.setdefault(name, value) or value
        if value not in {"", known}:
            found, expected = f"{name} {value!r}", f"{known!r} as before in the track"
            raise InputError(file, _line(shape), found=found, expected=expected)
        track.own[name] = known
    if not _flag(file, shape, "keyframe", missing=True):
        return
    frame = _value(file, shape, "frame")
    if frame != int(frame) or frame < 0:
        raise InputError(file, _line(shape), found=f"frame {frame:g}", expected="a whole number of 0 or more")
    before = track.keys[-1] if track.keys else None
    if before is not None and frame <= before.frame:
        found, expected = f"key frame {frame:g} after {before.frame}", "key frames in order, each once"
        raise InputError(file, _line(shape), found=found, expected=expected)
    left, top, right, bottom = (_value(file, shape, edge) for edge in ("xtl", "ytl", "xbr", "ybr"))
    track.keys.append(
        _Key(
            frame=int(frame),
            box=AnnotatedBox(x=left, y=top, width=round(right - left, 6), height=round(bottom - top, 6)),
            outside=_flag(file, shape, "outside"),
            occluded=_flag(file, shape, "occluded"),
            attributes=_going_on(before.attributes if before else {}, named),
            line=shape.line,
        )
    )


def _going_on(before: dict[str, str], named: dict[str, str]) -> dict[str, str]:
    """The attributes from here on: the same dictionary where nothing changes, as from most key frames to the next."""
    return before if named.items() <= before.items() else {**before, **named}


def _line(element: Node) -> str:
    return f"line {element.line}, <{element.tag}>"


def _value(file: Path, element: Node, name: str) -> float:
    text = element.get(name)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        found = f"{name} {text[:60]!r}" if text else f"no {name}"
        raise InputError(file, _line(element), found=found, expected="a number")
    return value


def _flag(file: Path, element: Node, name: str, *, missing: bool = False) -> bool:
    text = element.get(name, "1" if missing else "0")
    if text not in {"0", "1"}:
        raise InputError(file, _line(element), found=f"{name} {text[:60]!r}", expected="0 or 1")
    return text == "1"


def _sightings(file: Path, track: _Track, video: AnnotatedVideo, stop: int) -> Iterator[Sighting]:
    """What the track shows at every whole second from its first key frame on."""
    at = 0
    for second in range(video.whole_seconds):
        frame = video.frame_of(second)
        if frame > stop:
            return
        if frame < track.keys[0].frame:
            continue
        while at + 1 < len(track.keys) and track.keys[at + 1].frame <= frame:
            at += 1
        key = track.keys[at]
        following = track.keys[at + 1] if at + 1 < len(track.keys) else None
        box = key.box
        if following is not None and frame > key.frame:
            box = box.towards(following.box, (frame - key.frame) / (following.frame - key.frame))
        hidden = key.attributes.get("hidden") == "true"
        if not key.outside or hidden:
            yield _sighting(file, track, key, second, None if key.outside else box)


def _sighting(file: Path, track: _Track, key: _Key, second: int, box: AnnotatedBox | None) -> Sighting:
    said = dict(key.attributes)
    special = {name: said.pop(name, "") for name in ("hidden", "in_patient", "filled", "visibility", "moment")}
    try:
        return Sighting(
            second=second,
            instance=track.instance,
            class_name=track.label,
            box=box,
            occluded=key.occluded,
            in_patient=special["in_patient"] != "false",
            filled=special["filled"] == "true",
            visibility=float(special["visibility"]) if special["visibility"] else None,
            attributes={name: value for name, value in said.items() if value},
        )
    except ValidationError as error:
        raise refusal(file, f"line {key.line}, <box>", error) from error
    except ValueError as error:
        found = f"visibility {special['visibility'][:60]!r}"
        raise InputError(file, f"line {key.line}, <box>", found=found, expected="a number") from error


def _moments(file: Path, track: _Track, video: AnnotatedVideo) -> Iterator[AnnotatedMoment]:
    for name, kind in _MOMENTS.items():
        for text in filter(None, (part.strip() for part in track.own.get(name, "").split(","))):
            time = _time(text)
            if time is None:
                found = f"{name} {text[:60]!r}"
                place = f"line {track.line}, <track> {track.number}"
                raise InputError(file, place, found=found, expected="seconds or hh:mm:ss")
            yield AnnotatedMoment(kind=kind, instance=track.instance, class_name=track.label, time=time)
    before = ""
    for key in track.keys:
        said = key.attributes.get("moment", "")
        for kind in _CLICKED:
            if said == kind != before:
                time = key.frame / video.fps
                yield AnnotatedMoment(kind=kind, instance=track.instance, class_name=track.label, time=time)
        before = said


def _time(text: str) -> float | None:
    """Seconds from seconds or from hh:mm:ss; None for anything else."""
    parts = text.split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        return None
    if len(parts) > 3 or not all(math.isfinite(one) and one >= 0 for one in numbers):
        return None
    return math.fsum(one * 60.0**place for place, one in enumerate(reversed(numbers)))


_NOWHERE = AnnotatedBox(x=0.0, y=0.0, width=1.0, height=1.0)  # an outside box must have corners
_IMMUTABLE = ("instance", "inserted_at", "retrieved_at")
_FLAGS = {"hidden": "false", "in_patient": "true", "filled": "false"}

_TrackKey = tuple[str, str, int]


def to_cvat(annotation: Annotation) -> bytes:
    """The XML file (UTF-8) that CVAT imports as "CVAT 1.1" and `read_cvat` reads back as the same annotation.

    One track for every instance (and one more for every class it changes to and every second place it is in);
    every annotated second is a key frame; where nothing is annotated the track is outside. What CVAT's format
    has no place for stands in attributes (`instance`, `inserted_at`, `retrieved_at`, `hidden`, `in_patient`,
    `filled`, `visibility`), which the task's labels declare, and in `<meta><proctor>` (frame rate, length). Boxes
    after the end of the video (`find` tells of them) have no frame and are left out.
    """
    root = Element("annotations")
    SubElement(root, "version").text = "1.1"
    tracks = _tracks(annotation)
    _meta(root, annotation)
    for number, ((instance, class_name, slot), sightings) in enumerate(sorted(tracks.items())):
        track = SubElement(root, "track", {"id": str(number), "label": class_name, "source": "manual"})
        own = {"instance": instance}
        if slot == 0:
            own |= _moments_of(annotation, instance, class_name)
        _boxes(track, sightings, annotation.video, own)
    indent(root, " ")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'.encode()


def _tracks(annotation: Annotation) -> dict[_TrackKey, list[Sighting]]:
    """The sightings track by track; a second sighting in one second goes to a track of its own."""
    found: dict[_TrackKey, list[Sighting]] = {}
    for one in annotation.sightings:
        if one.second >= annotation.video.whole_seconds:
            continue
        slot = 0
        while (known := found.setdefault((one.instance, one.class_name, slot), [])) and (
            known[-1].second == one.second
        ):
            slot += 1
        known.append(one)
    for moment in annotation.moments:
        found.setdefault((moment.instance, moment.class_name, 0), [])
    return found


def _moments_of(annotation: Annotation, instance: str, class_name: str) -> dict[str, str]:
    own = [one for one in annotation.moments if (one.instance, one.class_name) == (instance, class_name)]
    named = {"inserted_at": "insertion", "retrieved_at": "retrieval"}
    times = {name: ", ".join(repr(one.time) for one in own if one.kind == kind) for name, kind in named.items()}
    return {name: text for name, text in times.items() if text}


def _meta(root: Element, annotation: Annotation) -> None:
    video = annotation.video
    meta = SubElement(root, "meta")
    task = SubElement(meta, "task")
    last = max(video.frame_of(video.seconds) - 1, video.frame_of(video.whole_seconds - 1))
    texts = {
        "name": video.id,
        "size": str(last + 1),
        "mode": "interpolation",
        "overlap": "0",
        "start_frame": "0",
        "stop_frame": str(last),
        "frame_filter": "",
    }
    for name, text in texts.items():
        SubElement(task, name).text = text
    labels = SubElement(task, "labels")
    for class_name in annotation.classes:
        _label(labels, class_name, annotation)
    size = SubElement(task, "original_size")
    SubElement(size, "width").text = str(video.width)
    SubElement(size, "height").text = str(video.height)
    SubElement(meta, "source").text = video.file
    own = SubElement(meta, "proctor")
    kept = {"id": video.id, "file": video.file, "fps": repr(video.fps), "seconds": repr(video.seconds)}
    for name, text in (kept | {"procedure": video.procedure}).items():
        SubElement(own, name).text = text


def _label(labels: Element, class_name: str, annotation: Annotation) -> None:
    label = SubElement(labels, "label")
    SubElement(label, "name").text = class_name
    attributes = SubElement(label, "attributes")
    own = {name for one in annotation.sightings if one.class_name == class_name for name in one.attributes}
    for name in (*_IMMUTABLE, *_FLAGS, "visibility", *sorted(own)):
        attribute = SubElement(attributes, "attribute")
        values = {
            "name": name,
            "mutable": str(name not in _IMMUTABLE),
            "input_type": "checkbox" if name in _FLAGS else "text",
            "default_value": _FLAGS.get(name, ""),
            "values": _FLAGS.get(name, ""),
        }
        for key, text in values.items():
            SubElement(attribute, key).text = text


def _boxes(track: Element, sightings: list[Sighting], video: AnnotatedVideo, own: dict[str, str]) -> None:
    names = sorted({name for one in sightings for name in one.attributes})
    box = next((one.box for one in sightings if one.box is not None), _NOWHERE)
    if not sightings:
        _box(track, 0, box, [True, False], own)
        return
    for one, following in zip_longest(sightings, sightings[1:]):
        box = one.box or box
        frame = video.frame_of(one.second)
        states = [one.box is None, one.occluded]
        _box(track, frame, box, states, own | _attributes(one, names))
        own = {}
        leaves = following is None or following.second > one.second + 1
        if leaves and frame + 1 <= video.frame_of(video.whole_seconds - 1):
            _box(track, frame + 1, box, [True, False], {"hidden": "false"})


def _attributes(one: Sighting, names: Iterable[str]) -> dict[str, str]:
    return {
        "hidden": str(one.box is None).lower(),
        "in_patient": str(one.in_patient).lower(),
        "filled": str(one.filled).lower(),
        "visibility": "" if one.visibility is None else repr(one.visibility),
    } | {name: one.attributes.get(name, "") for name in names}


def _box(track: Element, frame: int, box: AnnotatedBox, states: list[bool], attributes: dict[str, str]) -> None:
    outside, occluded = states
    corners = {"xtl": repr(box.x), "ytl": repr(box.y), "xbr": repr(box.x + box.width), "ybr": repr(box.y + box.height)}
    flags = {"outside": str(int(outside)), "occluded": str(int(occluded)), "keyframe": "1", "z_order": "0"}
    element = SubElement(track, "box", {"frame": str(frame)} | flags | corners)
    for name, value in attributes.items():
        SubElement(element, "attribute", {"name": name}).text = value
