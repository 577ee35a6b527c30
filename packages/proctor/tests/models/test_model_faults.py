"""Every way to break, over real HTTP: retried and got over, or `InfrastructureError`, never an answer."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import traceback
from typing import Any

import pytest

from proctor.core import (
    ConfigurationError,
    Frame,
    InfrastructureError,
    ProctorError,
    RefusalError,
    Stopwatch,
    SystemFaultError,
    Timing,
)
from proctor.models import ModelClient, ModelSpec, Reply, rejection
from tests.support.faulty_server import AT_ONCE, Fault, FaultyServer
from tests.support.raw_server import completion, raw_server
from tests.support.scripted_transport import GOOD, HANG, TRANSPORTS, Outcome, answer_by_script, choose_transport
from tests.support.virtual_time import run_in_virtual_time


@pytest.fixture(params=TRANSPORTS, autouse=True)
def _by_each_transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    choose_transport(monkeypatch, request.param)


SECRET = "sk-proj-THISISSECRET0123456789"


def client_of(server: FaultyServer, **changes: Any) -> ModelClient:
    quick = {"name": "openai:m", "base_url": server.url, "timeout_s": 600.0, "backoff_s": 0.001, "retries": 2}
    return ModelClient(ModelSpec.model_validate(quick | changes))


def ask(server: FaultyServer, **changes: Any) -> Reply[None] | ProctorError:
    async def run() -> Reply[None] | ProctorError:
        client = client_of(server, **changes)
        try:
            return await client.ask(["Which?", Frame(b"\xff\xd8picture", 1.0, "")], system="You look.")
        except ProctorError as error:
            return error
        finally:
            await client.aclose()

    return asyncio.run(run())


REASONS = {
    Fault.RATE_LIMIT: "HTTP 429: Rate limit reached",
    Fault.RATE_LIMIT_WITH_DELAY: "HTTP 429: Rate limit reached",
    Fault.SERVER_ERROR: "HTTP 500: The server had an error",
    Fault.UNAVAILABLE: "HTTP 503: The engine is loading",
    Fault.RESET: "Connection error",
    Fault.CUT_OFF: "Connection error",
    Fault.TRUNCATED_JSON: "Failed to decode response as JSON: ",
    Fault.WRONG_TYPES: "a reply that can't be read: ",
    Fault.EMPTY_CHOICES: "a reply that can't be read: ",
    Fault.NOT_JSON: "a reply that can't be read: Invalid response from",
    Fault.ERROR_AS_SUCCESS: "a reply that can't be read: ",
}


UNUSABLE = "frames of another size (--max-side), or media that the server can read"
FEWER = "fewer or smaller frames (--max-frames, --max-side)"
CONTEXT = f"{FEWER}, fewer tokens of output (--settings max_tokens), or a server with a larger context"
SETTING = "leave it out or change it (--settings, --structured)"
MONEY = "the account needs credit, or a higher limit"


def test_every_transient_fault_is_tried_below() -> None:
    assert set(AT_ONCE) <= set(REASONS)


@pytest.mark.parametrize("slow", [HANG, Outcome(body_s=math.inf)])
def test_a_call_that_hangs_is_asked_again_after_its_time(slow: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    left = answer_by_script(monkeypatch, [slow, slow, GOOD])
    reply, timing = timed(budget_s=31, timeout_s=30, retries=2)
    assert (reply.text, left) == ("Answer: B", [])
    assert timing.retry_s == pytest.approx(60, abs=0.01)  # and the waits of 0.001 and 0.002 s at most
    answer_by_script(monkeypatch, [slow, slow])
    with pytest.raises(InfrastructureError, match=r"openai:m: the request timed out \(after 2 tries\)"):
        timed(budget_s=31, timeout_s=30, retries=1)


@pytest.mark.parametrize("fault", REASONS)
def test_a_fault_is_got_over(fault: Fault) -> None:
    with FaultyServer("Answer: B", script=[fault, fault], retry_after_s=0) as server:
        reply = ask(server)
    assert isinstance(reply, Reply)
    assert reply.text == "Answer: B"
    assert server.count == 3


@pytest.mark.parametrize("fault", REASONS)
def test_a_lasting_fault_is_the_machinerys(fault: Fault) -> None:
    with FaultyServer(faults=1.0, kinds=[fault], retry_after_s=0) as server:
        error = ask(server, retries=1)
    assert type(error) is InfrastructureError
    assert str(error).startswith(f"openai:m: {REASONS[fault]}")
    assert str(error).endswith(" (after 2 tries)")
    assert "\n" not in str(error)
    assert server.count == 2


@pytest.mark.parametrize("skip", range(10))
def test_no_wrong_type_becomes_a_text(skip: int) -> None:
    with FaultyServer("Answer: B", faults=1.0, kinds=[Fault.WRONG_TYPES]) as server:
        server._wrong = skip
        outcome = ask(server, retries=0)
    if isinstance(outcome, Reply):  # only the usage was broken: the answer is the model's
        assert (skip, outcome.text, outcome.usage.cost_usd) == (4, "Answer: B", None)
    else:
        assert type(outcome) is InfrastructureError


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (Fault.BAD_REQUEST, SystemFaultError, f"openai:m: HTTP 400: The video is too short; {UNUSABLE}"),
        (Fault.TOO_LARGE, SystemFaultError, f"openai:m: HTTP 413: The request is too large; {FEWER}"),
        (Fault.CONTEXT, SystemFaultError, f"openai:m: HTTP 400: 40000 tokens are more than it takes; {CONTEXT}"),
        (Fault.POLICY, RefusalError, "openai:m: HTTP 400: Your request was rejected"),
        (Fault.PARAMETER, ConfigurationError, f"openai:m: HTTP 400: top_k is not known here; {SETTING}"),
        (Fault.QUOTA, ConfigurationError, f"openai:m: HTTP 429: You exceeded your current quota; {MONEY}"),
        (Fault.NO_REASON, InfrastructureError, "openai:m: HTTP 400: Bad request"),
    ],
)
def test_what_the_provider_rejects_is_told_apart_and_not_retried(
    fault: Fault, kind: type[ProctorError], message: str
) -> None:
    with FaultyServer(script=[fault]) as server:
        error = ask(server)
    assert (type(error), str(error), server.count) == (kind, message, 1)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Input length 9000 exceeds the maximum context length of 8192 tokens", SystemFaultError),
        ("prompt is too long: 210000 tokens > 200000 maximum", SystemFaultError),
        ("Image 3 could not be decoded", SystemFaultError),
        ("<400> InternalError.Algo.DataInspectionFailed: may contain inappropriate content", RefusalError),
        ("The response was filtered due to Azure's content management policy", RefusalError),
        ("Unrecognized request argument supplied: top_k", ConfigurationError),
        ("1 validation error: extra inputs are not permitted", ConfigurationError),
        ("This model does not support image input", ConfigurationError),
        ("At most 4 image(s) may be provided in one prompt", SystemFaultError),
    ],
)
def test_rejections_by_their_words(said: str, kind: type[ProctorError]) -> None:
    assert type(rejection(said)) is kind


def test_nobody_listening_is_the_machinerys() -> None:
    with FaultyServer() as server:
        pass
    error = ask(server)
    said = f"openai:m: Connection error at {server.url} (after 3 tries)"
    assert (type(error), str(error)) == (InfrastructureError, said)


@pytest.mark.parametrize(("asked_s", "most_s", "waited_s"), [(1.0, 60.0, 1.0), (3600.0, 0.2, 0.2)])
def test_a_retry_after_is_honoured_and_bounded(
    asked_s: float, most_s: float, waited_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_by_script(monkeypatch, [Outcome(status=429, retry_after_s=asked_s), GOOD])
    _, timing = timed(budget_s=0.1, max_wait_s=most_s)
    assert timing.retry_s == pytest.approx(waited_s, abs=0.001)


def test_waits_double_with_full_jitter_and_repeat_with_the_seed() -> None:
    def waits(seed: int) -> list[float]:
        client = ModelClient(
            ModelSpec(name="m", base_url="http://localhost:9/v1", backoff_s=1, max_wait_s=8, seed=seed)
        )
        drawn = [client._wait(earlier, None) for earlier in (0, 1, 2, 3, 4, 400) for _ in range(200)]
        asyncio.run(client.aclose())
        return drawn

    first = waits(1)
    assert first == waits(1) != waits(2)
    for position, limit in enumerate((1, 2, 4, 8, 8, 8)):
        drawn = first[200 * position : 200 * (position + 1)]
        assert 0 <= min(drawn) < 0.1 * limit
        assert 0.9 * limit < max(drawn) <= limit


def timed(budget_s: float, **changes: Any) -> tuple[Reply[None], Timing]:
    """As the engine asks: under a budget that the stopwatch may move; in virtual time."""

    async def run() -> tuple[Reply[None], Timing]:
        quick = {"name": "openai:m", "base_url": "http://localhost:9/v1", "backoff_s": 0.001, "retries": 2}
        client = ModelClient(ModelSpec.model_validate(quick | changes))
        try:
            async with asyncio.timeout(budget_s) as limit:
                watch = Stopwatch(limit)
                with watch.running():
                    return await client.ask(["Which?"]), watch.timing()
        finally:
            await client.aclose()

    return run_in_virtual_time(run())


def test_time_lost_to_faults_never_counts_against_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    script = [HANG, Outcome(status=429, retry_after_s=1), HANG, Outcome(resets=True), Outcome(after_s=4.9)]
    answer_by_script(monkeypatch, script)
    reply, timing = timed(budget_s=5.1, timeout_s=5, retries=4)
    assert reply.text == "Answer: B"
    assert timing.retry_s == pytest.approx(11, abs=0.02)  # two hangs of 5 s, and the second that was asked for
    assert timing.model_s == pytest.approx(4.9)


def test_the_models_own_time_counts_against_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_by_script(monkeypatch, [HANG])
    with pytest.raises(TimeoutError):
        timed(budget_s=0.3, timeout_s=10)
    answer_by_script(monkeypatch, [Outcome(after_s=4.9)])
    _, timing = timed(budget_s=5, timeout_s=10)  # slow, and then an answer: the model's time
    assert timing.retry_s == 0
    assert timing.model_s == pytest.approx(4.9)


def texts_about(error: BaseException, client: ModelClient) -> str:
    """Everything that could be shown, stored or logged."""
    return "\n".join(
        [
            str(error),
            repr(error),
            *traceback.format_exception(error),
            repr(client),
            repr(client.spec),
            client.spec.model_dump_json(),
            json.dumps(client.settings),
        ]
    )


@pytest.mark.parametrize("fault", [Fault.UNAUTHORIZED, Fault.FORBIDDEN])
@pytest.mark.parametrize("secret", [SECRET, "0123456789abcdef0123456789abcdef"])
def test_a_key_surfaces_nowhere_even_if_the_server_repeats_it(
    fault: Fault, secret: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    caplog.set_level(logging.DEBUG)
    with FaultyServer(script=[fault]) as server:

        async def run() -> str:
            client = client_of(server)
            try:
                await client.ask(["Which?"])
            except ConfigurationError as error:
                return texts_about(error, client)
            finally:
                await client.aclose()
            raise AssertionError("access was not denied")

        shown = asyncio.run(run())
    assert "***" in shown
    assert secret not in shown + caplog.text


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_takes_no_key_elsewhere(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    elsewhere: list[object] = []

    async def ask_it(url: str) -> str:
        client = ModelClient(ModelSpec(name="m", base_url=url, retries=0))
        try:
            return (await client.ask(["Which?"])).text
        finally:
            await client.aclose()

    def taken(asked: object) -> bytes:
        elsewhere.append(asked)
        return completion("Answer: A")

    with raw_server(taken) as other:
        assert asyncio.run(ask_it(other)) == "Answer: A"
        elsewhere.clear()
        there = {"Location": f"{other}/chat/completions"}
        with (
            raw_server(lambda _: b"", headers=there, status=status) as url,
            pytest.raises(InfrastructureError, match=f"m: .*{status}"),
        ):
            asyncio.run(ask_it(url))
    assert elsewhere == []


def test_thirty_per_cent_faults_of_all_kinds_leave_no_wrong_answer() -> None:
    async def run(server: FaultyServer) -> list[Reply[None] | BaseException]:
        client = client_of(server, retries=1)
        outcomes = await asyncio.gather(*(client.ask([str(number)]) for number in range(200)), return_exceptions=True)
        await client.aclose()
        return outcomes

    with FaultyServer(
        lambda request: f"Answer: {request.texts[-1]}", faults=0.3, kinds=list(REASONS), seed=9
    ) as server:
        server.retry_after_s = 0
        outcomes = asyncio.run(run(server))
    failed = [outcome for outcome in outcomes if not isinstance(outcome, Reply)]
    assert {type(error) for error in failed} == {InfrastructureError}
    assert 0 < len(failed) < 100  # 200 · 0.3² = 18 expected, more where the machine is slow
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, Reply):
            assert outcome.text == f"Answer: {number}"
