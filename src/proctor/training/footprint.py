"""What fine-tuning takes, told before it starts: a bound on the memory, from the model's form alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.models import Weights
from proctor.training.lora import BESIDE_LANGUAGE, LoraSettings

if TYPE_CHECKING:
    from proctor.training.chat_examples import ExampleLengths

_OPTIMIZED = 16  # bytes of a trained number: itself, its gradient and two moments, 4 each
_KEPT = 34  # bytes that a layer keeps for a token and each of its columns at 16 bits (Korthikanti et al. 2022)
_GIB = 2**30


@dataclass(frozen=True)
class Footprint:
    """Numbers of the base and those that are trained; bytes for the base's weights, for what is trained (with gradients
    and the optimizer's state), and for what a batch of the longest examples keeps."""

    numbers: int
    trained: int
    weights: int
    optimizer: int
    activations: int

    def told(self) -> str:
        """For people.

        >>> Footprint(8_000_000_000, 40_000_000, 16 * 2**30, 2**29, 4 * 2**30).told()
        '8000.0 M numbers, 40.0 M of them trained; about 20.5 GiB (weights 16.0, training 0.5, a batch 4.0)'
        """
        sizes = [one / _GIB for one in (self.weights, self.optimizer, self.activations)]
        return (
            f"{self.numbers / 1e6:.1f} M numbers, {self.trained / 1e6:.1f} M of them trained; about {sum(sizes):.1f} GiB "
            f"(weights {sizes[0]:.1f}, training {sizes[1]:.1f}, a batch {sizes[2]:.1f})"
        )


def footprint(weights: Weights, lengths: ExampleLengths, settings: LoraSettings) -> Footprint:
    """The memory that training takes, roughly; `weights` may be empty ones. With `checkpointing`, a layer keeps its
    input alone, and one layer at a time all."""
    model, text = weights.model, weights.model.config.get_text_config()
    numbers = sum(one.numel() for one in model.parameters())
    size = 2 if str(getattr(model, "dtype", "")).endswith("16") else 4
    trained = numbers if settings.rank == 0 else settings.rank * _adapted(weights, settings)
    layers, width, tokens = text.num_hidden_layers, text.hidden_size, lengths.longest * settings.batch
    kept = 2 * layers + _KEPT if settings.checkpointing else _KEPT * layers
    return Footprint(numbers, trained, numbers * size, trained * _OPTIMIZED, tokens * width * kept * size // 2)


def _adapted(weights: Weights, settings: LoraSettings) -> int:
    """Inputs and outputs of all layers that an adapter is put on."""
    import torch

    beside = None if settings.vision or not weights.takes_pictures else re.compile(BESIDE_LANGUAGE)
    head = weights.model.get_output_embeddings()
    return sum(
        one.in_features + one.out_features
        for name, one in weights.model.named_modules()
        if isinstance(one, torch.nn.Linear) and one is not head and not (beside and beside.fullmatch(name))
    )
