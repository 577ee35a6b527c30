"""Annotations and other tools' files: what is written is read again, as CVAT means it, and hostile files are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.build.tracks import (
    KINDS,
    Annotation,
    Box,
    Given,
    Moment,
    Sighting,
    TrackFormat,
    Video,
    read_annotations,
    to_cvat,
    write_annotations,
)
from proctor.build.tracks.cvat_reading import read_cvat
from proctor.core import InputError

# Round trips

NAMES = st.sampled_from(["sponge-1", "Sponge 2", 'n "7" <&>', "Nädel", "track-4"])
CLASSES = st.sampled_from(["Sponge", "Needle", "Specimen Bag", "own <class> & 'more'"])
PIXELS = st.integers(-40_000, 90_000).map(lambda value: value / 100)
TEXTS = st.text("abc <>&\"'äß", min_size=1, max_size=8).map(str.strip).filter(bool)


@st.composite
def any_sighting(draw: st.DrawFn, seconds: int) -> Sighting:
    box = Box(x=draw(PIXELS), y=draw(PIXELS), width=draw(PIXELS), height=draw(PIXELS))
    return Sighting(
        second=draw(st.integers(0, seconds - 1)),
        instance=draw(NAMES),
        class_name=draw(CLASSES),
        box=draw(st.sampled_from([box, box, box, None])),
        occluded=draw(st.booleans()),
        in_patient=draw(st.booleans()),
        filled=draw(st.booleans()),
        visibility=draw(st.none() | st.floats(0, 1)),
        attributes=draw(st.dictionaries(st.sampled_from(["colour", "size <cm>"]), TEXTS)),
    )


@st.composite
def any_annotation(draw: st.DrawFn) -> Annotation:
    seconds = draw(st.integers(1, 30))
    fps = draw(st.sampled_from([1.0, 10.0, 25.0, 29.97, 30000 / 1001]))
    moments = st.builds(
        Moment,
        kind=st.sampled_from(["insertion", "retrieval"]),
        instance=NAMES,
        class_name=CLASSES,
        time=st.floats(0, 100),
    )
    # Two sightings of one instance, class and second are two tracks to CVAT, which keeps no order among them.
    seen = {
        (one.second, one.instance, one.class_name): one
        for one in draw(st.lists(any_sighting(seconds), max_size=40))
    }
    return Annotation(
        video=Video(
            id=draw(st.sampled_from(["video_014", "a b", "ä"])),
            file="videos/one.mp4",
            width=draw(st.integers(1, 4000)),
            height=draw(st.integers(1, 4000)),
            seconds=seconds - draw(st.sampled_from([0.0, 0.25])),
            fps=fps,
            procedure=draw(st.sampled_from(["", "sigmoid resection"])),
        ),
        sightings=tuple(seen.values()),
        moments=tuple({*draw(st.lists(moments, max_size=6))}),
    )


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(annotation=any_annotation())
def test_what_is_written_is_read_again(
    kind: TrackFormat, annotation: Annotation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tracks")
    for name, content in write_annotations([annotation], kind).items():
        (folder / name).write_bytes(content)
    assert read_annotations([folder]) == [annotation]


@settings(max_examples=40, deadline=None)
@given(annotation=any_annotation())
def test_a_detour_over_all_kinds_changes_nothing(
    annotation: Annotation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    now = [annotation]
    for kind in ("cvat", "coco", "json", "cvat"):
        folder = tmp_path_factory.mktemp("tracks")
        for name, content in write_annotations(now, kind).items():
            (folder / name).write_bytes(content)
        now = read_annotations([folder])
    assert now == [annotation]


def test_two_places_in_one_second_survive(tmp_path: Path) -> None:
    one = Sighting(second=3, instance="s", class_name="Sponge", box=Box(x=1, y=2, width=3, height=4))
    other = one.model_copy(update={"box": Box(x=50, y=2, width=3, height=4)})
    video = Video(id="v", file="v.mp4", width=64, height=64, seconds=9, fps=25)
    annotation = Annotation(video=video, sightings=(one, other))
    for kind in KINDS:
        for name, content in write_annotations([annotation], kind).items():
            (tmp_path / name).write_bytes(content)
            assert read_annotations([tmp_path / name]) == [annotation]


# CVAT's meaning

CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta>
    <task>
      <id>5</id><name>case 7</name><size>100</size><mode>interpolation</mode>
      <start_frame>0</start_frame><stop_frame>99</stop_frame>
      <original_size><width>640</width><height>480</height></original_size>
    </task>
    <source>case-7.mp4</source>
  </meta>
  {tracks}
</annotations>
"""


