"""What readers settle comes back into the project: accepted, edited, rejected; nothing goes on before, and nothing for
another version."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import Engine, select

from proctor.core import InputError
from proctor_build.pipeline import Project, run_stages
from proctor_web.export import CONSENSUS_COLUMNS, consensus_rows, write_readings
from proctor_web.readings import Save, edit_item, seal
from proctor_web.schema import study_items
from proctor_web.sources import NewItem, items_of_project
from tests.docs.test_examples import agrees, called
from tests.support.faulty_server import FaultyServer
from tests.support.markdown import blocks, commands
from tests.support.program import proctor
from tests.support.scribe import scribe
from tests.support.web_study import ACCEPT, ALL_CHECKS, NOW, REJECT, accounts_of, study_of
from tests.support.web_study import review as web_review
from tools.docs import ROOT

PAGE = ROOT / "docs" / "tasks" / "review-in-the-browser.md"
EVENTS = "start,end,action,intent\n" + "\n".join(
    f"{n * 4}.0,{n * 4 + 3}.5,we {verb} the swab,to {goal} the edge"
    for n, (verb, goal) in enumerate((("bring", "open"), ("move", "clear"), ("slide", "free"), ("take", "close")))
)
Say = Callable[[str, dict[str, Any]], dict[str, Any] | None]
WHY = "two options are right | <b>see</b>"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, film: Path) -> Iterator[Path]:
    """A project with a review, run as far as it goes without readers."""
    root = tmp_path_factory.mktemp("review") / "p"
    (root / "sources").mkdir(parents=True)
    (root / "sources" / "a.mp4").symlink_to(film / "videos" / "sim-000.mp4")
    (root / "sources" / "a.vtt").write_text("WEBVTT\n\n00:00.000 --> 00:03.000\nWe begin.\n")
    (root / "sources" / "a.csv").write_text(EVENTS + "\n")
    with pytest.MonkeyPatch.context() as patch, FaultyServer(scribe) as server:
        patch.setenv("OPENAI_API_KEY", "none")
        model = {"name": "openai:m", "base_url": server.url, "retries": 0, "structured": "prompted"}
        settings = {
            "kind": "rexsonovqa",
            "models": {role: dict(model) for role in ("writer", "screen", "judge")},
            "sources": [{"id": "a", **{kind: f"sources/a.{end}" for kind, end in _FILES.items()}}],
            "stages": {"normalise": {"model": False}, "questions": {"per_event": 1.0}, "review": {}},
        }
        (root / "project.yaml").write_text(yaml.safe_dump(settings))
        waiting = {one.stage: one.why for one in asyncio.run(run_stages(Project(root))) if one.state == "waiting"}
        said = (
            "sources/consensus.jsonl: 4 of 4 questions to settle (proctor review export REVIEW STUDY --what consensus"
        )
        assert waiting.pop("review").startswith(said)
        assert waiting == {"split": "for review of all", "export": "for review of all"}
        yield root


_FILES = {"video": "mp4", "transcript": "vtt", "events": "csv"}


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return shutil.copytree(made, tmp_path / "abdomen", symlinks=True)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = web_review(tmp_path / "review.sqlite")
    yield opened
    opened.dispose()


def ran(folder: Path, until: str = "") -> dict[str, str]:
    return {one.stage: one.state for one in asyncio.run(run_stages(Project(folder), until=until))}


def waits(folder: Path) -> str:
    (said,) = [one.why for one in asyncio.run(run_stages(Project(folder), until="review")) if one.stage == "review"]
    return said


def unit(folder: Path, stage: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "work" / stage / "all.json").read_text())
    return found


def edit(body: dict[str, Any], **changes: Any) -> dict[str, Any]:
    text = {name: body[name] for name in ("stem", "options", "key", "answer", "explanation") if name in body}
    return {"decision": "edit", "checks": ALL_CHECKS, "reason": "clearer so", "edited": text | changes}


def sealed(engine: Engine, items: list[NewItem], ids: dict[str, int], say: Say) -> None:
    """Two readers seal what `say` says of each question."""
    with engine.begin() as connection:
        who = accounts_of(connection)
        for one in items:
            payload = say(one.key, one.body)
            for name in ("anna", "ben") if payload else ():
                seal(connection, who[name], ids[one.key], Save(1, 0, payload or {}, "", 5), NOW)


def read_by_all(folder: Path, engine: Engine, say: Say) -> dict[str, int]:
    """The same, and the consensus is exported into the project. The ids of the items."""
    items = items_of_project(folder, folder)
    assert all(one.body["events"] for one in items)
    ids = study_of(engine, items)
    sealed(engine, items, ids, say)
    export(folder, engine)
    return ids


def export(folder: Path, engine: Engine) -> None:
    with engine.begin() as connection:
        rows = consensus_rows(connection, accounts_of(connection)["olga"], "s")
    write_readings(rows, CONSENSUS_COLUMNS, folder / "sources" / "consensus.jsonl", "jsonl")


def test_what_readers_settle_goes_on_as_the_page_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.delenv("PROCTOR_STORE", raising=False)
    settings, shell = [one for one in blocks(PAGE) if "abdomen" in one.body]
    Path("my-review").mkdir()
    Path("my-review/review.yaml").write_text(settings.body)
    engine = web_review(Path("my-review/review.sqlite").absolute())
    assert called(["proctor", "review", "update", "my-review"])[0] == 0
    items = items_of_project(folder, folder)
    drafts = {one["id"]: one for one in unit(folder, "repair")["records"]}
    choice = next(name for name, one in drafts.items() if one["kind"] == "mcq")
    refused, *accepted = (name for name in drafts if name != choice)
    stem = "Which step is shown, and  what is it for?"

    def say(key: str, body: dict[str, Any]) -> dict[str, Any]:
        changes = {"stem": stem, "options": [f"{one} by hand" for one in body["options"]]} if key == choice else {}
        return REJECT | {"reason": WHY} if key == refused else edit(body, **changes) if changes else ACCEPT

    with engine.begin() as connection:
        ids = {key: number for number, key in connection.execute(select(study_items.c.id, study_items.c.key))}
    sealed(engine, items, ids, say)
    engine.dispose()
    said = ""
    for command in commands(shell):
        code, said = called(shlex.split(command.line))
        assert code == 0, said
        assert not command.output or agrees(command.output, said), said
    settled = {one["id"]: one for one in unit(folder, "review")["records"]}
    assert list(settled) == [name for name in drafts if name != refused]
    new, old = settled[choice], drafts[choice]
    assert (new["settled"], new["by"], new["reason"]) == ("edited", "review", "clearer so")
    assert (new["text"], new["version"], new["key"]) == (" ".join(stem.split()), old["version"] + 1, old["key"])
    assert {name: new["former"][-1][name] for name in ("text", "options", "version")} == {
        name: old[name] for name in ("text", "options", "version")
    }
    assert new["screening"]["version"] == new["version"]
    assert new["screening"]["calls"] != old["screening"]["calls"]
    for name in accepted:
        assert settled[name]["settled"] == "accepted"
        assert settled[name]["text"] == drafts[name]["text"]
        assert not any("clinician" in flag for flag in settled[name]["flags"])
    (gone,) = unit(folder, "review")["refused"]
    assert (gone["id"], gone["kind"], gone["reason"]) == (refused, "rejected in review", WHY)
    assert not any(name in json.dumps(unit(folder, "review")) for name in ("anna", "R0"))

    datasheet = (folder / "items" / "DATASHEET.md").read_text()
    assert "| review | 3 |" in datasheet
    assert "2 readers (R0, R1), each blind to the others" in datasheet
    assert "2 accepted, 1 edited and screened again, 1 rejected." in datasheet
    assert f"- {refused}: two options are right \\| \\<b\\>see\\</b\\>" in datasheet
    questions = [
        one for file in folder.glob("items/benchmark_questions/*/*.json") for one in json.loads(file.read_text())
    ]
    assert len(questions) == 3
    assert any(" ".join(stem.split()) in one["question"] for one in questions)
    rows = {line.split()[0]: line.split()[1:6] for line in said.splitlines()[2:12]}
    assert rows["review"][:3] == ["1/1", "4", "3"]
    assert rows["split"][:3] == ["1/1", "3", "3"]
    assert rows["export"][1] == "3"
    assert f"review: refused: {refused}: rejected in review: {WHY}" in " ".join(said.split())
    history = " ".join(proctor("build", "status", folder, choice).stdout.split())
    assert "settled: edited; by: review; reason: clearer so" in history

    assert set(ran(folder).values()) == {"kept"}
    assert items_of_project(folder, folder) == items  # the review's are those before it, split or not


def test_what_is_open_or_has_changed_since_waits(folder: Path, engine: Engine) -> None:
    first, *_ = [one["id"] for one in unit(folder, "repair")["records"]]
    read_by_all(folder, engine, lambda key, _: ACCEPT if key != first else None)
    assert waits(folder).startswith("sources/consensus.jsonl: 1 of 4 questions to settle (proctor review export")
    file = folder / "project.yaml"
    file.write_text(file.read_text().replace("id: a\n", "id: a\n  region: {x: 0, y: 0, width: 0.5, height: 1}\n"))
    assert "region" in file.read_text()
    assert "4 of 4 questions to settle, 3 of them changed since they were settled (" in waits(folder)
    assert not (folder / "work" / "review").exists()


def test_what_an_organiser_changes_is_settled_again_in_its_new_words(folder: Path, engine: Engine) -> None:
    ids = read_by_all(folder, engine, lambda *_: ACCEPT)
    drafts = unit(folder, "repair")["records"]
    first, second, third, _ = (one["id"] for one in drafts)
    bodies = {one.key: one.body for one in items_of_project(folder, folder)}
    changes: dict[str, dict[str, Any]] = {
        first: {"stem": "What does the on-screen text show here?"},
        second: {},
        third: {"explanation": ""},
    }
    with engine.begin() as connection:
        who = accounts_of(connection)
        for name, change in changes.items():
            edit_item(connection, who["olga"], ids[name], {**bodies[name], **change}, "better so", NOW)
    export(folder, engine)
    assert "4 questions to settle, 3 of them changed since they were settled (" in waits(folder)
    with engine.begin() as connection:
        for name in changes:
            says = REJECT if name == second else ACCEPT
            for reader in ("anna", "ben"):
                seal(connection, who[reader], ids[name], Save(2, 0, says, "", 5), NOW)
    export(folder, engine)
    assert ran(folder, "review")["review"] == "made"
    edited, kept, other = unit(folder, "review")["records"]
    assert [one["settled"] for one in (edited, kept, other)] == ["edited", "accepted", "accepted"]
    assert edited["reason"] == "changed in the review before it was read"
    assert "edited against a rule: on-screen text" in edited["flags"]
    assert (kept["id"], kept["groundtruth"]) == (third, drafts[2]["groundtruth"])
    (gone,) = unit(folder, "review")["refused"]
    assert (gone["id"], gone["reason"]) == (second, REJECT["reason"])


def test_a_question_written_in_the_review_is_counted_and_left_out(folder: Path, engine: Engine) -> None:
    read_by_all(folder, engine, lambda *_: ACCEPT)
    with (folder / "sources" / "consensus.jsonl").open("a") as file:
        file.write(json.dumps(LINE | {"item": "written-5"}) + "\n")
    assert ran(folder, "review")["review"] == "made"
    assert unit(folder, "review")["notes"] == [
        "4 accepted, 0 edited and screened again, 0 rejected",
        "1 other question of the study left out, written there or gone from here",
    ]


def test_the_order_of_options_is_no_other_version(folder: Path, engine: Engine) -> None:
    """The split deals the options again: who read the questions after it has settled the same ones."""
    file = folder / "project.yaml"
    with_review = file.read_text()
    file.write_text(with_review.replace("  review: {}\n", ""))
    assert ran(folder)["export"] == "made"
    read_by_all(folder, engine, lambda *_: ACCEPT)
    kept = unit(folder, "split")["records"]
    file.write_text(with_review)
    assert ran(folder)["review"] == "made"
    assert [one["settled"] for one in unit(folder, "review")["records"]] == ["accepted"] * 4
    assert [one["options"] for one in unit(folder, "split")["records"]] == [one["options"] for one in kept]


LINE: dict[str, Any] = {
    "study": "s", "form": "question", "item": "x", "group": "a", "version": 1, "current": True, "by": "agreed", "reason": "", "at": "",
    "payload": {"decision": "accept"}, "body": {"stem": "What for?", "options": ["To see", "To rest"], "key": 0},
}  # fmt: skip


def body(**changes: Any) -> dict[str, Any]:
    return {"body": LINE["body"] | changes}


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ('{"form": "question"', "line 2, column 20: found the end of the file: it is cut off, expected JSON"),
        ("[]", "line 2: found an empty list, expected"),
        ('{"item": 1, "item": 2}', "line 2: found the key 'item' twice, expected each key once"),
        ({}, "line 2: found version 1 of 'x' again, expected each version once: the consensus of one study"),
        ({"form": "rating"}, "line 2, field 'form': found 'rating', expected 'question'"),
        ({"version": "2"}, "line 2, field 'version': found '2', expected a whole number"),
        ({"version": 0}, "line 2, field 'version': found 0, expected "),
        ({"version": 2, "current": "yes"}, "line 2, field 'current': found 'yes', expected true or false"),
        ({"item": ""}, "line 2, field 'item': found ''"),
        ({"payload": {"decision": "perhaps"}}, "line 2, field 'payload.decision': found 'perhaps', expected 'accept'"),
        ({"payload": {}}, "line 2, field 'payload.decision': found nothing"),
        ({"reason": "x" * 10_001}, "line 2, field 'reason'"),
        (body(stem=" "), "line 2, field 'body': found an object, expected a stem with options and a key, or with an answer"),
        (body(options=[], key=None), "line 2, field 'body': found an object, expected a stem with options and a key"),
        (body(options=["To see"]), "line 2, field 'body': found an object, expected two or more different options"),
        (body(options=["To see", "To  see "]), "line 2, field 'body': found an object, expected two or more different options"),
        (body(key=2), "line 2, field 'body': found an object, expected the position of the right option as key"),
        (body(key=True), "line 2, field 'body.key': found True"),
        (body(stem=3), "line 2, field 'body.stem': found 3"),
    ],
    ids=str,
)  # fmt: skip
def test_a_consensus_that_does_not_fit_is_located(folder: Path, second: str | dict[str, Any], said: str) -> None:
    text = second if isinstance(second, str) else json.dumps(LINE | second)
    file = folder / "sources" / "consensus.jsonl"
    file.write_text(json.dumps(LINE) + "\n" + text + "\n")
    with pytest.raises(InputError) as caught:
        ran(folder, "review")
    assert f"consensus.jsonl: {said}" in str(caught.value)
    assert not (folder / "work" / "review").exists()


@pytest.mark.parametrize("named", ["../consensus.jsonl", "/etc/passwd"])
def test_a_consensus_elsewhere_is_refused(folder: Path, named: str) -> None:
    file = folder / "project.yaml"
    file.write_text(file.read_text().replace("review: {}", f"review: {{consensus: {named}}}"))
    with pytest.raises(
        InputError, match=r"project\.yaml: stages: review, field 'consensus': found .*inside the project"
    ):
        ran(folder, "review")


def test_a_folder_as_consensus_is_said(folder: Path) -> None:
    (folder / "sources" / "consensus.jsonl").mkdir()
    with pytest.raises(InputError, match=r"consensus\.jsonl: found an unreadable file"):
        ran(folder, "review")
