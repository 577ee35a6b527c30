"""Your own questions on DICOM and NIfTI files, from the table to the page; and that nobody's name leaves the files."""

from __future__ import annotations

import base64
import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL.Image import open as opened
from pydicom.dataset import Dataset

import proctor as api
from proctor.core import Image, InputError, Scan, VideoClip
from proctor.media import read_image
from proctor.tasks.questions.question_set import read_questions
from tests.support.medical_files import AXIAL, dicom, nifti
from tests.support.program import proctor

GREY = np.arange(64, dtype=np.int16).reshape(8, 8)


def table(folder: Path, *rows: dict[str, Any]) -> Path:
    whole = [
        {"id": f"q{n}", "question": "Is it bright?", "answer": "yes", "patient": f"p{n}"} | row
        for n, row in enumerate(rows)
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in whole), encoding="utf-8")
    return folder


def media_of(folder: Path) -> list[tuple[Any, ...]]:
    read = read_questions(folder)
    assert [str(fault.error(file)) for file, fault in read.faults] == []
    return [item.media for item in read.items]


def faults_of(folder: Path) -> list[str]:
    return [str(fault.error(file)) for file, fault in read_questions(folder).faults]


def test_files_series_frames_and_slices_by_their_paths(tmp_path: Path) -> None:
    dicom(tmp_path / "ct", GREY)  # without an extension, as scanners write them
    (tmp_path / "series").mkdir()
    for name, row in (("x.dcm", 9), ("a.dcm", 30), ("m.dcm", -2)):
        dicom(tmp_path / "series" / name, GREY, ImagePositionPatient=[0, 0, row], ImageOrientationPatient=AXIAL)
    frames = np.zeros((3, 8, 8), dtype=np.uint8)
    dicom(tmp_path / "us.dcm", frames, FrameTime=40)
    dicom(tmp_path / "xa.dcm", frames)
    nifti(tmp_path / "brain.nii.gz", GREY.reshape(4, 4, 4))
    folder = table(
        tmp_path,
        {"media": "ct", "window": [40, 400]},
        {"media": "ct#window=50/100", "window": "40/400"},
        {"media": "series"},
        {"media": "us.dcm", "start": 0.04, "end": 0.12},
        {"media": "us.dcm#frame=2"},
        {"media": "xa.dcm"},
        {"media": ["brain.nii.gz#axial=3", "brain.nii.gz#coronal=0,window=20/30"]},
    )
    own, before, series, clip, frame, every, slices = media_of(folder)
    assert own == (Image(source="ct", scan=Scan(window=(40, 400))),)
    assert before == (Image(source="ct", scan=Scan(window=(50, 100))),)
    assert [(one.source, one.label) for one in series] == [
        ("series/m.dcm", "A"),
        ("series/x.dcm", "B"),
        ("series/a.dcm", "C"),
    ]
    assert clip == (VideoClip(source="us.dcm", start=0.04, end=0.12),)
    assert frame == (Image(source="us.dcm", scan=Scan(frame=2)),)
    assert [one.scan.frame for one in every] == [1, 2, 3]
    assert [(one.scan.axis, one.scan.slice, one.scan.window) for one in slices] == [
        ("axial", 3, None),
        ("coronal", 0, (20.0, 30.0)),
    ]


