"""Other benchmarks as Codabench bundles: scores compared with ratings, and orders of pictures that can't be read
without these."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from proctor.core import ProblemsError
from proctor_challenge import pack_folder, write_pack
from proctor_challenge.packs.platforms import PackCheck, PackProgram, check_codabench
from proctor_challenge.packs.programs import DIGITS, MAX_KEY, figures_of, score_codabench
from proctor_challenge.settings import read_challenge
from tests.support.packed_challenge import unpacked

DATES = "opens: 2026-03-01T00:00:00Z"


def here(program: PackProgram) -> str:
    """Scores in this process, at the paths that a platform would mount."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DIGITS, str(program.digits))
        score_codabench(program.mounts["/app/input"], program.mounts["/app/output"])
    return "this process"


def checked(folder: Path) -> PackCheck:
    """The check of a challenge's pack."""
    settings, pack = read_challenge(folder, sealed=True), pack_folder(folder, "codabench")
    (found,) = check_codabench(folder, settings, pack, here)
    return found


def settings_of(folder: Path, benchmark: str, answers: str) -> None:
    """Writes `challenge.yaml` of one hidden phase."""
    phase = f"{{name: final, {DATES}, questions: public/final, sealed: sealed/final}}"
    baseline = f"{{name: overlap, answers: {{final: sealed/{answers}}}}}"
    text = f"benchmark: {benchmark}\nphases:\n  - {phase}\nbaselines:\n  - {baseline}\n"
    (folder / "challenge.yaml").write_text(text, encoding="utf-8")


# ── MEDIQA-EVAL: a submission is scores ──


def mediqa_challenge(folder: Path, data: Path, every: int) -> Path:
    """Clinicians' ratings sealed, the same table without them handed out."""
    native = data / "mediqa-eval"
    lines = (native / "encounters.jsonl").read_text(encoding="utf-8").splitlines()
    ids = [json.loads(line)["encounter_id"] for line in lines]
    kept = set(list(dict.fromkeys(ids))[::every])
    for part in ("public/final", "sealed/final"):
        (folder / part).mkdir(parents=True)
        told = [line for line, name in zip(lines, ids, strict=True) if name in kept]
        (folder / part / "encounters.jsonl").write_text("\n".join(told), encoding="utf-8")
    ratings = _rows(native / "ratings.csv", kept)
    _write(folder / "sealed/final/ratings.csv", ratings)
    _write(folder / "public/final/ratings.csv", [{**row, "rater_id": "", "value": ""} for row in ratings])
    _write(folder / "sealed/overlap.csv", _rows(native / "submission_overlap.csv", kept))
    settings_of(folder, "mediqa-eval", "overlap.csv")
    return folder


def _rows(file: Path, kept: set[str]) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as opened:
        return [row for row in csv.DictReader(opened) if row["encounter_id"] in kept]


