"""What the embedded judge leaves out of an answer, and what it takes for denied: by hand, and in wordings that no bank
has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from proctor.core import read_yaml
from proctor.judges.dimensions import Case
from proctor.metrics.text import default_encoder
from proctor_train.mediqa_eval.embedded import Recipe, read_rated
from proctor_train.mediqa_eval.embedded.answers import Encoders, _wordings
from proctor_train.mediqa_eval.embedded.judge import EmbeddedJudge
from proctor_train.mediqa_eval.embedded.measures import TextVectors
from proctor_train.mediqa_eval.embedded.sentences import Core, _bank, cores, sentence_kinds
from tests.support.paths import ROOT
from tests.support.rated_answers import hashed, made_up

UNSEEN = read_yaml(ROOT / "tests" / "support" / "unseen_wordings.yaml")
ANSWERS = {
    "en": (
        "Likely contact dermatitis. Apply a mild steroid cream twice a day and avoid the new soap.",
        "The cut is shallow and not infected.  Clean it with water; cover it with gauze.",
    ),
    "zh": ("考虑接触性皮炎。外用弱效激素软膏，避免使用新肥皂。", "伤口较浅，没有感染。用清水清洗后用纱布覆盖。"),
}


@cache
def vectors() -> TextVectors:
    return TextVectors(default_encoder())


def read(texts: Sequence[str], language: str) -> list[Core]:
    return cores(texts, sentence_kinds(language, default_encoder()), vectors().rows)


def wordings(kind: str, language: str) -> list[str]:
    return [one for part in UNSEEN.values() for one in part[language][kind]]


def around(language: str, kind: str) -> list[tuple[str, str, Core]]:
    """Each unseen wording, an answer, and the core of the answer in the wording."""
    given = [(wording, answer) for wording in wordings(kind, language) for answer in ANSWERS[language]]
    read_ = read([wording.replace("{text}", answer) for wording, answer in given], language)
    return [(wording, answer, core) for (wording, answer), core in zip(given, read_, strict=True)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_answer_that_says_something_is_its_own_core(language: str) -> None:
    for answer, core in zip(ANSWERS[language], read(ANSWERS[language], language), strict=True):
        assert core.text == answer
        assert not any(part.denied for part in core.parts)


def test_what_says_nothing_is_left_out_and_a_verdict_turns_what_it_is_about() -> None:
    greeted, before, after, head, between = read(
        [
            "Hello, thanks for your question. It is a burn.\nCool it.  I hope this helps!",
            "The following is wrong. It is a burn. Cool it.",
            "It is a burn. Cool it. None of this is true.",
            "This is false: it is a burn. Cool it.",
            "It is a burn. That is wrong. It is eczema.",
        ],
        "en",
    )
    assert greeted.text == "It is a burn.\nCool it."
    assert [part.denied for part in greeted.parts] == [False, False]
    for core in (before, after):
        assert core.text == "It is a burn. Cool it."
        assert [part.denied for part in core.parts] == [True, True]
    assert [(part.text, part.denied) for part in head.parts] == [("it is a burn.", True), ("Cool it.", True)]
    assert [(part.text, part.denied) for part in between.parts] == [("It is a burn.", True), ("It is eczema.", False)]


def test_a_second_verdict_confirms_the_first() -> None:
    once, twice = read(["It is a burn. That is wrong.", "It is a burn. That is wrong. This is false."], "en")
    assert once == twice


def test_an_answer_that_only_says_ask_a_doctor_keeps_one_sentence() -> None:
    asks = "Please consult a qualified healthcare professional."
    alone, polite, empty = read([asks, f"Thank you for your question. {asks} Best wishes.", ""], "en")
    assert alone.text == asks
    assert len(polite.parts) == 1
    assert empty == Core("", ())


def test_no_unseen_wording_is_in_a_bank_or_in_training() -> None:
    for language, bank in _bank().items():
        learned = {one.lower() for said in bank.values() for one in said}
        learned |= {one.replace("{text}", "").strip().lower() for one in _wordings()[language]}
        for kind in ("padded", "denied"):
            for wording in wordings(kind, language):
                assert not learned & {one.strip().lower() for one in wording.split("{text}")}, wording


@pytest.mark.parametrize(("language", "least"), [("en", 0.9), ("zh", 0.85)])
def test_boilerplate_in_unseen_wordings_is_left_out(language: str, least: float) -> None:
    """The core of the padded answer is that of the answer, to the letter."""
    assert np.mean([core.text == answer for _, answer, core in around(language, "padded")]) >= least


@pytest.mark.parametrize(("language", "least"), [("en", 0.9), ("zh", 0.75)])
def test_denials_in_unseen_wordings_are_recognised(language: str, least: float) -> None:
    """Every sentence of the answer is taken for denied, and nothing else is left."""
    found = [
        all(part.denied for part in core.parts) and len(core.text) <= len(answer) + 1
        for _, answer, core in around(language, "denied")
    ]
    assert np.mean(found) >= least


@pytest.mark.training
@pytest.mark.parametrize(("language", "cost"), [("en", 1.0), ("zh", 0.5)])
def test_unseen_boilerplate_moves_no_score_and_an_unseen_denial_costs(language: str, cost: float) -> None:
    """On few made-up answers, in standard deviations of the scores; of answers that clinicians rated see the documentation."""
    encoders = Encoders(default_encoder(), hashed.tokens)
    rated = made_up(9, languages=(language,))
    recipe = Recipe(folds=3, designs=2, kept=2)
    judge = EmbeddedJudge.train(rated, read_rated(rated, encoders), recipe, encoders=encoders)
    given = made_up(6, seed=5, languages=(language,))
    spread = scored(judge, [one.case for one in given]).std()
    cases = [replace(one.case, id=f"{k}") for k, one in enumerate(given) if one.values["overall"] == 1.0]
    own = scored(judge, cases)
    for kind, low, high in (("padded", -0.1, 0.1), ("denied", -np.inf, -cost)):
        asked = [
            (row, replace(cases[row], id=f"{number}", candidate=wording.replace("{text}", cases[row].candidate)))
            for number, wording in enumerate(wordings(kind, language))
            for row in [number % len(cases)]
        ]
        moved = scored(judge, [case for _, case in asked]) - own[[row for row, _ in asked]]
        assert low <= float(moved.mean() / spread) <= high, kind


def scored(judge: EmbeddedJudge, cases: list[Case]) -> np.ndarray:
    return np.array([one.values["overall"] for one in judge.score(cases)])
