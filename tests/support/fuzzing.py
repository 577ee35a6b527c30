"""Broken files for every reader: small good ones, and what time, tools and people do to them.

Used by `tests/repository/test_fuzz.py` for a minute, and by `bench/fuzz.py` for as long as one likes.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from proctor.core import InputError, ProctorError
from tests.support.medical_files import dicom, lookup_table, nifti
from tests.support.tiny_pdf import tiny_pdf
from tests.support.track_files import COCO, CVAT, box


@dataclass(frozen=True)
class Target:
    """A reader: `write` puts good files into a folder and returns those that are to be broken, `read` reads them."""

    write: Callable[[Path], list[Path]]
    read: Callable[[Path], object]


def one_case(name: str, seed: int, folder: Path) -> str:
    """Breaks one file of a target and reads it: "accepted", or the refusal. Every other exception comes out."""
    target, draw = TARGETS[name], random.Random(f"{name} {seed}")
    file = draw.choice(target.write(folder))
    file.write_bytes(broken(file.read_bytes(), draw))
    try:
        target.read(folder)
    except ProctorError as error:
        message = str(error)
        if "\n" in message:
            raise AssertionError(f"a refusal of several lines: {message!r}") from error
        return message
    return "accepted"


# ── how files break ──


def broken(content: bytes, draw: random.Random) -> bytes:
    """The content with one to three changes."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        content = draw.choice(_CHANGES)(content, draw)
    return content


_VALUES = (
    b"null", b"true", b"[]", b"{}", b'""', b"0", b"-1", b"1e999", b"-1e999", b"NaN", b"Infinity", b"1.5", b'"x"',
    b"9" * 400, b"9" * 5_000, b"-0.0", b"0" * 60, b'"\\ud800"', b'"\\u0000"', b'"' + b"x" * 70_000 + b'"',
    b"[" * 3_000 + b"]" * 3_000, b"2147483648", b"9223372036854775808", b"1e-400", b"[null]", b"{\"a\": null}",
    "\u0663".encode(), "\u00b2".encode(), "\u202e".encode(), b"\xff", b"\x00", b"\xed\xa0\x80", b"<!DOCTYPE x>", b"&a;",
)  # fmt: skip
_TOKEN = re.compile(rb'"[^"\n]{0,80}"|-?\d+(?:\.\d+)?|true|false|null')


def _cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content) + 1)]


def _flip(content: bytes, draw: random.Random) -> bytes:
    out = bytearray(content)
    for _ in range(draw.choice((1, 1, 4, 32))):
        if out:
            out[draw.randrange(len(out))] = draw.randrange(256)
    return bytes(out)


def _insert(content: bytes, draw: random.Random) -> bytes:
    row = draw.randrange(len(content) + 1)
    return content[:row] + draw.choice(_VALUES) + content[row:]


def _drop(content: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(content) + 1)
    return content[:start] + content[start + draw.choice((1, 3, 20, 400)) :]


def _double(content: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(content) + 1)
    end = start + draw.choice((1, 30, 500))
    return content[:end] + content[start:]


def _token(content: bytes, draw: random.Random) -> bytes:
    found = list(_TOKEN.finditer(content[:200_000]))
    if not found:
        return _insert(content, draw)
    one = draw.choice(found)
    return content[: one.start()] + draw.choice(_VALUES) + content[one.end() :]


def _swap(content: bytes, draw: random.Random) -> bytes:
    found = list(_TOKEN.finditer(content[:200_000]))
    if not found:
        return _flip(content, draw)
    one, other = draw.choice(found), draw.choice(found)
    return content[: one.start()] + other[0] + content[one.end() :]


def _encode(content: bytes, draw: random.Random) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(draw.choice(("utf-16", "utf-8-sig", "utf-32", "cp1252", "latin-1")), "replace")


def _nothing(content: bytes, draw: random.Random) -> bytes:
    del content
    return draw.choice((b"", b" ", b"\n", b"\x00" * 40, b"{}", b"[]", b"null", b"\xef\xbb\xbf", b"<" * 5_000))


_CHANGES = (_cut, _flip, _insert, _drop, _double, _token, _token, _token, _swap, _swap, _encode, _nothing)


# ── small good files, and their readers ──


def _json(file: Path, value: object) -> Path:
    file.write_text(json.dumps(value), encoding="utf-8")
    return file


def _lines(file: Path, values: list[dict[str, object]]) -> Path:
    file.write_text("".join(json.dumps(one) + "\n" for one in values), encoding="utf-8")
    return file


