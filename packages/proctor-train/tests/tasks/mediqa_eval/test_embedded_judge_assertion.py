"""What an answer asserts and denies: by hand, on wordings that nothing was made from, and in what the judge learns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from proctor.core import InputError
from proctor.judges.dimensions import ClientPool, JudgeSetup
from proctor.metrics.text import default_encoder
from proctor_train.mediqa_eval.embedded import Recipe, TrainingMaterial, answers, build, read_rated
from proctor_train.mediqa_eval.embedded.answers import Encoders, changed_cases
from proctor_train.mediqa_eval.embedded.assertions import AssertedWords, Part, claims, contradictions
from proctor_train.mediqa_eval.embedded.judge import EmbeddedJudge
from proctor_train.mediqa_eval.embedded.sentences import sentences
from tests.support.judgements import Judgements
from tests.support.rated_answers import hashed, made_up
from tests.support.tiny_encoder import make_tiny_encoder


@pytest.fixture(autouse=True)
def few_changed_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wording is put around two answers: enough to learn from where texts are so alike."""
    monkeypatch.setattr(answers, "_EACH", 2)


EN, ZH = "It is eczema. Use a steroid cream.", "这是湿疹。建议外用激素软膏。"
REFERENCES = {"en": ("Chronic eczema, steroid cream.", "Eczema."), "zh": ("慢性湿疹，外用激素软膏。", "湿疹。")}

HARMLESS = {
    "en": (
        "{} It is not contagious.",
        "{} Avoid scratching, do not worry.",
        "{} I'm sorry that something went wrong.",
        "{} If not better, see a doctor.",
    ),
    "zh": ("{}不要搔抓。", "{}无需担心，避免刺激。", "{}如果没有好转，请就医。"),
}


def said(text: str, language: str = "en", *, denied: bool = False) -> AssertedWords:
    return claims([Part(one, denied) for one in sentences(text)], language)


def contradicted(
    text: str, references: Sequence[str], language: str = "en", *, denied: bool = False
) -> dict[str, float]:
    return contradictions(said(text, language, denied=denied), [said(one, language) for one in references])


@pytest.mark.parametrize(("language", "text"), [("en", EN), ("zh", ZH)])
def test_an_answer_that_is_denied_contradicts_its_references(language: str, text: str) -> None:
    references = REFERENCES[language]
    assert contradicted(text, references, language)["conflict"] == 0.0
    assert contradicted(text, references, language, denied=True)["conflict"] == 1.0
    assert contradicted(text, references, language, denied=True)["contrary"] == 1.0
    for wording in HARMLESS[language]:
        assert contradicted(wording.format(text), references, language)["conflict"] == 0.0, wording
        assert contradicted(wording.format(text), references, language)["contrary"] <= 0.5, wording


def test_what_is_denied_is_what_follows_in_its_clause() -> None:
    found = said("No fever, but eczema; avoid hot water. It isn't psoriasis.")
    assert found.denied == {"fever": 1, "psoriasis": 1}
    assert found.avoided == {"water": 1}
    assert found.asserted == {"eczema": 1}
    assert said("不是癣，是湿疹", "zh").asserted == {"是湿": 1, "湿疹": 1}
    assert said("特别干燥，无菌纱布", "zh").denied == {}
    assert said("Do not use the steroid cream every single evening for weeks.").asserted == {}
    assert said("It is not without danger.").asserted == {"danger": 1}


def test_what_nobody_denies_is_contrary_and_what_is_to_be_avoided_is_not() -> None:
    """Words longer than three letters: "eczema", "contagious"; one of two is denied, and no reference speaks of it."""
    assert contradicted("Eczema, not contagious.", ["Eczema."])["contrary"] == 0.5
    assert contradicted("Eczema, not contagious.", ["Eczema.", "Not contagious."])["contrary"] == 0.0
    assert contradicted("Eczema, avoid scratching.", ["Eczema."])["contrary"] == 0.0
    assert contradicted("Eczema, avoid steroids.", ["Eczema, steroids."])["contrary"] == 0.5


def test_a_reference_that_denies_is_contradicted_by_what_asserts_it() -> None:
    assert contradicted("Use antibiotics.", ["No antibiotics."]) == {
        "conflict": 1.0, "conflicting-words": 1.0, "denied": 0.0, "contrary": 1.0
    }  # fmt: skip
    assert contradicted("", ["No antibiotics."])["conflict"] == 0.0


