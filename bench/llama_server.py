"""llama.cpp's own server with a vision model whose weights are drawn at random: it takes pictures and can read nothing.

`pip install xllamacpp gguf` (wheels with llama.cpp's server; no weights are downloaded). The model has the architecture of
LLaVA in miniature: a byte tokenizer, two layers of text, two of vision (CLIP), a projector. `--blind` leaves the vision part
out, as a server does that was started without `--mmproj`. Its first line of output is its URL. `bench/sight.py --llama` starts it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import gguf
import numpy as np

_WIDE, _HEADS, _LAYERS, _INNER = 64, 4, 2, 128
_SIDE, _PATCH = 56, 14
_CONTEXT = 16_384
_SPECIAL = ("<unk>", "<s>", "</s>")


def text_model(file: Path, draw: np.random.Generator) -> None:
    """A llama of two layers, whose tokens are bytes."""
    writer: Any = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDE)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDE // _HEADS)
    tokens = [*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:")
    _matrix(writer, draw, "token_embd.weight", len(tokens), _WIDE)
    _matrix(writer, draw, "output.weight", len(tokens), _WIDE)
    writer.add_tensor("output_norm.weight", np.ones(_WIDE, np.float32))
    for layer in range(_LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(_WIDE, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            _matrix(writer, draw, f"blk.{layer}.{name}.weight", _WIDE, _WIDE)
        _matrix(writer, draw, f"blk.{layer}.ffn_gate.weight", _INNER, _WIDE)
        _matrix(writer, draw, f"blk.{layer}.ffn_up.weight", _INNER, _WIDE)
        _matrix(writer, draw, f"blk.{layer}.ffn_down.weight", _WIDE, _INNER)
    _finish(writer)


def vision_part(file: Path, draw: np.random.Generator) -> None:
    """A CLIP of two layers, and LLaVA's projector."""
    writer: Any = gguf.GGUFWriter(file, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "mlp")
    writer.add_bool("clip.use_gelu", True)
    for name, number in (
        ("image_size", _SIDE),
        ("patch_size", _PATCH),
        ("embedding_length", _WIDE),
        ("feed_forward_length", _INNER),
        ("projection_dim", _WIDE),
        ("attention.head_count", _HEADS),
        ("block_count", _LAYERS),
    ):
        writer.add_uint32(f"clip.vision.{name}", number)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])
    places = (_SIDE // _PATCH) ** 2 + 1
    writer.add_tensor("v.class_embd", draw.normal(0, 1, _WIDE).astype(np.float32))
    patches = draw.normal(0, 0.05, (_WIDE, 3, _PATCH, _PATCH)).astype(np.float32)
    writer.add_tensor("v.patch_embd.weight", patches)
    _matrix(writer, draw, "v.position_embd.weight", places, _WIDE)
    for name in ("v.pre_ln", "v.post_ln"):
        _norm(writer, name)
    for layer in range(_LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            _linear(writer, draw, f"v.blk.{layer}.{name}", _WIDE, _WIDE)
        _linear(writer, draw, f"v.blk.{layer}.ffn_up", _INNER, _WIDE)
        _linear(writer, draw, f"v.blk.{layer}.ffn_down", _WIDE, _INNER)
        for name in ("ln1", "ln2"):
            _norm(writer, f"v.blk.{layer}.{name}")
    for name in ("mm.0", "mm.2"):
        _linear(writer, draw, name, _WIDE, _WIDE)
    _finish(writer)


def _matrix(writer: Any, draw: np.random.Generator, name: str, rows: int, columns: int) -> None:
    writer.add_tensor(name, draw.normal(0, 1 / np.sqrt(columns), (rows, columns)).astype(np.float32))


def _linear(writer: Any, draw: np.random.Generator, name: str, rows: int, columns: int) -> None:
    _matrix(writer, draw, f"{name}.weight", rows, columns)
    writer.add_tensor(f"{name}.bias", np.zeros(rows, np.float32))


def _norm(writer: Any, name: str) -> None:
    writer.add_tensor(f"{name}.weight", np.ones(_WIDE, np.float32))
    writer.add_tensor(f"{name}.bias", np.zeros(_WIDE, np.float32))


def _finish(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Makes the weights, and serves them until the process is ended."""
    import xllamacpp

    given = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    given.add_argument("--blind", action="store_true", help="Without the vision part.")
    options = given.parse_args()
    draw = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        text, vision = Path(folder) / "text.gguf", Path(folder) / "mmproj.gguf"
        text_model(text, draw)
        vision_part(vision, draw)
        params = xllamacpp.CommonParams()
        params.model.path = str(text)
        params.n_ctx = _CONTEXT
        params.n_parallel = 1
        params.n_predict = 16
        params.warmup = False
        if not options.blind:
            params.mmproj.path = str(vision)
        server = xllamacpp.Server(params)
        sys.stdout.write(f"{server.listening_address}/v1\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
