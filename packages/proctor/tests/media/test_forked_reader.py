"""A process that forks after it has read a video, as a data loader does: the fork reads on, and never waits for threads
that it does not have."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from proctor.media import MediaLibrary, MediaSettings
from proctor.media.library import Picture
from tests.support import killed_child
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.killed_child import in_a_fork

LIVELY = MediaSettings(max_side=64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_clock_video(tmp_path / "v.mp4", ClockVideo(range(0, 8000, 40), keyint=50, b_frames=2))
    return tmp_path


def library(folder: Path, name: str) -> MediaLibrary:
    return MediaLibrary(folder, settings=LIVELY, cache_dir=folder / name)


def seen(made: MediaLibrary, times: list[float]) -> list[bytes]:
    return made.jpegs([Picture("v.mp4", time) for time in times])


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killed_child, "_HANGS_S", 120.0)


def test_a_fork_collects_what_its_parent_decoded_with(folder: Path) -> None:
    held = [library(folder, "a")]
    seen(held[0], [1.0, 1.04])

    def work() -> None:
        held.clear()
        gc.enable()
        gc.collect()

    assert in_a_fork(work) == 0


def test_a_fork_reads_on_with_its_parents_library(folder: Path) -> None:
    times, later = [0.2, 1.0, 1.04], [2.0, 3.0, 5.0, 6.04]
    expected = seen(library(folder, "a"), later)
    made = library(folder, "b")
    seen(made, times)

    def work() -> int:
        gc.enable()
        return 0 if seen(made, later) == expected else 1

    assert in_a_fork(work) == 0
    assert seen(made, later) == expected
