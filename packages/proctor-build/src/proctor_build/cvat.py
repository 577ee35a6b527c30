"""Read and write CVAT's XML format "CVAT for video 1.1"."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pydantic import ValidationError

from proctor.core import InputError, refusal
from proctor.tracks import (
    MOST_SIGHTINGS,
    AnnotatedBox,
    AnnotatedMoment,
    AnnotatedVideo,
    Annotation,
    MomentKind,
    ReadDefaults,
    Sighting,
    video_id,
)
from proctor_build.xml import Node, read_xml

_SHAPES = ("polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton")
_MOMENTS: dict[str, MomentKind] = {"inserted_at": "insertion", "retrieved_at": "retrieval"}


@dataclass(frozen=True)
class _Key:
    """A key frame of a track, with the attributes that hold from then on."""

    frame: int
    box: AnnotatedBox
    outside: bool
    occluded: bool
    attributes: dict[str, str]
    line: int


@dataclass
class _Track:
    """One `<track>`: its element, the attributes that hold for all of it, and its key frames in order."""

    label: str
    number: str
    node: Node
    own: dict[str, str] = field(default_factory=dict)
    keys: list[_Key] = field(default_factory=list)

    @property
    def instance(self) -> str:
        return self.own.get("instance") or f"{self.label}-{self.number}"

    def error(self, found: str, expected: str) -> InputError:
        location = f"line {self.node.line}, <track> {self.number}"
        return InputError(self.node.file, location, found=found, expected=expected)


def read_cvat(file: Path, content: bytes, defaults: ReadDefaults) -> Annotation:
    """The annotation in an XML file of CVAT, as CVAT shows it at the frame nearest to every whole second.

    Only key frames are read. Between two of them a box is interpolated linearly; `outside`, `occluded` and attributes
    hold from a key frame to the next; after the last one the box stays to the end of the task unless it is outside.

    Tracks with the same attribute `instance` are one instance that was lost and found again; a track without it is an
    instance of its own, `label-id`. Moments: the attribute `moment` changes to `insertion` or `retrieval` at a key
    frame, or `inserted_at`/`retrieved_at` hold seconds or hh:mm:ss, separated by commas. An outside box with `hidden` =
    true means that the object is there and covered. A task or a job is annotated from its `start_frame` to its
    `stop_frame`, as far as the jobs of the task are there. `defaults` are the frame rate and the procedure, which CVAT's files
    lack.
    """
    root = read_xml(file, content, _is_track)
    if root.tag != "annotations":
        raise InputError(file, f"line {root.line}", found=f"<{root.tag}>", expected="<annotations>, as CVAT writes it")
    if root.find("image") is not None:
        raise InputError(file, found="CVAT for images", expected="CVAT for video 1.1, which has tracks")
    video, frames = _video(file, root, defaults)
    tracks = _Tracks(video, frames)
    read_xml(file, content, tracks.ended)
    try:
        return Annotation(video=video, sightings=tuple(tracks.sightings), moments=tuple(tracks.moments))
    except ValidationError as error:
        raise refusal(file, "", error) from error


def _is_track(node: Node, above: Sequence[Node]) -> bool:
    return len(above) > 1 if above and above[-1].tag == "track" else len(above) == 1 and node.tag == "track"


class _Tracks:
    """Reads tracks box by box, keeping only their sightings and moments."""

    def __init__(self, video: AnnotatedVideo, frames: range) -> None:
        self._video, self._frames = video, frames
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
            _add_shape(self._open(above[1]), node)
            return True
        return False

    def _open(self, element: Node) -> _Track:
        if self._track is None:
            self._track = _track(element)
        return self._track

    def _show(self, track: _Track) -> None:
        if not track.keys:
            raise track.error("no key frame", "one or more")
        late = next((key for key in track.keys if key.frame >= self._frames.stop and not key.outside), None)
        if late is not None:
            location, found = f"line {late.line}, <box>", f"frame {late.frame}"
            expected = f"a frame of the task, {self._frames.start} to {self._frames.stop - 1}"
            raise InputError(track.node.file, location, found=found, expected=expected)
        for sighting in _sightings(track, self._video, self._frames):
            if len(self.sightings) == MOST_SIGHTINGS:
                found = f"more than {MOST_SIGHTINGS:,} boxes, one for each second of each track"
                raise track.error(found, "several videos")
            self.sightings.append(sighting)
        self.moments |= set(_moments(track, self._video))


def _video(file: Path, root: Node, defaults: ReadDefaults) -> tuple[AnnotatedVideo, range]:
    """The video, and the numbers of the frames that are annotated."""
    meta = root.find("meta")
    if meta is None:
        raise InputError(file, found="no <meta>", expected="<meta> with the task and its size")
    task = next((found for name in ("task", "job") if (found := meta.find(name)) is not None), meta)
    own = meta.find("proctor")
    name = _text(own, "file") or _text(meta, "source") or _text(task, "source") or _text(task, "name")
    fps = _number(file, own, "fps") or defaults.fps
    if fps is None:
        raise InputError(file, "<meta>", found="no frame rate, CVAT keeps none", expected="--fps")
    frames = _annotated_frames(file, task)
    width, height = _size(file, meta, task)
    try:
        video = AnnotatedVideo(
            id=_text(own, "id") or video_id(name or file.stem),
            file=name or file.stem,
            width=width,
            height=height,
            seconds=_number(file, own, "seconds") or frames.stop / fps,
            fps=fps,
            procedure=_text(own, "procedure") or defaults.procedure,
            begins=_begins(file, own, frames.start / fps),
            unseen=_unseen(file, own),
        )
    except ValidationError as error:
        raise refusal(file, "<meta>", error) from error
    return video, frames


def _size(file: Path, meta: Node, task: Node) -> tuple[int, int]:
    """Width and height of the video in pixels."""
    size = next((found for at in (meta, task) if (found := at.find("original_size")) is not None), None)
    width, height = (_number(file, size, side) for side in ("width", "height"))
    if width is None or height is None:
        raise InputError(file, "<meta>", found="no <original_size>", expected="width and height in pixels")
    return int(width), int(height)


def _begins(file: Path, own: Node | None, otherwise: float) -> float:
    begins = _number(file, own, "begins")
    return otherwise if begins is None else begins


def _annotated_frames(file: Path, task: Node) -> range:
    """The frames of the video from the start of a task or job to its stop, without those at its ends that no job of the
    task has. Raises `InputError` where jobs are missing between others."""
    size, stop = _number(file, task, "size"), _number(file, task, "stop_frame")
    start = int(_number(file, task, "start_frame") or 0)
    if stop is None:
        if size is None:
            raise InputError(file, "<meta>", found="no <size>", expected="the number of frames")
        stop = start + size - 1
    if stop < start:
        raise InputError(file, "<meta>, <stop_frame>", found=f"{stop:g}", expected=f"a frame from {start} on")
    jobs = task.find("segments")
    parts = sorted(
        (int(_number(file, part, "start") or 0), int(_number(file, part, "stop") or 0))
        for part in (jobs.all("segment") if jobs is not None else ())
    )
    if not parts or size is None or parts[-1][1] >= size:
        return range(start, int(stop) + 1)
    step = max(1, round((stop - start) / max(1, size - 1)))  # jobs count the task's frames, of which some are left out
    reached = parts[0][0] - 1
    for first, last in parts:
        if first > reached + 1:
            found = f"no job with the frames {reached + 1} to {first - 1} of the task"
            raise InputError(file, "<meta>, <segments>", found=found, expected="all jobs, or each one's own file")
        reached = max(reached, last)
    ends = int(stop) if reached >= size - 1 else start + reached * step
    return range(start + parts[0][0] * step, ends + 1)


def _unseen(file: Path, own: Node | None) -> tuple[int, ...]:
    """The seconds in a file of ours that nobody annotated."""
    parts = _text(own, "unseen").split()
    if not all(part.isdecimal() and part.isascii() and len(part) < _DIGITS for part in parts):
        raise InputError(file, "<meta>, <unseen>", found=repr(" ".join(parts))[:60], expected="whole seconds")
    return tuple(map(int, parts))


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


def _track(element: Node) -> _Track:
    for name in ("id", "label"):
        if not element.get(name).strip():
            raise element.error(f"no {name}", f"an attribute {name!r}")
    return _Track(element.get("label").strip(), element.get("id").strip(), element)


def _add_shape(track: _Track, shape: Node) -> None:
    if shape.tag in _SHAPES:
        raise shape.error(f"<{shape.tag}>", "<box>: only boxes are read")
    if shape.tag == "box":
        _add_key(track, shape)
    if len(track.keys) > MOST_SIGHTINGS:
        raise shape.error(f"more than {MOST_SIGHTINGS:,} key frames in a track", "several videos")


def _add_key(track: _Track, shape: Node) -> None:
    """Adds a key frame; attributes that it does not name keep their former values."""
    named = {node.get("name"): node.text.strip() for node in shape.all("attribute")}
    for name in ("instance", *_MOMENTS):
        value = named.pop(name, "")
        known = track.own.setdefault(name, value) or value
        if value not in {"", known}:
            raise shape.error(f"{name} {value!r}", f"{known!r} as before in the track")
        track.own[name] = known
    if not _flag(shape, "keyframe", missing=True):
        return
    frame = _value(shape, "frame")
    if frame != int(frame) or frame < 0:
        raise shape.error(f"frame {frame:g}", "a whole number of 0 or more")
    before = track.keys[-1] if track.keys else None
    if before is not None and frame <= before.frame:
        raise shape.error(f"key frame {frame:g} after {before.frame}", "key frames in order, each once")
    if shape.get("rotation") and _value(shape, "rotation") % 360:
        raise shape.error(f"a box rotated by {_value(shape, 'rotation'):g} degrees", "a box without rotation")
    left, top, right, bottom = (_value(shape, edge) for edge in ("xtl", "ytl", "xbr", "ybr"))
    track.keys.append(
        _Key(
            frame=int(frame),
            box=AnnotatedBox(x=left, y=top, width=round(right - left, 6), height=round(bottom - top, 6)),
            outside=_flag(shape, "outside"),
            occluded=_flag(shape, "occluded"),
            attributes=_updated(before.attributes if before else {}, named),
            line=shape.line,
        )
    )


def _updated(before: dict[str, str], named: dict[str, str]) -> dict[str, str]:
    """The attributes from here on; usually nothing changes, and key frames share one dictionary."""
    return before if named.items() <= before.items() else {**before, **named}


def _value(element: Node, name: str) -> float:
    text = element.get(name)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise element.error(f"{name} {text[:60]!r}" if text else f"no {name}", "a number")
    return value


def _flag(element: Node, name: str, *, missing: bool = False) -> bool:
    text = element.get(name, "1" if missing else "0")
    if text not in {"0", "1"}:
        raise element.error(f"{name} {text[:60]!r}", "0 or 1")
    return text == "1"


def _sightings(track: _Track, video: AnnotatedVideo, frames: range) -> Iterator[Sighting]:
    """The track's sightings at every annotated whole second from its first key frame on."""
    at = 0
    for second in range(video.whole_seconds):
        frame = video.frame_of(second)
        if frame >= frames.stop:
            return
        if frame < max(track.keys[0].frame, frames.start):
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
            yield _sighting(track, key, second, None if key.outside else box)


