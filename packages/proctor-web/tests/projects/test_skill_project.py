"""A project of key frames: what each stage makes, what leaves, and the same bytes however often it is killed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from proctor.core import InputError, VideoClip
from proctor.media import MediaLibrary, Picture
from proctor.tasks.clinicalskillqa import READER
from proctor_build.pipeline import Project, redo_record, run_stages
from proctor_web.forms import RationaleBody
from proctor_web.sources import items_of_project
from proctor_web.video import ItemMedia, ShownItem
from tests.construction.pipeline.skills import found, project, ran
from tests.construction.pipeline.test_project_kill import content, run_and_die
from tests.support.faulty_server import FaultyServer
from tests.support.reviewers import decided, reviewed
from tests.support.scribe import scribe

REMOVED: dict[str, Any] = {"verdict": "remove"}
DOUBTED: dict[str, Any] = {"unclear": True}


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory, film: Path) -> tuple[Path, int]:
    """A project whose rationales are checked, and how often models were asked."""
    with pytest.MonkeyPatch.context() as patch, FaultyServer(scribe) as server:
        patch.setenv("OPENAI_API_KEY", "none")
        root = project(tmp_path_factory.mktemp("skills") / "p", film, server.url)
        ran(root, "evidence")
        return root, server.count


@pytest.fixture
def folder(done: tuple[Path, int], tmp_path: Path) -> Path:
    """A copy of it; no model is there any more."""
    root = tmp_path / "p"
    shutil.copytree(done[0], root, symlinks=True)
    (tmp_path / "film.mp4").symlink_to((root / "sources" / "a.mp4").resolve())
    return root


def test_frames_are_inside_the_trim_and_what_was_recorded(folder: Path) -> None:
    library = MediaLibrary((folder / "sources" / "a.mp4").resolve().parent)
    for number, source in enumerate("abc"):
        (one,) = found(folder, "frames", source)["records"]
        times = {frame["label"]: frame["time"] for frame in one["frames"]}
        assert [times[label] for label in one["order"]] == sorted(times.values())
        assert all(8 * number <= time <= 8 * number + 8 for time in times.values())
        jpegs = library.jpegs([Picture("sim-000.mp4", frame["time"]) for frame in one["frames"]])
        assert [hashlib.sha256(jpeg).hexdigest() for jpeg in jpegs] == [frame["sha256"] for frame in one["frames"]]
        assert one["scenario"] == "CPR"


def test_physicians_see_the_recorded_frames(folder: Path) -> None:
    (folder / "sources" / "a.mp4").unlink()
    shutil.copy(folder.parent / "film.mp4", folder / "sources" / "a.mp4")
    media = ItemMedia(MediaLibrary(folder))
    for item in items_of_project(folder, folder, "rationale"):
        (record,) = found(folder, "frames", item.key[0])["records"]
        recorded = {frame["label"]: frame["sha256"] for frame in record["frames"]}
        assert item.body["recorded"] == record["order"]
        body, (clip,) = RationaleBody.model_validate(item.body), item.media
        assert isinstance(clip, VideoClip)
        shown = {frame.id: media.picture(ShownItem(item.key, item.media), clip, frame.time) for frame in body.frames}
        assert {label: hashlib.sha256(jpeg).hexdigest() for label, jpeg in shown.items()} == recorded


def test_models_see_what_their_stage_shows_and_nothing_is_asked_again(
    film: Path, tmp_path: Path, server: FaultyServer
) -> None:
    root = project(tmp_path / "p", film, server.url)
    ran(root, "evidence", "a")
    shown = [len(one.image_bytes) for one in server.requests]
    assert [len(one.image_bytes) for one in server.requests if one.model == "writer"] == [4]
    assert sorted(shown) == [1, 2, 2, 2, 4, 4]  # sentence by sentence, the frames that it cites
    labels = [text for text in server.requests[0].texts if text.startswith("Frame ")]
    assert labels == ["Frame A", "Frame B", "Frame C", "Frame D"]  # mixed, as they are labelled
    ran(root, "evidence", "a")
    assert len(server.requests) == len(shown)


def test_what_both_say_stands_and_what_neither_sees_leaves(folder: Path) -> None:
    a = {"a-k001-s01": REMOVED, "b-k001": DOUBTED, "c-k001-s02": REMOVED}
    b = {"a-k001-s01": REMOVED, "b-k001": {"order": ["A", "B", "C", "D"]}, "c-k001": DOUBTED}
    assert ran(folder)["consensus"] == "waiting"
    reviewed(folder, a, b)
    assert ran(folder)["consensus"] == "waiting"
    states = asyncio.run(run_stages(Project(folder)))
    assert next(one.why for one in states if one.stage == "consensus").startswith(
        "sources/consensus.jsonl: 1 of 3 instances to settle"
    )
    assert decided(folder, {"c-k001": {"accepted": False}}) == ["c-k001"]
    ran(folder)
    made = found(folder, "consensus", "all")
    (one,) = made["records"]
    assert one["id"] == "a-k001-agreed"
    assert len(one["sentences"]) == 3
    left = {each["id"]: (each["kind"], each["reason"]) for each in made["refused"]}
    assert left == {
        "b-k001-agreed": ("order", "neither physician sees the recorded order"),
        "c-k001-agreed": ("order", "rejected in the review; as both see it"),
    }
    (item,) = READER.load(folder / "items").items
    assert item.tags["scenario"] == "CPR"
    assert item.group == "g-a"


def test_an_instance_without_a_sentence_leaves_and_parts_are_folders(folder: Path) -> None:
    none = {f"a-k001-s0{number}": REMOVED for number in (1, 2, 3, 4)}
    reviewed(folder, none, none)
    file = folder / "project.yaml"
    settings = yaml.safe_load(file.read_text())
    settings["stages"]["split"] = {"shares": {"validation": 0.5, "test": 0.5}}
    file.write_text(yaml.safe_dump(settings))
    ran(folder)
    assert [one["reason"] for one in found(folder, "consensus", "all")["refused"]] == ["no sentence is left of it"]
    groups = [{one.group for one in READER.load(folder / "items" / part).items} for part in ("validation", "test")]
    assert sorted(map(len, groups)) == [1, 1]
    assert not groups[0] & groups[1]


def test_a_correction_takes_the_place_of_a_sentence_with_its_own_citations(folder: Path) -> None:
    orders = {one["id"]: one["order"] for name in "abc" for one in found(folder, "frames", name)["records"]}
    said = {
        f"{name}-s01": {
            "verdict": "correct",
            "text": "An instrument lies where it was.",
            "frames": [order[3], order[1]],
        }
        for name, order in orders.items()
    }
    reviewed(folder, said, said)
    ran(folder)
    for line in (folder / "items" / "references.jsonl").read_text().splitlines():
        reference = json.loads(line)
        assert reference["rationale"].startswith("An instrument lies where it was. From ")
        order = orders[reference["record"]]
        assert reference["sentences"][0]["frames"] == [order[1], order[3]]  # not those of the sentence before it


def test_an_item_that_was_changed_in_the_review_is_told(folder: Path) -> None:
    reviewed(folder, {}, {})
    file = folder / "sources" / "consensus.jsonl"
    file.write_text(file.read_text().replace("an instrument is moved", "an instrument is lifted", 1))
    with pytest.raises(InputError, match="found an item that was changed in the review"):
        ran(folder)


def test_another_attempt_and_back(film: Path, tmp_path: Path, server: FaultyServer) -> None:
    root = project(tmp_path / "p", film, server.url)
    ran(root, "rationales", "a")
    before = found(root, "rationales")["records"]
    assert redo_record(Project(root), "rationales", "a-k001-draft") == 1
    ran(root, "rationales", "a")
    assert server.count == 2
    redo_record(Project(root), "rationales", "a-k001-draft", undo=True)
    ran(root, "rationales", "a")
    assert (server.count, found(root, "rationales")["records"]) == (2, before)


def test_what_was_said_of_something_else_does_not_count(folder: Path) -> None:
    reviewed(folder, {}, {})
    assert ran(folder, "consensus")["consensus"] == "made"
    redo_record(Project(folder), "frames", "b-k001")
    before = found(folder, "frames", "a"), found(folder, "frames", "b")
    ran(folder, "frames")
    assert found(folder, "frames", "a") == before[0]
    assert found(folder, "frames", "b")["records"] != before[1]["records"]
    redo_record(Project(folder), "frames", "b-k001", undo=True)
    assert set(ran(folder, "consensus").values()) <= {"made", "kept"}
    assert found(folder, "frames", "b")["records"] == before[1]["records"]
    file = folder / "work" / "evidence" / "a.json"
    file.write_text(file.read_text().replace("an instrument is moved", "an instrument is lifted", 1))
    states = asyncio.run(run_stages(Project(folder)))
    why = next(one.why for one in states if one.stage == "consensus")
    assert why.startswith(
        "sources/consensus.jsonl: 1 of 3 instances to settle, 1 of them changed since they were settled"
    )
    reviewed(folder, {}, {})  # the changed one alone is read again
    assert set(ran(folder).values()) <= {"made", "kept"}


@pytest.mark.parametrize(
    ("source", "stages", "message"),
    [
        ({"category": "CRP"}, {}, "source 'a', field 'category': found 'CRP', expected one of CPR, AED, BMV"),
        (
            {"start": 40, "end": 44},
            {},
            "source 'a', field 'start': found 40 s, expected a time within the video's 25.00 s",
        ),
        ({}, {"frames": {"frames": [1]}}, "stages: frames, field 'frames"),
        ({}, {"frames": {"frames": [4, 4]}}, "numbers of frames, each once"),
        ({}, {"frames": {"frame": [4]}}, "stages: frames, field 'frame'"),
        ({}, {"evidence": {"pose": "sources/none.onnx"}}, "found no such file, expected a network or keypoints"),
        ({}, {"consensus": {"a": "x.csv"}}, "stages: consensus, field 'a'"),
        ({}, {"consensus": {"consensus": "../x"}}, "found '../x', expected a path inside the project folder"),
    ],
)
def test_what_a_person_must_correct_is_told(
    folder: Path, source: dict[str, object], stages: dict[str, object], message: str
) -> None:
    file = folder / "project.yaml"
    settings = yaml.safe_load(file.read_text())
    settings["sources"] = [one | (source if one["id"] == "a" else {}) for one in settings["sources"]]
    file.write_text(yaml.safe_dump(settings | {"stages": settings["stages"] | stages}))
    with pytest.raises(InputError) as error:
        ran(folder)
    assert message in str(error.value)


def test_another_picture_than_the_recorded_one_is_told(folder: Path) -> None:
    file = folder / "work" / "frames" / "a.json"
    frame = found(folder, "frames")["records"][0]["frames"][0]
    file.write_text(file.read_text().replace(frame["sha256"], "0" * 64))
    with pytest.raises(InputError, match=rf"a\.mp4: frame A of a-k001: found another picture at {frame['time']:.3f} s"):
        ran(folder, "rationales")


def test_a_source_without_a_stretch_is_listed(folder: Path) -> None:
    file = folder / "project.yaml"
    settings = yaml.safe_load(file.read_text())
    settings["stages"]["frames"]["seconds"] = 9
    file.write_text(yaml.safe_dump(settings))
    ran(folder, "frames")
    (one,) = found(folder, "frames")["refused"]
    assert (one["kind"], one["reason"]) == ("too short", "no stretch of 9 s in what is used of it")


def test_killed_and_resumed(film: Path, tmp_path: Path, server: FaultyServer) -> None:
    whole = project(tmp_path / "whole", film, server.url, names="a")
    ran(whole, "evidence")
    first = found(whole, "frames")["records"][0]["order"][0]
    lies = {"verdict": "correct", "text": "It lies still.", "frames": [first]}
    reviewed(whole, {"a-k001-s02": REMOVED}, {"a-k001-s03": lies})
    assert decided(whole, {"a-k001-s03": lies}) == ["a-k001"]
    assert set(ran(whole).values()) <= {"made", "kept"}
    assert any(name.startswith("items/") for name in content(whole))
    broken = project(tmp_path / "broken", film, server.url, names="a")
    (broken / "sources" / "consensus.jsonl").write_bytes((whole / "sources" / "consensus.jsonl").read_bytes())
    rng = np.random.default_rng(7)
    killed = sum(run_and_die(broken, int(rng.integers(1, 4)), before=bool(rng.integers(2))) for _ in range(6))
    assert killed >= 4
    assert set(ran(broken).values()) <= {"made", "kept"}
    assert content(broken) == content(whole)
    before = server.count
    assert set(ran(broken).values()) == {"kept"}
    assert server.count == before
