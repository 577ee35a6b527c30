"""`proctor build repair` on a small tree in the form of the release: what is written, printed and refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from proctor.core import OPTION_POOL, InputError, reader_of, reader_of_paths
from proctor.tasks.questions.exact import write_choices
from proctor.tasks.questions.question_set import read_questions
from proctor.tasks.questions.reader import benchmark_of
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


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same choices as somebody keeps them in a table, one of which does not count, and a free response."""
    folder = tmp_path_factory.mktemp("own") / "fragen"
    folder.mkdir()
    with (folder / "liste.csv").open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["Nr", "Frage", "A", "B", "C", "D", "Antwort", "Video", "organ", "used"])
        for number, item in enumerate(made(longest)[:48]):
            key = item.options["ABCD".index(str(item.reference.answer))] if item.reference else ""
            organ = item.question.split()[5]
            used = "no" if number == 5 else "yes"
            rows.writerow(
                [item.id, f"{item.question} ({number})", *item.options, key, f"{item.group}.mp4", organ, used]
            )
        rows.writerow(["free", "What is done?", *[""] * 4, "It is turned.", "video 00.mp4", "liver", "yes"])
    settings = 'title: Fragen\nlicence: CC0\nonly: {used: "yes"}\nprompt: ask.j2\ncolumns: {answer: Antwort}\n'
    (folder / "benchmark.yaml").write_text(settings, encoding="utf-8")
    (folder / "ask.j2").write_text("{% block system %}{% endblock %}{% block user %}{{ question }}{% endblock %}")
    return folder


def test_a_table_of_ones_own_is_repaired(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = proctor("build", "repair", table, "--out", out, "--limit", "3", "--draws", "100", "--similar", "0.38")
    assert done.returncode in {0, 1}, done.stderr
    assert sorted(files(out)) == ["ask.j2", "benchmark.yaml", "questions.jsonl", "repair.json", "to-confirm.csv"]
    record = json.loads((out / "repair.json").read_text(encoding="utf-8"))
    before, after = (reader_of_paths().load(folder) for folder in (table, out))
    assert (after.name, after.title) == ("fragen-repaired", "Fragen with repaired options")
    assert after.prompt == out / "ask.j2"
    assert after.reading[1].startswith("As a program wrote it")
    assert [one.id for one in after.items] == [one.id for one in before.items]
    counted = {one.id for one in after.counted()}
    assert record["left_out"]
    assert counted == {one.id for one in before.items} - {"q05", *record["left_out"]}
    new = {(one["item"], one["letter"]): one["new"] for one in record["options"]}
    for old, one in zip(before.items, after.items, strict=True):
        assert (one.question, one.media, one.group, one.answer) == (old.question, old.media, old.group, old.answer)
        assert old.tags.items() <= one.tags.items()
        if one.id not in counted or not one.options:
            assert (one.options, one.reference) == (old.options, old.reference)
            continue
        assert one.reference is not None
        assert old.reference is not None
        right = one.options["ABCD".index(str(one.reference.answer))]
        assert right == old.options["ABCD".index(str(old.reference.answer))]
        others = [(letter, text) for letter, text in zip("ABCD", one.options, strict=True) if text != right]
        assert all(text == new[one.id, letter] or text in old.options for letter, text in others)


def test_a_name_needs_its_files_and_a_path_must_be_there(tmp_path: Path) -> None:
    done = proctor("build", "repair", "rexsonovqa", "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (
        2,
        "proctor: --data is missing. Give the folder with the files of rexsonovqa: --data FOLDER\n",
    )
    done = proctor("build", "repair", tmp_path / "none.csv", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "none.csv: found nothing there, expected a folder or a file with questions" in done.stderr


def test_pictures_inside_a_table_are_not_lost(table: Path, tmp_path: Path) -> None:
    reading = read_questions(table)
    reading.folder.embedded["a.png"] = b""
    with pytest.raises(InputError, match="found media inside the table, expected media beside it, by their paths"):
        write_choices(reading, benchmark_of(reading), tmp_path, {})
    assert not files(tmp_path)
