"""Rewards for reinforcement learning on ordinal ratings: exact match as published, or graded and concordant.

`exact` is MedAware's reward (Hao and Liu 2026, section 6.3 of the overview): exact match with the ratings and a small
bonus for the form. With three levels most of a group's replies earn the same, and a group of equals teaches nothing.
`graded` pays for distance and for order, so that near misses differ:

    r = 0.5 · (1 − d/range) + 0.4 · concordance with answers of other encounters + 0.1 · valid form
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import InputError, count_of
from proctor.models import Query, Weights
from proctor.stats import Floats
from proctor.training.run_folder import Checkpoints, Evaluate, RunFolder, quiet

RewardKind = Literal["graded", "exact"]

_GRADED, _CONCORDANT, _FORM = 0.5, 0.4, 0.1
_SAME = 1e-9  # closer than this, two numbers are one


@dataclass(frozen=True)
class Target:
    """What people gave one answer: the ratings of each dimension, one or more, all within the dimension's range.

    Raters who differ widen the target: every value between their lowest and their highest rating is as good, and the
    mean stands for the answer where it is compared with others. `cluster` is the encounter.

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
        """How far a value lies outside of what the raters gave."""
        given = self.ratings[dimension]
        return max(min(given) - value, value - max(given), 0.0)

    def share(self, dimension: str, value: float) -> float:
        """The share of the raters who gave just this."""
        given = self.ratings[dimension]
        return sum(abs(one - value) < _SAME for one in given) / len(given)


@dataclass(frozen=True)
class SampledReply:
    """What one sampled reply says: a value for each dimension, or None where it is not of the form that was asked for.
    `formed` says whether it has the form in every respect (None is never)."""

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
    """The reward of each reply of a batch, all dimensions of its target weighted alike; `ranges` are the lowest and
    highest level by dimension.

    `graded` is between 0 and 1. Order is compared with the replies to other encounters that gave values for the same
    dimension: a pair earns 1 where both signs agree (ties with ties, too), 0.5 where just one side ties, 0 where they
    contradict; without such a pair 0.5, the same for a whole group. `exact` is the share of the raters who gave just
    this value, and 0.1 for the form. A reply without values earns 0.

    Raises `InputError` where a reply leaves out a dimension of its target, or gives a value that is out of range.

    >>> targets = [Target("e1", {"overall": (1.0,)}), Target("e2", {"overall": (0.0,)})]
    >>> said = [SampledReply({"overall": 0.5}, True), SampledReply({"overall": 0.0}, True)]
    >>> [round(one, 3) for one in rewards("graded", said, targets, {"overall": (0.0, 1.0)})]
    [0.75, 1.0]
    >>> rewards("exact", said, targets, {"overall": (0.0, 1.0)})
    [0.1, 1.1]
    """
    for place, (said, target) in enumerate(zip(replies, targets, strict=True)):
        _refuse_odd(place, said, target, ranges)
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
    """The share of groups (`group` replies each, one after the other) whose rewards are all the same, so that they
    teach nothing. TRL's own `frac_reward_zero_std` looks at the whole batch where rewards are scaled by the batch.

    >>> share_without_signal([1.0, 1.0, 0.5, 1.0], 2)
    0.5
    """
    groups = np.asarray(values, dtype=np.float64).reshape(-1, group)
    return float(np.mean(np.ptp(groups, axis=1) < _SAME))


def _refuse_odd(place: int, said: SampledReply, target: Target, ranges: Mapping[str, tuple[float, float]]) -> None:
    if said.values is None:
        return
    for name in target.ratings:
        low, high = ranges[name]
        value = said.values.get(name)
        if value is None or not low <= value <= high:
            found = "nothing" if value is None else f"{value:g}"
            raise InputError("reward", f"reply {place + 1}, {name}", found=found, expected=f"{low:g} to {high:g}")


def _concordance(replies: Sequence[SampledReply], targets: Sequence[Target]) -> Floats:
    """The mean over dimensions and over pairs with other encounters of 1 − |sign of the values' difference − sign of
    the ratings' difference| / 2."""
    clusters = np.array([one.cluster for one in targets])
    names = list(dict.fromkeys(name for one in targets for name in one.ratings))
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
"""With a larger share of groups that teach nothing, on average over the last `_WINDOW` steps, training stops."""

_WINDOW = 10
_BEFORE = "checkpoint-0"
_ZERO_STD = "frac_reward_zero_std"


@dataclass(frozen=True)
class RatedPrompt:
    """What a judge is asked about one answer, and what people gave that answer."""

    query: Query
    target: Target


