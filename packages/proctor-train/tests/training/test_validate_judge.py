"""`proctor check judge`: its options arrive, a fault is refused and exports nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proctor.core import Table, columns
from proctor_train import validation
from tests.support.program import proctor


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the comparison was asked for; the first entry is what it finds."""
    calls: list[Any] = [()]

    def check_run(run: Path, **how: Any) -> Any:
        calls.append((run, how))
        return SimpleNamespace(
            faults=calls[0], table=lambda: Table("Paths.", columns("path", ">items"), (("memory", 4),))
        )

    def export_run(run: Path, out: Path) -> Path:
        calls.append(("exported", out))
        return out

    monkeypatch.setattr(validation, "check_run", check_run)
    monkeypatch.setattr(validation, "export_run", export_run)
    return calls


def test_a_judge_that_is_the_same_everywhere_is_exported(asked: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = proctor("check", "judge", tmp_path, "--option", f"export={out}", "--option", "device=cpu")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"the same judge on every path: {out}" in done.stdout
    assert asked[1:] == [(tmp_path, {"server": None, "device": "cpu"}), ("exported", out)]


def test_a_server_of_ones_own_is_named(asked: list[Any], tmp_path: Path) -> None:
    address = "http://localhost:8000/v1"
    done = proctor("check", "judge", tmp_path, "--option", f"base_url={address}", "--option", "model=mine")
    assert done.returncode == 0
    server = asked[1][1]["server"]
    assert (server.name, server.base_url) == ("mine", address)


def test_a_fault_is_no_export(asked: list[Any], tmp_path: Path) -> None:
    asked[0] = ("merged: 3 of 4 scores differ",)
    done = proctor("check", "judge", tmp_path, "--option", f"export={tmp_path / 'out'}")
    assert done.returncode == 1
    assert "merged: 3 of 4 scores differ" in done.stdout
    assert not any(call[0] == "exported" for call in asked[1:])


def test_an_unknown_option_is_refused(asked: list[Any], tmp_path: Path) -> None:
    done = proctor("check", "judge", tmp_path, "--option", "epochs=3")
    assert done.returncode == 1
    assert "expected one of export, base_url, model, device" in done.stderr
    assert asked[1:] == []
