"""Checkpoints of a model in training: each is evaluated once, the best one is kept, and a run that was killed goes on
from the last complete one.

The libraries' own ways have failed others: a best checkpoint that is the last one (transformers#40221), a state that is
resumed from while half of it is written.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from proctor.core import InputError, read_json, write_whole
from proctor.models import ORIGIN, Weights
from proctor.training.chat_examples import template_hash

if TYPE_CHECKING:
    from proctor.training.run_folder import RunFolder

_COMPLETE = "complete.json"
_TRAINED = ("adapter_config.json", "adapter_model.safetensors")


@dataclass(frozen=True)
class CheckpointEvaluation:
    """How good the model is now: the checkpoint with the highest `value` is kept (None: it is not known), `told` goes
    into the folder's steps. `beside` are files, by name, that stay with the checkpoint's weights wherever they go."""

    value: float | None
    told: dict[str, JsonValue] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)


Evaluate = Callable[[Weights], CheckpointEvaluation]


class Checkpoints:
    """The checkpoints of one run. `origin` is what is said of the trained weights in `proctor.json`."""

    def __init__(
        self, weights: Weights, folder: RunFolder, evaluate: Evaluate | None, origin: Mapping[str, JsonValue]
    ) -> None:
        self.weights, self.folder, self._evaluate, self._origin = (
            weights,
            folder,
            evaluate,
            {**origin, "template_sha256": template_hash(weights)},
        )

    def evaluated(self, step: int, model: Any) -> None:
        """Evaluates a checkpoint that is on disk, marks it as complete, and removes those that nobody needs."""
        told: dict[str, JsonValue] = {"step": step, "evaluation": None}
        here = self.folder.checkpoints / f"checkpoint-{step}"
        if self._evaluate is not None:
            with _undisturbed(model):
                found = self._evaluate(Weights.around("in training", model, self.weights.processor))
            told |= {"evaluation": found.value, **found.told}
            (here / "beside").mkdir(exist_ok=True)
            for name, text in found.beside.items():
                write_whole(here / "beside" / name, text)
        self.folder.note(**told)
        write_whole(here / _COMPLETE, json.dumps(told) + "\n")
        kept = {step, self.best()["step"]}
        for one in self.folder.checkpoints.glob("checkpoint-*"):
            if _step(one) not in kept:
                shutil.rmtree(one)

    def best(self) -> dict[str, Any]:
        """The evaluation with the highest value, the first of equals; the last one where no value is known."""
        found = [one for one in self.folder.steps if "evaluation" in one]
        known = [one for one in found if one["evaluation"] is not None]
        return max(known, key=lambda one: float(str(one["evaluation"]))) if known else found[-1]

    def resumed(self) -> str | None:
        """The last complete checkpoint, with all after it undone; None where there is none."""
        complete = [one for one in self.folder.checkpoints.glob("checkpoint-*") if (one / _COMPLETE).exists()]
        last = max(complete, key=_step, default=None)
        self.folder.forget_from(0 if last is None else _step(last) + 1)
        for one in self.folder.checkpoints.glob("checkpoint-*"):
            if one not in complete:
                shutil.rmtree(one)
        return None if last is None else str(last)

    def publish(self, out: Path) -> dict[str, Any]:
        """Writes the best checkpoint's trained weights, without the state of the optimizer, and what is told of it.
        They appear whole or not at all."""
        best = self.best()
        checkpoint = self.folder.checkpoints / f"checkpoint-{best['step']}"
        draft = out.with_name(f".{out.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        adapter = [checkpoint / name for name in _TRAINED if (checkpoint / name).exists()]
        weights = adapter or [*checkpoint.glob("*.safetensors*"), *checkpoint.glob("*config.json")]
        for file in (*weights, *(checkpoint / "beside").glob("*")):
            shutil.copy2(file, draft / file.name)
        self.weights.processor.save_pretrained(draft)
        write_whole(draft / ORIGIN, json.dumps(self._origin, indent=1) + "\n")
        shutil.rmtree(out, ignore_errors=True)
        draft.rename(out)
        return best


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def read_origin(trained: Path) -> dict[str, JsonValue]:
    """What trained weights were trained from. Raises `InputError` where nothing says so."""
    told = read_json(trained / ORIGIN, "what the weights were trained from")
    if not isinstance(told, dict):
        raise InputError(trained / ORIGIN, found="no object", expected="base, base_sha256 and template_sha256")
    return told


@contextlib.contextmanager
def _undisturbed(model: Any) -> Iterator[None]:
    """Evaluation leaves no trace in training: neither in what is drawn nor in how the model runs."""
    import numpy as np
    import torch

    drawn, numbers, cuda = random.getstate(), np.random.get_state(), torch.cuda.get_rng_state_all()
    state, training = torch.get_rng_state(), model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
        random.setstate(drawn)
        np.random.set_state(numbers)
        torch.set_rng_state(state)
        torch.cuda.set_rng_state_all(cuda)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """The libraries' bars and warnings are not for people who train judges."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
