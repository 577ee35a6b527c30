"""Reinforcement learning of a fine-tuned judge (GRPO, Shao et al. 2024), and its rewards for ordinal ratings.

For each prompt several replies are sampled, and those with more reward than their group's mean become likelier. The reward
depends on people's ratings alone:

- `exact` is MedAware's (Hao and Liu 2026, section 6.3 of the overview): exact match with the ratings, and a small bonus for
  the form. With three levels most replies of a group earn the same, and such a group teaches nothing.
- `graded` rewards distance and order, so that near misses differ:

    r = 0.5 · (1 − d/range) + 0.4 · concordance with answers of other encounters + 0.1 · valid form

The level that a reply states is rewarded, not the level expected under the tokens' probabilities: in a fixed form nothing
that differs between two replies to a prompt stands before the level, so all of them would earn the same.

When nearly all groups teach nothing, training stops. This is the only module that imports TRL's `GRPOTrainer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from proctor.core import FrozenModel, InputError, count_of
from proctor.models import Query, Weights
from proctor.stats import Floats
from proctor_train.run_folder import Checkpoints, Evaluate, NothingLearnedError, RunFolder, quiet

RewardKind = Literal["graded", "exact"]

_GRADED, _CONCORDANT, _FORM = 0.5, 0.4, 0.1
_SAME = 1e-9  # numbers that are closer count as equal


@dataclass(frozen=True)
class Target:
    """People's ratings of one answer: one or more for each dimension, within its range.

    Disagreement of raters widens the target: every value between their lowest and highest rating has distance 0. The
    mean is used for comparisons with other answers. `cluster` is the encounter.

    >>> target = Target("e1", {"overall": (0.0, 0.5)})
    >>> target.distance("overall", 0.5), target.distance("overall", 1.0), target.centre("overall")
    (0.0, 0.5, 0.25)
    """

    cluster: str
    ratings: Mapping[str, tuple[float, ...]]

    def centre(self, dimension: str) -> float:
        """The mean rating."""
        given = self.ratings[dimension]
        return sum(given) / len(given)

    def distance(self, dimension: str, value: float) -> float:
        """The distance of a value from the range of the ratings."""
        given = self.ratings[dimension]
        return max(min(given) - value, value - max(given), 0.0)

    def share(self, dimension: str, value: float) -> float:
        """The share of raters who gave this value."""
        given = self.ratings[dimension]
        return sum(abs(one - value) < _SAME for one in given) / len(given)


@dataclass(frozen=True)
class SampledReply:
    """A sampled reply: a value for each dimension, or None if it does not have the form that was asked for. `formed` says
    whether its form is valid in every respect, which is never so for None."""

    values: Mapping[str, float] | None
    formed: bool

    def __post_init__(self) -> None:
        if self.values is None and self.formed:
            raise ValueError("a reply without values has no valid form")


def rewards(
    kind: RewardKind,
    replies: Sequence[SampledReply],
    targets: Sequence[Target],
    ranges: Mapping[str, tuple[float, float]],
) -> list[float]:
    """The reward of each reply of a batch, with equal weight for all dimensions of its target; `ranges` are the lowest and
    highest level by dimension.

    `graded` is between 0 and 1. Its concordance is a mean over pairs with the replies to other encounters on the same
    dimension: 1 if both signs agree (including ties with ties), 0.5 if only one side ties, 0 if they differ; without
    pairs it is 0.5. `exact` is the share of raters who gave this value, plus 0.1 for the form. A reply without values
    earns 0.

    Raises `InputError` for a reply without a dimension of its target, and for a value out of range.

    >>> targets = [Target("e1", {"overall": (1.0,)}), Target("e2", {"overall": (0.0,)})]
    >>> said = [SampledReply({"overall": 0.5}, True), SampledReply({"overall": 0.0}, True)]
    >>> [round(one, 3) for one in rewards("graded", said, targets, {"overall": (0.0, 1.0)})]
    [0.75, 1.0]
    >>> rewards("exact", said, targets, {"overall": (0.0, 1.0)})
    [0.1, 1.1]
    """
    for row, (said, target) in enumerate(zip(replies, targets, strict=True)):
        _refuse_odd(row, said, target, ranges)
    orders = _concordance(replies, targets) if kind == "graded" else np.zeros(len(replies))
    found = []
    for said, target, order in zip(replies, targets, orders, strict=True):
        if said.values is None:
            found.append(0.0)
            continue
        form = _FORM * said.formed
        if kind == "exact":
            found.append(_mean([target.share(name, said.values[name]) for name in target.ratings]) + form)
        else:
            near = [
                1 - target.distance(name, said.values[name]) / (ranges[name][1] - ranges[name][0])
                for name in target.ratings
            ]
            found.append(_GRADED * _mean(near) + _CONCORDANT * float(order) + form)
    return found


def share_without_signal(values: Sequence[float], group: int) -> float:
    """The share of groups (of `group` consecutive replies) with constant rewards, which teach nothing. With rewards scaled
    by batch, TRL's own `frac_reward_zero_std` is computed over the whole batch instead.

    >>> share_without_signal([1.0, 1.0, 0.5, 1.0], 2)
    0.5
    """
    groups = np.asarray(values, dtype=np.float64).reshape(-1, group)
    return float(np.mean(np.ptp(groups, axis=1) < _SAME))


def _refuse_odd(row: int, said: SampledReply, target: Target, ranges: Mapping[str, tuple[float, float]]) -> None:
    if said.values is None:
        return
    for name in target.ratings:
        low, high = ranges[name]
        value = said.values.get(name)
        if value is None or not low <= value <= high:
            found = "nothing" if value is None else f"{value:g}"
            raise InputError("reward", f"reply {row + 1}, {name}", found=found, expected=f"{low:g} to {high:g}")


def _concordance(replies: Sequence[SampledReply], targets: Sequence[Target]) -> Floats:
    """For each reply the mean over dimensions and over pairs with other encounters of 1 − |sign of the values' difference −
    sign of the ratings' difference| / 2."""
    clusters = np.array([target.cluster for target in targets])
    names = list(dict.fromkeys(name for target in targets for name in target.ratings))
    total, counted = np.zeros(len(replies)), np.zeros(len(replies))
    for name in names:
        rows = np.array(
            [
                row
                for row, (said, target) in enumerate(zip(replies, targets, strict=True))
                if said.values is not None and name in target.ratings
            ],
            dtype=np.int64,
        )
        if not len(rows):
            continue
        values = np.array([(replies[row].values or {})[name] for row in rows])
        ratings = np.array([targets[row].centre(name) for row in rows])
        agree = 1 - np.abs(_signs(values) - _signs(ratings)) / 2
        others = clusters[rows][:, None] != clusters[rows][None, :]
        pairs = others.sum(axis=1)
        mean = np.where(pairs > 0, (agree * others).sum(axis=1) / np.maximum(pairs, 1), 0.5)
        total[rows] += mean
        counted[rows] += 1
    return np.where(counted > 0, total / np.maximum(counted, 1), 0.0)


