"""The media of one machine: found by name, checked before anything is paid, and served as JPEGs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from proctor.core import Image, InputError, Item, Region, VideoClip
from proctor.media.decode import decode_at
from proctor.media.index import FrameIndex, read_index
from proctor.media.names import find, locate
from proctor.media.pictures import encode, from_frame, read_image
from proctor.media.settings import MediaSettings
from proctor.media.video import VideoInfo, probe

__all__ = ["MediaLibrary", "MediaProblem", "Picture"]

T = TypeVar("T")

_TOLERANCE_S = 0.5  # a clip may end this much after its video, as times are often rounded


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture to be shown: of a video at a time of its own clock, or a still image (`at` is None)."""

    source: str
    at: float | None
    region: Region | None = None


@dataclass(frozen=True, slots=True)
class MediaProblem:
    """What is wrong with a file, and which items need it."""

    source: str
    problem: str
    item_ids: tuple[str, ...]

    def __str__(self) -> str:
        others = f" and {len(self.item_ids) - 1} more" if len(self.item_ids) > 1 else ""
        return f"{self.problem} (needed by item {self.item_ids[0]!r}{others})"


class MediaLibrary:
    """Files below `root` (None: no media at hand), pictures made by `settings`, kept in `cache_dir`."""

    def __init__(
        self,
        root: Path | None,
        settings: MediaSettings | None = None,
        cache_dir: Path | None = None,
    ) -> None:
        self.root = root
        self.settings = settings or MediaSettings()
        self.cache_dir = cache_dir
        self._lock = threading.Lock()
        self._probed: dict[Path, VideoInfo] = {}
        self._indexed: dict[Path, FrameIndex] = {}

    def locate(self, source: str) -> Path:
        """The file of this name below the root: as it stands, or with a usual extension appended.
        Raises `InputError` where there is none, or the name leads out of the root."""
        return locate(self.root, source)

    def missing(self, items: Iterable[Item]) -> list[str]:
        """The names that the items' media have and that are not found, sorted."""
        sources = {medium.source for item in items for medium in item.media}
        return sorted(s for s in sources if self.root is None or find(self.root, s) is None)

    def probe(self, source: str) -> VideoInfo:
        """Of a video. Raises `InputError` where it can't be read."""
        return self._remembered(self._probed, self.locate(source), probe)

    def span(self, clip: VideoClip) -> tuple[float, float]:
        """Start and end of the clip in seconds, cut to the video. Raises `InputError` where it starts at or
        ends more than half a second after the video's end."""
        duration = self.probe(clip.source).duration_s
        for name, time in (("start", clip.start), ("end", clip.end)):
            if time is not None and (
                time > duration + _TOLERANCE_S or (name == "start" and time >= duration)
            ):
                raise InputError(
                    clip.source,
                    f"the clip's {name}",
                    found=f"{time:g} s",
                    expected=f"a time within the video's {duration:.2f} s",
                )
        return clip.start, duration if clip.end is None else min(clip.end, duration)

    def problems(self, items: Iterable[Item]) -> list[MediaProblem]:
        """Everything that `check` would complain about, one entry per problem, sorted by file."""
        found: dict[tuple[str, str], list[str]] = {}
        seen: dict[VideoClip | Image, str | None] = {}
        for item in items:
            for medium in dict.fromkeys(item.media):
                if medium not in seen:
                    seen[medium] = self._problem(medium)
                problem = seen[medium]
                if problem is not None:
                    found.setdefault((medium.source, problem), []).append(item.id)
        return [MediaProblem(source, text, tuple(ids)) for (source, text), ids in sorted(found.items())]

    def check(self, items: Iterable[Item]) -> None:
        """Opens every file that the items need. Raises `InputError` naming the file, the problem and an item:
        missing or unreadable, no video in it, truncated, a clip beyond the video's end."""
        problems = self.problems(items)
        if problems:
            more = f"; {len(problems) - 1} more problems with media" if len(problems) > 1 else ""
            raise InputError(None, f"{problems[0]}{more}")

    def jpegs(self, pictures: Sequence[Picture]) -> list[bytes]:
        """The encoded pictures, in the order asked for. Blocks: call it through `workers()`."""
        asked: dict[tuple[str, Region | None], list[int]] = {}
        for place, picture in enumerate(pictures):
            asked.setdefault((picture.source, picture.region), []).append(place)
        served: dict[int, bytes] = {}
        for (source, region), places in asked.items():
            times = [pictures[place].at for place in places]
            made = self._stills(source, region) if times[0] is None else self._shots(source, region, times)
            served.update({place: made[time] for place, time in zip(places, times, strict=True)})
        return [served[place] for place in range(len(pictures))]

    @staticmethod
    def workers() -> ThreadPoolExecutor:
        """The threads that decode, so that nobody's event loop waits."""
        return _workers(os.getpid())

    def _problem(self, medium: VideoClip | Image) -> str | None:
        try:
            if isinstance(medium, VideoClip):
                self.span(medium)
            else:
                read_image(self.locate(medium.source))
        except InputError as error:
            return str(error)
        return None

    def _stills(self, source: str, region: Region | None) -> dict[float | None, bytes]:
        return {None: encode(read_image(self.locate(source)), region, self.settings)}

    def _shots(
        self, source: str, region: Region | None, times: Sequence[float | None]
    ) -> dict[float | None, bytes]:
        path = self.locate(source)
        index = self._remembered(self._indexed, path, read_index)
        moments = [time for time in times if time is not None]
        stamps = index.at(moments)
        wanted = sorted(set(stamps))
        made = {
            pts: encode(from_frame(frame), region, self.settings)
            for pts, frame in decode_at(path, index, wanted)
        }
        return {time: made[pts] for time, pts in zip(moments, stamps, strict=True)}

    def _remembered(self, known: dict[Path, T], path: Path, read: Callable[[Path], T]) -> T:
        with self._lock:
            if path in known:
                return known[path]
        value = read(path)
        with self._lock:
            return known.setdefault(path, value)


@lru_cache(maxsize=1)
def _workers(_process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1), thread_name_prefix="media")