def box(frame: int, left: float = 0, *, more: str = "", inner: str = "") -> str:
    return (
        (
            f'<box frame="{frame}" xtl="{left}" ytl="10" xbr="{left + 20}" ybr="40" outside="0" occluded="0" '
            f'keyframe="1" z_order="0">{inner}</box>'
        )
        if not more
        else (
            f'<box frame="{frame}" xtl="{left}" ytl="10" xbr="{left + 20}" ybr="40" {more} z_order="0">{inner}</box>'
        )
    )


def attribute(name: str, value: str) -> str:
    return f'<attribute name="{name}">{value}</attribute>'


def from_cvat(*boxes: str, fps: float = 10) -> Annotation:
    tracks = f'<track id="3" label="Sponge" source="manual">{"".join(boxes)}</track>'
    return read_cvat(Path("x.xml"), CVAT.format(tracks=tracks).encode(), Given(fps=fps))


def places(annotation: Annotation) -> dict[int, float | None]:
    return {one.second: one.box.x if one.box else None for one in annotation.sightings}


def test_a_box_goes_straight_from_key_frame_to_key_frame_and_stays_to_the_end() -> None:
    found = from_cvat(box(5), box(45, 80))
    assert places(found) == {1: 10, 2: 30, 3: 50, 4: 70, 5: 80, 6: 80, 7: 80, 8: 80, 9: 80}
    assert found.video.model_dump() == {
        "id": "case-7",
        "file": "case-7.mp4",
        "width": 640,
        "height": 480,
        "seconds": 10.0,
        "fps": 10.0,
        "procedure": "",
    }
    assert {one.instance for one in found.sightings} == {"Sponge-3"}


def test_outside_holds_from_its_key_frame_on_and_boxes_go_towards_it() -> None:
    outside = 'outside="1" occluded="0" keyframe="1"'
    assert places(from_cvat(box(0), box(40, 80, more=outside), box(70, 5))) == {
        0: 0, 1: 20, 2: 40, 3: 60, 7: 5, 8: 5, 9: 5,
    }  # fmt: skip


def test_frames_that_are_no_key_frames_say_nothing() -> None:
    shown = 'outside="0" occluded="1" keyframe="0"'
    found = from_cvat(box(0), box(10, 500, more=shown), box(20, 20))
    assert places(found)[1] == 10
    assert not any(one.occluded for one in found.sightings)


def test_occlusion_and_attributes_hold_until_they_change() -> None:
    occluded = 'outside="0" occluded="1" keyframe="1"'
    found = from_cvat(
        box(0, inner=attribute("colour", "red") + attribute("in_patient", "false")),
        box(20, more=occluded),
        box(40, inner=attribute("in_patient", "true")),
    )
    assert [one.occluded for one in found.sightings] == [False] * 2 + [True] * 2 + [False] * 6
    assert [one.in_patient for one in found.sightings] == [False] * 4 + [True] * 6
    assert {one.attributes["colour"] for one in found.sightings} == {"red"}


def test_an_outside_box_may_say_that_the_object_is_covered() -> None:
    outside = 'outside="1" occluded="0" keyframe="1"'
    covered = box(20, more=outside, inner=attribute("hidden", "true"))
    gone = box(40, more=outside, inner=attribute("hidden", "false"))
    assert places(from_cvat(box(0), covered, gone)) == {0: 0, 1: 0, 2: None, 3: None}


def test_moments_are_clicked_or_written() -> None:
    clicked = from_cvat(
        box(7, inner=attribute("moment", "insertion")),
        box(12, inner=attribute("moment", "insertion")),
        box(30, inner=attribute("moment", "none")),
        box(68, inner=attribute("moment", "retrieval")),
    )
    assert [(one.kind, one.time) for one in clicked.moments] == [("insertion", 0.7), ("retrieval", 6.8)]
    written = from_cvat(
        box(0, inner=attribute("inserted_at", "00:00:01.5, 7") + attribute("retrieved_at", "5"))
    )
    assert [(one.kind, one.time) for one in written.moments] == [
        ("insertion", 1.5), ("retrieval", 5.0), ("insertion", 7.0),
    ]  # fmt: skip


