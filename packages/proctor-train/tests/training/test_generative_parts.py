"""What a judge is trained on and chosen by, without training one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from pydantic import JsonValue

from proctor.core import InputError
from proctor.judges.dimensions import GenerativeManifest, RatedCase
from proctor.models.queries import Choices, FixedForm, Query
from proctor_train.generative import judge_card, majority, part_encounters
from proctor_train.judge_questions import JudgeQuestion, merit
from tests.support.trained_judge import told_by_a_word

RATED = told_by_a_word(12)
FORM = FixedForm(('{"overall": ', ', "relevance": ', "}"), (("0", "1", "2"), ("0", "1")))


def question(**values: float) -> JudgeQuestion:
    return JudgeQuestion(RatedCase(RATED[0].case, values), Query("", ("?",), Choices(9), FORM))


def test_no_encounter_is_in_two_parts() -> None:
    copied = [*RATED, replace(RATED[0], case=replace(RATED[0].case, id="x/en", encounter="x"))]  # under another name
    for fold in range(1, 5):
        parts = part_encounters(copied, 4, fold, 0)
        sides = [{one.case.query for one in some} for some in (parts.learn, parts.choose, parts.held)]
        assert all(sides)
        assert not sides[0] & sides[1]
        assert not (sides[0] | sides[1]) & sides[2]
        assert len(parts.learn) + len(parts.choose) + len(parts.held) == len(copied)
    held = [one.case.id for fold in range(1, 5) for one in part_encounters(copied, 4, fold, 0).held]
    assert sorted(held) == sorted(one.case.id for one in copied)  # each is held out once


def test_nothing_that_a_control_is_made_from_has_its_true_ratings() -> None:
    parts = part_encounters(RATED, 3, 1, 0)
    control = parts.shuffled(0)
    assert control.held == parts.held
    for given, true in ((control.learn, parts.learn), (control.choose, parts.choose)):
        assert [one.case for one in given] == [one.case for one in true]
        values, own = ([tuple(one.values.items()) for one in some] for some in (given, true))
        assert sorted(values) == sorted(own)
        assert values != own


@pytest.mark.parametrize(("folds", "fold"), [(2, 1), (4, 0), (4, 5)])
def test_folds_that_can_not_be_are_refused(folds: int, fold: int) -> None:
    with pytest.raises(InputError, match=f"found fold {fold} of {folds}, expected 3 folds or more"):
        part_encounters(RATED, folds, fold, 0)


def test_people_who_differ_teach_both_levels() -> None:
    assert question(overall=0.5, relevance=1.0).answers() == ['{"overall": 1, "relevance": 1}']
    assert question(overall=0.25, relevance=1.0).answers() == [
        '{"overall": 0, "relevance": 1}',
        '{"overall": 1, "relevance": 1}',
    ]
    assert [one.cluster for one in question(overall=0.75, relevance=0.5).examples()] == ["e0", "e0"]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"overall": 0.5}, "found no rating of relevance"),
        ({"overall": 1.5, "relevance": 0.0}, "ratings of overall: found 1.5, expected 0 to 1"),
    ],
)
def test_ratings_that_can_not_be_learned_are_refused(values: dict[str, float], found: str) -> None:
    with pytest.raises(InputError, match=found):
        question(**values).answers()


def test_a_checkpoint_is_as_good_as_its_agreement() -> None:
    given = [dict(one.values) for one in RATED]
    perfect = merit(RATED, given)
    assert perfect.value == pytest.approx(1.0)
    half = merit(RATED, [{**one, "relevance": 0.5} for one in given])
    assert half.value == pytest.approx(0.5)  # the same score for all agrees with nobody
    assert merit(RATED, [{"overall": one["overall"]} for one in given]).value is None


def test_what_never_varies_says_nothing_of_a_checkpoint() -> None:
    same = [RatedCase(one.case, {**one.values, "relevance": 1.0}) for one in RATED]
    assert merit(same, [dict(one.values) for one in same]).value == pytest.approx(1.0)


def test_the_commonest_rating_is_that_of_the_training_part() -> None:
    parts = part_encounters(RATED, 3, 1, 0)
    for language, name, value, share in majority(parts):
        counted = Counter(one.values[name] for one in parts.learn)
        assert language == "en"
        assert counted[value] == max(counted.values())
        assert share == sum(one.values[name] == value for one in parts.held) / len(parts.held)


def test_the_card_says_what_the_judge_is() -> None:
    told: dict[str, JsonValue] = {
        "dimension": "",
        "answers": 9,
        "encounters": 3,
        "value": 0.4321,
        "ci_low": 0.1,
        "ci_high": None,
    }
    manifest = GenerativeManifest(
        base="/home/somebody/models/qwen",
        base_sha256="b" * 64,
        template_sha256="c" * 64,
        adapter_sha256="a" * 64,
        pictures=True,
        prompts={},
        dimensions={"en": {"overall": (0.0, 0.5, 1.0)}},
        data_sha256="d" * 64,
        answers=27,
        encounters=9,
        trained_on=("text:1",),
        held_out=({"language": "en", **told},),
        settings={"rank": 16},
        licence="cc-by-4.0",
    )
    card = judge_card(manifest)
    for line in (
        "license: cc-by-4.0",
        "base_model: qwen",
        "- en: overall (0, 0.5, 1)",
        "- rank: 16",
        "27 rated answers of 9 encounters",
        f"SHA-256 of the data: `{manifest.data_sha256}`.",
    ):
        assert line in card
    assert "| en | all, mean | 0.432 |" in card
    assert "somebody" not in card
