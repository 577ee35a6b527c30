"""Stated confidences and the probabilities of options, as they are read from replies."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from proctor.core import CONFIDENCE, Answer, Confidence, Item, read_answer
from proctor.core.formats import (
    BinaryFormat,
    ChoiceFormat,
    CountFormat,
    FreeTextFormat,
    OrderingFormat,
    read_confidence,
    token_confidence,
    without_confidence,
)

THREE = ("liver", "spleen", "aorta")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Answer: B\nConfidence: 85", 0.85),
        ("Answer: B\nConfidence: 85%", 0.85),
        ("Answer: B\n**Confidence:** 70", 0.7),
        ("Answer: B\n**Confidence: 70**", 0.7),
        ("Answer: B. Confidence: 80 out of 100", 0.8),
        ("Answer: B\nConfidence: 85/100", 0.85),
        ("B (confidence: 85%)", 0.85),
        ("Answer: B\nConfidence: 85 (fairly sure)", 0.85),
        ("Answer: B\nConfidence level: 90%.", 0.9),
        ("Answer: B\nConfidence: 0", 0.0),
        ("Answer: B\nConfidence: 100", 1.0),
        ("Answer: B\nConfidence: 1", 0.01),
        ("Answer: B\nConfidence: 0.5%", 0.005),
        ("Antwort: B\nSicherheit: 70 %", 0.7),
        ("Réponse : B\nConfiance : 70 %", 0.7),
        ("Respuesta: B\nConfianza: 70", 0.7),
        ("答案：B\n置信度：70%", 0.7),
        ('{"answer": "B", "confidence": 85}', 0.85),
        ('```json\n{"order": ["B", "A"], "confidence": "85%"}\n```', 0.85),
        ("<think>Confidence: 10</think>Answer: B\nConfidence: 60", 0.6),
        ("Confidence: 20\nAnswer: A\nAnswer: B\nConfidence: 60", 0.6),
        ("Answer: B\nConfidence: 85\u200b", 0.85),
        ("Answer: B\nConfidence: ８５％", 0.85),
        ("Answer: B\nConfidence: 85 in 100", 0.85),
        ("答案：B\n置信度：85分", 0.85),
        ("Answer: B\nConfidence: 85 because both clips are seen", 0.85),
        ('{"answer": "B", "confidence": 85.0}', 0.85),
    ],
)
def test_stated_confidences(text: str, value: float) -> None:
    assert read_confidence(text) == Confidence(source="stated", value=value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Answer: B", "no confidence in the reply"),
        ("Answer: B\nConfidence: high", "no number from 0 to 100: 'high'"),
        ("Answer: B\nConfidence: 150", "not from 0 to 100: '150'"),
        ("Answer: B\nConfidence: 80-90", "several numbers: '80-90'"),
        ("Answer: B\nConfidence: 0.85", "may be of 1 or of 100: '0.85'"),
        ('{"answer": "B", "confidence": 0.85}', "may be of 1 or of 100: '0.85'"),
        ('{"answer": "B", "confidence": null}', "no number from 0 to 100: 'None'"),
        ('{"answer": "B", "confidence": true}', "no number from 0 to 100: 'True'"),
        ('{"answer": "B", "confidence": 1e-05}', "may be of 1 or of 100: '1e-05'"),
        ('{"answer": "B", "confidence": 1000}', "not from 0 to 100: '1000'"),
        ('{"answer": "B", "confidence": -3}', "not from 0 to 100: '-3'"),
        ('{"answer": "B", "confidence": NaN}', "not from 0 to 100: 'nan'"),
        ('{"answer": "B", "confidence": [85]}', "no number from 0 to 100: '[85]'"),
        ("Answer: B\nConfidence: 1000", "no number from 0 to 100: '1000'"),  # not its first three digits
        ("Answer: B\nConfidence: 2e1", "no number from 0 to 100: '2e1'"),
        ("Answer: B\nConfidence: 85 ± 5", "several numbers: '85 ± 5'"),
        ("Answer: B\nConfidence: 4 out of 5", "of another scale than 0 to 100: '4 out of 5'"),
        ("Antwort: B\nSicherheit: 8 von 10", "of another scale than 0 to 100: '8 von 10'"),
        ("Answer: B\nConfidence: 5 stars", "of another scale than 0 to 100: '5 stars'"),
        ("", "no confidence in the reply"),
        ("<think>Confidence: 90</think>Answer: B", "no confidence in the reply"),
    ],
)
def test_what_is_no_confidence_is_missing_with_the_reason(text: str, why: str) -> None:
    assert read_confidence(text) == Confidence(source="stated", missing=why)


@pytest.mark.parametrize("said", ["\U000e0001" * 40, "9" * 400, '"' * 40, "\\" * 40])
@pytest.mark.parametrize("reply", ["Confidence: {}", '{{"confidence": {}}}', '{{"confidence": "{}"}}'])
def test_a_hostile_confidence_is_missing_and_its_reason_short(reply: str, said: str) -> None:
    found = read_confidence(reply.format(said))
    assert found.value is None
    assert 0 < len(found.missing) <= 200


def test_a_confidence_is_a_value_or_a_reason() -> None:
    for fields in ({}, {"value": 0.5, "missing": "none"}, {"value": 1.5}, {"value": float("nan")}):
        with pytest.raises(ValidationError):
            Confidence(source="stated", **fields)


def test_the_number_of_the_confidence_is_no_answer() -> None:
    item = Item(id="q", group="g", question="?", answer=CountFormat())
    asked: dict[str, JsonValue] = {CONFIDENCE: {"source": "stated", "value": 0.85}}
    assert read_answer(item, Answer(item_id="q", text="3\nConfidence: 85", extra=asked)).parsed == 3
    strict = item.model_copy(update={"answer": CountFormat(strict=True)})
    assert read_answer(strict, Answer(item_id="q", text="3\nConfidence: 85", extra=asked)).parsed == 3
    free = item.model_copy(update={"answer": FreeTextFormat()})
    assert read_answer(free, Answer(item_id="q", text="It slides.\nConfidence: 85", extra=asked)).parsed == "It slides."
    assert (
        read_answer(free, Answer(item_id="q", text="It slides.\nConfidence: 85")).parsed == "It slides.\nConfidence: 85"
    )


def test_json_stays_as_it_is() -> None:
    for text in (
        '{"answer":"B","confidence":"85%"}',
        '{"answer": "B", "confidence score": 85}',
        '{\n  "order": ["B", "A"],\n  "confidence": 70\n}',
    ):
        assert without_confidence(text) == text
    assert OrderingFormat(labels=("A", "B")).parse('{"order": ["B", "A"], "confidence": 70}') == ["B", "A"]


def test_an_answer_knows_its_confidence() -> None:
    assert Answer(item_id="q").confidence is None
    assert Answer(item_id="q", extra={CONFIDENCE: {"source": "tokens", "value": 0.5}}).confidence == Confidence(
        source="tokens", value=0.5
    )
    odd = Answer(item_id="q", extra={CONFIDENCE: {"source": "tokens", "value": 7}}).confidence
    assert odd is not None
    assert odd.value is None
    assert odd.missing


def said(*tokens: tuple[str, dict[str, float]]) -> tuple[str, list[tuple[bytes, dict[bytes, float]]]]:
    text = "".join(token for token, _ in tokens)
    return text, [
        (token.encode(), {one.encode(): chance for one, chance in (others or {token: 1.0}).items()})
        for token, others in tokens
    ]


def test_an_only_option_has_no_confidence_of_its_own() -> None:
    text, tokens = said(("Answer", {}), (":", {}), (" A", {" A": 0.6, " B": 0.2}))
    assert token_confidence(text, tokens, ChoiceFormat(), ("liver",)).missing == "there is only one option"


def test_a_probability_that_is_no_number_is_none() -> None:
    text, tokens = said(("Answer", {}), (":", {}), (" B", {" B": float("nan"), " A": 0.2}))
    assert token_confidence(text, tokens, ChoiceFormat(), THREE).missing == "no option has a probability"


def test_the_options_alone_share_the_probability() -> None:
    # 0.6 for B, 0.2 for A (two spellings), 0.1 for what is no option, C not listed: 0.6 / 0.8
    text, tokens = said(("Answer", {}), (":", {}), (" B", {" B": 0.6, " A": 0.15, "A": 0.05, " The": 0.1}))
    assert token_confidence(text, tokens, ChoiceFormat(), THREE).value == pytest.approx(0.75)


def test_the_token_that_decides_is_found_among_others() -> None:
    # The first B stands in a sentence that decides nothing; the second one is the declared answer.
    text, tokens = said(
        ("Option", {}), (" B", {" B": 0.1, " C": 0.9}), (" is bright", {}), (".\n", {}), ("Answer:", {}),
        (" B", {" B": 0.8, " C": 0.2}), (", not", {}), (" C", {" C": 0.5, " A": 0.5}),
    )  # fmt: skip
    assert token_confidence(text, tokens, ChoiceFormat(), THREE).value == pytest.approx(0.8)


def test_yes_and_no() -> None:
    text, tokens = said(("Yes", {"Yes": 0.6, "yes": 0.1, "No": 0.3}), (", it is.", {}))
    assert token_confidence(text, tokens, BinaryFormat()).value == pytest.approx(0.7)


def test_json_has_the_letter_in_a_token_with_quotes() -> None:
    text, tokens = said(('{"answer":', {}), (' "B', {' "B': 0.9, ' "A': 0.1}), ('"}', {}))
    assert token_confidence(text, tokens, ChoiceFormat(), THREE).value == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        ([], "the server gave no token probabilities"),
        ([("Answer: ", {}), ("B", {"B": 0.7})], "the server lists no alternatives"),
        ([("It is the ", {}), ("spleen", {"spleen": 0.9, "liver": 0.1})], "no token names the answer"),
        ([("Perhaps", {"Perhaps": 0.5, "B": 0.5})], "the reply can't be read"),
    ],
)
def test_without_probabilities_of_options_there_is_no_confidence(
    tokens: list[tuple[str, dict[str, float]]], why: str
) -> None:
    text, listed = said(*tokens)
    assert token_confidence(text or "Answer: B", listed, ChoiceFormat(), THREE) == Confidence(
        source="tokens", missing=why
    )


def test_tokens_of_another_text_decide_nothing() -> None:
    _, tokens = said(("Answer: ", {}), ("A", {"A": 0.6, "B": 0.4}))
    assert token_confidence("Answer: B", tokens, ChoiceFormat(), THREE).missing == "the tokens do not make up the reply"
    assert token_confidence("3", [(b"3", {b"3": 0.5, b"4": 0.5})], CountFormat()).missing.startswith("only letters")


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    found = read_confidence(text)
    assert (found.value is None) == bool(found.missing)
    without_confidence(text)
    token_confidence(text, [(text.encode(errors="replace"), {})], ChoiceFormat(), THREE)


@pytest.mark.parametrize(
    "text", [" " * 200_000, "confidence " * 20_000, "(" * 100_000, "confidence: " * 20_000, "\n" * 100_000]
)
def test_long_text_takes_linear_time(text: str) -> None:
    read_confidence(text)
    without_confidence(text)