def _focus(folder: Path) -> list[Path]:
    formats: list[tuple[str, str, dict[str, object]]] = [
        ("number", "3", {}),
        ("percentage", "40", {"threshold_pp": 5}),
        ("binary", "yes", {}),
        ("time", "00:01:05", {"threshold_seconds": 2}),
        ("fo_class", "Clip, Sponge", {}),
        ("open_ended", "a clip", {}),
    ]
    asked = [
        {
            "qID": f"q{n}", "videoID": f"v{n % 2}.mp4", "start_time": 0.0, "end_time": 90.0 + n,
            "procedure_type": "hernia repair", "question": "What?",
        }
        for n in range(len(formats))
    ]  # fmt: skip
    keys = [
        {
            "qID": f"q{n}", "answer": answer, "format": name, "format_kwargs": more,
            "primary": "object_identification", "secondaries": [], "clinical": True, "ood": False,
        }
        for n, (name, answer, more) in enumerate(formats)
    ]  # fmt: skip
    said = [{"qID": f"q{n}", "content": answer, "latency": 1.5} for n, (_, answer, _) in enumerate(formats)]
    return [
        _json(folder / "requests.json", asked),
        _json(folder / "references.json", keys),
        _json(folder / "responses.json", said),
    ]


def _read_focus(folder: Path) -> object:
    from proctor.tasks.focus import READER

    benchmark = READER.load(folder)
    return READER.read_recorded(folder / "responses.json", benchmark)


def _clinicalskillqa(folder: Path) -> list[Path]:
    from PIL import Image

    orders = [["B", "A", "D", "C"], ["A", "B", "C", "D"]]
    for number, _ in enumerate(orders):
        (folder / f"i{number}").mkdir()
        for row, label in enumerate("ABCD"):
            Image.new("RGB", (16, 12), (40 * row, 30 * number, 9)).save(folder / f"i{number}" / f"{label}.jpg")
    keys: list[dict[str, object]] = [
        {"id": f"i{n}", "order": order, "rationale": "It is so.", "video": "v", "scenario": "CPR"}
        for n, order in enumerate(orders)
    ]
    said: list[dict[str, object]] = [{"id": f"i{n}", "order": "B > A > C > D", "rationale": "So."} for n in range(2)]
    table = "id,order,rationale\n" + "".join(f'{one["id"]},"{one["order"]}","So."\n' for one in said)
    (folder / "predictions.csv").write_text(table, encoding="utf-8")
    return [
        _json(folder / "references.json", keys),
        _lines(folder / "predictions.jsonl", said),
        folder / "predictions.csv",
        folder / "i0" / "A.jpg",
    ]


def _read_clinicalskillqa(folder: Path) -> object:
    from proctor.tasks.clinicalskillqa import READER
    from proctor.tasks.clinicalskillqa.native import read_predictions

    benchmark = READER.load(folder)
    read_predictions(folder / "predictions.csv")
    return READER.read_recorded(folder / "predictions.jsonl", benchmark)


def _rexsonovqa(folder: Path) -> list[Path]:
    question = {
        "question": "[MCQ] What is done?\nA. one\nB. two\nC. three\nD. four", "answer": "A", "groundtruth": "It is seen.",
        "time_start": 1.0, "time_end": 6.0, "keep": True, "question_type": "Type1_ActionGoalReasoning",
    }  # fmt: skip
    (folder / "benchmark_questions" / "mcq").mkdir(parents=True)
    (folder / "benchmark_questions" / "free").mkdir(parents=True)
    region = {"x_prop": 0.4, "y_prop": 0.3, "w_prop": 0.4, "h_prop": 0.4}
    video = {"v": {"youtube_url": "https://example.org/v", "start_time": 3.0, "end_time": 90.0, "roi": region}}
    free = question | {"question": "[FREE] What is done?", "answer": "The depth is changed."}
    return [
        _json(folder / "benchmark_questions" / "mcq" / "v.json", [question]),
        _json(folder / "benchmark_questions" / "free" / "v.json", [free]),
        _json(folder / "video_metadata_new.json", video),
    ]


def _read_rexsonovqa(folder: Path) -> object:
    from proctor.tasks.rexsonovqa import READER

    return READER.load(folder)


_DIMENSIONS = ("overall", "disagree_flag", "completeness", "factual-accuracy", "relevance", "writing-style")


def _mediqa(folder: Path) -> list[Path]:
    rows = ["dataset,encounter_id,lang,candidate_author_id,metric,candidate,value,rater_id"]
    for number in range(4):
        rows += [f'iiyi,E{number},en,A1,{one},"A rash, {number}.",{float(number % 2)},R1' for one in _DIMENSIONS]
    (folder / "ratings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    encounters: list[dict[str, object]] = [
        {"dataset": "iiyi", "encounter_id": f"E{n}", "lang": "en", "query": "What is it?", "references": ["A rash."]}
        for n in range(4)
    ]
    return [folder / "ratings.csv", _lines(folder / "encounters.jsonl", encounters)]