def _sighting(track: _Track, key: _Key, second: int, box: AnnotatedBox | None) -> Sighting:
    others = dict(key.attributes)
    special = {name: others.pop(name, "") for name in ("hidden", "in_patient", "filled", "visibility", "moment")}
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
            attributes={name: value for name, value in others.items() if value},
        )
    except ValidationError as error:
        raise refusal(track.node.file, f"line {key.line}, <box>", error) from error
    except ValueError as error:
        found = f"visibility {special['visibility'][:60]!r}"
        raise InputError(track.node.file, f"line {key.line}, <box>", found=found, expected="a number") from error


def _moments(track: _Track, video: AnnotatedVideo) -> Iterator[AnnotatedMoment]:
    for name, kind in _MOMENTS.items():
        for text in filter(None, (part.strip() for part in track.own.get(name, "").split(","))):
            time = _time(text)
            if time is None:
                raise track.error(f"{name} {text[:60]!r}", "seconds or hh:mm:ss")
            yield AnnotatedMoment(kind=kind, instance=track.instance, class_name=track.label, time=time)
    before = ""
    for key in track.keys:
        moment = key.attributes.get("moment", "")
        for kind in _MOMENTS.values():
            if moment == kind != before:
                time = key.frame / video.fps
                yield AnnotatedMoment(kind=kind, instance=track.instance, class_name=track.label, time=time)
        before = moment