class GrpoSettings(BaseModel):
    """How a judge learns from rewards. A step takes `prompts` prompts with `samples` replies each, drawn at
    `temperature`, of at most `max_tokens`; `kl` weighs the distance from the judge as it was before. Evaluation is each
    `evaluate_every` steps and after the last one, and each time a checkpoint is kept."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
    """What is rewarded: replies to `prompts`, of which `read` says what they give (it is shown no reply that the limit
    of tokens ended: such a reply has no form), on dimensions with these `ranges`."""

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
    """Trains the adapter that is on `weights`; the folder of the best checkpoint's adapter, with `origin` in it. Where no
    checkpoint is evaluated higher than the adapter was before, that one stays: step 0.

    Each step is noted with `loss`, `reward` (its mean), `formed` (the share of replies of valid form), `length` (tokens
    of a reply, on average), `cut_off` (the share of replies that the limit of tokens ended) and `frac_reward_zero_std`,
    the share of groups whose replies all earn the same. It is counted by group here. TRL's own figure of this name
    looks at the whole batch where rewards are scaled by the batch, as they are, and says 0. A run that was killed goes
    on from its last complete checkpoint as if nothing had been; one that is done returns what it made.

    Raises `InputError` for fewer prompts than a step takes, for prompts about one encounter alone, and where the
    library would show the model other tokens than the judge is shown.
    """
    out = folder.path / "adapter"
    if folder.finished is not None:
        return out
    clusters = {one.target.cluster for one in task.prompts}
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
        if without_signal(folder) <= NO_SIGNAL:
            trainer.train(resume_from_checkpoint=None if last is None or last.endswith(_BEFORE) else last)
    best = checkpoints.publish(out)
    stopped = without_signal(folder) > NO_SIGNAL
    folder.finish({"best": best, "prompts": len(task.prompts), "stopped": "no signal" if stopped else ""})
    return out


def without_signal(folder: RunFolder) -> float:
    """The mean share of groups that taught nothing in the last steps; 0 while there are too few steps to tell."""
    shares = [float(str(one[_ZERO_STD])) for one in folder.steps if _ZERO_STD in one][-_WINDOW:]
    return sum(shares) / _WINDOW if len(shares) == _WINDOW else 0.0


def _earned(task: RewardedTask, settings: GrpoSettings, weights: Weights) -> Callable[..., list[float]]:
    def reward(
        *, completion_ids: Sequence[list[int]], place: Sequence[int], log_metric: Any, **_: object
    ) -> list[float]:
        """A reward for each reply to the prompts at these places; all of a step in one call."""
        asked = [task.prompts[one] for one in place]
        said = [
            task.read(one, weights.tokenizer.decode(ids, skip_special_tokens=True))
            if ids[-1] in weights.ends
            else SampledReply(None, False)
            for one, ids in zip(asked, completion_ids, strict=True)
        ]
        earned = rewards(settings.reward, said, [one.target for one in asked], task.ranges)
        log_metric("formed", sum(one.formed for one in said) / len(said))
        log_metric("without_signal", share_without_signal(earned, settings.samples))
        return earned

    return reward


def _trainer(checkpoints: Checkpoints, task: RewardedTask, settings: GrpoSettings) -> Any:
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
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

    class Steps(TrainerCallback):  # type: ignore[misc]  # the library has no types
        """Notes what each step earned, evaluates what was saved, and stops where nothing is learned any more."""

        def on_log(self, *seen: Any, logs: dict[str, float], **_: Any) -> None:
            _, state, control = seen
            if "reward" in logs:
                folder.note(step=state.global_step, **{own: logs[name] for name, own in names.items() if name in logs})
                if without_signal(folder) > NO_SIGNAL:
                    control.should_training_stop = control.should_save = True

        def on_save(self, *seen: Any, model: Any, **_: Any) -> None:
            checkpoints.evaluated(seen[1].global_step, model)

    def shown(rows: Mapping[str, list[int]]) -> dict[str, list[Any]]:
        places = rows["place"]
        return {"place": places, "prompt": [weights.messages(task.prompts[one].query) for one in places]}

    trainer = GRPOTrainer(
        model=weights.model,
        reward_funcs=_earned(task, settings, weights),
        args=_arguments(folder, settings, weights),
        train_dataset=Dataset.from_dict({"place": list(range(len(task.prompts)))}).with_transform(shown),
        processing_class=weights.processor,
        callbacks=[Steps()],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _arguments(folder: RunFolder, settings: GrpoSettings, weights: Weights) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=str(folder.checkpoints),
        per_device_train_batch_size=settings.samples,
        gradient_accumulation_steps=settings.prompts,  # the replies to all prompts of a step are drawn, and paid, at once
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
        disable_dropout=True,  # what is sampled is the judge as it is used
        use_vllm=False,
        use_cpu=weights.model.device.type == "cpu",
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        disable_tqdm=True,
    )


def _refuse_other_tokens(trainer: Any, weights: Weights, prompts: Sequence[RatedPrompt]) -> None:
    """Training on other tokens than the judge is shown later teaches another judge."""
    for one in prompts[:2]:
        trained = list(trainer._tokenize_prompts([weights.messages(one.query)])[0][0])  # noqa: SLF001 - there is no other way
        used = weights.prompts([one.query])["input_ids"][0].tolist()
        if trained != used:
            raise InputError("GRPO", found=f"prompts of other tokens ({len(trained)}, used: {len(used)})")
