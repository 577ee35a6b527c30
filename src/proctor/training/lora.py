"""Supervised fine-tuning with low-rank adapters. The one module that imports PEFT and TRL's `SFTTrainer`.

The library trains; what is asked and what counts in the loss is decided here. The library's own ways have failed others:
a length limit that cuts picture tokens (trl#5927), a loss on the question (trl#3751).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import content_hash
from proctor.models import ORIGIN, Weights, check_adapter, weights_hash
from proctor.training.chat_examples import ChatExample, collate, measure
from proctor.training.checkpoints import Checkpoints, Evaluate, quiet

if TYPE_CHECKING:
    from proctor.training.run_folder import RunFolder

BESIDE_LANGUAGE = r".*(vision_tower|vision_model|visual|multi_modal_projector).*"


class LoraSettings(BaseModel):
    """How a model is fine-tuned. The defaults are as published (Hao and Liu 2026: rank 16, α 32), on every linear
    layer of the language model; with `vision`, of its picture encoder, too. A rank of 0 trains all weights.

    A step learns from `batch` × `accumulate` examples; the rate of learning rises over the first `warmup` of all steps
    and falls to 0. Evaluation is each `evaluate_every` steps (0: after each epoch), and each time a checkpoint is kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    rank: int = Field(default=16, ge=0)
    alpha: int = Field(default=32, ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    vision: bool = False
    learning_rate: float = Field(default=2e-4, gt=0)
    epochs: int = Field(default=3, ge=1)
    batch: int = Field(default=4, ge=1)
    accumulate: int = Field(default=1, ge=1)
    warmup: float = Field(default=0.05, ge=0, le=1)
    weight_decay: float = Field(default=0.0, ge=0)
    evaluate_every: int = Field(default=0, ge=0)
    checkpointing: bool = False
    device: str = "auto"
    dtype: str = "auto"
    seed: int = 0


def fine_tune(
    base: Path,
    examples: Sequence[ChatExample],
    settings: LoraSettings,
    folder: RunFolder,
    evaluate: Evaluate | None = None,
) -> Path:
    """Trains a copy of `base` to reply to each query with its answer; the folder of the best checkpoint's adapter (or,
    at rank 0, of all its weights), which says in `proctor.json` from which base it was trained with which template.

    `evaluate` is given the model as it is and may ask it anything: it changes nothing of how training goes on. Without
    it, or where no value was known, the last checkpoint is taken. A run that was killed goes on from its last complete
    checkpoint as if nothing had been; one that is done returns what it made.

    Raises `InputError` for examples that are too long, and `ConfigurationError` for a base that does not load.
    """
    out = folder.path / ("adapter" if settings.rank else "weights")
    if folder.finished is not None:
        return out
    weights = Weights(f"transformers:{base}", str(base), settings.device, settings.dtype)
    weights.load()
    lengths = measure(weights, examples)
    run = Checkpoints(weights, folder, evaluate, {"base": str(base), "base_sha256": weights_hash(base)})
    trainer = _trainer(run, examples, lengths.questions, settings)
    last = run.resumed()
    with quiet():
        trainer.train(resume_from_checkpoint=last)
    folder.finish({"best": run.publish(out), "lengths": lengths.told(), "examples": len(examples)})
    return out


def data_hash(examples: Sequence[ChatExample]) -> str:
    """The hash of all that is learned from, in its order."""
    rows: list[JsonValue] = []
    for one in examples:
        parts: list[JsonValue] = [
            part if isinstance(part, str) else content_hash(repr(part)) for part in one.query.parts
        ]
        rows.append([one.query.system, parts, one.answer, one.cluster])
    return content_hash(rows)


def lora_config(settings: LoraSettings, weights: Weights) -> Any:
    """PEFT's configuration of an adapter of these weights."""
    from peft import LoraConfig

    beside = None if settings.vision or not weights.takes_pictures else BESIDE_LANGUAGE

    return LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules="all-linear",
        exclude_modules=beside,
        task_type="CAUSAL_LM",
    )


