"""Replies in envelopes of every make: what decides whether an answer counts is its text and its end, and nothing else.
The oracle is OpenAI's own client: what it builds a completion with a text from is an answer."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from openai._models import construct_type
from openai.types.chat import ChatCompletion

from proctor.core import InfrastructureError, ProctorError, RefusalError, Usage, generator
from proctor.models import ModelClient, ModelSpec, Reply
from proctor.models.connections import Connections, Posted
from tests.support.raw_server import raw_server

ABSENT = object()
ODD = [ABSENT, None, "", "x", 0, -1, 1.25, True, [], [1], {}, {"a": None}, "١", 10**30, math.pi]
"""What may stand instead of a label."""

LABELS = (
    "id",
    "object",
    "created",
    "model",
    "system_fingerprint",
    "service_tier",
    "metadata",
    "moderation",
    "x_vendor",
)
FINISHED = ("stop", "eos_token", "end_turn", "STOP", "", None, "null", ABSENT)
CUT_OFF = ("length", "max_tokens", "MAX_TOKENS", "model_context_window_exceeded")
REFUSED = ("content_filter", "sensitive", "SAFETY")
BROKEN = ("error", "abort", "nap", 7, ["stop"], {"reason": "stop"}, True)
TEXTS = ("Answer: A", "B", "", None, ABSENT, "  \n", "naïve 选项", 42, 1.5, True, {"text": 3}, [7], [{"type": "text"}])
PARTS: tuple[tuple[list[Any], str], ...] = (
    ([{"type": "text", "text": "Answer: "}, {"type": "text", "text": "A"}], "Answer: A"),
    (["Answer: ", "A"], "Answer: A"),
    ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "A"}], "A"),
    ([{"type": "reasoning", "text": "B?"}, {"text": "A"}], "A"),
    ([{"type": "output_text", "text": "A", "annotations": []}], "A"),
    ([{"type": ["text"], "text": "Answer: "}, {"type": {"a": None}, "text": "A"}], "Answer: A"),
    ([], ""),
)
COUNTS: tuple[tuple[Any, int | None], ...] = (
    (0, 0),
    (7, 7),
    (7.0, 7),
    ("7", 7),
    (-7, None),
    (7.5, None),
    (None, None),
    (ABSENT, None),
    ("many", None),
)
COUNTS += ((True, None), ([7], None), (10**12, None))


@dataclass
class Drawn:
    """An envelope and what its maker knows of it: the kind of its end, the text where OpenAI's client can't know it, and
    its counts (None: unknown)."""

    body: dict[str, Any]
    end: tuple[Any, ...]
    parts: str | None
    given: int | None
    made: int | None


def _put(into: dict[str, Any], name: str, value: Any) -> None:
    if value is not ABSENT:
        into[name] = value


def drawn(draw: np.random.Generator) -> Drawn:
    def of(values: Any) -> Any:
        return values[int(draw.integers(len(values)))]

    message: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    body: dict[str, Any] = {}
    for name in LABELS:
        _put(body, name, of(ODD))
    for name in ("index", "logprobs", "stop_reason", "token_ids", "x_vendor"):
        _put(choice, name, of(ODD))
    for name in ("role", "annotations", "audio", "function_call", "x_vendor", "reasoning"):
        _put(message, name, of(ODD))
    content, parts = of(PARTS) if draw.random() < 0.2 else (of(TEXTS), None)
    _put(message, "content", content)
    end = of((FINISHED, FINISHED, FINISHED, CUT_OFF, REFUSED, BROKEN))
    _put(choice, "finish_reason", of(end))
    _put(choice, "message", message if draw.random() < 0.9 else of([ABSENT, None, "Answer: A", 3, [message]]))
    usage: dict[str, Any] = {}
    (raw_given, given), (raw_made, made) = of(COUNTS), of(COUNTS)
    _put(usage, "prompt_tokens", raw_given)
    _put(usage, "completion_tokens", raw_made)
    _put(usage, "total_tokens", of(ODD))
    _put(usage, "prompt_tokens_details", of(ODD))
    if draw.random() < 0.2:
        usage, given, made = of([None, "many", [], 3]), None, None
    _put(body, "usage", usage)
    _put(
        body,
        "choices",
        [choice] if draw.random() < 0.95 else of([ABSENT, None, [], "x", {}, [None], ["x"], {"0": choice}]),
    )
    return Drawn(body, end, parts, given, made)


def by_openai(body: dict[str, Any]) -> Any:
    """The content of the message that OpenAI's client builds; ABSENT where it builds none."""
    try:
        return construct_type(type_=ChatCompletion, value=body).choices[0].message.content  # type: ignore[attr-defined]
    except (AttributeError, TypeError, LookupError):
        return ABSENT


def expected(one: Drawn) -> str | type[ProctorError]:
    choices = one.body.get("choices")
    if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)) or one.end is BROKEN:
        return InfrastructureError
    message = choices[0].get("message")
    if message is None:  # nothing was said: by a limit, by a filter, or without a reason
        return "" if one.end is CUT_OFF else RefusalError if one.end is REFUSED else InfrastructureError
    if not isinstance(message, dict):
        return InfrastructureError
    said = one.parts if one.parts is not None else by_openai(one.body)
    said = "" if said is None or "content" not in message else said
    if not isinstance(said, str):
        return InfrastructureError
    return RefusalError if one.end is REFUSED else said


def outcome_of(found: Reply[None] | BaseException) -> str | type[BaseException]:
    return found.text if isinstance(found, Reply) else type(found)


