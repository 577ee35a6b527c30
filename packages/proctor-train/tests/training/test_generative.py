"""A tiny judge learns what stands in one word of an answer, and nothing from shuffled ratings."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from proctor.core import InputError
from proctor.judges.dimensions import Case, ClientPool, DimensionJudge, DimensionScores
from proctor.judges.dimensions.case import IMAGES_UNSEEN, TRAINED_ON
from proctor.judges.dimensions.logprob import MANIFEST, generative, read_generative
from proctor.models import Weights
from proctor_train.fine_tuning import LoraSettings
from proctor_train.generative import GenerativePlan, TrainedGenerative, part_encounters, train_generative
from proctor_train.grpo import GrpoSettings
from proctor_train.judge_training import _generative_agreement
from proctor_train.run_folder import NothingLearnedError, RunFolder
from tests.support.dimension_cases import setup
from tests.support.judgements import Judgements
from tests.support.killed_child import killed
from tests.support.tiny_vlm import make_tiny_lm
from tests.support.trained_judge import short_prompts, told_by_a_word

pytestmark = [pytest.mark.training, pytest.mark.usefixtures("one_thread")]
with_the_judge = pytest.mark.xdist_group("training-judge")

SETTINGS = LoraSettings(device="cpu", learning_rate=2e-2, epochs=28, batch=12, evaluate_every=28)
RATED = told_by_a_word(36)
PARTS = part_encounters(RATED, folds=3, fold=1, seed=0)
LEARNED = 0.4
"""The judge agrees better than this (lower end of its interval), judges of shuffled ratings worse (upper end)."""
SHUFFLES = 6


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> GenerativePlan:
    return GenerativePlan(
        make_tiny_lm(tmp_path_factory.mktemp("base"), learns=True),
        SETTINGS,
        short_prompts(tmp_path_factory.mktemp("prompts")),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "judge"


@pytest.fixture(scope="module")
def trained(plan: GenerativePlan, folder: Path) -> TrainedGenerative:
    """Killed between two checkpoints, and gone on with."""
    note = RunFolder.note

    def dies(opened: RunFolder, **told: Any) -> None:
        note(opened, **told)
        if told["step"] == 40:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "note", dies)
        killed(lambda: train_generative(PARTS, plan, folder))
    return train_generative(PARTS, plan, folder)


def judged(plan: GenerativePlan, folder: Path, cases: list[Case], **options: str) -> list[DimensionScores]:
    async def run() -> list[DimensionScores]:
        pool = ClientPool([])
        try:
            judge = opened(pool, plan, folder, **options)
            return await asyncio.gather(*(judge.judge(one) for one in cases))
        finally:
            await pool.aclose()

    return asyncio.run(run())


def opened(pool: ClientPool, plan: GenerativePlan, folder: Path, **options: str) -> DimensionJudge:
    given = setup(pool, Judgements(), {"folder": str(folder), "device": "cpu", **options})
    return generative(replace(given, prompts=plan.prompts))


@with_the_judge
def test_it_agrees_with_people_on_encounters_that_it_has_not_seen(trained: TrainedGenerative) -> None:
    whole = trained.agreement[0]
    assert (whole.language, whole.dimension, whole.encounters, whole.missing) == ("en", "", 12, 0)
    assert (whole.value or 0) > 0.7
    assert (whole.ci_low or 0) > LEARNED


@with_the_judge
def test_the_table_says_what_it_learned_from(trained: TrainedGenerative, plan: GenerativePlan) -> None:
    titles = {
        shuffled: _generative_agreement(trained, replace(plan, shuffled=shuffled)).title for shuffled in (False, True)
    }
    shown = f"Agreement on held-out encounters (fold {plan.fold} of {plan.folds})"
    assert titles == {False: shown, True: "Agreement on held-out encounters (shuffled ratings, a control)"}


@pytest.mark.xdist_group("training-shuffled")  # as long as all others here, and without their judge
def test_shuffled_ratings_teach_nothing(plan: GenerativePlan, tmp_path: Path) -> None:
    """What is learned from one permutation is one order of three words, which agrees with the true one by chance: an
    interval over encounters knows nothing of that. So there are several, with the interval over them (99 %)."""
    values = []
    for seed in range(SHUFFLES):
        settings = SETTINGS.model_copy(update={"seed": seed})
        parts = part_encounters(RATED, folds=3, fold=1, seed=seed)
        control = train_generative(parts, replace(plan, settings=settings, shuffled=True), tmp_path / str(seed))
        whole = control.agreement[0]
        assert whole.value is not None, whole.reason
        values.append(whole.value)
    half = t.ppf(0.995, SHUFFLES - 1) * np.std(values, ddof=1) / math.sqrt(SHUFFLES)
    assert abs(np.mean(values)) <= half, values
    assert np.mean(values) + half < LEARNED, values


@with_the_judge
def test_the_judge_gives_what_was_measured(trained: TrainedGenerative, plan: GenerativePlan, folder: Path) -> None:
    (folder / MANIFEST).write_text(trained.manifest.model_dump_json())
    held = [one.case for one in trained.held]
    said = judged(plan, folder, held)
    for one, measured in zip(said, trained.scores, strict=True):
        assert one.values == pytest.approx(measured, abs=1e-4)
        assert TRAINED_ON not in one.flags
    drawn = judged(plan, folder, held, readout="sampled")
    assert {value for one in drawn for value in one.values.values()} <= {0.0, 0.5, 1.0}
    renamed = replace(PARTS.learn[0].case, id="other/en", encounter="other")
    (learned,) = judged(plan, folder, [replace(renamed, images=("a.png",))])
    assert set(learned.flags) == {TRAINED_ON, IMAGES_UNSEEN}


@with_the_judge
def test_a_second_run_asks_nothing(trained: TrainedGenerative, plan: GenerativePlan, folder: Path) -> None:
    """Judgements are found again by the weights' content."""
    (folder / MANIFEST).write_text(trained.manifest.model_dump_json())
    judgements = Judgements()

    async def run(*, twice: bool) -> DimensionScores:
        pool = ClientPool([])
        given = replace(setup(pool, judgements, {"folder": str(folder), "device": "cpu"}), prompts=plan.prompts)
        judge = generative(given)
        if twice:
            pool.opened[0].use(Weights("gone", "/nowhere"))  # which fails when it is asked
        try:
            return await judge.judge(trained.held[0].case)
        finally:
            await pool.aclose()

    assert asyncio.run(run(twice=False)) == asyncio.run(run(twice=True))


