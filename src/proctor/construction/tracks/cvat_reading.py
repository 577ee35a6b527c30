"""From CVAT's "CVAT for video 1.1" XML to annotations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from proctor.construction.tracks.annotation import (
    MOST_SIGHTINGS,
    AnnotatedBox,
    AnnotatedMoment,
    AnnotatedVideo,
    Annotation,
    Given,
    MomentKind,
    Sighting,
)
from proctor.construction.tracks.safe_xml import Node, read_xml
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


def read_cvat(file: Path, content: bytes, given: Given) -> Annotation:
    """The annotation in one XML file of CVAT, as the tool itself would show it at every whole second.

    Only key frames count. Between two of them a box goes straight from one to the other, whatever the second
    one says; `outside`, `occluded` and attributes hold from a key frame up to the next; after the last one the
    box stays to the end of the task unless it is outside. At second s the frame nearest to s is looked at.

    The attribute `instance` says which instance a track is (tracks of one value are one instance that was
    lost and found again); without it a track is an instance of its own, `label-id`. Moments: the attribute
    `moment` turns to `insertion` or `retrieval` on a key frame, or `inserted_at`/`retrieved_at` hold seconds
    or hh:mm:ss, several separated by commas. An outside box with `hidden` = true says that the object is
    there and covered. `given` has what CVAT's file lacks: the frame rate, the procedure.
    """
    root = read_xml(file, content, _is_track)
    if root.tag != "annotations":
        raise InputError(file, f"line {root.line}", found=f"<{root.tag}>", expected="<annotations>, as CVAT writes it")
    if root.find("image") is not None:
        raise InputError(file, found="CVAT for images", expected="CVAT for video 1.1, which has tracks")
    video, stop = _video(file, root, given)
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
        """See `Ended`."""
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


def _video(file: Path, root: Node, given: Given) -> tuple[AnnotatedVideo, int]:
    """The video and the last frame of the task."""
    meta = root.find("meta")
    if meta is None:
        raise InputError(file, found="no <meta>", expected="<meta> with the task and its size")
    task = next((found for name in ("task", "job") if (found := meta.find(name)) is not None), meta)
    own = meta.find("proctor")
    name = _text(own, "file") or _text(meta, "source") or _text(task, "source") or _text(task, "name")
    fps = _number(file, own, "fps") or given.fps
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
            procedure=_text(own, "procedure") or given.procedure,
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
