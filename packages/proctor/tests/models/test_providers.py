"""Anthropic's and Google's protocols, by servers on this machine that speak as their documentation says: what is sent,
what the replies count as, what they cost, and what becomes of the errors."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from proctor.core import (
    Answer,
    ConfigurationError,
    InfrastructureError,
    ProctorError,
    RefusalError,
    Status,
    SystemFaultError,
)
from proctor.models import ModelClient, ModelSpec, Reply
from proctor.runs import Store
from tests.support.program import proctor
from tests.support.provider_server import (
    ProviderServer,
    Said,
    anthropic_error,
    candidate,
    events,
    google_error,
    message,
)

CLAUDE, GEMINI = "anthropic:claude-opus-4-5", "google:gemini-2.5-pro"
GOOD = {CLAUDE: message(), GEMINI: candidate()}
GOOD_TOKENS = {CLAUDE: 170, GEMINI: 150}
MODELS = pytest.mark.parametrize("model", [CLAUDE, GEMINI])
SECRETS = {"ANTHROPIC_API_KEY": "sk-ant-secret-0123456789", "GOOGLE_API_KEY": "AIzaSyD-secret-0123456789"}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def ask(model: str, *script: Said, retries: int = 1, **more: Any) -> tuple[Reply[None] | ProctorError, ProviderServer]:
    """The outcome of one question, and the server."""

    async def run(url: str) -> Reply[None] | ProctorError:
        waits = {"backoff_s": 0.001, "max_wait_s": 0.002, "timeout_s": 600.0}
        client = ModelClient(
            ModelSpec.model_validate({"name": model, "base_url": url, "retries": retries, **waits, **more})
        )
        try:
            return await client.ask(["Which?"], system="Be brief.")
        except ProctorError as error:
            return error
        finally:
            await client.aclose()

    with ProviderServer(GOOD[model], script) as server:
        return asyncio.run(run(server.url)), server


def replied(model: str, *script: Said, **more: Any) -> tuple[Reply[None], ProviderServer]:
    outcome, server = ask(model, *script, **more)
    assert isinstance(outcome, Reply), outcome
    return outcome, server


# ── what is sent ──


def test_anthropic_gets_the_settings_in_its_own_words() -> None:
    _, server = replied(CLAUDE, settings={"temperature": 0.5, "max_tokens": 64, "top_p": 0.9})
    (one,) = server.asked
    assert one.path == "/v1/messages"
    assert one.body == {
        "model": "claude-opus-4-5",
        "max_tokens": 64,
        "temperature": 0.5,
        "top_p": 0.9,
        "stream": False,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Which?"}]}],
    }


def test_google_gets_the_settings_in_its_own_words() -> None:
    _, server = replied(GEMINI, settings={"temperature": 0.5, "max_tokens": 64, "seed": 3})
    (one,) = server.asked
    assert one.path == "/v1beta/models/gemini-2.5-pro:generateContent"
    assert one.body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    assert one.body["contents"] == [{"role": "user", "parts": [{"text": "Which?"}]}]
    sent = {name: one.body["generationConfig"][name] for name in ("temperature", "maxOutputTokens", "seed")}
    assert sent == {"temperature": 0.5, "maxOutputTokens": 64, "seed": 3}


def test_without_a_limit_anthropic_is_asked_for_all_that_the_model_can_say() -> None:
    """The protocol demands a limit; a long answer comes as a stream."""
    reply, server = replied(CLAUDE)
    assert (server.asked[0].body["max_tokens"], server.asked[0].body["stream"]) == (64000, True)
    assert (reply.text, reply.finish_reason) == ("Answer: A", "end_turn")


@pytest.mark.parametrize(
    ("model", "settings", "said"),
    [
        ("anthropic:claude-opus-4-7", {"temperature": 0}, "Sampling parameters ['temperature'] are not supported by 'claude-opus-4-7'"),
        (CLAUDE, {"anthropic_speed": "fast"}, "anthropic_speed='fast' is not supported by claude-opus-4-5 on this client"),
        ("google:gemini-2.0-flash", {"thinking": "low"}, "this model does not think: 'thinking' would be ignored"),
        ("openai:gpt-5", {"temperature": 0}, "Sampling parameters ['temperature'] are not supported when reasoning is enabled"),
    ],
)  # fmt: skip
def test_a_setting_that_this_model_does_not_take_is_refused_and_nothing_is_sent(
    model: str, settings: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library leaves it out; the run would be recorded with it."""
    monkeypatch.setenv("OPENAI_API_KEY", "no-key-at-all")
    with ProviderServer({}) as server:
        for url in (server.url, None):
            with pytest.raises(ConfigurationError) as refused:
                ModelClient(ModelSpec(name=model, base_url=url, settings=settings))
            assert str(refused.value) == f"{model}: {said}: leave it out of the settings"
    assert server.asked == []


