"""Broken and hostile files of tracks: refused in one line that names file, location, found and expected."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.core import InputError
from proctor.tracks import AnnotatedVideo, Annotation, ReadDefaults
from proctor.tracks.annotation import MOST_SIGHTINGS
from proctor_build.files import read_annotations, write_annotations
from proctor_build.xml import Node, read_xml
from tests.support.track_files import COCO, CVAT, attribute, box, from_cvat, write

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
    ("another root", "<html></html>", "line 1: found <html>, expected <annotations>, as CVAT writes it"),
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
    ("rotated", cvat(edit=lambda t: t.replace('frame="0" x', 'frame="0" rotation="45.00" x')),
     "line 12, <box>: found a box rotated by 45 degrees, expected a box without rotation"),
    ("after the end", cvat(f'<track id="0" label="x">{box(0)}{box(10**6)}</track>'),
     "line 12, <box>: found frame 1000000, expected a frame of the task, 0 to "),
    ("two names", cvat(f'<track id="0" label="x">{box(0, inner=attribute("instance", "a"))}'
                       f'{box(4, inner=attribute("instance", "b"))}</track>'), "found instance 'b', expected 'a'"),
    ("a time in words", cvat(f'<track id="0" label="x">{box(0, inner=attribute("inserted_at", "soon"))}</track>'),
     "<track> 0: found inserted_at 'soon', expected seconds or hh:mm:ss"),
    ("a share above 1", cvat(f'<track id="0" label="x">{box(0, inner=attribute("visibility", "7"))}</track>'),
     "field 'visibility': found 7.0, expected"),
    ("broken json", '{"images": [1, 2', "line 1, column 17: found the end of the file: it is cut off, expected JSON"),
    ("other json", {"a": 1}, "found JSON with a, expected CVAT for video 1.1 (XML), COCO (JSON)"),
    ("deep json", '{"images":' + "[" * 100_000 + "]" * 100_000 + "}", "found lists or objects nested too deep"),
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
    ("no video", {"kind": "annotated video"}, "field 'video': found nothing, expected a value"),
]  # fmt: skip


def test_more_boxes_than_any_video_has_are_refused_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200,000 tracks took more than a minute and 1.8 GB: each is shown once a second to the end of the video."""
    tracks = [f'<track id="{number}" label="Clip">{box(0)}</track>' for number in range(40)]
    file = write(tmp_path / "many.xml", cvat("".join(tracks)))
    (whole,) = read_annotations([file], ReadDefaults(fps=10))
    assert len(whole.sightings) == 400
    monkeypatch.setattr("proctor_build.cvat.MOST_SIGHTINGS", 100)
    with pytest.raises(InputError) as caught:
        read_annotations([file], ReadDefaults(fps=10))
    assert str(caught.value) == (
        f"{file}: line 12, <track> 10: found more than 100 boxes, one for each second of each track, expected several "
        f"videos"
    )
    one = "".join(box(frame) for frame in range(120))
    keys = write(tmp_path / "keys.xml", cvat(f'<track id="0" label="Clip">{one}</track>'))
    with pytest.raises(InputError, match=r"found more than 100 key frames in a track, expected several videos"):
        read_annotations([keys], ReadDefaults(fps=10))


def test_a_file_of_other_tracks_has_the_same_bound(tmp_path: Path) -> None:
    own = from_cvat(box(0)).model_dump(mode="json")
    own["sightings"] = own["sightings"][:1] * (MOST_SIGHTINGS + 1)
    file = tmp_path / "own.json"
    file.write_text(json.dumps(own))
    with pytest.raises(InputError, match=r"field 'sightings': found a list, expected at most 250000 entries"):
        read_annotations([file])


def test_tracks_are_forgotten_as_they_are_read() -> None:
    content = cvat(TRACK * 50).encode()
    assert len(list(read_xml(Path("x"), content).all("track"))) == 50
    alive: list[int] = []

    def ended(node: Node, above: Sequence[Node]) -> bool:
        alive.append(len(above[0].children) if above else 0)
        return node.tag in {"track", "box"}

    root = read_xml(Path("x"), content, ended)
    assert [child.tag for child in root.children] == ["version", "meta"]
    assert max(alive) == 3


@pytest.mark.parametrize(("content", "error"), [one[1:] for one in BROKEN], ids=[one[0] for one in BROKEN])
def test_a_broken_file_is_refused_in_one_line(content: object, error: str, tmp_path: Path) -> None:
    file = write(tmp_path / "tracks", content)
    with pytest.raises(InputError) as caught:
        read_annotations([file], ReadDefaults(fps=10))
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
        (lambda c: c["sightings"][0].update(colour="red"), "field 'sightings.0.colour': found 'red', expected "),
        (lambda c: c["sightings"][0].update(attributes={"hidden": "x"}), "the attribute 'hidden' has a meaning"),
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
        ReadDefaults(fps=0)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no such file or folder, expected tracks"):
        read_annotations([tmp_path / "none.xml"])
    with pytest.raises(InputError, match=r"found no \.xml or \.json file, expected files of tracks"):
        read_annotations([tmp_path])


def test_names_that_no_file_should_have() -> None:
    video = AnnotatedVideo(id="../../etc", file="x", width=9, height=9, seconds=2, fps=25)
    one = Annotation(video=video)
    assert list(write_annotations([one], "json")) == ["_.._etc.json"]
    other = Annotation(video=video.model_copy(update={"id": "../..\\etc"}))
    with pytest.raises(InputError, match=re.escape("found a second file _.._etc.json, expected plain names")):
        write_annotations([one, other], "json")
