"""Answers by the files of a batch: what is written, what is read days later, and what is never asked twice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from proctor.core import ConfigurationError, Frame, InputError, PendingError, Status, SystemFaultError
from proctor.models import BatchFolder, ModelClient, ModelSpec, Reply
from proctor.runs import Store
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor
from tests.support.raw_server import completion
from tests.support.text_folder import answer_tray, write_text_folder

PICTURE = Frame(b"\xff\xd8picture", 1.0, "")


def ask(folder: Path, *questions: str, retries: int = 0) -> list[str | BaseException]:
    """What each question came to: the text, or the error."""

    async def run() -> list[str | BaseException]:
        spec = ModelSpec(name="m", base_url="http://localhost:9/v1", retries=retries, backoff_s=0.001)
        client = ModelClient(spec, BatchFolder(folder))
        found = await asyncio.gather(*(client.ask([PICTURE, one]) for one in questions), return_exceptions=True)
        await client.aclose()
        return [one.text if isinstance(one, Reply) else one for one in found]

    return asyncio.run(run())


def written(folder: Path, file: str = "requests-0001.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / file).read_text().splitlines()]


def reply(request: dict[str, Any], text: str = "blue", status: int = 200, body: object = None) -> str:
    """A line of a batch's output."""
    said = json.loads(completion(text)) if body is None else body
    response = {"status_code": status, "request_id": "r", "body": said}
    return json.dumps({"id": "b", "custom_id": request["custom_id"], "response": response, "error": None}) + "\n"


def test_questions_are_written_once_and_replies_are_read_when_they_are_there(tmp_path: Path) -> None:
    first = ask(tmp_path, "one", "two", "one")
    assert {type(one) for one in first} == {PendingError}
    requests = written(tmp_path)
    assert [one["url"] for one in requests] == ["/v1/chat/completions"] * 2
    assert requests[0]["method"] == "POST"
    content = requests[0]["body"]["messages"][0]["content"]
    assert content[1]["image_url"]["url"].startswith("data:image/jpeg;base64,/9h")
    assert content[-1]["text"] == "one"
    (tmp_path / "output.jsonl").write_text(reply(requests[1], "the second"))
    again = ask(tmp_path, "one", "two", "three")
    assert again[1] == "the second"
    assert [type(one) for one in again[::2]] == [PendingError] * 2
    assert [one["body"]["messages"][0]["content"][-1]["text"] for one in written(tmp_path, "requests-0002.jsonl")] == [
        "three"  # and not "one", which was written before and has no reply yet
    ]


def test_a_request_is_one_line_for_every_reader(tmp_path: Path) -> None:
    asked = "one\u2028two\u2029three\u0085four"
    ask(tmp_path, asked)
    text = (tmp_path / "requests-0001.jsonl").read_text(encoding="utf-8")
    assert len(text.splitlines()) == 1
    assert written(tmp_path)[0]["body"]["messages"][0]["content"][-1]["text"] == asked


def test_what_failed_for_no_fault_of_its_own_is_written_again_and_what_was_refused_is_not(tmp_path: Path) -> None:
    ask(tmp_path, "busy", "expired", "wrong")
    busy, expired, wrong = written(tmp_path)
    gone = json.dumps({"custom_id": expired["custom_id"], "response": None, "error": {"code": "batch_expired"}}) + "\n"
    too_long = {"error": {"message": "prompt is too long", "code": "context_length_exceeded"}}
    lines = [reply(busy, status=429, body={}), gone, reply(wrong, status=400, body=too_long)]
    (tmp_path / "output.jsonl").write_text("".join(lines))
    found = ask(tmp_path, "busy", "expired", "wrong")
    assert [type(one) for one in found] == [PendingError, PendingError, SystemFaultError]
    assert written(tmp_path, "requests-0002.jsonl") == [busy, expired]
    (tmp_path / "output-2.jsonl").write_text(reply(busy) + reply(expired))
    assert ask(tmp_path, "busy", "expired") == ["blue", "blue"]
    assert not (tmp_path / "requests-0003.jsonl").exists()


def test_a_request_that_was_written_again_after_it_failed_waits_for_its_reply(tmp_path: Path) -> None:
    ask(tmp_path, "busy")
    (busy,) = written(tmp_path)
    (tmp_path / "output.jsonl").write_text(reply(busy, status=429, body={}))
    ask(tmp_path, "busy")
    ask(tmp_path, "busy")
    assert written(tmp_path, "requests-0002.jsonl") == [busy]
    assert not (tmp_path / "requests-0003.jsonl").exists()  # it would be paid for twice
    (tmp_path / "output-2.jsonl").write_text(reply(busy, status=503, body={}))
    ask(tmp_path, "busy")
    assert written(tmp_path, "requests-0003.jsonl") == [busy]


