"""The frame store: what is there is never made again, whoever asks, and whoever is killed."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import re
import signal
import struct
import sys
import threading
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.core import ConfigurationError, InputError, Item, VideoClip, read_arrays, write_arrays
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, MediaSettings, damaged, kept, view
from proctor.media.frame_archive import MANIFEST, EncodedFrame, FrameSet, Key
from proctor.media.frame_store import FrameStore, is_whole
from proctor.media.pictures import FrameEncoder
from tests.support.clock_video import ClockVideo, read_clock, write_clock_video
from tests.support.picture_maker import FRAMES, ask, entries, jpeg_of, make
from tests.support.virtual_time import until

PROCESSES = multiprocessing.get_context("spawn")


_watched: list[tuple[int, list[str]]] = []  # the threads whose opening of files is noted, and where


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _watched and threading.get_ident() == _watched[-1][0]:
        _watched[-1][1].append(str(arguments[0]))


sys.addaudithook(_note)  # for good, as Python has it; it costs nothing while nobody watches


@contextmanager
def files_opened_here() -> Iterator[list[str]]:
    """The paths of all files that this thread opens meanwhile."""
    opened: list[str] = []
    _watched.append((threading.get_ident(), opened))
    try:
        yield opened
    finally:
        _watched.pop()


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def test_what_was_made_is_served_from_then_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    first = ask(tmp_path / "store", log, [10, 20, 30])
    assert first == {pts: jpeg_of(pts) for pts in (10, 20, 30)}
    assert ask(tmp_path / "store", log, [20, 30]) == {20: jpeg_of(20), 30: jpeg_of(30)}
    assert len(lines(log)) == 4
    ask(tmp_path / "store", log, [20, 40])
    assert [line.split()[-1] for line in lines(log)[4:]] == ["40", "done"]


def test_an_entry_is_a_plain_zip_with_a_manifest(tmp_path: Path) -> None:
    ask(tmp_path, tmp_path / "log", [10, 25])
    (entry,) = entries(tmp_path)
    with zipfile.ZipFile(entry) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["000000_1.000s.jpg", "000001_2.500s.jpg", "manifest.json"]
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.read("000001_2.500s.jpg") == jpeg_of(25)
    assert is_whole(entry)


def test_other_content_and_another_way_are_other_frame_sets(tmp_path: Path) -> None:
    addresses = {
        FrameSet("a", {"quality": 85}).address,
        FrameSet("b", {"quality": 85}).address,
        FrameSet("a", {"quality": 80}).address,
    }
    assert len(addresses) == 3
    assert FrameSet("a", {"quality": 85}, name="v").address in addresses


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "no zip"])
def test_a_damaged_entry_is_made_anew(tmp_path: Path, damage: str) -> None:
    log = tmp_path / "log"
    ask(tmp_path, log, [1, 2])
    (entry,) = entries(tmp_path)
    content = entry.read_bytes()
    flipped = bytearray(content)
    flipped[60] ^= 0xFF
    entry.write_bytes({"cut": content[:300], "flipped": bytes(flipped), "empty": b"", "no zip": b"x" * 900}[damage])
    assert not is_whole(entry)
    assert ask(tmp_path, log, [1, 2]) == {1: jpeg_of(1), 2: jpeg_of(2)}
    assert Counter(lines(log)).most_common(1)[0][1] == 2
    assert [is_whole(entry) for entry in entries(tmp_path)] == [True]


def rewritten(entry: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The entry with another manifest."""
    with zipfile.ZipFile(entry) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(content[MANIFEST])
    changed = change(about)
    content[MANIFEST] = changed if isinstance(changed, bytes) else json.dumps(about).encode()
    with zipfile.ZipFile(entry, "w") as archive:
        for name, one in content.items():
            archive.writestr(name, one)


def with_flag(entry: Path, offset: int, value: bytes) -> None:
    """The entry with other bytes in the heads of its last member, here and in the directory."""
    content = bytearray(entry.read_bytes())
    for signature, shift in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
        at = content.rindex(signature) + offset + shift
        content[at : at + len(value)] = value
    entry.write_bytes(content)