def _read_mediqa(folder: Path) -> object:
    from proctor.tasks.mediqa_eval import read_encounters, read_native_ratings, read_submission

    errors = []
    for read in (
        lambda: read_encounters(folder / "encounters.jsonl"),
        lambda: read_submission(folder / "ratings.csv", read_native_ratings(folder / "ratings.csv")),
    ):
        try:
            read()
        except ProctorError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return None


def _ratings(folder: Path) -> list[Path]:
    rows = ["item,candidate,system,dimension,rater,value"]
    rows += [f"d{n % 3},text {n},m{n},fluency,r{n % 2},{n % 5}" for n in range(12)]
    (folder / "ratings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return [folder / "ratings.csv"]


def _read_ratings(folder: Path) -> object:
    from proctor.audits import read_ratings

    return read_ratings(folder / "ratings.csv")


def _tracks(folder: Path) -> list[Path]:
    cvat = CVAT.format(tracks=f'<track id="3" label="Sponge" source="manual">{box(1)}{box(40, 9)}</track>')
    (folder / "cvat.xml").write_text(cvat, encoding="utf-8")
    return [folder / "cvat.xml", _json(folder / "coco.json", COCO)]


def _read_tracks(folder: Path) -> object:
    from proctor.tracks import ReadDefaults
    from proctor_build.files import read_annotations

    return [read_annotations([folder / name], ReadDefaults(fps=10)) for name in ("cvat.xml", "coco.json")]


def _own_tracks(folder: Path) -> list[Path]:
    from tests.support.hand_tracks import HAND

    (folder / "v.json").write_text(
        json.dumps({"kind": "annotated video", "format_version": 1} | HAND.model_dump(mode="json"))
    )
    return [folder / "v.json"]


def _read_own_tracks(folder: Path) -> object:
    from proctor_build.files import read_annotations

    return read_annotations([folder / "v.json"])


def _workflow(folder: Path) -> list[Path]:
    from importlib.resources import files

    source = files("proctor.tasks.clinicalskillqa.methods").joinpath("workflows/cpr.yaml")
    (folder / "tea.yaml").write_bytes(source.read_bytes())
    return [folder / "tea.yaml"]


def _read_workflow(folder: Path) -> object:
    from proctor.tasks.clinicalskillqa.methods.workflow import check_workflow, load_workflow

    check_workflow(folder / "tea.yaml")
    return load_workflow(folder / "tea.yaml")


def _keypoints(folder: Path) -> list[Path]:
    from proctor.tasks.clinicalskillqa.keypoints import KEYPOINTS

    native = {
        "images": [{"id": 1, "file_name": "A.jpg", "width": 80, "height": 50}],
        "annotations": [{"image_id": 1, "category_id": 1, "keypoints": [5, 5, 2] * len(KEYPOINTS)}],
        "categories": [{"id": 1, "name": "person", "keypoints": list(KEYPOINTS)}],
    }
    return [_json(folder / "keypoints.json", native)]


def _read_keypoints(folder: Path) -> object:
    from proctor.tasks.clinicalskillqa.keypoints import open_pose

    return open_pose(folder / "keypoints.json").look(b"", "A.jpg")


def _events(folder: Path) -> list[Path]:
    return [
        _json(
            folder / "v.json",
            {"events": [{"start": 1.5, "end": 3, "text": "A clip."}, {"start": 4, "end": 5, "text": "B."}]},
        )
    ]


def _read_events(folder: Path) -> object:
    from proctor.tasks.clinicalskillqa.instances import read_events

    return read_events(folder, "v.mp4")


def _prompt(folder: Path) -> list[Path]:
    (folder / "prompt.txt.j2").write_text(
        "{% block user %}{{ question }}{% for o in options %}{{ o }}{% endfor %}{% endblock %}"
    )
    return [folder / "prompt.txt.j2"]


def _read_prompt(folder: Path) -> object:
    from proctor.models import load_prompt

    return load_prompt(folder / "prompt.txt.j2").render(question="What?", options=["a"])


def _documents(folder: Path) -> list[Path]:
    (folder / "a.pdf").write_bytes(tiny_pdf(["one two three", "four five"]))
    (folder / "b.md").write_text("# Rashes\n\nA rash is red.\n", encoding="utf-8")
    return [folder / "a.pdf", folder / "b.md"]


def _read_documents(folder: Path) -> object:
    from proctor.judges.documents import document_hashes, read_document

    known = document_hashes(folder)
    return [read_document(folder, source, known) for source in known]


def _weights(folder: Path) -> list[Path]:
    from proctor.core import write_arrays

    write_arrays(folder / "w.npz", {"en/offset": np.zeros(3), "en/dimensions": np.array(["a", "b"])})
    return [folder / "w.npz"]


def _read_weights(folder: Path) -> object:
    from proctor_train.mediqa_eval.embedded.judge import read_weights

    return read_weights(folder / "w.npz")


def _store(folder: Path) -> list[Path]:
    from proctor.core import Answer, Score
    from proctor.runs import Store
    from tests.runs.test_store import a_benchmark, a_run

    store = Store(folder / "runs.db")
    benchmark = a_benchmark(6)
    run = a_run(store, benchmark)
    store.write(
        run,
        [
            (Answer(item_id=item.id, text="1", parsed=1), [Score(item_id=item.id, metric="accuracy", value=1.0)])
            for item in benchmark.items
        ],
    )
    store.close()
    return [folder / "runs.db"]


def _read_store(folder: Path) -> object:
    from proctor.results import Options, results
    from proctor.runs import Store, check_store

    store = Store(folder / "runs.db", create=False)
    try:
        list(check_store(store))
        for name in store.benchmark_names():
            results(store, name, Options(draws=100))
    finally:
        store.close()
    return None


def _frames(folder: Path) -> list[Path]:
    from tests.support.picture_maker import ask

    ask(folder / "cache", folder / "log", [1, 2])
    return list((folder / "cache").rglob("*.zip"))


def _read_frames(folder: Path) -> object:
    from proctor.media import damaged, kept
    from tests.support.picture_maker import ask, jpeg_of

    list(damaged(folder / "cache"))
    for entry in kept(folder / "cache"):
        entry.source()
    if ask(folder / "cache", folder / "log", [1, 2]) != {1: jpeg_of(1), 2: jpeg_of(2)}:
        raise AssertionError("other pictures")
    if (folder / "log").read_text().count("done") > 1:
        raise InputError(None, found="a damaged entry, which was made anew")
    return None


def _dicom(folder: Path) -> list[Path]:
    from pydicom.dataset import Dataset

    frames = np.arange(3 * 12 * 10, dtype=np.uint16).reshape(3, 12, 10)
    voi, group = Dataset(), Dataset()
    voi.WindowCenter, voi.WindowWidth = 100, 200
    group.FrameVOILUTSequence = [voi]
    said: dict[str, Any] = {"RescaleSlope": 2, "RescaleIntercept": -10, "PixelSpacing": [1, 1], "PatientName": "A^B"}
    return [
        dicom(folder / "a.dcm", frames, FrameTimeVector=[0, 40, 40], PerFrameFunctionalGroupsSequence=[group] * 3),
        dicom(folder / "b.dcm", frames[0], VOILUTSequence=[lookup_table(0, [0, 9, 99], 8)], **said),
        dicom(folder / "c.dcm", frames[0], syntax="1.2.840.10008.1.2.1.99", WindowCenter=3, WindowWidth=9),
    ]


def _read_dicom(folder: Path) -> object:
    from proctor.core import Scan
    from proctor.media import dicom_facts, read_image

    return [(dicom_facts(file), read_image(file, Scan(frame=1))) for file in sorted(folder.glob("*.dcm"))]


def _nifti(folder: Path) -> list[Path]:
    values = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    return [
        nifti(folder / "a.nii", values),
        nifti(folder / "b.nii.gz", values.astype(np.float32), cal_min=1, cal_max=9),
    ]


def _read_nifti(folder: Path) -> object:
    from proctor.core import Scan
    from proctor.media import nifti_facts, read_image

    scans = (Scan(axis="axial", slice=1), Scan(axis="sagittal", slice=1, window=(3, 9)))
    return [(nifti_facts(file), read_image(file, scan)) for file in sorted(folder.glob("*.nii*")) for scan in scans]


TARGETS: dict[str, Target] = {
    "focus": Target(_focus, _read_focus),
    "clinicalskillqa": Target(_clinicalskillqa, _read_clinicalskillqa),
    "rexsonovqa": Target(_rexsonovqa, _read_rexsonovqa),
    "mediqa-eval": Target(_mediqa, _read_mediqa),
    "ratings": Target(_ratings, _read_ratings),
    "tracks": Target(_tracks, _read_tracks),
    "own tracks": Target(_own_tracks, _read_own_tracks),
    "workflow": Target(_workflow, _read_workflow),
    "keypoints": Target(_keypoints, _read_keypoints),
    "events": Target(_events, _read_events),
    "prompt": Target(_prompt, _read_prompt),
    "documents": Target(_documents, _read_documents),
    "weights": Target(_weights, _read_weights),
    "store": Target(_store, _read_store),
    "frames": Target(_frames, _read_frames),
    "dicom": Target(_dicom, _read_dicom),
    "nifti": Target(_nifti, _read_nifti),
}
