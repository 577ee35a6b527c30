"""Decoding runs ahead of the model, within bounds, and changes nothing but when frames are made."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Picture

from proctor.core import Frame, Image, InputError, Item, Region, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, RecordsShown, view, viewer
from proctor.media.look_ahead import LookAhead, Request
from proctor.media.pictures import FrameEncoder
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.virtual_time import until


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three short videos, each of its own content."""
    root = tmp_path_factory.mktemp("media")
    for number in range(3):
        video = ClockVideo(times_ms=range(0, 4000 + 100 * number, 100), rate=10)
        write_clock_video(root / f"v{number}.mp4", video)
    return root


def clip(item_id: str, source: str) -> Item:
    media = (VideoClip(source=source),)
    return Item(id=item_id, group=source, question="?", answer=BinaryFormat(), media=media)


def at_rest() -> bool:
    """Whether nobody works ahead any more: from then on nothing is made that was not asked for."""
    return not any(thread.name == "look-ahead" for thread in threading.enumerate())


def entries(cache: Path) -> int:
    return len(list(cache.rglob("*.zip")))


def test_the_next_items_frames_are_there_before_they_are_asked_for(root: Path, tmp_path: Path) -> None:
    items = [clip(f"q{number}", f"v{number}") for number in range(3)]
    library = MediaLibrary(root, cache_dir=tmp_path / "ahead")
    views = viewer(items, "video", library)
    shown = [asyncio.run(views(items[0]).frames(count=5))]
    until(lambda: entries(tmp_path / "ahead") == 3)
    shown += [asyncio.run(views(item).frames(count=5)) for item in items[1:]]
    assert entries(tmp_path / "ahead") == 3
    alone = MediaLibrary(root, cache_dir=tmp_path / "alone")
    assert shown == [asyncio.run(view(item, "video", alone).frames(count=5)) for item in items]


@pytest.mark.parametrize("condition", ["shuffled", "black", "other-video", "text-only"])
def test_it_changes_no_frame_under_any_condition(root: Path, tmp_path: Path, condition: str) -> None:
    items = [clip(f"q{number}", f"v{number % 3}") for number in range(5)]

    async def ahead() -> list[list[Frame]]:
        views = viewer(items, condition, MediaLibrary(root, cache_dir=tmp_path / "a"), seed=3, others=items)
        return [await views(item).frames(fps=2.0) for item in items]

    async def plain() -> list[list[Frame]]:
        library = MediaLibrary(root, cache_dir=tmp_path / "b")
        return [await view(item, condition, library, seed=3, others=items).frames(fps=2.0) for item in items]

    assert asyncio.run(ahead()) == asyncio.run(plain())


def test_what_is_broken_ahead_is_told_when_it_is_asked_for(root: Path, tmp_path: Path) -> None:
    items = [clip("q0", "v0"), clip("gone", "gone"), clip("q2", "v2")]
    views = viewer(items, "video", MediaLibrary(root, cache_dir=tmp_path))
    asyncio.run(views(items[0]).frames(count=2))
    until(lambda: entries(tmp_path) == 2)
    with pytest.raises(InputError, match=r"gone: below .*: found no such file"):
        asyncio.run(views(items[1]).frames(count=2))


def test_a_window_says_nothing_of_what_comes_next(root: Path, tmp_path: Path) -> None:
    items = [clip("q0", "v0"), clip("q1", "v1")]
    views = viewer(items, "video", MediaLibrary(root, cache_dir=tmp_path))
    asyncio.run(views(items[0]).frames(count=2, window=(0.0, 1.0)))
    until(at_rest)
    assert entries(tmp_path) == 1