def _write(file: Path, rows: list[dict[str, str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_scores_are_compared_with_the_sealed_ratings(data: Path, tmp_path: Path) -> None:
    folder = mediqa_challenge(tmp_path / "mediqa", data, 12)
    pack = pack_folder(folder, "codabench")
    write_pack("codabench", folder, pack)
    told = unpacked(pack / "bundle.zip", tmp_path / "bundle")
    columns = told["leaderboards"][0]["columns"]
    assert [one["key"] for one in columns[:2]] == ["ALL-en-ALL-mean", "ALL-zh-ALL-mean"]
    assert max(len(one["key"]) for one in columns) <= MAX_KEY
    rated = {row["value"] for row in _rows(folder / "sealed/final/ratings.csv", set(_ids(folder)))}
    assert rated == {"0.0", "0.5", "1.0"}
    with zipfile.ZipFile(tmp_path / "bundle/public_final.zip") as archive:
        assert set(archive.namelist()) == {"part.json", "questions/encounters.jsonl", "questions/ratings.csv"}
        handed_out = csv.DictReader(archive.read("questions/ratings.csv").decode().splitlines())
        assert {row["value"] for row in handed_out} == {""}
    found = checked(folder)
    assert found.ok, found.wrong
    assert found.figures > 60


def test_ratings_among_the_handed_out_answers_are_refused(data: Path, tmp_path: Path) -> None:
    folder = mediqa_challenge(tmp_path / "mediqa", data, 60)
    shutil.copyfile(folder / "sealed/final/ratings.csv", folder / "public/final/ratings.csv")
    with pytest.raises(ProblemsError) as refused:
        write_pack("codabench", folder, tmp_path / "out")
    assert "ratings in public/final/ratings.csv, expected rows to be filled in" in str(refused.value)


def _ids(folder: Path) -> list[str]:
    lines = (folder / "sealed/final/encounters.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["encounter_id"] for line in lines]


def test_the_figures_are_those_of_the_tasks_own_script(data: Path, tmp_path: Path) -> None:
    folder = mediqa_challenge(tmp_path / "mediqa", data, 1)
    settings = read_challenge(folder, sealed=True)
    figures = figures_of(folder, settings, settings.phases[0], folder / "sealed/overlap.csv")
    expected = json.loads((data / "mediqa-eval/expected_scores_overlap.json").read_text(encoding="utf-8"))
    assert {one.name: one.value for one in figures} == pytest.approx(expected, abs=1e-12)
    assert len(expected) == 98


# ── ClinicalSkillQA: orders of pictures ──


def _instance(name: str) -> dict[str, object]:
    frames = {label: f"{name}/{label}.jpg" for label in "ABCD"}
    return {"id": name, "frames": frames, "scenario": "CPR", "video": name}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    keys = {"q1": "DBAC", "q2": "BADC", "q3": "ABCD"}
    for part in ("public/final", "sealed/final"):
        for number, name in enumerate(keys):
            for row, label in enumerate("ABCD"):
                file = folder / part / name / f"{label}.jpg"
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (40, 30), (20 * row + 10, 40 * number, 80)).save(file)
        told = [_instance(name) for name in keys]
        (folder / part / "manifest.json").write_text(json.dumps(told))
    references = [{"id": name, "order": list(order), "scenario": "CPR", "video": name} for name, order in keys.items()]
    (folder / "sealed/final/references.json").write_text(json.dumps(references))
    said = [{"id": "q1", "order": list("DBAC")}, {"id": "q2", "order": list("ABDC")}]  # right, half right, none
    (folder / "sealed/orders.json").write_text(json.dumps(said))
    settings_of(folder, "clinicalskillqa", "orders.json")
    return folder


def test_pictures_go_along_where_the_questions_need_them(orders: Path, tmp_path: Path) -> None:
    pack = pack_folder(orders, "codabench")
    written = write_pack("codabench", orders, pack)
    told = unpacked(pack / "bundle.zip", tmp_path / "bundle")
    assert written.notes == ()
    assert told["leaderboards"][0]["columns"][0]["key"] == "technical"
    with zipfile.ZipFile(tmp_path / "bundle/reference_final.zip") as archive:
        assert "sealed/data/q3/D.jpg" in archive.namelist()
    with zipfile.ZipFile(tmp_path / "bundle/starting_kit_final.zip") as archive:
        example = json.loads(archive.read("example.json"))
        assert sorted(one["id"] for one in example) == ["q1", "q2", "q3"]
    found = checked(orders)
    assert found.ok, found.wrong


def test_an_order_is_scored_as_by_hand(orders: Path) -> None:
    settings = read_challenge(orders, sealed=True)
    figures = figures_of(orders, settings, settings.phases[0], orders / "sealed/orders.json")
    by_name = {one.name: one.value for one in figures}
    assert by_name["technical"] == by_name["accuracy"] == pytest.approx(1 / 3)
    assert by_name["pairwise_accuracy"] == pytest.approx((3 + 2 + 0) / 9)  # of neighbours
    assert by_name["not_submitted"] == 1
