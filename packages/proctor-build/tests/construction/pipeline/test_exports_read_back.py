"""What an export's own reader does not give back as the project holds it is not written."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import proctor
from proctor.core import ABOUT, BENCHMARKS, InputError, option_writer, reader_at
from proctor.tasks.clinicalskillqa.instances import InstancePlan, build_instances
from proctor.tracks import simulated_there
from proctor_build.pipeline import (
    PROJECT_KINDS,
    ExportedBenchmark,
    FilesStage,
    FinalQuestion,
    Project,
    SplitSettings,
    Work,
    stage_settings,
)
from proctor_build.pipeline.readback import about_export, check_read_back, write_about
from proctor_build.pipeline.screening import Screening
from proctor_build.rexsonovqa.project import NativeExport
from tests.construction.pipeline.test_questions import choice

TITLE = "Procedures of our own"
TYPE = "Type1_ActionGoalReasoning"


def questions() -> list[FinalQuestion]:
    """A choice and a free response on each of three sources, the right letter another one each time."""
    made = []
    for number in range(3):
        screening = Screening(id=f"q{number}-screen", question=f"q{number}", asked=0, solved=0)
        common = {"source": f"s{number}", "type": TYPE, "part": "test" if number else "tuning", "screening": screening}
        one = choice(text=f"Based on the clip, what is done at point {number}?", key=number).model_dump()
        made.append(FinalQuestion.model_validate(one | common | {"id": f"q{number}"}))
        free = {"kind": "free", "options": (), "key": None, "answer": f"It is slid {number} times.", "id": f"f{number}"}
        made.append(FinalQuestion.model_validate(one | common | free))
    return made


@pytest.fixture
def project(tmp_path: Path, film: Path) -> Project:
    """A project of three sources, of which the questions are known."""
    root = tmp_path / "abdomen"
    (root / "sources").mkdir(parents=True)
    (root / "sources" / "a.mp4").symlink_to(film / "videos" / "sim-000.mp4")
    sources = [
        {
            "id": f"s{n}",
            "video": "sources/a.mp4",
            "start": n / 10,
            "end": 20.0,
            "category": f"kind {n}",
            "group": f"g{n}",
        }
        for n in range(3)
    ]
    settings = {"kind": "rexsonovqa", "title": TITLE, "licence": "CC BY 4.0", "sources": sources}
    (root / "project.yaml").write_text(yaml.safe_dump(settings))
    return Project(root)


def written(project: Project, out: Path) -> ExportedBenchmark:
    out.mkdir()
    exported = NativeExport().write(project, questions(), out)
    write_about(about_export(project, NativeExport.reader, exported), out)
    return exported


def work(project: Project) -> Work:
    """The work of the stage `export`."""
    before: dict[str, Any] = {name: [] for name in NativeExport.after}
    return Work(project, "export", "all", project.settings.sources, before | {"split": questions()})


def test_an_export_is_read_as_the_project_holds_it(project: Project) -> None:
    made = asyncio.run(NativeExport().make(work(project)))
    assert ABOUT in {one.id for one in made.records}
    loaded = proctor.load(project.items)
    assert (loaded.name, loaded.title, loaded.simulated, loaded.published) == ("abdomen", TITLE, True, None)
    assert "rexsono" not in " ".join((loaded.title, *loaded.notes)).casefold()
    items = {item.id: item for item in loaded.items}
    for number, one in enumerate(questions()[::2]):
        item = items[f"s{number}/mcq-01"]
        assert (item.options, item.group) == (one.options, f"g{number}")
        assert item.reference is not None
        assert item.reference.answer == "ABC"[number]
        assert (item.tags["category"], item.tags["split"]) == (f"kind {number}", one.part)
    assert loaded.media_root == project.items / "videos"
    assert proctor.check(project.items).report.shown == ("abdomen: 6 questions in 3 groups, no faults",)


TAMPERED: dict[str, tuple[str, Any]] = {
    "the key": ("benchmark_questions/mcq/s0.json", lambda entries: entries[0].update(answer="D")),
    "the items": ("benchmark_questions/free/s1.json", lambda entries: entries.append(entries[0] | {"question": "[FREE] New?"})),
    "the options": ("benchmark_questions/mcq/s0.json", lambda entries: entries[0].update(question=entries[0]["question"].replace("C. ", "C. not "))),
    "the question": ("benchmark_questions/free/s0.json", lambda entries: entries[0].update(question="[FREE] Another one?")),
    "the rationale": ("benchmark_questions/free/s0.json", lambda entries: entries[0].update(groundtruth="Other.")),
    "the clip": ("benchmark_questions/free/s0.json", lambda entries: entries[0].update(time_end=entries[0]["time_end"] + 0.2)),
    "the tag 'split'": ("benchmark_questions/free/s0.json", lambda entries: entries[0].pop("split")),
    "whether it counts": ("benchmark_questions/free/s0.json", lambda entries: entries[0].update(keep=False)),
    "the tag 'category'": ("video_metadata_new.json", lambda videos: videos["s2"].pop("category")),
    "the group": ("video_metadata_new.json", lambda videos: videos["s2"].pop("group")),
    "the title": (ABOUT, lambda about: about.update(title="ReXSonoVQA")),
    "the name": (ABOUT, lambda about: about.update(name="another")),
    "simulated": (ABOUT, lambda about: about.update(simulated=False)),
    "the licence": (ABOUT, lambda about: about.update(licence="CC0")),
    "files that can't be read": ("video_metadata_new.json", lambda videos: videos.pop("s0")),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERED)
def test_what_is_not_read_back_equal_is_told(project: Project, tmp_path: Path, what: str) -> None:
    out = tmp_path / "items"
    wanted = written(project, out)
    about = about_export(project, NativeExport.reader, wanted)
    check_read_back(wanted, about, out, project.items)
    name, change = TAMPERED[what]
    content = json.loads((out / name).read_text())
    change(content)
    (out / name).write_text(json.dumps(content))
    with pytest.raises(InputError) as error:
        check_read_back(wanted, about, out, project.items)
    assert what in str(error.value)
    assert "nothing was written" in str(error.value)
    assert str(out) not in str(error.value)  # but where it would have been


def test_an_export_that_differs_is_not_written(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage itself fails, and what was there stays."""
    asyncio.run(NativeExport().make(work(project)))
    (project.items / "note.txt").write_text("from before")
    whole = NativeExport.write

    def lossy(self: NativeExport, project: Project, some: Any, folder: Path) -> ExportedBenchmark:
        made = whole(self, project, some, folder)
        file = folder / "video_metadata_new.json"
        file.write_text(file.read_text().replace('"category"', '"kind"'))
        return made

    monkeypatch.setattr(NativeExport, "write", lossy)
    message = "read back, the tag 'category': found 'other', expected 'kind 0', as in the project; nothing was written"
    with pytest.raises(InputError, match=message):
        asyncio.run(NativeExport().make(work(project)))
    assert (project.items / "note.txt").is_file()
    assert not (project.folder / ".items.part").exists()