def grown(entry: Path) -> None:
    """A manifest of 3 GB, without its weight: a file with a hole."""
    head = b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 0, 0, 3 * 2**30, 3 * 2**30, 13, 0)
    with entry.open("wb") as out:
        out.write(head + b"manifest.json")
        out.seek(3 * 2**30, os.SEEK_CUR)
        start = out.tell()
        fields = struct.pack("<HHHHHHIIIHHHHHII", 20, 20, 0, 0, 0, 0, 0, 3 * 2**30, 3 * 2**30, 13, 0, 0, 0, 0, 0, 0)
        out.write(b"PK\x01\x02" + fields + b"manifest.json")
        out.write(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, out.tell() - start, start, 0))


def as_pipe(entry: Path) -> None:
    entry.unlink()
    os.mkfifo(entry)


def as_folder(entry: Path) -> None:
    entry.unlink()
    entry.mkdir()
    (entry / "mine").touch()


def frame(**values: object) -> Callable[[Path], None]:
    return lambda entry: rewritten(entry, lambda about: about["frames"][0].update(values))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a deep manifest": lambda entry: rewritten(entry, lambda _: b"[" * 100_000),
    "a manifest of 3 GB": grown,
    "a manifest that is a list": lambda entry: rewritten(entry, lambda _: b"[]"),
    "a packed manifest": lambda entry: with_flag(entry, 8, b"\x08\x00"),
    "an unknown packing": lambda entry: with_flag(entry, 8, b"\x63\x00"),
    "encrypted": lambda entry: with_flag(entry, 6, b"\x01\x00"),
    "a packed size of 2 GB": lambda entry: with_flag(entry, 18, struct.pack("<I", 2**31 - 1)),
    "an offset below 0": frame(offset=-1),
    "an offset out of range": frame(offset=2**63),
    "a size out of range": frame(size=10**12),
    "no size": frame(size=0, crc=0),
    "an infinite offset": lambda entry: rewritten(
        entry, lambda about: json.dumps(about).replace(": 5", ": 1e999").encode()
    ),
    "a key that is a list": frame(key=[1]),
    "digits": lambda entry: rewritten(entry, lambda _: b'{"frames": [{"key": 1, "offset": ' + b"9" * 5_000 + b"}]}"),
    "a pipe": as_pipe,
    "a folder": as_folder,
}


def test_a_packed_size_of_2_gb_takes_no_such_buffer(tmp_path: Path) -> None:
    ask(tmp_path, tmp_path / "log", [1, 2])
    (entry,) = entries(tmp_path)
    DAMAGE["a packed size of 2 GB"](entry)
    tracemalloc.start()
    try:
        assert not is_whole(entry)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", DAMAGE)
