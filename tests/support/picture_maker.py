"""Asks a frame store for pictures in a process of its own, and writes down each one that it had to make."""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from proctor.media.frame_archive import EncodedFrame, FrameSet, Key
from proctor.media.frame_store import FrameStore

FRAMES = FrameSet("content", {"max_side": 64}, name="v")


def jpeg_of(key: Key) -> bytes:
    """Not a JPEG, but bytes that tell which picture they stand for."""
    return f"picture {key} ".encode() * 50


def ask(
    folder: Path, log: Path, wanted: Sequence[int], gate: Path | None = None, frame_set: FrameSet = FRAMES
) -> dict[Key, bytes]:
    """Serves these pictures; each made one is appended to the log as `process frame set timestamp`, a whole
    decoding as `process frame set done`. With a gate, who has begun goes on once that file is there."""

    def make(missing: Sequence[Key], _kept: Container[Key]) -> Iterator[EncodedFrame]:
        for number, pts in enumerate(missing):
            _note(log, f"{os.getpid()} {frame_set.content} {pts}")
            while number == len(missing) // 2 and gate is not None and not gate.exists():
                time.sleep(0.01)
            yield EncodedFrame(pts, int(pts) / 10, jpeg_of(pts))
        _note(log, f"{os.getpid()} {frame_set.content} done")

    return FrameStore(folder).serve(frame_set, wanted, make)


def hold(folder: Path) -> None:
    """Reads a picture, says so with a file `held`, and waits to be killed."""
    store = FrameStore(folder)
    assert store.serve(FRAMES, [1], lambda _missing, _kept: []) == {1: jpeg_of(1)}
    (folder / "held").touch()
    time.sleep(3600)


def _note(log: Path, line: str) -> None:
    with log.open("a") as out:
        out.write(line + "\n")


def entries(folder: Path) -> list[Path]:
    """The files of a store."""
    return sorted(folder.rglob("*.zip"))


def make(missing: Sequence[Key], _kept: Container[Key]) -> Iterator[EncodedFrame]:
    """What `jpeg_of` says of each."""
    yield from (EncodedFrame(pts, None, jpeg_of(pts)) for pts in missing)
