"""The checks of systems: every fault that they are for is found, and every system of ours passes them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

import proctor
from proctor import Answer, InfrastructureError, Item
from proctor.core import UsageError, View
from proctor.models import ModelClient
from proctor.systems import SYSTEMS
from proctor.testing import Check, CheckFailedError, ScriptedModel, check_system, system_checks
from tests.support.kit import finds, passes


class Steady:
    """A system without faults: it looks, and says yes."""

    name = "steady"
    settings: Any = {}  # noqa: RUF012  (what is faulty is declared so)

    def supports(self, item: Item) -> Any:
        return item.answer.kind == "binary"

    async def answer(self, item: Item, view: View) -> Any:
        await view.frames()
        return Answer(item_id=item.id, text="yes")


class Asks(Steady):
    """One that asks its model, and counts what it costs."""

    def __init__(self, models: Sequence[ModelClient]) -> None:
        self.model = models[0]

    async def answer(self, item: Item, view: View) -> Any:
        reply = await self.model.ask([item.question, *await view.frames()])
        return Answer(item_id=item.id, text=reply.text, usage=reply.usage)


def seeded(seed: int = 0) -> Steady:
    made = Steady()
    made.answer = lambda item, view: _said(item, str(random.Random(seed).random()))  # type: ignore[method-assign]
    return made


def optioned(options: Mapping[str, JsonValue]) -> Steady:
    del options
    return Steady()


async def _said(item: Item, text: str) -> Answer:
    return Answer(item_id=item.id, text=text)


class SpaceInName(Steady):
    name = "steady "


class PathInSettings(Steady):
    settings = {"weights": Path("w.bin")}  # noqa: RUF012


class SecretInSettings(Steady):
    settings = {"api_key": "x"}  # noqa: RUF012


class SupportsNothingSaid(Steady):
    def supports(self, item: Item) -> Any:
        return None if item.answer.kind == "count" else True


class Raises(Steady):
    async def answer(self, item: Item, view: View) -> Any:
        raise KeyError("organ")


class SaysText(Steady):
    async def answer(self, item: Item, view: View) -> Any:
        return "yes"


class NotAsync(Steady):
    def answer(self, item: Item, view: View) -> Any:
        return Answer(item_id=item.id, text="yes")


class OtherItem(Steady):
    async def answer(self, item: Item, view: View) -> Any:
        return Answer(item_id="q1", text="yes")


class Counts(Steady):
    def __init__(self) -> None:
        self.count = 0

    def supports(self, item: Item) -> Any:
        return item.answer.kind in {"binary", "count"}

    async def answer(self, item: Item, view: View) -> Any:
        self.count += 1
        return Answer(item_id=item.id, text=str(self.count))


class Unseeded(Steady):
    async def answer(self, item: Item, view: View) -> Any:
        return Answer(item_id=item.id, text=str(random.random()))


class ForgetsUsage(Asks):
    async def answer(self, item: Item, view: View) -> Any:
        return Answer(item_id=item.id, text=(await self.model.ask([item.question])).text)


class SwallowsErrors(Asks):
    async def answer(self, item: Item, view: View) -> Any:
        try:
            return await super().answer(item, view)
        except Exception:  # noqa: BLE001  (the fault)
            return Answer(item_id=item.id, text="no")


class SwallowsTheView(Steady):
    async def answer(self, item: Item, view: View) -> Any:
        try:
            return await super().answer(item, view)
        except OSError:
            return Answer(item_id=item.id, text="no")


class NeverStops(Asks):
    async def answer(self, item: Item, view: View) -> Any:
        try:
            return await super().answer(item, view)
        except asyncio.CancelledError:
            return Answer(item_id=item.id, text="no")


FAULTS: list[tuple[Any, str, str]] = [
    (SpaceInName, "name_is_a_text", "found 'steady ', expected a text without space at its ends"),
    (PathInSettings, "settings_are_json", "settings['weights'] is PosixPath, expected a text, a number"),
    (SecretInSettings, "settings_are_json", "found 'api_key', expected no secret"),
    (seeded, "settings_say_the_seed", "found other answers with another seed, expected the seed in `settings`"),
    (optioned, "settings_say_the_options", "found the same with and without 'depth', expected the option in them"),
    (SupportsNothingSaid, "supports_says_yes_or_no", "'example-count': `supports` returned NoneType"),
    (Raises, "it_answers_what_it_supports", "video: it raised KeyError: 'organ', expected an answer or a RefusalError"),
    (SaysText, "it_answers_what_it_supports", "`answer` returned str, expected an Answer"),
    (NotAsync, "it_answers_what_it_supports", "found a plain function `answer`, expected `async def answer`"),
    (OtherItem, "it_answers_what_it_supports", "found an answer to 'q1', expected item_id=item.id"),
    (Counts, "it_answers_alike_in_any_order", "found answered '2' when asked in reverse, expected answered '1'"),
    (Unseeded, "it_answers_alike_when_made_again", "draw from a seed"),
    (ForgetsUsage, "usage_is_that_of_its_calls", "found a usage of 0 requests, expected 1"),
    (SwallowsErrors, "infrastructure_errors_pass", "found the answer 'no', expected the InfrastructureError"),
    (SwallowsTheView, "errors_of_the_view_pass", "found the answer 'no', expected the OSError of its view"),
    (NeverStops, "it_can_be_stopped", "found the answer 'no' when it was cancelled"),
]


def named(system: Any, name: str) -> Check:
    (check,) = [check for check in system_checks(system, options={"depth": 2}) if check.name == name]
    return check


@pytest.mark.parametrize(("system", "name", "told"), FAULTS, ids=lambda one: getattr(one, "__name__", None))
def test_a_fault_is_found_by_its_check(system: Any, name: str, told: str) -> None:
    finds(named(system, name), told)


@pytest.mark.parametrize("system", [Steady, Asks], ids=lambda one: one.__name__)
def test_a_system_without_faults_passes(system: Any) -> None:
    report = check_system(system)
    assert {f"system {system.name}: it_answers_what_it_supports"} <= set(report.passed)
    assert set(report.skipped) <= {str(check) for check in system_checks(system)}


def test_functions_pass_as_they_are_run() -> None:
    @proctor.system(formats=["binary"])
    async def described(question: str, frames: Any, ask: Any) -> str:
        seen = await ask("Describe it.", *frames)
        return str(await ask(f"{seen}\n{question}"))

    def says_yes(question: str) -> str:
        return "yes" if question else "no"

    assert "system described: usage_is_that_of_its_calls" in check_system(described).passed
    assert "system says_yes: it_answers_what_it_supports" in check_system(says_yes).passed


def test_every_fault_is_told_at_once() -> None:
    class Several(SpaceInName):
        settings = {"api_key": "x"}  # noqa: RUF012

    with pytest.raises(CheckFailedError) as failed:
        check_system(Several())
    assert len(failed.value.faults) == 2
    assert str(failed.value) == f"{failed.value.faults[0]} (and 1 more)"


def test_a_fault_may_be_expected_with_its_reason() -> None:
    reason = "our lab's names end so"
    report = check_system(SpaceInName, expected_failures={"name_is_a_text": reason})
    assert report.skipped["system steady : name_is_a_text"].endswith(f"expected to fail: {reason}")
    with pytest.raises(CheckFailedError, match="found no fault, expected one: it was mended"):
        check_system(Steady, expected_failures={"name_is_a_text": "it was mended"})
    with pytest.raises(UsageError, match="expected_failures: found 'name', expected one of errors_of_the_view_pass"):
        check_system(Steady, expected_failures={"name": "no such check"})


def test_an_error_of_the_infrastructure_may_be_any() -> None:
    model = ScriptedModel(lambda _: InfrastructureError("down"))
    with pytest.raises(InfrastructureError, match="down"):
        asyncio.run(model.ask(["?"]))


GIVEN: Mapping[str, Mapping[str, Any]] = {
    "consensus": {"options": {"samples": 2}},
    "seriation-directed": {"options": {"start": "plainer"}},
}
"""What some of ours can't be made without."""

OURS = [check for name in SYSTEMS.names() for check in system_checks(name, **GIVEN.get(name, {}))]


@pytest.mark.parametrize("check", OURS, ids=str)
def test_ours_pass(check: Check) -> None:
    passes(check, "it takes no seed", "it asks no model", "no options= were given", "it can't be made without them")