def test_a_column_called_window_is_a_facet_where_there_are_no_medical_files(tmp_path: Path) -> None:
    from PIL import Image as Pictures

    Pictures.new("RGB", (8, 8)).save(tmp_path / "a.png")
    folder = table(tmp_path, {"image": "a.png", "window": "open"}, {"image": "a.png", "window": "shut"})
    benchmark = api.load(folder)
    assert "window" in benchmark.facets


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"media": "ct.dcm", "window": "wide"}, "found 'wide', expected centre and width of a window, such as 40/400"),
        ({"media": "ct.dcm#frame=7"}, "found 'frame 7 (ct.dcm)', expected 1 to 1"),
        ({"media": "ct.dcm#axial=1"}, "expected a window or a frame of a DICOM file"),
        ({"media": "ct.dcm", "start": 1}, "expected start and end with one video alone"),
        (
            {"media": "b.nii"},
            "expected a slice: #axial=0 to axial=3, #coronal=0 to coronal=3, #sagittal=0 to sagittal=3",
        ),
        ({"media": "b.nii#axial=9"}, "found 'axial slice 9 (b.nii)', expected 0 to 3"),
        ({"media": "two"}, "found 'DICOM files of 2 series (two)', expected one series in a folder"),
        ({"media": "cut.dcm"}, "that can't be decoded, expected whole ones"),
        ({"media": "none.dcm"}, "found 'no DICOM file (128 bytes, then DICM, are its start) (none.dcm)', expected one"),
        ({"media": "a.png#window=1/2"}, "expected a DICOM or NIfTI file for it"),
        ({"media": "../ct.dcm"}, "expected a path below the folder of the questions"),
    ],
)
def test_faults_are_told_with_row_and_column(row: dict[str, Any], found: str, tmp_path: Path) -> None:
    from PIL import Image as Pictures

    Pictures.new("RGB", (8, 8)).save(tmp_path / "a.png")
    dicom(tmp_path / "ct.dcm", GREY)
    nifti(tmp_path / "b.nii", GREY.reshape(4, 4, 4))
    (tmp_path / "two").mkdir()
    for name, uid in (("a", "1.2.3"), ("b", "1.2.4")):
        dicom(tmp_path / "two" / name, GREY, SeriesInstanceUID=uid)
    (tmp_path / "cut.dcm").write_bytes((tmp_path / "ct.dcm").read_bytes()[:-20])
    (tmp_path / "none.dcm").write_bytes(b"nothing of the kind")
    said = proctor(
        "check", table(tmp_path, row), "--out", tmp_path / "page.html", PROCTOR_CACHE=str(tmp_path / "cache")
    )
    assert said.returncode == 1
    assert found in said.stdout, said.stdout
    assert "row 1" in said.stdout
    assert not (tmp_path / "page.html").exists()


def test_nobodys_name_leaves_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text that a file can say of a person, in standard, private and nested elements, and in a broken file's."""
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    private = Dataset()
    private.PatientComments = "Quagga7"
    people: dict[str, Any] = {
        "PatientName": "Quagga7^Q", "PatientID": "Quagga7", "PatientBirthDate": "19770707", "AccessionNumber": "Quagga7",
        "InstitutionName": "Quagga7", "ReferringPhysicianName": "Quagga7", "StudyDescription": "Quagga7",
        "SeriesDescription": "Quagga7", "StudyInstanceUID": "1.2.7777.1", "SeriesInstanceUID": "1.2.7777.2",
        "RequestAttributesSequence": [private], "BurnedInAnnotation": "YES",
    }  # fmt: skip
    (tmp_path / "q").mkdir()
    folder = tmp_path / "q"
    file = dicom(folder / "ct.dcm", GREY, ImagePositionPatient=[0, 0, 1], ImageOrientationPatient=AXIAL, **people)
    content = file.read_bytes()
    nifti(folder / "b.nii", GREY.reshape(4, 4, 4), descrip=b"Quagga7", db_name=b"Quagga7")
    table(folder, {"media": "ct.dcm"}, {"media": "b.nii#axial=1"})
    seen: list[bytes] = []

    async def look(question: Any, view: Any) -> str:
        frames = await view.frames()
        seen.extend(frame.jpeg for frame in frames)
        seen.append(repr((question, [(frame.time, frame.label) for frame in frames])).encode())
        return "yes"

    made = api.run(api.load(folder), look, store=tmp_path / "runs.db", cache=tmp_path / "cache")
    assert any("BurnedInAnnotation YES" in note and "'q0'" in note for note in made.notes)
    made.report(tmp_path / "report.html", media=folder)
    told = [
        proctor("check", folder, "--out", tmp_path / "page.html"),
        proctor("show", folder, "q0", "--store", tmp_path / "runs.db"),
    ]
    (folder / "broken.dcm").write_bytes(content[:-30])
    (folder / "garbled.dcm").write_bytes(content.replace(b"\x28\x00\x10\x00US\x02\x00", b"\x28\x00\x10\x00PNQuagga7 "))
    for name in ("broken.dcm", "garbled.dcm"):
        with pytest.raises(InputError) as refused:
            read_image(folder / name)
        seen.append(str(refused.value).encode())
    written = [one for one in tmp_path.rglob("*") if one.is_file() and one.parent != folder]
    assert len(seen) == 6
    assert len(written) > 4
    page = (tmp_path / "report.html").read_text()
    pictures = [base64.b64decode(one) for one in re.findall(r"data:image/jpeg;base64,([A-Za-z0-9+/=]+)", page)]
    texts = [
        *seen,
        *pictures,
        *(one.read_bytes() for one in written),
        *((one.stdout + one.stderr).encode() for one in told),
    ]
    for text in texts:
        for secret in (
            b"Quagga7",
            b"1.2.7777",
            b"19770707",
            "Quagga7".encode("utf-16-le"),
            base64.b64encode(b"Quagga7")[:8],
        ):
            assert secret not in text
    assert all("exif" not in opened(BytesIO(one)).info for one in seen if one.startswith(b"\xff\xd8"))


