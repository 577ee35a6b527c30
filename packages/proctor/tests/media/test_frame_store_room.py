"""The frame store makes room: what was not read for longest goes, and nothing that somebody reads or fills."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import time
from pathlib import Path

from proctor.media import kept, prune
from proctor.media.frame_archive import FrameSet
from proctor.media.frame_store import FrameStore
from tests.support.picture_maker import FRAMES, ask, entries, hold, jpeg_of, make
from tests.support.virtual_time import until

PROCESSES = multiprocessing.get_context("spawn")


def test_what_was_not_read_for_longest_makes_room(tmp_path: Path) -> None:
    for number in range(4):
        ask(tmp_path, tmp_path / "log", [number])
    entries_by_age = entries(tmp_path)
    for age, entry in zip((4000, 1000, 3000, 2000), entries_by_age, strict=True):
        os.utime(entry, (time.time() - age, time.time() - age))
    assert [entry.path for entry in kept(tmp_path)] == [entries_by_age[k] for k in (0, 2, 3, 1)]
    size = entries_by_age[0].stat().st_size
    removed = prune(tmp_path, 2 * size)
    assert [entry.path for entry in removed] == [entries_by_age[0], entries_by_age[2]]
    assert removed[0].size == size
    assert prune(tmp_path, 2 * size) == []


def test_making_room_spares_what_a_store_reads(tmp_path: Path) -> None:
    ask(tmp_path, tmp_path / "log", [1])
    (entry,) = entries(tmp_path)
    reading = FrameStore(tmp_path)
    assert reading.serve(FRAMES, [1], make) == {1: jpeg_of(1)}
    os.utime(entry, (0, 0))
    assert prune(tmp_path, 0) == []
    del reading
    assert [gone.path for gone in prune(tmp_path, 0)] == [entry]
    assert entries(tmp_path) == []


def test_making_room_spares_what_is_filled(tmp_path: Path) -> None:
    ask(tmp_path, tmp_path / "log", [1])
    (entry,) = entries(tmp_path)
    with (entry.parent / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert prune(tmp_path, 0) == []
    assert [gone.source() or gone.path.name for gone in prune(tmp_path, 0)] == [entry.name]


def test_only_the_frame_sets_that_were_read_last_are_held(tmp_path: Path) -> None:
    """One store reads 136 frame sets: the first eight may go, the last 128 stay."""
    store = FrameStore(tmp_path)
    for number in range(136):
        before = set(entries(tmp_path))
        store.serve(FrameSet(f"content{number}", {}, name=f"v{number}"), [1], make)
        (entry,) = set(entries(tmp_path)) - before
        os.utime(entry, (number, number))  # the file system's clock is too coarse to tell them apart
    assert {entry.source() for entry in kept(tmp_path)[:8]} == {f"v{number}" for number in range(8)}
    removed = prune(tmp_path, 0)
    assert len(removed) == 8
    assert len(entries(tmp_path)) == 128


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    ask(tmp_path, tmp_path / "log", [1])
    process = PROCESSES.Process(target=hold, args=(tmp_path,))
    process.start()
    until((tmp_path / "held").exists)
    assert prune(tmp_path, 0) == []
    process.kill()
    process.join()
    assert len(prune(tmp_path, 0)) == 1


def test_a_bounded_store_makes_room_by_itself(tmp_path: Path) -> None:
    ask(tmp_path, tmp_path / "log", [1])
    (old,) = entries(tmp_path)
    os.utime(old, (0, 0))
    store = FrameStore(tmp_path, max_bytes=1)
    store.serve(FrameSet("another", {}), [2], make)
    assert old not in entries(tmp_path)
    assert len(entries(tmp_path)) == 1
