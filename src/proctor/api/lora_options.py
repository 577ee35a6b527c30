"""How weights are fine-tuned: the options of every trainer that has adapters."""

# No `from __future__ import annotations`: the command line reads these annotations.

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from proctor.api.access import checked
from proctor.core import Option

if TYPE_CHECKING:
    from proctor.training import LoraSettings

_TRAINING = "Training"


class LoraOptions(TypedDict, total=False):
    """How weights are fine-tuned (see `proctor.training.LoraSettings`)."""

    rank: Annotated[int, Option("The adapter's rank; 0 trains all weights.", default=16, low=0, group=_TRAINING)]
    alpha: Annotated[int, Option("The adapter's scale is alpha over rank.", default=32, low=1, group=_TRAINING)]
    dropout: Annotated[float, Option("Dropout in the adapter.", default=0.0, low=0, high=1, group=_TRAINING)]
    vision: Annotated[bool, Option("Adapt the picture encoder, too.", default=False, group=_TRAINING)]
    learning_rate: Annotated[float, Option("The highest rate of learning.", default=2e-4, group=_TRAINING)]
    epochs: Annotated[int, Option("Passes over the examples.", default=3, low=1, group=_TRAINING)]
    batch: Annotated[int, Option("Examples that run together.", default=4, low=1, group=_TRAINING)]
    accumulate: Annotated[int, Option("Batches of one step.", default=1, low=1, group=_TRAINING)]
    evaluate_every: Annotated[
        int, Option("Steps between evaluations. [default: an epoch]", default=0, low=0, group=_TRAINING)
    ]
    checkpointing: Annotated[bool, Option("Save memory, spend time.", default=False, group=_TRAINING)]
    device: Annotated[str, Option("cpu, cuda, or a GPU where there is one.", default="auto", group=_TRAINING)]
    dtype: Annotated[str, Option("float32, bfloat16, or the weights' own.", default="auto", group=_TRAINING)]


def lora_settings(given: Mapping[str, Any]) -> "LoraSettings":
    """The settings of these options, with the `seed` that stands beside them. Raises `InputError` for a value that makes
    no sense."""
    from proctor.training import LoraSettings

    return checked(LoraSettings, **{name: given[name] for name in (*LoraOptions.__annotations__, "seed")})
