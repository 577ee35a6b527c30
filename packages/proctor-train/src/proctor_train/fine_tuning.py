"""Supervised fine-tuning with low-rank adapters: the examples, the memory that training needs, and the trainer. The only
module that imports PEFT and TRL's `SFTTrainer`.

The library trains; the prompts and the tokens that count in the loss are decided here. The library's own ways have failed
others: a length limit that cuts picture tokens (trl#5927), a loss on the question (trl#3751).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import Field, JsonValue

from proctor.core import FrozenModel, InputError, ProctorError, content_hash
from proctor.models import ORIGIN, Query, Weights, check_adapter, weights_hash
from proctor_train.run_folder import Checkpoints, Evaluate, RunFolder, quiet

_IGNORED = -100  # the label that the libraries leave out of the loss


@dataclass(frozen=True)
class ChatExample:
    """A question, exactly as it is asked when the model is used, and the reply to learn. `cluster` is the unit that no split
    divides: an encounter, or a video."""

    query: Query
    answer: str
    cluster: str


@dataclass(frozen=True)
class ExampleLengths:
    """The tokens of each example: of the question with its pictures, of the pictures alone, and of the reply."""

    questions: tuple[int, ...]
    pictures: tuple[int, ...]
    replies: tuple[int, ...]

    @property
    def longest(self) -> int:
        """The tokens of the longest example."""
        return max(question + reply for question, reply in zip(self.questions, self.replies, strict=True))

    def summary(self) -> str:
        """The ranges in words.

        >>> ExampleLengths((90, 100), (64, 0), (10, 12)).summary()
        'questions of 90 to 100 tokens (median 95; 0 to 64 of them pictures), replies of 10 to 12'
        """
        pictures = f"; {min(self.pictures)} to {max(self.pictures)} of them pictures" if any(self.pictures) else ""
        return (
            f"questions of {min(self.questions)} to {max(self.questions)} tokens (median {median(self.questions):g}"
            f"{pictures}), replies of {min(self.replies)} to {max(self.replies)}"
        )


def measure(weights: Weights, examples: Sequence[ChatExample]) -> ExampleLengths:
    """The lengths of examples for a model. Raises `InputError` for no examples, and for examples longer than the model's
    limit: nothing is ever cut."""
    if not examples:
        raise InputError("examples", found="none", expected="some to learn from")
    questions, pictures = [], []
    image = getattr(weights.processor, "image_token_id", None)
    for example in examples:
        ids = weights.encoded([example.query])["input_ids"][0]
        questions.append(len(ids))
        pictures.append(0 if image is None else int((ids == image).sum()))
    replies = tuple(len(weights.reply_tokens(example.answer)) for example in examples)
    found = ExampleLengths(tuple(questions), tuple(pictures), replies)
    limit = getattr(weights.model.config.get_text_config(), "max_position_embeddings", None)
    if limit is not None and found.longest > limit:
        many = sum(question + reply > limit for question, reply in zip(found.questions, found.replies, strict=True))
        longer = f"{many} of {len(examples)} longer than that, the longest {found.longest}"
        raise InputError("examples", found=longer, expected=f"at most {limit} tokens, as many as the model reads")
    return found


def collate(weights: Weights, examples: Sequence[ChatExample]) -> dict[str, Any]:
    """A batch for training: questions as they are asked, followed by the replies, padded on the right. Only the tokens of
    the replies, including the end token, count in the loss.

    Raises `ProctorError` if the labels do not decode to the replies.
    """
    import torch

    found = dict(weights.prompts([example.query for example in examples]))
    ids, mask = found["input_ids"], found["attention_mask"].bool()
    replies = [weights.reply_tokens(example.answer) for example in examples]
    counts = [int(row.sum()) + len(reply) for row, reply in zip(mask, replies, strict=True)]
    padding = weights.tokenizer.pad_token_id or 0
    fills = {"input_ids": padding, "attention_mask": 0}
    batch: dict[str, Any] = {}
    for name, value in found.items():
        if not (torch.is_tensor(value) and value.shape == ids.shape):
            batch[name] = value
            continue
        rows = value.new_full((len(examples), max(counts)), fills.get(name, 0))
        for row, (own, reply) in enumerate(zip(mask, replies, strict=True)):
            asked = counts[row] - len(reply)
            rows[row, :asked] = value[row][own]
            if name in fills:
                rows[row, asked : counts[row]] = torch.tensor(reply) if name == "input_ids" else 1
        batch[name] = rows
    labels = torch.full_like(batch["input_ids"], _IGNORED)
    for row, reply in enumerate(replies):
        labels[row, counts[row] - len(reply) : counts[row]] = torch.tensor(reply)
    batch["labels"] = labels
    _check_labels(weights, batch, examples)
    return batch


def _check_labels(weights: Weights, batch: dict[str, Any], examples: Sequence[ChatExample]) -> None:
    for row, one in zip(batch["labels"], examples, strict=True):
        learned = weights.tokenizer.decode(row[row != _IGNORED], skip_special_tokens=True)
        if one.answer not in learned:
            raise ProctorError(f"training would not learn the reply {one.answer!r}, but {learned!r}")


BESIDE_LANGUAGE = r".*(vision_tower|vision_model|visual|multi_modal_projector).*"


class LoraSettings(FrozenModel):
    """The settings of fine-tuning. The defaults are as published (Hao and Liu 2026: rank 16, α 32), on every linear layer of
    the language model, and with `vision` also of its picture encoder. A rank of 0 trains all weights.

    A step learns from `batch` × `accumulate` examples. The learning rate rises over the share `warmup` of all steps and
    then falls to 0. The model is evaluated and a checkpoint saved every `evaluate_every` steps (0: after each epoch).
    """

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
    """Trains a copy of `base` to reply to each query with its answer. Returns the folder of the best checkpoint's adapter
    (or, at rank 0, of all its weights), whose `proctor.json` names the base and the chat template.

    `evaluate` may ask the model in training anything without influence on the training. Without it, or if no value is
    known, the last checkpoint is the best. A run that was killed continues from its last complete checkpoint with the
    same result; for a finished run the existing folder is returned.

    Raises `InputError` for examples that are too long, `ConfigurationError` for a base that does not load, and
    `NothingLearnedError` if no checkpoint can be used.
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
    folder.finish({"best": run.publish(out), "lengths": lengths.summary(), "examples": len(examples)})
    return out


