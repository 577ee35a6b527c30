"""Abstentions in the declared form, and replies that decline in other words, in five languages.

`abstentions/replies.jsonl` is what the readers were written with: 120 abstentions in the declared form, 80 refusals in
other words and 60 answers. `abstentions/held_out.jsonl` was written before the reader of other words, by the same hand,
and the reader was not changed for it: 75 refusals and 75 answers with a hedge. All replies of `replies` are answers, too.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from proctor.core import Answer, Item, Reference, Status, read_answer
from proctor.core.formats import (
    ABSTAINED_WORD,
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    Format,
    FreeTextFormat,
    abstains,
    abstention_instruction,
    declines,
    is_abstention,
)
from tests.support.abstention_replies import FORMS, OPTIONS, reading, rows

HERE = Path(__file__).parent
ORDINARY = sorted((HERE / "replies").glob("**/*.jsonl"))
_FORMATS: TypeAdapter[Format] = TypeAdapter(AnswerFormat)


def test_two_hundred_abstentions_are_read_as_two_people_would(record_property: Any) -> None:
    given = rows("replies.jsonl")
    assert Counter(row["says"] for row in given) == {"abstains": 120, "declines": 80, "answer": 60}
    assert {row["language"] for row in given} == {"en", "de", "fr", "es", "zh"}
    wrong = [(row["says"], reading(row), row["text"]) for row in given if reading(row) != row["says"]]
    record_property("error rate", f"abstentions: {len(wrong)} of {len(given)}")
    assert wrong == []


def test_no_answer_among_ordinary_replies_is_an_abstention(record_property: Any) -> None:
    count, taken = 0, []
    for file in ORDINARY:
        head, *replies = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
        form, options = _FORMATS.validate_python(head["format"]), head.get("options", [])
        for row in replies:
            if row["value"] is not None:
                count += 1
                taken += [row["text"]] if abstains(row["text"], form, options) else []
                if not form.any_text and not row.get("unclear"):
                    assert not declines(row["text"], form, options), row["text"]
    record_property("error rate", f"abstentions among {count} ordinary replies: {len(taken)}")
    assert count >= 300
    assert taken == []


def test_held_out_replies_are_read_with_these_error_rates(record_property: Any) -> None:
    """What the reader of other words misses and invents: the figures that the documentation states. No held-out answer is
    an abstention in the declared form."""
    found = Counter((row["says"], reading(row)) for row in rows("held_out.jsonl"))
    missed, invented = found["declines", "answer"], found["answer", "declines"]
    record_property("error rate", f"held-out: {missed} of 75 refusals missed, {invented} of 75 answers taken for one")
    assert found["answer", "abstains"] == found["declines", "abstains"] == 0
    assert (missed, invented) == (4, 2)


def test_the_last_declared_answer_counts() -> None:
    form = ChoiceFormat()
    assert abstains("Answer: B. Actually, answer: UNANSWERABLE", form, OPTIONS)
    assert not abstains("Answer: UNANSWERABLE. Actually, answer: B", form, OPTIONS)
    assert not abstains("Answer: UNANSWERABLE. Wait, no: B", form, OPTIONS)


def test_an_option_or_a_class_of_that_name_is_an_answer() -> None:
    options = ("liver", "Unanswerable")
    item = Item(
        id="q", group="g", question="?", options=options, answer=ChoiceFormat(), reference=Reference(answer="B")
    )
    read = read_answer(item, Answer(item_id="q", text="Answer: Unanswerable"))
    assert (read.status, read.parsed) == (Status.ANSWERED, "B")
    assert not abstains("unanswerable", ClassesFormat(classes=("clip", "unanswerable")))


@pytest.mark.parametrize(
    ("text", "found"),
    [("UNANSWERABLE.", True), ("Answer: UNANSWERABLE", False), ("unanswerable, since it is dark", False)],
)
def test_a_strict_format_takes_the_word_and_nothing_else(text: str, found: bool) -> None:
    assert abstains(text, ChoiceFormat(strict=True), OPTIONS) is found


def test_what_an_item_gets_from_each_reply() -> None:
    item = Item(id="q", group="g", question="?", answer=BinaryFormat())
    read = {
        text: read_answer(item, Answer(item_id="q", text=text))
        for text in ("Answer: UNANSWERABLE", "yes", "I can't tell.")
    }
    assert [one.status for one in read.values()] == [Status.ABSTAINED, Status.ANSWERED, Status.ANSWERED]
    assert [one.parsed for one in read.values()] == [None, True, None]
    assert read["I can't tell."].problem == 'expected yes or no, found "I can\'t tell."'
    late = Answer(item_id="q", text=ABSTAINED_WORD, status=Status.TIMED_OUT)
    assert read_answer(item, late) == late


def test_each_format_asks_for_what_it_reads() -> None:
    for kind, form in FORMS.items():
        for strict in (False, True):
            if strict and "strict" not in type(form).model_fields:
                continue
            one = form.model_copy(update={"strict": True}) if strict else form
            asked = abstention_instruction(one, "allow")
            said = "Answer: UNANSWERABLE" if '"Answer: UNANSWERABLE"' in asked else "UNANSWERABLE"
            assert said in asked
            assert abstains(said, one, OPTIONS if kind == "choice" else ()), (kind, strict)
    assert abstention_instruction(BinaryFormat(), "") == ""
    assert "wrong" in abstention_instruction(BinaryFormat(), "forbid")


def test_words_in_a_spreadsheet() -> None:
    assert all(map(is_abstention, ("UNANSWERABLE", " unbeantwortbar", "Sans  réponse", "sin respuesta", "无法回答")))
    assert not any(map(is_abstention, ("", "unanswered", "unanswerable or B", "no")))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=400), st.sampled_from(sorted(FORMS)))
def test_hostile_text_is_read_without_an_error(text: str, kind: str) -> None:
    form = FORMS[kind]
    assert not (abstains(text, form, OPTIONS) and declines(text, form, OPTIONS))


@pytest.mark.parametrize(
    "text", ["UNANSWERABLE " * 20_000, "can't " * 40_000, "(" * 100_000, "无法" * 50_000, "I can not " * 20_000]
)
def test_long_text_is_bounded(text: str) -> None:
    abstains(text, ChoiceFormat(), OPTIONS)
    declines(text, FreeTextFormat())
