"""A judge that is fine-tuned, learns on from rewards, is compared along its paths and exported: the whole way."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

import proctor_train
from proctor.core import InputError
from proctor.judges.dimensions import ClientPool
from proctor.judges.dimensions.logprob import MANIFEST, generative
from proctor_train.fine_tuning import LoraSettings
from proctor_train.generative import GenerativePlan, part_encounters, train_generative
from proctor_train.grpo import GrpoSettings
from tests.support.dimension_cases import setup
from tests.support.judgements import Judgements
from tests.support.ordinal_task import PROMPT, OrdinalJudge, rated_cases, rated_prompts

pytestmark = [pytest.mark.training, pytest.mark.xdist_group("training-peft")]

PARTS = part_encounters(rated_cases(rated_prompts(20)), folds=5, fold=1, seed=0)


@pytest.fixture
def plan(ordinal_judge: OrdinalJudge, tmp_path: Path) -> GenerativePlan:
    """Its base knows the form, as grown-up models do."""
    (prompts := tmp_path / "prompts").mkdir()
    (prompts / "rubric.txt.j2").write_text(PROMPT)
    settings = LoraSettings(device="cpu", learning_rate=1e-2, epochs=3, batch=8)
    then = GrpoSettings(steps=2, samples=4, prompts=2, learning_rate=1e-2, evaluate_every=2)
    return GenerativePlan(ordinal_judge.base, settings, prompts, then=then)


def test_the_whole_way_from_ratings_to_an_export(plan: GenerativePlan, tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "export"
    trained = train_generative(PARTS, plan, run)
    (run / MANIFEST).write_text(trained.manifest.model_dump_json())
    again = train_generative(PARTS, plan, run)
    assert again == trained  # it is done: nothing is learned twice
    assert json.loads((run / "finished.json").read_text())["best"]["step"] in {0, 2}
    rewarded = [one for one in map(json.loads, (run / "steps.jsonl").read_text().splitlines()) if "reward" in one]
    assert [one["step"] for one in rewarded] == [1, 2]
    assert any(one["formed"] > 0 for one in rewarded)
    assert (run / "fine-tuning" / "adapter" / "adapter_model.safetensors").exists()

    checked = proctor_train.check_parity(run, export=out, device="cpu")
    assert checked.faults == ()
    assert checked.exported == out
    assert {one.name for one in out.iterdir()} == {"adapter", "merged", "manifest.json", "parity.json"}
    assert not any("Question 0/" in one.read_text(errors="ignore") for one in out.rglob("*") if one.is_file())
    with pytest.raises(InputError, match="found something there, expected a new folder"):
        proctor_train.check_parity(run, export=out, device="cpu")

    async def judged() -> list[dict[str, float]]:
        pool = ClientPool([])
        given = setup(pool, Judgements(), {"folder": str(out), "device": "cpu"})
        judge = generative(replace(given, prompts=plan.prompts))
        try:
            return [dict((await judge.judge(one.case)).values) for one in trained.held]
        finally:
            await pool.aclose()

    for said, measured in zip(asyncio.run(judged()), trained.scores, strict=True):
        assert said == pytest.approx(measured, abs=1e-4)


def test_rewards_need_an_adapter(plan: GenerativePlan, tmp_path: Path) -> None:
    whole = replace(plan, settings=plan.settings.model_copy(update={"rank": 0}))
    with pytest.raises(InputError, match="rewards: found rank 0, expected an adapter that can learn on"):
        train_generative(PARTS, whole, tmp_path / "run")
