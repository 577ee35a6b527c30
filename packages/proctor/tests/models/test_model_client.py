"""What a model is sent and what its reply becomes, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from proctor.core import ConfigurationError, Frame, InfrastructureError, RefusalError, SystemFaultError, UsageError
from proctor.media import StoredPicture
from proctor.models import ModelClient, ModelSpec, Reply, parse_price
from proctor.models.connections import Connections, Posted
from tests.support.faulty_server import AT_ONCE, Calls, Fault, FaultyServer, Request
from tests.support.raw_server import completion


class Colour(BaseModel):
    """The colour that was seen.

    A second paragraph is for readers of the code.
    """

    name: Literal["red", "blue"]
    count: int


def spec(server: FaultyServer, **changes: Any) -> ModelSpec:
    """A specification with hardly any waiting."""
    quick = {"name": "openai:m", "base_url": server.url, "timeout_s": 600.0, "backoff_s": 0.001, "retries": 3}
    return ModelSpec.model_validate(quick | changes)


def ask(server: FaultyServer, *parts: str | Frame, system: str = "", **changes: Any) -> Reply[None]:
    async def run() -> Reply[None]:
        client = ModelClient(spec(server, **changes))
        try:
            return await client.ask(parts or ("Which colour?",), system=system)
        finally:
            await client.aclose()

    return asyncio.run(run())


def ask_colour(server: FaultyServer, question: str = "Which colour?", **changes: Any) -> Reply[Colour]:
    async def run() -> Reply[Colour]:
        client = ModelClient(spec(server, **changes))
        try:
            return await client.ask([question], schema=Colour)
        finally:
            await client.aclose()

    return asyncio.run(run())


def test_texts_and_pictures_go_out_in_their_order_with_label_and_time() -> None:
    with FaultyServer("blue") as server:
        frames = [
            Frame(b"\xff\xd8one", 1.25, ""),
            Frame(b"\xff\xd8twotwo", None, "A"),
            Frame(b"\xff\xd8three", 3.0, "B"),
            Frame(b"\xff\xd8four", 3.0, "t = 3.0 s"),
            Frame(b"\xff\xd8five", None, ""),
        ]
        reply = ask(server, *frames, "Which colour?", system="Be brief.")
    (request,) = server.requests
    assert request.texts == ("Be brief.", "t = 1.2 s", "A", "B, t = 3.0 s", "t = 3.0 s", "Which colour?")
    assert request.image_bytes == (5, 8, 7, 6, 6)
    system, user = request.body["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert [part["type"] for part in user["content"]] == [
        "text",
        "image_url",
        "text",
        "image_url",
        "text",
        "image_url",
        "text",
        "image_url",
        "image_url",
        "text",
    ]
    assert user["content"][1]["image_url"]["url"] == "data:image/jpeg;base64,/9hvbmU="
    assert (reply.text, reply.value, reply.finish_reason, reply.model) == ("blue", None, "stop", "m")
    assert not reply.cut_off


def test_a_picture_is_encoded_once_and_put_into_bodies_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Sequence[bytes]] = []

    async def post(_: Connections, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> Posted:
        sent.append(body)
        return Posted(200, {}, completion("blue"))

    async def run() -> None:
        client = ModelClient(ModelSpec(name="m", base_url="http://localhost:9/v1"))
        for question in ("Which colour?", 'And "data:image/jpeg;base64,"?'):
            await client.ask([Frame(one, 1.0, "A"), Frame(b"plain", None, ""), question])
        await client.aclose()

    monkeypatch.setattr(Connections, "post", post)
    one = StoredPicture(b"\xff\xd8" + bytes(100_000))
    asyncio.run(run())
    assert all(any(piece is one.base64 for piece in body) for body in sent)
    told = [json.loads(b"".join(body))["messages"][-1]["content"] for body in sent]
    urls = [[part["image_url"]["url"] for part in content if part["type"] == "image_url"] for content in told]
    assert urls == [[f"data:image/jpeg;base64,{b64encode(data).decode()}" for data in (one, b"plain")]] * 2
    assert [content[-1]["text"] for content in told] == ["Which colour?", 'And "data:image/jpeg;base64,"?']


def test_settings_pass_through_and_time_out_and_retries_do_not() -> None:
    with FaultyServer() as server:
        ask(server, settings={"temperature": 0, "max_tokens": 7, "seed": 3, "extra_body": {"min_p": 0.1}})
    body = server.requests[0].body
    assert {key: body[key] for key in ("temperature", "max_tokens", "seed", "min_p")} == {
        "temperature": 0,
        "max_tokens": 7,
        "seed": 3,
        "min_p": 0.1,
    }
    assert set(body) == {"temperature", "max_tokens", "seed", "min_p", "model", "messages", "stream"}


def test_usage_counts_cached_tokens_and_an_unknown_price_is_none() -> None:
    with FaultyServer("12345678", cached_tokens=40) as server:
        usage = ask(server, "12345678").usage
    assert usage.model_dump() == {
        "requests": 1,
        "input_tokens": 42,
        "output_tokens": 3,
        "cached_tokens": 40,
        "cost_usd": None,
    }


def test_a_local_server_is_not_priced_as_the_provider_whose_model_name_it_uses() -> None:
    with FaultyServer() as server:
        assert ask(server, name="openai:gpt-4o").usage.cost_usd is None


def test_an_own_price_is_for_what_has_none() -> None:
    with FaultyServer("12345678", cached_tokens=40) as server:
        usage = ask(server, "12345678", price=(0.5, 2.0)).usage
    # 42 input tokens at $0.50 and 3 output tokens at $2.00 a million
    assert usage.cost_usd == pytest.approx((42 * 0.5 + 3 * 2.0) / 1e6)
    assert ModelSpec(name="m", price=(0.5, 2.0)).priced(usage.model_copy(update={"cost_usd": 9.0})).cost_usd == 9.0


@pytest.mark.parametrize("typed", ["", "1", "1/", "/2", "-1/2", "1/2/3", "1e400/1", "nan/1", "１/２", "9999999999/1"])
def test_a_price_is_two_amounts(typed: str) -> None:
    expected = "--price .* can't be used: give INPUT/OUTPUT in dollars for a million tokens, such as 0.15/0.60"
    with pytest.raises(UsageError, match=expected):
        parse_price(typed)
    with pytest.raises(ConfigurationError, match="expected to be 0 or more dollars, found -1"):
        ModelSpec(name="m", price=(-1, 2))


def test_a_known_price_comes_from_the_offline_list() -> None:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage

    from proctor.models.reply import read_usage

    response = ModelResponse(
        parts=[],
        usage=RequestUsage(input_tokens=1_000_000, output_tokens=100_000),
        model_name="gpt-4o",
        provider_name="openai",
        provider_url="https://api.openai.com/v1",
    )
    # $2.50 for a million input tokens, $10 for a million output tokens
    assert read_usage(response, set()).cost_usd == pytest.approx(2.5 + 1.0)


def test_a_reply_that_the_token_limit_cut_is_kept_and_flagged() -> None:
    with FaultyServer("Answer: B, because", script=[Fault.LENGTH]) as server:
        reply = ask(server)
    assert (reply.text, reply.finish_reason, reply.cut_off) == ("Answer: B, because", "length", True)
    assert server.count == 1


@pytest.mark.parametrize("name", ["m", "openai:m"])
def test_a_thought_that_the_token_limit_cut_is_no_answer(name: str) -> None:
    with FaultyServer("<think>Answer: B? No,", script=[Fault.LENGTH]) as server:
        reply = ask(server, name=name)
    assert (reply.text, reply.cut_off, server.count) == ("", True, 1)
    with FaultyServer("<think>B? No.</think>Answer: A<think>or", script=[Fault.LENGTH]) as server:
        assert ask(server, name=name).text == "Answer: A"


@pytest.mark.parametrize("fault", [Fault.CONTENT_FILTER, Fault.REFUSAL])
def test_a_filter_or_a_refusal_is_the_models_and_not_retried(fault: Fault) -> None:
    with FaultyServer("yes", script=[fault]) as server:
        with pytest.raises(RefusalError, match=r"^openai:m: the model or its provider declined to answer$") as refused:
            ask(server)
        assert server.count == 1
        told = ask(server).usage  # of a reply that the server counts alike
    assert refused.value.usage is not None
    assert (refused.value.usage.requests, refused.value.usage.input_tokens) == (1, told.input_tokens)
    assert told.input_tokens > 0


def test_an_error_that_is_sent_as_a_success_is_told_in_the_servers_words() -> None:
    with (
        FaultyServer(script=[Fault.ERROR_AS_SUCCESS]) as server,
        pytest.raises(InfrastructureError, match=r"can't be read: an error under status 200: upstream failed$"),
    ):
        ask(server, name="m", retries=0)


def test_what_replies_without_the_form_consumed_is_known() -> None:
    with FaultyServer("no form") as server, pytest.raises(SystemFaultError) as ended:
        ask_colour(server)
    assert ended.value.usage is not None
    assert (ended.value.usage.requests, server.count) == (3, 3)
    script = [None, Fault.CONTENT_FILTER]
    with FaultyServer("no form", script=script) as server, pytest.raises(RefusalError) as refused:
        ask_colour(server)
    assert refused.value.usage is not None
    assert (refused.value.usage.requests, server.count) == (2, 2)


def test_an_empty_reply_is_asked_again_twice_and_then_believed() -> None:
    with FaultyServer("Answer: C", script=[Fault.EMPTY_CONTENT] * 2) as server:
        reply = ask(server)
    assert (reply.text, server.count, reply.usage.requests) == ("Answer: C", 3, 3)
    with FaultyServer("") as server:
        reply = ask(server)
    assert (reply.text, server.count, reply.usage.requests) == ("", 3, 3)


def test_a_reply_of_a_form_is_asked_for_by_schema_and_read() -> None:
    with FaultyServer('{"name": "red", "count": 2}') as server:
        reply = ask_colour(server)
    assert reply.value == Colour(name="red", count=2)
    asked = server.requests[0].body["response_format"]["json_schema"]
    assert asked["name"] == "Colour"
    assert asked["schema"]["description"] == "The colour that was seen."
    assert asked["schema"]["properties"]["name"]["enum"] == ["red", "blue"]


def test_one_code_fence_around_the_value_is_fine() -> None:
    with FaultyServer('```json\n{"name": "blue", "count": 0}\n```') as server:
        assert ask_colour(server).value == Colour(name="blue", count=0)
    assert server.count == 1


BAD_FORMS = {
    '{"name": "green", "count": 2}': "name: expected 'red' or 'blue'",
    '{"name": "red"}': "count: missing",
    '{"name": "red", "count": "many"}': "count: expected a whole number",
    '{"name": "red", "coun': "Invalid JSON: EOF while parsing",
    'One says {"name": "red", "count": 2}, another {"name": "red", "count": 1}.': "Invalid JSON: expected value",
    '{"name": "red", "count": 1, "count": 2}': "found the key 'count' twice, expected each key once",
    '```json\n{"name": "red", "count": 2}\n```\n```json\n{"name": "blue", "count": 2}\n```': "Invalid JSON",
    "red": "Invalid JSON: expected value",
    "[]": "expected an object",
    "null": "expected an object",
}


@pytest.mark.parametrize(("text", "reason"), BAD_FORMS.items())
def test_what_is_not_of_the_form_is_asked_again_and_never_guessed(text: str, reason: str) -> None:
    with FaultyServer(text) as server, pytest.raises(SystemFaultError) as caught:
        ask_colour(server)
    assert str(caught.value).startswith(f"openai:m: no readable reply in 3 tries: {reason}")
    assert server.count == 3
    assert "could not be read" not in server.requests[0].text
    assert f"Your last reply could not be read ({reason}" in server.requests[1].text


WORDY = (
    'The verdict is {"name": "red", "count": 2}.',
    '```json\n{"name": "red", "count": 2}\n```\nOr, in short:\n```\n{"name":"red","count":2}\n```',
    'I looked at {both} of them.\n\n{"name": "red", "count": 2}',
)


@pytest.mark.parametrize("text", WORDY)
def test_the_one_value_of_the_form_among_words_is_read(text: str) -> None:
    with FaultyServer(text) as server:
        assert ask_colour(server).value == Colour(name="red", count=2)
    assert server.count == 1


@pytest.mark.parametrize("text", WORDY)
def test_a_value_that_the_question_holds_is_a_quotation_and_no_reply(text: str) -> None:
    with FaultyServer(text) as server, pytest.raises(SystemFaultError, match="Invalid JSON"):
        ask_colour(server, question='The answer is: {"count": 2, "name": "red"}')


def test_a_better_second_reply_counts_and_both_are_paid() -> None:
    replies = iter(["red", '{"name": "red", "count": 1}'])
    with FaultyServer(lambda _: next(replies)) as server:
        reply = ask_colour(server)
    assert (reply.value, reply.usage.requests) == (Colour(name="red", count=1), 2)


def test_the_way_to_ask_for_a_form_can_be_chosen() -> None:
    with FaultyServer('{"name": "red", "count": 1}') as server:
        ask_colour(server, structured="prompted")
        ask_colour(server, structured="tool")
    prompted, tool = (request.body for request in server.requests)
    assert prompted.get("response_format", {"type": "json_object"}) == {"type": "json_object"}
    assert '"red"' in server.requests[0].text  # the schema is told in words
    assert [offered["function"]["name"] for offered in tool["tools"]] == ["Colour"]


@pytest.mark.parametrize("text", ['{"score": 1}', ""])
def test_a_refusal_of_a_form_is_a_refusal(text: str) -> None:
    with FaultyServer(text, script=[Fault.CONTENT_FILTER]) as server, pytest.raises(RefusalError):
        ask_colour(server)


def test_many_requests_are_in_flight_at_once() -> None:
    """No reply goes out before all the requests are in."""

    async def run(server: FaultyServer) -> None:
        client = ModelClient(spec(server, timeout_s=600, retries=0))
        asking = [asyncio.create_task(client.ask(["Which?"])) for _ in range(128)]
        while server.count < 128:
            assert not any(one.done() for one in asking)
            await asyncio.sleep(0.01)
        server.release()
        await asyncio.gather(*asking)
        await client.aclose()

    with FaultyServer(holds_after=0) as server:
        asyncio.run(run(server))
    assert server.count == 128


def test_replies_belong_to_their_questions() -> None:
    def echo(request: Request) -> str:
        return f"you said {request.texts[-1]}"

    async def run(server: FaultyServer) -> list[Reply[None]]:
        client = ModelClient(spec(server, retries=20))
        replies = await asyncio.gather(*(client.ask([f"{number}"]) for number in range(60)))
        await client.aclose()
        return replies

    with FaultyServer(echo, faults=0.3, kinds=AT_ONCE, seed=4, retry_after_s=0) as server:
        replies = asyncio.run(run(server))
    assert [reply.text for reply in replies] == [f"you said {number}" for number in range(60)]
    assert server.count > 60


def test_no_access_and_no_model_are_configuration() -> None:
    messages: list[str] = []
    for fault in (Fault.UNAUTHORIZED, Fault.FORBIDDEN, Fault.NOT_FOUND):
        with FaultyServer(script=[fault]) as server, pytest.raises(ConfigurationError) as caught:
            ask(server)
        assert server.count == 1
        messages.append(str(caught.value))
    assert messages[2] == "openai:m: HTTP 404: The model does not exist; check the model's name and --base-url"
    assert [message[:18] for message in messages[:2]] == ["openai:m: HTTP 401", "openai:m: HTTP 403"]


def test_a_client_says_what_changes_its_replies() -> None:
    client = ModelClient(ModelSpec(name="m", base_url="http://localhost:9/v1/", settings={"temperature": 0}))
    assert client.name == "m"
    assert client.settings == {
        "model": "m",
        "base_url": "http://localhost:9/v1",
        "model_settings": {"temperature": 0},
        "structured": "auto",
    }
    asyncio.run(client.aclose())


def test_a_compatible_server_knows_the_usual_settings() -> None:
    with FaultyServer("blue") as server:
        ask(server, name="mine", settings={"temperature": 0.5, "max_tokens": 7})
    assert server.requests[0].body["temperature"] == 0.5


def test_a_tool_call_with_a_key_twice_is_no_reply() -> None:
    """The library itself would take the last of the two."""
    twice, once = '{"name": "red", "count": 1, "name": "blue"}', '{"name": "red", "count": 1}'
    calls = [Calls([("Colour", twice)]), Calls([("Colour", once)])]
    with FaultyServer(lambda _: calls.pop(0)) as server:
        reply = ask_colour(server, structured="tool")
        assert (reply.value.name, server.count) == ("red", 2)
        assert "'name' twice" in server.requests[1].text
