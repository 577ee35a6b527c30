"""Checkpoints of an answerer's training as rows."""

from __future__ import annotations

from proctor_train import answerer_training


def test_a_checkpoint_is_a_row() -> None:
    row = {"step": 12, "mean": 0.5, "ci_low": 0.25, "ci_high": 0.75, "questions": 40, "groups": 8, "chosen": True}
    assert answerer_training._checkpoint_cells(row) == ("12", "50.0 %", "25.0 % to 75.0 %", "40", "8", "kept")
    assert answerer_training._checkpoint_cells(row | {"ci_low": None, "chosen": False})[2:] == ("–", "40", "8", "")
