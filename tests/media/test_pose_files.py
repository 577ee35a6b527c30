"""Keypoints from COCO files: found by the image's name, refused where something is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.core import InputError
from proctor.tasks.clinicalskillqa.keypoints import KEYPOINTS, KeypointFile, PersonBox, Point, open_pose
from proctor.tasks.clinicalskillqa.pose import facts_of
from tests.support.figures import Joints, kneeler, manikin, without

CATEGORIES = [
    {"id": 1, "name": "person", "keypoints": list(KEYPOINTS)},
    {"id": 2, "name": "chest"},
    {"id": 3, "name": "chair"},
]


def numbers(joints: Joints, flag: int = 2) -> list[float]:
    found: list[float] = []
    for name in KEYPOINTS:
        found += [*joints[name], flag] if name in joints else [0, 0, 0]
    return found


def image(number: int, name: str) -> dict[str, Any]:
    return {"id": number, "file_name": name, "width": 800, "height": 500}


def coco(tmp_path: Path, **changes: Any) -> Path:
    native = {
        "images": [image(1, "CPR/i001/A.jpg"), image(2, "CPR/i001/B.jpg"), image(3, "i002/A.png")],
        "annotations": [
            {"image_id": 1, "category_id": 1, "keypoints": numbers(kneeler())},
            {"image_id": 1, "category_id": 1, "keypoints": numbers(manikin()), "bbox": [270, 370, 300, 30]},
            {"image_id": 2, "category_id": 2, "bbox": [10, 20, 30, 40]},
            {"image_id": 2, "category_id": 3, "bbox": [1, 2, 3, 4]},
        ],
        "categories": CATEGORIES,
    }
    file = tmp_path / "keypoints.json"
    file.write_text(json.dumps(native | changes), "utf-8")
    return file


def test_people_are_found_by_the_name_of_the_image(tmp_path: Path) -> None:
    source = open_pose(coco(tmp_path))
    pose = source.look(b"", "CPR/i001/A.jpg")
    assert (pose.width, pose.height, len(pose.people)) == (800, 500, 2)
    assert pose.people[0].point("left_knee") == Point(280, 400, 1.0)
    assert pose.people[1].point("right_knee") is None
    assert pose.people[1].box == PersonBox(270, 370, 570, 400)
    assert source.look(b"", "i001/A") is pose
    assert facts_of(pose).rescuers[0].holds["hands_on_chest"] is True
    marked = source.look(b"", "i001/B")
    assert (marked.people, marked.marked) == ((), {"chest": PersonBox(10, 20, 40, 60)})
    assert source.look(b"", "i002/A.jpg").people == ()  # in the file, and nobody in it
    assert source.settings["pose"] == "keypoints"


def test_hidden_joints_are_known_and_absent_ones_missing(tmp_path: Path) -> None:
    hidden = [{"image_id": 1, "category_id": 1, "keypoints": numbers(without(kneeler(), ["wrist"]), 1)}]
    person = KeypointFile(coco(tmp_path, annotations=hidden)).look(b"", "i001/A").people[0]
    knee = person.point("left_knee")
    assert knee is not None
    assert knee.confidence == 0.5
    assert person.point("left_wrist") is None
    assert "left_wrist" not in person.keypoints


def test_an_image_that_is_not_there_or_not_clear(tmp_path: Path) -> None:
    file = coco(tmp_path, images=[image(1, "x/i001/A.jpg"), image(2, "y/i001/A.jpg"), image(3, "i003/A.jpg")])
    source = KeypointFile(file)
    for name, found in (
        ("i009/A", "none with this name"),
        ("001/A", "none with this name"),
        ("i001/A", "x/i001/A.jpg, y/i001/A.jpg"),
    ):
        with pytest.raises(InputError) as caught:
            source.look(b"", name)
        assert str(caught.value) == f"{file}: image {name!r}: found {found}, expected one image"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"images": [{"id": 1, "file_name": "A.jpg"}]},
            "field 'images.0.width': found nothing, expected Field required",
        ),
        (
            {"categories": [{"id": 1, "name": "person", "keypoints": ["head", "tail"]}, *CATEGORIES[1:]]},
            "category 'person': found head, tail, expected COCO's 17 keypoints",
        ),
        (
            {"categories": [{"id": 1, "name": "person"}, *CATEGORIES[1:]]},
            "category 'person': found no keypoints, expected COCO's 17 keypoints",
        ),
        (
            {"annotations": [{"image_id": 9, "category_id": 1}]},
            "annotations.0: found image 9 of category 1, expected an image and a category of this file",
        ),
        (
            {"images": [image(1, "A.jpg"), image(2, "A.jpg")], "annotations": []},
            "image 'A.jpg': found it twice, expected each image once",
        ),
        (
            {"annotations": [{"image_id": 1, "category_id": 1, "keypoints": [1, 2, 2]}]},
            (
                "image 'CPR/i001/A.jpg', category 'person': found 3 numbers: [1.0, 2.0, 2.0] …, expected 51: x, y and "
                "v "
                "(0, 1 or 2) of 17 keypoints"
            ),
        ),
        (
            {"annotations": [{"image_id": 1, "category_id": 1, "keypoints": [0] * 51}]},
            "image 'CPR/i001/A.jpg', category 'person': found neither box nor keypoints, expected one of them",
        ),
        (
            {"annotations": [{"image_id": 2, "category_id": 2, "bbox": [1, 1, 2, 2]}] * 2},
            "image 'CPR/i001/B.jpg', category 'chest': found a second box, expected one box",
        ),
        (
            {"annotations": [{"image_id": 2, "category_id": 2}]},
            "image 'CPR/i001/B.jpg', category 'chest': found no box, expected one box",
        ),
    ],
)
def test_files_with_a_fault(tmp_path: Path, changes: dict[str, Any], text: str) -> None:
    file = coco(tmp_path, **changes)
    with pytest.raises(InputError) as caught:
        KeypointFile(file)
    assert str(caught.value) == f"{file}: {text}"


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    file = tmp_path / "k.json"
    with pytest.raises(InputError, match="found no such file, expected a file of keypoints"):
        KeypointFile(file)
    file.write_text("[1, 2")
    with pytest.raises(InputError, match=r"found broken JSON .*, expected JSON"):
        KeypointFile(file)
