"""Which weights lie in a folder: a hash that tells tuned ones from those that they were made of."""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["weights_hash"]

_BLOCK = 2**16
_BLOCKS = 64
_NAMES = ("*.safetensors", "*.json", "*.jinja", "*.txt", "*.model")


def weights_hash(folder: Path) -> str:
    """A hash of a folder's weights, configuration, tokenizer and templates; "" where there is no such folder (a name of
    the hub, whose files are not known before they are loaded).

    Of a large file its size and 64 blocks of 64 KB count, spread over the whole of it: training changes all of them,
    and tens of gigabytes need not be read.
    """
    folder = folder.expanduser()
    if not folder.is_dir():
        return ""
    digest = hashlib.sha256()
    for file in sorted({file for name in _NAMES for file in folder.glob(name) if file.is_file()}):
        size = file.stat().st_size
        digest.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as stream:
            if size <= _BLOCK * _BLOCKS:
                digest.update(stream.read())
                continue
            for number in range(_BLOCKS):
                stream.seek(number * (size - _BLOCK) // (_BLOCKS - 1))
                digest.update(stream.read(_BLOCK))
    return digest.hexdigest()