def test_whatever_an_entry_has_become_it_is_made_anew_and_one_line_says_so(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    ask(tmp_path, tmp_path / "log", [1, 2])
    (entry,) = entries(tmp_path)
    DAMAGE[name](entry)
    assert [one.path for one in damaged(tmp_path)] == [entry]
    assert [one.source() for one in kept(tmp_path)] in ([""], ["v"])
    assert ask(tmp_path, tmp_path / "log", [1, 2]) == {1: jpeg_of(1), 2: jpeg_of(2)}
    assert [is_whole(one) for one in entries(tmp_path) if one.is_file()] == [True]
    assert [record.getMessage() for record in caplog.records] == [
        f"{entry} was damaged and has been removed; its pictures are made again"
    ]
    assert damaged(tmp_path) == []


def test_a_folder_in_place_of_an_entry_is_kept_aside(tmp_path: Path) -> None:
    ask(tmp_path, tmp_path / "log", [1])
    (entry,) = entries(tmp_path)
    as_folder(entry)
    ask(tmp_path, tmp_path / "log", [1])
    assert (entry.with_name(f"{entry.name}.damaged") / "mine").is_file()
    assert entry.is_file()


def test_pictures_that_can_not_be_read_back_are_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.media.frame_store.read_pictures", lambda _entry, _positions: None)
    with pytest.raises(ConfigurationError, match="can't be read back: choose another cache"):
        ask(tmp_path, tmp_path / "log", [1])


def test_an_entry_that_was_removed_meanwhile_is_made_anew(tmp_path: Path) -> None:
    store = FrameStore(tmp_path, memory_bytes=0)
    store.serve(FRAMES, [1], make)
    entries(tmp_path)[0].unlink()
    assert store.serve(FRAMES, [1], make) == {1: jpeg_of(1)}
    assert len(entries(tmp_path)) == 1


def test_what_was_read_last_is_served_from_memory_within_bounds(tmp_path: Path) -> None:
    size = len(jpeg_of(1))
    store = FrameStore(tmp_path, memory_bytes=3 * size)
    first, second = FrameSet("a", {}), FrameSet("b", {})
    assert store.serve(first, [1, 2], make) == {1: jpeg_of(1), 2: jpeg_of(2)}
    for entry in entries(tmp_path):
        entry.unlink()
    assert store.serve(first, [2], make) == {2: jpeg_of(2)}
    assert entries(tmp_path) == []
    store.serve(second, [3, 4], make)  # with these it would be four: the first frame set's go
    store.serve(first, [1], make)
    assert len(entries(tmp_path)) == 2


def test_a_failure_while_making_leaves_nothing(tmp_path: Path) -> None:
    def make(missing: Sequence[Key], _kept: Container[Key]) -> Iterator[EncodedFrame]:
        yield EncodedFrame(missing[0], None, b"x")
        raise InputError("v", found="no picture that can be decoded")

    with pytest.raises(InputError, match="v: found no picture that can be decoded"):
        FrameStore(tmp_path).serve(FRAMES, [1, 2], make)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["lock"]


def test_damaged_entries_are_listed(tmp_path: Path) -> None:
    ask(tmp_path, tmp_path / "log", [1])
    ask(tmp_path, tmp_path / "log", [2])
    assert damaged(tmp_path) == []
    broken = entries(tmp_path)[0]
    broken.write_bytes(broken.read_bytes().replace(b"picture", b"Picture"))
    assert [entry.path for entry in damaged(tmp_path)] == [broken]
    assert [entry.source() for entry in kept(tmp_path)] == ["v", "v"]


def test_a_cache_that_can_not_be_written_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="choose another with the environment variable PROCTOR_CACHE"):
        ask(tmp_path / "file", tmp_path / "log", [1])


def test_many_threads_make_it_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(ask, tmp_path, tmp_path / "log", range(20)) for _ in range(12)]
        assert all(len(one.result()) == 20 for one in asked)
    assert len(lines(tmp_path / "log")) == 21


def makers(processes: Sequence[BaseProcess], log: Path) -> list[BaseProcess]:
    """Those alive that have begun to make something."""
    begun = {int(line.split()[0]) for line in lines(log)}
    return [one for one in processes if one.pid in begun and one.is_alive()]


def test_ten_processes_some_killed_and_nothing_is_made_twice_to_the_end(tmp_path: Path) -> None:
    """Two frame sets, five processes each; the first three are killed while they are at it."""
    store, log, gate = tmp_path / "store", tmp_path / "log", tmp_path / "gate"
    frame_sets = [FrameSet(f"content{k}", {}) for k in range(2)]
    asking = [PROCESSES.Process(target=ask, args=(store, log, range(30), gate, frame_sets[k % 2])) for k in range(10)]
    for process in asking:
        process.start()
    for _ in range(3):
        until(lambda: makers(asking, log) != [])
        victim = makers(asking, log)[0]
        assert victim.pid is not None
        os.kill(victim.pid, signal.SIGKILL)
        victim.join(600)
    gate.touch()
    for process in asking:
        process.join(600)
    assert Counter(process.exitcode for process in asking) == {0: 7, -signal.SIGKILL: 3}
    done = Counter(line.split()[1] for line in lines(log) if line.endswith("done"))
    assert max(done.values()) == 1
    assert all(is_whole(entry) for entry in entries(store))
    for frame_set in frame_sets:
        assert ask(store, log, range(30), frame_set=frame_set) == {pts: jpeg_of(pts) for pts in range(30)}
    assert not list(store.rglob(".draft-*"))


