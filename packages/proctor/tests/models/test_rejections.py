"""What real servers say when they reject a request, and what each is; the way out is told with it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from proctor.core import ConfigurationError, InfrastructureError, ProctorError
from proctor.models import ModelClient, ModelSpec, RejectionWatch, rejection, rejections
from proctor.models.faults import message_in
from proctor.models.rejections import meaning_of

ROWS = json.loads((Path(__file__).parent / "rejections.json").read_text(encoding="utf-8"))
SECOND = json.loads((Path(__file__).parent / "rejections_second.json").read_text(encoding="utf-8"))
"""Whole bodies by another hand, written without a look at the table of phrases; then the table was mended."""
KINDS = {
    "ConfigurationError": "configuration",
    "SystemFaultError": "system",
    "RefusalError": "refused",
    "InfrastructureError": "infrastructure",
}


async def _classed(rows: list[dict[str, Any]]) -> list[str]:
    """What the client raises where a server on loopback rejects request k with the k-th body."""

    async def chat(request: web.Request) -> web.Response:
        found = re.search(r"#(\d+)#", str((await request.json())["messages"]))
        assert found is not None
        row = rows[int(found[1])]
        whole = row.get("body", row["message"])
        if isinstance(whole, str) and (whole.startswith("<html") or "body" in row):
            return web.Response(status=row["status"], text=whole, content_type="text/html")
        body = {"message": row["message"], "type": "invalid_request_error", "code": row.get("code") or None}
        return web.json_response(row.get("body", {"error": body}), status=row["status"])

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    client = ModelClient(ModelSpec(name="m", base_url=f"http://127.0.0.1:{runner.addresses[0][1]}/v1", retries=0))
    found: list[str] = []
    for number in range(len(rows)):
        try:
            await client.ask([f"#{number}#"])
            found.append("answered")
        except ProctorError as error:
            found.append(KINDS[type(error).__name__])
    await client.aclose()
    await runner.cleanup()
    return found


@pytest.mark.parametrize("rows", [ROWS, SECOND], ids=["first", "second"])
def test_real_bodies_are_told_apart_through_the_client(rows: list[dict[str, Any]]) -> None:
    found = asyncio.run(_classed(rows))
    wrong = [
        (row["server"], row["message"][:60], got)
        for row, got in zip(rows, found, strict=True)
        if got != row["expected"]
    ]
    assert len(rows) >= 390
    assert wrong == []


def test_what_the_provider_behind_a_gateway_says_is_told() -> None:
    """OpenRouter's own message is "Provider returned error", whatever was wrong."""
    raw = json.dumps({"error": {"message": "Model 'kimi' supports at most 1 image per prompt."}})
    body = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}
    assert message_in(body) == "Provider returned error: Model 'kimi' supports at most 1 image per prompt."
    body["error"]["metadata"] = {"raw": "upstream says no"}
    assert message_in(body) == "Provider returned error: upstream says no"
    assert message_in([{"error": {"message": "The input token count (9) exceeds the maximum"}}]).startswith("The input")


@pytest.mark.parametrize(
    ("said", "way"),
    [
        (
            "At most 4 image(s) may be provided in one prompt. (parameter=image)",
            "--max-frames 4, or start it with a higher",
        ),
        (
            "messages.0.content: Too many images and documents: 120 + 0 > 100",
            "takes 100 images a request: --max-frames 100",
        ),
        ("Too many images in request. Max is 50.", "--max-frames 50"),
        ("Number of images 12 exceeds the maximum of 8", "--max-frames 8"),
        ("Too many images provided. This model supports up to 5 images", "--max-frames 5"),
        ("request contains 54 images, exceeding the maximum of 50 allowed per request", "--max-frames 50"),
        ("Image count 6 exceeds limit 4 per request.", "--max-frames 4"),
        ("the number of images exceeds what this model takes", "takes fewer images a request: --max-frames"),
        ("max_tokens must be at least 1, got -7584.", "or a server with a larger context"),
        ("This model only support stream mode, please enable the stream parameter", "this server only streams"),
        ("image input is not supported - hint: you may need to provide the mmproj", "--condition text-only"),
        ("Model 'kimi' supports at most 1 image per prompt.", "--max-frames 1"),
        ("Too much media: 0 document pages + 107 images > 100", "--max-frames 100"),
        ("IMAGE count 12 exceeds limit 8 per request.", "--max-frames 8"),
        ("You can only provide up to 12 images per request", "--max-frames 12"),
        ("Your credit balance is too low", "the account needs credit"),
        ("Unrecognized request argument supplied: foo", "leave it out or change it (--settings"),
    ],
)
def test_the_way_out_is_told(said: str, way: str) -> None:
    told = str(rejection(said))
    assert told.startswith(said.rstrip(". "))
    assert way in told


def test_the_items_that_are_counted_are_those_of_the_words_that_are_told() -> None:
    """Seven questions on one long video are one item's fault; five rejections of a setting end the run."""
    watch = RejectionWatch(groups=5)

    async def ask(names: str, kind: str, reason: str) -> None:
        for name in names:
            await watch.begin()
            watch.rejected(name, "one video", kind=kind, reason=reason)

    async def run() -> None:
        await ask("abcdefg", "item", "the context is too long")
        await ask("hijkl", "request", "bad hair")
        await watch.begin()

    with pytest.raises(ConfigurationError, match=r"^bad hair \(the same for the first 5 items asked, and no answer: "):
        asyncio.run(run())


def test_no_more_of_codes_is_read_than_of_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rule is tried at every character, while the other requests wait."""
    read: list[str] = []
    rule = SimpleNamespace(under={"rejected"}, says=SimpleNamespace(search=read.append))
    monkeypatch.setattr(rejections, "_rules", lambda: (rule,))
    assert meaning_of("m" * 10**6, "c" * 10**6) is None
    assert len(read[0]) == 2 * 1500 + len("; ")


def test_a_failing_server_is_looked_into_for_some_words_alone() -> None:
    assert meaning_of("Context size has been exceeded.", under="server") is not None
    assert meaning_of("context deadline exceeded", under="server") is None
    assert meaning_of("Unknown parameter: foo", under="server") is None
    waits = meaning_of("You exceeded your current quota. Please retry in 34.07s.", under="busy")
    assert waits is not None
    assert waits.kind is InfrastructureError  # a limit of a minute, told in the words of one that lasts


@pytest.mark.parametrize(
    ("said", "under", "rejects"),
    [
        ("The provided JSON schema contains features not supported by xgrammar.", "rejected", "form"),
        ("failed to load model vocabulary required for format", "server", "form"),
        ("Grammar error: Unimplemented keys: ['maxItems']", "server", "form"),
        ("Failed to generate JSON. Please adjust your prompt.", "rejected", "form"),
        ("Unknown parameter: 'top_k'", "rejected", "request"),
        ("At most 4 image(s) may be provided in one prompt.", "rejected", "request"),
        ("This model's maximum context length is 4096 tokens", "rejected", "item"),
        ("failed to load image", "rejected", "item"),
    ],
)
def test_what_is_rejected_is_told_apart(said: str, under: Any, rejects: str) -> None:
    """A form can be asked for in words instead; a setting is the same for every item; the rest is the item's."""
    found = meaning_of(said, under=under)
    assert found is not None
    assert found.rejects == rejects