def _signs(values: Floats) -> NDArray[np.float64]:
    difference = values[:, None] - values[None, :]
    return np.sign(np.where(np.abs(difference) < _SAME, 0.0, difference))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


NO_SIGNAL = 0.8
"""Training stops when the share of groups with constant rewards, averaged over the last `_WINDOW` steps, is larger."""

UNFORMED = 3
"""The number of first steps after which training stops if no reply had a valid form: without rewards nothing is learned."""

_WINDOW = 10
_BEFORE = "checkpoint-0"
_ZERO_STD = "frac_reward_zero_std"


@dataclass(frozen=True)
class RatedPrompt:
    """The question to a judge about one answer, and people's ratings of that answer."""

    query: Query
    target: Target


class GrpoSettings(FrozenModel):
    """The settings of reinforcement learning. A step takes `prompts` prompts with `samples` replies each, sampled at
    `temperature` with at most `max_tokens`; `kl` is the weight of the distance from the initial judge. The judge is
    evaluated and a checkpoint saved every `evaluate_every` steps and after the last one."""

    reward: RewardKind = "graded"
    samples: int = Field(default=8, ge=2)
    prompts: int = Field(default=8, ge=2)
    steps: int = Field(default=200, ge=1)
    learning_rate: float = Field(default=1e-5, gt=0)
    temperature: float = Field(default=1.0, gt=0)
    max_tokens: int = Field(default=256, ge=1)
    kl: float = Field(default=0.0, ge=0)
    evaluate_every: int = Field(default=20, ge=1)
    seed: int = 0