def clip(source: str = "v", start: float = 0.0, end: float | None = None) -> Item:
    media = (VideoClip(source=source, start=start, end=end),)
    return Item(id="q", group="g", question="?", answer=BinaryFormat(), media=media)


@pytest.fixture
def media(tmp_path: Path) -> Path:
    video = ClockVideo(times_ms=range(0, 60000, 100), rate=10, keyint=100, b_frames=2)
    write_clock_video(tmp_path / "v.mp4", video)
    return tmp_path


def decoded(cache: Path) -> list[str]:
    """All pictures in the cache, by the second that they are of."""
    names = []
    for entry in entries(cache):
        with zipfile.ZipFile(entry) as archive:
            names += [name.split("_")[1].removesuffix(".jpg") for name in archive.namelist() if name.endswith(".jpg")]
    return names


NOTES: dict[str, Callable[[Path], object]] = {
    "cut": lambda note: note.write_bytes(note.read_bytes()[:-20]),
    "deep": lambda note: note.write_bytes(b"[" * 100_000),
    "a pipe": as_pipe,
    "empty": lambda note: note.write_bytes(b""),
    "a list": lambda note: note.write_bytes(b"[]"),
    "a path for a hash": lambda note: note.write_text(
        re.sub("[0-9a-f]{64}", "../../x", note.read_text("latin-1")), "latin-1"
    ),
}


@pytest.mark.parametrize("kind", ["files/*.json", "indexes/*.npz"])
@pytest.mark.parametrize("name", NOTES)
def test_damaged_notes_of_the_cache_are_found_out_anew(media: Path, kind: str, name: str) -> None:
    cache = media / "cache"
    first = asyncio.run(view(clip(), "video", MediaLibrary(media, cache_dir=cache)).frames(count=2))
    (note,) = cache.glob(kind)
    NOTES[name](note)
    again = asyncio.run(view(clip(), "video", MediaLibrary(media, cache_dir=cache)).frames(count=2))
    assert again == first
    assert len(list(cache.glob(kind))) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"facts": np.array([1, 0, 0, 1])},
        {"facts": np.array([1, 10])},
        {"pts": np.array([], dtype=np.int64)},
        {"pts": np.array([3, 2, 1])},
        {"keys": np.array([[0, 1]])},
        {"keys": np.array(["a"])},
    ],
)
def test_timestamps_that_can_be_none_are_read_anew(media: Path, change: dict[str, Any]) -> None:
    cache = media / "cache"
    first = asyncio.run(view(clip(), "video", MediaLibrary(media, cache_dir=cache)).frames(count=2))
    (note,) = cache.glob("indexes/*.npz")
    arrays = read_arrays(note, "timestamps", "the timestamps of a video")
    write_arrays(note, arrays | change)
    again = asyncio.run(view(clip(), "video", MediaLibrary(media, cache_dir=cache)).frames(count=2))
    assert again == first
    np.testing.assert_equal(read_arrays(note, "timestamps", "the timestamps of a video"), arrays)


def test_windows_of_one_video_are_slices_of_what_is_there(media: Path) -> None:
    library = MediaLibrary(media, cache_dir=media / "cache")
    whole = asyncio.run(view(clip(), "video", library).frames(fps=1.0))
    assert len(whole) == 60
    window = asyncio.run(view(clip(), "video", library).frames(fps=1.0, window=(20.0, 30.0)))
    inner = asyncio.run(view(clip(start=5.0, end=9.0), "video", library).frames(fps=0.5))
    assert [f.jpeg for f in window] == [f.jpeg for f in whole[20:30]]
    assert [f.jpeg for f in inner] == [f.jpeg for f in whole[5:9:2]]
    assert len(entries(media / "cache")) == 1


