"""How replies end, over every path that asks: whole, cut off, refused or broken; a word that nobody knows is a fault."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from proctor.core import InfrastructureError, PendingError, ProctorError, RefusalError, Status, SystemFaultError
from proctor.models import (
    Agent,
    AgentLimits,
    BatchFolder,
    End,
    Ending,
    ModelClient,
    ModelSpec,
    Reply,
    end_of_body,
    read_ending,
)
from proctor.models.connections import Connections, Posted
from tests.support.program import proctor
from tests.support.provider_server import ProviderServer, candidate, message
from tests.support.raw_server import raw_server
from tests.support.text_folder import write_text_folder

CLAUDE, GEMINI = "anthropic:claude-opus-4-5", "google:gemini-2.5-pro"

# By the servers' own documentation and types, as they spell them.
WORDS = {
    "finished": [
        *(
            "stop",
            "tool_calls",
            "function_call",
        ),  # OpenAI, vLLM, SGLang, llama.cpp, Ollama, LM Studio, koboldcpp, DeepSeek
        *("completed", "end_turn", "stop_sequence", "tool_use"),  # Responses, Anthropic, Bedrock
        *("STOP", "FinishReason.STOP", "FINISH_REASON_STOP"),  # Google
        *("COMPLETE", "STOP_SEQUENCE", "TOOL_CALL"),  # Cohere
        *("eos_token", "eos", "eosFound", "stopStringFound", "toolCalls", "REASON_STOP", "REASON_TOOL_CALLS"),
        *("tool-calls", "End-Turn", "FINISH"),
    ],
    "cut off": [
        *("length", "max_tokens", "MAX_TOKENS", "FinishReason.MAX_TOKENS", "max_output_tokens", "max-tokens", "LENGTH"),
        *("model_context_window_exceeded", "model_length", "REASON_MAX_LEN", "REASON_MAX_CONTEXT", "token_limit"),
        *("maxPredictedTokensReached", "contextLengthReached", "CONTINUATION"),
    ],
    "refused": [
        *("content_filter", "content-filter", "content_filtered", "guardrail_intervened", "refusal", "sensitive"),
        *(
            "SAFETY",
            "RECITATION",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "MODEL_ARMOR",
            "ERROR_TOXIC",
        ),
    ],
    "broken": [
        *("error", "abort", "network_error", "insufficient_system_resource", "engine_overloaded", "timeout", "ERROR"),
        *("cancelled", "failed", "in_progress", "incomplete", "pause_turn", "MALFORMED_FUNCTION_CALL", "OTHER"),
        *("malformed_model_output", "userStopped", "modelUnloaded", "load", "FINISH_REASON_UNSPECIFIED", "unknown"),
    ],
}
BY_WORD = [(word, Ending(meaning)) for meaning, words in WORDS.items() for word in words]
UNKNOWN = ["gave_up", "siesta", "stopped_early", "STOPPING", "reason", "Ende", "ok"]


@pytest.mark.parametrize(("word", "ending"), BY_WORD)
def test_each_servers_word_is_known(word: str, ending: Ending) -> None:
    assert read_ending(word) is ending
    assert read_ending(word.upper()) is ending


def body(word: object, text: str | None = "Answer: B", **choice: Any) -> dict[str, Any]:
    said = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": word, **choice}
    return {"choices": [said], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}


class Bodies:
    """Instead of connections: each request gets the next body, later ones the last."""

    def __init__(self, *bodies: dict[str, Any], status: int = 200) -> None:
        self.left, self.count, self.status = list(bodies), 0, status

    async def post(self, *_: object) -> Posted:
        self.count += 1
        said = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        return Posted(self.status, {"content-type": "application/json"}, json.dumps(said).encode())


class Colour(BaseModel):
    """The colour that was seen."""

    name: str


def ask(
    bodies: Bodies, monkeypatch: pytest.MonkeyPatch, schema: type[BaseModel] | None = None, **changes: Any
) -> Reply[Any] | ProctorError:
    async def run() -> Reply[Any] | ProctorError:
        quick = {"name": "m", "base_url": "http://localhost:9/v1", "retries": 1, "backoff_s": 0.0, "max_wait_s": 0.0}
        client = ModelClient(ModelSpec.model_validate(quick | changes))
        try:
            return await (client.ask(["Which?"], schema=schema) if schema else client.ask(["Which?"]))
        except ProctorError as error:
            return error
        finally:
            await client.aclose()

    monkeypatch.setattr(Connections, "post", lambda _, *more: bodies.post(*more))
    return asyncio.run(run())


@pytest.mark.parametrize(("word", "ending"), BY_WORD)
def test_an_answer_is_what_its_end_says(word: str, ending: Ending, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = Bodies(body(word))
    outcome = ask(bodies, monkeypatch)
    if isinstance(outcome, Reply):
        assert (outcome.text, outcome.finish_reason, bodies.count) == ("Answer: B", word, 1)
        assert outcome.cut_off is (ending is Ending.CUT_OFF)
        assert ending in {Ending.FINISHED, Ending.CUT_OFF}
    elif ending is Ending.REFUSED:
        assert (type(outcome), bodies.count) == (RefusalError, 1)
        assert str(outcome) == "m: the model or its provider declined to answer"
    else:
        assert (type(outcome), bodies.count, ending) == (InfrastructureError, 2, Ending.BROKEN)
        assert str(outcome) == f"m: the reply broke off ('{word}') (after 2 tries)"
        assert outcome.usage is not None
        assert (outcome.usage.requests, outcome.usage.input_tokens) == (2, 6)


@pytest.mark.parametrize("word", UNKNOWN)
def test_an_unknown_word_is_a_fault_and_named(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = ask(Bodies(body(word)), monkeypatch)
    assert type(outcome) is InfrastructureError
    assert str(outcome) == f"m: the reply ended for an unknown reason ('{word}') (after 2 tries)"
    reply = ask(Bodies(body(word), body("stop", "Answer: A")), monkeypatch)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.usage.requests) == ("Answer: A", 2)


@pytest.mark.parametrize("word", [None, "", "null", " ", "None"])
def test_a_whole_reply_without_a_word_is_finished(word: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several local servers never send one, and what broke off is no whole JSON."""
    reply = ask(Bodies(body(word)), monkeypatch)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.cut_off) == ("Answer: B", None, False)