@dataclass(frozen=True)
class RewardedTask:
    """The prompts, the function that `read`s replies to them, and the `ranges` of dimensions. `read` is not called for
    replies that were cut off by the token limit, which have no valid form."""

    prompts: Sequence[RatedPrompt]
    read: Callable[[RatedPrompt, str], SampledReply]
    ranges: Mapping[str, tuple[float, float]]


def reinforce(
    weights: Weights,
    task: RewardedTask,
    settings: GrpoSettings,
    folder: RunFolder,
    origin: Mapping[str, JsonValue],
    evaluate: Evaluate | None = None,
) -> Path:
    """Trains the adapter of `weights`. Returns the folder of the best checkpoint's adapter, with `origin` in it; if no
    checkpoint is better than the initial adapter, that one is kept as step 0.

    The log of each step has `loss`, `reward` (the mean), `formed` (the share of replies with a valid form), `length` (the
    mean number of tokens of a reply), `cut_off` (the share of replies cut by the token limit) and `frac_reward_zero_std`,
    the share of groups with constant rewards (see `share_without_signal`). A run that was killed continues from its last
    complete checkpoint with the same result; for a finished run the existing folder is returned.

    Raises `InputError` for fewer prompts than a step takes, for prompts about a single encounter, and if the library
    would show the model other tokens than the judge is shown; `NothingLearnedError` before the first step if the initial
    adapter is unusable, and after the first `UNFORMED` steps if no reply had a valid form.
    """
    out = folder.path / "adapter"
    if folder.finished is not None:
        return out
    clusters = {prompt.target.cluster for prompt in task.prompts}
    if len(clusters) < 2 or len(task.prompts) < settings.prompts:
        found = f"{count_of(len(task.prompts), 'prompt')} about {count_of(len(clusters), 'encounter')}"
        raise InputError("GRPO", found=found, expected=f"{settings.prompts} or more, about two or more")
    checkpoints = Checkpoints(weights, folder, evaluate, origin)
    last = checkpoints.resumed()
    with quiet():
        trainer = _trainer(checkpoints, task, settings)
        _refuse_other_tokens(trainer, weights, task.prompts)
        if last is None and evaluate is not None:
            weights.model.save_pretrained(folder.checkpoints / _BEFORE)
            checkpoints.evaluated(0, weights.model)
        if reason := str(checkpoints.best().get("unusable", "")) if last is None and evaluate is not None else "":
            raise NothingLearnedError(f"{folder.path}: reinforcement learning was not started: {reason}.")
        if not _hopeless(folder):
            trainer.train(resume_from_checkpoint=None if last is None or last.endswith(_BEFORE) else last)
    if never_formed(folder):
        found = f"no reply of the first {count_of(UNFORMED, 'step')} had the form of a rating"
        raise NothingLearnedError(
            f"{folder.path}: reinforcement learning was stopped: {found}. Fine-tune longer first."
        )
    best = checkpoints.publish(out)
    stopped = without_signal(folder) > NO_SIGNAL
    folder.finish({"best": best, "prompts": len(task.prompts), "stopped": "no signal" if stopped else ""})
    return out


def without_signal(folder: RunFolder) -> float:
    """The mean share of groups with constant rewards over the last steps; 0 if there are fewer than `_WINDOW`."""
    shares = [float(str(step[_ZERO_STD])) for step in folder.steps if _ZERO_STD in step][-_WINDOW:]
    return sum(shares) / _WINDOW if len(shares) == _WINDOW else 0.0