def test_only_text_and_end_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = generator(0, "envelopes")
    current: dict[str, Any] = {}

    async def post(*_: object) -> Posted:
        return Posted(200, {"content-type": "application/json"}, json.dumps(current).encode())

    async def run() -> dict[str, int]:
        spec = ModelSpec(name="m", base_url="http://localhost:9/v1", retries=0, backoff_s=0, max_wait_s=0, price=(1, 1))
        client, seen = ModelClient(spec), dict[str, int]()
        for _ in range(2500):
            one = drawn(draw)
            current.clear()
            current.update(one.body)
            try:
                found: Reply[None] | ProctorError = await client.ask(["Which?"])
            except ProctorError as error:
                found = error
            wanted = expected(one)
            assert outcome_of(found) == wanted, (one.body, str(found))
            if isinstance(found, Reply):
                assert found.cut_off is (one.end is CUT_OFF)
                check_usage(one, found)
            kind = wanted.__name__ if isinstance(wanted, type) else "empty" if not wanted.strip() else "answer"
            seen[kind] = seen.get(kind, 0) + 1
        await client.aclose()
        return seen

    monkeypatch.setattr(Connections, "post", post)
    seen = asyncio.run(run())
    assert min(seen.values()) > 100, seen
    assert set(seen) == {"answer", "empty", "InfrastructureError", "RefusalError"}


def check_usage(one: Drawn, found: Reply[None]) -> None:
    """A missing count is a missing count: the cost is unknown, not 0."""
    tries = found.usage.requests
    assert tries == (1 if found.text.strip() or found.cut_off else 3)
    assert found.usage.input_tokens == tries * (one.given or 0)
    assert found.usage.output_tokens == tries * (one.made or 0)
    thought = one.body["choices"][0].get("message") or {}
    said = bool(found.text) or bool(isinstance(thought.get("reasoning"), str) and thought["reasoning"])
    known = bool(one.given) and one.made is not None and (one.made > 0 or not said)
    cost = tries * ((one.given or 0) + (one.made or 0)) / 1e6 if known else None
    assert found.usage.cost_usd == (None if cost is None else pytest.approx(cost)), one.body


def test_over_a_connection_too() -> None:
    draw = generator(1, "envelopes")
    many = [drawn(draw) for _ in range(150)]

    async def run(url: str) -> list[Reply[None] | BaseException]:
        client = ModelClient(ModelSpec(name="m", base_url=url, retries=0, backoff_s=0, max_wait_s=0))
        asking = (client.ask([str(number)]) for number in range(len(many)))
        found = await asyncio.gather(*asking, return_exceptions=True)
        await client.aclose()
        return found

    def reply(asked: dict[str, Any]) -> bytes:
        return json.dumps(many[int(asked["messages"][-1]["content"][0]["text"])].body).encode()

    with raw_server(reply) as url:
        found = asyncio.run(run(url))
    assert [outcome_of(one) for one in found] == [expected(one) for one in many]


def test_calls_of_tools_need_a_name_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    from pydantic import BaseModel

    class Colour(BaseModel):
        """The colour."""

        name: str

    def asked(call: Any) -> Reply[Colour] | ProctorError:
        message = {"content": None, "tool_calls": call}

        async def post(*_: object) -> Posted:
            return Posted(200, {}, json.dumps({"choices": [{"message": message}]}).encode())

        async def run() -> Reply[Colour] | ProctorError:
            client = ModelClient(ModelSpec(name="m", base_url="http://localhost:9/v1", retries=0, structured="tool"))
            try:
                return await client.ask(["Which?"], schema=Colour)
            except ProctorError as error:
                return error
            finally:
                await client.aclose()

        monkeypatch.setattr(Connections, "post", post)
        return asyncio.run(run())

    for arguments in ('{"name": "red"}', {"name": "red"}):
        for labels in ({}, {"id": None, "type": None}, {"id": 7, "index": "x", "type": "tool"}):
            reply = asked([{"function": {"name": "Colour", "arguments": arguments}, **labels}])
            assert isinstance(reply, Reply), reply
            assert reply.value == Colour(name="red")
    for wrong in (
        "Colour",
        [{"name": "Colour"}],
        [{"function": {"name": 3}}],
        [None],
        {"function": {"name": "Colour"}},
    ):
        outcome = asked(wrong)
        assert type(outcome) is InfrastructureError
        assert str(outcome).startswith("m: a reply that can't be read: tool_calls: found ")


def test_probabilities_that_nobody_asked_for_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def post(*_: object) -> Posted:
        choice = {"message": {"content": "A"}, "finish_reason": "stop", "logprobs": {"content": ["none"]}}
        return Posted(200, {}, json.dumps({"choices": [choice]}).encode())

    async def run(**settings: Any) -> Reply[None]:
        client = ModelClient(ModelSpec(name="m", base_url="http://localhost:9/v1", retries=0, settings=settings))
        try:
            return await client.ask(["Which?"])
        finally:
            await client.aclose()

    monkeypatch.setattr(Connections, "post", post)
    reply = asyncio.run(run())
    assert (reply.text, reply.tokens) == ("A", ())
    with pytest.raises(ProctorError, match="token probabilities that are none"):
        asyncio.run(run(openai_logprobs=True))


@pytest.mark.parametrize("said", [{}, {"usage": {"prompt_tokens": 0, "completion_tokens": 0}}])
def test_a_server_that_counts_nothing_costs_an_unknown_amount(
    said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def post(*_: object) -> Posted:
        return Posted(200, {}, json.dumps({"choices": [{"message": {"content": "A"}}], **said}).encode())

    async def run() -> Usage:
        client = ModelClient(ModelSpec(name="m", base_url="http://localhost:9/v1", price=(1, 1)))
        try:
            return (await client.ask(["Which?"])).usage
        finally:
            await client.aclose()

    monkeypatch.setattr(Connections, "post", post)
    assert asyncio.run(run()) == Usage(requests=1, cost_usd=None)
