"""The frame of a project: what is due, what is kept, what it costs, and what led to what."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from proctor.core import ConfigurationError, InputError
from proctor_build.pipeline import PROJECT_KINDS, Project, funnel, history, redo_record, run_stages
from proctor_build.pipeline.commands import new
from tests.construction.pipeline.letters import LETTERS
from tests.support.faulty_server import Fault, FaultyServer, Request
from tests.support.program import proctor

WORDS = {"a": "apple", "b": "bread", "c": "wrong", "d": "date"}


def reply(request: Request) -> str:
    found = re.search(r"begins with (\w)", request.text)
    assert found is not None
    return json.dumps({"word": WORDS[found[1].lower()]})


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(reply) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setitem(PROJECT_KINDS._known, "letters", LETTERS)
    root = tmp_path / "project"
    (root / "sources").mkdir(parents=True)
    for name, text in (("one", "abc"), ("two", "d")):
        (root / "sources" / f"{name}.txt").write_text(text)
        (root / "sources" / f"{name}.mp4").write_bytes(b"")
    sources = [{"id": one, "video": f"sources/{one}.mp4", "transcript": f"sources/{one}.txt"} for one in ("one", "two")]
    model = {"name": "openai:m", "base_url": server.url, "retries": 0, "structured": "prompted"}
    settings = {"kind": "letters", "models": {"writer": model}, "sources": sources}
    (root / "project.yaml").write_text(yaml.safe_dump(settings))
    return root


def change(folder: Path, **fields: object) -> None:
    file = folder / "project.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | fields))


def ran(folder: Path, until: str = "") -> dict[tuple[str, str], str]:
    states = asyncio.run(run_stages(Project(folder), until=until))
    return {(one.stage, one.unit): one.state for one in states}


def content(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted((folder / "work").rglob("*.json"))}


def test_every_stage_is_run_once(folder: Path, server: FaultyServer) -> None:
    assert set(ran(folder).values()) == {"made"}
    before = content(folder)
    assert server.count == 4
    assert set(ran(folder).values()) == {"kept"}
    assert (server.count, content(folder)) == (4, before)
    assert json.loads(before["work/sentence/all.json"])["records"][0]["text"] == "apple bread date"


def test_the_funnel_says_what_went_in_and_out_and_why(folder: Path) -> None:
    ran(folder)
    rows = {one.stage: one for one in funnel(Project(folder))}
    words = rows["words"]
    assert (words.done, words.units, words.into, words.out, words.refused, words.calls) == (2, 2, 4, 3, 1, 4)
    assert words.reasons == ("one-2w: initial: a word that begins with c",)
    assert (rows["letters"].into, rows["letters"].calls, rows["sentence"].out) == (None, 0, 1)
    assert rows["sentence"].calls == 0  # its record has the calls of the words, which were counted there


def test_status_is_read_in_eighty_columns(folder: Path) -> None:
    before = proctor("build", "status", folder)
    assert before.stderr == f"Not done: letters, words, sentence. Next: proctor build run {folder}\n"
    ran(folder)
    tokens = sum(one.tokens for one in funnel(Project(folder)))
    said = proctor("build", "status", folder)
    rows = {line.split()[0]: line.split()[1:] for line in said.stdout.splitlines()[2:6]}
    assert rows["words"] == ["2/2", "4", "3", "–", "1", "4", str(tokens), "unknown"]
    assert rows["sentence"] == ["1/1", "3", "1", "–", "–", "–", "–", "–"]
    assert rows["total"] == ["1", "4", str(tokens), "unknown"]
    assert "words: refused: one-2w: initial: a word that begins with c" in said.stdout
    assert said.stderr == "Cost unknown: no price is known for these models.\n"
    assert max(map(len, said.stdout.splitlines())) <= 80


def test_a_changed_source_makes_due_what_follows_from_it_alone(folder: Path, server: FaultyServer) -> None:
    ran(folder)
    (folder / "sources" / "two.txt").write_text("da")
    states = ran(folder)
    assert {key for key, state in states.items() if state == "made"} == {
        ("letters", "two"), ("words", "two"), ("sentence", "all"),
    }  # fmt: skip
    assert server.count == 4  # "d" and "a" were in the journal: the same is asked once


def test_a_setting_changes_what_follows(folder: Path) -> None:
    ran(folder, "letters")
    change(folder, stages={"letters": {"upper": True}})
    assert set(ran(folder, "letters").values()) == {"made"}
    change(folder, stages={"letters": {"uper": True}})
    with pytest.raises(InputError, match=r"project\.yaml: stages: letters, field 'uper'"):
        ran(folder, "letters")


def test_an_item_is_made_anew_and_brought_back(
    folder: Path, server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(folder)
    first = content(folder)["work/words/one.json"]
    monkeypatch.setitem(WORDS, "a", "answer")
    assert redo_record(Project(folder), "words", "one-0w") == 1
    ran(folder)
    assert server.count == 5  # that item alone
    texts = [one["text"] for one in json.loads(content(folder)["work/words/one.json"])["records"]]
    assert texts == ["answer", "bread"]
    versions = [(one.stage, one.version, one.record["text"]) for one in history(Project(folder), "one-0w")]
    assert ("words", 1, "apple") in versions
    assert ("words", 0, "answer") in versions
    assert {stage for stage, _, _ in versions} == {"letters", "words", "sentence"}

    assert redo_record(Project(folder), "words", "one-0w", undo=True) == 0
    ran(folder)
    again = content(folder)["work/words/one.json"]
    assert server.count == 5  # out of the journal
    assert json.loads(again)["records"] == json.loads(first)["records"]
    with pytest.raises(InputError, match="found the first version"):
        redo_record(Project(folder), "words", "one-0w", undo=True)


def test_history_knows_the_replies(folder: Path) -> None:
    ran(folder)
    steps = {str(one.record["id"]): one for one in history(Project(folder), "one-2w")}
    assert steps["one-2w"].refused
    assert steps["one-2w"].replies[0]["reply"] == {"word": "wrong"}
    with pytest.raises(InputError, match="an id such as one-0, one-0w"):
        history(Project(folder), "one-0v")


def test_a_model_that_is_down_makes_its_units_wait(folder: Path, server: FaultyServer) -> None:
    server.faults, server._kinds = 1.0, (Fault.SERVER_ERROR,)
    states = ran(folder)
    assert states["letters", "one"] == "made"
    assert {states["words", "one"], states["words", "two"], states["sentence", "all"]} == {"waiting"}
    assert not (folder / "work" / "words").exists()
    server.faults = 0.0
    assert ran(folder)["sentence", "all"] == "made"


def test_a_server_that_rejects_every_request_ends_the_build(folder: Path, server: FaultyServer) -> None:
    for number in range(8):
        (folder / "sources" / f"s{number}.txt").write_text("abdabdab"[number])
        (folder / "sources" / f"s{number}.mp4").write_bytes(b"")
    names = [f"s{number}" for number in range(8)]
    change(
        folder,
        sources=[{"id": one, "video": f"sources/{one}.mp4", "transcript": f"sources/{one}.txt"} for one in names],
    )
    server.faults, server._kinds = 1.0, (Fault.NO_REASON,)
    with pytest.raises(ConfigurationError, match=r"HTTP 400: Bad request \(the same for the first \d items asked"):
        ran(folder)
    server.faults = 0.0
    assert ran(folder)["sentence", "all"] == "made"


def test_a_person_is_waited_for(folder: Path) -> None:
    (folder / "sources" / "two.txt").write_text("\n")
    states = asyncio.run(run_stages(Project(folder)))
    waiting = {(one.stage, one.unit): one.why for one in states if one.state == "waiting"}
    assert waiting == {
        ("letters", "two"): "somebody must write something",
        ("words", "two"): "for letters of two",
        ("sentence", "all"): "for words of two",
    }


def test_two_processes_do_not_work_on_one_project(folder: Path) -> None:
    with Project(folder).alone(), pytest.raises(InputError, match="another process at work"):
        ran(folder)


@pytest.mark.parametrize(
    ("change_", "message"),
    [
        ({"sources": []}, "sources: found none"),
        ({"sources": [{"id": "a", "video": "../x.mp4"}]}, "field 'video': found '../x.mp4', expected a path inside"),
        ({"sources": [{"id": "a", "video": "/x.mp4"}]}, "expected a path inside the project folder"),
        ({"sources": [{"id": "a/b", "video": "x.mp4"}]}, "field 'sources.0.id'"),
        ({"sources": [{"id": "a", "video": "x.mp4"}, {"id": "a", "video": "y.mp4"}]}, "found the id 'a' twice"),
        ({"sources": [{"id": "a", "video": "x.mp4"}, {"id": "b", "video": "x.mp4"}]}, "each stretch of a video once"),
        ({"sources": [{"id": "a", "video": "x.mp4", "start": 3, "end": 2}]}, "expected after start 3 s"),
        ({"sources": [{"id": "a", "video": "x.mp4", "vidoe": 1}]}, "vidoe"),
        ({"models": {"writer": {"name": "m", "sed": 1}}}, "models"),
        ({"kind": "lettres"}, "unknown kind of project 'lettres'"),
    ],
)
def test_faults_of_the_settings_are_told(folder: Path, change_: dict[str, object], message: str) -> None:
    change(folder, **change_)
    with pytest.raises(Exception, match=re.escape(message)):
        ran(folder)
    assert not (folder / "work" / "letters").exists()


def test_a_role_without_a_model_is_told(folder: Path) -> None:
    change(folder, models={"screen": {"name": "openai:m"}})
    with pytest.raises(InputError, match=r"project\.yaml: models: writer"):
        ran(folder)


def test_a_file_that_is_missing_is_told_with_its_source(folder: Path) -> None:
    (folder / "sources" / "two.txt").unlink()
    with pytest.raises(InputError, match=r"source 'two', field 'transcript': found no file 'sources/two\.txt'"):
        ran(folder)
    assert (folder / "work" / "letters" / "one.json").is_file()


def test_a_key_twice_in_the_settings_is_told(folder: Path) -> None:
    file = folder / "project.yaml"
    file.write_text(file.read_text() + "\nkind: letters\n")
    with pytest.raises(InputError, match="'kind' twice"):
        Project(folder)


def test_the_example_of_a_kind_names_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copied example made a project of the other kind without a word."""
    copied = tmp_path / "project.yaml"
    copied.write_text("kind: rexsonovqa\n", encoding="utf-8")
    monkeypatch.setitem(PROJECT_KINDS._known, "letters", replace(LETTERS, example=copied))
    with pytest.raises(InputError) as told:
        new(tmp_path / "project", "letters")
    said = "kind: found 'rexsonovqa', expected 'letters', the kind that it is an example of"
    assert str(told.value) == f"{copied}: {said}"
    assert not (tmp_path / "project").exists()
    for name in ("focus", "rexsonovqa", "clinicalskillqa"):
        assert new(tmp_path / name, name).ok