@pytest.mark.parametrize(
    ("model", "variable", "own"),
    [
        ("openai:gpt-5.2", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
        ("openai-chat:gpt-5.2", "OPENAI_BASE_URL", "https://api.openai.com/v1/"),
        (CLAUDE, "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
        (GEMINI, "GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com/"),
    ],
)
def test_another_server_is_named_in_the_record_or_not_asked(
    model: str, variable: str, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the variable its replies were recorded, and priced, as the provider's."""
    monkeypatch.setenv("OPENAI_API_KEY", "no-key-at-all")
    monkeypatch.setenv(variable, "http://127.0.0.1:9/v1")
    with pytest.raises(ConfigurationError) as refused:
        ModelClient(ModelSpec(name=model))
    told = "names another server, which would not be recorded: name it with --base-url, or unset the variable"
    assert str(refused.value) == f"{model}: {variable} {told}"
    for name, url in ((variable, None), (variable + "_OF_MINE", "http://127.0.0.1:8/v1")):
        monkeypatch.setenv(name, own)
        client = ModelClient(ModelSpec(name=model, base_url=url))
        assert client.settings["base_url"] == url
        asyncio.run(client.aclose())


def test_what_a_judge_would_like_is_no_demand() -> None:
    async def run(url: str) -> None:
        client = ModelClient(ModelSpec(name="anthropic:claude-opus-4-7", base_url=url), likes={"temperature": 0.0})
        with pytest.warns(UserWarning, match="will be ignored"):
            await client.ask(["Which?"])
        await client.aclose()

    with ProviderServer(message()) as server:
        asyncio.run(run(server.url))
    assert "temperature" not in server.asked[0].body


@MODELS
def test_a_run_shows_the_frames_and_keeps_no_key(model: str, tmp_path: Path) -> None:
    """From the command line: a table of questions with videos and images."""
    assert proctor("new", tmp_path / "q").returncode == 0
    store, page = tmp_path / "runs.db", tmp_path / "report.html"
    with ProviderServer(GOOD[model]) as server:
        words = (
            "--model",
            model,
            "--base-url",
            server.url,
            "--store",
            store,
            "--condition",
            "video",
            "--max-frames",
            "2",
        )
        done = proctor("run", tmp_path / "q", *words, OPENAI_API_KEY="sk-another-0123456789")
    assert done.returncode == 0, done.stderr
    pictures = [found for one in server.asked for found in _pictures(one.body)]
    assert len(server.asked) == 10
    assert pictures
    assert all(base64.urlsafe_b64decode(one.replace("+", "-").replace("/", "_"))[:2] == b"\xff\xd8" for one in pictures)
    assert all("sk-another" not in str(one.headers) for one in server.asked)
    assert proctor("report", "my-questions", "--store", store, "--out", page).returncode == 0
    kept = store.read_bytes() + page.read_bytes() + (done.stdout + done.stderr).encode()
    assert not [name for name, secret in SECRETS.items() if secret.encode() in kept]


def _pictures(body: dict[str, Any]) -> list[str]:
    if "contents" in body:
        parts = [part for turn in body["contents"] for part in turn["parts"]]
        return [part["inlineData"]["data"] for part in parts if "inlineData" in part]
    parts = [part for turn in body["messages"] for part in turn["content"]]
    return [part["source"]["data"] for part in parts if part["type"] == "image"]


# ── what it costs ──


def test_tokens_of_the_cache_and_of_thinking_are_counted_and_priced() -> None:
    """Per million: Claude 5 $ in, 0.50 read from the cache, 6.25 written to it, 25 out; Gemini 1.25 in, 0.125 read,
    10 out, thoughts included."""
    claude, _ = replied(CLAUDE)
    assert (claude.usage.input_tokens, claude.usage.cached_tokens, claude.usage.output_tokens) == (170, 50, 5)
    assert claude.usage.cost_usd == pytest.approx((100 * 5 + 50 * 0.5 + 20 * 6.25 + 5 * 25) / 1e6)
    gemini, _ = replied(GEMINI)
    assert (gemini.usage.input_tokens, gemini.usage.cached_tokens, gemini.usage.output_tokens) == (150, 50, 45)
    assert gemini.usage.cost_usd == pytest.approx((100 * 1.25 + 50 * 0.125 + 45 * 10) / 1e6)


def test_thoughts_are_no_answer() -> None:
    thought = {"type": "thinking", "thinking": "Answer: C?", "signature": "x"}
    said = message(content=[thought, {"type": "text", "text": "Answer: B"}])
    assert replied(CLAUDE, Said(said))[0].text == "Answer: B"
    parts = [{"text": "Answer: C?", "thought": True}, {"text": "Answer: B"}]
    turn = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    assert replied(GEMINI, Said(candidate(candidates=[turn])))[0].text == "Answer: B"


# ── how a reply ends ──


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (CLAUDE, message("", "refusal")),
        (CLAUDE, message("I can", "refusal")),
        *(
            (GEMINI, candidate(text, why))
            for text in (None, "I can")
            for why in ("SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION")
        ),
        (GEMINI, candidate(candidates=[], promptFeedback={"blockReason": "SAFETY"})),
        (GEMINI, candidate(candidates=[], promptFeedback={"blockReason": "PROHIBITED_CONTENT"})),
    ],
)
def test_who_declines_is_not_asked_again_and_is_paid(model: str, said: dict[str, Any]) -> None:
    outcome, server = ask(model, Said(said))
    assert (type(outcome), len(server.asked)) == (RefusalError, 1)
    assert outcome.usage is not None
    assert outcome.usage.requests == 1
    assert outcome.usage.input_tokens > 0


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (CLAUDE, message("Answ", "max_tokens")),
        (CLAUDE, message("Answ", "model_context_window_exceeded")),
        (CLAUDE, message(content=[{"type": "thinking", "thinking": "Hm", "signature": "x"}], stop="max_tokens")),
        (GEMINI, candidate("Answ", "MAX_TOKENS")),
        (GEMINI, candidate(None, "MAX_TOKENS")),
    ],
)
def test_what_the_limit_cut_off_says_so_and_is_not_asked_again(model: str, said: dict[str, Any]) -> None:
    reply, server = replied(model, Said(said))
    assert (reply.cut_off, len(server.asked)) == (True, 1)