@pytest.mark.parametrize(
    "text",
    ["not " * 20_000, "it is not true that: " * 5_000, "不" * 50_000, "false. " * 20_000],
    ids=["negators", "heads", "characters", "sentences"],
)
def test_a_long_text_contradicts_its_own_beginning_in_nothing_or_in_part(text: str) -> None:
    """That its patterns take linear time is shown in core/test_pattern_steps.py."""
    assert 0.0 <= contradicted(text, [text[:100]])["conflict"] <= 1.0


def test_changed_answers_stand_among_the_others_as_they_were() -> None:
    cases = [one.case for one in made_up(4, languages=("en",))]
    made, changed, origin, numbers = changed_cases(cases, 0)
    assert len(changed) == len(origin) == len(numbers) == 2 * len(set(numbers))
    for row, source in zip(changed, origin, strict=True):
        own = cases[source]
        others = [one for one in made if one.id == made[row].id and one is not made[row]]
        assert own.candidate in made[row].candidate
        assert sorted(one.candidate for one in others) == sorted(
            one.candidate for k, one in enumerate(cases) if one.id == own.id and k != source
        )


def test_no_wording_of_the_audit_is_learned_from() -> None:
    from proctor.audits.perturbations import wordings
    from proctor_train.mediqa_eval.embedded.answers import _wordings

    for language, known in wordings().items():
        asked = [known.negation, known.retraction, known.boilerplate, known.order]
        for learned in _wordings()[language]:
            assert learned.replace("{text}", "").strip() not in " ".join(asked)


@pytest.mark.training
def test_the_judge_notices_a_denial_in_words_that_it_never_learned() -> None:
    encoders = Encoders(default_encoder(), hashed.tokens)
    rated = made_up(12, languages=("en",))
    known = read_rated(rated, encoders)
    shifts: dict[int, float] = {}
    for contrast in (0, 10):
        recipe = Recipe(folds=3, designs=2, kept=2, contrast=contrast)
        judge = EmbeddedJudge.train(rated, known, recipe, encoders=encoders)
        given = made_up(6, seed=5, languages=("en",))
        new, good = [one.case for one in given], [one.values["overall"] == 1.0 for one in given]
        own = judge.score(new)
        moved = []
        for row, case in enumerate(new):
            if not good[row]:
                continue
            changed = replace(case, candidate=f"It is not true that: {case.candidate}")
            (said, *_) = judge.score([changed, *(one for k, one in enumerate(new) if one.id == case.id and k != row)])
            moved.append(said.values["overall"] - own[row].values["overall"])
        shifts[contrast] = float(np.mean(moved))
    assert shifts[10] < -0.1  # a standard deviation of the answers learned from
    assert shifts[10] < shifts[0] - 0.1


@pytest.mark.training
@pytest.mark.xdist_group("training-encoder")
def test_another_encoder_by_path_is_read_with_and_asked_for_again(tmp_path: Path) -> None:
    rated = made_up(9, languages=("en",))
    folder = make_tiny_encoder(tmp_path / "encoder", [one.case.candidate for one in rated])
    material = TrainingMaterial(encoder=folder)
    judge = EmbeddedJudge.train(
        rated, read_rated(rated, material=material), Recipe(folds=3, designs=2, kept=1), material
    )
    judge.save(tmp_path / "judge")
    assert json.loads((tmp_path / "judge" / "manifest.json").read_text())["encoder"].startswith("sha256:")
    case = made_up(1, seed=3, languages=("en",))[0].case
    options = {"folder": str(tmp_path / "judge"), "encoder": str(folder)}
    loaded = build(JudgeSetup(ClientPool(()), Judgements(), options))
    assert asyncio.run(loaded.judge(case)).values == judge.score([case])[0].values
    with pytest.raises(InputError, match="encoder: found all-MiniLM-L6-v2, expected sha256:"):
        EmbeddedJudge.load(tmp_path / "judge")
    other = make_tiny_encoder(tmp_path / "other", ["eczema"], seed=1)
    with pytest.raises(InputError, match="which it was fitted with"):
        EmbeddedJudge.load(tmp_path / "judge", encoder=other)
    with pytest.raises(InputError, match="no such folder"):
        EmbeddedJudge.load(tmp_path / "judge", encoder=tmp_path / "none")
