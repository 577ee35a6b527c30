"""What reinforcement learning adds to a fine-tuned judge, on a task that a tiny model learns in a minute.

A tiny model that knows the form of a reply and nothing of grades is fine-tuned (LoRA), then learns from rewards (GRPO,
eight samples to each prompt): graded and concordant ones, and exact match as published. Agreement is Spearman's correlation
with the mean grades of answers that were not learned from, with its interval over encounters.

A control goes the same way with grades that were dealt out at random. What is learned from one deal is one order of nine
letters, which agrees with the true one by chance: an interval over encounters knows nothing of that. So the control is
dealt several times, and its interval is over the deals.

    python bench/grpo.py [--steps 150]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

import numpy as np
from scipy.stats import t

from proctor.models import Weights
from proctor.stats import Estimate, Resamples
from proctor_train import RunFolder, with_adapter
from proctor_train.fine_tuning import trainable_adapter
from proctor_train.grpo import GrpoSettings, RatedPrompt, RewardedTask, RewardKind, reinforce
from proctor_train.parity import local_scores
from proctor_train.run_folder import read_origin
from tests.support.ordinal_task import RANGES, OrdinalJudge, make_ordinal_judge, parity_items, rated_prompts, read, tune

_ANSWERS = 200
_PART = 15
_CONTROLS = 5


def told(found: Estimate) -> str:
    """With its interval."""
    return f"{found.value:.3f} ({found.ci_low:.3f} to {found.ci_high:.3f})"


def agreement(weights: Weights, prompts: Sequence[RatedPrompt]) -> Estimate:
    """Spearman's correlation with the mean grades."""
    scores = local_scores("memory", weights, parity_items(prompts)).scores
    groups = [one.target.cluster for one in prompts]
    given = [[scores[f"i{k}"]["fit"] for k in range(len(prompts))], [one.target.centre("fit") for one in prompts]]
    return Resamples(groups).correlation("spearman", np.array(given[0]), np.array(given[1]), groups).estimate()


def mean(steps: Sequence[dict[str, Any]], name: str) -> float:
    """Of a figure over steps."""
    return sum(float(one[name]) for one in steps) / len(steps)


def reinforced(judge: OrdinalJudge, folder: Path, reward: RewardKind, steps: int) -> Weights:
    """The judge after GRPO; what it earned is printed."""
    settings = GrpoSettings(
        reward=reward, steps=steps, max_tokens=16, learning_rate=2e-3, kl=0.01, evaluate_every=steps
    )
    weights = trainable_adapter(judge.base, judge.adapter, device="cpu")
    started = time.process_time()
    with RunFolder.opened(folder, settings.model_dump()) as run:
        task = RewardedTask(judge.prompts, read, RANGES)
        adapter = reinforce(weights, task, settings, run, read_origin(judge.adapter))
        noted: list[dict[str, Any]] = [one for one in run.steps if "reward" in one]
        stopped = str((run.finished or {})["stopped"])
    for name in ("reward", "formed", "frac_reward_zero_std"):
        first, last = mean(noted[:_PART], name), mean(noted[-_PART:], name)
        print(f"  {name}: {first:.3f} in the first {_PART} steps, {last:.3f} in the last {_PART}")
    print(
        f"  {len(noted)} steps{', stopped: ' + stopped if stopped else ''}; {time.process_time() - started:.0f} CPU-s"
    )
    return with_adapter(judge.base, adapter, device="cpu")


def main() -> None:
    """Prints the figures."""
    import torch

    parser = argparse.ArgumentParser(description="SFT, then GRPO, on a synthetic ordinal task")
    parser.add_argument("--steps", type=int, default=150)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    unseen = rated_prompts(_ANSWERS, seed=9)
    with tempfile.TemporaryDirectory() as made:
        judge = make_ordinal_judge(Path(made))
        tuned = with_adapter(judge.base, judge.adapter, device="cpu")
        print(f"SFT: agreement {told(agreement(tuned, unseen))}")
        kinds: tuple[RewardKind, ...] = ("graded", "exact")
        for reward in kinds:
            print(f"SFT, then GRPO with {reward} reward")
            found = agreement(reinforced(judge, Path(made) / reward, reward, steps), unseen)
            print(f"  agreement {told(found)}")
        print("the same with grades dealt out at random (control; GRPO with graded reward, a third of the steps)")
        values = []
        for seed in range(_CONTROLS):
            (where := Path(made) / f"control {seed}").mkdir()
            dealt = tune(where, judge.base, rated_prompts(64, seed=seed, shuffled=True), judge.held_out)
            found = agreement(reinforced(dealt, where / "grpo", "graded", steps // 3), unseen)
            print(f"  agreement {told(found)}")
            values.append(float(found.value or 0))
        centre, spread = float(np.mean(values)), float(np.std(values, ddof=1))
        margin = float(t.ppf(0.975, _CONTROLS - 1)) * spread / _CONTROLS**0.5
        print(f"  mean {centre:.3f} ({centre - margin:.3f} to {centre + margin:.3f})")


if __name__ == "__main__":
    main()
