"""Which weights lie in a folder: tuned ones are told from those that they were made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.models.adapters import weights_hash


@pytest.mark.parametrize("weights", ["model.safetensors", "model.bin"])
def test_a_change_anywhere_is_seen_and_a_move_is_not(tmp_path: Path, weights: str) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / weights).write_bytes(bytes(9 * 2**20))
        (folder / "README.md").write_text(folder.name)
    assert weights_hash(one) == weights_hash(other) != ""
    tuned = bytearray(9 * 2**20)
    for position in range(0, len(tuned), 4096):
        tuned[position] = 1
    (other / weights).write_bytes(tuned)
    changed = weights_hash(other)
    assert changed != weights_hash(one)
    (other / "config.json").write_text("{ }")
    assert weights_hash(other) != changed
    assert weights_hash(tmp_path / "none") == ""