@pytest.mark.parametrize("word", [7, True, ["stop"], {"type": "stop"}])
def test_what_is_no_word_is_a_fault(word: object, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = ask(Bodies(body(word)), monkeypatch, retries=0)
    assert str(outcome).startswith("m: a reply that can't be read: finish_reason: found ")


FAULTS = [
    (body("error", error={"code": 502, "message": "upstream left"}), "the reply broke off ('error': upstream left)"),
    (body("stop", error={"code": 502, "message": "upstream left"}), "the reply broke off ('stop': upstream left)"),
    (body("stop", error="upstream left"), "the reply broke off ('stop': upstream left)"),
    (body("stop") | {"error": {"message": "upstream left"}}, "the reply broke off ('stop': upstream left)"),
    (body(None, error={"code": 502}), "the reply broke off (502)"),
    (body("stop", native_finish_reason="error"), "the reply broke off ('error')"),
    (
        body("stop", provider_specific_fields={"native_finish_reason": "insufficient_system_resource"}),
        "the reply broke off ('insufficient_system_resource')",
    ),
    ({"code": 429, "message": "429 quota"}, "a reply that can't be read: an error under status 200: 429 quota"),
    ({"choices": [], "error": {"message": "busy"}}, "a reply that can't be read: an error under status 200: busy"),
    ({"choices": None, "detail": "busy"}, "a reply that can't be read: an error under status 200: busy"),
    ({"choices": []}, "a reply that can't be read: found no choices, expected one"),
    ({}, "a reply that can't be read: found no choices, expected one"),
]


@pytest.mark.parametrize(("said", "reason"), FAULTS)
def test_a_fault_beside_a_text_is_told(said: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = ask(Bodies(said), monkeypatch, retries=0)
    assert (type(outcome), str(outcome)) == (InfrastructureError, f"m: {reason}")


@pytest.mark.parametrize("native", ["STOP", "end_turn", "anything", None, 3])
def test_a_gateways_word_holds_where_the_native_one_says_no_worse(
    native: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = ask(Bodies(body("length", native_finish_reason=native)), monkeypatch)
    assert isinstance(reply, Reply)
    assert reply.cut_off


@pytest.mark.parametrize("status", [0, 100, 199, 202, 204, 206, 299, 300, 999])
def test_a_text_under_an_odd_status_is_no_answer(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = ask(Bodies(body("stop"), status=status), monkeypatch, retries=0)
    assert type(outcome) is InfrastructureError
    assert str(outcome).startswith("m: HTTP 999: " if status == 999 else f"m: HTTP {status:03d}, which is no answer")


@pytest.mark.parametrize("status", [200, 201, 203])
def test_these_statuses_are_of_answers(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(ask(Bodies(body("stop"), status=status), monkeypatch), Reply)


# -- judges and agents


@pytest.mark.parametrize("text", ['{"name": "re', '{"name": "red"} and then', '{"name": "red"}', "", None])
def test_half_a_reply_has_no_value_and_is_asked_for_once(text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was called invalid JSON, and three of them were paid."""
    bodies = Bodies(body("length", text))
    outcome = ask(bodies, monkeypatch, Colour)
    assert (type(outcome), bodies.count) == (SystemFaultError, 1)
    assert str(outcome) == "m: the reply was cut off by the model's token limit (--settings max_tokens=…)"
    assert outcome.usage is not None
    assert outcome.usage.requests == 1


def test_a_value_in_a_reply_that_broke_off_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = Bodies(body("abort", '{"name": "red"}'), body("stop", '{"name": "blue"}'))
    reply = ask(bodies, monkeypatch, Colour)
    assert isinstance(reply, Reply)
    assert (reply.value, bodies.count) == (Colour(name="blue"), 2)


def test_an_agent_takes_no_call_out_of_half_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"function": {"name": "final", "arguments": '{"name": "red"}'}}
    said = body("max_tokens", None)
    said["choices"][0]["message"]["tool_calls"] = [call]
    bodies = Bodies(said)
    monkeypatch.setattr(Connections, "post", lambda _, *more: bodies.post(*more))

    async def run() -> Reply[Any]:
        client = ModelClient(ModelSpec(name="m", base_url="http://localhost:9/v1", retries=0))
        try:
            return await Agent(client, [], "final", Colour, AgentLimits()).run(["Which?"], "")
        finally:
            await client.aclose()

    with pytest.raises(SystemFaultError, match=r"^m: the reply was cut off by the model's token limit"):
        asyncio.run(run())
    assert bodies.count == 1
    said["choices"][0]["finish_reason"] = "tool_calls"
    assert asyncio.run(run()).value.value == {"name": "red"}


# -- batches


def test_a_batchs_reply_that_broke_off_is_written_again(tmp_path: Path) -> None:
    def once() -> str | type[BaseException]:
        async def run() -> str | type[BaseException]:
            client = ModelClient(ModelSpec(name="m", base_url="http://localhost:9/v1"), BatchFolder(tmp_path))
            try:
                return (await client.ask(["Which?"])).text
            except PendingError as error:
                return type(error)
            finally:
                await client.aclose()

        return asyncio.run(run())

    assert once() is PendingError
    key = json.loads((tmp_path / "requests-0001.jsonl").read_text())["custom_id"]
    for number, said in enumerate((body("abort"), {"error": {"message": "busy"}}, body("nap")), start=2):
        line = {"custom_id": key, "response": {"status_code": 200, "body": said}, "error": None}
        (tmp_path / f"out-{number}.jsonl").write_text(json.dumps(line) + "\n")
        assert once() is PendingError
        assert (tmp_path / f"requests-{number:04d}.jsonl").exists()
    line = {"custom_id": key, "response": {"status_code": 200, "body": body("stop", "Answer: A")}, "error": None}
    (tmp_path / "out-9.jsonl").write_text(json.dumps(line) + "\n")
    assert once() == "Answer: A"


RECORDED = [
    (body("stop"), End(Ending.FINISHED, "stop")),
    (body(None), End(Ending.FINISHED, "")),
    (body("abort"), End(Ending.BROKEN, "abort")),
    (body("nap"), End(None, "nap")),
    ({"status": "completed", "output": []}, End(Ending.FINISHED, "completed")),
    (
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        End(Ending.CUT_OFF, "max_output_tokens"),
    ),
    (
        {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
        End(Ending.REFUSED, "content_filter"),
    ),
    ({"status": "failed", "error": {"message": "busy"}}, End(Ending.BROKEN, "failed", "busy")),
]


@pytest.mark.parametrize(("said", "end"), RECORDED)
def test_recorded_bodies_end_by_the_same_table(said: dict[str, Any], end: End) -> None:
    assert end_of_body(said) == end


# -- the record


def test_the_servers_word_is_kept_with_each_answer(tmp_path: Path) -> None:
    from proctor.runs import Store

    words = {0: "stop", 1: "MAX_TOKENS", 2: "eos_token", 3: None, 4: "abort"}

    def reply(asked: dict[str, Any]) -> bytes:
        tray = int(json.dumps(asked["messages"]).partition("in tray ")[2].partition("?")[0])
        return json.dumps(body(words[tray], "Answer: 3")).encode()

    data, store = write_text_folder(tmp_path / "q", 5), tmp_path / "runs.db"
    with raw_server(reply) as url:
        words_of = ("--model", "m", "--base-url", url, "--store", store, "--condition", "text-only", "--retries", "0")
        done = proctor("run", "simulated", "--data", data, *words_of)
    assert done.returncode == 3
    assert "1 of 5 replies were cut off by the model's token limit (--settings max_tokens=…)" in done.stderr
    assert "1 answer failed (m: the reply broke off ('abort'))" in done.stderr
    kept = Store(store, create=False)
    (run,) = [run for run in kept.runs("simulated") if run.system == "m"]
    answers = kept.answers(run)
    kept.close()
    assert [answers[f"q{n:03d}"].extra.get("finish_reason") for n in range(5)] == [
        "stop",
        "MAX_TOKENS",
        "eos_token",
        None,
        None,
    ]
    assert [answers[f"q{n:03d}"].extra.get("cut_off") for n in range(5)] == [False, True, False, False, None]
    assert answers["q004"].status is Status.FAILED


# -- other protocols


ELSEWHERE = [
    (GEMINI, candidate("Answer: B", "OTHER"), "the reply broke off ('OTHER')"),
    (GEMINI, candidate("Answer: B", "MALFORMED_FUNCTION_CALL"), "the reply broke off ('MALFORMED_FUNCTION_CALL')"),
    (GEMINI, candidate("Answer: B", "SIESTA"), "the reply ended for an unknown reason ('SIESTA')"),
    (CLAUDE, message("Answer: B", "pause_turn"), "the reply broke off ('pause_turn')"),
    (CLAUDE, message("Answer: B", "siesta"), "the reply ended for an unknown reason ('siesta')"),
]
CUT_ELSEWHERE = [
    (GEMINI, candidate("Answer: B", "MAX_TOKENS"), "MAX_TOKENS"),
    (CLAUDE, message("Answer: B", "model_context_window_exceeded"), "model_context_window_exceeded"),
]
UNCOUNTED = [
    (GEMINI, candidate(usageMetadata={"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0})),
    (GEMINI, candidate(usageMetadata={"promptTokenCount": 7, "candidatesTokenCount": None})),
    (CLAUDE, message(usage={"input_tokens": 0, "output_tokens": 0})),
]


def ask_elsewhere(model: str, said: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Reply[None] | ProctorError:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret-0123456789")
    monkeypatch.setenv("GOOGLE_API_KEY", "AIzaSyD-secret-0123456789")

    async def run(url: str) -> Reply[None] | ProctorError:
        client = ModelClient(ModelSpec(name=model, base_url=url, retries=0))
        try:
            return await client.ask(["Which?"])
        except ProctorError as error:
            return error
        finally:
            await client.aclose()

    with ProviderServer(said) as server:
        return asyncio.run(run(server.url))


@pytest.mark.parametrize(("model", "said", "reason"), ELSEWHERE)
def test_other_protocols_end_by_the_same_table(
    model: str, said: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = ask_elsewhere(model, said, monkeypatch)
    assert (type(outcome), str(outcome)) == (InfrastructureError, f"{model}: {reason}")


@pytest.mark.parametrize(("model", "said", "word"), CUT_ELSEWHERE)
def test_other_protocols_cut_off_by_the_same_table(
    model: str, said: dict[str, Any], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = ask_elsewhere(model, said, monkeypatch)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.cut_off) == ("Answer: B", word, True)


@pytest.mark.parametrize(("model", "said"), UNCOUNTED)
def test_other_protocols_without_counts_cost_an_unknown_amount(
    model: str, said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both models have a price: 0 tokens were $0.00."""
    reply = ask_elsewhere(model, said, monkeypatch)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.usage.cost_usd) == ("Answer: A", None)
