"""`proctor sight`: exit codes, JSON, where the result is kept, and what `run`, `results` and `report` say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pydantic import JsonValue

from proctor import api
from proctor.core import UsageError
from proctor.models import ModelClient, ModelSpec
from proctor.runs import Run, Store
from proctor.sight import kept_result
from tests.support import sighted_server as served
from tests.support.faulty_server import FaultyServer
from tests.support.paths import ROOT
from tests.support.program import proctor
from tests.support.sighted_server import Sighted

FEW = ("--routes", "tools", "--redraw", "5")
"""A test without clips, which is fast."""


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return str(tmp_path / "cache")


def kept(url: str, cache: str, name: str = "m") -> object:
    """The state that is kept for a model at an address."""
    client = ModelClient(ModelSpec(name=name, base_url=url))
    result = kept_result(client.settings, cache)
    return None if result is None else result.state


def test_it_sees(cache: str) -> None:
    with FaultyServer(Sighted()) as server:
        done = proctor("sight", "m", "--base-url", server.url, "--cache", cache, *FEW)
        assert (done.returncode, kept(server.url, cache)) == (0, "sees")
        assert kept(server.url, cache, "another") is None
        assert kept("http://localhost:1/v1", cache) is None
        table = api.sight("m", base_url=server.url, cache=cache, routes="tools", redraw=5)
    assert "Sight test of m: sees" in done.stdout
    assert "seed 5" in done.stderr
    assert [row["state"] for row in table] == ["sees"]
    assert table.data.exit_code == 0


def test_a_fault_is_named_in_json(cache: str) -> None:
    with FaultyServer(Sighted(fault=served.strips_with("tools"))) as server:
        done = proctor("sight", "m", "--base-url", server.url, "--cache", cache, *FEW, "--format", "json")
    said = json.loads(done.stdout)
    assert done.returncode == 1
    assert (said["state"], said["seed"], said["required"]) == ("fault", 5, ["tools"])
    assert [one["code"] for one in said["findings"]] == ["tools"]
    assert said["findings"][0]["advice"].startswith("Give this model no tools")
    assert said["routes"]["tools"]["state"] == "fault"
    assert said["calls"] <= 64


def test_nobody_there_can_not_be_checked(cache: str) -> None:
    done = proctor("sight", "m", "--base-url", "http://127.0.0.1:9/v1", "--cache", cache, "--format", "json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["state"] == "could not check"
    assert "nobody answers at http://127.0.0.1:9/v1" in done.stderr
    assert kept("http://127.0.0.1:9/v1", cache) is None


def test_an_unknown_route_is_one_line(cache: str) -> None:
    done = proctor("sight", "m", "--base-url", "http://127.0.0.1:9/v1", "--routes", "frames,smell")
    assert done.returncode == 2
    assert done.stderr.startswith("proctor: --routes smell is unknown: give one of frames, video, tools, schema, sound")
    with pytest.raises(UsageError, match="smell"):
        api.sight("m", base_url="http://127.0.0.1:9/v1", routes=["smell"])


def test_seeds_are_drawn_and_recorded(cache: str) -> None:
    with FaultyServer(Sighted()) as server:
        first, second = (api.sight("m", base_url=server.url, cache=cache, routes="tools") for _ in range(2))
    assert first.data.seed != second.data.seed


def test_a_route_that_was_not_tested_again_keeps_its_fault(cache: str) -> None:
    model = Sighted(fault=served.strips_with("tools"))
    with FaultyServer(model) as server:
        api.sight("m", base_url=server.url, cache=cache, routes="tools")
        assert api.sight("m", base_url=server.url, cache=cache, routes="schema").data.state == "sees"
        assert kept(server.url, cache) == "fault"
        model.fault = lambda parts, _: parts
        api.sight("m", base_url=server.url, cache=cache, routes="tools")
        assert kept(server.url, cache) == "sees"


def test_few_calls_leave_questions_unasked(cache: str) -> None:
    with FaultyServer(Sighted()) as server:
        table = api.sight("m", base_url=server.url, cache=cache, routes=["tools", "schema"], calls=9)
        assert server.count == 9
    assert table.data.state == "could not check"
    assert "no calls are left" in " ".join(table.notes)


def test_a_server_that_never_replies_ends_with_the_time(cache: str) -> None:
    with FaultyServer(Sighted(), holds_after=0) as server:
        table = api.sight("m", base_url=server.url, cache=cache, routes="tools", within_s=0.5)
        server.release()
    assert table.data.state == "could not check"
    assert [(kind.kind, kind.failed) for kind in table.data.kinds] == [("number", 1)]
    assert "the time is over" in table.rows[0]["note"]
    assert [note for note in table.notes if note.startswith("Not asked: ") and "the time is over" in note]


def test_a_required_route_that_was_not_tested_is_not_passed(cache: str) -> None:
    with FaultyServer(Sighted()) as server:
        result = api.sight("m", base_url=server.url, cache=cache, routes="tools").data
    assert (result.state, result.exit_code) == ("sees", 0)
    for required in (("tools", "frames"), ()):
        other = result.model_copy(update={"required": required})
        assert (other.state, other.exit_code) == ("could not check", 2)


def test_a_batch_is_asked_in_files_and_read_from_them(tmp_path: Path, cache: str) -> None:
    """The requests of the first call are answered by the same model, and the second call reads the replies."""
    folder = tmp_path / "batch"
    folder.mkdir()
    ask = (
        "sight",
        "m",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--batch",
        folder,
        "--cache",
        cache,
        "--routes",
        "tools",
    )
    first = proctor(*ask)
    assert first.returncode == 2
    assert "pending" in first.stdout
    assert "Run the same command again when the replies are there." in first.stderr
    answer_batch(folder, Sighted())
    second = proctor(*ask)
    assert second.returncode == 0, second.stderr
    assert "sees" in second.stdout


def test_the_page_shows_what_is_printed(cache: str) -> None:
    page = (ROOT / "docs/tasks/sight-test.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- sight: only_first(16), seed 3 -->\n\n```text\n")[2].partition("```")[0]
    with FaultyServer(Sighted(fault=served.only_first(16))) as server:
        done = proctor("sight", "m", "--base-url", server.url, "--cache", cache, "--redraw", "3")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[: lines.index("By question") - 1] == shown.splitlines()
    assert max(map(len, lines)) <= 80


def test_the_verdict_comes_first_and_says_what_to_do(cache: str) -> None:
    with FaultyServer(Sighted(fault=served.strips_with("tools"))) as server:
        lines = proctor("sight", "m", "--base-url", server.url, "--cache", cache, *FEW).stdout.splitlines()
    assert lines[:2] == ["Sight test of m: fault (1 finding)", "- Pictures are stripped when tools are given."]
    assert lines[3] == "  What to do: Give this model no tools, or look for another server or chat"
    with FaultyServer(
        Sighted(manner=lambda *_: "Roses are red, and so is my sight." + " Violets are blue." * 9)
    ) as server:
        done = proctor("sight", "m", "--base-url", server.url, "--cache", cache, "--routes", "frames", "--redraw", "5")
    lines = done.stdout.splitlines()
    assert done.returncode == 2
    assert lines[0] == "Sight test of m: could not check"
    assert lines[1].startswith("- By frames, could not check: ")
    assert " ".join(lines).count("What to do: Replies came and no answer could be read from them") == 1
    assert max(len(line) for line in lines[: lines.index("By route")]) <= 80


def test_a_hostile_reply_reaches_no_terminal(cache: str) -> None:
    hostile = "\x1bc\x07Roses [bold]are[/bold] red"
    with FaultyServer(Sighted(manner=lambda *_: hostile)) as server:
        done = proctor("sight", "m", "--base-url", server.url, "--cache", cache, "--routes", "frames", "--redraw", "5")
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
    assert "[bold]are[/bold]" in done.stdout


def answer_batch(folder: Path, model: Sighted) -> None:
    """Answers all requests in the folder, as a provider's batch would."""
    lines = []
    for file in sorted(folder.glob("requests-*.jsonl")):
        for line in file.read_text().splitlines():
            asked = json.loads(line)
            lines.append(
                json.dumps(
                    {
                        "custom_id": asked["custom_id"],
                        "response": {"status_code": 200, "body": replied(model, asked["body"])},
                    }
                )
            )
    (folder / "replies.jsonl").write_text("\n".join(lines) + "\n")


