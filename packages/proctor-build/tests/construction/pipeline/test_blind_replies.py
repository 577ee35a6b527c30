"""Replies of blind screening are read by the answer format, as in a run: an option's letter or text is that option, whatever the order in
which options are shown, and what names none says nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from proctor.core import Answer, Item, Score, generator
from proctor.core.formats import ChoiceFormat, gives_up, option_letters
from proctor_build.pipeline import Call, DraftQuestion
from proctor_build.pipeline.screening import _judgement
from tests.core.test_replies import FILES, SECOND, corpus, read

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

    async def words(self, item: str, values: dict[str, Any], *, draw: int) -> tuple[str, Call]:
        letter = next(letter for letter, text in values["options"] if text == self._right)
        call = Call(key=f"{item}-{draw}", model=self.model, prompt_sha256="")
        return self._reply(letter, self._right), call


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
        lambda letter, text: json.dumps({"answer": letter}),
        lambda letter, text: f"<think>Perhaps A, perhaps B.</think>{letter}",
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


# -- the corpus of replies


class SaysAlone:
    """A model that says the same to every prompt."""

    model = "m"

    def __init__(self, reply: str) -> None:
        self._reply = reply

    async def words(self, item: str, values: dict[str, Any], *, draw: int) -> tuple[str, Call]:
        return self._reply, Call(key=f"{item}-{draw}", model=self.model, prompt_sha256="")


class Judges:
    """A judge that finds right what it was told is right."""

    metrics = (SimpleNamespace(name="three-level"),)

    def __init__(self, right: str) -> None:
        self._right = right

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        value = 2.0 if answer.text == self._right else 0.0
        return [Score(item_id=item.id, metric=self.metrics[0].name, value=value, scorer="judge")]


CHOICES = [file for file in (*FILES, *SECOND) if corpus(file)[0] == ChoiceFormat()]


@pytest.mark.parametrize("file", CHOICES, ids=lambda file: file.stem)
def test_a_reply_of_the_corpus_is_read_in_screening_as_in_a_run(file: Path) -> None:
    """The options are dealt so that the draw of seed 0 shows them as the corpus has them."""
    form, options, rows = corpus(file)
    work: Any = SimpleNamespace(project=SimpleNamespace(settings=SimpleNamespace(seed=0)))
    order = generator(0, "screen", "v-q001", "0").permutation(len(options))
    dealt = [""] * len(options)
    for index, option in zip(order, options, strict=True):
        dealt[int(index)] = option
    letters = option_letters(len(options))

    async def screened(reply: str, key: int) -> bool | None:
        asker: Any = SaysAlone(reply)
        return (await _judgement(work, draft(tuple(dealt), key), asker, 0, None))[0].right

    assert rows
    for row in rows:
        run = read(form, row["text"], options)
        found = [asyncio.run(screened(row["text"], int(order[letters.index(letter)]))) for letter in letters]
        assert found == ([None] * len(letters) if run is None else [letter == run for letter in letters]), row


def test_a_free_reply_of_the_corpus_is_judged_as_in_a_run() -> None:
    form, _, rows = corpus(next(file for file in FILES if file.stem == "free_text"))
    free = {"kind": "free", "options": (), "key": None, "answer": "It is."}
    asked = DraftQuestion.model_validate(draft(OPTIONS, 0).model_dump() | free)
    judge_model = SimpleNamespace(name="judge")
    project = SimpleNamespace(settings=SimpleNamespace(seed=0, groups={}), clients=lambda _: [judge_model])
    work: Any = SimpleNamespace(project=project)
    judged = 0
    for row in rows:
        run = read(form, row["text"], [])
        asker, judge = cast("Any", SaysAlone(row["text"])), cast("Any", Judges(str(run)))
        ((found, _calls),) = [asyncio.run(_judgement(work, asked, asker, 0, judge))]
        assert found.right is (None if run is None or gives_up(run) else True), row
        judged += found.right is True
    assert judged >= 10
