"""What local weights are asked in training is what they are asked when they judge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.core import ConfigurationError
from proctor.judges.dimensions import ClientPool, DimensionScores
from proctor.judges.dimensions.case import IMAGES_UNSEEN
from proctor.judges.dimensions.factories import logprob, rating
from proctor.judges.dimensions.logprob import GenerativeJudge, GenerativeManifest, generative_client, rubric_prompts
from proctor.models import ModelSpec, Query, Weights
from proctor.models.queries import GeneratedText
from proctor_train.judge_questions import judge_questions
from tests.support.dimension_cases import case, picture, setup
from tests.support.judgements import Judgements
from tests.support.tiny_vlm import make_tiny_lm
from tests.support.trained_judge import told_by_a_word

pytestmark = pytest.mark.xdist_group("weights")


class Recorded(Weights):
    """Weights that keep what they are asked, and are sure of the first option at each position."""

    def __init__(self) -> None:
        super().__init__("recorded", "recorded")
        self.asked: list[Query] = []

    def load(self, *, empty: bool = False) -> None:
        del empty

    def generate(self, queries: Sequence[Query], given_up: object) -> list[GeneratedText]:
        del given_up
        self.asked += queries
        found = []
        for one in queries:
            assert one.form is not None
            first = [options[0] for options in one.form.options]
            chances = tuple({option: float(option == options[0]) for option in options} for options in one.form.options)
            found.append(GeneratedText(one.form.filled(first), 1, 1, False, chances))
        return found


@pytest.mark.parametrize("sees", [True, False])
def test_training_asks_what_judging_asks(sees: bool, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    picture(tmp_path)
    prompts = setup(ClientPool([]), Judgements()).prompts
    rated = [replace(one, case=case(images=("rash.png",), image_root=tmp_path)) for one in told_by_a_word(1)[:1]]
    (question,) = judge_questions(tmp_path, rated, prompts, sees)
    manifest = GenerativeManifest(
        base=str(tmp_path),
        base_sha256="0" * 64,
        template_sha256="0" * 64,
        adapter_sha256="0" * 64,
        pictures=sees,
        prompts=rubric_prompts(prompts),
        dimensions={"en": {one.name: one.levels for one in rated[0].case.dimensions}},
        data_sha256="0" * 64,
        answers=1,
        encounters=1,
        trained_on=(),
    )
    weights = Recorded()

    async def judged() -> DimensionScores:
        pool = ClientPool([])
        client = pool.client(generative_client(str(tmp_path)))
        client.use(weights)
        try:
            return await GenerativeJudge(client, Judgements(), manifest, prompts=prompts).judge(rated[0].case)
        finally:
            await pool.aclose()

    said = asyncio.run(judged())
    assert weights.asked == [question.query]
    assert len(question.query.pictures) == sees
    assert ("which can't be shown" in str(question.query.parts[-1])) == (not sees)
    assert (IMAGES_UNSEEN in said.flags) == (not sees)
    assert set(said.values.values()) == {0.0}


def test_zero_shot_weights_give_the_probabilities_of_levels(tmp_path: Path) -> None:
    """Random weights spread over all letters: no level is likely, so that there is no score."""
    base = make_tiny_lm(tmp_path)

    async def judged() -> DimensionScores:
        pool = ClientPool([ModelSpec(name=f"transformers:{base}")])
        try:
            given = replace(setup(pool, Judgements()), prompts=None)
            return await logprob(given).judge(told_by_a_word(1)[0].case)
        finally:
            await pool.aclose()

    said = asyncio.run(judged())
    assert said.values == {}
    assert all(reason.startswith("only 0.0") for reason in said.missing.values())


def test_a_form_that_can_not_be_filled_in_is_refused(tmp_path: Path) -> None:
    """Free numbers have no tokens of their own."""
    base = make_tiny_lm(tmp_path)

    async def judged() -> DimensionScores:
        pool = ClientPool([ModelSpec(name=f"transformers:{base}", settings={"fill_form": True})])
        try:
            given = replace(setup(pool, Judgements()), prompts=None)
            return await rating(given).judge(told_by_a_word(1)[0].case)
        finally:
            await pool.aclose()

    with pytest.raises(ConfigurationError, match=r"fill_form: 'reason' is not a whole number of 0 to 9"):
        asyncio.run(judged())
