"""The options of fine-tuning are the settings of fine-tuning, with the same defaults."""

from __future__ import annotations

import pytest

from proctor.core import InputError
from proctor.shell.model_options import LoraOptions
from proctor.shell.options import declared
from proctor_train import LoraSettings
from proctor_train.answerer_training import lora_settings


def test_an_option_has_the_default_of_its_setting() -> None:
    defaults = {name: option.default for name, (_, option) in declared(LoraOptions).items()}
    fields = {name: field.default for name, field in LoraSettings.model_fields.items()}
    assert defaults == {name: value for name, value in fields.items() if name not in {"seed", "warmup", "weight_decay"}}
    assert lora_settings({**defaults, "rank": 4, "seed": 7}) == LoraSettings(rank=4, seed=7)
    with pytest.raises(InputError, match="learning_rate: found 0, expected"):
        lora_settings({**defaults, "learning_rate": 0, "seed": 0})
