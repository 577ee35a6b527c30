"""A text encoder of the BERT family with random weights and a vocabulary of given texts, made in a moment."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


def make_tiny_encoder(folder: Path, texts: Iterable[str], *, layers: int = 2, seed: int = 0) -> Path:
    """Writes weights, configuration and tokenizer (a token a word, or a Chinese character) into the folder."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(seed)
    words = sorted({word for text in texts for word in re.findall(r"[一-鿿]|\w+|[^\w\s]", text)})
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words]
    plain = Tokenizer(models.WordLevel({word: k for k, word in enumerate(names)}, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    plain.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=64,
    )
    config = BertConfig(
        vocab_size=len(names),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=2,
        max_position_embeddings=64,
    )
    model = BertModel(config)
    for name, weight in model.named_parameters():  # far from the usual tiny ones, so that words tell
        if "LayerNorm" not in name and weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