@pytest.mark.parametrize(("model", "said"), [(CLAUDE, message("")), (GEMINI, candidate("")), (GEMINI, candidate(None))])
def test_an_empty_reply_is_asked_again_and_then_stands(model: str, said: dict[str, Any]) -> None:
    reply, server = replied(model, *[Said(said)] * 3)
    assert (reply.text, reply.usage.requests, len(server.asked)) == ("", 3, 3)


BROKEN_OFF = [
    *(
        (CLAUDE, Said(events(message("Answer: A is wrong"), until)))
        for until in ("content_block_stop", "message_delta")
    ),
    (GEMINI, Said(candidate(candidates=[]))),
]


@pytest.mark.parametrize(("model", "said"), BROKEN_OFF)
def test_a_reply_that_breaks_off_is_no_answer(model: str, said: Said) -> None:
    """It was a whole one: whatever had come until then stood as the answer."""
    reply, server = replied(model, said)
    assert (reply.text, reply.usage.requests, len(server.asked)) == ("Answer: A", 2, 2)
    outcome, _ = ask(model, said, said)
    assert type(outcome) is InfrastructureError
    assert str(outcome) == f"{model}: the reply broke off (after 2 tries)"
    assert outcome.usage is not None
    assert outcome.usage.requests == 2


def test_an_error_within_a_stream_is_one_of_the_server() -> None:
    overloaded = events(message(), "content_block_stop", [anthropic_error("overloaded_error", "Overloaded")])
    reply, server = replied(CLAUDE, Said(overloaded))
    assert (reply.text, len(server.asked)) == ("Answer: A", 2)
    outcome, _ = ask(CLAUDE, *[Said(overloaded)] * 2)
    assert str(outcome) == f"{CLAUDE}: HTTP 529: Overloaded (after 2 tries)"


