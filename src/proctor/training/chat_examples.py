"""Examples for fine-tuning: the question as the model is asked it, and what it should reply."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from proctor.core import InputError, ProctorError
from proctor.models import Query, Weights

_IGNORED = -100  # what the libraries leave out of the loss


@dataclass(frozen=True)
class ChatExample:
    """A question, just as it is asked when the model is used, and the reply to learn. `cluster` is what no split parts:
    an encounter, a video."""

    query: Query
    answer: str
    cluster: str


@dataclass(frozen=True)
class ExampleLengths:
    """Tokens of each example: of the question (its pictures included), of the pictures alone, of the reply."""

    questions: tuple[int, ...]
    pictures: tuple[int, ...]
    replies: tuple[int, ...]

    @property
    def longest(self) -> int:
        """The tokens of the longest example."""
        return max(question + reply for question, reply in zip(self.questions, self.replies, strict=True))

    def told(self) -> str:
        """For people.

        >>> ExampleLengths((90, 100), (64, 0), (10, 12)).told()
        'questions of 90 to 100 tokens (median 95; 0 to 64 of them pictures), replies of 10 to 12'
        """
        pictures = f"; {min(self.pictures)} to {max(self.pictures)} of them pictures" if any(self.pictures) else ""
        return (
            f"questions of {min(self.questions)} to {max(self.questions)} tokens (median {median(self.questions):g}"
            f"{pictures}), replies of {min(self.replies)} to {max(self.replies)}"
        )


def measure(weights: Weights, examples: Sequence[ChatExample]) -> ExampleLengths:
    """How long examples are for a model. Raises `InputError` for none, and for those that are longer than the model
    reads: nothing is ever cut."""
    if not examples:
        raise InputError("examples", found="none", expected="some to learn from")
    questions, pictures = [], []
    image = getattr(weights.processor, "image_token_id", None)
    for one in examples:
        ids = weights.encoded([one.query])["input_ids"][0]
        questions.append(len(ids))
        pictures.append(0 if image is None else int((ids == image).sum()))
    replies = tuple(len(weights.reply_tokens(one.answer)) for one in examples)
    found = ExampleLengths(tuple(questions), tuple(pictures), replies)
    most = getattr(weights.model.config.get_text_config(), "max_position_embeddings", None)
    if most is not None and found.longest > most:
        many = sum(asked + said > most for asked, said in zip(found.questions, found.replies, strict=True))
        told = f"{many} of {len(examples)} longer than that, the longest {found.longest}"
        raise InputError("examples", found=told, expected=f"at most {most} tokens, as many as the model reads")
    return found


def collate(weights: Weights, examples: Sequence[ChatExample]) -> dict[str, Any]:
    """A batch for training: questions as they are asked, replies after them, padded on the right; only the replies'
    tokens (with the one that ends them) count in the loss.

    Raises `ProctorError` where the labels do not spell the replies.
    """
    import torch

    found = dict(weights.prompts([one.query for one in examples]))
    ids, mask = found["input_ids"], found["attention_mask"].bool()
    replies = [weights.reply_tokens(one.answer) for one in examples]
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


def template_hash(weights: Weights) -> str:
    """The hash of the chat template, which is part of what a model learned."""
    return hashlib.sha256(str(weights.processor.chat_template).encode()).hexdigest()
