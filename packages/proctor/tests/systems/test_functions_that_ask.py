"""A function with the parameter `ask` is a system of several calls to one model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import proctor
from proctor import ConfigurationError, InputError, Status
from proctor.systems import AskModel, FunctionSystem, asks_a_model
from tests.support.faulty_server import FaultyServer, Request
from tests.support.lamp_benchmark import lamps


@proctor.system(formats=["binary"])
async def describe_then_answer(question: str, instruction: str, ask: AskModel) -> str:
    """Two calls to one model."""
    seen = await ask("Describe the scene.")
    return await ask(f"{seen}\n{question}\n{instruction}", system="Answer from the description.")


class Lamp(BaseModel):
    """A form."""

    state: Literal["yes", "no"]


def scripted(request: Request) -> str:
    return "A lamp shines." if "Describe the scene." in request.text else "Answer: yes"


def run(system: Any, server: FaultyServer, **more: Any) -> Any:
    options: dict[str, Any] = {"conditions": "text-only", "store": ":memory:", "baselines": False, **more}
    return proctor.run(lamps(), system, model="reader", base_url=server.url, **options)


def test_two_calls_give_one_answer_with_the_usage_of_both() -> None:
    with FaultyServer(scripted) as server:
        made = run(describe_then_answer, server)
        second = [request.text for request in server.requests if "A lamp shines." in request.text]
    (stored,) = made.runs
    answers = made.store.answers(stored)
    assert stored.system == "describe_then_answer[reader]"
    assert (server.count, len(second)) == (24, 12)
    assert {answer.usage.requests for answer in answers.values()} == {2}
    assert all(answer.parsed is True for answer in answers.values())
    settings: Any = stored.settings["system"]
    assert (settings["model"], settings["base_url"]) == ("reader", server.url)
    assert settings["function"] == "describe_then_answer"


def test_a_plain_function_waits_for_a_form() -> None:
    @proctor.system
    def plain(question: str, ask: Callable[..., Any]) -> str:
        return f"Answer: {ask(question, form=Lamp).state}"

    with FaultyServer('{"state": "no"}') as server:
        made = run(plain, server)
    answers = made.store.answers(made.runs[0])
    assert {answer.text for answer in answers.values()} == {"Answer: no"}
    assert {answer.usage.requests for answer in answers.values()} == {1}


def test_usage_stays_known_where_the_function_fails() -> None:
    @proctor.system
    async def fails(ask: AskModel) -> str:
        raise ValueError(await ask("What now?"))

    with FaultyServer("no idea") as server:
        made = run(fails, server)
    answers = made.store.answers(made.runs[0]).values()
    assert {answer.status for answer in answers} == {Status.ERROR}
    assert {answer.usage.requests for answer in answers} == {1}
    assert "ValueError: no idea (test_functions_that_ask.py, line " in next(iter(answers)).reason


def test_it_is_found_in_a_file_and_keeps_a_given_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("async def twice(question, ask):\n    return await ask(await ask(question))\n", "utf-8")
    with FaultyServer("Answer: yes") as server:
        made = run(f"{file}:twice", server, name="asked twice")
    assert [stored.system for stored in made.runs] == ["asked twice"]
    assert server.count == 24


def test_it_needs_one_model() -> None:
    with pytest.raises(ConfigurationError, match="describe_then_answer: found 0 models, expected one"):
        proctor.run(lamps(), describe_then_answer, conditions="text-only", store=":memory:", baselines=False)
    with FaultyServer("Answer: yes") as server, pytest.raises(InputError, match="can't be asked together"):
        proctor.run(lamps(), [describe_then_answer, "random"], model="reader", base_url=server.url, store=":memory:")


def test_a_parameter_with_a_default_stays_the_authors_own() -> None:
    def own(question: str, ask: str = "yes") -> str:
        return f"Answer: {ask}" if question else ""

    made = proctor.run(lamps(), own, conditions="text-only", store=":memory:", baselines=False)
    assert {answer.text for answer in made.store.answers(made.runs[0]).values()} == {"Answer: yes"}
    assert not asks_a_model(own)
    assert asks_a_model(FunctionSystem(lambda ask: "yes"))