def with_adapter(base: Path, trained: Path, *, device: str = "auto", dtype: str = "auto") -> Weights:
    """What `fine_tune` made of a base, loaded as it is wherever it is used. Raises `ConfigurationError` for the adapter
    of another base, and for one without effect."""
    name = trained_name(base, trained)
    if name != str(trained):
        check_adapter(name, str(base), trained)
    weights = Weights(f"transformers:{name}", name, device, dtype)
    weights.load()
    return weights


def trained_name(base: Path, trained: Path) -> str:
    """How `transformers:` names what `fine_tune` made of a base: BASE+ADAPTER, or the folder of whole weights alone."""
    return f"{base}+{trained}" if (trained / "adapter_config.json").exists() else str(trained)


def trainable_adapter(base: Path, adapter: Path, *, device: str = "auto", dtype: str = "auto") -> Weights:
    """The library's own model of a base with an adapter, which can be trained further, and merged. Raises
    `ConfigurationError` for the adapter of another base."""
    from peft import PeftModel

    name = f"transformers:{base}+{adapter}"
    check_adapter(name, str(base), adapter)
    weights = Weights(f"transformers:{base}", str(base), device, dtype)
    weights.load()
    with quiet():
        model = PeftModel.from_pretrained(weights.model, str(adapter), is_trainable=True).eval()
    return Weights.around(name, model, weights.processor)


def merge(base: Path, adapter: Path, out: Path, *, dtype: str = "auto") -> Path:
    """Writes the base's weights with the adapter's added to them, and all that is needed to use them."""
    weights = trainable_adapter(base, adapter, device="cpu", dtype=dtype)
    with quiet():
        weights.model.merge_and_unload().save_pretrained(out)
    weights.processor.save_pretrained(out)
    shutil.copy2(adapter / ORIGIN, out / ORIGIN)
    return out


def _trainer(run: Checkpoints, examples: Sequence[ChatExample], lengths: Sequence[int], settings: LoraSettings) -> Any:
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import SFTTrainer

    class Steps(TrainerCallback):  # type: ignore[misc]  # the library has no types
        """Notes the loss, and evaluates what was saved."""

        def on_log(self, *seen: Any, logs: dict[str, float], **_: Any) -> None:
            if "loss" in logs:
                told = {name: logs[name] for name in ("loss", "learning_rate", "grad_norm") if name in logs}
                run.folder.note(step=seen[1].global_step, **told)

        def on_save(self, *seen: Any, model: Any, **_: Any) -> None:
            run.evaluated(seen[1].global_step, model)

    steps = -(-len(examples) // (settings.batch * settings.accumulate))
    rows = Dataset.from_dict({"place": list(range(len(examples))), "length": list(lengths)})
    with quiet():
        trainer = SFTTrainer(
            model=run.weights.model,
            args=_arguments(run.folder, settings, steps),
            train_dataset=rows,
            data_collator=lambda some: collate(run.weights, [examples[one["place"]] for one in some]),
            processing_class=run.weights.processor,
            callbacks=[Steps()],
            peft_config=lora_config(settings, run.weights) if settings.rank else None,
        )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _arguments(folder: RunFolder, settings: LoraSettings, steps: int) -> Any:
    from trl import SFTConfig

    return SFTConfig(
        output_dir=str(folder.checkpoints),
        max_length=None,  # nothing is cut: lengths were measured
        per_device_train_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulate,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=round(settings.warmup * steps * settings.epochs),
        weight_decay=settings.weight_decay,
        gradient_checkpointing=settings.checkpointing,
        train_sampling_strategy="group_by_length",
        length_column_name="length",
        logging_steps=1,
        save_strategy="steps",
        save_steps=settings.evaluate_every or steps,
        report_to="none",
        seed=settings.seed,
        bf16=False,
        use_cpu=settings.device == "cpu",
        remove_unused_columns=False,
        dataset_kwargs={"skip_prepare_dataset": True},
        dataloader_pin_memory=False,
        disable_tqdm=True,
    )
