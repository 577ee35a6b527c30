"""ClinicalSkillQA: its files, its faults, its scores worked by hand, and the published table."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from proctor.core import BENCHMARKS, NO_ANSWER, Image, InputError
from proctor.core.formats import OrderingFormat
from proctor.media import MediaLibrary, view
from proctor.metrics import AccuracyScorer
from proctor.metrics.ordering import overall_score
from proctor.metrics.text import BertScore, MissingExtraError
from proctor.metrics.text.encoders import LongTexts, TextTokens
from proctor.tasks.clinicalskillqa import READER, published, score_predictions
from proctor.tasks.clinicalskillqa.native import read_predictions, read_references
from proctor.tasks.clinicalskillqa.scoring import NO_RATIONALE_SCORE, ScoredPredictions, report

KEYS: list[dict[str, Any]] = [
    {"id": "q1", "order": ["D", "B", "A", "C"], "rationale": "First the scene.", "scenario": "CPR", "video": "v1"},
    {"id": "q2", "order": "B > A > D > C", "scenario": "CPR", "video": "v1"},
    {"id": "q3", "order": ["F", "E", "D", "C", "B", "A"], "scenario": "AED", "video": "v2"},
    {"id": "q4", "order": ["A", "B", "C", "D"], "scenario": "BMV", "video": "v3"},
]


def frames(folder: Path, labels: str, shade: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, label in enumerate(labels):
        Pillow.new("RGB", (40, 30), (20 * number + 10, shade, 80)).save(folder / f"{label}.jpg")


def written(file: Path, value: Any) -> Path:
    text = "\n".join(map(json.dumps, value)) if file.suffix == ".jsonl" else json.dumps(value)
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "task"
    for number, key in enumerate(KEYS):
        frames(root / key["id"], "ABCDEF"[: 6 if key["id"] == "q3" else 4], shade=40 * number)
    written(root / "references.json", KEYS)
    return root


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        READER.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{folder}/", "")


# ── reading ──


def test_a_folder_per_instance_is_read(folder: Path) -> None:
    benchmark = BENCHMARKS.get("clinicalskillqa").load(folder)
    assert [item.id for item in benchmark.items] == ["q1", "q2", "q3", "q4"]
    first, _, third, _ = benchmark.items
    assert first.answer == OrderingFormat(labels=("A", "B", "C", "D"))
    assert first.media == tuple(Image(source=f"q1/{label}.jpg", label=label) for label in "ABCD")
    assert (first.group, first.tags) == ("v1", {"frames": 4, "neighbours": 3, "scenario": "CPR", "video": "v1"})
    assert first.reference is not None
    assert (first.reference.answer, first.reference.rationale) == (["D", "B", "A", "C"], "First the scene.")
    assert "cardiopulmonary resuscitation" in first.question
    assert third.answer == OrderingFormat(labels=tuple("ABCDEF"))
    shown = asyncio.run(view(first, "video", MediaLibrary(folder, cache_dir=folder.parent / "c")).frames())
    assert [(frame.label, frame.time) for frame in shown] == [(label, None) for label in "ABCD"]
    assert benchmark.fingerprint == READER.load(folder, seed=5).fingerprint


def test_scenarios_may_be_folders_and_references_may_be_absent(tmp_path: Path) -> None:
    frames(tmp_path / "instances" / "BMV" / "x", "ABCD")
    benchmark = READER.load(tmp_path)
    (item,) = benchmark.items
    assert (item.group, item.tags["scenario"], item.reference) == ("x", "BMV", None)
    missing, alone = benchmark.notes
    assert missing == "There are no references: answers can't be scored."
    assert alone.startswith("1 of 1 instance without a source video, each a group of its own")


def test_who_reads_intervals_is_told_where_groups_are_not_known(tmp_path: Path, folder: Path) -> None:
    assert READER.load(folder).notes == ()
    nameless = [{key: value for key, value in one.items() if key != "video"} for one in KEYS]
    predictions, keys = written(tmp_path / "said.json", SAID), written(tmp_path / "keys.json", nameless)
    found = score_predictions(predictions, keys, draws=100)
    assert found.without_video == 4
    assert "4 of 4 instances without a source video" in report(found, predictions, keys).notes[0]


def test_a_manifest_names_the_frames(tmp_path: Path) -> None:
    frames(tmp_path / "pictures", "ABCDE")
    entry = {
        "id": "x",
        "frames": {label: f"pictures/{name}.jpg" for label, name in zip("DCBA", "ABDE", strict=True)},
        "scenario": "AED",
        "video": "v9",
    }
    for file, value in (("manifest.json", {"instances": [entry]}), ("manifest.jsonl", [entry])):
        written(tmp_path / file, value)
        (item,) = READER.load(tmp_path).items
        assert item.media == tuple(
            Image(source=f"pictures/{name}.jpg", label=label) for label, name in zip("ABCD", "EDBA", strict=True)
        )
        assert item.group == "v9"
        (tmp_path / file).unlink()


# ── faults ──


def test_an_image_that_is_missing(folder: Path) -> None:
    (folder / "q2" / "B.jpg").unlink()
    assert refused(folder) == "q2/B.jpg: item 'q2': found no such image, expected all of A, B, C, D"


def test_an_image_that_is_missing_at_the_end(folder: Path) -> None:
    (folder / "q2" / "D.jpg").unlink()
    assert refused(folder) == (
        "references.json: item 'q2', field 'order': found B > A > D > C, expected the labels of its frames, A, B, C"
    )


def test_an_image_that_a_manifest_names_and_nobody_has(tmp_path: Path) -> None:
    frames(tmp_path, "A")
    written(tmp_path / "manifest.json", [{"id": "x", "frames": {"A": "A.jpg", "B": "B.jpg"}}])
    assert refused(tmp_path) == "B.jpg: item 'x', label B: found no such image, expected an image"


@pytest.mark.parametrize("cut", [0, 5, 300])
def test_an_image_that_is_unreadable(folder: Path, cut: int) -> None:
    file = folder / "q3" / "C.jpg"
    file.write_bytes(file.read_bytes()[:cut])
    assert refused(folder).startswith("q3/C.jpg: item 'q3', label C: found an unreadable image (")


def test_an_image_twice(folder: Path) -> None:
    (folder / "q1" / "A.png").write_bytes((folder / "q1" / "A.jpg").read_bytes())
    assert refused(folder) == "q1/A.png: item 'q1': found the image A twice, expected an image per label"
    (folder / "q1" / "A.png").unlink()
    (folder / "q1" / "D.jpg").write_bytes((folder / "q1" / "A.jpg").read_bytes())
    assert refused(folder) == "q1/D.jpg: item 'q1', label D: found the same picture as A, expected another one"
    written(folder / "manifest.json", [{"id": "q1", "frames": {"A": "q1/A.jpg", "B": "q1/A.jpg"}}])
    assert refused(folder) == "manifest.json: item 'q1': found the image 'q1/A.jpg' twice, expected an image per label"


def test_a_name_that_is_no_label_and_a_name_that_leads_out(folder: Path) -> None:
    (folder / "q1" / "first.jpg").write_bytes((folder / "q1" / "A.jpg").read_bytes())
    assert refused(folder) == ("q1/first.jpg: item 'q1': found the name 'first.jpg', expected a label, A to Z, as name")
    written(folder / "manifest.json", [{"id": "q1", "frames": {"A": "q1/A.jpg", "B": "../B.jpg"}}])
    assert "item 'q1', label B: found a name that leads out of the folder" in refused(folder)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ([*KEYS, KEYS[0]], "item 'q1': found it a second time (entry 5), expected each item once"),
        (
            [{"id": "q1", "order": ["A", "B", "B", "C"]}],
            "item 'q1', field 'order': found A > B > B > C, expected a permutation of A, B, C, D",
        ),
        (
            [{"id": "q1", "order": ["A", "C", "E", "D"]}],
            "item 'q1', field 'order': found A > C > E > D, expected a permutation of A, B, C, D",
        ),
        ([{"id": "q1", "order": []}], "item 'q1', field 'order': found an empty order, expected two labels or more"),
        ([{"id": "q1"}], "item 'q1', field 'order': found nothing, expected a value"),
        ([{"order": "A > B"}], "entry 1, field 'id': found nothing, expected a value"),
        (KEYS[:3], "item 'q4': found no reference, expected one per instance"),
        ([*KEYS, {"id": "q5", "order": "A > B"}], "item 'q5': found a reference without frames, expected an instance"),
        (
            [*KEYS[:3], {"id": "q4", "order": "B > A > C"}],
            "item 'q4', field 'order': found B > A > C, expected the labels of its frames, A, B, C, D",
        ),
        ([{**KEYS[0], "scenario": "ECG"}], "item 'q1', field 'scenario': found 'ECG', expected 'CPR', 'AED' or 'BMV'"),
        ([], "found no entry, expected one or more"),
        ("x", "found str, expected a list of objects"),
    ],
)
def test_references_that_are_refused(folder: Path, keys: Any, text: str) -> None:
    written(folder / "references.json", keys)
    assert refused(folder) == f"references.json: {text}"


def test_of_two_files_nobody_says_which_one_holds(folder: Path) -> None:
    written(folder / "references.jsonl", KEYS)
    assert refused(folder) == "references.jsonl: found references.json beside it, expected one of them alone"
    (folder / "references.jsonl").unlink()
    for name in ("manifest.json", "manifest.jsonl"):
        written(folder / name, [{"id": "q1", "frames": {"A": "q1/A.jpg", "B": "q1/B.jpg"}}])
    assert refused(folder) == "manifest.jsonl: found manifest.json beside it, expected one of them alone"


def test_folders_that_hold_nothing(tmp_path: Path) -> None:
    assert "found no instance, expected a manifest, or a folder per instance" in refused(tmp_path)
    (tmp_path / "x").mkdir()
    assert "item 'x': found 0 images, expected A.jpg, B.jpg" in refused(tmp_path)
    assert "found no such folder" in refused(tmp_path / "nowhere")


# ── predictions ──

SAID: list[dict[str, Any]] = [
    {"id": "q1", "order": ["D", "B", "A", "C"], "rationale": "Because."},
    {"id": "q2", "order": "b > A > C > X"},
    {"id": "q3", "order": ["A", "B", "C", "D", "E", "F"]},
]


def files_of(folder: Path) -> list[Path]:
    rows = (
        'id,order,rationale\nq1,D > B > A > C,Because.\nq2,b->A->C->X,\nq3,"[""A"",""B"",""C"",""D"",""E"",""F""]",\n'
    )
    (folder / "p.csv").write_text(rows, encoding="utf-8-sig")
    mapped = {one["id"]: {name: value for name, value in one.items() if name != "id"} for one in SAID}
    bare = {one["id"]: one["order"] for one in SAID}
    return [
        written(folder / "p.json", SAID),
        written(folder / "p.jsonl", SAID),
        written(folder / "mapped.json", mapped),
        written(folder / "bare.json", bare),
        written(folder / "inside.json", {"predictions": SAID}),
        folder / "p.csv",
    ]


def test_all_forms_of_predictions_say_the_same(tmp_path: Path) -> None:
    orders = [{name: one.order for name, one in read_predictions(file).items()} for file in files_of(tmp_path)]
    assert orders[0] == {"q1": tuple("DBAC"), "q2": ("b", "A", "C", "X"), "q3": tuple("ABCDEF")}
    assert all(one == orders[0] for one in orders)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("p.txt", "x", "found a file named 'p.txt', expected a .json, .jsonl or .csv file"),
        ("p.json", "{", "line 1, column 2: found the end of the file: it is cut off"),
        ("p.jsonl", '{"id": "q1", "order": []}\n{', "line 2, column 2: found the end of the file: it is cut off"),
        ("p.json", '{"q1": "A > B", "q1": "B > A"}', "found the key 'q1' twice, expected each key once"),
        ("p.csv", "id,answer\nq1,A", "row 1: found no column 'order', expected the columns id, order"),
        ("p.csv", "id,order\nq1,A,B", "row 2: found 3 columns, expected 2 columns"),
        ("p.csv", "id,order\nq1,A>B\nq1,B>A", "item 'q1': found it a second time (row 3), expected each item once"),
        (
            "p.json",
            '[{"id": "q1", "order": 5}]',
            "item 'q1', field 'order': found 5, expected a list of labels, or a text",
        ),
        ("p.json", '[{"id": "q1", "order": [1, 2]}]', "item 'q1', field 'order.0': found 1, expected"),
        ("p.json", '["A > B"]', "entry 1: found 'A > B', expected"),
    ],
)
def test_predictions_that_are_refused(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_predictions(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name}: {problem}")


def test_bytes_that_are_no_text_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="found text that is not UTF-8"):
        read_predictions(tmp_path / "p.json")
    with pytest.raises(InputError, match="found no such file"):
        read_references(tmp_path / "none.json")


def test_predictions_as_recorded_answers(folder: Path) -> None:
    benchmark = READER.load(folder)
    recorded = READER.read_recorded(written(folder / "p.json", SAID), benchmark)
    assert [answer.parsed for answer in recorded.answers] == [list("DBAC"), ["B", "A", "C", "X"], list("ABCDEF"), None]
    assert recorded.answers[0].extra == {"rationale": "Because."}
    assert recorded.answers[3].reason == NO_ANSWER
    assert recorded.notes == ("1 of 4 items have no answer and are wrong",)
    pairs = zip(benchmark.items, recorded.answers, strict=True)
    labels = [AccuracyScorer().compute(item, answer).label for item, answer in pairs]
    assert labels == ["right", "wrong", "wrong", "missing"]
    written(folder / "p.json", [{"id": "q9", "order": "A > B"}])
    with pytest.raises(InputError, match="item 'q9': found an unknown item, expected the benchmark's items alone"):
        READER.read_recorded(folder / "p.json", benchmark)


# ── scores ──


def scored(
    tmp_path: Path, said: list[dict[str, Any]] | None = None, *, keys: list[dict[str, Any]] = KEYS, **more: Any
) -> ScoredPredictions:
    predictions = written(tmp_path / "said.json", SAID if said is None else said)
    return score_predictions(predictions, written(tmp_path / "keys.json", keys), draws=100, **more)


def test_scores_by_hand(tmp_path: Path) -> None:
    # q1 right: 3 of 3. q2 B > A > C, D missing: only B>A of 3 holds. q3 backwards: 0 of 5. q4 not there: 0 of 3.
    found = scored(tmp_path, invalid="partial")
    scores = {score.metric.name: score.estimate.value for score in found.slices[0].scores}
    assert scores["task_accuracy"] == 0.25
    assert scores["pairwise_accuracy"] == pytest.approx(4 / 14)
    assert scores["up_to_reversal"] == 0.5
    assert scores["kendall_tau"] == pytest.approx((1 + 0 - 1 - 1) / 4)  # q2: 3 of 6 pairs
    assert found.unanswered == ("q4",)
    assert list(found.faulty) == ["q2"]
    assert (found.faulty["q2"].missing, found.faulty["q2"].unknown) == (("D",), ("X",))
    assert [(one.by, one.value, one.items) for one in found.slices] == [
        ("all", "", 4),
        ("scenario", "AED", 1),
        ("scenario", "BMV", 1),
        ("scenario", "CPR", 2),
        ("frames", "4", 3),
        ("frames", "6", 1),
    ]
    assert found.slices[0].chances["task_accuracy"] == pytest.approx((3 / 24 + 1 / 720) / 4)
    assert found.slices[0].chances["last_right"] == pytest.approx((3 / 4 + 1 / 6) / 4)
    assert found.slices[0].scores[0].estimate.groups == 3  # q1 and q2 are of one video
    assert found.confusion[6][0].tolist() == [0, 0, 0, 0, 0, 1, 0]


def test_invalid_orders_are_wrong_unless_they_are_to_count(tmp_path: Path) -> None:
    """q2 misses D and invents X: by default nothing of it counts, neither a pair nor its rationale."""
    keys = [{**key, "rationale": "ab"} for key in KEYS]
    found = scored(tmp_path, rationales("ab", "ab", "ab"), keys=keys, bertscore=letters)
    scores = {score.metric.name: score.estimate.value for score in found.slices[0].scores}
    assert scores["task_accuracy"] == 0.25
    assert scores["pairwise_accuracy"] == pytest.approx(3 / 14)
    assert scores["kendall_tau"] == pytest.approx((1 - 1 - 1 - 1) / 4)
    assert found.rationales is not None
    assert found.rationales.f1["q2"] == 0.0
    assert found.overall == pytest.approx(overall_score(0.25, 3 / 14, 0.5))
    assert found.pairwise("partial") == pytest.approx(4 / 14)
    assert list(found.faulty) == ["q2"]
    partial = scored(tmp_path, rationales("ab", "ab", "ab"), keys=keys, bertscore=letters, invalid="partial")
    assert partial.overall == pytest.approx(overall_score(0.25, 4 / 14, 0.75))
    assert partial.pairwise("wrong") == pytest.approx(3 / 14)


def test_what_was_not_measured_is_not_zero(tmp_path: Path) -> None:
    found = scored(tmp_path)
    assert (found.rationale_f1, found.overall, found.rationale_reason) == (None, None, NO_RATIONALE_SCORE)
    with pytest.raises(InputError, match=r"^beta: found 2, expected a number from 0 to 1"):
        scored(tmp_path, weights=(0.7, 2.0))
    keys = [{**key, "rationale": " "} for key in KEYS]
    silent = scored(tmp_path, keys=keys, bertscore=letters)
    assert (silent.overall, silent.rationale_reason) == (None, "no reference has a rationale")

    def missing() -> BertScore:
        raise MissingExtraError("BERTScore needs the extra")

    without = scored(tmp_path, bertscore=missing)
    assert (without.overall, without.rationale_reason) == (None, "BERTScore needs the extra")


class Letters:
    """An encoder with a direction of its own for each letter."""

    name, layer, ends = "letters", 1, frozenset[int]()
    long_texts: LongTexts = "windows"

    def __call__(self, texts: Sequence[str]) -> dict[str, TextTokens]:
        codes = {text: np.array([ord(char) for char in text], dtype=np.int64) for text in texts}
        eye = np.eye(128, dtype=np.float32)
        return {text: TextTokens(ids, eye[ids], empty=not len(ids)) for text, ids in codes.items()}


def letters() -> BertScore:
    return BertScore(Letters())


def rationales(*said: str) -> list[dict[str, Any]]:
    return [{**one, "rationale": text} for one, text in zip(SAID, said, strict=True)]


def test_rationales_by_hand(tmp_path: Path) -> None:
    keys = [{**key, "rationale": text} for key, text in zip(KEYS, ("ab", "ab", "abcd", "ab"), strict=True)]
    # q1: both letters found, 1. q2: of "ac" and "ab" one each, 1/2. q3: P 1, R 1/2, so 2/3. q4 is not there: 0.
    found = scored(tmp_path, rationales("ab", "ac", "ab"), keys=keys, bertscore=letters, invalid="partial")
    assert found.rationales is not None
    assert found.rationales.f1 == pytest.approx({"q1": 1.0, "q2": 0.5, "q3": 2 / 3, "q4": 0.0})
    f1 = (1 + 0.5 + 2 / 3) / 4
    assert found.rationale_f1 == pytest.approx(f1)
    assert found.overall == pytest.approx(overall_score(0.25, 4 / 14, f1))
    assert found.rationales.hash.startswith("letters_L1_no-idf_version=")
    scores = {score.metric.name: score.estimate for score in found.slices[0].scores}
    low, high = scores["overall"].ci_low, scores["overall"].ci_high
    assert low is not None
    assert high is not None
    assert low < (found.overall or 0) < high
    assert (scores["rationale_f1"].n, scores["rationale_f1"].groups) == (4, 3)
    # Of the answered q1, q2, q3 the shares in order are 1, 1/3 and 0, the F1 1, 1/2 and 2/3: ranks 3 2 1 and 3 1 2.
    assert scores["rationale_tracks_order"].value == pytest.approx(0.5)
    by_scenario = {one.value: one for one in found.slices if one.by == "scenario"}
    cpr = {score.metric.name: score.estimate.value for score in by_scenario["CPR"].scores}
    assert cpr["overall"] == pytest.approx(overall_score(0.5, 4 / 6, 0.75))
    assert scored(
        tmp_path, rationales("ab", "ac", "ab"), keys=keys, bertscore=letters, weights=(1.0, 1.0)
    ).overall == pytest.approx(25.0)


def test_an_answer_without_an_order_scores_nothing_for_its_rationale(tmp_path: Path) -> None:
    said = [{"id": "q1", "order": "", "rationale": "First the scene."}, {"id": "q2", "order": "B > A > D > C"}]
    keys = [{**key, "rationale": "First the scene."} for key in KEYS[:3]]
    found = scored(tmp_path, said, keys=[*keys, KEYS[3]], bertscore=letters)
    assert found.rationales is not None
    assert found.rationales.f1 == {"q1": 0.0, "q2": 0.0, "q3": 0.0}
    assert found.rationales.notes == (
        "1 of 4 answers without a rationale: score 0",
        "1 of 4 references without a rationale: F1 is over the others",
    )


def test_no_answer_scores_nothing(tmp_path: Path) -> None:
    found = scored(tmp_path, [{"id": "q1", "order": ""}])
    scores = {score.metric.name: score.estimate.value for score in found.slices[0].scores}
    assert (scores["task_accuracy"], scores["pairwise_accuracy"], scores["longest_run"]) == (0.0, 0.0, 0.0)
    assert found.unanswered == ("q1", "q2", "q3", "q4")
    assert found.faulty == {}


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("D > B > A", "item 'q1', field 'order': found no C, expected each of A, B, C, D once"),
        ("D > B > A > C > X > B", "item 'q1', field 'order': found more than one B; the unknown X, expected each"),
        ("", "item 'q1': found no answer, expected each of A, B, C, D once"),
        ("D > B > A > C", "item 'q2': found no answer, expected each of A, B, C, D once"),
    ],
)
def test_a_strict_reading_names_the_first_fault(tmp_path: Path, order: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        scored(tmp_path, [{"id": "q1", "order": order}], strict=True)
    assert str(caught.value).startswith(f"{tmp_path / 'said.json'}: {text}")
    whole = [{"id": key["id"], "order": key["order"]} for key in KEYS]
    assert scored(tmp_path, whole, strict=True).slices[0].scores[0].estimate.value == 1.0


def test_a_prediction_for_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"said.json: item 'q7': found an unknown item, expected an item of keys.json"):
        scored(tmp_path, [{"id": "q7", "order": "A > B"}])


# ── the paper ──


def test_the_published_overall_follows_from_the_rounded_parts_for_six_of_seven() -> None:
    off = {
        row.team: row.overall - overall_score(row.task_accuracy, row.pairwise_accuracy, row.bertscore_f1)
        for row in published().teams
    }
    assert len(off) == 7
    # Each part is off by at most 0.005, so the overall score by 100 · 0.005 · (0.56 + 0.24 + 0.2) = 0.5.
    assert off.pop("FBK") == pytest.approx(0.65, abs=1e-9)
    assert max(map(abs, off.values())) <= 0.5
    assert [row.overall for row in published().teams] == sorted(
        (row.overall for row in published().teams), reverse=True
    )


def test_the_published_teams_stand_beside_real_instances_alone(folder: Path) -> None:
    """Figures of the task's own test set say nothing beside rendered videos."""
    loaded = BENCHMARKS.get("clinicalskillqa").load(folder)
    assert loaded.published is not None
    assert loaded.published.of("accuracy")[0] == ("ZZUNLP", 0.63)
    assert loaded.published.of("pairwise_accuracy")[-1] == ("zhkun", 0.51)
    assert [metric.name for metric in loaded.published.metrics] == [
        "overall",
        "accuracy",
        "pairwise_accuracy",
        "rationale_f1",
    ]
    assert "not on these items" in loaded.published.note
    (folder / "about.json").write_text(
        json.dumps({"kind": "clinicalskillqa instances", "simulated": True}), encoding="utf-8"
    )
    assert BENCHMARKS.get("clinicalskillqa").load(folder).published is None
