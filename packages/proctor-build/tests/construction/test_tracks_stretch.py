"""Who annotates a part of a video says nothing about the rest: CVAT's start frames and jobs, COCO's stretches."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from proctor.core import InputError
from proctor.tracks import Annotation, ReadDefaults, Timeline
from proctor_build.cvat import read_cvat
from proctor_build.files import TrackFormat, read_annotations, write_folder
from proctor_build.focus.builder import ask_focus
from proctor_build.focus.plan import FocusPlan
from tests.support.track_files import box

# A task from frame 750 to 1595 of a video at 25 frames per second (0:30 to 1:03), of which every fifth frame is shown.
TASK = """<annotations><version>1.1</version><meta><task><name>op</name><size>170</size>
<start_frame>{start}</start_frame><stop_frame>1595</stop_frame><frame_filter>step=5</frame_filter>{jobs}
<original_size><width>640</width><height>360</height></original_size><source>{name}.mp4</source></task></meta>
<track id="0" label="needle">{boxes}</track></annotations>"""


def task(*, start: int = 750, name: str = "op", jobs: str = "", first: int = 775, last: int = 1125) -> Annotation:
    boxes = box(first, 100) + box(last - 100, 200) + box(last, 250, more='outside="1" occluded="0" keyframe="1"')
    content = TASK.format(start=start, name=name, jobs=jobs, boxes=boxes)
    return read_cvat(Path("x.xml"), content.encode(), ReadDefaults(fps=25, procedure="sigmoid resection"))


def segments(*parts: tuple[int, int]) -> str:
    inner = "".join(
        f"<segment><id>{n}</id><start>{a}</start><stop>{b}</stop></segment>" for n, (a, b) in enumerate(parts)
    )
    return f"<segments>{inner}</segments>"


def test_nothing_is_asked_before_the_start_frame() -> None:
    """Frame 750 at 25 per second is 0:30; the needle is in view from 0:31 to 0:44."""
    one = task()
    assert (one.video.begins, one.video.seconds) == (30.0, 1596 / 25)
    assert [sighting.second for sighting in one.sightings] == list(range(31, 45))
    line = Timeline(one)
    assert min(line.quiet()) >= 32
    assert line.unseen == frozenset(range(30))
    assert Timeline(task(start=0)).quiet()[0] == 2
    some = [task(name=f"op{number}", first=775 + 25 * number, last=1125 + 25 * number) for number in range(3)]
    for track in ("procedure", "segment", "frame"):
        asked = ask_focus(some, FocusPlan(per_video=14, track=track, segment_s=20))
        assert asked.requests
        for request in asked.requests:
            assert request.start_time >= 30
            times = [
                int(h) * 3600 + int(m) * 60 + int(s)
                for h, m, s in re.findall(r"(\d\d):(\d\d):(\d\d)", request.question)
            ]
            assert all(time >= 30 for time in times), request.question
            assert "of the video" not in request.question
            assert " so far" not in request.question


def test_the_stretch_goes_round(tmp_path: Path) -> None:
    one = task()
    some = one.model_copy(update={"video": one.video.model_copy(update={"unseen": (50, 51)})})
    kinds: tuple[TrackFormat, ...] = ("cvat", "coco", "json")
    for kind in kinds:
        write_folder([some], kind, tmp_path / kind)
        (again,) = read_annotations([tmp_path / kind])
        assert (again.video.begins, again.video.unseen) == (30.0, (50, 51)), kind
    plain = task(start=0)
    assert not {"begins", "unseen"} & plain.video.model_dump().keys()  # stored files and hashes stay as they were


@pytest.mark.parametrize(
    ("jobs", "begins", "seconds"),
    [
        (segments((0, 99), (95, 169)), 30.0, 63.84),
        (segments((85, 169)), 47.0, 63.84),  # frame 750 + 85 · 5 = 1175
        (segments((0, 84)), 30.0, (750 + 84 * 5 + 1) / 25),
        ("", 30.0, 63.84),
    ],
)
def test_jobs_that_are_missing_at_the_ends_shorten_the_stretch(jobs: str, begins: float, seconds: float) -> None:
    video = task(jobs=jobs).video
    assert video.begins == begins
    assert video.seconds == pytest.approx(seconds)


def test_a_job_that_is_missing_between_others_is_named() -> None:
    with pytest.raises(InputError) as caught:
        task(jobs=segments((0, 49), (100, 169)))
    assert str(caught.value) == (
        "x.xml: <meta>, <segments>: found no job with the frames 50 to 99 of the task, expected all jobs, or each one's "
        "own file"
    )


# -- COCO


def coco(seconds: list[int], **video: Any) -> dict[str, Any]:
    images = [{"id": n + 1, "width": 64, "height": 48, "time": second} for n, second in enumerate(seconds)]
    boxes = [
        {"id": n + 1, "image_id": n + 1, "category_id": 1, "bbox": [1, 2, 9, 9], "track_id": 5}
        for n, second in enumerate(seconds)
        if second % 20 < 10
    ]
    found: dict[str, Any] = {"images": images, "categories": [{"id": 1, "name": "Needle"}], "annotations": boxes}
    if video:
        found["videos"] = [{"id": 1, "name": "op", "fps": 25, **video}]
    return found


def read(folder: Path, content: dict[str, Any], fps: float | None = 25) -> Annotation:
    file = folder / "op.json"
    file.write_text(json.dumps(content))
    (one,) = read_annotations([file], ReadDefaults(fps=fps))
    return one


def test_pictures_of_one_stretch_say_nothing_about_the_rest(tmp_path: Path) -> None:
    seconds = [second for second in range(40, 80) if second not in {55, 56}]  # two pictures were deleted
    one = read(tmp_path, coco(seconds, duration=120.0))
    assert (one.video.begins, one.video.seconds, one.video.unseen) == (40.0, 80.0, (55, 56))
    quiet = Timeline(one).quiet()
    assert quiet
    assert min(quiet) >= 42
    assert not {54, 55, 56, 57} & set(quiet)
    whole = read(tmp_path, coco(list(range(80)), duration=80.0))
    assert (whole.video.begins, whole.video.seconds, whole.video.unseen) == (0.0, 80.0, ())


def test_cvats_names_of_pictures_are_frame_numbers(tmp_path: Path) -> None:
    content = coco([0, 1, 2])
    for number, image in enumerate(content["images"]):
        image["file_name"] = f"images/frame_{25 * number:06d}.PNG"
        del image["time"]
    assert [sighting.second for sighting in read(tmp_path, content).sightings] == [0, 1, 2]
    with pytest.raises(InputError, match=r"image 1: found a frame number, expected fps, or --fps"):
        read(tmp_path, content, fps=None)
    content["images"][0]["file_name"] = "one.png"
    with pytest.raises(InputError, match=r"expected time, frame_index, frame_id or frame_000025 in its name"):
        read(tmp_path, content)


def test_a_mask_without_a_box_is_named(tmp_path: Path) -> None:
    content = coco([0, 1])
    content["annotations"][0] |= {"segmentation": {"size": [48, 64], "counts": "abc"}}
    del content["annotations"][0]["bbox"]
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    told = "found no bbox, expected bbox (x, y, width, height): masks and polygons are not read"
    assert str(caught.value).endswith(f"op.json: annotations, entry 1: {told}")