def data_hash(examples: Sequence[ChatExample]) -> str:
    """The hash of all examples, in their order."""
    rows: list[JsonValue] = []
    for example in examples:
        parts: list[JsonValue] = [
            part if isinstance(part, str) else content_hash(repr(part)) for part in example.query.parts
        ]
        rows.append([example.query.system, parts, example.answer, example.cluster])
    return content_hash(rows)


def lora_config(settings: LoraSettings, weights: Weights) -> Any:
    """PEFT's configuration of an adapter for these weights."""
    from peft import LoraConfig

    return LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules="all-linear",
        exclude_modules=None if settings.vision or not weights.takes_pictures else BESIDE_LANGUAGE,
        task_type="CAUSAL_LM",
    )


def with_adapter(base: Path, trained: Path, *, device: str = "auto", dtype: str = "auto") -> Weights:
    """The result of `fine_tune`, loaded as everywhere else. Raises `ConfigurationError` for the adapter of another base, and
    for an adapter without effect."""
    name = trained_name(base, trained)
    if name != str(trained):
        check_adapter(name, str(base), trained)
    weights = Weights(f"transformers:{name}", name, device, dtype)
    weights.load()
    return weights


def trained_name(base: Path, trained: Path) -> str:
    """The name of a result of `fine_tune` in `transformers:`: BASE+ADAPTER, or the folder of complete weights."""
    return f"{base}+{trained}" if (trained / "adapter_config.json").exists() else str(trained)


def trainable_adapter(base: Path, adapter: Path, *, device: str = "auto", dtype: str = "auto") -> Weights:
    """A base with an adapter as PEFT's model, which can be trained further and merged. Raises `ConfigurationError` for the
    adapter of another base."""
    from peft import PeftModel

    name = f"transformers:{base}+{adapter}"
    check_adapter(name, str(base), adapter)
    weights = Weights(f"transformers:{base}", str(base), device, dtype)
    weights.load()
    with quiet():
        model = PeftModel.from_pretrained(weights.model, str(adapter), is_trainable=True).eval()
    return Weights.around(name, model, weights.processor)


