"""A LoRA adapter for a tiny model, with random weights or with none that do anything."""

from __future__ import annotations

from pathlib import Path


def make_adapter(base: Path, folder: Path, *, std: float = 0.3, seed: int = 0) -> Path:
    """Writes an adapter of rank 4 on all linear layers of the language model; with `std` 0 it changes nothing."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForImageTextToText

    torch.manual_seed(seed)
    model = AutoModelForImageTextToText.from_pretrained(base)
    tuned = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear"))
    for name, weight in tuned.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=std) if std else torch.nn.init.zeros_(weight)
    tuned.save_pretrained(folder)
    return folder
