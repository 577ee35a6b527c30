"""A Whisper of two layers with drawn weights, in the form that faster-whisper loads: it hears letters in any sound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

WIDTH, INNER, MELS = 16, 32, 80
LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SPECIAL = (
    "endoftext",
    "startoftranscript",
    "translate",
    "transcribe",
    "startoflm",
    "startofprev",
    "nospeech",
    "notimestamps",
)


def write_tiny_whisper(folder: Path, seed: int = 2) -> Path:
    """The folder: weights, vocabulary, tokenizer. It knows English alone."""
    from ctranslate2.specs import WhisperSpec  # loads PyTorch

    folder.mkdir(parents=True)
    tokenizer = _tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    tokens = [str(tokenizer.id_to_token(number)) for number in range(tokenizer.get_vocab_size())]
    spec = WhisperSpec(1, 2, 1, 2)
    _fill(spec, tokens, np.random.default_rng(seed))
    spec.register_vocabulary(tokens)
    spec.config.suppress_ids, spec.config.suppress_ids_begin = [], []
    spec.config.alignment_heads, spec.config.lang_ids = [(0, 0), (0, 1)], []
    spec.validate()
    spec.save(str(folder))
    (folder / "preprocessor_config.json").write_text(json.dumps({"feature_size": MELS}))
    return folder


def _tokenizer() -> Tokenizer:
    letters = {token: number for number, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(f"<|{name}|>", special=True) for name in _SPECIAL])
    tokenizer.add_special_tokens([AddedToken(f"<|{n * 0.02:.2f}|>", special=True) for n in range(1501)])
    return tokenizer


def _fill(spec: Any, tokens: list[str], rng: np.random.Generator) -> None:
    def drawn(*shape: int, scale: float = 0.2) -> Any:
        return rng.normal(0, scale, shape).astype(np.float32)

    def linear(part: Any, out: int, into: int) -> None:
        part.weight, part.bias = drawn(out, into), drawn(out)

    def norm(part: Any) -> None:
        part.gamma, part.beta = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)

    def attention(part: Any, sizes: tuple[int, ...]) -> None:
        norm(part.layer_norm)
        for one, size in zip(part.linear, sizes, strict=True):
            linear(one, size, WIDTH)

    def feed_forward(part: Any) -> None:
        norm(part.layer_norm)
        linear(part.linear_0, INNER, WIDTH)
        linear(part.linear_1, WIDTH, INNER)

    encoder, decoder = spec.encoder, spec.decoder
    encoder.conv1.weight, encoder.conv1.bias = drawn(WIDTH, MELS, 3), drawn(WIDTH)
    encoder.conv2.weight, encoder.conv2.bias = drawn(WIDTH, WIDTH, 3), drawn(WIDTH)
    encoder.position_encodings.encodings = drawn(1500, WIDTH, scale=1)
    decoder.position_encodings.encodings = drawn(448, WIDTH, scale=4)  # another letter each time
    for layer in encoder.layer:
        attention(layer.self_attention, (3 * WIDTH, WIDTH))
        feed_forward(layer.ffn)
    for layer in decoder.layer:
        attention(layer.self_attention, (3 * WIDTH, WIDTH))
        attention(layer.attention, (WIDTH, 2 * WIDTH, WIDTH))
        feed_forward(layer.ffn)
    norm(encoder.layer_norm)
    norm(decoder.layer_norm)
    table = drawn(len(tokens), WIDTH, scale=1)
    likely = dict.fromkeys(LETTERS, 2.0) | {"Ġ": 3.0, "<|endoftext|>": 1.5}
    table[:, 0] = [likely.get(token, -1.0) for token in tokens]
    decoder.embeddings.weight, decoder.projection.weight = table, table
    decoder.layer_norm.beta[0] = 3.0  # letters and spaces are likelier than anything else