def replied(model: Sighted, body: dict[str, object]) -> dict[str, object]:
    """The reply to one request."""
    from tests.support.faulty_server import Calls, _read

    said = model(_read(body, 0, None))
    message: dict[str, object] = {"role": "assistant", "content": said if isinstance(said, str) else ""}
    message |= said.message if isinstance(said, Calls) else {}
    return {"model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    Image.new("RGB", (64, 64), "red").save(folder / "a.png")
    (folder / "questions.csv").write_text("id,group,question,image,answer\n1,v1,Is a clip visible?,a.png,yes\n")
    return folder


def run(questions: Path, server: FaultyServer, cache: str, *more: str) -> str:
    done = proctor(
        "run", questions, "--model", "m", "--base-url", server.url, "--store", questions.parent / "s.db", "--cache", cache, *more
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def recorded(one: Run) -> dict[str, JsonValue]:
    """What a run keeps of a sight test."""
    told = one.settings["sight"]
    assert isinstance(told, dict)
    return told


def test_run_says_once_that_nobody_knows(questions: Path, cache: str) -> None:
    with FaultyServer("Answer: yes") as server:
        said = run(questions, server, cache)
        line = f"m: no sight test was passed, so it is unknown whether the media arrive (proctor sight m --base-url {server.url})."
        assert said.count("sight") == 2  # one line, with the command in it
        assert line in said
        assert "sight" not in run(questions, server, cache, "--condition", "text-only")


def test_run_and_report_say_what_the_test_found(questions: Path, cache: str) -> None:
    store, page = questions.parent / "s.db", questions.parent / "report.html"
    with FaultyServer(Sighted()) as server:
        table = api.sight("m", base_url=server.url, cache=cache, redraw=1)
        assert table.data.state == "sees"
        assert "sight" not in run(questions, server, cache)
        shown = proctor("results", questions, "--store", store)
        found = (
            f"m: sight test passed on {table.data.at[:10]} by frames, video, tools, schema ({table.data.calls} calls)"
        )
        assert found in shown.stderr
        assert proctor("report", questions, "--store", store, "--out", page).returncode == 0
        assert found in page.read_text()
        assert "sight" not in run(questions, server, cache)  # the same run goes on


def test_a_test_of_smaller_pictures_is_none_of_larger_ones(questions: Path, cache: str) -> None:
    """Of stills alone: that it had fewer frames of a clip does not matter."""
    with FaultyServer(Sighted()) as server:
        few: Any = {"base_url": server.url, "cache": cache, "routes": "frames", "max_frames": 8, "redraw": 5}
        assert api.sight("m", **few, max_side=256).data.state == "sees"
        said = run(questions, server, cache)
        assert "had less than this run sends: pictures of 512 pixels (tested: 256 pixels).\n" in said
        printed = proctor("results", "mine", "--store", questions.parent / "s.db")
        assert "the run sends up to 64 frames of a clip (tested: 8) and pictures of 512 pixels" in printed.stderr
        assert api.sight("m", **few).data.state == "sees"
        assert "less than this run" not in run(questions, server, cache, "--name", "again")


def test_run_says_what_is_wrong(questions: Path, cache: str) -> None:
    with FaultyServer(Sighted(fault=served.nothing_arrives)) as server:
        assert api.sight("m", base_url=server.url, cache=cache, routes="frames").data.exit_code == 1
        said = run(questions, server, cache)
    assert "says: No picture arrives, or none is used: the model answers without them." in said
    (one,) = [one for one in Store(questions.parent / "s.db", create=False).runs("mine") if one.system == "m"]
    assert recorded(one)["state"] == "fault"


def test_a_sight_test_makes_no_other_run(questions: Path, cache: str) -> None:
    """It may come between two calls of the same run."""
    with FaultyServer(Sighted()) as server:
        run(questions, server, cache)
        api.sight("m", base_url=server.url, cache=cache, routes="tools")
        run(questions, server, cache)
    (one,) = [one for one in Store(questions.parent / "s.db", create=False).runs("mine") if one.system == "m"]
    assert recorded(one)["routes"] == ["tools"]


def test_what_is_kept_is_read_again(cache: str) -> None:
    """As it was, with findings and what to do, which is no part of the file."""
    with FaultyServer(Sighted(fault=served.strips_with("tools"))) as server:
        table = api.sight("m", base_url=server.url, cache=cache, routes="tools", redraw=5)
        client = ModelClient(ModelSpec(name="m", base_url=server.url))
        assert kept_result(client.settings, cache) == table.data
    assert "advice" not in json.loads(table.file.read_text())


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"version": 1}'])
def test_a_broken_record_is_none(tmp_path: Path, cache: str, broken: str) -> None:
    from proctor.sight import record_file

    settings = ModelClient(ModelSpec(name="m", base_url="http://localhost:1/v1")).settings
    file = record_file(settings, cache)
    file.parent.mkdir(parents=True)
    file.write_text(broken)
    assert kept_result(settings, cache) is None
