"""The checks of benchmarks: every fault that they are for is found, and every benchmark of ours passes them."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor import ACCURACY, Answer, Benchmark, InputError, Item, Reference
from proctor.core import BENCHMARKS, QUESTION_WRITERS, BenchmarkReader, Image, RecordedAnswers, read_table, validated
from proctor.core.formats import BinaryFormat, FreeTextFormat
from proctor.tasks.clinicalskillqa.instances import InstancePlan, build_instances
from proctor.tasks.questions.commands import write_example
from proctor.tasks.simulated import simulate
from proctor.testing import Check, benchmark_checks, check_benchmark, check_system
from tests.support.kit import finds, passes

QUESTIONS = """id,patient,picture,question,answer
q1,p1,on-1.png,Is the lamp on?,yes
q2,p1,off-1.png,Is the lamp on?,no
q3,p2,on-2.png,Is the lamp on?,yes
q4,p3,off-2.png,What stands beside the lamp?,the anaesthesia machine
"""
SYSTEM = "SYSTEM001"
"""One of the systems whose answers are rated in MEDIQA-EVAL."""
ANSWERS = "id,text\nq1,yes\nq2,no\nq4,the anaesthesia machine\n"


class Lamps(BenchmarkReader):
    """A reader without faults, in whose parts faults are planted."""

    name, summary, rubric_judge = "lamps", "Lamps: is the lamp on?", "three-level"

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        file = data / "questions.csv"
        rows = read_table(file, ("id", "patient", "picture", "question", "answer")).checked(file)
        items = tuple(self.item(file, f"row {row.number}", row.cells) for row in rows)
        return Benchmark(self.name, "Lamps", items, (ACCURACY,), "accuracy", media_root=media)

    def item(self, file: Path, location: str, cells: dict[str, str]) -> Item:
        known = {"yes": True, "no": False}
        return validated(
            Item,
            {
                "id": cells["id"],
                "group": cells["patient"],
                "question": cells["question"],
                "media": (Image(source=cells["picture"]),),
                "answer": BinaryFormat() if cells["answer"] in known else FreeTextFormat(),
                "reference": Reference(answer=known.get(cells["answer"], cells["answer"])),
            },
            file,
            location,
        )

    def read_recorded(self, path: Path, benchmark: Benchmark) -> RecordedAnswers:
        answers: dict[str, Answer] = {}
        for row in read_table(path, ("id", "text")).checked(path):
            name, location = row.cells["id"], f"row {row.number}"
            if name not in {item.id for item in benchmark.items}:
                raise InputError(path, location, found=f"id {name!r}", expected="the id of a question")
            if name in answers:
                raise InputError(path, location, found=f"id {name!r} again", expected="one answer to each")
            answers[name] = Answer(item_id=name, text=row.cells["text"])
        return RecordedAnswers(tuple(answers.values()))


@pytest.fixture
def theatre(tmp_path: Path) -> Path:
    folder = tmp_path / "theatre"
    folder.mkdir()
    (folder / "questions.csv").write_text(QUESTIONS, encoding="utf-8")
    return folder


@pytest.fixture
def night(tmp_path: Path) -> Path:
    file = tmp_path / "night.csv"
    file.write_text(ANSWERS, encoding="utf-8")
    return file


def with_items(change: Callable[[Sequence[Item]], Sequence[Item]], **fields: Any) -> type[Lamps]:
    """The reader, whose items are changed, and whose benchmark has these fields."""

    class Changed(Lamps):
        def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
            made = super().load(data, media, seed=seed)
            return replace(made, items=tuple(change(made.items)), **fields)

    return Changed


def each(**changed: Any) -> type[Lamps]:
    return with_items(lambda items: [item.model_copy(update=changed) for item in items])


class NoSummary(Lamps):
    summary = ""


class OtherName(Lamps):
    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        return replace(super().load(data, media), name="lamp")


class Drawn(Lamps):
    """One item fewer every other time."""

    loads = 0

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        type(self).loads += 1
        made = super().load(data, media)
        return replace(made, items=made.items[self.loads % 2 :])


class SeededInSilence(Lamps):
    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        made = super().load(data, media)
        return replace(made, items=tuple(item.model_copy(update={"tags": {"draw": seed}}) for item in made.items))


class FewerWithASeed(SeededInSilence):
    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        made = super().load(data, media)
        return replace(made, items=made.items[seed:], seeds={"items": seed})


class Writes(Lamps):
    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        (data / "index.json").write_text("{}", encoding="utf-8")
        return super().load(data, media)


class Careless(Lamps):
    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        rows = [line.split(",") for line in (data / "questions.csv").read_text("utf-8").splitlines()[1:]]
        names = ("id", "patient", "picture", "question", "answer")
        items = [self.item(data, "", dict(zip(names, row, strict=True))) for row in rows]
        return Benchmark(self.name, "Lamps", tuple(items), (ACCURACY,), "accuracy")

    def read_recorded(self, path: Path, benchmark: Benchmark) -> RecordedAnswers:
        rows = [line.split(",") for line in path.read_text("utf-8").splitlines()[1:]]
        return RecordedAnswers(tuple(Answer(item_id=row[0], text=row[1]) for row in rows))


class LeaksInPrompt(Lamps):
    prompts = Path("prompts")


class NoHelp(Lamps):
    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        return ""


class AnyTrack(Lamps):
    def on_track(self, track: str) -> BenchmarkReader:
        return self


FAULTS: list[tuple[type[Lamps], str, str]] = [
    (NoSummary, "it_has_a_name_and_a_summary", "`summary`: found '', expected a text of one line"),
    (OtherName, "it_declares_what_exists", "found 'lamp', expected 'lamps', as its reader"),
    (with_items(lambda _: ()), "it_declares_what_exists", "`items`: found none, expected questions"),
    (
        with_items(lambda items: items, headline="acuracy"),
        "it_declares_what_exists",
        "found 'acuracy', expected one of",
    ),
    (with_items(lambda items: items, conditions=()), "it_declares_what_exists", "`conditions`: found none"),
    (Drawn, "it_loads_the_same_each_time", "found other items the second time"),
    (SeededInSilence, "another_seed_has_the_same_questions", "`seeds`: found none, expected the seed of what is drawn"),
    (FewerWithASeed, "another_seed_has_the_same_questions", "item 'q1': found another question with seed 1"),
    (Writes, "it_writes_nothing", "index.json: found it changed after `load`"),
    (each(id="q1"), "ids_are_unique", "item 'q1': found it 4 times, expected each id once"),
    (each(group="all"), "there_are_groups", "found 1 group of 4 items, expected several"),
    (each(media=(Image(source="../on.png"),)), "media_lie_in_the_media_folder", "found the medium '../on.png'"),
    (
        each(media=(Image(source="C:\\on.png"),)),
        "media_lie_in_the_media_folder",
        "expected a path inside the media folder",
    ),
    (
        with_items(lambda items: items, conditions=("speech-only",)),
        "the_first_condition_fits",
        "expected that the first of `conditions` fits",
    ),
    (
        each(reference=Reference(answer="maybe")),
        "references_are_read_back",
        "item 'q1', reference 'maybe': found True when",
    ),
    (
        each(question="What is beside the anaesthesia machine?"),
        "questions_hold_no_reference",
        "item 'q4': found its reference 'the anaesthesia machine' in the question",
    ),
    (LeaksInPrompt, "prompts_are_filled_in", "prompts: found no template, expected lamps.txt.j2"),
    (NoHelp, "media_help_says_a_text", "`media_help` returned '' for 1 files"),
    (AnyTrack, "unknown_tracks_are_refused", "track 'no-such-track': found AnyTrack instead of an error"),
    (Careless, "damaged_files_are_refused", "questions.csv, not UTF-8: found UnicodeDecodeError"),
    (Careless, "damaged_files_are_refused", "expected an InputError with file and location"),
    (Careless, "damaged_recorded_answers_are_refused", "answers.csv, not UTF-8: found UnicodeDecodeError"),
    (Careless, "unknown_and_repeated_answers_are_refused", "found an answer to the unknown id 'no-such-id-7319'"),
    (Careless, "unknown_and_repeated_answers_are_refused", "its last line twice: found another answer to 'q4'"),
]


@pytest.mark.parametrize(("reader", "name", "told"), FAULTS, ids=lambda one: getattr(one, "__name__", None))
def test_a_fault_is_found_by_its_check(
    reader: type[Lamps], name: str, told: str, theatre: Path, night: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(theatre)
    (theatre / "prompts").mkdir()
    finds(named(benchmark_checks(reader(), theatre, recorded=night), name), told)


NOT_STATED = ("no writer of questions", "it verifies no figures", "no published=")


def test_questions_that_are_handed_out_with_answers_are_found(
    theatre: Path, night: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hand_out(data: Path, out: Path, items: Any, *, references: bool, track: str = "") -> None:
        shutil.copyfile(data / "questions.csv", out / "questions.csv")

    monkeypatch.setattr(QUESTION_WRITERS, "of", {"lamps": hand_out}.get)
    checks = benchmark_checks(Lamps(), theatre, recorded=night)
    told = "item 'q1': found its reference in the written files"
    finds(named(checks, "questions_to_hand_out_reveal_nothing"), told)


def test_a_reader_without_faults_passes(theatre: Path, night: Path) -> None:
    report = check_benchmark(Lamps(), theatre, recorded=night)
    assert len(report.passed) == 18
    assert all(any(reason in told for reason in NOT_STATED) for told in report.skipped.values())


def test_a_prompt_is_filled_in_for_every_format(theatre: Path, tmp_path: Path) -> None:
    class Prompted(Lamps):
        prompts = tmp_path / "prompts"

    Prompted.prompts.mkdir()
    check = named(benchmark_checks(Prompted(), theatre), "prompts_are_filled_in")
    own = Prompted.prompts / "lamps.txt.j2"
    own.write_text("{{ question }}", encoding="utf-8")
    check()
    own.write_text("{{ instruction }}", encoding="utf-8")
    finds(check, "lamps.txt.j2, item 'q1': found no question in the user's message, expected {{ question }}")
    own.write_text("{{ question }} {{ phase }}", encoding="utf-8")
    finds(check, "'phase' is undefined")
    own.write_text("{{ question }} Hint: the anaesthesia machine", encoding="utf-8")
    finds(check, "item 'q4': found its reference 'the anaesthesia machine' in the prompt")


def test_its_items_can_be_given_to_other_checks(theatre: Path) -> None:
    items = Lamps().load(theatre).items
    report = check_system("majority", items=items)
    assert "system majority: it_answers_what_it_supports" in report.passed


def read_focus(data: Path, folder: Path) -> dict[str, Any]:
    task = data / "focus-toolkit"
    return {"data": task, "recorded": task / "responses.json", "published": task}


def read_rexsonovqa(data: Path, folder: Path) -> dict[str, Any]:
    task = data / "rexsonovqa"
    return {"data": task, "recorded": task / "results" / "gemini-3-pro"}


def read_mediqa_eval(data: Path, folder: Path) -> dict[str, Any]:
    """The file of ratings has the answers of several systems: here those of one of them."""
    task, own = data / "mediqa-eval", folder / "answers.csv"
    with (task / "ratings.csv").open(encoding="utf-8", newline="") as file, own.open("w", encoding="utf-8") as out:
        rows = list(csv.DictReader(file))
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for row in rows if SYSTEM in row.values())
    return {"data": task, "recorded": own, "published": task}


def read_clinicalskillqa(data: Path, folder: Path) -> dict[str, Any]:
    source = simulate(folder / "source", videos=2, seconds=12, fps=5, size=(256, 144), seed=5, questions_per_video=1)
    plan = InstancePlan(frames=(4,), per_video=1, seconds=2.0, seed=1, scenario="CPR")
    build_instances(source / "videos", folder / "task", plan, cache=folder / "cache")
    return {"data": folder / "task"}


def read_simulated(data: Path, folder: Path) -> dict[str, Any]:
    videos = simulate(folder / "simulated", videos=3, seconds=8, fps=5, size=(256, 144), seed=5, questions_per_video=2)
    return {"data": videos}


def read_own_questions(data: Path, folder: Path) -> dict[str, Any]:
    write_example(folder / "own")
    return {"data": folder / "own", "media": folder / "own" / "media"}


OURS: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
    "clinicalskillqa": read_clinicalskillqa,
    "focus": read_focus,
    "mediqa-eval": read_mediqa_eval,
    "own-questions": read_own_questions,
    "rexsonovqa": read_rexsonovqa,
    "simulated": read_simulated,
}


@pytest.fixture(scope="module")
def ours(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Check]]:
    """The checks of a benchmark of ours, by its name."""
    folder, made = tmp_path_factory.mktemp("ours"), dict[str, list[Check]]()

    def checks(name: str) -> list[Check]:
        if name not in made:
            made[name] = benchmark_checks(name, **OURS[name](data, folder))
        return made[name]

    return checks


NAMES = [check.name for check in benchmark_checks(Lamps(), "nowhere")]
DAMAGED = [name for name in NAMES if name.startswith("damaged_")]


def named(checks: Sequence[Check], name: str) -> Check:
    (check,) = [check for check in checks if check.name == name]
    return check


@pytest.mark.parametrize("name", [name for name in NAMES if name not in DAMAGED])
@pytest.mark.parametrize("benchmark", OURS)
def test_ours_pass(benchmark: str, name: str, ours: Callable[[str], list[Check]]) -> None:
    passes(named(ours(benchmark), name), *NOT_STATED, "no recorded=")


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("benchmark", OURS)
def test_ours_refuse_damaged_files(benchmark: str, name: str, ours: Callable[[str], list[Check]]) -> None:
    passes(named(ours(benchmark), name))


@pytest.mark.parametrize("benchmark", OURS)
def test_scorers_of_ours_pass(benchmark: str, ours: Callable[[str], list[Check]]) -> None:
    for check in ours(benchmark):
        if check.name not in NAMES:
            passes(check, "it applies to none")


def test_every_benchmark_is_checked() -> None:
    assert sorted(OURS) == BENCHMARKS.names()


def test_json_is_damaged_field_by_field(tmp_path: Path) -> None:
    from proctor.testing.damaged_files import damaged

    file = tmp_path / "questions.json"
    file.write_text(json.dumps({"questions": [{"id": "q1", "answer": 3}]}), encoding="utf-8")
    made = dict(damaged(file, most=100))
    assert json.loads(made["without 'id'"]) == {"questions": [{"answer": 3}]}
    assert json.loads(made["'answer' as ''"]) == {"questions": [{"id": "q1", "answer": ""}]}
    assert len(made) == 25  # 5 of any file, 5 of any JSON, 7 of each field, and another field
    assert len(damaged(file, most=10)) <= 10
