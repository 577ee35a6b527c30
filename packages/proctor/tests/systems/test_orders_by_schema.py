"""Orders are requested by a JSON schema first, and as text where that is impossible; either way the answer format reads
what comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import (
    ACCURACY,
    Answer,
    Benchmark,
    ConfigurationError,
    InfrastructureError,
    InputError,
    Item,
    ProctorError,
    Reference,
)
from proctor.core.formats import ChoiceFormat, OrderingFormat, rationale_in
from proctor.models import ModelClient, ModelSpec, load_prompt
from proctor.runs import Store, recorded
from proctor.shell import arrange
from proctor.shell.orders import order_of
from proctor.systems import ModelSystem, prompt_as_sent, prompt_for_benchmark
from proctor.systems.replies import asks_for_rationale, order_form, order_instruction
from tests.support.faulty_server import Calls, Cut, FaultyServer, Rejects, Request
from tests.support.program import proctor as program
from tests.support.provider_server import ProviderServer, candidate, message
from tests.support.schema_replies import draw_schema_replies
from tests.support.stills import Shown

LABELS = ("A", "B", "C", "D")
ORDER = ["D", "B", "A", "C"]
WHY = "The scene is checked first, and the chest is bared last."
GOOD = json.dumps({"rationale": WHY, "order": ORDER})
TEXT = f"Rationale: {WHY}\nAnswer: D > B > A > C"


def item(name: str = "q1", labels: Sequence[str] = LABELS) -> Item:
    return Item(
        id=name,
        group=name,
        question="In which order were the pictures taken?",
        answer=OrderingFormat(labels=tuple(labels)),
        reference=Reference(answer=[*reversed(labels)]),
    )


def wants_schema(request: Request) -> bool:
    return "response_format" in request.body or "tools" in request.body


def answered(
    url: str, *items: Item, prompt: str = "clinicalskillqa", orders: Any = "schema", at_once: int = 1, **spec: Any
) -> tuple[list[Answer | ProctorError], ModelSystem]:
    """The answers of one system to items, or the errors, and the system."""

    async def run() -> tuple[list[Answer | ProctorError], ModelSystem]:
        model = {"name": "m", "base_url": url, "retries": 0, "timeout_s": 600.0, "backoff_s": 0.001, **spec}
        client = ModelClient(ModelSpec.model_validate(model))
        gate = asyncio.Semaphore(at_once)

        async def one(asked: Item) -> Answer | ProctorError:
            async with gate:
                try:
                    return await system.answer(asked, Shown([]))
                except ProctorError as error:
                    return error

        try:
            system = ModelSystem(client, prompt_for_benchmark(prompt), orders=orders)
            return list(await asyncio.gather(*map(one, items or [item()]))), system
        finally:
            await client.aclose()

    return asyncio.run(run())


def only_answer(url: str, *items: Item, **more: Any) -> Answer:
    (found,), _ = answered(url, *items, **more)
    assert isinstance(found, Answer), found
    return found


def value(answer: object) -> Any:
    assert isinstance(answer, Answer), answer
    return item().answer.parse(answer.text)


def test_what_is_sent_and_recorded_where_the_server_takes_a_schema() -> None:
    with FaultyServer(GOOD) as server:
        (got,), system = answered(server.url)
    (request,) = server.requests
    assert request.body["response_format"]["type"] == "json_schema"
    sent = request.body["response_format"]["json_schema"]
    schema = sent["schema"]
    assert (sent["name"], sent["strict"]) == ("OrderReply", True)
    assert [*schema["properties"]] == schema["required"] == ["rationale", "order"]  # as the prompt names them
    assert schema["properties"]["rationale"] == {"type": "string"}
    items = {"type": "string", "enum": ["A", "B", "C", "D"]}
    assert schema["properties"]["order"] == {"type": "array", "items": items, "minItems": 4, "maxItems": 4}
    assert 'as the list "order" of a JSON object' in request.text
    assert "plain text" not in request.text
    assert isinstance(got, Answer)
    assert (value(got), got.extra["rationale"], got.extra["asked_by"]) == (ORDER, WHY, "schema")
    assert "schema_rejected" not in got.extra
    assert (system.orders, system.settings["orders"]) == ("schema", "schema")


def test_a_prompt_without_a_rationale_requests_the_order_alone() -> None:
    with FaultyServer(json.dumps({"order": ORDER})) as server:
        got = only_answer(server.url, prompt="simulated")
    schema = server.requests[0].body["response_format"]["json_schema"]["schema"]
    assert [*schema["properties"]] == ["order"]
    assert server.requests[0].text.endswith(order_instruction(LABELS))
    assert (value(got), "rationale" in got.extra) == (ORDER, False)


def test_the_rationale_stands_where_the_prompt_names_it() -> None:
    instruction = order_instruction(LABELS)
    assert asks_for_rationale(f"Give your rationale. {instruction}", instruction) == "first"
    assert asks_for_rationale(f"{instruction} Then give the Rationale.", instruction) == "last"
    assert asks_for_rationale(instruction, instruction) == ""
    german = "Größe, Größe und größere Größe: " * 20  # "ß" is two letters in "SS"
    assert asks_for_rationale(f"{german} Give your rationale. {instruction}", instruction) == "first"
    for position, names in (("first", ["rationale", "order"]), ("last", ["order", "rationale"]), ("", ["order"])):
        assert [*order_form(LABELS, position).model_json_schema()["properties"]] == names


def test_other_formats_are_asked_as_before() -> None:
    one = Item(id="q", group="q", question="Which?", answer=ChoiceFormat(), options=("one", "two"))
    with FaultyServer("Answer: A") as server:
        got = only_answer(server.url, one)
    assert not wants_schema(server.requests[0])
    assert "asked_by" not in got.extra


def test_text_is_asked_as_before() -> None:
    """Word for word, under both ways to ask for it; without a choice the settings are those of before."""
    with FaultyServer(TEXT) as server:
        (chosen,), by_choice = answered(server.url, orders="text")
        (silent,), by_default = answered(server.url, orders=None)
    first, second = server.requests
    assert not wants_schema(first)
    assert first.body == second.body
    assert (
        'joined by ">": "Answer: first > … > last". Write each letter once, and nothing after the order.' in first.text
    )
    assert "Reply in plain text, in two parts." in first.text
    assert (value(chosen), value(silent)) == (ORDER, ORDER)
    assert (by_choice.settings["orders"], "orders" in by_default.settings) == ("text", False)
    for got in (chosen, silent):
        assert isinstance(got, Answer)
        assert (got.extra["asked_by"], got.extra["rationale"]) == ("text", WHY)


REJECTIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "llama.cpp, older": (
        400,
        {"error": {"code": 400, "message": 'response_format type must be one of "text" or "json_object", but got: json_schema', "type": "invalid_request_error"}},
    ),
    "llama.cpp, grammar": (
        400,
        {"error": {"code": 400, "message": "Failed to initialize samplers: failed to parse grammar", "type": "invalid_request_error"}},
    ),
    "llama.cpp, conversion": (
        500,
        {"error": {"code": 500, "message": 'JSON schema conversion failed:\nUnrecognized schema: {"enum":[]}', "type": "server_error"}},
    ),
    "vllm": (
        400,
        {"object": "error", "message": "The provided JSON schema contains features not supported by xgrammar.", "type": "BadRequestError", "param": None, "code": 400},
    ),
    "vllm, as a server's error": (
        500,
        {"error": {"message": 'Grammar error: Unimplemented keys: ["maxItems"]', "type": "InternalServerError", "code": 500}},
    ),
    "vllm, older": (
        400,
        {"object": "error", "message": "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or 'json_object'\"}]", "type": "BadRequestError", "code": 400},
    ),
    "sglang, without a backend": (
        400,
        {"object": "error", "message": "Grammar-based generation (json_schema, regex, ebnf, structural_tag) is not supported when the server is launched with --grammar-backend none", "type": "BadRequestError", "code": 400},
    ),
    "sglang": (400, {"object": "error", "message": "Invalid grammar request with cache hit: key=('json', '{}')", "type": "BadRequestError", "code": 400}),
    "ollama": (500, {"error": {"message": "failed to load model vocabulary required for format", "type": "api_error", "param": None, "code": None}}),
    "ollama, older": (400, {"error": {"message": 'invalid format: expected "json" or a JSON schema', "type": "invalid_request_error"}}),
    "openai": (
        400,
        {"error": {"message": "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.", "type": "invalid_request_error", "param": None, "code": None}},
    ),
    "deepseek": (400, {"error": {"message": "This response_format type is unavailable now", "type": "invalid_request_error", "code": "invalid_request_error"}}),
    "openrouter": (404, {"error": {"message": "No endpoints found that can handle the requested parameters.", "code": 404}}),
    "openrouter, from behind": (502, {"error": {"message": "Invalid grammar request", "code": 502}}),
    "tgi": (422, {"error": "Input validation error: grammar is not valid: Grammar must have a 'properties' field", "error_type": "validation"}),
    "words that nobody knows": (400, {"error": {"message": "Bad request", "code": "bad_request"}}),
    "a fault under status 200": (200, {"error": {"message": "Failed to compile json schema", "code": 400}}),
}  # fmt: skip


def rejecting(status: int, body: Any) -> Callable[[Request], str | Rejects]:
    return lambda request: Rejects(status, body) if wants_schema(request) else TEXT


@pytest.mark.parametrize("server_name", REJECTIONS)
def test_a_server_that_rejects_the_schema_is_asked_as_text(server_name: str) -> None:
    """At once, though attempts are left; once for each form, not for each item."""
    with FaultyServer(rejecting(*REJECTIONS[server_name])) as server:
        found, system = answered(server.url, item("q1"), item("q2"), item("q3"), retries=2)
        plain = only_answer(server.url, orders="text")
    assert [wants_schema(request) for request in server.requests] == [True, False, False, False, False]
    assert server.requests[1].body == server.requests[4].body  # as one who asks for text from the start
    for got in found:
        assert isinstance(got, Answer)
        assert (value(got), got.extra["rationale"]) == (value(plain), plain.extra["rationale"]) == (ORDER, WHY)
        assert got.extra["asked_by"] == "text"
        assert str(got.extra["schema_rejected"]).startswith("m: ")
        assert got.extra["messages_sha256"] == plain.extra["messages_sha256"]
    assert system.settings["orders"] == "schema"  # what was asked for: the same run for every item and session


def test_after_a_few_forms_no_other_is_tried() -> None:
    items = [item(f"q{size}", "ABCDEFGH"[:size]) for size in (3, 4, 5, 6, 7)]
    with FaultyServer(rejecting(*REJECTIONS["vllm"])) as server:
        answered(server.url, *items)
    assert [wants_schema(request) for request in server.requests] == [True, False] * 3 + [False] * 2


def test_one_form_that_is_rejected_says_nothing_of_the_others() -> None:
    def reply(request: Request) -> str | Rejects:
        if not wants_schema(request):
            return TEXT
        long = len(json.dumps(request.body["response_format"])) > 800
        return Rejects(*REJECTIONS["openai"]) if long else GOOD

    odd = item("odd", [f"{'a very long label of ' * 3}{n}" for n in range(8)])
    with FaultyServer(reply) as server:
        found, _ = answered(server.url, odd, item("q1"), odd, item("q2"))
    assert [one.extra["asked_by"] for one in found if isinstance(one, Answer)] == ["text", "schema", "text", "schema"]
    assert [wants_schema(request) for request in server.requests] == [True, False, True, False, True]


@pytest.mark.parametrize("at_once", [1, 8])
def test_how_an_item_is_asked_does_not_depend_on_the_others(at_once: int) -> None:
    items = [item(f"q{number}", "ABCDEF"[: 3 + number % 4]) for number in range(24)]

    def reply(request: Request) -> str | Rejects:
        if not wants_schema(request):
            return TEXT
        labels = request.body["response_format"]["json_schema"]["schema"]["properties"]["order"]["maxItems"]
        return Rejects(*REJECTIONS["vllm"]) if labels == 5 else GOOD

    with FaultyServer(reply) as server:
        found, _ = answered(server.url, *items, at_once=at_once)
    asked = [one.extra["asked_by"] for one in found if isinstance(one, Answer)]
    assert asked == ["text" if number % 4 == 2 else "schema" for number in range(24)]


def test_a_rejection_of_the_question_is_no_rejection_of_the_schema() -> None:
    """The context is too long, whatever the form; and what is rejected as text, too, is told by that rejection."""
    long = {
        "error": {"message": "This model's maximum context length is 4096 tokens", "code": "context_length_exceeded"}
    }
    with FaultyServer(lambda _: Rejects(400, long)) as server:
        (error,), _ = answered(server.url)
    assert (server.count, type(error).__name__) == (1, "SystemFaultError")
    wrong = {"error": {"message": "Unknown parameter: 'top_k'", "code": "unknown_parameter"}}
    with FaultyServer(
        lambda request: Rejects(400, REJECTIONS["vllm"][1] if wants_schema(request) else wrong)
    ) as server:
        found, _ = answered(server.url, item("q1"), item("q2"))
    assert server.count == 4  # nothing was learned of the schema
    assert all(isinstance(error, ConfigurationError) and "top_k" in str(error) for error in found)
    busy = {"error": {"message": "The engine is loading"}}
    with FaultyServer(lambda _: Rejects(503, busy)) as server:
        (error,), _ = answered(server.url)
    assert (server.count, type(error)) == (1, InfrastructureError)


def test_a_server_that_checks_the_form_itself_costs_one_item_its_schema() -> None:
    """Groq sends an error instead of a reply that is not of the form: the model may take the next one."""
    failed = {
        "error": {"message": "Failed to generate JSON.", "code": "json_validate_failed", "failed_generation": "{"}
    }
    replies: list[str | Rejects] = [Rejects(400, failed), TEXT, GOOD]
    with FaultyServer(lambda _: replies.pop(0)) as server:
        found, _ = answered(server.url, item("q1"), item("q2"))
    assert [wants_schema(request) for request in server.requests] == [True, False, True]
    assert [value(one) for one in found] == [ORDER, ORDER]


PROSE = {
    "prose": f"I think {WHY.lower()} The order is D > B > A > C.",
    "the former form": TEXT,
    "a list": f"1. D\n2. B\n3. A\n4. C\n\nRationale: {WHY}",
    "after thoughts": f"<think>A > B > C > D? No.</think>{GOOD}",
    "after thoughts without a beginning": f"Maybe Answer: A > B > C > D\n</think>\n\n{GOOD}",
    "in a fence": f"```json\n{GOOD}\n```",
    "with words": f"Here you are:\n{GOOD}\nI hope that helps.",
    "nested": json.dumps({"answer": {"rationale": WHY, "order": ORDER}}),
    "as a text": json.dumps({"rationale": WHY, "order": "D > B > A > C"}),
    "unquoted": "{rationale: none, order: [D, B, A, C]}",
}


@pytest.mark.parametrize("kind", PROSE)
def test_a_server_that_ignores_the_schema_is_read_as_text(kind: str) -> None:
    with FaultyServer(PROSE[kind]) as server:
        got = only_answer(server.url)
    assert (server.count, value(got), got.extra["asked_by"]) == (1, ORDER, "schema")
    if kind not in {"prose", "nested", "unquoted"}:
        assert got.extra["rationale"] == WHY


def test_what_the_rationale_says_is_no_correction() -> None:
    doubts = {"rationale": "Answer: A > B > C > D would be wrong. Final answer: D > B > A > C", "order": ORDER}
    with FaultyServer(json.dumps(doubts)) as server:
        assert "corrected" not in only_answer(server.url).extra


@pytest.mark.parametrize("position", [*range(2, len(GOOD), 3), len(GOOD) - 1])
def test_a_reply_that_is_cut_off_is_the_models_and_asked_once(position: int) -> None:
    with FaultyServer(lambda _: Cut(GOOD[:position])) as server:
        got = only_answer(server.url)
    assert (server.count, got.text, got.extra["cut_off"]) == (1, GOOD[:position], True)
    assert WHY.startswith(str(got.extra["rationale"]))
    whole = position > GOOD.index('"C')
    try:
        assert value(got) == ORDER[: len(value(got))]
        assert (len(value(got)) == 4) == whole
    except ProctorError:
        assert not whole


def test_broken_json_is_the_models_and_asked_once() -> None:
    with FaultyServer('{"rationale": "none", "order": D, B, A, C]') as server:
        got = only_answer(server.url)
    assert (server.count, value(got)) == (1, ORDER)
    with FaultyServer("{}") as server:
        got = only_answer(server.url)
    assert (server.count, got.text, got.extra["rationale"]) == (1, "{}", "")


def test_a_server_that_sends_nothing_for_a_schema_is_asked_as_text() -> None:
    """SGLang puts the reply among the thoughts where a model that can think does not; three tries, as for any reply."""
    with FaultyServer(lambda request: "" if wants_schema(request) else TEXT) as server:
        found, _ = answered(server.url, item("q1"), item("q2"), retries=3)
    assert [wants_schema(request) for request in server.requests] == [True] * 3 + [False] * 2
    first, second = (one for one in found if isinstance(one, Answer))
    assert (value(first), first.extra["schema_rejected"]) == (ORDER, "m: an empty reply")
    assert (first.usage.requests, second.usage.requests) == (4, 1)
    with FaultyServer("") as server:
        got = only_answer(server.url, retries=3)
    assert (server.count, got.text) == (6, "")


def test_by_a_tool_and_in_words() -> None:
    with FaultyServer(lambda request: Calls([("OrderReply", GOOD)]) if wants_schema(request) else TEXT) as server:
        (by_tool,), tool = answered(server.url, structured="tool")
        (in_words,), words = answered(server.url, structured="prompted")
    assert [offered["function"]["name"] for offered in server.requests[0].body["tools"]] == ["OrderReply"]
    assert not wants_schema(server.requests[1])
    assert (value(by_tool), value(in_words)) == (ORDER, ORDER)
    assert isinstance(by_tool, Answer)
    assert (by_tool.text, by_tool.extra["rationale"]) == (GOOD, WHY)
    assert (tool.settings["orders"], words.settings["orders"]) == ("schema", "text")


CLAUDE, GEMINI = "anthropic:claude-opus-4-5", "google:gemini-2.5-pro"


@pytest.mark.parametrize("model", [CLAUDE, GEMINI])
def test_other_protocols_have_schemas_of_their_own(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.setenv("GOOGLE_API_KEY", "none")
    with ProviderServer(message(GOOD) if model == CLAUDE else candidate(GOOD)) as server:
        got = only_answer(server.url, name=model)
    (asked,) = server.asked
    config = asked.body["output_config"]["format"]["schema"] if model == CLAUDE else None
    schema = config or asked.body["generationConfig"]["responseJsonSchema"]
    assert [*schema["properties"]] == ["rationale", "order"]
    assert schema["properties"]["order"]["items"]["enum"] == [*LABELS]
    assert (value(got), got.extra["rationale"], got.extra["asked_by"]) == (ORDER, WHY, "schema")


def test_a_protocol_with_tools_alone_is_asked_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    with ProviderServer(message(TEXT)) as server:
        (got,), system = answered(server.url, name="anthropic:claude-3-5-sonnet-latest")
    assert (value(got), system.settings["orders"], "tools" in server.asked[0].body) == (ORDER, "text", False)


def test_replies_of_a_schema_are_read_without_errors() -> None:
    wrong = []
    for labels, text, order in draw_schema_replies(5000, seed=0):
        try:
            found = OrderingFormat(labels=labels).parse(text)
        except ProctorError:
            found = None
        if found != order:
            wrong.append((text, found, order))
        rationale_in(text)
    assert wrong == []


def steps(*, choices: bool = False) -> Benchmark:
    items = [item(f"q{number}") for number in range(3)]
    if choices:
        options = ("one", "two")
        items = [
            Item(
                id="q",
                group="q",
                question="Which?",
                answer=ChoiceFormat(),
                options=options,
                reference=Reference(answer="A"),
            )
        ]
    return Benchmark("steps", "Steps", tuple(items), (ACCURACY,), "accuracy")


def run_steps(url: str, store: Any, **more: Any) -> Any:
    how = {"model": "m", "base_url": url, "conditions": "text-only", "store": store, "baselines": False, "retries": 0}
    return proctor.run(steps(choices=more.pop("choices", False)), **how, **more)


def settings_of(store: Store) -> dict[str, Any]:
    (run,) = store.runs("steps")
    settings: Any = run.settings["system"]
    return dict(settings)


def test_a_run_asked_differently_is_another_run(tmp_path: Path) -> None:
    own = tmp_path / "own.txt.j2"
    own.write_text("{{ question }} {{ instruction }}")
    with FaultyServer(lambda request: GOOD if wants_schema(request) else TEXT) as server:
        for given, orders in (
            ({}, "schema"),
            ({"orders": "text"}, "text"),
            ({"prompt": str(own)}, "text"),  # its words ask for text
            ({"prompt": str(own), "orders": "schema"}, "schema"),
            ({"structured": "prompted"}, "text"),
        ):
            store = Store(str(tmp_path / f"{len(given)}-{'-'.join(given)}.db"))
            run_steps(server.url, store, **given)
            assert settings_of(store)["orders"] == orders, given
        store = Store(str(tmp_path / "twice.db"))
        run_steps(server.url, store)
        with pytest.raises(InputError, match=r"other settings \(system.orders 'schema' then, 'text' now\)"):
            run_steps(server.url, store, orders="text")
        choices = Store(str(tmp_path / "choices.db"))
        run_steps(server.url, choices, choices=True)
    assert "orders" not in settings_of(choices)


def test_runs_of_before_go_on_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(str(tmp_path / "s.db"))
    with FaultyServer(TEXT) as server:
        with monkeypatch.context() as before:
            before.setattr(ModelSystem, "settings", property(_former_settings))
            run_steps(server.url, store, orders="text", limit=1)
        assert "orders" not in settings_of(store)
        done = run_steps(server.url, store, orders="text")
    assert (done.outcome.tally.done, server.count) == (2, 3)


def _former_settings(system: ModelSystem) -> dict[str, Any]:
    return {**system._client.settings, "prompt": system._prompt.name, "prompt_sha256": system._prompt.sha256,
            "sampling": {"count": None, "fps": None, "video_as": "frames"}}  # fmt: skip


@pytest.mark.parametrize(("given", "orders"), [({}, "schema"), ({"orders": "text"}, "text")])
def test_workers_ask_as_the_run_does(given: dict[str, Any], orders: str) -> None:
    """They get the prompt as a file, which alone would mean text."""
    how: dict[str, Any] = {"model": "m", "base_url": "http://localhost:9/v1", "conditions": "text-only", **given}
    order = order_of(arrange(steps(), None, **how))
    assert order is not None
    assert order.options["orders"] == orders


def test_a_method_and_a_system_take_no_such_option() -> None:
    for system, model in (("pairwise-vote", "openai:m"), ("random", None)):
        with pytest.raises(InputError, match=r"--orders text is for models without a method\. Leave it out"):
            proctor.run(steps(), system, model=model, orders="text", conditions="text-only", store=":memory:")


def test_the_words_that_were_sent_are_rebuilt(tmp_path: Path) -> None:
    replies = {"taken": lambda request: GOOD, "rejected": rejecting(*REJECTIONS["vllm"])}
    for name, reply in replies.items():
        store = Store(str(tmp_path / f"{name}.db"))
        with FaultyServer(reply) as server:
            run_steps(server.url, store)
        (run,) = store.runs("steps")
        for one, answer in store.answers(run).items():
            asked = next(each for each in store.items("steps") if each.id == one)
            settings: Any = run.settings["system"]
            found = prompt_as_sent("steps", asked, answer, settings, recorded(answer), "text-only")
            assert found is not None
            assert found[1].endswith(order_instruction(LABELS)) == (name == "taken")
            assert any(request.texts == found for request in server.requests)


def test_a_fallback_is_told_once(tmp_path: Path) -> None:
    table = tmp_path / "questions.csv"
    rows = "".join(
        f"q{number},g{number},Which order?,one,two,three,four,D > B > A > C,ordering\n" for number in range(3)
    )
    table.write_text(f"id,group,question,A,B,C,D,answer,format\n{rows}")
    with FaultyServer(rejecting(*REJECTIONS["vllm"])) as server:
        done = program(
            *("run", table, "--model", "m", "--base-url", server.url, "--condition", "text-only"),
            *("--store", tmp_path / "s.db", "--concurrency", "1"),
        )
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "schema" in line]
    reason = REJECTIONS["vllm"][1]["message"].rstrip(".")
    way = "another --structured (orders: --orders text)"
    why = f"since the server takes no JSON schema: 3 orders (m: HTTP 400: {reason}; {way})"
    assert told == [f"Requested as text, {why}"]


def test_a_batch_asks_by_schema_and_then_as_text(tmp_path: Path) -> None:
    folder, store = tmp_path / "batch", tmp_path / "s.db"
    how: dict[str, Any] = {"batch": folder, "limit": 1}

    def lines() -> list[dict[str, Any]]:
        return [
            json.loads(line) for file in sorted(folder.glob("requests-*")) for line in file.read_text().splitlines()
        ]

    def put(key: str, status: int, body: Any) -> None:
        with (folder / "out.jsonl").open("a") as out:
            out.write(json.dumps({"custom_id": key, "response": {"status_code": status, "body": body}}) + "\n")

    folder.mkdir()
    run_steps("http://localhost:9/v1", store, **how)
    (first,) = lines()
    assert first["body"]["response_format"]["type"] == "json_schema"
    put(first["custom_id"], *REJECTIONS["vllm"])
    run_steps("http://localhost:9/v1", store, **how)
    _, second = lines()
    assert "response_format" not in second["body"]
    message = {"role": "assistant", "content": TEXT}
    put(
        second["custom_id"], 200, {"model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    )
    run_steps("http://localhost:9/v1", store, **how)
    opened = Store(str(store))
    (run,) = opened.runs("steps")
    (answer,) = opened.answers(run).values()
    assert (answer.parsed, answer.extra["asked_by"], len(lines())) == (ORDER, "text", 2)


def test_a_dry_run_asks_nothing(tmp_path: Path) -> None:
    with FaultyServer(GOOD) as server:
        plan = arrange(steps(), None, model="m", base_url=server.url, conditions="text-only", store=":memory:")
        (found,) = asyncio.run(plan.estimate())
    assert (server.count, found.items) == (0, 3)
    assert found.tokens > 0


def test_the_prompt_is_shown_as_it_is_sent(tmp_path: Path) -> None:
    own = load_prompt(Path(proctor.__file__).parent / "systems" / "model_answer.txt.j2")
    assert "as_json" not in own.text  # the instruction alone differs
    with FaultyServer(GOOD) as server:
        run_steps(server.url, tmp_path / "s.db")
    said = program("show", "steps", "q1", "--prompt", "--store", tmp_path / "s.db")
    assert order_instruction(LABELS) in said.stdout
