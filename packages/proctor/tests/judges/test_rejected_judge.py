"""A judge whose server rejects every request ends the pass; one answer that it rejects does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
from pydantic import BaseModel, JsonValue

from proctor.core import (
    ConfigurationError,
    InfrastructureError,
    Judgement,
    NoVerdictError,
    ProctorError,
    SystemFaultError,
    Usage,
)
from proctor.judges.cached_model import CachedModel, as_said
from proctor.models import ModelClient, Reply
from tests.support.virtual_time import run_in_virtual_time


class Verdict(BaseModel):
    """A verdict."""

    right: bool


class Kept:
    """A judgement cache in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Judgement] = {}

    def get(self, key: str) -> Judgement | None:
        return self.kept.get(key)

    def put(self, judgement: Judgement) -> None:
        self.kept[judgement.key] = judgement


class Client:
    """The name and settings of a model."""

    def __init__(self) -> None:
        self.name = "judge"
        self.settings: dict[str, JsonValue] = {}


def rejected(fault: type[ProctorError], kind: str) -> ProctorError:
    error = fault("judge: HTTP 400: bad hair")
    error.rejected = "item" if kind == "item" else "request"
    return error


def judged(act: Callable[[int], bool | ProctorError], count: int = 20, at_once: int = 1) -> list[object]:
    """What comes of each of so many answers; a verdict takes a minute, a rejection 10 ms."""
    judge = CachedModel("judge", cast("ModelClient", Client()), Kept())

    async def one(number: int, gate: asyncio.Semaphore) -> object:
        async def make() -> Reply[Verdict]:
            said = act(number)
            if isinstance(said, ProctorError):
                await asyncio.sleep(0.01)
                raise said
            await asyncio.sleep(60)
            return Reply("", Verdict(right=said), Usage(), "stop", "judge")

        async with gate:
            try:
                verdict, _ = await judge.keep(as_said(Verdict), make, content={"n": number}, item_id=f"q{number}")
            except ProctorError as error:
                return error
        return verdict.right

    async def run() -> list[object]:
        gate = asyncio.Semaphore(at_once)
        waiting: list[Awaitable[object]] = [one(number, gate) for number in range(count)]
        return list(await asyncio.gather(*waiting))

    return run_in_virtual_time(run())


def test_a_server_that_rejects_all_alike_is_a_configuration() -> None:
    said = judged(lambda _: rejected(InfrastructureError, "request"))
    assert [type(one) for one in said[:4]] == [InfrastructureError] * 4
    assert {type(one) for one in said[4:]} == {ConfigurationError}
    assert str(said[4]).startswith("judge: HTTP 400: bad hair (the same for the first 5 items asked, and no answer")


def test_a_verdict_under_way_is_waited_for() -> None:
    said = judged(lambda number: number == 7 or rejected(InfrastructureError, "request"), at_once=8)
    assert [one for one in said if one is True] == [True]
    assert {type(one) for one in said if one is not True} == {InfrastructureError}


@pytest.mark.parametrize("kind", ["item", "request"])
def test_answers_that_are_too_long_have_no_verdict(kind: str) -> None:
    said = judged(lambda number: rejected(SystemFaultError, kind) if number else True, count=9)
    assert said[0] is True
    assert {type(one) for one in said[1:]} == {NoVerdictError}
    assert all(isinstance(one, NoVerdictError) and one.rejected == kind for one in said[1:])


def test_long_answers_alone_never_end_a_pass() -> None:
    said = judged(lambda _: rejected(SystemFaultError, "item"))
    assert {type(one) for one in said} == {NoVerdictError}
