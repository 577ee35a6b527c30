"""From an annotation to CVAT's "CVAT for video 1.1" XML."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from proctor.construction.tracks.annotation import AnnotatedBox, AnnotatedVideo, Annotation, Sighting

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
