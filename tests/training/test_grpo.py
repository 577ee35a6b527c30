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
from proctor.models import Query, Weights
from proctor.training.checkpoints import CheckpointEvaluation, read_origin
from proctor.training.grpo import GrpoSettings, RatedPrompt, RewardedTask, reinforce, without_signal
from proctor.training.lora import with_adapter
from proctor.training.rewards import SampledReply
from proctor.training.run_folder import RunFolder
from tests.support.killed_child import killed
from tests.support.ordinal_task import RANGES, OrdinalJudge, read

pytestmark = [pytest.mark.training, pytest.mark.xdist_group("training-peft")]

SHORT = GrpoSettings(steps=4, samples=4, prompts=2, max_tokens=16, learning_rate=1e-3, evaluate_every=2)


def reinforced(
    judge: OrdinalJudge,
    folder: Path,
    settings: GrpoSettings = SHORT,
    evaluate: Callable[[Weights], CheckpointEvaluation] | None = None,
    reads: Callable[[RatedPrompt, str], SampledReply] = read,
) -> tuple[Path, list[dict[str, Any]], dict[str, Any]]:
    """The adapter, the steps and the end of a run."""
    weights = with_adapter(judge.base, judge.adapter, device="cpu", trainable=True)
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


def test_what_was_killed_goes_on_to_the_same_bits(ordinal_judge: OrdinalJudge, tmp_path: Path) -> None:
    def evaluate(_: Weights) -> CheckpointEvaluation:
        return CheckpointEvaluation(None)

    def dies(_: Weights) -> CheckpointEvaluation:
        if (tmp_path / "killed" / "checkpoints" / "checkpoint-4").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return CheckpointEvaluation(None)

    whole = reinforced(ordinal_judge, tmp_path / "whole", evaluate=evaluate)
    killed(lambda: reinforced(ordinal_judge, tmp_path / "killed", evaluate=dies))
    again = reinforced(ordinal_judge, tmp_path / "killed", evaluate=evaluate)
    assert again[1] == whole[1]  # every loss and every reward, bit for bit
    weights = "adapter_model.safetensors"
    assert (again[0] / weights).read_bytes() == (whole[0] / weights).read_bytes()


def test_groups_that_all_earn_the_same_end_the_training(ordinal_judge: OrdinalJudge, tmp_path: Path) -> None:
    settings = GrpoSettings(steps=40, samples=2, prompts=2, max_tokens=2, evaluate_every=40)
    _, steps, end = reinforced(ordinal_judge, tmp_path / "run", settings, reads=lambda *_: SampledReply(None, False))
    assert end["stopped"] == "no signal"
    assert [one["frac_reward_zero_std"] for one in steps if "reward" in one] == [1.0] * 10
    with RunFolder.opened(tmp_path / "run", {**settings.model_dump()}) as opened:
        assert without_signal(opened) == 1.0


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
    with pytest.raises(InputError, match=r"found 2 prompts about 1 encounters, expected 2 or more, about two or more$"):
        reinforced(few, tmp_path / "run")