def test_a_growing_window_reads_each_group_once(media: Path) -> None:
    """1 a second from the start to 3 s, 6 s, … 60 s: no picture twice, and few entries, since what is
    decoded from a keyframe on is used to the next one."""
    library = MediaLibrary(media, cache_dir=media / "cache")
    for end in range(3, 61, 3):
        frames = asyncio.run(view(clip(), "video", library).frames(fps=1.0, window=(0.0, float(end))))
        assert [read_clock(f.jpeg) for f in frames] == [10 * k for k in range(end)]
    assert sorted(decoded(media / "cache")) == sorted(f"{k}.000s" for k in range(60))
    assert len(entries(media / "cache")) <= 7


def test_conditions_share_their_pictures(media: Path) -> None:
    library = MediaLibrary(media, cache_dir=media / "cache")
    for condition in ("video", "shuffled", "black", "reversed"):
        assert len(asyncio.run(view(clip(), condition, library).frames(count=8))) == 8
    assert len(decoded(media / "cache")) == 8


def test_settings_have_frame_sets_of_their_own(media: Path) -> None:
    small = MediaLibrary(media, MediaSettings(max_side=32), cache_dir=media / "cache")
    large = MediaLibrary(media, cache_dir=media / "cache")
    sizes = [len(asyncio.run(view(clip(), "video", one).frames(count=1))[0].jpeg) for one in (small, large)]
    assert sizes[0] < sizes[1]
    assert len(entries(media / "cache")) == 2


def test_a_changed_file_is_another_one(media: Path) -> None:
    first = MediaLibrary(media, cache_dir=media / "cache")
    assert read_clock(asyncio.run(view(clip(), "video", first).frames(count=1))[0].jpeg) == 300
    write_clock_video(media / "v.mp4", ClockVideo(times_ms=range(0, 10000, 100), rate=10))
    second = MediaLibrary(media, cache_dir=media / "cache")
    assert read_clock(asyncio.run(view(clip(), "video", second).frames(count=1))[0].jpeg) == 50


def test_the_same_file_under_another_name_is_not_decoded_again(media: Path) -> None:
    (media / "copy.mp4").write_bytes((media / "v.mp4").read_bytes())
    library = MediaLibrary(media, cache_dir=media / "cache")
    for source in ("v", "copy"):
        assert len(asyncio.run(view(clip(source), "video", library).frames(count=3))) == 3
    assert len(entries(media / "cache")) == 1


def test_many_tasks_do_not_decode_twice_nor_block_the_loop(media: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's thread opens no file and makes no picture; 40 tasks have each picture made once."""
    library = MediaLibrary(media, cache_dir=media / "cache")
    makers: list[int] = []
    encode = FrameEncoder.jpeg

    def watched(encoder: FrameEncoder, *shot: Any) -> bytes:
        makers.append(threading.get_ident())
        return encode(encoder, *shot)

    monkeypatch.setattr(FrameEncoder, "jpeg", watched)

    async def run() -> list[str]:
        asked = [view(clip(), "video", library).frames(fps=5.0) for _ in range(40)]
        with files_opened_here() as opened:
            shown = await asyncio.gather(*asked)
        assert all(len(frames) == 300 for frames in shown)
        return opened

    opened = asyncio.run(run())
    assert [path for path in opened if path.startswith(str(media))] == []
    assert len(makers) == 300
    assert threading.get_ident() not in makers
    assert len(entries(media / "cache")) == 1


def test_files_opened_by_this_thread_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"x")
    with files_opened_here() as opened:
        (tmp_path / "here").read_bytes()
        with ThreadPoolExecutor(1) as pool:
            pool.submit((tmp_path / "here").read_text).result()
    assert opened.count(str(tmp_path / "here")) == 1


def test_the_cache_is_where_the_environment_says(media: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_CACHE", str(media / "there"))
    asyncio.run(view(clip(), "video", MediaLibrary(media)).frames(count=1))
    assert len(entries(media / "there")) == 1
    monkeypatch.delenv("PROCTOR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(media / "user"))
    asyncio.run(view(clip(), "video", MediaLibrary(media)).frames(count=1))
    assert len(entries(media / "user" / "proctor")) == 1
