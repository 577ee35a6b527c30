"""Broken files, for every reader: each is read or refused in one line. `bench/fuzz.py` does the same for as long as one
likes, with bounds of time and memory."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.support.fuzzing import TARGETS, one_case

CASES = 60
FEW = {"store": 12, "clinicalskillqa": 20, "documents": 6, "prompt": 15}  # what costs more a case


@pytest.mark.parametrize("name", TARGETS)
def test_the_good_files_are_read(name: str, tmp_path: Path) -> None:
    TARGETS[name].write(tmp_path)
    TARGETS[name].read(tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_broken_files_are_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    logging.disable(logging.CRITICAL)
    try:
        found = []
        for seed in range(FEW.get(name, CASES)):
            folder = tmp_path / str(seed)
            folder.mkdir()
            found.append(one_case(name, seed, folder))
    finally:
        logging.disable(logging.NOTSET)
    assert any(one != "accepted" for one in found)


def test_what_an_hour_found_stays_mended(tmp_path: Path) -> None:
    """What it found in stores is in `test_damaged_store.py`: where a change of their tables does not move it."""
    assert one_case("tracks", 1_006_470, tmp_path) != "accepted"