def test_tracks_of_one_instance_are_one() -> None:
    outside = 'outside="1" occluded="0" keyframe="1"'
    name = attribute("instance", "sponge A")
    tracks = "".join(
        f'<track id="{number}" label="Sponge">{box(start, inner=name)}{box(start + 15, more=outside)}</track>'
        for number, start in ((0, 0), (1, 50))
    )
    found = read_cvat(Path("x.xml"), CVAT.format(tracks=tracks).encode(), Given(fps=10))
    assert [(one.second, one.instance) for one in found.sightings] == [
        (0, "sponge A"), (1, "sponge A"), (5, "sponge A"), (6, "sponge A"),
    ]  # fmt: skip


def test_frames_between_the_seconds_of_an_odd_rate_are_found() -> None:
    found = from_cvat(box(0), box(60, 60), fps=29.97)
    assert places(found) == {0: 0, 1: 30, 2: 60, 3: 60}
    assert found.video.seconds == pytest.approx(100 / 29.97)


def test_the_file_for_cvat_declares_what_it_uses() -> None:
    annotation = from_cvat(box(0, inner=attribute("colour", "red")))
    text = to_cvat(annotation).decode()
    assert "<name>Sponge</name>" in text
    declared = set(re.findall(r"<attribute>\s*<name>(.*?)</name>", text))
    assert set(re.findall(r'<attribute name="(.*?)"', text)) <= declared
    assert re.search(r"<name>instance</name>\s*<mutable>False</mutable>", text)
    frames = [int(number) for number in re.findall(r' frame="(\d+)"', text)]
    assert frames == list(range(0, 100, 10))


# COCO's

COCO: dict[str, Any] = {
    "images": [
        {"id": 1, "width": 64, "height": 48, "frame_index": 0},
        {"id": 2, "width": 64, "height": 48, "frame_index": 12},
        {"id": 3, "width": 64, "height": 48, "frame_index": 25},
        {"id": 4, "width": 64, "height": 48, "frame_index": 52},
    ],
    "categories": [{"id": 7, "name": "Needle", "supercategory": "object"}],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 2, 3, 4], "track_id": 5},
        {"id": 2, "image_id": 2, "category_id": 7, "bbox": [9, 9, 9, 9], "track_id": 5},
        {"id": 3, "image_id": 3, "category_id": 7, "bbox": [2, 2, 3, 4],
         "attributes": {"track_id": 5, "occluded": True, "keyframe": True, "colour": "grey"}},
        {"id": 4, "image_id": 4, "category_id": 7, "bbox": [0, 0, 0, 0], "instance": "n",
         "attributes": {"outside": True}},
    ],
}  # fmt: skip


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_the_image_nearest_to_a_second_stands_for_it(tmp_path: Path) -> None:
    (found,) = read_annotations(
        [write(tmp_path / "case.json", COCO)], Given(fps=25, procedure="appendectomy")
    )
    assert [(one.second, one.instance, one.occluded) for one in found.sightings] == [
        (0, "track-5", False), (1, "track-5", True), (2, "n", False),
    ]  # fmt: skip
    assert found.sightings[1].attributes == {"colour": "grey"}
    assert found.sightings[2].box is None
    assert (found.video.id, found.video.seconds, found.video.procedure) == ("case", 3.0, "appendectomy")


def test_several_videos_in_one_file_and_a_folder_of_files(tmp_path: Path) -> None:
    video = Video(id="b", file="b.mp4", width=9, height=9, seconds=2, fps=25)
    seen = Sighting(second=1, instance="x", class_name="Clip", box=Box(x=1, y=1, width=2, height=2))
    two = [Annotation(video=video.model_copy(update={"id": name}), sightings=(seen,)) for name in "ba"]
    (tmp_path / "coco.json").write_bytes(write_annotations(two, "coco")["coco.json"])
    (tmp_path / "notes.txt").write_text("not ours")
    third = Annotation(video=video.model_copy(update={"id": "c"}))
    (tmp_path / "c.xml").write_bytes(write_annotations([third], "cvat")["c.xml"])
    assert [one.video.id for one in read_annotations([tmp_path])] == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"found video 'c' again, expected each video once; c\.xml has it"):
        read_annotations([tmp_path, tmp_path / "c.xml"])


