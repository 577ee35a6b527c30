"""The folder of one training run: its settings and log, and checkpoints, of which the best is kept and from which an
interrupted run continues.

Each checkpoint is evaluated once, the best one is kept, and a run that was killed continues from the last complete one.
The libraries' own mechanisms have failed others: a best checkpoint that is the last one (transformers#40221), a resumed
state that is half written.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import JsonValue

from proctor.core import InputError, ProctorError, load_json, read_json, read_jsonl, write_whole
from proctor.models import ORIGIN, Weights

SETTINGS, STEPS, FINISHED, CHECKPOINTS = "settings.json", "steps.jsonl", "finished.json", "checkpoints"
_LIBRARIES = ("numpy", "torch", "transformers", "peft", "trl", "sentence-transformers")


class NothingLearnedError(ProctorError):
    """A training after which the weights can't do what they were trained for. The message says what was missing."""


class RunFolder:
    """A run's folder, locked by one process through `opened`. Files are written atomically, except `steps.jsonl`: if the
    process died while it wrote the last line, that line is removed at the next start."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @contextmanager
    def opened(cls, path: Path, settings: dict[str, JsonValue]) -> Iterator[RunFolder]:
        """The folder of a new or a continued run.

        `settings` are everything that changes the result, including the hash of the data and the seed. Raises
        `InputError` if the folder contains something else, was started with other settings (which are named) or other
        versions of the libraries, or is in use by another process. A run that is refused before its first step leaves
        nothing in the folder.
        """
        new = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        with (path / ".lock").open("ab") as lock:
            cls._take(path, lock)
            folder = cls(path)
            begun = (path / SETTINGS).exists()
            folder._begin({"settings": settings, "versions": _versions()})
            try:
                yield folder
            except ProctorError:
                if not begun and not any(file.stat().st_size for file in path.rglob(STEPS)):
                    folder._empty(remove=new)
                raise

    def _empty(self, *, remove: bool) -> None:
        """Removes everything that the run has written, and the folder itself with `remove`."""
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        if remove:
            self.path.rmdir()

    @staticmethod
    def _take(path: Path, lock: BinaryIO) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(path, found="a training under way in another process", expected="one at a time") from error

    def _begin(self, wanted: dict[str, JsonValue]) -> None:
        file = self.path / SETTINGS
        if not file.exists():
            others = sorted(path.name for path in self.path.iterdir() if path.name != ".lock")
            if others:
                raise InputError(self.path, found=f"{others[0]} in it", expected="a new folder, or one of a training")
            write_whole(file, json.dumps(wanted, indent=1, ensure_ascii=False) + "\n")
            return
        known = read_json(file, "the settings of a training")
        wanted = load_json(json.dumps(wanted))
        changed = sorted(_differing(known, wanted))
        if changed:
            raise InputError(
                file, found=f"a training with other {', '.join(changed)}", expected="the same, or another folder"
            )
        self._cut_half_line()

    def _cut_half_line(self) -> None:
        file = self.path / STEPS
        if file.exists() and (raw := file.read_bytes()) and not raw.endswith(b"\n"):
            write_whole(file, raw[: raw.rfind(b"\n") + 1].decode())

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        found = self.path / CHECKPOINTS
        found.mkdir(exist_ok=True)
        return found

    @property
    def steps(self) -> list[dict[str, JsonValue]]:
        """The log lines in order, without those of steps that were repeated (see `forget_from`)."""
        file = self.path / STEPS
        found = read_jsonl(file, "the steps of a training") if file.exists() else []
        return [one for _, one in found if isinstance(one, dict)]

    def note(self, **values: JsonValue) -> None:
        """Adds a line to the log, such as a `step` with its loss, or an evaluation."""
        with (self.path / STEPS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(values, ensure_ascii=False) + "\n")

    def forget_from(self, step: int) -> None:
        """Removes the lines of `step` and later steps, which are repeated from a checkpoint."""
        kept = [one for one in self.steps if not (isinstance(one.get("step"), int) and int(str(one["step"])) >= step)]
        write_whole(self.path / STEPS, "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in kept))

    @property
    def finished(self) -> dict[str, JsonValue] | None:
        """The result of the run; None until it is finished."""
        file = self.path / FINISHED
        result = read_json(file, "the end of a training") if file.exists() else None
        return result if isinstance(result, dict) else None

    def finish(self, result: dict[str, JsonValue]) -> None:
        """Marks the run as finished."""
        write_whole(self.path / FINISHED, json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def _versions() -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _differing(known: object, wanted: object, location: str = "") -> Iterator[str]:
    """The places in which two JSON values differ, such as "settings.seed"."""
    if isinstance(known, dict) and isinstance(wanted, dict):
        for name in known.keys() | wanted.keys():
            yield from _differing(known.get(name), wanted.get(name), f"{location}.{name}" if location else str(name))
    elif known != wanted:
        yield location.removeprefix("settings.") or "content"


_COMPLETE = "complete.json"
_TRAINED = ("adapter_config.json", "adapter_model.safetensors")


@dataclass(frozen=True)
class CheckpointEvaluation:
    """The quality of a checkpoint: the one with the highest `value` (None: unknown) is kept. `log` is added to the run's log.
    `beside` are files, by name, that stay with the checkpoint's weights. `unusable` says why the checkpoint can't be used
    at all; empty if it can."""

    value: float | None
    log: dict[str, JsonValue] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)
    unusable: str = ""


Evaluate = Callable[[Weights], CheckpointEvaluation]


class Checkpoints:
    """The checkpoints of one run. `origin` is written to `proctor.json` beside the trained weights."""

    def __init__(
        self, weights: Weights, folder: RunFolder, evaluate: Evaluate | None, origin: Mapping[str, JsonValue]
    ) -> None:
        self.weights, self.folder, self._evaluate = weights, folder, evaluate
        self._origin = {**origin, "template_sha256": template_hash(weights)}

    def watch(self, trainer: Any, logged: Mapping[str, str], *, stops: Callable[[], bool] = lambda: False) -> None:
        """Makes a trainer of `transformers` note what it logs of each step (`logged`: our names by the library's), evaluate
        each saved checkpoint, and stop early once `stops` says so after a step."""
        from transformers import PrinterCallback, TrainerCallback

        checkpoints = self

        class Steps(TrainerCallback):  # type: ignore[misc]  # the library has no types
            def on_log(self, *seen: Any, logs: dict[str, float], **_: Any) -> None:
                _, state, control = seen
                values = {own: logs[name] for name, own in logged.items() if name in logs}
                if values:
                    checkpoints.folder.note(step=state.global_step, **values)
                    if stops():
                        control.should_training_stop = control.should_save = True

            def on_save(self, *seen: Any, model: Any, **_: Any) -> None:
                checkpoints.evaluated(seen[1].global_step, model)

        trainer.add_callback(Steps())
        trainer.remove_callback(PrinterCallback)

    def evaluated(self, step: int, model: Any) -> None:
        """Evaluates a checkpoint on disk, marks it as complete, and removes checkpoints that are neither the best nor this
        one."""
        line: dict[str, JsonValue] = {"step": step, "evaluation": None}
        here = self.folder.checkpoints / f"checkpoint-{step}"
        if self._evaluate is not None:
            with _undisturbed(model):
                found = self._evaluate(Weights.around("in training", model, self.weights.processor))
            line |= {"evaluation": found.value, **found.log, **({"unusable": found.unusable} if found.unusable else {})}
            (here / "beside").mkdir(exist_ok=True)
            for name, text in found.beside.items():
                write_whole(here / "beside" / name, text)
        self.folder.note(**line)
        write_whole(here / _COMPLETE, json.dumps(line) + "\n")
        kept = {step, self.best()["step"]}
        for path in self.folder.checkpoints.glob("checkpoint-*"):
            if _step(path) not in kept:
                shutil.rmtree(path)

    def best(self) -> dict[str, Any]:
        """The evaluation with the highest value, the first of ties; the last one if no value is known. One that can't be
        used is the best only if none can."""
        every = [step for step in self.folder.steps if "evaluation" in step]
        found = [step for step in every if "unusable" not in step] or every
        known = [one for one in found if one["evaluation"] is not None]
        return max(known, key=lambda one: float(str(one["evaluation"]))) if known else found[-1]

    def resumed(self) -> str | None:
        """The last complete checkpoint, or None. Later steps and incomplete checkpoints are removed."""
        complete = [path for path in self.folder.checkpoints.glob("checkpoint-*") if (path / _COMPLETE).exists()]
        last = max(complete, key=_step, default=None)
        self.folder.forget_from(0 if last is None else _step(last) + 1)
        for path in self.folder.checkpoints.glob("checkpoint-*"):
            if path not in complete:
                shutil.rmtree(path)
        return None if last is None else str(last)

    def publish(self, out: Path) -> dict[str, Any]:
        """Writes the best checkpoint's trained weights and files, without the optimizer's state, to the folder `out`, which
        appears complete or not at all. Returns the best evaluation. Raises `NothingLearnedError` if no checkpoint can be
        used."""
        best = self.best()
        if reason := str(best.get("unusable", "")):
            raise NothingLearnedError(f"{self.folder.path}: nothing was learned: {reason}. No weights were written.")
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
    """The origin of trained weights (base, its hash, and that of the chat template). Raises `InputError` if it is missing."""
    origin = read_json(trained / ORIGIN, "what the weights were trained from")
    if not isinstance(origin, dict):
        raise InputError(trained / ORIGIN, found="no object", expected="base, base_sha256 and template_sha256")
    return origin


@contextlib.contextmanager
def _undisturbed(model: Any) -> Iterator[None]:
    """Restores random states and the training mode after an evaluation."""
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
    """Silences the libraries' progress bars and warnings."""
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


def template_hash(weights: Weights) -> str:
    """The hash of the chat template, with which a model was trained."""
    return hashlib.sha256(str(weights.processor.chat_template).encode()).hexdigest()
