"""Questions to a judge as they are rewarded: targets from ratings, replies read strictly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proctor.core import InputError
from proctor.judges.dimensions import RatedCase
from proctor.models import Choices, FixedForm, Query
from proctor_train import shuffled_ratings
from proctor_train.grpo import SampledReply
from proctor_train.judge_questions import JudgeQuestion, filled_in, parity_items, rewarded_task
from tests.support.trained_judge import told_by_a_word

FORM = FixedForm(('{"overall": ', ', "relevance": ', "}"), (("0", "1", "2"), ("0", "1")))


def question(rated: RatedCase) -> JudgeQuestion:
    return JudgeQuestion(rated, Query("", (rated.case.candidate,), Choices(16), FORM))


RATED = told_by_a_word(2)


def test_ratings_of_each_rater_are_the_target() -> None:
    apart = replace(RATED[0], values={"overall": 0.5, "relevance": 1.0}, each={"overall": (0.0, 1.0)})
    mean = replace(RATED[1], values={"overall": 0.25, "relevance": 0.5})
    task = rewarded_task([question(apart), question(mean)])
    first, second = (one.target for one in task.prompts)
    assert first.ratings == {"en/overall": (0.0, 1.0), "en/relevance": (1.0,)}
    assert second.ratings == {"en/overall": (0.0, 0.5), "en/relevance": (0.0, 1.0)}
    assert first.cluster == second.cluster == "e0"
    assert task.ranges == {"en/overall": (0.0, 1.0), "en/relevance": (0.0, 1.0)}


def test_a_missing_rating_is_an_error() -> None:
    with pytest.raises(InputError, match="no rating of relevance"):
        rewarded_task([question(replace(RATED[0], values={"overall": 1.0}))])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (' {"overall": 1, "relevance": 0}\n', {"en/overall": 0.5, "en/relevance": 0.0}),
        ('{"overall": 2, "relevance": 1}', {"en/overall": 1.0, "en/relevance": 1.0}),
        ('{"overall": 3, "relevance": 1}', None),
        ('{"overall": 1}', None),
        ('{"overall": 1, "relevance": 0} {"overall": 1, "relevance": 0}', None),
        ('So: {"overall": 1, "relevance": 0}', None),
        ("", None),
    ],
)
def test_only_the_form_is_a_reply(text: str, values: dict[str, float] | None) -> None:
    task = rewarded_task([question(RATED[0])])
    assert task.read(task.prompts[0], text) == SampledReply(values, values is not None)
    assert (filled_in(FORM, text) is None) == (values is None)


def test_shuffled_ratings_take_their_raters_along() -> None:
    rated = [replace(one, each={"overall": (one.values["overall"],)}) for one in told_by_a_word(5)]
    dealt = shuffled_ratings(rated, 0)
    assert [one.case for one in dealt] == [one.case for one in rated]
    assert all(one.each["overall"] == (one.values["overall"],) for one in dealt)
    assert [one.each for one in dealt] != [one.each for one in rated]


def test_items_of_the_parity_gate_have_levels_as_shares_of_the_range() -> None:
    (item,) = parity_items([question(RATED[0])])
    assert (item.dimensions, item.levels) == (("overall", "relevance"), ((0.0, 0.5, 1.0), (0.0, 1.0)))
    scores, likeliest = item.expected([{"0": 0.1, "1": 0.2, "2": 0.1}, {"0": 0.3, "1": 0.1}])
    assert scores == pytest.approx({"overall": 0.5, "relevance": 0.25})
    assert likeliest == {"overall": 0.5, "relevance": 0.0}
    assert len(parity_items([question(one) for one in told_by_a_word(30)])) == 50
