"""Poses: files of keypoints, the facts that they decide, and the command."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from proctor.core import InputError, Region
from proctor.tasks.clinicalskillqa.keypoints import KEYPOINTS, KeypointFile, Person, PersonBox, Point, Pose, open_pose
from proctor.tasks.clinicalskillqa.pose import (
    PREDICATES,
    SEGMENTS,
    THRESHOLDS,
    WORDS,
    PictureFacts,
    facts_of,
    marked_region,
    marked_regions,
    positions_of,
    sentences,
)
from tests.media.test_pose_network import column, constant, jpeg
from tests.support.figures import Joints, kneeler, manikin, person, pose, standing, without
from tests.support.program import proctor

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
        ({"images": [{"id": 1, "file_name": "A.jpg"}]}, "field 'images.0.width': found nothing, expected a value"),
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("CPR/i001/A.jpg", "CPR/i001/B.jpg", "i002/A.png"):
        (tmp_path / "task" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "task" / name).write_bytes(jpeg(80, 50))
    return tmp_path / "task"


def test_a_folder_with_keypoints_in_all_forms(folder: Path, tmp_path: Path) -> None:
    given = ("media", "pose", folder, "--keypoints", coco(tmp_path), "--chest", "0.4,0.72,0.06,0.08")
    run = proctor(*given, "--format", "json")
    assert (run.returncode, run.stderr) == (0, "")
    told = json.loads(run.stdout)
    assert [row["image"] for row in told] == ["CPR/i001/A.jpg", "CPR/i001/B.jpg", "i002/A.png"]
    first = told[0]
    assert (first["manikin"], first["nearest"], len(first["people"])) == ("marked", 1, 1)
    assert first["people"][0]["kneeling"] is True
    assert first["people"][0]["reaching_for_device"] is None
    assert first["sentences"][0] == "One person is seen. Where the manikin lies is marked."
    csv = proctor(*given, "--format", "csv").stdout.splitlines()
    assert csv[0] == "image,sentence"
    assert csv[1] == "CPR/i001/A.jpg,One person is seen. Where the manikin lies is marked."
    shown = proctor(*given).stdout.splitlines()  # no terminal: nothing is cut
    assert {line.split()[0] for line in shown[2:]} == {"CPR/i001/A.jpg", "CPR/i001/B.jpg", "i002/A.png"}
    assert shown[2].split(maxsplit=1)[1].strip() == "One person is seen. Where the manikin lies is marked."


def test_a_network_and_a_single_picture(folder: Path, tmp_path: Path) -> None:
    weights = constant(tmp_path / "w.onnx", [column((40, 64, 20, 40), 0.6)])
    run = proctor("media", "pose", folder / "i002" / "A.png", "--weights", weights, "--format", "json")
    assert (run.returncode, run.stderr) == (0, "")
    (row,) = json.loads(run.stdout)
    assert (row["image"], len(row["people"]), row["manikin"]) == ("A.png", 1, None)


def test_faults_are_one_line(folder: Path, tmp_path: Path) -> None:
    file = coco(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    for given, code, text in (
        ((folder,), 2, "Give one of --weights FILE and --keypoints FILE, and only one"),
        ((folder, "--weights", file, "--keypoints", file), 2, "only one"),
        ((empty, "--keypoints", file), 1, f"proctor: {empty}: found no picture, expected files such as *.jpeg"),
        ((folder / "C.jpg", "--keypoints", file), 1, "C.jpg: found no such file, expected a picture"),
        ((folder / "i002" / "A.png", "--keypoints", file, "--head", "1"), 1, "proctor: head: found '1', expected four"),
        (
            (folder / "i002" / "A.png", "--keypoints", file),
            1,
            "image 'A.png': found CPR/i001/A.jpg, i002/A.png, expected",
        ),
    ):
        run = proctor("media", "pose", *given)
        assert run.returncode == code
        assert text in " ".join(run.stderr.replace("│", " ").split())


DEVICE = {"device": PersonBox(470, 200, 520, 240)}


def only(*people: Joints, **more: Any) -> dict[str, bool | None]:
    facts = facts_of(pose(*people, **more))
    assert len(facts.rescuers) == 1
    return dict(facts.rescuers[0].holds)


LEDGER: list[tuple[str, bool | None, dict[str, bool | None]]] = [
    # kneeling: where the shank is
    ("kneeling", True, only(kneeler())),
    ("kneeling", True, only(without(kneeler(), ["right_ankle", "right_knee"]))),
    ("kneeling", False, only(standing())),
    ("kneeling", None, only(without(standing(), ["ankle"]))),
    ("kneeling", None, only(standing() | {"left_ankle": (600, 315 + 45), "right_ankle": (600, 315 + 45)})),
    # leaning over: sideways, and towards the camera
    ("leaning_over", True, only(kneeler(lean=40))),
    ("leaning_over", True, only(kneeler(lean=-40))),
    ("leaning_over", True, only(standing() | {"left_shoulder": (600, 185), "right_shoulder": (600, 185)})),
    ("leaning_over", False, only(standing())),
    ("leaning_over", False, only(kneeler(lean=10))),
    ("leaning_over", None, only(kneeler(lean=25))),
    ("leaning_over", None, only(without(kneeler(), ["hip"]))),
    # arms straight and vertical
    ("arms_straight_and_vertical", True, only(kneeler())),
    ("arms_straight_and_vertical", True, only(without(kneeler(), ["right_elbow", "right_wrist"]))),
    ("arms_straight_and_vertical", False, only(kneeler(bend=60))),
    ("arms_straight_and_vertical", False, only(kneeler(arms=60))),
    ("arms_straight_and_vertical", False, only(standing(arms=180))),
    ("arms_straight_and_vertical", None, only(without(kneeler(), ["wrist"]))),
    ("arms_straight_and_vertical", None, only(kneeler(bend=32))),
    # an arm stretched out
    ("arm_stretched_out", True, only(standing(arms=90))),
    ("arm_stretched_out", False, only(standing())),
    ("arm_stretched_out", False, only(kneeler(arms=60, bend=70))),
    ("arm_stretched_out", None, only(without(standing(), ["left_wrist"]))),
    # hands on the chest of a manikin that lies there
    ("hands_on_chest", True, only(manikin(), kneeler())),
    ("hands_on_chest", False, only(manikin(), standing())),
    ("hands_on_chest", False, only(manikin(shoulders=414), kneeler(x=280))),
    ("hands_on_chest", None, only(manikin(), without(standing(), ["left_wrist"]))),
    ("hands_on_chest", None, only(kneeler())),
    # hands at the head: the face lies 70 to the left of the chest
    ("hands_at_head", True, only(manikin(shoulders=384), kneeler())),
    ("hands_at_head", False, only(manikin(), kneeler())),
    ("hands_at_head", None, only(manikin(), without(kneeler(), ["wrist"]))),
    ("hands_at_head", None, only(kneeler())),
    # reaching for a device, which only a mark tells
    ("reaching_for_device", True, only(standing(arms=50), marked=DEVICE)),
    ("reaching_for_device", False, only(kneeler(), marked=DEVICE)),
    ("reaching_for_device", None, only(standing(arms=50))),
    (
        "reaching_for_device",
        None,
        only(standing(arms=45) | {"left_wrist": (1000.0, 0.0)}, marked={"device": PersonBox(380, 150, 430, 240)}),
    ),
    # hands off
    ("hands_off", True, only(manikin(), standing())),
    ("hands_off", False, only(manikin(), kneeler())),
    ("hands_off", False, only(manikin(shoulders=200), kneeler())),  # on the legs
    ("hands_off", None, only(manikin(), without(standing(), ["right_wrist"]))),
    ("hands_off", None, only(standing())),
]


@pytest.mark.parametrize(("name", "expected", "holds"), LEDGER)
def test_the_ledger_of_figures(name: str, expected: bool | None, holds: dict[str, bool | None]) -> None:
    assert holds[name] is expected


def test_every_predicate_stands_in_the_ledger_as_yes_no_and_unknown() -> None:
    seen = {(name, expected) for name, expected, _ in LEDGER}
    assert seen == {(name, value) for name in PREDICATES for value in (True, False, None)}
    assert set(WORDS) == set(PREDICATES)


def test_joints_that_are_not_sure_are_missing() -> None:
    sure = Pose(800, 500, (person(kneeler(), confidence=0.5),))
    unsure = Pose(800, 500, (person(kneeler(), confidence=0.49),))
    assert facts_of(sure).rescuers[0].holds["kneeling"] is True
    assert set(facts_of(unsure).rescuers[0].holds.values()) == {None}


def test_nobody_and_people_without_a_joint() -> None:
    assert facts_of(Pose(800, 500, ())) == PictureFacts((), "", None)
    bare = Person(PersonBox(1, 1, 9, 9), 0.9, {})
    facts = facts_of(Pose(800, 500, (bare,)))
    assert len(facts.rescuers) == 1
    assert set(facts.rescuers[0].holds.values()) == {None}
    same = dict.fromkeys(KEYPOINTS, (5.0, 5.0))  # all joints in one point: no length, no angle
    assert set(facts_of(pose(same)).rescuers[0].holds.values()) == {None}


# ── who is there, and who is the manikin ──


def test_the_manikin_is_the_body_that_lies() -> None:
    facts = facts_of(pose(kneeler(), manikin(), standing()))
    assert (facts.manikin, len(facts.rescuers), facts.nearest) == ("a lying body", 2, 1)
    # A rescuer that bends low is still none: its thighs stand.
    assert facts_of(pose(kneeler(lean=75))).manikin == ""
    # Of two that lie, the lower one; another one who lies is a person.
    two = facts_of(pose(manikin(y=200), manikin(y=380)))
    assert (two.manikin, len(two.rescuers)) == ("a lying body", 1)
    # A body without its legs, as many manikins are; and one whose shoulders are not seen, which can't be decided.
    assert facts_of(pose(without(manikin(), ["knee", "ankle"]))).manikin == "a lying body"
    assert facts_of(pose(without(manikin(), ["shoulder"]))).manikin == ""


def test_places_can_be_marked_instead() -> None:
    marked = {"chest": Region(x=0.40, y=0.72, width=0.06, height=0.08)}
    facts = facts_of(pose(kneeler()), marked)
    holds = facts.rescuers[0].holds
    assert (facts.manikin, holds["hands_on_chest"], holds["hands_at_head"]) == ("marked", True, None)
    assert holds["hands_off"] is False
    # Hands that are off the chest may be on the head, of which nothing is known.
    far = facts_of(pose(standing()), marked).rescuers[0].holds
    assert (far["hands_on_chest"], far["hands_off"]) == (False, None)
    both = marked | {"head": Region(x=0.3, y=0.72, width=0.06, height=0.08)}
    assert facts_of(pose(standing()), both).rescuers[0].holds["hands_off"] is True
    # What the picture's own file marks comes first; a body that lies is the manikin all the same.
    own = pose(manikin(), kneeler(), marked={"chest": PersonBox(0, 0, 10, 10)})
    locations = positions_of(own, marked)
    assert locations.chest == PersonBox(0, 0, 10, 10)
    assert locations.lying is own.people[0]
    assert facts_of(own, marked).rescuers[0].holds["hands_on_chest"] is False


def test_who_is_nearest_is_said_only_where_it_is_clear() -> None:
    assert facts_of(pose(manikin(), standing(600), kneeler(280))).nearest == 1  # numbered from the left
    assert facts_of(pose(manikin(), standing(700), standing(100))).nearest == 1
    assert facts_of(pose(manikin(), standing(344 + 150), standing(344 - 150))).nearest is None
    assert facts_of(pose(standing(600), kneeler(280))).nearest is None  # no manikin
    assert facts_of(pose(manikin())).nearest is None
    assert facts_of(pose(manikin(), standing())).nearest == 1


@pytest.mark.parametrize("scale", [0.25, 3.0])
def test_the_size_of_the_picture_changes_nothing(scale: float) -> None:
    def scaled(joints: Joints) -> Joints:
        return {name: (x * scale, y * scale) for name, (x, y) in joints.items()}

    people = (manikin(), kneeler(), standing())
    large = facts_of(pose(*map(scaled, people), width=round(800 * scale), height=round(500 * scale)))
    assert large == facts_of(pose(*people))


@pytest.mark.parametrize("mirror", [False, True])
def test_left_and_right_are_alike(mirror: bool) -> None:
    def turned(joints: Joints) -> Joints:
        return {name: (800 - x if mirror else x, y) for name, (x, y) in joints.items()}

    assert only(turned(manikin()), turned(kneeler())) == only(manikin(), kneeler())


# ── the table ──


def test_the_table_is_complete_and_its_bounds_decide() -> None:
    for name, threshold in THRESHOLDS.items():
        assert len(threshold.why) > 30, name
        assert threshold.unit
        assert threshold.decide(None) is None
        assert threshold.decide(threshold.yes) is True
        if threshold.yes != threshold.no:
            assert threshold.decide(threshold.no) is False
            assert threshold.decide((threshold.yes + threshold.no) / 2) is None
    assert math.isclose(SEGMENTS["knee", "ankle"] / SEGMENTS["shoulder", "hip"], 0.854, abs_tol=1e-3)


# ── words ──


def test_sentences_say_what_holds_what_does_not_and_what_is_unknown() -> None:
    facts = facts_of(pose(manikin(), kneeler(), without(standing(), ["ankle"])))
    assert sentences(facts) == [
        "Two people are seen, and the manikin, by the looks of it a lying body.",
        (
            "Person 1 of 2 from the left kneels, leans over, has the arms straight and vertical, has a hand on the "
            "manikin's chest, stretches no arm out, has no hand at the manikin's head, has hands on the manikin."
        ),
        "Unknown of person 1 of 2 from the left: reaching for a device.",
        (
            "Person 2 of 2 from the left has the arms straight and vertical, keeps the hands off the manikin, is "
            "upright, stretches no arm out, has no hand on the manikin's chest, has no hand at the manikin's head."
        ),
        "Unknown of person 2 of 2 from the left: kneeling, reaching for a device.",
        "Nearest to the manikin is person 1.",
    ]
    assert not any("nknown" in one for one in sentences(facts, unknown=False))
    alone = sentences(facts_of(pose(kneeler())), unknown=False)
    assert alone == [
        "One person is seen. The manikin is not found.",
        "The person kneels, leans over, has the arms straight and vertical, stretches no arm out.",
    ]


def test_marks_are_four_fractions() -> None:
    assert marked_regions({"chest": "0,0,1,1", "head": None}) == {"chest": Region(x=0, y=0, width=1, height=1)}
    for text in ("0,0,1", "a,b,c,d", "0.5,0,0.6,1"):
        with pytest.raises(InputError) as caught:
            marked_region(text, "chest")
        assert (
            str(caught.value) == f"chest: found {text!r}, expected four fractions of the picture, like 0.25,0.5,0.1,0.2"
        )


def test_a_point_between_is_neither() -> None:
    assert PersonBox(0, 0, 10, 10).distance(Point(5, 12)) == 2
