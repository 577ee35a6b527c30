"""Fine-tune a model on a benchmark (`train_answerer`), and verify a trained judge (`check_parity`)."""

# No `from __future__ import annotations`: the command line reads these annotations.

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar, Unpack

from proctor.core import (
    DASH,
    Benchmark,
    ConfigurationError,
    InputError,
    Option,
    count_of,
    percent,
    pip_install,
    plain_table,
    shell_word,
)
from proctor.reports import FrameLike, Record
from proctor.shell import (
    Draws,
    LoraOptions,
    ShownOptions,
    checked,
    condition_names,
    filled,
    library_as,
    loaded_as,
    need_media,
    parts_of,
)

if TYPE_CHECKING:
    from proctor.core import Table
    from proctor.models import ModelClient
    from proctor_train import AnswererRehearsal, AnswererTraining, LoraSettings, TrainedAnswerer

T = TypeVar("T")


class AnswererOptions(ShownOptions, LoraOptions, total=False):
    """How an answerer is trained. The validation part is this `share` of the benchmark's items, drawn by `seed`, as for
    `choose`. Both parts are shown under `condition`. A clip that is longer than its frames gives `windows` examples."""

    share: Annotated[float, Option("The share of the validation part.", default=0.2, low=0, high=1)]
    condition: Annotated[
        str, Option("What may be seen, in training and validation.", default="video", names=condition_names)
    ]
    windows: Annotated[int, Option("Examples of each long clip, at drawn moments.", default=1, low=1)]
    draws: Draws


@dataclass(frozen=True)
class AnswererTable(FrameLike):
    """A row for each checkpoint, with its mean accuracy over the buckets of the validation part."""

    data: "TrainedAnswerer"

    @property
    def rows(self) -> list[Record]:
        """The step, the mean with its interval, and whether the checkpoint was chosen."""
        return [
            {
                "step": checkpoint.step,
                "mean": checkpoint.accuracy.value,
                "ci_low": checkpoint.accuracy.ci_low,
                "ci_high": checkpoint.accuracy.ci_high,
                "questions": checkpoint.accuracy.n,
                "groups": checkpoint.accuracy.groups,
                "chosen": checkpoint.chosen,
            }
            for checkpoint in self.data.checkpoints
        ]

    @property
    def title(self) -> str:
        """The title of the table."""
        return "Checkpoints on the validation part"

    @property
    def notes(self) -> tuple[str, ...]:
        """Baselines to compare with, and the next command."""
        known = ", ".join(f"{name} {percent(value)}" for name, value in self.data.baselines.items())
        told = [f"Examples: {self.data.lengths}."] if self.data.lengths else []
        told += [f"Without looking: {known}."] if known else []
        flatters = "The chosen checkpoint's figure flatters, since it was chosen by it: examine it on other videos."
        return (*told, flatters, f"Next: proctor run BENCHMARK --model {shell_word(self.data.model)}")

    @property
    def tables(self) -> "list[Table]":
        """Checkpoints in the order of training."""
        heads = (">step", ">mean over buckets", ">interval", ">questions", ">groups", "")
        return [plain_table(self.title, heads, [_checkpoint_cells(row) for row in self.rows])]


@dataclass(frozen=True)
class RehearsalTable(FrameLike):
    """A row for each text-only baseline, with its mean accuracy over the buckets of the validation part."""

    data: "AnswererRehearsal"

    @property
    def rows(self) -> list[Record]:
        """The system's name, the mean, and its interval."""
        return [
            {"system": name, "mean": one.value, "ci_low": one.ci_low, "ci_high": one.ci_high}
            for name, one in self.data.baselines.items()
        ]

    @property
    def title(self) -> str:
        """The title of the table."""
        return "Without looking, on the validation part"

    @property
    def notes(self) -> tuple[str, ...]:
        """Lengths of the examples, memory, and near-duplicate media across the parts."""
        return f"Examples: {self.data.lengths}.", f"{self.data.memory}: an estimate.", self._alike()

    @property
    def tables(self) -> "list[Table]":
        """The baselines with their accuracy."""
        rows = [(str(row["system"]), percent(row["mean"]), _between(row)) for row in self.rows]
        return [plain_table(self.title, ("system", ">mean over buckets", ">interval"), rows)]

    def _alike(self) -> str:
        from proctor_train import PICTURES

        pairs = self.data.alike
        how = f"by {PICTURES} pictures of each video; proctor media duplicates compares more"
        if not pairs:
            return f"No medium of one part looks like one of the other, {how}."
        first = " and ".join(pairs[0])
        return f"{count_of(len(pairs), 'pair')} of media across the parts look the same ({first}), {how}."


def _between(row: Record) -> str:
    return DASH if row["ci_low"] is None else f"{percent(row['ci_low'])} to {percent(row['ci_high'])}"


def _checkpoint_cells(row: Record) -> tuple[str, ...]:
    counts = str(row["questions"]), str(row["groups"])
    return str(row["step"]), percent(row["mean"]), _between(row), *counts, "kept" if row["chosen"] else ""


