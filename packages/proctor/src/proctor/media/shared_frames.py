"""Frame sets in object storage: pictures that one machine has decoded, for all others.

The folder has the layout of a cache. `frames/AB/ADDRESS/` holds the entries of a frame set, each named by the hash of its
content and never changed, and `index.json` with the location and SHA-256 of each picture. An entry is written first and
the index last, replacing the version that was read, so that two machines that write at once lose nothing. `videos/`
holds the facts of each video in object storage, so that a video whose frames are there isn't fetched.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from proctor.core import InputError, load_json
from proctor.media.frame_archive import EncodedFrame, FrameSet, Key, StoredFrame, frames_of
from proctor.media.objects import ObjectFolder

if TYPE_CHECKING:
    from proctor.media.video import VideoInfo

T = TypeVar("T")

_FORMAT = 1
_INDEX = "index.json"
_ENTRY = re.compile(r"[0-9a-f]{64}\.zip")
_TIMESTAMPS = re.compile(r"[0-9a-f]{64}-\d+\.npz")
_TOGETHER = 4 * 2**20  # bytes of one request
_GAP = 64 * 2**10  # bytes between two pictures of one request
_MAX_SETS = 128  # of which the index is in memory
_TURNS = 10  # attempts to write an index that others write as well

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedVideo:
    """The facts of a video's file that are needed before a picture is shown: the hash of its content, the result of
    `probe`, and name and content of the file with its timestamps."""

    sha256: str
    info: VideoInfo
    index: tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class _SharedSet:
    """One version of an index: the entry and the location of each picture."""

    frames: dict[Key, tuple[str, StoredFrame]]
    version: Any = None


class SharedFrames:
    """Frame sets below the URL of a folder in object storage. Over plain HTTP they are read-only.

    All methods raise `InputError` with the object's name where the storage fails after retries. An account without
    permission to write is warned once, and reads.
    """

    def __init__(self, url: str) -> None:
        self.writable = not url.startswith("http")
        self._folder = ObjectFolder(url)
        self._guard = threading.Lock()
        self._sets: OrderedDict[str, _SharedSet] = OrderedDict()

    def keys(self, frame_set: FrameSet) -> frozenset[Key]:
        """The keys of the pictures that are there now."""
        return frozenset(self._look(frame_set).frames)

    def pictures(self, frame_set: FrameSet, wanted: Iterable[Key]) -> Iterator[EncodedFrame]:
        """The wanted pictures that were there at the last call of `keys`, read by ranges and verified by their hashes.
        An entry that is gone is skipped, and forgotten."""
        known = self._known(frame_set.address)
        by_entry: dict[str, list[StoredFrame]] = {}
        for key in dict.fromkeys(wanted):
            if key in known.frames:
                entry, frame = known.frames[key]
                by_entry.setdefault(entry, []).append(frame)
        for entry, frames in by_entry.items():
            groups = _together(sorted(frames, key=lambda stored_frame: stored_frame.offset))
            spans = [(group[0].offset, group[-1].offset + group[-1].size) for group in groups]
            parts = self._folder.ranges(f"{_location(frame_set)}/{entry}", spans, _checked(groups))
            try:
                for group, part in zip(groups, parts, strict=True):
                    for frame in group:
                        yield EncodedFrame(frame.key, frame.time, _cut(part, group, frame))
            except FileNotFoundError:
                _log.warning(
                    "%s/%s/%s is gone; its pictures are made again", self._folder.url, _location(frame_set), entry
                )
                self._keep(frame_set, _without(self._known(frame_set.address), entry))

    def add(self, frame_set: FrameSet, entry: Path) -> None:
        """Uploads an entry if it holds a picture that isn't there yet. Does nothing if the entry is gone or damaged."""
        try:
            made = frames_of(entry)
            if made is None or self._look(frame_set).frames.keys() >= {frame.key for frame in made}:
                return
            with entry.open("rb") as file:
                name = f"{hashlib.file_digest(file, 'sha256').hexdigest()}.zip"
            self._allowed(self._folder.upload, f"{_location(frame_set)}/{name}", entry)
        except FileNotFoundError:
            return
        if self.writable:
            self._name(frame_set, {frame.key: (name, frame) for frame in made})

    def prepared(self, location: str) -> PreparedVideo | None:
        """The stored facts of the video at this address (see `RemoteFolder.address_of`); None without any."""
        key = f"videos/{location}.json"
        read = self._folder.read(key)
        if read is None:
            return None
        try:
            told = load_json(read.data)
            if told["format"] != _FORMAT:
                return None
            name, sha256, content = (str(one) for one in (*told["index"], told["content"]))
            info = _info(told["video"])
            if not _TIMESTAMPS.fullmatch(name):
                raise ValueError("no name of timestamps")
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(key) from error
        index = self._folder.read(f"indexes/{name}")
        if index is None or hashlib.sha256(index.data).hexdigest() != sha256:
            return None
        return PreparedVideo(content, info, (name, index.data))

    def prepare(self, location: str, video: PreparedVideo) -> None:
        """Stores the facts of the video at this address, the timestamps first."""
        name, data = video.index
        index = [name, hashlib.sha256(data).hexdigest()]
        about = {"format": _FORMAT, "content": video.sha256, "video": asdict(video.info), "index": index}
        self._allowed(self._folder.write, f"indexes/{name}", data, None)
        self._allowed(self._folder.write, f"videos/{location}.json", _json(about), None)

    def _name(self, frame_set: FrameSet, made: dict[Key, tuple[str, StoredFrame]]) -> None:
        """Adds pictures to the index, beside those that others have added meanwhile."""
        key = f"{_location(frame_set)}/{_INDEX}"
        for _ in range(_TURNS):
            known = self._look(frame_set)
            frames = {**made, **known.frames}
            version = self._allowed(self._folder.write, key, _json(_index_of(frame_set, frames)), known.version)
            if version is not None:
                self._keep(frame_set, _SharedSet(frames, version))
            if version is not None or not self.writable:
                return
        raise InputError(
            f"{self._folder.url}/{key}", found="an index that others write all the time", expected="a turn"
        )

    def _look(self, frame_set: FrameSet) -> _SharedSet:
        """The current index."""
        key, known = f"{_location(frame_set)}/{_INDEX}", self._known(frame_set.address)
        read = self._folder.read(key, known.version)
        if read is None:
            return self._keep(frame_set, _SharedSet({}))
        if read.version is known.version:
            return known
        try:
            return self._keep(frame_set, _SharedSet(_frames_in(load_json(read.data), frame_set), read.version))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise self._damaged(key) from error

    def _known(self, address: str) -> _SharedSet:
        with self._guard:
            if address in self._sets:
                self._sets.move_to_end(address)
            return self._sets.get(address) or _SharedSet({})

    def _keep(self, frame_set: FrameSet, known: _SharedSet) -> _SharedSet:
        with self._guard:
            self._sets[frame_set.address] = known
            self._sets.move_to_end(frame_set.address)
            while len(self._sets) > _MAX_SETS:
                self._sets.popitem(last=False)
        return known

    def _allowed(self, write: Callable[..., T], *given: Any) -> T | None:
        """The result of a write; None without permission, which is not tried again."""
        if not self.writable:
            return None
        try:
            return write(*given)
        except PermissionError as error:
            self.writable = False
            _log.warning("frames are read from %s and not kept there: %s", self._folder.url, error)
            return None

    def _damaged(self, key: str) -> InputError:
        location = f"{self._folder.url}/{key}"
        return InputError(
            location, found="another content than Proctor writes", expected="it as it was, or no such object"
        )