@pytest.mark.parametrize(("kind", "other"), [("mcq", "free"), ("free", "mcq")])
def test_one_form_alone_is_read(project: Project, tmp_path: Path, kind: str, other: str) -> None:
    out = tmp_path / "items"
    out.mkdir()
    alone = [one for one in questions() if one.kind == kind]
    exported = NativeExport().write(project, alone, out)
    about = about_export(project, NativeExport.reader, exported)
    write_about(about, out)
    check_read_back(exported, about, out, project.items)
    (out / "benchmark_questions" / other).mkdir()  # as earlier versions left it
    assert len(proctor.load(out).items) == 3
    (out / ABOUT).unlink()
    release = reader_at(tmp_path).name, BENCHMARKS.get("rexsonovqa").load(out)
    lacking = "free responses" if kind == "mcq" else "choices"
    assert f"There are no {lacking} in this folder." in release[1].notes


def test_a_name_is_the_folders_or_the_settings_and_never_that_of_an_installed_benchmark(project: Project) -> None:
    def named(folder: str, **fields: Any) -> str:
        moved = project.folder.rename(project.folder.parent / folder)
        content = yaml.safe_load((moved / "project.yaml").read_text())
        (moved / "project.yaml").write_text(yaml.safe_dump(content | fields))
        project.folder = moved
        return about_export(Project(moved), "focus", ExportedBenchmark([], [])).name

    assert named("Liver, 2nd try") == "Liver-2nd-try"
    assert named("focus") == "focus-own"
    assert named("x", name="liver.v2") == "liver.v2"
    with pytest.raises(
        InputError, match="name: found 'focus', the name of an installed benchmark, expected a name of its"
    ):
        named("y", name="focus")


