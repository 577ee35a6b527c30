"""The epochs of one network: deterministic on one CPU core, and continued after the process was killed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from proctor.core import FrozenModel, content_hash, generator, read_model, replacing, write_whole
from proctor_train import RunFolder
from proctor_train.mediqa_eval.classifier import (
    LevelClassifier,
    Loss,
    TokenizedCase,
    batch,
    features_of,
    level_loss,
    probabilities,
)

_CLIP = 1.0
_WARM_UP = 0.1


@dataclass(frozen=True)
class ClassifierRecipe:
    """Everything that decides the result. `encoders` are names or folders by language ('': all others), whose top `layers`
    are trained with `learning_rate`, and the heads with `head_rate`. With `folds` of 0 no encounters are left out.
    `shuffled` is a control with ratings permuted among the answers of a language."""

    encoders: Mapping[str, str]
    loss: Loss = "ordinal"
    class_weights: Literal["balanced", "none"] = "balanced"
    references: bool = False
    captions: str = ""
    layers: int = 0
    max_tokens: int = 512
    seeds: int = 5
    folds: int = 5
    epochs: int = 20
    batch_size: int = 16
    learning_rate: float = 5e-5
    head_rate: float = 3e-4
    weight_decay: float = 0.01
    seed: int = 0
    shuffled: bool = False

    def encoder(self, language: str) -> str:
        """The encoder of a language."""
        return self.encoders.get(language, self.encoders[""])


@dataclass(frozen=True)
class EpochPlan:
    """The training of one network by a recipe, from a `seed`. `name` distinguishes it from the other networks of a run,
    whose steps are numbered from `first_step`. Without `keep`, its weights are not needed after it has been applied."""

    name: str
    recipe: ClassifierRecipe
    seed: int
    first_step: int = 0
    keep: bool = True


@dataclass(frozen=True)
class TrainingRows:
    """Answers as training data: states, inputs, and for each dimension the shares of levels (rows × levels). `fixed` are
    their features (rows × width) if these do not change in training."""

    states: Sequence[Any]
    inputs: Sequence[TokenizedCase]
    shares: Mapping[str, Any]
    fixed: Any = None

    def features(self, network: LevelClassifier) -> Any:
        """The features of all answers."""
        return features_of(network, self.states, self.inputs) if self.fixed is None else self.fixed

    def some(self, network: LevelClassifier, rows: list[int]) -> Any:
        """The features of a batch of answers."""
        if self.fixed is not None:
            return self.fixed[rows]
        return network.features(*batch([self.states[k] for k in rows], [self.inputs[k] for k in rows]))


class FittedEpoch(FrozenModel):
    """The best epoch so far: its number, its agreement on the answers that choose the epoch, and the number of epochs
    `done`. After the last one, `outside` are the probabilities of left-out answers (dimension × rows × levels)."""

    name: str
    done: int = 0
    epoch: int = 0
    agreement: float | None = None
    outside: list[list[list[float]]] | None = None

    def after(self, epoch: int, agreement: float | None) -> FittedEpoch:
        """The state after one more epoch, which is the best one if its agreement is the highest."""
        if self.epoch and (agreement is None or (self.agreement is not None and agreement <= self.agreement)):
            return self.model_copy(update={"done": epoch})
        return self.model_copy(update={"done": epoch, "epoch": epoch, "agreement": agreement})


class _KeptNetwork:
    """A network's files: during training its whole state, in one file that is replaced atomically; then the weights of the
    best epoch, and the result."""

    def __init__(self, folder: Path, name: str) -> None:
        file = content_hash(name)[:16]  # the name of a language may not suit a file name
        self._under_way, self.best = folder / f"{file}.safetensors", folder / f"{file}.best.safetensors"
        self._done = folder / f"{file}.json"

    @property
    def fitted(self) -> FittedEpoch | None:
        """The result; None until training is finished."""
        return read_model(self._done, FittedEpoch, "a trained network") if self._done.exists() else None

    def keep(self, fitted: FittedEpoch, network: Any, optimizer: Any, best: Mapping[str, Any]) -> None:
        """Writes the state at the end of an epoch."""
        adam = {
            f"adam/{location}/{name}": value
            for location, own in optimizer.state_dict()["state"].items()
            for name, value in own.items()
        }
        tensors = {f"network/{name}": value for name, value in network.state_dict().items()} | adam
        tensors |= {f"best/{name}": value for name, value in best.items()}
        with replacing(self._under_way) as draft:
            save_file(tensors, draft, metadata={"fitted": fitted.model_dump_json()})

    def restore(self, network: Any, optimizer: Any) -> tuple[FittedEpoch | None, dict[str, Any]]:
        """Restores the state, and returns it with the best weights so far; None if training has not begun."""
        if not self._under_way.exists():
            return None, {}
        with safe_open(self._under_way, framework="pt") as file:
            fitted = FittedEpoch.model_validate_json(file.metadata()["fitted"])
        parts: dict[str, dict[str, Any]] = {"network": {}, "best": {}, "adam": {}}
        for name, value in load_file(self._under_way).items():
            part, _, own = name.partition("/")
            parts[part][own] = value
        network.load_state_dict(parts["network"])
        state: dict[int, dict[str, Any]] = {}
        for name, value in parts["adam"].items():
            location, _, own = name.partition("/")
            state.setdefault(int(location), {})[own] = value
        optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
        return fitted, parts["best"]

    def finish(self, fitted: FittedEpoch, best: Mapping[str, Any], *, keep: bool) -> None:
        """Writes the result, and removes the state."""
        if keep:
            with replacing(self.best) as draft:
                save_file(dict(best), draft)
        write_whole(self._done, fitted.model_dump_json() + "\n")
        self._under_way.unlink(missing_ok=True)


Rows = Callable[[], tuple[TrainingRows, TrainingRows, TrainingRows]]


def fit_epochs(
    plan: EpochPlan,
    folder: RunFolder,
    start: Callable[[], LevelClassifier],
    weights: Mapping[str, Any],
    rows: Rows,
    agreement: Callable[[Sequence[Any]], float | None],
) -> tuple[FittedEpoch, Path]:
    """Trains one network, or continues, or reads the result; returns it with the file of the weights. `rows` are those to
    learn from, those to choose the epoch by `agreement` (of probabilities, dimension → rows × levels), and those left
    out."""
    kept = _KeptNetwork(folder.checkpoints, plan.name)
    fitted = kept.fitted
    if fitted is None:
        with torch.random.fork_rng(devices=[]):
            fitted = _trained(plan, folder, kept, start, weights, rows(), agreement)
    return fitted, kept.best


def _trained(
    plan: EpochPlan,
    folder: RunFolder,
    kept: _KeptNetwork,
    start: Callable[[], LevelClassifier],
    weights: Mapping[str, Any],
    rows: tuple[TrainingRows, TrainingRows, TrainingRows],
    agreement: Callable[[Sequence[Any]], float | None],
) -> FittedEpoch:
    learning, choosing, outside = rows
    _seeded(plan, "start")
    network = start()
    network.standardise(learning.features(network))
    optimizer = _optimizer(plan, network)
    before, best = kept.restore(network, optimizer)
    fitted = before or FittedEpoch(name=plan.name)
    steps = math.ceil(len(learning.states) / plan.recipe.batch_size)
    folder.forget_from(plan.first_step + fitted.done * steps)
    for epoch in range(fitted.done + 1, plan.recipe.epochs + 1):
        _one_epoch(plan, epoch, network, optimizer, learning, weights, folder)
        figure = agreement(probabilities(network, choosing.features(network)))
        folder.note(step=plan.first_step + epoch * steps - 1, network=plan.name, epoch=epoch, agreement=figure)
        fitted = fitted.after(epoch, figure)
        if fitted.epoch == epoch:
            best = {name: value.clone() for name, value in network.state_dict().items()}
        kept.keep(fitted, network, optimizer, best)
    network.load_state_dict(best)
    found = (
        [probability.tolist() for probability in probabilities(network, outside.features(network))]
        if outside.states
        else []
    )
    fitted = fitted.model_copy(update={"outside": found})
    kept.finish(fitted, best, keep=plan.keep)
    return fitted


def _optimizer(plan: EpochPlan, network: LevelClassifier) -> Any:
    parts = [list(network.top.parameters())]
    inside = {id(part) for part in parts[0]}
    parts.append([parameter for parameter in network.parameters() if id(parameter) not in inside])
    rates = (plan.recipe.learning_rate, plan.recipe.head_rate)
    groups = [{"params": some, "lr": rate} for some, rate in zip(parts, rates, strict=True) if some]
    return torch.optim.AdamW(groups, weight_decay=plan.recipe.weight_decay)


def _one_epoch(
    plan: EpochPlan,
    epoch: int,
    network: LevelClassifier,
    optimizer: Any,
    learning: TrainingRows,
    weights: Mapping[str, Any],
    folder: RunFolder,
) -> None:
    """Trains on every answer once; order and dropout depend only on the seed and the epoch."""
    _seeded(plan, f"epoch {epoch}")
    order = generator(plan.seed, "classifier-judge", plan.name, f"order {epoch}").permutation(len(learning.states))
    batches = [order[k : k + plan.recipe.batch_size].tolist() for k in range(0, len(order), plan.recipe.batch_size)]
    bases = [group.setdefault("base", group["lr"]) for group in optimizer.param_groups]
    network.train()
    for number, rows in enumerate(batches):
        done = (epoch - 1) * len(batches) + number
        for group, base in zip(optimizer.param_groups, bases, strict=True):
            group["lr"] = base * _rate(done, plan.recipe.epochs * len(batches))
        losses = [
            level_loss(found, learning.shares[name][rows], weights[name])
            for name, found in zip(network.names, network(learning.some(network, rows)), strict=True)
        ]
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), _CLIP)
        optimizer.step()
        folder.note(step=plan.first_step + done, network=plan.name, loss=float(loss.detach()))


def _rate(step: int, steps: int) -> float:
    """The factor of the learning rate at a step: it rises over the first tenth of the steps and then falls to 0.

    >>> [_rate(step, 20) for step in (0, 1, 2, 11)]
    [0.5, 1.0, 1.0, 0.5]
    """
    warm = max(1, round(_WARM_UP * steps))
    return (step + 1) / warm if step < warm else (steps - step) / (steps - warm)


def _seeded(plan: EpochPlan, purpose: str) -> None:
    draw = generator(plan.seed, "classifier-judge", plan.name, purpose)
    torch.manual_seed(int(draw.integers(0, 2**62)))