# ── errors ──

SLOW_DOWN = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3600s"}
AGAIN = [
    (CLAUDE, Said(anthropic_error("rate_limit_error", "Rate limit"), 429, {"retry-after": "3600"})),
    (CLAUDE, Said(anthropic_error("overloaded_error", "Overloaded"), 529)),
    (CLAUDE, Said(anthropic_error("api_error", "Internal server error"), 500)),
    (CLAUDE, Said(anthropic_error("timeout_error", "Timed out"), 504)),
    (CLAUDE, Said(b"<html>bad gateway</html>", 502, {"content-type": "text/html"})),
    (GEMINI, Said(google_error(429, "RESOURCE_EXHAUSTED", "Quota exceeded", SLOW_DOWN), 429)),
    (GEMINI, Said(google_error(503, "UNAVAILABLE", "The model is overloaded."), 503)),
    (GEMINI, Said(google_error(500, "INTERNAL", "An internal error has occurred."), 500)),
    (GEMINI, Said(google_error(504, "DEADLINE_EXCEEDED", "Deadline expired."), 504)),
    (GEMINI, Said(b"<html>bad gateway</html>", 502, {"content-type": "text/html"})),
]


@pytest.mark.parametrize(("model", "said"), AGAIN)
def test_what_passes_is_asked_again(model: str, said: Said) -> None:
    """A wait that the server asks for is bounded, here by two thousandths of a second."""
    reply, server = replied(model, said)
    assert (reply.text, reply.usage.requests, len(server.asked)) == ("Answer: A", 1, 2)
    outcome, server = ask(model, said, said)
    assert (type(outcome), len(server.asked)) == (InfrastructureError, 2)
    assert f"HTTP {said.status}" in str(outcome)


def claude(said: str, kind: str = "invalid_request_error", status: int = 400) -> tuple[str, Said]:
    return CLAUDE, Said(anthropic_error(kind, said), status)


def gemini(said: str, kind: str = "INVALID_ARGUMENT", status: int = 400, *details: dict[str, Any]) -> tuple[str, Said]:
    return GEMINI, Said(google_error(status, kind, said, *details), status)