def merge(base: Path, adapter: Path, out: Path, *, dtype: str = "auto") -> Path:
    """Writes the base's weights with the adapter merged into them, and all files that are needed to use them."""
    weights = trainable_adapter(base, adapter, device="cpu", dtype=dtype)
    with quiet():
        weights.model.merge_and_unload().save_pretrained(out)
    weights.processor.save_pretrained(out)
    shutil.copy2(adapter / ORIGIN, out / ORIGIN)
    return out


def _trainer(run: Checkpoints, examples: Sequence[ChatExample], lengths: Sequence[int], settings: LoraSettings) -> Any:
    from datasets import Dataset
    from trl import SFTTrainer

    steps = -(-len(examples) // (settings.batch * settings.accumulate))
    rows = Dataset.from_dict({"row": list(range(len(examples))), "length": list(lengths)})
    with quiet():
        trainer = SFTTrainer(
            model=run.weights.model,
            args=_arguments(run.folder, settings, steps),
            train_dataset=rows,
            data_collator=lambda some: collate(run.weights, [examples[one["row"]] for one in some]),
            processing_class=run.weights.processor,
            peft_config=lora_config(settings, run.weights) if settings.rank else None,
        )
    run.watch(trainer, {name: name for name in ("loss", "learning_rate", "grad_norm")})
    return trainer


def _arguments(folder: RunFolder, settings: LoraSettings, steps: int) -> Any:
    from trl import SFTConfig

    return SFTConfig(
        output_dir=str(folder.checkpoints),
        max_length=None,  # nothing is cut: `measure` has checked the lengths
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


_OPTIMIZED = 16  # bytes of a trained parameter: itself, its gradient and two moments, 4 each
_KEPT = 34  # bytes of activations per layer, token and column at 16 bits (Korthikanti et al. 2022)
_GIB = 2**30


@dataclass(frozen=True)
class Footprint:
    """The number of parameters and of trained parameters, and the bytes of the weights, of training (gradients and the
    optimizer's state), and of the activations of a batch of the longest examples."""

    numbers: int
    trained: int
    weights: int
    optimizer: int
    activations: int

    def summary(self) -> str:
        """The numbers in words.

        >>> Footprint(8_000_000_000, 40_000_000, 16 * 2**30, 2**29, 4 * 2**30).summary()
        '8000.0 M numbers, 40.0 M of them trained; about 20.5 GiB (weights 16.0, training 0.5, a batch 4.0)'
        """
        sizes = [one / _GIB for one in (self.weights, self.optimizer, self.activations)]
        return (
            f"{self.numbers / 1e6:.1f} M numbers, {self.trained / 1e6:.1f} M of them trained; about {sum(sizes):.1f} GiB "
            f"(weights {sizes[0]:.1f}, training {sizes[1]:.1f}, a batch {sizes[2]:.1f})"
        )


def footprint(weights: Weights, lengths: ExampleLengths, settings: LoraSettings) -> Footprint:
    """A rough estimate of the memory that training needs; `weights` may be without data. With `checkpointing`, layers keep
    only their inputs, except one at a time."""
    model, text = weights.model, weights.model.config.get_text_config()
    numbers = sum(parameter.numel() for parameter in model.parameters())
    size = 2 if str(getattr(model, "dtype", "")).endswith("16") else 4
    trained = numbers if settings.rank == 0 else settings.rank * _adapted(weights, settings)
    layers, width, tokens = text.num_hidden_layers, text.hidden_size, lengths.longest * settings.batch
    kept = 2 * layers + _KEPT if settings.checkpointing else _KEPT * layers
    return Footprint(numbers, trained, numbers * size, trained * _OPTIMIZED, tokens * width * kept * size // 2)


def _adapted(weights: Weights, settings: LoraSettings) -> int:
    """The sum of the inputs and outputs of all layers with an adapter."""
    import torch

    beside = None if settings.vision or not weights.takes_pictures else re.compile(BESIDE_LANGUAGE)
    head = weights.model.get_output_embeddings()
    return sum(
        one.in_features + one.out_features
        for name, one in weights.model.named_modules()
        if isinstance(one, torch.nn.Linear) and one is not head and not (beside and beside.fullmatch(name))
    )
