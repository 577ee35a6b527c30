"""Reinforcement learning of a tiny judge: it earns more, goes on after a kill to the same bits, and stops where it can
learn nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.core import InputError
from proctor.models import Choices, Query, Weights
from proctor_train.fine_tuning import ChatExample, LoraSettings, fine_tune, trainable_adapter
from proctor_train.grpo import GrpoSettings, RatedPrompt, RewardedTask, SampledReply, Target, reinforce, without_signal
from proctor_train.run_folder import CheckpointEvaluation, NothingLearnedError, RunFolder, read_origin
from tests.support.killed_child import killed
from tests.support.ordinal_task import RANGES, OrdinalJudge, read
from tests.support.tiny_vlm import jpeg, make_tiny_vlm

pytestmark = [pytest.mark.training, pytest.mark.xdist_group("training-peft")]

SHORT = GrpoSettings(steps=4, samples=3, prompts=2, max_tokens=16, learning_rate=1e-3, evaluate_every=2)


def reinforced(
    judge: OrdinalJudge,
    folder: Path,
    settings: GrpoSettings = SHORT,
    evaluate: Callable[[Weights], CheckpointEvaluation] | None = None,
    reads: Callable[[RatedPrompt, str], SampledReply] = read,
) -> tuple[Path, list[dict[str, Any]], dict[str, Any]]:
    """The adapter, the steps and the end of a run."""
    weights = trainable_adapter(judge.base, judge.adapter, device="cpu")
    task = RewardedTask(judge.prompts, reads, RANGES)
    with RunFolder.opened(folder, {**settings.model_dump()}) as opened:
        out = reinforce(weights, task, settings, opened, read_origin(judge.adapter), evaluate)
        return out, list(opened.steps), dict(opened.finished or {})


def mean(steps: list[dict[str, Any]], name: str) -> float:
    return sum(float(one[name]) for one in steps) / len(steps)


def test_a_judge_earns_more_and_keeps_the_form(ordinal_judge: OrdinalJudge, tmp_path: Path) -> None:
    settings = GrpoSettings(steps=30, max_tokens=16, learning_rate=3e-3, kl=0.02, evaluate_every=30)
    out, steps, end = reinforced(ordinal_judge, tmp_path / "run", settings)
    earned = [one for one in steps if "reward" in one]
    first, last = earned[:6], earned[-6:]
    assert mean(last, "reward") > mean(first, "reward") + 0.03
    assert mean(last, "formed") > 0.9
    assert end["stopped"] == ""
    assert all(0 <= one["frac_reward_zero_std"] < 0.8 for one in earned)
    assert read_origin(out)["base_sha256"] == read_origin(ordinal_judge.adapter)["base_sha256"]
    assert (out / "adapter_model.safetensors").read_bytes() != (
        ordinal_judge.adapter / "adapter_model.safetensors"
    ).read_bytes()


@pytest.mark.parametrize("at", [2, 4])
def test_what_was_killed_goes_on_to_the_same_bits(ordinal_judge: OrdinalJudge, tmp_path: Path, at: int) -> None:
    def evaluate(_: Weights) -> CheckpointEvaluation:
        return CheckpointEvaluation(None)

    def dies(_: Weights) -> CheckpointEvaluation:
        if (tmp_path / "killed" / "checkpoints" / f"checkpoint-{at}").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return CheckpointEvaluation(None)

    whole = reinforced(ordinal_judge, tmp_path / "whole", evaluate=evaluate)
    killed(lambda: reinforced(ordinal_judge, tmp_path / "killed", evaluate=dies))
    again = reinforced(ordinal_judge, tmp_path / "killed", evaluate=evaluate)
    assert again[1] == whole[1]  # every loss and every reward, bit for bit
    weights = "adapter_model.safetensors"
    assert (again[0] / weights).read_bytes() == (whole[0] / weights).read_bytes()


@pytest.mark.parametrize(("values", "best"), [((0.5, 0.4, 0.5), 0), ((0.5, 0.4, 0.6), 4)])
def test_a_judge_that_rewards_do_not_improve_stays_as_it_was(
    ordinal_judge: OrdinalJudge, tmp_path: Path, values: tuple[float, ...], best: int
) -> None:
    left = iter(values)
    out, steps, end = reinforced(ordinal_judge, tmp_path / "run", evaluate=lambda _: CheckpointEvaluation(next(left)))
    assert [one["evaluation"] for one in steps if "evaluation" in one] == list(values)
    assert end["best"]["step"] == best
    weights = "adapter_model.safetensors"
    same = (out / weights).read_bytes() == (ordinal_judge.adapter / weights).read_bytes()
    assert same == (best == 0)


def test_groups_that_all_earn_the_same_end_the_training(ordinal_judge: OrdinalJudge, tmp_path: Path) -> None:
    settings = GrpoSettings(steps=40, samples=2, prompts=2, max_tokens=16, evaluate_every=40)
    _, steps, end = reinforced(
        ordinal_judge,
        tmp_path / "run",
        settings,
        reads=lambda *_: SampledReply({name: low for name, (low, _) in RANGES.items()}, True),
    )
    assert end["stopped"] == "no signal"
    assert [one["frac_reward_zero_std"] for one in steps if "reward" in one] == [1.0] * 10
    with RunFolder.opened(tmp_path / "run", {**settings.model_dump()}) as opened:
        assert without_signal(opened) == 1.0


def test_replies_that_never_have_the_form_end_the_training_with_an_error(
    ordinal_judge: OrdinalJudge, tmp_path: Path
) -> None:
    """All rewards are 0, so nothing can be learned; the run went on for all its steps and ended as if it had."""
    settings = SHORT.model_copy(update={"steps": 9})
    said = "no reply of the first 3 steps had the form of a rating"
    for _ in range(2):  # the same command says so again
        with pytest.raises(NothingLearnedError, match=said):
            reinforced(ordinal_judge, tmp_path / "run", settings, reads=lambda _, __: SampledReply(None, False))
    steps = RunFolder(tmp_path / "run").steps
    assert [step["formed"] for step in steps if "formed" in step] == [0.0, 0.0, 0.0]
    assert not (tmp_path / "run" / "adapter").exists()


def test_a_policy_that_gives_no_scores_is_not_reinforced(ordinal_judge: OrdinalJudge, tmp_path: Path) -> None:
    def none(_: Weights) -> CheckpointEvaluation:
        return CheckpointEvaluation(None, unusable="no checkpoint gives a score to any of 5 answers")

    with pytest.raises(NothingLearnedError, match="was not started: no checkpoint gives a score to any of 5 answers"):
        reinforced(ordinal_judge, tmp_path / "run", evaluate=none)
    assert not any("reward" in step for step in RunFolder(tmp_path / "run").steps)


def test_prompts_of_other_tokens_than_the_judge_is_shown_are_refused(
    ordinal_judge: OrdinalJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Weights.messages
    monkeypatch.setattr(
        Weights, "messages", lambda self, query: shown(self, Query("Be kind.", query.parts, query.choices))
    )
    with pytest.raises(InputError, match=r"^GRPO: found prompts of other tokens \(\d+, used: \d+\)$"):
        reinforced(ordinal_judge, tmp_path / "run")


def test_one_encounter_alone_is_refused(ordinal_judge: OrdinalJudge, tmp_path: Path) -> None:
    few = OrdinalJudge(ordinal_judge.base, ordinal_judge.adapter, ordinal_judge.prompts[:2], ())
    with pytest.raises(InputError, match=r"found 2 prompts about 1 encounter, expected 2 or more, about two or more$"):
        reinforced(few, tmp_path / "run")


def test_prompts_with_pictures_are_rewarded_too(tmp_path: Path) -> None:
    base = make_tiny_vlm(tmp_path / "base")
    prompts = [
        RatedPrompt(Query("", (jpeg(k), "Fit?"), Choices(4)), Target(f"e{k}", {"fit": (k / 3,)})) for k in range(4)
    ]
    learned = [ChatExample(one.query, "1", one.target.cluster) for one in prompts]
    with RunFolder.opened(tmp_path / "tuned", {"of": "pictures"}) as run:
        adapter = fine_tune(base, learned, LoraSettings(device="cpu", epochs=1, learning_rate=1e-2), run)
    judge = OrdinalJudge(base, adapter, tuple(prompts), ())
    settings = GrpoSettings(steps=1, samples=2, prompts=2, max_tokens=3, evaluate_every=1, learning_rate=1e-2)
    out, steps, _ = reinforced(judge, tmp_path / "run", settings)
    assert [one["step"] for one in steps] == [1, 1]
    assert (out / "adapter_model.safetensors").exists()
