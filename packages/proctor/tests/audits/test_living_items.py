"""How guessable one question is beside others: planted cues are found, and where there is none nothing is said."""

from __future__ import annotations

import random

import pytest

from proctor.audits.items import text_cues
from proctor.core import InputError, Item, Reference
from proctor.core.formats import ChoiceFormat

WORDS = [
    "probe",
    "slides",
    "liver",
    "edge",
    "rotate",
    "freeze",
    "clip",
    "stapler",
    "tissue",
    "grasp",
    "cut",
    "retract",
    "vessel",
    "upper",
    "lower",
    "view",
    "plane",
]


def question(number: int, *, long: bool, rng: random.Random) -> Item:
    """Four options of five words; where `long`, the right one has five more."""
    options = [" ".join(rng.choices(WORDS, k=5)) for _ in range(4)]
    key = rng.randrange(4)
    options[key] += (" " + " ".join(rng.choices(WORDS, k=5))) if long else ""
    return Item(
        id=f"q{number}",
        group=f"v{number // 4}",
        question="Which one " + " ".join(rng.choices(WORDS, k=5)) + "?",
        answer=ChoiceFormat(),
        options=tuple(options),
        reference=Reference(answer="ABCD"[key]),
    )


def items(count: int, *, long: bool, seed: int = 1) -> list[Item]:
    rng = random.Random(seed)
    return [question(number, long=long, rng=rng) for number in range(count)]


def test_a_cue_that_works_elsewhere_is_found_in_the_question() -> None:
    *beside, own = items(41, long=True)
    found = text_cues(own, beside)
    assert found.guessable
    first = found.rules[0]
    assert (first.name, first.above_chance, first.others.value) == ("longest-option", True, 1.0)
    assert found.probability is not None
    assert found.probability.value is not None
    assert found.probability.ci_low is not None
    assert found.probability.value > 0.9
    assert found.probability.ci_low > found.chance == 0.25
    assert found.probability.groups == 10


def test_without_the_cue_the_same_question_is_not_guessable() -> None:
    *beside, own = items(41, long=True)
    options = tuple(" ".join(option.split()[:5]) for option in own.options)
    found = text_cues(own.model_copy(update={"options": options}), beside)
    assert all(one.name != "longest-option" or not one.above_chance for one in found.rules)
    assert found.probability is not None
    assert found.probability.value is not None
    assert found.probability.value < 0.9


def test_where_nothing_is_to_be_learned_nothing_is_said() -> None:
    guessed = [text_cues(own, items(40, long=False)).guessable for own in items(5, long=False, seed=7)]
    assert sum(guessed) <= 1


def test_the_order_of_the_others_and_an_earlier_version_do_not_matter() -> None:
    *beside, own = items(21, long=True)
    assert text_cues(own, beside) == text_cues(own, [*reversed(beside), own])


def test_few_others_make_no_classifier() -> None:
    own, *beside = items(9, long=True)
    found = text_cues(own, beside)
    assert found.probability is None
    assert found.beside == 8
    alone = text_cues(own, [])
    assert alone.probability is None
    assert [one.name for one in alone.rules] == ["longest-option"]
    assert alone.rules[0].others.value is None


def test_a_key_that_is_no_option_is_refused() -> None:
    own = items(1, long=False)[0].model_copy(update={"reference": Reference(answer="F")})
    with pytest.raises(InputError):
        text_cues(own, [])