# Broken files

TRACK = f'<track id="0" label="Clip">{box(0)}</track>'
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;">]>'
    "<annotations>&lol2;</annotations>"
)
OUTSIDE = '<!DOCTYPE a [<!ENTITY secret SYSTEM "file:///etc/passwd">]><annotations>&secret;</annotations>'


def cvat(tracks: str = TRACK, edit: Callable[[str], str] = str) -> str:
    return edit(CVAT.format(tracks=tracks))


def coco(edit: Callable[[Any], object]) -> dict[str, Any]:
    content = json.loads(json.dumps(COCO))
    edit(content)
    return dict(content)


BROKEN: list[tuple[str, object, str]] = [
    ("empty", "", "found an empty file, expected CVAT"),
    ("prose", "the sponge is at the left", "found b'the sponge is at the left', expected CVAT"),
    ("billion laughs", LAUGHS, "line 1: found a document type (<!DOCTYPE …>), expected XML without one"),
    ("external entity", OUTSIDE, "line 1: found a document type (<!DOCTYPE …>), expected XML without one"),
    ("an entity of nobody", cvat("&what;"), "line 12, column 3: found undefined entity, expected well-formed XML"),
    ("cut off", cvat()[:-30], "expected well-formed XML"),
    ("deep", "<a>" * 40 + "</a>" * 40, "line 1: found elements 33 deep, expected at most 32"),
    ("another root", "<html></html>", "line 1: found <html>, expected <annotations>, as CVAT has it"),
    ("an odd encoding", '<?xml version="1.0" encoding="klingon"?><a/>', "unknown encoding"),
    ("for images", cvat('<image id="0" name="a.jpg"/>'), "found CVAT for images, expected CVAT for video 1.1"),
    ("no size", cvat(edit=lambda t: t.replace("original_size", "size_of_old")), "found no <original_size>"),
    ("size in words", cvat(edit=lambda t: t.replace(">640<", ">wide<")), "<width>: found 'wide', expected a number"),
    ("no label", cvat('<track id="0">' + box(0) + "</track>"), "line 12, <track>: found no label"),
    ("no key frame", cvat('<track id="0" label="x"/>'), "line 12, <track> 0: found no key frame"),
    ("a polygon", cvat('<track id="0" label="x"><polygon frame="0"/></track>'), "found <polygon>, expected <box>"),
    ("no corner", cvat(edit=lambda t: t.replace('xbr="20"', "")), "line 12, <box>: found no xbr, expected a number"),
    ("nan", cvat(edit=lambda t: t.replace('xbr="20"', 'xbr="nan"')), "<box>: found xbr 'nan', expected a number"),
    ("a flag", cvat(edit=lambda t: t.replace('outside="0"', 'outside="no"')), "found outside 'no', expected 0 or 1"),
    ("half a frame", cvat(edit=lambda t: t.replace('frame="0" x', 'frame="0.5" x')), "found frame 0.5, expected"),
    ("backwards", cvat(f'<track id="0" label="x">{box(9)}{box(4)}</track>'), "found key frame 4 after 9, expected"),
    ("two names", cvat(f'<track id="0" label="x">{box(0, inner=attribute("instance", "a"))}'
                       f'{box(4, inner=attribute("instance", "b"))}</track>'), "found instance 'b', expected 'a'"),
    ("a time in words", cvat(f'<track id="0" label="x">{box(0, inner=attribute("inserted_at", "soon"))}</track>'),
     "<track> 0: found inserted_at 'soon', expected seconds or hh:mm:ss"),
    ("a share above 1", cvat(f'<track id="0" label="x">{box(0, inner=attribute("visibility", "7"))}</track>'),
     "field 'visibility': found 7.0, expected"),
    ("broken json", '{"images": [1, 2', "line 1, column 17: found expecting ',' delimiter, expected JSON"),
    ("other json", {"a": 1}, "found JSON with a, expected CVAT for video 1.1 (XML), COCO (JSON)"),
    ("deep json", '{"images":' + "[" * 100_000 + "]" * 100_000 + "}", "found JSON nested too deep"),
    ("no images", coco(lambda c: c.update(images=[])), "images: found none, expected one or more"),
    ("images missing", coco(lambda c: c.pop("images")), "field 'images': found nothing, expected a list"),
    ("an image twice", coco(lambda c: c["images"].append({"id": 1})), "images, entry 5: found id 1 again"),
    ("no such image", coco(lambda c: c["annotations"][0].update(image_id=99)),
     "annotations, entry 1: found image_id 99, expected the id of an image"),
    ("no such class", coco(lambda c: c["annotations"][1].update(category_id=0)),
     "annotations, entry 2: found category_id 0, expected the id of a category"),
    ("no such video", coco(lambda c: c["images"][2].update(video_id=8)), "images, entry 3: found video_id 8"),
    ("no instance", coco(lambda c: c["annotations"][0].pop("track_id")),
     "annotations, entry 1: found no instance, expected track_id or instance"),
    ("three numbers", coco(lambda c: c["annotations"][0].update(bbox=[1, 2, 3])),
     "annotations, entry 1, field 'bbox.3': found nothing"),
    ("infinite", coco(lambda c: c["annotations"][0].update(bbox=[1, 2, 3, float("inf")])), "field 'bbox.3': found inf"),
    ("no time", coco(lambda c: c["images"][0].pop("frame_index")), "image 1: found no time, expected time, frame"),
    ("no picture size", coco(lambda c: [one.pop("width") for one in c["images"]]), "found no width and height"),
    ("an odd share", coco(lambda c: c["annotations"][2]["attributes"].update(visibility="much")),
     "annotations, entry 3, field 'visibility': found 'much', expected a number"),
    ("a newer file", {"kind": "annotated video", "format_version": 2},
     "field 'format_version': found 2, written by a newer version of Proctor, expected at most 1"),
    ("no video", {"kind": "annotated video"}, "field 'video': found nothing, expected Field required"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "error"), [one[1:] for one in BROKEN], ids=[one[0] for one in BROKEN])