def _time(text: str) -> float | None:
    """Seconds from seconds or from hh:mm:ss; None for anything else."""
    parts = text.split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        return None
    if len(parts) > 3 or not all(math.isfinite(number) and number >= 0 for number in numbers):
        return None
    return math.fsum(one * 60.0**row for row, one in enumerate(reversed(numbers)))


_DIGITS = 7  # of a second

_NOWHERE = AnnotatedBox(x=0.0, y=0.0, width=1.0, height=1.0)  # an outside box must have corners
_IMMUTABLE = ("instance", "inserted_at", "retrieved_at")
_FLAGS = {"hidden": "false", "in_patient": "true", "filled": "false"}

_TrackKey = tuple[str, str, int]


def to_cvat(annotation: Annotation) -> bytes:
    """An XML file (UTF-8) for CVAT's import "CVAT 1.1", which `read_cvat` reads back as the same annotation.

    Each instance is a track (and another for every class it changes to, and a second position at the same time); every
    annotated second is a key frame; elsewhere the track is outside. What CVAT's format lacks is kept in attributes
    (`instance`, `inserted_at`, `retrieved_at`, `hidden`, `in_patient`, `filled`, `visibility`), which the task's labels
    declare, and in `<meta><proctor>` (frame rate, length). Boxes after the end of the video are left out.
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
    """The sightings by track; a second sighting of an instance in one second belongs to another track."""
    found: dict[_TrackKey, list[Sighting]] = {}
    for sighting in annotation.sightings:
        if sighting.second >= annotation.video.whole_seconds:
            continue
        slot = 0
        while (known := found.setdefault((sighting.instance, sighting.class_name, slot), [])) and (
            known[-1].second == sighting.second
        ):
            slot += 1
        known.append(sighting)
    for moment in annotation.moments:
        found.setdefault((moment.instance, moment.class_name, 0), [])
    return found


def _moments_of(annotation: Annotation, instance: str, class_name: str) -> dict[str, str]:
    own = [moment for moment in annotation.moments if (moment.instance, moment.class_name) == (instance, class_name)]
    times = {
        name: ", ".join(repr(annotated_moment.time) for annotated_moment in own if annotated_moment.kind == kind)
        for name, kind in _MOMENTS.items()
    }
    return {name: text for name, text in times.items() if text}


def _meta(root: Element, annotation: Annotation) -> None:
    video = annotation.video
    meta = SubElement(root, "meta")
    task = SubElement(meta, "task")
    last = max(video.frame_of(video.seconds) - 1, video.frame_of(video.whole_seconds - 1))
    start = video.frame_of(video.first_second) if video.begins else 0
    texts = {"name": video.id, "size": str(last + 1 - start), "mode": "interpolation", "overlap": "0"}
    _add_texts(task, texts | {"start_frame": str(start), "stop_frame": str(last), "frame_filter": ""})
    labels = SubElement(task, "labels")
    for class_name in annotation.classes:
        _label(labels, class_name, annotation)
    _add_texts(SubElement(task, "original_size"), {"width": str(video.width), "height": str(video.height)})
    SubElement(meta, "source").text = video.file
    kept = {"id": video.id, "file": video.file, "fps": repr(video.fps), "seconds": repr(video.seconds)}
    kept |= {"begins": repr(video.begins)} if video.begins else {}
    kept |= {"unseen": " ".join(map(str, video.unseen))} if video.unseen else {}
    _add_texts(SubElement(meta, "proctor"), kept | {"procedure": video.procedure})


def _add_texts(element: Element, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        SubElement(element, name).text = text


def _label(labels: Element, class_name: str, annotation: Annotation) -> None:
    label = SubElement(labels, "label")
    SubElement(label, "name").text = class_name
    attributes = SubElement(label, "attributes")
    own = {
        name for sighting in annotation.sightings if sighting.class_name == class_name for name in sighting.attributes
    }
    for name in (*_IMMUTABLE, *_FLAGS, "visibility", *sorted(own)):
        kind = {"mutable": str(name not in _IMMUTABLE), "input_type": "checkbox" if name in _FLAGS else "text"}
        values = dict.fromkeys(("default_value", "values"), _FLAGS.get(name, ""))
        _add_texts(SubElement(attributes, "attribute"), {"name": name} | kind | values)


def _boxes(track: Element, sightings: list[Sighting], video: AnnotatedVideo, own: dict[str, str]) -> None:
    names = sorted({name for sighting in sightings for name in sighting.attributes})
    box = next((sighting.box for sighting in sightings if sighting.box is not None), _NOWHERE)
    if not sightings:
        _box(track, video.frame_of(video.first_second), box, [True, False], own)
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


def _attributes(sighting: Sighting, names: Iterable[str]) -> dict[str, str]:
    return {
        "hidden": str(sighting.box is None).lower(),
        "in_patient": str(sighting.in_patient).lower(),
        "filled": str(sighting.filled).lower(),
        "visibility": "" if sighting.visibility is None else repr(sighting.visibility),
    } | {name: sighting.attributes.get(name, "") for name in names}


def _box(track: Element, frame: int, box: AnnotatedBox, states: list[bool], attributes: dict[str, str]) -> None:
    outside, occluded = states
    corners = {"xtl": repr(box.x), "ytl": repr(box.y), "xbr": repr(box.x + box.width), "ybr": repr(box.y + box.height)}
    flags = {"outside": str(int(outside)), "occluded": str(int(occluded)), "keyframe": "1", "z_order": "0"}
    element = SubElement(track, "box", {"frame": str(frame)} | flags | corners)
    for name, value in attributes.items():
        SubElement(element, "attribute", {"name": name}).text = value