@dataclass(frozen=True)
class AnswererPlan:
    """A training whose input is checked. Weights are not loaded yet."""

    what: "AnswererTraining"
    out: Path

    @property
    def notes(self) -> tuple[str, ...]:
        """The sizes of the training and validation parts."""
        what = self.what
        groups = [len({item.group for item in part.counted()}) for part in (what.training, what.validation)]
        told = f"{count_of(len(what.lessons), 'example')} from {count_of(groups[0], 'group')}; "
        examined = count_of(len(what.validation.counted()), "question")
        told += f"{examined} in {count_of(groups[1], 'other group')} to examine it by"
        left = (
            f"Left out: {count_of(what.left_out, 'training question')} without a reference that can be said."
            if what.left_out
            else ""
        )
        return (told, *([left] if left else []))

    def rehearse(self) -> "RehearsalTable":
        """Estimate the cost of the training and compute the baselines, without loading the weights. Raises `InputError`
        for examples that are too long."""
        from proctor_train import rehearse_answerer

        return RehearsalTable(rehearse_answerer(self.what))

    def make(self) -> AnswererTable:
        """Train, or continue a training that was stopped."""
        from proctor_train.answerer import fine_tune_answerer

        return AnswererTable(fine_tune_answerer(self.what, self.out))


def arrange_answerer(
    benchmark: str | Path | Benchmark, base: str | Path, out: str | Path, **options: Unpack[AnswererOptions]
) -> AnswererPlan:
    """The first step of `train_answerer`: read and check everything."""
    from importlib.util import find_spec

    from proctor.core import reader_or_default
    from proctor.systems import ModelSystem, Sampling, prompt_for_benchmark
    from proctor_train import AnswererTraining

    given = filled("train_answerer", AnswererOptions, options)
    missing = [name for name in ("torch", "peft", "trl") if find_spec(name) is None]
    if missing:
        raise ConfigurationError(f"{' and '.join(missing)} missing: {pip_install('train')}")
    loaded = loaded_as(benchmark, {**given, "store": None})
    loaded = replace(loaded, only={}) if given["all_items"] else loaded
    library = library_as(loaded, given)
    need_media(loaded, loaded.counted(), library, [given["condition"]])
    sounding = any(item.sounding for item in loaded.items)
    choice = given["prompt"] or ("" if loaded.prompt is None else str(loaded.prompt))
    prompt = prompt_for_benchmark(loaded.read_by, choice, sounding=sounding)
    briefing, sampling = reader_or_default(loaded.read_by).briefing, Sampling(video_as=given["video_as"])

    def system(client: "ModelClient", name: str) -> ModelSystem:
        return ModelSystem(client, prompt, name or None, sampling, briefing)

    training, validation = parts_of(loaded, library, given["share"], given["seed"])
    what = AnswererTraining(
        base=Path(base).expanduser(),
        training=training,
        validation=validation,
        library=library,
        system=system,
        condition=given["condition"],
        lora=lora_settings(given),
        windows=given["windows"],
        draws=given["draws"],
        seed=given["seed"],
    )
    return AnswererPlan(what, Path(out))


def train_answerer(
    benchmark: str | Path | Benchmark, base: str | Path, out: str | Path, **options: Unpack[AnswererOptions]
) -> AnswererTable:
    """Fine-tune local weights (the folder `base`) to answer a benchmark's questions.

    Training uses the same prompt, pictures and times as `run`. After each epoch, the checkpoint is evaluated on a
    validation part that shares no group and no medium with the training part. `out` receives the adapter of the best
    checkpoint, its card, and the answers of every checkpoint (`evaluations.db`). Call it again to continue where it
    stopped.

    Raises `InputError` and `ConfigurationError` before training if input is missing or does not fit. The command is
    `proctor train answerer`.
    """
    return outside_of_loops(arrange_answerer(benchmark, base, out, **options).make)


def outside_of_loops(work: Callable[[], T]) -> T:
    """Run a function that starts event loops of its own; in another thread if a loop runs in this one (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, "proctor-training") as pool:
        return pool.submit(work).result()


class ParityOptions(TypedDict, total=False):
    """How a trained judge is verified. `base_url` is your own server, which serves `model`; by default a server is
    started. `export` is a new folder for the judge, without its training data."""

    base_url: Annotated[str | None, Option("A server with the merged weights. [default: its own]", default=None)]
    model: Annotated[str, Option("The name of the weights at that server.", default="judge")]
    export: Annotated[Path | None, Option("Write adapter, merged weights and card there.", default=None)]
    device: Annotated[str, Option("cpu, cuda, or a GPU where there is one.", default="auto")]


@dataclass(frozen=True)
class ParityCheck:
    """The differences between the paths (`table`), faults, and the folder that the judge was exported to."""

    table: "Table"
    faults: tuple[str, ...]
    exported: Path | None


def check_parity(run: str | Path, **options: Unpack[ParityOptions]) -> ParityCheck:
    """Compare the scores of a trained judge on up to 50 items: in the trainer's memory, with the adapter loaded again,
    merged, and served over HTTP. `run` is the folder of the training; merged weights are written into it.

    A judge with a fault is not exported. Raises `InputError` for a folder without a trained judge, and if the folder to
    export to exists. The command is `proctor check judge`.
    """
    from proctor.models import ModelSpec
    from proctor_train import check_run, export_run

    given, folder = filled("check_parity", ParityOptions, options), Path(run)
    if given["export"] is not None and given["export"].exists():
        raise InputError(given["export"], found="something there", expected="a new folder")
    server = None if given["base_url"] is None else ModelSpec(name=given["model"], base_url=given["base_url"])
    report = check_run(folder, server=server, device=given["device"])
    exported = None if given["export"] is None or report.faults else export_run(folder, given["export"])
    return ParityCheck(report.table(), report.faults, exported)


def lora_settings(given: Mapping[str, Any]) -> "LoraSettings":
    """The settings for these options and the `seed`. Raises `InputError` for an invalid value."""
    from proctor_train import LoraSettings

    return checked(LoraSettings, **{name: given[name] for name in (*LoraOptions.__annotations__, "seed")})
