"""What is said of a pack whose figures are others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import proctor_challenge
from tests.support.program import proctor


@pytest.mark.parametrize(
    ("wrong", "found"), [(["a is 1", "b is 2", "c is 3", "d is 4"], "a is 1; b is 2; c is 3"), ([], "no figures")]
)
def test_a_pack_with_other_figures(
    wrong: list[str], found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README.md").touch()
    checked = SimpleNamespace(phase="test", ok=False, wrong=wrong)
    monkeypatch.setattr(proctor_challenge, "check_pack", lambda *_: [checked])
    done = proctor("challenge", "pack", "codabench", tmp_path, "--out", tmp_path, "--check")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"phase test: found {found}, expected Proctor's own figures" in " ".join(done.stderr.split())