def test_a_part_in_a_folder_of_its_own_has_its_own_name_and_title(project: Project) -> None:
    about = about_export(
        project, "clinicalskillqa", ExportedBenchmark([], project.settings.sources[:1], "test", "test")
    )
    assert (about.name, about.title) == ("abdomen-test", f"{TITLE} (test)")
    assert about.origin == "Made from 1 video with Proctor; DATASHEET.md says how."


def test_long_names_of_parts_stay_apart(project: Project) -> None:
    parts = [f"{'held-out-' * 3}{site}" for site in ("north", "south")]
    project.folder = project.folder.rename(project.folder.with_name("a" * 90))
    names = {about_export(project, "focus", ExportedBenchmark([], [], part=part)).name for part in parts}
    assert len(names) == 2
    assert max(map(len, names)) <= 80


@pytest.mark.parametrize("part", ["../out", "test set", "", "a/b", "x" * 41])
def test_a_part_is_named_as_a_folder_can_be(project: Project, part: str) -> None:
    """It failed only at the export, after all was paid for, or wrote elsewhere."""
    content = yaml.safe_load(project.file.read_text())
    project.file.write_text(yaml.safe_dump(content | {"stages": {"split": {"shares": {part: 0.5, "test": 0.5}}}}))
    with pytest.raises(InputError, match=r"stages: split"):
        stage_settings(Project(project.folder), "split", SplitSettings)


def test_every_kind_of_project_is_read_back() -> None:
    for name in PROJECT_KINDS.names():
        last = PROJECT_KINDS.get(name).stages[-1]
        assert isinstance(last, FilesStage), name
        assert last.reader in BENCHMARKS.names(), name


def test_a_repaired_copy_has_a_name_of_its_own(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "items"
    written(project, out)
    items = {item.id: item for item in proctor.load(out).items if item.options}
    kept = {name: item.model_copy(update={"tags": {**item.tags, "option_pool": "p"}}) for name, item in items.items()}
    option_writer("rexsonovqa", out).write_choices(out, tmp_path / "repaired", {**kept})
    again = proctor.load(tmp_path / "repaired")
    assert (again.name, again.title) == ("abdomen-repaired", f"{TITLE} with repaired options")
    assert again.published is None
    (out / ABOUT).write_text('{"reader": "rexsonovqa"}', encoding="utf-8")  # without a name: no name is made up
    option_writer("rexsonovqa", out).write_choices(out, tmp_path / "nameless", {**kept})
    assert proctor.load(tmp_path / "nameless").name == "rexsonovqa"


def test_builders_and_exports_find_the_simulator_alike(tmp_path: Path, film: Path) -> None:
    """Another manifest beside the videos does not hide that of the simulator around them."""
    videos = tmp_path / "simulated" / "videos"
    videos.mkdir(parents=True)
    shutil.copy(film / "videos" / "sim-000.mp4", videos / "a.mp4")
    (videos / "manifest.json").write_text('{"by": "another program"}', encoding="utf-8")
    assert not simulated_there(videos)
    (tmp_path / "simulated" / "manifest.json").write_text('{"simulated": true}', encoding="utf-8")
    assert simulated_there(videos)
    build_instances(videos, tmp_path / "built", InstancePlan(per_video=1, seconds=2.0))
    assert proctor.load("clinicalskillqa", tmp_path / "built").simulated