def test_what_was_made_ahead_is_not_made_again_when_it_is_asked_for(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first item's frames are made while it waits; the second one's were made meanwhile."""
    makers: list[str] = []
    encode = FrameEncoder.jpeg

    def watched(encoder: FrameEncoder, *shot: Any) -> bytes:
        makers.append(threading.current_thread().name)
        return encode(encoder, *shot)

    monkeypatch.setattr(FrameEncoder, "jpeg", watched)
    items = [clip("q0", "v0"), clip("q1", "v1")]
    views = viewer(items, "video", MediaLibrary(root, cache_dir=tmp_path))
    asyncio.run(views(items[0]).frames(fps=10.0))
    until(lambda: entries(tmp_path) == 2 and at_rest())
    made = len(makers)
    assert made == 40 + 41
    assert len(asyncio.run(views(items[1]).frames(fps=10.0))) == 41
    assert len(makers) == made


class Recorder:
    """Notes what is prepared, and holds it up until told."""

    def __init__(self) -> None:
        self.prepared: list[str] = []
        self.go = threading.Event()

    def __call__(self, item: Item, request: Request) -> None:
        self.prepared.append(f"{item.id} {request.count}")
        assert self.go.wait(600)


def test_it_stays_eight_items_ahead_and_leaves_out_what_was_faster() -> None:
    items = [clip(f"q{number}", "v") for number in range(20)]
    prepare = Recorder()
    ahead = LookAhead(items, prepare)
    ahead.asked(items[0], Request(count=4))
    until(lambda: prepare.prepared == ["q1 4"])
    ahead.asked(items[5], Request(count=4))
    prepare.go.set()
    until(lambda: len(prepare.prepared) == 9)
    assert prepare.prepared[1:] == [f"q{number} 4" for number in range(6, 14)]
    ahead.asked(items[2], Request(count=4))
    ahead.asked(items[19], Request(count=4))
    until(at_rest)
    assert len(prepare.prepared) == 9


def test_an_item_that_nobody_announced_is_no_matter() -> None:
    prepare = Recorder()
    LookAhead([clip("q0", "v")], prepare).asked(clip("else", "v"), Request())
    assert prepare.prepared == []


def still(item_id: str, *sources: str, region: Region | None = None) -> Item:
    media = tuple(Image(source=one, label=chr(65 + position), region=region) for position, one in enumerate(sources))
    return Item(id=item_id, group="g", question="?", answer=BinaryFormat(), media=media)


def test_images_in_memory_are_shown_at_once_as_the_same_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        Picture.new("RGB", (64, 64), (80 * number + 60, 0, 0)).save(tmp_path / f"{number}.png")
    half = Region(x=0.0, y=0.0, width=0.5, height=0.5)
    items = [still("q0", "0.png", "1.png"), still("q1", "1.png", "0.png"), still("q2", "0.png", "1.png", region=half)]
    library, asked = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache"), list[str]()
    first = view(items[0], "video", library)
    frames = asyncio.run(first.frames())
    workers = MediaLibrary.workers

    def counted() -> ThreadPoolExecutor:
        asked.append("threads")
        return workers()

    monkeypatch.setattr(MediaLibrary, "workers", staticmethod(counted))
    again, other = (view(one, "video", library) for one in items[:2])
    assert asyncio.run(again.frames()) == frames
    assert [one.jpeg for one in asyncio.run(other.frames())] == [frames[1].jpeg, frames[0].jpeg]
    assert [one.label for one in asyncio.run(other.frames())] == ["A", "B"]
    assert isinstance(again, RecordsShown)
    assert isinstance(first, RecordsShown)
    assert again.shown == first.shown  # it is on record in the same way
    assert asked == []
    assert [len(one.jpeg) for one in asyncio.run(view(items[2], "video", library).frames())] != [
        len(one.jpeg) for one in frames
    ]
    black = asyncio.run(view(items[0], "black", library).frames())
    assert frames[0].jpeg not in {one.jpeg for one in black}
    assert asked == ["threads"] * 2


def test_what_is_ready_is_not_prepared() -> None:
    items = [still(f"q{number}", "0.png") for number in range(6)]
    prepared: list[str] = []
    ready = {"q1", "q3", "q4"}
    ahead = LookAhead(items, lambda item, _: prepared.append(item.id), lambda item, _: item.id in ready)
    ahead.asked(items[0], Request())
    until(at_rest)
    assert prepared == ["q2", "q5"]
