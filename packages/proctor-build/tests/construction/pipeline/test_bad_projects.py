"""What is wrong with a project is told in one line (file, location, what was found, what was expected), and nothing of it
is left behind: every file of the project is as it was."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from proctor_build.pipeline import Project
from tests.support.program import proctor

Change = Callable[[Path], object]
VTT = "WEBVTT\n\n00:00.000 --> 00:02.500\nWe move the swab.\n\n00:03.000 --> 00:05.000\nThis is the liver.\n"
SETTINGS = """\
kind: rexsonovqa
models: {writer: {name: "openai:m", retries: 0}}
sources:
  - {id: a, video: sources/a.mp4, transcript: sources/a.vtt, events: sources/a.csv}
  - {id: b, video: sources/b.mp4, transcript: sources/b.vtt, events: sources/b.csv}
stages: {normalise: {model: false}}
"""
FOCUS = "kind: focus\nsources: [{id: a, video: sources/a.mp4}]\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, film: Path) -> Path:
    """A project of two sources, made up to the log of events: that much asks no model."""
    root = tmp_path_factory.mktemp("made") / "p"
    (root / "sources").mkdir(parents=True)
    for name in "ab":
        (root / "sources" / f"{name}.mp4").symlink_to(film / "videos" / "sim-000.mp4")
        (root / "sources" / f"{name}.vtt").write_text(VTT)
        (root / "sources" / f"{name}.csv").write_text("start,end,action\n0,2.5,we move the swab\n")
    (root / "project.yaml").write_text(SETTINGS)
    assert proctor("build", "run", root, "--until", "events").returncode == 0
    return root


def files(root: Path) -> dict[str, bytes]:
    """All files with their content, but for the journal, of which SQLite keeps its own account."""
    every = (one for one in root.rglob("*") if one.is_file() and one.name != "journal.sqlite")
    return {str(one.relative_to(root)): one.read_bytes() for one in every}


def writes(name: str, content: str | bytes) -> Change:
    def change(root: Path) -> None:
        file = root / name
        file.unlink(missing_ok=True)  # a link leads to the video of all tests
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    return change


def says(old: str, new: str) -> Change:
    def change(root: Path) -> None:
        file = root / "project.yaml"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new, 1))

    return change


def removes(name: str) -> Change:
    return lambda root: (root / name).unlink()


def cuts(name: str) -> Change:
    return lambda root: (root / name).write_text((root / name).read_text()[:100])


def clip(name: str, **changes: Any) -> str:
    """A line of a consensus on what is in a clip."""
    readings = [{"reader": "R-1", "payload": {"present": ["Clip"]}}]
    line = {"form": "presence", "item": name, "version": 1, "current": True, "by": "agreed", "readings": readings}
    return json.dumps(line | {"payload": {"present": ["Clip"]}, "body": {"classes": ["Clip"]}} | changes) + "\n"


def focus(clips: str, more: str = "") -> Change:
    def change(root: Path) -> None:
        shutil.rmtree(root / "work" / "events")  # the kinds share no stage
        (root / "project.yaml").write_text(FOCUS + more)
        (root / "sources" / "presence.jsonl").write_text(clips)

    return change


def picture(root: Path) -> None:
    removes("sources/b.mp4")(root)
    Image.new("RGB", (9, 9)).save(root / "sources" / "b.mp4", "PNG")


def cue(start: str, end: str, text: str = "we go on") -> str:
    return f"WEBVTT\n\n{start} --> {end}\n{text}\n"


B, YAML = "sources/b.", "project.yaml: "
FAULTS: dict[str, tuple[Change, str]] = {
    # subtitles
    "no WebVTT": (writes(f"{B}vtt", "1\n00:01 hi"), "b.vtt: line 1: found '1', expected WEBVTT"),
    "times of no form": (writes(f"{B}vtt", cue("0:0x.0", "00:02.000")), "line 3: found '0:0x.0 --> 00:02.000', expected times"),
    "times reversed": (writes(f"{B}vtt", cue("00:05.000", "00:04.000")), "line 3: found an end at 4 s, expected one after 5 s"),
    "cues out of order": (
        writes(f"{B}vtt", cue("00:05.000", "00:06.000") + "\n00:01.000 --> 00:02.000\nho\n"),
        "b.vtt: line 6: found a start at 1 s, expected one not before 5 s",
    ),
    "another video's subtitles": (
        writes(f"{B}vtt", cue("10:05.000", "10:06.000")),
        "b.vtt: line 3: found speech at 606 s, and a video of 25 s, expected the transcript of this video",
    ),
    "a video shorter than its transcript": (
        writes(f"{B}vtt", VTT + "\n00:26.000 --> 00:29.500\nand so on\n"),
        "b.vtt: line 9: found speech at 29.5 s, and a video of 25 s, expected the transcript of this video",
    ),
    "nothing said": (writes(f"{B}vtt", "WEBVTT\n\n"), "b.vtt: found no speech, expected a transcript of what is said"),
    "nothing said in the trim": (says("id: b,", "id: b, start: 9,"), "source 'b': found no speech from 9 to 25 s"),
    "Latin-1": (
        writes(f"{B}vtt", cue("00:01.000", "00:02.000", "schön").encode("latin-1")),
        "b.vtt: byte 35: found text that is not UTF-8, expected UTF-8",
    ),
    "UTF-16": (writes(f"{B}vtt", VTT.encode("utf-16")), "b.vtt: found text in UTF-16, expected text in UTF-8"),
    "JSON cut off": (
        lambda root: (writes(f"{B}json", '{"segments": [')(root), says("b.vtt", "b.json")(root)),
        "b.json: line 1, column 15: found the end of the file: it is cut off, expected JSON",
    ),
    # videos
    "no video": (removes(f"{B}mp4"), "source 'b', field 'video': found no file 'sources/b.mp4', expected a file inside"),
    "text as a video": (writes(f"{B}mp4", "I am text"), "b.mp4: found an unreadable video"),
    "an empty video": (writes(f"{B}mp4", b""), "b.mp4: found an unreadable video"),
    "a picture as a video": (picture, "b.mp4: found a still image, expected a video"),
    "a start after the video": (says("id: b,", "id: b, start: 90,"), "field 'start': found 90 s, expected a time within the video's 25.00 s"),
    "an end after the video": (says("id: b,", "id: b, end: 90,"), "field 'end': found 90 s, expected a time within the video's 25.00 s"),
    # project.yaml
    "no YAML": (writes("project.yaml", "kind: ["), f"{YAML}line 1: found expected the node content"),
    "an empty file": (writes("project.yaml", ""), f"{YAML}field 'kind': found nothing, expected a value"),
    "a key twice": (says("kind:", "kind: focus\nkind:"), f"{YAML}line 2: found 'kind' twice, expected each field once"),
    "an alias": (says("kind: rexsonovqa", "kind: &a x\ntitle: *a"), "found an alias (*name)"),
    "code": (says("kind: rexsonovqa", "kind: !!python/name:os.system"), f"{YAML}line 1: found could not determine a constructor"),
    "an unknown field": (says("kind:", "sed: 1\nkind:"), f"{YAML}field 'sed': found 1, expected no field of this name"),
    "an unknown field of a source": (says("id: b,", "id: b, vidoe: 1,"), "field 'sources.1.vidoe': found 1, expected no field"),
    "an unknown field of a model": (says("retries", "retires"), "retires': found 0, expected no field of this name"),
    "a seed that is no number": (says("kind:", "seed: x\nkind:"), f"{YAML}field 'seed': found 'x', expected a whole number"),
    "sources that are no list": (says("sources:\n", "sources: 3\nx-sources:\n"), f"{YAML}field 'sources': found 3"),
    "no sources": (writes("project.yaml", "kind: rexsonovqa\n"), f"{YAML}sources: found none, expected at least one, with id and video"),
    "the same id twice": (says("id: b,", "id: A,"), f"{YAML}sources: found the id 'A' twice, expected each id once"),
    "the same stretch twice": (says("sources/b.mp4", "sources/a.mp4"), "found sources/a.mp4 from 0 s twice, expected each stretch of a video once"),
    "an id that is a path": (says("id: b,", "id: ../b,"), f"{YAML}field 'sources.1.id': found '../b', expected a text of the form"),
    "an id that is taken": (says("id: b,", "id: attempts,"), f"{YAML}sources: found the id 'attempts', expected an id other than all and attempts"),
    "a path out of the project": (says("sources/b.mp4", "../b.mp4"), "source 'b', field 'video': found '../b.mp4', expected a path inside"),
    "a path from the root": (says("sources/b.vtt", "/etc/passwd"), "source 'b', field 'transcript': found '/etc/passwd', expected a path inside"),
    "an end before its start": (says("id: b,", "id: b, start: 3, end: 2,"), "source 'b', field 'end': found 2 s, expected after start 3 s"),
    "a negative start": (says("id: b,", "id: b, start: -3,"), "field 'sources.1.start': found -3, expected at least 0"),
    "a start that is no number": (says("id: b,", "id: b, start: .nan,"), "field 'sources.1.start': found nan, expected a finite number"),
    "a region out of the picture": (
        says("id: b,", "id: b, region: {x: 0.6, y: 0, width: 0.6, height: 1},"),
        "field 'sources.1.region': found an object, expected a region inside the frame (0 to 1)",
    ),
    "an unknown kind": (says("rexsonovqa", "rexsonvqa"), "unknown kind of project 'rexsonvqa': expected one of clinicalskillqa, focus, rexsonovqa; did you mean"),
    "an unknown stage": (says("normalise", "normalize"), f"{YAML}stages: found 'normalize', expected one of sources, transcript,"),
    "a setting of the wrong type": (
        says("false}", "false}, screen: {seeds: many}"),
        f"{YAML}stages: screen, field 'seeds': found 'many', expected a whole number",
    ),
    "a negative duration": (says("false}", "false}, events: {overlap_s: -1}"), "stages: events, field 'overlap_s': found -1, expected "),
    "settings that are a list": (says("{model: false}", "[]"), f"{YAML}field 'stages.normalise': found an empty list"),
    # models
    "no model": (says("writer", "wirter"), f"{YAML}models: writer: found models for wirter, expected a model: {{name: provider:model}}"),
    "an unknown provider": (says("openai:m", "nosuch:m"), f"{YAML}models: writer: unknown provider 'nosuch' in 'nosuch:m': expected provider:model"),
    "no key": (lambda root: None, f"{YAML}models: writer: openai:m: no API key: set the environment variable OPENAI_API_KEY"),
    # logs of events
    "a column that is missing": (writes(f"{B}csv", "start,action\n0,x\n"), "b.csv: row 1: found no column 'end', expected the columns start, end, action"),
    "an event that ends before it starts": (
        writes(f"{B}csv", "start,end,action\n3,2,x\n"),
        "b.csv: row 2: found 3 to 2 s, expected a start before an end inside the video (25 s)",
    ),
    "a time in words": (writes(f"{B}csv", "start,end,action\nsoon,2,x\n"), "b.csv: row 2, column 'start': found 'soon', expected seconds, such as 12.5"),
    "an event after the video": (writes(f"{B}csv", "start,end,action\n3,99,x\n"), "b.csv: row 2: found 3 to 99 s"),
    "a negative time": (writes(f"{B}csv", "start,end,action\n-3,2,x\n"), "b.csv: row 2, field 'start': found -3.0"),
    "events out of order": (writes(f"{B}csv", "start,end,action\n3,5,x\n1,2,y\n"), "b.csv: row 3, field 'start': found 1 s, expected at or after the end"),
    "no events": (writes(f"{B}csv", "start,end,action\n"), "b.csv: found no rows, expected one or more below the header"),
    "an empty table": (writes(f"{B}csv", ""), "b.csv: found an empty file, expected the columns start, end, action"),
    # what was made before
    "counts of something else": (
        writes("work/transcript/attempts.json", "[]"),
        "attempts.json: found an empty list, expected an object; without it, the next run restores the first versions: delete it,",
    ),
    "a damaged journal": (
        writes("work/journal.sqlite", "garbage" * 300),
        "work/journal.sqlite: found file is not a database, expected a store; it holds replies of models; without it, what the stages made stays,",
    ),
    # annotators
    "clips without classes": (focus(clip("a@0", body={})), "presence.jsonl: line 1, field 'body.classes': found nothing, expected"),
    "a clip of another video": (focus(clip("z@0")), "presence.jsonl: item: found 'z@0', expected VIDEO@START with the id of a source: a"),
    "a clip twice": (focus(clip("a@0") * 2), "presence.jsonl: line 2: found version 1 of 'a@0' again, expected each version once"),
    "clips elsewhere": (focus("", "stages: {presence: {consensus: ../v.jsonl}}\n"), f"{YAML}stages: presence, field 'consensus': found '../v.jsonl', expected a path inside the project folder"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_project_is_one_line_and_leaves_nothing(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    change, said = FAULTS[name]
    root = tmp_path / "p"
    shutil.copytree(made, root, symlinks=True)
    change(root)
    if "model" in said:  # the models are among what the stages before follow from
        proctor("build", "run", root, "--until", "events")
    before = files(root)
    until = "boxes" if "clip" in name else "questions"
    answer = proctor("build", "run", root, "--until", until)
    assert answer.returncode == 1
    (line,) = answer.stderr.splitlines()
    assert said in line
    assert line.startswith("proctor: ")
    assert answer.stdout == ""
    assert files(root) == before


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"stage": "transcr', "found broken JSON (EOF while parsing a string at line 1 column 18), expected JSON"),
        ('{"stage": 1}', "field 'stage': found 1, expected a text"),
        ('{"stage": "transcript", "unit": "b", "made_from": "", "records": [{"id": "b"}]}', "record 1, field 'source'"),
    ],
)
def test_a_damaged_record_is_made_again_and_kept(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, found: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    root = tmp_path / "p"
    shutil.copytree(made, root, symlinks=True)
    file = root / "work" / "transcript" / "b.json"
    good = file.read_bytes()
    file.write_text(content)
    for command, *more in (("status",), ("status", "a-s001")):
        (line,) = proctor("build", command, root, *more).stderr.splitlines()
        assert line.startswith(f"proctor: {file}: {found}")
        assert line.endswith(f"; `proctor build run {root}` makes it again")
    answer = proctor("build", "run", root, "--until", "transcript")
    aside = root / "work" / "transcript" / "history" / "b.damaged-1.json"
    assert answer.returncode == 0
    assert f"transcript: made again: {file}: {found}" in answer.stderr
    assert f"; kept as {aside}\n" in answer.stderr
    assert (file.read_bytes(), aside.read_text()) == (good, content)
    assert proctor("build", "status", root).returncode == 0


def test_a_damaged_former_version_stops_no_run(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "p"
    shutil.copytree(made, root, symlinks=True)
    former = root / "work" / "transcript" / "history" / "b.001.json"
    former.parent.mkdir()
    former.write_text("{")
    again = ("--redo", "transcript", "--item", "b")
    assert proctor("build", "run", root, "--until", "transcript", *again).returncode == 0
    assert sorted(one.name for one in former.parent.iterdir()) == ["b.001.json", "b.002.json"]
    (line,) = proctor("build", "status", root, "b-s001").stderr.splitlines()
    assert line.startswith(f"proctor: {former}: found broken JSON")
    assert line.endswith("nothing is made from former versions: move it away")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--until", "evnts"], "stage: found 'evnts', expected one of sources, transcript,"),
        (["run", "--source", "c"], "--source 'c' is unknown: choose one of a, b"),
        (["run", "--redo", "evnts"], "stage: found 'evnts', expected one of"),
        (["run", "--redo", "events", "--item", "x"], "events: item: found 'x', expected one of a-e001, b-e001"),
        (["run", "--redo", "events", "--undo"], "events: a: found the first version, expected one made again before"),
        (["status", "a-s1"], "item: found 'a-s1', expected an id such as a-s001"),
        (["new", "--kind", "focus"], "found something there already, expected a new or an empty folder"),
    ],
)
def test_what_is_asked_for_and_not_there_is_one_line(made: Path, arguments: list[str], said: str) -> None:
    before, (command, *more) = files(made), arguments
    answer = proctor("build", command, made, *more)
    assert answer.returncode in {1, 2}
    assert re.fullmatch(f"proctor: .*{re.escape(said)}.*\n", answer.stderr)
    assert files(made) == before


def test_a_second_process_is_refused_in_one_line(made: Path) -> None:
    before = files(made)
    with Project(made).alone():
        answer = proctor("build", "run", made)
    assert answer.returncode == 1
    assert (
        answer.stderr
        == f"proctor: {made}: found another process at work on it, expected one at a time: wait for it, or stop it\n"
    )
    assert files(made) == before


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (shutil.rmtree, "found no project.yaml, expected a project folder (proctor build new)"),
        (lambda root: root.joinpath("work").rename(root / "x").joinpath("../work").touch(), "work: found File exists"),
    ],
)
def test_a_folder_that_is_no_project(made: Path, tmp_path: Path, spoil: Change, said: str) -> None:
    root = tmp_path / "p"
    shutil.copytree(made, root, symlinks=True)
    spoil(root)
    answer = proctor("build", "run", root, "--until", "events")
    assert answer.returncode == 1
    assert re.fullmatch(f"proctor: .*{re.escape(said)}.*\n", answer.stderr)
