"""Annotations and other tools' files: what is written is read again, as CVAT means it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core import InputError
from proctor.tracks import AnnotatedBox, AnnotatedMoment, AnnotatedVideo, Annotation, ReadDefaults, Sighting
from proctor_build.cvat import read_cvat, to_cvat
from proctor_build.files import KINDS, TrackFormat, read_annotations, write_annotations
from tests.support.track_files import COCO, CVAT, attribute, box, from_cvat, write

# Round trips

NAMES = st.sampled_from(["sponge-1", "Sponge 2", 'n "7" <&>', "Nädel", "track-4"])
CLASSES = st.sampled_from(["Sponge", "Needle", "Specimen Bag", "own <class> & 'more'"])
PIXELS = st.integers(-40_000, 90_000).map(lambda value: value / 100)
TEXTS = st.text("abc <>&\"'äß", min_size=1, max_size=8).map(str.strip).filter(bool)


@st.composite
def any_sighting(draw: st.DrawFn, seconds: int) -> Sighting:
    box = AnnotatedBox(x=draw(PIXELS), y=draw(PIXELS), width=draw(PIXELS), height=draw(PIXELS))
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
        AnnotatedMoment,
        kind=st.sampled_from(["insertion", "retrieval"]),
        instance=NAMES,
        class_name=CLASSES,
        time=st.floats(0, 100),
    )
    # Two sightings of one instance, class and second are two tracks to CVAT, which keeps no order among them.
    seen = {
        (one.second, one.instance, one.class_name): one for one in draw(st.lists(any_sighting(seconds), max_size=40))
    }
    return Annotation(
        video=AnnotatedVideo(
            id=draw(st.sampled_from(["video_014", "a b", "ä", "op.2024.01"])),
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
    one = Sighting(second=3, instance="s", class_name="Sponge", box=AnnotatedBox(x=1, y=2, width=3, height=4))
    other = one.model_copy(update={"box": AnnotatedBox(x=50, y=2, width=3, height=4)})
    video = AnnotatedVideo(id="v", file="v.mp4", width=64, height=64, seconds=9, fps=25)
    annotation = Annotation(video=video, sightings=(one, other))
    for kind in KINDS:
        for name, content in write_annotations([annotation], kind).items():
            (tmp_path / name).write_bytes(content)
            assert read_annotations([tmp_path / name]) == [annotation]


# CVAT's meaning


def rows(annotation: Annotation) -> dict[int, float | None]:
    return {one.second: one.box.x if one.box else None for one in annotation.sightings}


def test_a_box_goes_straight_from_key_frame_to_key_frame_and_stays_to_the_end() -> None:
    found = from_cvat(box(5), box(45, 80))
    assert rows(found) == {1: 10, 2: 30, 3: 50, 4: 70, 5: 80, 6: 80, 7: 80, 8: 80, 9: 80}
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
    assert rows(from_cvat(box(0), box(40, 80, more=outside), box(70, 5))) == {
        0: 0, 1: 20, 2: 40, 3: 60, 7: 5, 8: 5, 9: 5,
    }  # fmt: skip


def test_frames_that_are_no_key_frames_say_nothing() -> None:
    shown = 'outside="0" occluded="1" keyframe="0"'
    found = from_cvat(box(0), box(10, 500, more=shown), box(20, 20))
    assert rows(found)[1] == 10
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
    assert rows(from_cvat(box(0), covered, gone)) == {0: 0, 1: 0, 2: None, 3: None}


def test_moments_are_clicked_or_written() -> None:
    clicked = from_cvat(
        box(7, inner=attribute("moment", "insertion")),
        box(12, inner=attribute("moment", "insertion")),
        box(30, inner=attribute("moment", "none")),
        box(68, inner=attribute("moment", "retrieval")),
    )
    assert [(one.kind, one.time) for one in clicked.moments] == [("insertion", 0.7), ("retrieval", 6.8)]
    written = from_cvat(box(0, inner=attribute("inserted_at", "00:00:01.5, 7") + attribute("retrieved_at", "5")))
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
    found = read_cvat(Path("x.xml"), CVAT.format(tracks=tracks).encode(), ReadDefaults(fps=10))
    assert [(one.second, one.instance) for one in found.sightings] == [
        (0, "sponge A"), (1, "sponge A"), (5, "sponge A"), (6, "sponge A"),
    ]  # fmt: skip


def test_frames_between_the_seconds_of_an_odd_rate_are_found() -> None:
    found = from_cvat(box(0), box(60, 60), fps=29.97)
    assert rows(found) == {0: 0, 1: 30, 2: 60, 3: 60}
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


def test_the_image_nearest_to_a_second_stands_for_it(tmp_path: Path) -> None:
    (found,) = read_annotations([write(tmp_path / "case.json", COCO)], ReadDefaults(fps=25, procedure="appendectomy"))
    assert [(one.second, one.instance, one.occluded) for one in found.sightings] == [
        (0, "track-5", False), (1, "track-5", True), (2, "n", False),
    ]  # fmt: skip
    assert found.sightings[1].attributes == {"colour": "grey"}
    assert found.sightings[2].box is None
    assert (found.video.id, found.video.seconds, found.video.procedure) == ("case", 3.0, "appendectomy")


def test_several_videos_in_one_file_and_a_folder_of_files(tmp_path: Path) -> None:
    video = AnnotatedVideo(id="b", file="b.mp4", width=9, height=9, seconds=2, fps=25)
    seen = Sighting(second=1, instance="x", class_name="Clip", box=AnnotatedBox(x=1, y=1, width=2, height=2))
    two = [Annotation(video=video.model_copy(update={"id": name}), sightings=(seen,)) for name in "ba"]
    (tmp_path / "coco.json").write_bytes(write_annotations(two, "coco")["coco.json"])
    (tmp_path / "notes.txt").write_text("not ours")
    third = Annotation(video=video.model_copy(update={"id": "c"}))
    (tmp_path / "c.xml").write_bytes(write_annotations([third], "cvat")["c.xml"])
    assert [one.video.id for one in read_annotations([tmp_path])] == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"found video 'c' again, expected each video once; c\.xml has it"):
        read_annotations([tmp_path, tmp_path / "c.xml"])
