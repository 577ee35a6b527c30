"""Frames in object storage: what one machine has decoded the others show, byte for byte, or there is a clear error."""

from __future__ import annotations

import json
import logging
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import proctor
from proctor.core import ConfigurationError, Frame, InputError, VideoClip
from proctor.media import MediaLibrary, Picture, cache_folder, kept, media_folder
from proctor.media import objects as storage
from proctor.media import shared_frames as sharing
from proctor.media.decode import Decoding
from proctor.media.frame_archive import EncodedFrame, FrameSet, StoredFrame, write_entry
from proctor.media.media_paths import shared_frames
from proctor.runs import evaluation_content
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.object_server import ObjectFault, ObjectServer, moto_bucket, object_server

FRAMES = "s3://bucket/frames"
TIMES = (0.0, 1.0, 2.0)


@contextmanager
def no_waiting() -> Iterator[None]:
    """Between tries."""
    with pytest.MonkeyPatch.context() as patch:
        short = {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=1)}
        patch.setitem(storage._RETRIES, "backoff", {**storage._RETRIES["backoff"], **short})
        yield


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """A server that speaks S3, with nothing in its bucket."""
    with no_waiting(), object_server({}) as served:
        told = {"ENDPOINT_URL": served.url, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}
        for name, value in {**told, "REGION": "us-east-1"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        yield served


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    folder = tmp_path / "videos"
    folder.mkdir()
    write_clock_video(folder / "v.mp4", ClockVideo(range(0, 6000, 40)))
    return folder


class Machines:
    """Each a new process with a cache of its own."""

    def __init__(self, tmp_path: Path, patch: pytest.MonkeyPatch, videos: Path) -> None:
        self._root, self._patch, self.videos = tmp_path, patch, videos

    def cache(self, name: str) -> Path:
        return self._root / name

    def begin(self, name: str) -> None:
        self._patch.setenv("PROCTOR_CACHE", str(self.cache(name)))
        sharing.shared_at.cache_clear()
        storage.remote_at.cache_clear()

    def library(self, name: str, media: str = "", frames: str = FRAMES, size: int | None = None) -> MediaLibrary:
        self.begin(name)
        root = media_folder(media, cache_folder()) if media else self.videos
        return MediaLibrary(root, cache_dir=frames, cache_bytes=size)

    def plain(self) -> list[bytes]:
        """What there is to see."""
        return MediaLibrary(self.videos, cache_dir=self._root / "plain").jpegs(pictures())


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, videos: Path) -> Machines:
    return Machines(tmp_path, monkeypatch, videos)