def never_formed(folder: RunFolder) -> bool:
    """Whether no reply of the first steps had a valid form; False before there are `UNFORMED` steps."""
    shares = [float(str(step["formed"])) for step in folder.steps if "formed" in step][:UNFORMED]
    return len(shares) == UNFORMED and not any(shares)


def _hopeless(folder: RunFolder) -> bool:
    return never_formed(folder) or without_signal(folder) > NO_SIGNAL


def _earned(task: RewardedTask, settings: GrpoSettings, weights: Weights) -> Callable[..., list[float]]:
    def reward(*, completion_ids: Sequence[list[int]], row: Sequence[int], log_metric: Any, **_: object) -> list[float]:
        """The reward of each reply to the prompts at these indices; all replies of a step are in one call."""
        prompts = [task.prompts[one] for one in row]
        replies = [
            task.read(prompt, weights.tokenizer.decode(ids, skip_special_tokens=True))
            if ids[-1] in weights.ends
            else SampledReply(None, False)
            for prompt, ids in zip(prompts, completion_ids, strict=True)
        ]
        earned = rewards(settings.reward, replies, [prompt.target for prompt in prompts], task.ranges)
        log_metric("formed", sum(reply.formed for reply in replies) / len(replies))
        log_metric("without_signal", share_without_signal(earned, settings.samples))
        return earned

    return reward


def _trainer(checkpoints: Checkpoints, task: RewardedTask, settings: GrpoSettings) -> Any:
    from datasets import Dataset
    from trl import GRPOTrainer

    weights, folder = checkpoints.weights, checkpoints.folder
    names = {
        "loss": "loss",
        "reward": "reward",
        "formed": "formed",
        "without_signal": _ZERO_STD,
        "completions/mean_length": "length",
        "completions/clipped_ratio": "cut_off",
        "kl": "kl",
    }

    def shown(rows: Mapping[str, list[int]]) -> dict[str, list[Any]]:
        indices = rows["row"]
        return {"row": indices, "prompt": [weights.messages(task.prompts[index].query) for index in indices]}

    trainer = GRPOTrainer(
        model=weights.model,
        reward_funcs=_earned(task, settings, weights),
        args=_arguments(folder, settings, weights),
        train_dataset=Dataset.from_dict({"row": list(range(len(task.prompts)))}).with_transform(shown),
        processing_class=weights.processor,
    )
    checkpoints.watch(trainer, names, stops=lambda: _hopeless(folder))
    return trainer


def _arguments(folder: RunFolder, settings: GrpoSettings, weights: Weights) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=str(folder.checkpoints),
        per_device_train_batch_size=settings.samples,
        gradient_accumulation_steps=settings.prompts,  # the replies to all prompts of a step are sampled and rewarded together
        num_generations=settings.samples,
        max_completion_length=settings.max_tokens,
        temperature=settings.temperature,
        scale_rewards="batch",
        beta=settings.kl,
        max_steps=settings.steps,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="constant",
        logging_steps=1,
        save_strategy="steps",
        save_steps=min(settings.evaluate_every, settings.steps),
        report_to="none",
        seed=settings.seed,
        bf16=False,
        gradient_checkpointing=False,
        disable_dropout=True,  # replies are sampled from the judge as it is used
        use_vllm=False,
        use_cpu=weights.model.device.type == "cpu",
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        disable_tqdm=True,
    )


def _refuse_other_tokens(trainer: Any, weights: Weights, prompts: Sequence[RatedPrompt]) -> None:
    """Raises `InputError` if TRL makes other tokens of a prompt than the judge is shown when it is used."""
    for prompt in prompts[:2]:
        trained = list(trainer._tokenize_prompts([weights.messages(prompt.query)])[0][0])  # noqa: SLF001 - there is no other way
        used = weights.prompts([prompt.query])["input_ids"][0].tolist()
        if trained != used:
            raise InputError("GRPO", found=f"prompts of other tokens ({len(trained)}, used: {len(used)})")
