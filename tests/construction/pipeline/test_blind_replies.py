"""Replies of blind screening are read by the answer format: an option's letter or text is that option, whatever the order in
which options are shown, and what names none says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from proctor.construction.pipeline import Call, DraftQuestion
from proctor.construction.pipeline.screening import _judgement

OPTIONS = (
    "Begin at the liver edge",
    "Answer the call of the patient",
    "Do not move the probe",
    "Option of a second view",
)
"""Options that begin with the letters B, A, D and O: a reader of first letters takes their texts for other options."""


def draft(options: tuple[str, ...], key: int) -> DraftQuestion:
    return DraftQuestion(
        id="v-q001",
        source="v",
        start=0,
        end=4,
        type="T",
        kind="mcq",
        text="What is done here, and why?",
        options=options,
        key=key,
        groundtruth="It is done as told.",
    )


class Says:
    """A model that knows the right option's text and replies in its own words."""

    model = "m"

    def __init__(self, right: str, reply: Callable[[str, str], str]) -> None:
        self._right, self._reply = right, reply

    async def ask(self, form: Any, item: str, values: dict[str, Any], *, draw: int) -> tuple[Any, Call]:
        letter = next(letter for letter, text in values["options"] if text == self._right)
        call = Call(key=f"{item}-{draw}", model=self.model, prompt_sha256="")
        return form(answer=self._reply(letter, self._right)), call


def rights(options: tuple[str, ...], key: int, reply: Callable[[str, str], str]) -> list[bool | None]:
    """Whether the reply is read as right, in twelve orders of the options."""
    work: Any = SimpleNamespace(project=SimpleNamespace(settings=SimpleNamespace(seed=0)))

    async def judgements() -> list[bool | None]:
        asker: Any = Says(options[key], reply)
        return [(await _judgement(work, draft(options, key), asker, seed, None))[0].right for seed in range(12)]

    return asyncio.run(judgements())


@pytest.mark.parametrize("key", range(4))
@pytest.mark.parametrize(
    "reply",
    [
        lambda letter, text: letter,
        lambda letter, text: f"Answer: {letter}",
        lambda letter, text: f"Option {letter}",
        lambda letter, text: f"({letter.lower()})",
        lambda letter, text: f"{letter}. {text}",
        lambda letter, text: text,
        lambda letter, text: f"{text}.",
        lambda letter, text: f'Best guess: "{text}"',
    ],
)
def test_a_letter_or_a_text_names_its_option(key: int, reply: Callable[[str, str], str]) -> None:
    assert rights(OPTIONS, key, reply) == [True] * 12


@pytest.mark.parametrize(
    "said",
    ["I do not know", "I don't know without the video.", "Cannot be determined.", "No idea", "A or B", "Unanswerable"],
)
def test_what_names_no_option_is_missing_and_never_wrong(said: str) -> None:
    assert rights(OPTIONS, 0, lambda letter, text: said) == [None] * 12


def test_an_option_that_says_so_is_an_option() -> None:
    options = (*OPTIONS[:3], "Cannot be determined")
    assert rights(options, 3, lambda letter, text: text) == [True] * 12
    assert rights(options, 0, lambda letter, text: "Cannot be determined") == [False] * 12