def test_after_an_invalid_reply_nothing_is_written(tmp_path: Path) -> None:
    ask(tmp_path, "one", "two", "three")
    one, two, three = written(tmp_path)
    (tmp_path / "output.jsonl").write_text(reply(one) + "no JSON\n" + reply(two) + reply(three))
    assert [type(found) for found in ask(tmp_path, "one", "two", "three", "four")] == [InputError] * 4
    assert not (tmp_path / "requests-0002.jsonl").exists()


@pytest.mark.parametrize(
    "line", ["no JSON", "[]", '{"custom_id": "a"', '{"custom_id": "a", "response": {}}', "[" * 5000]
)
def test_a_file_that_holds_no_replies_is_named_with_the_line(line: str, tmp_path: Path) -> None:
    ask(tmp_path, "one")
    (tmp_path / "output.jsonl").write_text(reply(written(tmp_path)[0]) + "\n" + line + "\n")
    (error,) = ask(tmp_path, "one")
    assert type(error) is InputError
    assert str(error).startswith(f"{tmp_path / 'output.jsonl'}: line 3: found ")
    assert str(error).endswith("expected a reply of a batch")


def test_no_key_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-THISISSECRET0123456789")
    ask(tmp_path, "one")
    assert "SECRET" not in (tmp_path / "requests-0001.jsonl").read_text()


def test_another_protocol_has_no_such_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    with pytest.raises(ConfigurationError, match="a batch is for OpenAI's protocol"):
        ModelClient(ModelSpec(name="anthropic:m"), BatchFolder(tmp_path))


def test_a_run_by_batch_has_the_records_of_a_run(tmp_path: Path) -> None:
    folder, batch = write_text_folder(tmp_path / "data", 12), tmp_path / "batch"
    base: list[str | Path] = [
        "run",
        "simulated",
        "--data",
        folder,
        "--condition",
        "text-only",
        "--model",
        "local",
        "--base-url",
    ]
    by_batch = [*base, "http://localhost:9/v1", "--store", tmp_path / "batch.db", "--batch", batch]
    first = proctor(*by_batch)
    assert first.returncode == 0, first.stderr
    assert "Replies to come by" in first.stdout
    assert ": 12, new requests in requests-0001.jsonl" in first.stdout
    with FaultyServer(answer_tray) as server:
        live = proctor(*base, server.url, "--store", tmp_path / "live.db")
        texts = {one.text: answer_tray(one) for one in server.requests}
        assert live.returncode == 0
    asked = {one["custom_id"]: one["body"]["messages"] for one in written(batch)}
    said = {key: texts["\n".join(_texts(messages))] for key, messages in asked.items()}
    (batch / "out.jsonl").write_text("".join(reply({"custom_id": key}, text) for key, text in said.items()))
    done = proctor(*by_batch)
    assert done.returncode == 0, done.stderr
    assert "12 answered" in done.stdout
    hashes = [proctor("results", "simulated", "--hash", "--store", tmp_path / one) for one in ("batch.db", "live.db")]
    assert hashes[0].stdout == hashes[1].stdout != ""
    store = Store(tmp_path / "batch.db", create=False)
    (run,) = [run for run in store.runs("simulated") if run.system == "local"]
    answers = store.answers(run).values()
    store.close()
    assert {(one.status, one.timing) for one in answers} == {(Status.ANSWERED, None)}  # what it took is unknown


def _texts(messages: list[dict[str, Any]]) -> list[str]:
    parts = [one["content"] for one in messages]
    return [part for one in parts for part in ([one] if isinstance(one, str) else [two["text"] for two in one])]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--share", "--model", "m"], "--batch works in one process"),
        (["--system", "longest-option"], "--batch asks models alone"),
        (["--budget", "5", "--model", "m"], "--batch can't keep a budget (5 s): the time of a reply is unknown"),
    ],
)
def test_what_does_not_go_by_batch_is_said(more: list[str], message: str, tmp_path: Path) -> None:
    folder = write_text_folder(tmp_path / "data", 2)
    fixed: list[str | Path] = [
        "--data",
        folder,
        "--condition",
        "text-only",
        "--base-url",
        "http://localhost:9/v1",
        "--store",
        "x.db",
    ]
    done = proctor("run", "simulated", *fixed, "--batch", tmp_path / "batch", *more)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