@pytest.fixture
def undecoded(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, decoding is an error."""

    def refuse(*_: object) -> None:
        raise AssertionError("decoded")

    return lambda: monkeypatch.setattr(Decoding, "pictures", refuse)


def pictures(*times: float) -> list[Picture]:
    return [Picture("v.mp4", time) for time in times or TIMES]


def keys(server: ObjectServer, method: str, ending: str = "") -> list[str]:
    return [key for asked, key, _ in server.asked if asked == method and key.endswith(ending)]


def one(server: ObjectServer, ending: str, part: str = "/frames/frames/") -> str:
    (key,) = (key for key in server.objects if key.endswith(ending) and part in key)
    return key


def test_what_one_machine_decoded_the_other_shows(
    s3: ObjectServer, machines: Machines, undecoded: Callable[[], None]
) -> None:
    expected = machines.plain()
    assert machines.library("first").jpegs(pictures()) == expected
    assert [key.rpartition("/")[2][-10:] for key in keys(s3, "PUT")][1:] == ["index.json"]  # last
    undecoded()
    second = machines.library("second")
    assert second.jpegs(pictures(2.0, 0.0)) == [expected[2], expected[0]]
    asked = [(key, part) for method, key, part in s3.asked if method == "GET" and part]
    assert [part.startswith("bytes=") for _, part in asked] == [True]
    before = len(s3.asked)
    assert second.jpegs(pictures(2.0, 0.0)) == [expected[2], expected[0]]  # it is in the cache now
    assert len(s3.asked) == before
    assert second.jpegs(pictures()) == expected
    assert len(keys(s3, "PUT")) == 2


def test_a_video_whose_frames_are_there_is_not_fetched(s3: ObjectServer, machines: Machines) -> None:
    s3.objects["bucket/videos/v.mp4"] = (machines.videos / "v.mp4").read_bytes()
    expected = machines.plain()
    first = machines.library("first", "s3://bucket/videos")
    assert first.jpegs(pictures()) == expected
    before = len(s3.asked)
    second = machines.library("second", "s3://bucket/videos")
    assert second.jpegs(pictures()) == expected
    assert second.identity("v.mp4") == first.identity("v.mp4")
    assert second.probe("v") == first.probe("v.mp4")
    assert second.index("v.mp4").pts.tolist() == first.index("v.mp4").pts.tolist()
    assert ("GET", "bucket/videos/v.mp4") not in {(method, key) for method, key, _ in s3.asked[before:]}
    assert not (machines.cache("second") / "objects").exists()
    more = pictures(0.0, 4.0)
    shown = second.jpegs(more)  # one of them has to be decoded
    assert shown == MediaLibrary(machines.videos, cache_dir=machines.cache("other")).jpegs(more)
    assert second.locate("v.mp4").read_bytes() == s3.objects["bucket/videos/v.mp4"]
    third, before = machines.library("third", "s3://bucket/videos"), len(s3.asked)
    assert third.jpegs(more) == shown
    assert not [one for one in s3.asked[before:] if one[:2] == ("GET", "bucket/videos/v.mp4")]


def test_another_version_of_a_video_is_another_video(s3: ObjectServer, machines: Machines) -> None:
    s3.objects["bucket/videos/v.mp4"] = (machines.videos / "v.mp4").read_bytes()
    machines.library("first", "s3://bucket/videos").jpegs(pictures())
    write_clock_video(machines.videos / "v.mp4", ClockVideo(range(0, 8000, 40)))
    s3.objects["bucket/videos/v.mp4"], s3.versions = (machines.videos / "v.mp4").read_bytes(), 2
    second = machines.library("second", "s3://bucket/videos")
    assert second.probe("v.mp4").duration_s == pytest.approx(8.0)


def test_a_video_that_is_another_than_its_frames_are_of_is_refused(s3: ObjectServer, machines: Machines) -> None:
    s3.objects["bucket/videos/v.mp4"] = (machines.videos / "v.mp4").read_bytes()
    machines.library("first", "s3://bucket/videos").jpegs(pictures())
    write_clock_video(machines.videos / "w.mp4", ClockVideo(range(0, 8000, 40)))
    s3.objects["bucket/videos/v.mp4"] = (machines.videos / "w.mp4").read_bytes()  # under the same version
    second = machines.library("second", "s3://bucket/videos")
    second.jpegs(pictures())
    with pytest.raises(InputError, match="found another content than its frames are of"):
        second.jpegs(pictures(3.0))


@pytest.mark.parametrize(
    "said", [{"format": 0}, {"index": ["0" * 64 + "-2.npz", "0" * 64]}, {"index": ["0" * 64 + "-1.npz", "0" * 64]}]
)
def test_what_can_not_be_used_of_a_video_is_found_out(
    s3: ObjectServer, machines: Machines, tmp_path: Path, said: dict[str, Any]
) -> None:
    s3.objects["bucket/videos/v.mp4"] = (machines.videos / "v.mp4").read_bytes()
    expected = machines.library("first", "s3://bucket/videos").jpegs(pictures())
    key = one(s3, ".json", "/frames/videos/")
    s3.objects[key] = json.dumps({**json.loads(s3.objects[key]), **said}).encode()
    assert machines.library("second", "s3://bucket/videos").jpegs(pictures()) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second", "videos"]


@pytest.mark.parametrize(
    "said", [{"content": 3, "index": 4}, {"video": {}}, {"video": None}, {"format": 1, "video": {"duration_s": "x"}}]
)
def test_what_is_said_of_no_video_is_refused(s3: ObjectServer, machines: Machines, said: dict[str, Any]) -> None:
    s3.objects["bucket/videos/v.mp4"] = (machines.videos / "v.mp4").read_bytes()
    machines.library("first", "s3://bucket/videos").jpegs(pictures())
    key = one(s3, ".json", "/frames/videos/")
    s3.objects[key] = json.dumps({**json.loads(s3.objects[key]), **said}).encode()
    with pytest.raises(InputError, match="another content than Proctor writes"):
        machines.library("second", "s3://bucket/videos").jpegs(pictures())


def test_what_was_decoded_before_is_kept_there_too(s3: ObjectServer, machines: Machines) -> None:
    machines.begin("first")
    expected = MediaLibrary(machines.videos).jpegs(pictures())
    MediaLibrary(machines.videos).jpegs(pictures(4.0))
    assert machines.library("first").jpegs(pictures()) == expected
    assert len(keys(s3, "PUT", ".zip")) == 2


@pytest.mark.parametrize(
    "faults",
    [["503", "503", None], ["dropped", None], ["cut", None], [None, "short", None], ["cut", "503", "dropped", None]],
)
def test_what_passes_is_tried_again(
    s3: ObjectServer, machines: Machines, undecoded: Callable[[], None], faults: list[ObjectFault | None]
) -> None:
    s3.write_faults = [fault if fault in {"503", "dropped", None} else "dropped" for fault in faults]
    expected = machines.library("first").jpegs(pictures())
    undecoded()
    s3.faults = faults
    assert machines.library("second").jpegs(pictures()) == expected


@pytest.mark.parametrize("first", [[], [None]])  # of the index, of the pictures
@pytest.mark.parametrize("fault", ["503", "403", "dropped", "cut"])
def test_what_stays_wrong_is_an_error_and_no_picture(
    s3: ObjectServer, machines: Machines, first: list[ObjectFault | None], fault: ObjectFault
) -> None:
    machines.library("first").jpegs(pictures())
    s3.faults = [*first, fault]
    with pytest.raises(InputError, match="no reply that can be used") as raised:
        machines.library("second").jpegs(pictures())
    assert str(raised.value).startswith(f"{FRAMES}/frames/")
    assert "\n" not in str(raised.value)
    assert kept(machines.cache("second")) == []


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def black(data: bytes) -> bytes:
    return bytes(len(data))


@pytest.mark.parametrize("ending", [".zip", "index.json"])
@pytest.mark.parametrize("damage", [half, black])
def test_an_object_that_is_not_what_was_written_is_an_error(
    s3: ObjectServer, machines: Machines, ending: str, damage: Callable[[bytes], bytes]
) -> None:
    machines.library("first").jpegs(pictures())
    key = one(s3, ending)
    s3.objects[key] = damage(s3.objects[key])
    with pytest.raises(InputError) as raised:
        machines.library("second").jpegs(pictures())
    assert str(raised.value).startswith(f"s3://{key}: ")
    assert kept(machines.cache("second")) == []


def test_the_index_of_other_frames_is_refused(s3: ObjectServer, machines: Machines) -> None:
    machines.library("first").jpegs(pictures())
    key = one(s3, "index.json")
    s3.objects[key] = json.dumps({**json.loads(s3.objects[key]), "content": "0" * 64}).encode()
    with pytest.raises(InputError, match="another content than Proctor writes"):
        machines.library("second").jpegs(pictures())


def test_what_was_written_in_half_is_not_read(s3: ObjectServer, machines: Machines) -> None:
    s3.write_faults = [None, "503"]  # the pictures arrive, the index doesn't
    with pytest.raises(InputError, match=r"index\.json"):
        machines.library("first").jpegs(pictures())
    assert [key[-4:] for key in s3.objects] == [".zip"]
    s3.write_faults = []
    assert machines.library("second").jpegs(pictures()) == machines.plain()
    assert len(keys(s3, "PUT", ".zip")) == 2


def test_pictures_that_are_gone_are_made_again(
    s3: ObjectServer, machines: Machines, caplog: pytest.LogCaptureFixture
) -> None:
    expected = machines.library("first").jpegs(pictures())
    del s3.objects[one(s3, ".zip")]
    with caplog.at_level(logging.WARNING):
        assert machines.library("second").jpegs(pictures()) == expected
    assert "is gone; its pictures are made again" in caplog.text
    assert machines.library("third").jpegs(pictures()) == expected
    assert len(keys(s3, "PUT", ".zip")) == 2


def test_an_account_that_may_not_write_reads(
    s3: ObjectServer, machines: Machines, caplog: pytest.LogCaptureFixture
) -> None:
    expected = machines.library("first").jpegs(pictures())
    s3.write_faults, before = ["403"], len(s3.asked)
    second = machines.library("second")
    assert second.jpegs(pictures()) == expected
    assert len(second.jpegs(pictures(4.0))) == len(second.jpegs(pictures(5.0))) == 1
    assert sum(method == "PUT" for method, *_ in s3.asked[before:]) == 1
    assert caplog.text.count("are read from s3://bucket/frames and not kept there") == 1
    assert "403 Forbidden" in caplog.text


def test_plain_http_is_read_only(
    s3: ObjectServer, machines: Machines, undecoded: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = machines.library("first").jpegs(pictures())
    with monkeypatch.context() as decoding:
        decoding.setattr(Decoding, "pictures", None)
        second = machines.library("second", frames=f"{s3.url}/bucket/frames")
        assert second.jpegs(pictures()) == expected
    before = len(keys(s3, "PUT"))
    second.jpegs(pictures(4.0))
    assert len(keys(s3, "PUT")) == before


def test_the_cache_keeps_its_bound(s3: ObjectServer, machines: Machines, tmp_path: Path) -> None:
    for number in range(1, 5):
        write_clock_video(machines.videos / f"{number}.mp4", ClockVideo(range(0, 3000 + 40 * number, 40)))
    shots = [[Picture(f"{number}.mp4", time) for time in TIMES] for number in range(1, 5)]
    first = machines.library("first")
    expected = [first.jpegs(some) for some in shots]
    size = sum(entry.size for entry in kept(machines.cache("first"))) // 2
    for _ in range(2):
        for some, shown in zip(shots, expected, strict=True):  # a library each: what one reads stays in the cache
            assert machines.library("second", size=size).jpegs(some) == shown
    assert sum(entry.size for entry in kept(machines.cache("second"))) <= size
    assert {path.name for path in tmp_path.iterdir()} == {"videos", "first", "second"}
    assert len(keys(s3, "PUT", ".zip")) == 4


def test_images_stay_where_they_are(s3: ObjectServer, machines: Machines) -> None:
    Image.new("RGB", (40, 30), "red").save(machines.videos / "i.png")
    assert machines.library("first").jpegs([Picture("i.png", None)])[0].startswith(b"\xff\xd8")
    assert s3.asked == []


def test_clips_and_sound_are_kept_too(s3: ObjectServer, machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    write_clock_video(machines.videos / "v.mp4", ClockVideo(range(0, 3000, 40), audio_s=3.0))
    s3.objects["bucket/videos/v.mp4"] = (machines.videos / "v.mp4").read_bytes()
    monkeypatch.setattr("proctor.media.audio.SILENT", -1.0)
    clip = VideoClip(source="v.mp4", start=0.5, end=1.5)
    first = machines.library("first", "s3://bucket/videos")
    first.jpegs(pictures(0.0))
    made = first.mp4(clip), first.sound(clip, (0.5, 1.5))
    before, second = len(s3.asked), machines.library("second", "s3://bucket/videos")
    assert (second.mp4(clip), second.sound(clip, (0.5, 1.5))) == made
    assert ("GET", "bucket/videos/v.mp4") not in {asked[:2] for asked in s3.asked[before:]}


def some_set() -> FrameSet:
    return FrameSet("0" * 64, {"quality": 90}, "v.mp4")


def entry_of(folder: Path, *numbers: int) -> Path:
    draft = folder / "draft"
    name = write_entry(draft, some_set(), [EncodedFrame(n, n / 10, f"jpeg {n}".encode() * 9) for n in numbers])
    return draft.replace(folder / name)


def test_nothing_is_lost_where_many_write_at_once(s3: ObjectServer, tmp_path: Path) -> None:
    entries = [entry_of(tmp_path, number, 100) for number in range(6)]
    writers = [sharing.SharedFrames(FRAMES) for _ in entries]
    with ThreadPoolExecutor(len(entries)) as threads:
        list(threads.map(lambda writer, entry: writer.add(some_set(), entry), writers, entries))
    reader = sharing.SharedFrames(FRAMES)
    assert reader.keys(some_set()) == {*range(6), 100}
    found = {frame.key: frame for frame in reader.pictures(some_set(), [3, 100, 0, 3, 77])}
    assert found == {n: EncodedFrame(n, n / 10, f"jpeg {n}".encode() * 9) for n in (3, 100, 0)}
    assert all(writer.keys(some_set()) == reader.keys(some_set()) for writer in writers)


def test_a_turn_that_never_comes_is_an_error(s3: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ObjectServer, "write", lambda *_: (412, b"", {}))
    monkeypatch.setattr(storage.ObjectFolder, "upload", lambda *_: None)
    with pytest.raises(InputError, match="an index that others write all the time"):
        sharing.SharedFrames(FRAMES).add(some_set(), entry_of(tmp_path, 1))


@pytest.mark.parametrize("seed", range(20))
def test_pictures_that_are_asked_for_at_once_are_cut_as_they_lie(seed: int) -> None:
    rng, frames, end = random.Random(seed), list[StoredFrame](), 0
    for number in range(rng.randrange(1, 60)):
        start = end + rng.choice([0, 300, sharing._GAP, sharing._GAP + 1, 3 * 2**20])
        end = start + rng.choice([1, 50_000, 2**20, 5 * 2**20])
        frames.append(StoredFrame(number, None, start, end - start, ""))
    groups = sharing._together(frames)
    assert [frame for group in groups for frame in group] == frames
    for group in groups:
        first, last = group[0].offset, group[-1].offset + group[-1].size
        assert len(group) == 1 or last - first <= sharing._TOGETHER
        part = bytearray(last - first)
        for frame in group:
            part[frame.offset - first] = 1
            assert sharing._cut(bytes(part), group, frame)[0] == 1
            assert len(sharing._cut(bytes(part), group, frame)) == frame.size
    for group, following in pairwise(groups):
        apart = following[0].offset - group[-1].offset - group[-1].size
        whole = following[0].offset + following[0].size - group[0].offset
        assert apart > sharing._GAP or whole > sharing._TOGETHER


def test_the_cache_is_a_folder_whatever_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PROCTOR_CACHE", "gs://bucket/frames")
    assert cache_folder() == cache_folder(Path("s3://bucket/x")) == tmp_path / "proctor"
    assert cache_folder(tmp_path / "own") == tmp_path / "own"
    assert shared_frames(tmp_path / "own") is None
    assert shared_frames(None) is shared_frames(Path("gs://bucket/frames"))
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "there"))
    assert cache_folder("s3://bucket/x") == tmp_path / "there"
    with pytest.raises(InputError, match="belong into the environment"):
        MediaLibrary(None, cache_dir="s3://key:secret@bucket/frames")


def test_without_the_library_it_is_said_what_to_install(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'proctor-eval\[cloud\]'"):
        machines.library("first", frames="gs://bucket/frames").jpegs(pictures())


def test_a_run_on_another_machine_sees_the_same(s3: ObjectServer, machines: Machines, tmp_path: Path) -> None:
    s3.objects["bucket/videos/v.mp4"] = (machines.videos / "v.mp4").read_bytes()
    questions = tmp_path / "asked" / "questions.csv"
    questions.parent.mkdir()
    questions.write_text("id,question,answer,video,start,end\n1,Is it on?,yes,v.mp4,,\n2,Is it off?,no,v.mp4,1,2\n")
    seen: list[bytes] = []

    def looks(frames: list[Frame]) -> str:
        seen.extend(frame.jpeg for frame in frames)
        return "yes"

    given: dict[str, Any] = {"media": "s3://bucket/videos", "cache": FRAMES, "conditions": "video"}
    found, hashes = list[list[bytes]](), list[str]()
    for name in ("first", "second"):
        machines.begin(name)
        made = proctor.run(questions, looks, store=tmp_path / f"{name}.db", **given)
        found.append(sorted(seen))
        hashes.append(evaluation_content(made.store, made.benchmark).sha256)
        seen.clear()
    assert found[0] == found[1]
    assert len(found[0]) > 2
    assert hashes[0] == hashes[1]
    assert [(method, key) for method, key, part in s3.asked if key.endswith(".mp4") and method == "GET"] == [
        ("GET", "bucket/videos/v.mp4")
    ]


@pytest.mark.parametrize("location", ["s3://bucket/frames", "gs://bucket/frames", "az://bucket/frames"])
def test_each_provider_takes_and_gives_frames(
    s3: ObjectServer,
    machines: Machines,
    undecoded: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    location: str,
) -> None:
    account = {"gcs_base_url": s3.url, "disable_oauth": True}
    account |= dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    (tmp_path / "account.json").write_text(json.dumps(account))
    told = {"GOOGLE_SERVICE_ACCOUNT": str(tmp_path / "account.json"), "GOOGLE_BASE_URL": s3.url}
    told |= {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_ACCOUNT_KEY": "a2V5", "AZURE_STORAGE_ENDPOINT": s3.url}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    s3.objects["bucket/videos/v.mp4"] = (machines.videos / "v.mp4").read_bytes()
    expected = machines.plain()
    assert machines.library("first", location.replace("frames", "videos"), location).jpegs(pictures()) == expected
    entries = [entry_of(tmp_path, number) for number in range(2)]
    writers = [sharing.SharedFrames(location) for _ in entries]
    for writer in writers:
        writer.keys(some_set())
    for writer, entry in zip(writers, entries, strict=True):
        writer.add(some_set(), entry)
    assert sharing.SharedFrames(location).keys(some_set()) == {0, 1}
    undecoded()
    assert machines.library("second", location.replace("frames", "videos"), location).jpegs(pictures()) == expected
    assert len([key for key in keys(s3, "GET") if key.endswith(".mp4")]) == 1


def test_moto_which_stands_for_s3_takes_and_gives_frames(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, undecoded: Callable[[], None], tmp_path: Path
) -> None:
    with moto_bucket(monkeypatch):
        expected = machines.library("first").jpegs(pictures())
        machines.library("first").jpegs(pictures(3.0, 4.0))
        undecoded()
        assert machines.library("second").jpegs(pictures()) == expected
        assert len(machines.library("second").jpegs(pictures(4.0))) == 1
        writers = [sharing.SharedFrames(FRAMES) for _ in range(2)]
        for writer, number in zip(writers, (1, 2), strict=True):
            writer.keys(some_set())
            writer.add(some_set(), entry_of(tmp_path, number))
        assert writers[0].keys(some_set()) == {1, 2}
