"""`proctor media pose` as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.media.test_pose_files import coco
from tests.media.test_pose_network import column, constant, jpeg
from tests.support.program import proctor


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
        ((folder,), 2, "one of --weights and --keypoints is needed, and only one"),
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