def test_conditions_reproduction_and_frames(tmp_path: Path) -> None:
    folder = tmp_path / "q"
    (folder / "s").mkdir(parents=True)
    for index in range(4):
        values = np.full((8, 8), 60 * index, dtype=np.int16)
        dicom(
            folder / "s" / f"{9 - index}.dcm", values, ImagePositionPatient=[0, 0, index], ImageOrientationPatient=AXIAL
        )
    nifti(folder / "b.nii", GREY.reshape(4, 4, 4))
    table(folder, {"media": "s", "window": "90/180"}, {"media": "b.nii#axial=1"})
    seen: dict[str, list[int]] = {}

    async def look(question: Any, view: Any) -> str:
        frames = await view.frames()
        if len(frames) > 1:
            seen[view.condition] = [round(int(np.asarray(opened(BytesIO(one.jpeg)))[0, 0, 0]) / 85) for one in frames]
        return "yes"

    conditions = ["video", "black", "reversed", "shuffled", "other-video", "text-only"]
    made = api.run(api.load(folder), look, conditions=conditions, store=tmp_path / "runs.db", cache=tmp_path / "cache")
    assert seen["video"] == [0, 1, 2, 3]
    assert seen["reversed"] == [3, 2, 1, 0]
    assert sorted(seen["shuffled"]) == [0, 1, 2, 3] != seen["shuffled"]
    assert seen["black"] == [0, 0, 0, 0]
    assert len(set(seen["other-video"])) == 1
    found = api.reproduce(made, media=folder)
    assert [row["state"] for row in found.rows] == ["same"] * 12
    dicom(
        folder / "s" / "9.dcm",
        np.full((8, 8), 170, dtype=np.int16),
        ImagePositionPatient=[0, 0, 0],
        ImageOrientationPatient=AXIAL,
    )
    again = api.reproduce(made, media=folder, conditions="video")
    assert sorted((row["item"], row["state"]) for row in again.rows) == [("q0", "different"), ("q1", "same")]

    def frames(*words: str | Path) -> list[dict[str, Any]]:
        said = proctor("media", "frames", *words, "--cache", tmp_path / "cache", "--format", "json")
        assert said.stderr == ""
        return list(json.loads(said.stdout))

    (still,) = frames(folder / "b.nii", "--scan", "axial=1,window=8/16", "--out", tmp_path / "out")
    assert (still["codec"], still["width"], still["height"]) == ("still", 4, 4)
    assert [one.name for one in (tmp_path / "out" / "b").iterdir()] == ["000000_0.000s.jpg"]
    dicom(folder / "us.dcm", np.zeros((5, 8, 8), dtype=np.uint8), FrameTime=200)
    (clip,) = frames(folder / "us.dcm", "--fps", "5", "--scan", "window=40/400")
    assert (clip["codec"], clip["fps"], clip["duration_s"], clip["frames"]) == ("dicom", 5.0, 1.0, 5)
    assert proctor("media", "frames", folder / "b.nii", "--scan", "axial").returncode == 2


def test_a_judge_is_shown_what_the_item_names(tmp_path: Path) -> None:
    """Judges of dimensions look at an item's images by their files, past the view."""
    from proctor.judges.dimensions.model_judge import _load

    dicom(tmp_path / "ct.dcm", np.full((8, 8), 50, dtype=np.int16), WindowCenter=500, WindowWidth=10)
    scans = (None, Scan(window=(0, 10)))
    loaded = _load(tmp_path, ("ct.dcm", "ct.dcm"), scans, "image {position} of {count}")
    levels = [int(np.asarray(opened(BytesIO(one.jpeg)))[0, 0, 0]) for one in loaded.frames]
    assert levels == [0, 255]
    assert loaded.problems == ()
