"""A server of local weights: what it says is what the weights say, with pictures, too; what it can't read is an error."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import JsonValue

from proctor.core import Frame
from proctor.models import Choices, ModelClient, ModelSpec, Query, Weights, WeightsServer
from tests.support.tiny_vlm import jpeg, make_tiny_vlm


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    import torch

    torch.set_num_threads(1)
    made = Weights("tiny", str(make_tiny_vlm(tmp_path_factory.mktemp("weights"))), "cpu")
    made.load()
    return made


@pytest.fixture(scope="module")
def server(weights: Weights) -> Iterator[WeightsServer]:
    with WeightsServer(weights, "tiny") as running:
        yield running


def posted(server: WeightsServer, body: Any, path: str = "/chat/completions") -> tuple[int, dict[str, Any]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data=raw, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def asked(*content: Any, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(content)}], "max_tokens": 6, **more}


def test_a_client_is_told_what_the_weights_say(server: WeightsServer, weights: Weights) -> None:
    settings: dict[str, JsonValue] = {
        "max_tokens": 6,
        "temperature": 0.0,
        "openai_logprobs": True,
        "openai_top_logprobs": 20,
    }
    client = ModelClient(ModelSpec(name="tiny", base_url=server.url, settings=settings))
    pictures = [jpeg(0), jpeg(5)]

    async def ask() -> list[Any]:
        said = [await client.ask([Frame(one, None, ""), "What?"], system="Look.") for one in pictures]
        await client.aclose()
        return said

    replies = asyncio.run(ask())
    own = [weights.generate([Query("Look.", (one, "What?"), Choices(6))], lambda: False)[0] for one in pictures]
    assert [one.text for one in replies] == [one.text for one in own]
    assert replies[0].text != replies[1].text
    assert [one.usage.input_tokens for one in replies] == [one.input_tokens for one in own]
    for one in replies:
        assert b"".join(token.text for token in one.tokens).decode() == one.text
        assert all(token.chances[token.text] == max(token.chances.values()) for token in one.tokens)
        assert all(sum(token.chances.values()) <= 1 + 1e-6 for token in one.tokens)


def test_probabilities_are_those_of_the_whole_vocabulary(server: WeightsServer, weights: Weights) -> None:
    import torch

    _, said = posted(server, asked({"type": "text", "text": "Hm"}, logprobs=True))
    first = said["choices"][0]["logprobs"]["content"][0]
    with torch.inference_mode():
        logits = weights.model(**weights.prompts([Query("", ("Hm",), Choices(1))])).logits[0, -1]
    best = logits.float().log_softmax(-1).max().item()
    assert math.isclose(first["logprob"], best, abs_tol=1e-4)
    assert len(first["top_logprobs"]) == 20


def test_nothing_is_fetched_or_guessed(server: WeightsServer) -> None:
    text = {"type": "text", "text": "Hm"}
    picture = "data:image/jpeg;base64," + base64.b64encode(jpeg(1)).decode()
    assert posted(server, asked({"type": "image_url", "image_url": {"url": picture}}, text))[0] == 200
    bad: list[tuple[Any, str]] = [
        (
            asked({"type": "image_url", "image_url": {"url": "http://host/a.jpg"}}),
            "expected a data: URL with a picture",
        ),
        (asked({"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}), "found no base64"),
        (asked({"type": "input_audio"}), "expected text or image_url"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "expected system or user"),
        ({}, "messages"),
        (b"{", "Expecting"),
    ]
    for body, message in bad:
        status, said = posted(server, body)
        assert status == 400
        assert message in said["error"]["message"]
    assert posted(server, asked(text), "/models")[0] == 404
