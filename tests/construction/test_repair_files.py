"""`proctor build repair` on a small tree in the form of the release: what is written, printed and refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from proctor.core import OPTION_POOL, reader_of
from tests.construction.test_repair import longest, made
from tests.support.program import proctor

TYPES = ("Type1_ActionGoalReasoning", "Type2_ArtifactResolutionOptimization")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """96 choices on 24 videos whose right option is the longest, one that does not count, and free responses."""
    folder = tmp_path_factory.mktemp("release")
    questions: dict[str, list[dict[str, object]]] = {}
    for number, item in enumerate(made(longest)):
        lines = [f"{letter}. {text}" for letter, text in zip("ABCD", item.options, strict=True)]
        start = 20.0 * (number % 4)
        asked: dict[str, object] = {
            "question": "\n".join([f"[MCQ] {item.question} ({number})", *lines]),
            "answer": item.reference.answer if item.reference else "",
            "groundtruth": "They do it.",
            "time_start": start,
            "time_end": start + 9,
            "keep": number != 5,
            "question_type": TYPES[number % 2],
            "extra": {"kept": "as it is"},
        }
        questions.setdefault(item.group, []).append(asked)
    for kind in ("mcq", "free"):
        (folder / "benchmark_questions" / kind).mkdir(parents=True)
    for name, some in questions.items():
        text = json.dumps(some)
        (folder / "benchmark_questions" / "mcq" / f"{name}.json").write_text(text, encoding="utf-8")
        free = [some[0] | {"question": "[FREE] What is done?", "answer": "It is turned."}]
        (folder / "benchmark_questions" / "free" / f"{name}.json").write_text(json.dumps(free), encoding="utf-8")
    region = {"x_prop": 0, "y_prop": 0, "w_prop": 1, "h_prop": 1}
    video = {"youtube_url": "https://example.org/v", "start_time": 0, "end_time": 100, "roi": region}
    metadata = dict.fromkeys(questions, video)
    (folder / "video_metadata_new.json").write_text(json.dumps(metadata), encoding="utf-8")
    (folder / "results").mkdir()
    (folder / "results" / "old.json").write_text("[]", encoding="utf-8")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_the_native_files_are_written_and_read_as_they_stand(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "repaired"
    command: list[str | Path] = [
        "build",
        "repair",
        "rexsonovqa",
        "--data",
        tree,
        "--out",
        out,
        "--limit",
        "10",
        "--draws",
        "100",
    ]
    done = proctor(*command)
    assert done.returncode in {0, 1}, done.stderr  # ten rounds are few: it may say that something is left
    assert "best, chosen on other groups" in done.stdout
    assert "keep pools together in every split" in done.stderr
    written = files(out)
    before = files(tree)
    assert written.keys() == before.keys() - {"results/old.json"} | {"repair.json", "to-confirm.csv"}
    assert all(written[name] == before[name] for name in before if "/free/" in name)
    record = json.loads(written["repair.json"])
    benchmark = reader_of("rexsonovqa").load(out, seed=7)
    assert benchmark.title == "ReXSonoVQA with repaired options"
    assert benchmark.published is None
    items = {item.id: item for item in benchmark.counted() if item.options}
    assert len(items) == record["kept"]
    assert not items.keys() & record["left_out"].keys()
    for one in record["options"]:
        assert items[one["item"]].options["ABCD".index(one["letter"])] == one["new"]
    published = {item.id: item for item in reader_of("rexsonovqa").load(tree).items}
    for item in benchmark.items:
        old = published[item.id]
        assert (item.question, item.media, item.group) == (old.question, old.media, old.group)
        assert (OPTION_POOL in item.tags) is (item.id in items)
    assert "video 01/mcq-02" not in items  # it did not count before
    entry = json.loads(written["benchmark_questions/mcq/video 00.json"])[0]
    assert entry["extra"] == {"kept": "as it is"}
    assert entry["question"].startswith("[MCQ] What is done with the liver in this clip? (0)\nA. ")
    rows = list(csv.DictReader(written["to-confirm.csv"].decode("utf-8").splitlines()))
    assert len(rows) == len(record["options"])
    assert {row["state"] for row in rows} == {"to be confirmed by a clinician"}
    again = proctor(*command[:6], tmp_path / "again", *command[7:])
    assert again.returncode == done.returncode
    assert files(tmp_path / "again") == written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--same", "colour"], "--same: found 'colour', expected one of category, "),
        (["--keep", "1", "--similar", "0"], "items that can be repaired ("),
    ],
)
def test_what_is_refused_leaves_nothing(tree: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    out = tmp_path / "out"
    done = proctor("build", "repair", "rexsonovqa", "--data", tree, "--out", out, "--limit", "1", *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert not out.exists()


def test_a_benchmark_without_a_writer_and_a_full_folder_are_refused(tree: Path, tmp_path: Path) -> None:
    done = proctor("build", "repair", "focus", "--data", tree, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "found options to replace, expected a benchmark that can be written again" in done.stderr
    done = proctor("build", "repair", "rexsonovqa", "--data", tree, "--out", tree, "--limit", "1")
    assert done.returncode == 1
    assert "found something there already, expected a new or an empty folder" in done.stderr
