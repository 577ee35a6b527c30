"""One network's epochs: deterministic on one processor core, and gone on with after the process was killed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from proctor.core import content_hash, generator, read_model, replacing, write_whole
from proctor.judges.classifier import LevelClassifier, TokenizedCase, batch, features_of, level_loss, probabilities
from proctor.training.run_folder import RunFolder

_CLIP = 1.0
_WARM_UP = 0.1


@dataclass(frozen=True)
class EpochPlan:
    """How one network is trained; `name` tells it from the others of the same run, whose steps are counted on from
    `first_step`. `rates` are the learning rates of the encoder's layers and of the heads: they rise over the first tenth
    of the steps and then fall to 0. Without `keep` its weights are needed no more once it has been applied."""

    name: str
    seed: int
    epochs: int
    batch_size: int
    rates: tuple[float, float]
    weight_decay: float
    first_step: int = 0
    keep: bool = True


@dataclass(frozen=True)
class TrainingRows:
    """Answers as the network takes them: states, inputs, and of each dimension the shares of levels (rows × levels).
    `fixed` are their features (rows × width) where no training changes these."""

    states: Sequence[Any]
    inputs: Sequence[TokenizedCase]
    shares: Mapping[str, Any]
    fixed: Any = None

    def features(self, network: LevelClassifier) -> Any:
        """The features of all of them."""
        return features_of(network, self.states, self.inputs) if self.fixed is None else self.fixed

    def some(self, network: LevelClassifier, places: list[int]) -> Any:
        """The features of some of them, read together, as they are trained on."""
        if self.fixed is not None:
            return self.fixed[places]
        return network.features(*batch([self.states[k] for k in places], [self.inputs[k] for k in places]))


class FittedEpoch(BaseModel):
    """The network of the best epoch so far: its number, its agreement on the part that chose it, of how many epochs
    `done`; and once all are, the probabilities of levels that it gives the answers left out (dimension × rows ×
    levels)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str
    done: int = 0
    epoch: int = 0
    agreement: float | None = None
    outside: list[list[list[float]]] | None = None

    def after(self, epoch: int, agreement: float | None) -> FittedEpoch:
        """The same after one more epoch, which is the best one where its agreement is higher than all before."""
        if self.epoch and (agreement is None or (self.agreement is not None and agreement <= self.agreement)):
            return self.model_copy(update={"done": epoch})
        return self.model_copy(update={"done": epoch, "epoch": epoch, "agreement": agreement})


class _KeptNetwork:
    """A network's files: while it is trained all that it goes on from, in one file that is replaced whole; then the
    weights of the best epoch, and what came of it."""

    def __init__(self, folder: Path, name: str) -> None:
        file = content_hash(name)[:16]  # languages may be called anything
        self._under_way, self.best = folder / f"{file}.safetensors", folder / f"{file}.best.safetensors"
        self._done = folder / f"{file}.json"

    @property
    def fitted(self) -> FittedEpoch | None:
        """What came of it; None while it is not done."""
        return read_model(self._done, FittedEpoch, "a trained network") if self._done.exists() else None

    def keep(self, fitted: FittedEpoch, network: Any, optimizer: Any, best: Mapping[str, Any]) -> None:
        """Keeps an epoch's end."""
        adam = {
            f"adam/{place}/{name}": value
            for place, own in optimizer.state_dict()["state"].items()
            for name, value in own.items()
        }
        tensors = {f"network/{name}": value for name, value in network.state_dict().items()} | adam
        tensors |= {f"best/{name}": value for name, value in best.items()}
        with replacing(self._under_way) as draft:
            save_file(tensors, draft, metadata={"fitted": fitted.model_dump_json()})

    def restore(self, network: Any, optimizer: Any) -> tuple[FittedEpoch | None, dict[str, Any]]:
        """Where training goes on, and the best weights so far; nothing where it was not begun."""
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
            place, _, own = name.partition("/")
            state.setdefault(int(place), {})[own] = value
        optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
        return fitted, parts["best"]

    def finish(self, fitted: FittedEpoch, best: Mapping[str, Any], *, keep: bool) -> None:
        """Keeps what came of it, and removes what is needed no more."""
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
    """Trains one network, or goes on, or gives what the folder has, with the file of its weights. `rows` are those that
    it learns from, those that choose the epoch by `agreement` (of probabilities, dimension → rows × levels) and those
    left out."""
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
    steps = math.ceil(len(learning.states) / plan.batch_size)
    folder.forget_from(plan.first_step + fitted.done * steps)
    for epoch in range(fitted.done + 1, plan.epochs + 1):
        _one_epoch(plan, epoch, network, optimizer, learning, weights, folder)
        figure = agreement(probabilities(network, choosing.features(network)))
        folder.note(step=plan.first_step + epoch * steps - 1, network=plan.name, epoch=epoch, agreement=figure)
        fitted = fitted.after(epoch, figure)
        if fitted.epoch == epoch:
            best = {name: value.clone() for name, value in network.state_dict().items()}
        kept.keep(fitted, network, optimizer, best)
    network.load_state_dict(best)
    found = [one.tolist() for one in probabilities(network, outside.features(network))] if outside.states else []
    fitted = fitted.model_copy(update={"outside": found})
    kept.finish(fitted, best, keep=plan.keep)
    return fitted


def _optimizer(plan: EpochPlan, network: LevelClassifier) -> Any:
    parts = [list(network.top.parameters())]
    inside = {id(one) for one in parts[0]}
    parts.append([one for one in network.parameters() if id(one) not in inside])
    groups = [{"params": some, "lr": rate} for some, rate in zip(parts, plan.rates, strict=True) if some]
    return torch.optim.AdamW(groups, weight_decay=plan.weight_decay)


def _one_epoch(
    plan: EpochPlan,
    epoch: int,
    network: LevelClassifier,
    optimizer: Any,
    learning: TrainingRows,
    weights: Mapping[str, Any],
    folder: RunFolder,
) -> None:
    """Every answer once, in an order and with a dropout that depend on the seed and the epoch alone."""
    _seeded(plan, f"epoch {epoch}")
    order = generator(plan.seed, "classifier-judge", plan.name, f"order {epoch}").permutation(len(learning.states))
    batches = [order[k : k + plan.batch_size].tolist() for k in range(0, len(order), plan.batch_size)]
    bases = [group.setdefault("base", group["lr"]) for group in optimizer.param_groups]
    network.train()
    for number, places in enumerate(batches):
        done = (epoch - 1) * len(batches) + number
        for group, base in zip(optimizer.param_groups, bases, strict=True):
            group["lr"] = base * _rate(done, plan.epochs * len(batches))
        losses = [
            level_loss(found, learning.shares[name][places], weights[name])
            for name, found in zip(network.names, network(learning.some(network, places)), strict=True)
        ]
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), _CLIP)
        optimizer.step()
        folder.note(step=plan.first_step + done, network=plan.name, loss=float(loss.detach()))


def _rate(step: int, steps: int) -> float:
    """The share of the learning rate at a step.

    >>> [_rate(step, 20) for step in (0, 1, 2, 11)]
    [0.5, 1.0, 1.0, 0.5]
    """
    warm = max(1, round(_WARM_UP * steps))
    return (step + 1) / warm if step < warm else (steps - step) / (steps - warm)


def _seeded(plan: EpochPlan, purpose: str) -> None:
    draw = generator(plan.seed, "classifier-judge", plan.name, purpose)
    torch.manual_seed(int(draw.integers(0, 2**62)))