@lru_cache(maxsize=16)
def shared_at(url: str) -> SharedFrames:
    """The frames at a URL; one object for each URL in a process, so that an index is read once."""
    return SharedFrames(url)


def _location(frame_set: FrameSet) -> str:
    return f"frames/{frame_set.address[:2]}/{frame_set.address}"


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _index_of(frame_set: FrameSet, frames: dict[Key, tuple[str, StoredFrame]]) -> dict[str, Any]:
    entries = {entry: number for number, entry in enumerate(dict.fromkeys(entry for entry, _ in frames.values()))}
    rows = [
        [frame.key, frame.time, entries[entry], frame.offset, frame.size, frame.sha256]
        for entry, frame in frames.values()
    ]
    return {
        "format": _FORMAT,
        "name": frame_set.name,
        "content": frame_set.content,
        "how": frame_set.how,
        "entries": list(entries),
        "frames": rows,
    }


def _frames_in(index: Any, frame_set: FrameSet) -> dict[Key, tuple[str, StoredFrame]]:
    """Raises `ValueError`, `KeyError`, `TypeError` or `IndexError` for an invalid index, or one of another frame set."""
    if (index["format"], index["content"], index["how"]) != (_FORMAT, frame_set.content, frame_set.how):
        raise ValueError("the index of another frame set")
    entries = [str(entry) for entry in index["entries"]]
    found: dict[Key, tuple[str, StoredFrame]] = {}
    for key, time, entry, offset, size, sha256 in index["frames"]:
        if not isinstance(key, int | str) or not 0 <= offset < offset + size or not _ENTRY.fullmatch(entries[entry]):
            raise ValueError("no position of a picture")
        at = None if time is None else float(time)
        found[key] = entries[entry], StoredFrame(key, at, int(offset), int(size), str(sha256))
    return found


def _info(told: Any) -> VideoInfo:
    """Raises `ValueError`, `KeyError` or `TypeError` for invalid facts."""
    from proctor.media.video import VideoInfo

    duration_s, fps, start_s = (float(told[name]) for name in ("duration_s", "fps", "start_s"))
    remarks = tuple(map(str, told.get("remarks", ())))
    info = VideoInfo(duration_s, int(told["width"]), int(told["height"]), fps, start_s, str(told["codec"]), remarks)
    if not (math.isfinite(duration_s + fps + start_s) and min(duration_s, info.width, info.height) > 0):
        raise ValueError("no video")
    return info


def _without(known: _SharedSet, entry: str) -> _SharedSet:
    kept = {key: location for key, location in known.frames.items() if location[0] != entry}
    return _SharedSet(kept, known.version)


def _together(frames: Sequence[StoredFrame]) -> list[list[StoredFrame]]:
    """Pictures in the order of their positions, grouped into requests."""
    groups: list[list[StoredFrame]] = []
    for frame in frames:
        last = groups[-1] if groups else []
        end = last[-1].offset + last[-1].size if last else 0
        if last and frame.offset - end <= _GAP and frame.offset + frame.size - last[0].offset <= _TOGETHER:
            last.append(frame)
        else:
            groups.append([frame])
    return groups


def _cut(part: bytes, group: Sequence[StoredFrame], frame: StoredFrame) -> bytes:
    start = frame.offset - group[0].offset
    return part[start : start + frame.size]


def _checked(groups: Sequence[Sequence[StoredFrame]]) -> Callable[[int, bytes], str]:
    def wrong(number: int, part: bytes) -> str:
        group = groups[number]
        same = all(
            hashlib.sha256(_cut(part, group, stored_frame)).hexdigest() == stored_frame.sha256 for stored_frame in group
        )
        return "" if same else "pictures that are not what was written"

    return wrong