@with_the_judge
@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"base_sha256": "0" * 64}, "other weights, expected the base that it was trained on"),
        ({"adapter_sha256": "0" * 64}, "other weights, expected the adapter that the manifest names"),
        ({"base": "/nowhere"}, "no such folder, expected the base that it was trained on"),
        ({"prompts": {"": "0" * 64}}, "other prompts, expected those that it was trained with"),
    ],
)
def test_what_is_not_the_trained_judge_is_refused(
    trained: TrainedGenerative, plan: GenerativePlan, folder: Path, change: dict[str, object], found: str
) -> None:
    (folder / MANIFEST).write_text(json.dumps(trained.manifest.model_dump(mode="json") | change))
    with pytest.raises(InputError, match=found):
        judged(plan, folder, [])


@with_the_judge
def test_a_training_that_teaches_nothing_ends_with_an_error(plan: GenerativePlan, tmp_path: Path) -> None:
    """A base that can't learn in one step gives no level half of the probability: no score for any answer."""
    settings = LoraSettings(device="cpu", learning_rate=1e-6, epochs=1, batch=12)
    for then in (None, GrpoSettings(steps=3, prompts=2, samples=2)):
        out = tmp_path / f"judge-{then is None}"
        said = r"nothing was learned: no checkpoint gives a score to any of \d+ answers\. No weights were written\."
        with pytest.raises(NothingLearnedError, match=said):
            train_generative(PARTS, replace(plan, settings=settings, then=then), out)
        assert not list(out.rglob("adapter"))
        assert not any("reward" in step for step in RunFolder(out).steps)


@with_the_judge
def test_what_it_has_not_learned_is_refused(trained: TrainedGenerative, plan: GenerativePlan, folder: Path) -> None:
    (folder / MANIFEST).write_text(trained.manifest.model_dump_json())
    assert read_generative(folder).held_out[0]["value"] == trained.agreement[0].value
    with pytest.raises(InputError, match="found the language 'zh', expected one that it has learned: en"):
        judged(plan, folder, [replace(trained.held[0].case, language="zh")])
