"""A model of the CLIP family with random weights, small enough to be made in a second."""

from __future__ import annotations

from pathlib import Path

_SIDE = 32


def make_tiny_clip(folder: Path) -> Path:
    """Writes weights, configuration, tokenizer (one token a letter) and processor into the folder."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import CLIPConfig, CLIPModel, CLIPProcessor, PreTrainedTokenizerFast
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    torch.manual_seed(0)
    letters = ["<pad>", "<s>", "</s>", "<unk>", *(chr(code) for code in range(32, 127))]
    plain = Tokenizer(models.WordLevel({word: k for k, word in enumerate(letters)}, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=16,
    )
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = CLIPConfig(
        text_config={
            **small,
            "vocab_size": len(letters),
            "max_position_embeddings": 16,
            "eos_token_id": 2,
            "bos_token_id": 1,
            "pad_token_id": 0,
        },
        vision_config={**small, "image_size": _SIDE, "patch_size": 8},
        projection_dim=8,
    )
    model = CLIPModel(config)
    for weight in model.parameters():  # far from the usual tiny ones, so that pictures and words count
        torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder)
    size = {"height": _SIDE, "width": _SIDE}
    CLIPProcessor(CLIPImageProcessorPil(size=size, crop_size=size, do_center_crop=False), tokenizer).save_pretrained(
        folder
    )
    return folder
