"""`proctor media cache`: what is kept, what is damaged, and what goes first."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from proctor.media import kept
from tests.support.picture_maker import ask
from tests.support.program import proctor


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Three entries; the first was read longest ago."""
    folder = tmp_path / "cache"
    for number in range(3):
        ask(folder, tmp_path / "log", [number])
    for age, entry in zip((3000, 2000, 1000), kept(folder), strict=True):
        os.utime(entry.path, (time.time() - age, time.time() - age))
    return folder


def told(*given: str | Path) -> tuple[Any, str, int]:
    done = proctor("media", "cache", *given, "--format", "json")
    return (json.loads(done.stdout) if done.stdout else None), done.stderr, done.returncode


def test_entries_are_listed_oldest_first(cache: Path) -> None:
    rows, said, code = told("--cache", cache)
    entries = kept(cache)
    assert [(row["entry"], row["bytes"], row["of"]) for row in rows] == [
        (str(e.path), e.size, e.source()) for e in entries
    ]
    assert f"3 entries, {sum(entry.size for entry in entries) / 1e6:.1f} MB" in said
    assert code == 0


def test_the_oldest_are_pruned(cache: Path) -> None:
    before = [str(entry.path) for entry in kept(cache)]
    size = kept(cache)[0].size
    rows, said, code = told("--cache", cache, "--prune", str(2 * size))
    assert [row["entry"] for row in rows] == before[:1]
    assert f"1 entry removed, {size / 1e6:.1f} MB" in said
    assert [str(entry.path) for entry in kept(cache)] == before[1:]
    assert (code, told("--cache", cache, "--prune", "0")[0] is not None, kept(cache)) == (0, True, [])


@pytest.mark.parametrize("remove", [False, True])
def test_damage_is_told(cache: Path, remove: bool) -> None:
    victim = kept(cache)[1].path
    victim.write_bytes(victim.read_bytes()[:-9])
    rows, said, code = told("--cache", cache, "--verify", *(["--remove"] if remove else []))
    assert [row["entry"] for row in rows] == [str(victim)]
    assert f"1 damaged entry{' removed' if remove else ''}" in said
    assert code == (0 if remove else 1)
    assert len(kept(cache)) == (2 if remove else 3)
    rows, said, code = told("--cache", cache, "--verify", "--remove")
    assert ([] if remove else [str(victim)], code) == ([row["entry"] for row in rows], 0)
    assert ("0 damaged entries\n" if remove else "1 damaged entry removed") in said


def test_what_does_not_go_together() -> None:
    assert "--verify and --prune are two commands. Give one of them." in told("--verify", "--prune", "1KB")[1]
    assert "--remove works with --verify only" in told("--remove")[1]