def test_a_broken_file_is_refused_in_one_line(content: object, error: str, tmp_path: Path) -> None:
    file = write(tmp_path / "tracks", content)
    with pytest.raises(InputError) as caught:
        read_annotations([file], Given(fps=10))
    text = str(caught.value)
    assert text.startswith(f"{file}: ")
    assert "\n" not in text
    assert error in text
    assert ", expected " in text


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        (lambda c: c["video"].update(fps=0.5), "field 'video.fps': found 0.5, expected "),
        (lambda c: c["video"].update(id="a\nb"), "expected a name is printable text on one line"),
        (lambda c: c["sightings"][0].update(second=-1), "field 'sightings.0.second': found -1, expected "),
        (
            lambda c: c["sightings"][0].update(colour="red"),
            "field 'sightings.0.colour': found 'red', expected ",
        ),
        (
            lambda c: c["sightings"][0].update(attributes={"hidden": "x"}),
            "the attribute 'hidden' has a meaning",
        ),
        (lambda c: c["moments"][0].update(kind="lost"), "field 'moments.0.kind': found 'lost', expected "),
    ],
)
def test_a_broken_file_of_our_own(edit: Callable[[Any], object], error: str, tmp_path: Path) -> None:
    annotation = from_cvat(box(0, inner=attribute("inserted_at", "1")))
    content = annotation.model_dump(mode="json")
    edit(content)
    with pytest.raises(InputError) as caught:
        read_annotations([write(tmp_path / "own.json", content)])
    assert error in str(caught.value)


def test_without_a_frame_rate_cvat_is_asked_back(tmp_path: Path) -> None:
    file = write(tmp_path / "a.xml", cvat())
    with pytest.raises(InputError, match="found no frame rate, CVAT keeps none, expected --fps"):
        read_annotations([file])
    with pytest.raises(InputError, match=r"^fps: found 0, expected 1 to 1000$"):
        Given(fps=0)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no such file or folder, expected tracks"):
        read_annotations([tmp_path / "none.xml"])
    with pytest.raises(InputError, match=r"found no \.xml or \.json file, expected files of tracks"):
        read_annotations([tmp_path])


def test_names_that_no_file_should_have() -> None:
    video = Video(id="../../etc", file="x", width=9, height=9, seconds=2, fps=25)
    one = Annotation(video=video)
    assert list(write_annotations([one], "json")) == ["_.._etc.json"]
    other = Annotation(video=video.model_copy(update={"id": "../..\\etc"}))
    with pytest.raises(InputError, match=re.escape("found a second file _.._etc.json, expected plain names")):
        write_annotations([one, other], "json")