NO_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
DATA = "messages.0.content.1.image.source.base64.data: "
FINAL = [
    (claude("invalid x-api-key", "authentication_error", 401), ConfigurationError),
    (claude("model: claude-opus-9", "not_found_error", 404), ConfigurationError),
    (claude("`temperature` may only be set to 1 when thinking is enabled."), ConfigurationError),
    (claude("`temperature` and `top_p` cannot both be specified for this model."), ConfigurationError),
    (claude("`max_tokens` must be greater than `thinking.budget_tokens`."), ConfigurationError),
    (claude("Output blocked by content filtering policy"), RefusalError),
    (claude("Request exceeds the maximum size", "request_too_large", 413), SystemFaultError),
    (claude("prompt is too long: 210000 tokens > 200000 maximum"), SystemFaultError),
    (claude("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), SystemFaultError),
    (claude(f"{DATA}image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"), SystemFaultError),
    (claude(f"{DATA}At least one of the image dimensions exceed max allowed size: 8000 pixels"), SystemFaultError),
    (claude("Could not process image"), SystemFaultError),
    (claude("Too much media: 0 document pages + 107 images > 100"), SystemFaultError),
    (claude("You have reached your specified API usage limits."), ConfigurationError),
    (gemini("API key not valid.", "INVALID_ARGUMENT", 400, NO_KEY), ConfigurationError),
    (gemini("Permission denied.", "PERMISSION_DENIED", 403), ConfigurationError),
    (gemini("User location is not supported for the API use.", "FAILED_PRECONDITION"), ConfigurationError),
    (gemini("Budget 0 is invalid. This model only works in thinking mode."), ConfigurationError),
    (gemini("Audio input modality is not enabled for models/gemini-x"), ConfigurationError),
    (gemini("The input token count (1200000) exceeds the maximum number of tokens allowed."), SystemFaultError),
    (gemini("Unable to process input image."), SystemFaultError),
    (gemini("Request payload size exceeds the limit: 20971520 bytes."), SystemFaultError),
    (gemini("Request contains an invalid argument."), InfrastructureError),  # of this item, maybe
]


@pytest.mark.parametrize(("asked", "kind"), FINAL)
def test_a_rejection_is_told_apart_and_not_asked_again(asked: tuple[str, Said], kind: type[ProctorError]) -> None:
    outcome, server = ask(*asked)
    assert (type(outcome), len(server.asked)) == (kind, 1), outcome
    assert json.dumps(asked[1].body["error"]["message"])[1:16] in json.dumps(str(outcome))


def test_a_model_that_is_not_there_is_no_matter_of_the_address() -> None:
    outcome, _ = ask(*claude("model: claude-opus-9", "not_found_error", 404))
    assert str(outcome) == f"{CLAUDE}: HTTP 404: model: claude-opus-9"


@MODELS
def test_a_key_that_the_server_repeats_is_not_shown(model: str) -> None:
    secret = SECRETS["ANTHROPIC_API_KEY" if model == CLAUDE else "GOOGLE_API_KEY"]
    said = f"Your key {secret} has no access"
    body = (
        anthropic_error("permission_error", said) if model == CLAUDE else google_error(403, "PERMISSION_DENIED", said)
    )
    outcome, _ = ask(model, Said(body, 403))
    assert str(outcome).startswith(f"{model}: HTTP 403: Your key *** has no access")
    assert secret not in str(outcome)


@MODELS
def test_a_run_tells_declined_failed_and_wrong_apart(model: str, tmp_path: Path) -> None:
    """In the store: who declines is refused, an overloaded server failed, media that are rejected are an error."""
    assert proctor("new", tmp_path / "q").returncode == 0
    store = tmp_path / "runs.db"
    script = {
        CLAUDE: [message("", "refusal"), claude("Could not process image")[1], AGAIN[1][1]],
        GEMINI: [candidate(None, "SAFETY"), gemini("Unable to process input image.")[1], AGAIN[6][1]],
    }[model]
    said = [one if isinstance(one, Said) else Said(one) for one in script]
    with ProviderServer(GOOD[model], said) as server:
        words = ("--model", model, "--base-url", server.url, "--store", store, "--condition", "text-only")
        first = proctor("run", tmp_path / "q", *words, "--retries", "0", "--concurrency", "1", "--limit", "4")
        assert first.returncode == 3, first.stderr
        assert _statuses(store) == [Status.ANSWERED, Status.ERROR, Status.FAILED, Status.REFUSED]
        again = proctor("run", tmp_path / "q", *words, "--retries", "0", "--concurrency", "1", "--limit", "4")
        assert again.returncode == 0, again.stderr
    assert _statuses(store) == [Status.ANSWERED, Status.ANSWERED, Status.ERROR, Status.REFUSED]


@MODELS
def test_what_a_failed_answer_cost_counts_with_the_one_that_replaces_it(model: str, tmp_path: Path) -> None:
    assert proctor("new", tmp_path / "q").returncode == 0
    store = tmp_path / "runs.db"
    broken = next(said for name, said in BROKEN_OFF if name == model)
    with ProviderServer(GOOD[model], [broken]) as server:
        words = (
            "--model",
            model,
            "--base-url",
            server.url,
            "--store",
            store,
            "--condition",
            "text-only",
            "--limit",
            "1",
        )
        assert proctor("run", tmp_path / "q", *words, "--retries", "0").returncode == 3
        assert proctor("run", tmp_path / "q", *words, "--retries", "0").returncode == 0
        assert len(server.asked) == 2
    (answer,) = _answers(store)
    tokens = 2 * GOOD_TOKENS[model]
    assert (answer.status, answer.usage.requests, answer.usage.input_tokens) == (Status.ANSWERED, 2, tokens)


def _statuses(path: Path) -> list[Status]:
    return sorted((one.status for one in _answers(path)), key=str)


def _answers(path: Path) -> list[Answer]:
    store = Store(path, create=False)
    (run,) = [one for one in store.runs("my-questions") if one.system in GOOD]
    answers = [*store.answers(run).values()]
    store.close()
    return answers
