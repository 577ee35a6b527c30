"""An item's media as its page shows them: videos to play, their tables of timestamps, and exact pictures.

Pictures are identified by their presentation timestamps, from which playback times follow (see
`MediaLibrary.playback`). A paused video shows the frame store's JPEG.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from proctor.core import FrozenModel, Image, InputError, Item, Media, ProctorError, Region, VideoClip
from proctor.core.formats import FreeTextFormat
from proctor.media import ClipLocation, FrameIndex, MediaLibrary, Picture, pictures_at, scan_kind

_AT_ONCE = 2  # videos that are converted at the same time; others wait
_PATIENCE_S = 0.5  # enough for most videos
_BLOCK = 8  # pictures that are decoded together: decoding starts at a keyframe anyway
_MOST_TABLES = 64


class FrameTable(FrozenModel):
    """The pictures of a clip's whole video, in order.

    Timestamps count ticks of `time_base` (numerator, denominator): the `first`, as text because it may not fit a
    JavaScript number, and the `steps` from each to the next. `keys` are the indices (from 0) of keyframes. In playback,
    a picture is shown (timestamp - first) * time_base seconds after the first one. `origin` is the item's time of the
    first picture; `start` and `end` of the clip are in item's time. `width` and `height` are those of the upright
    picture, `region` is the shown part (None for all), and `sha256` is the file's hash.
    """

    first: str
    steps: tuple[int, ...]
    keys: tuple[int, ...]
    time_base: tuple[int, int]
    origin: float
    start: float
    end: float
    width: int
    height: int
    region: Region | None
    sha256: str
    plays: bool


@dataclass(frozen=True)
class ShownItem:
    """An item whose media a visitor may see, and the condition under which systems saw them."""

    key: str
    media: tuple[Media, ...]
    condition: str = "video"


class _Played(NamedTuple):
    """A playable video: all of the picture, or a region."""

    source: str
    region: Region | None


class ItemMedia:
    """The media of a review's items. Its methods may block while a file is read."""

    def __init__(self, library: MediaLibrary) -> None:
        self._library, self._whole = library, library.unscaled(painted=False)
        self._guard = threading.Lock()
        self._playable: dict[_Played, Future[Path]] = {}
        self._waiting: deque[tuple[_Played, Future[Path]]] = deque()
        self._makers = 0
        self._tables = lru_cache(_MOST_TABLES)(self._table)

    def table(self, clip: VideoClip) -> bytes:
        """The clip's `FrameTable` as JSON; starts to make the video playable. Raises `InputError` for an unreadable
        file."""
        if self._plays(clip):
            self._request(self._played(clip))
        return self._tables(self._library.identity(clip.source), clip)

    def _table(self, identity: str, clip: VideoClip) -> bytes:
        library, index = self._library, self._library.index(clip.source)
        info, (start, end), clip_location = library.probe(clip.source), library.span(clip), self._clip_location(clip)
        table = FrameTable(
            first=str(int(index.pts[0])),
            steps=tuple(np.diff(index.pts).tolist()),
            keys=tuple(np.flatnonzero(np.isin(index.pts, index.keys)).tolist()),
            time_base=index.time_base.as_integer_ratio(),
            origin=index.seconds(int(index.pts[0])) - clip_location.offset,
            start=start,
            end=end,
            width=info.width,
            height=info.height,
            region=self._played(clip).region,
            sha256=identity,
            plays=self._plays(clip),
        )
        return table.model_dump_json().encode()

    def video(self, clip: VideoClip) -> tuple[Path, float] | None:
        """The whole video in a form that browsers play, black outside the clip's region, and the second at which it
        shows the first picture; None while it is being made. Raises `InputError` where it can't be made."""
        played = self._played(clip)
        playable = self._request(played)
        wait([playable], _PATIENCE_S)
        return (playable.result(), self._library.playback_lead(*played)) if playable.done() else None

    def _played(self, clip: VideoClip) -> _Played:
        return _Played(clip.source, None if clip.region is None or self._clip_location(clip).cropped else clip.region)

    def _request(self, played: _Played) -> Future[Path]:
        """The playable video. One that failed or was removed from the cache is made again on the next request."""
        with self._guard:
            playable = self._playable.pop(played, None)
            if playable is not None and playable.done() and playable.exception():
                return playable
            if playable is None or (playable.done() and not playable.result().is_file()):
                playable = Future()
                self._waiting.append((played, playable))
                if self._makers < _AT_ONCE:
                    self._makers += 1
                    threading.Thread(target=self._make, name="playback", daemon=True).start()
            self._playable[played] = playable
        return playable

    def _make(self) -> None:
        """Makes the videos that wait. The thread is a daemon: a stopping server does not wait for half a video."""
        while (task := self._next()) is not None:
            played, playable = task
            try:
                playable.set_result(self._library.playback(*played))
            except ProctorError as error:
                playable.set_exception(error)
            finally:
                if not playable.done():
                    playable.set_exception(InputError(played.source, found="a video that can't be made playable"))

    def _next(self) -> tuple[_Played, Future[Path]] | None:
        with self._guard:
            if self._waiting:
                return self._waiting.popleft()
            self._makers -= 1
            return None

    def _plays(self, clip: VideoClip) -> bool:
        return scan_kind(self._library.locate(clip.source)) is None

    def frame(self, item: ShownItem, clip: VideoClip, pts: int, *, as_shown: bool) -> bytes:
        """The JPEG of the picture with this timestamp, in full size; with `as_shown`, the exact bytes that a system
        gets at that time: scaled, under the item's condition and with the overlay.

        Raises `InputError` where the video has no such picture, and where systems saw none.
        """
        index = self._library.index(clip.source)
        row = int(np.searchsorted(index.pts, pts))
        if row >= len(index.pts) or index.pts[row] != pts:
            raise InputError(clip.source, found=f"no picture with timestamp {pts}")
        begin = row // _BLOCK * _BLOCK
        times = self._times(clip, index, index.pts[begin : begin + _BLOCK].tolist())
        shown = self._pictures(item, clip, times, as_shown=as_shown)
        if not shown:
            raise InputError(clip.source, found=f"no picture under the condition {item.condition!r}")
        return shown[row - begin]

    def picture(self, item: ShownItem, medium: Image | VideoClip, time: float | None) -> bytes:
        """The JPEG of a still image, or of a video's picture at a time of the item's clock, in full size. Raises
        `InputError` for an unreadable file, an image with a time, and a video without one."""
        if isinstance(medium, VideoClip) and time is not None:
            return self._pictures(item, medium, [time], as_shown=False)[0]
        if isinstance(medium, VideoClip) or time is not None:
            raise InputError(medium.source, found="a time of an image" if time is not None else "a video without one")
        return self._whole.jpegs([Picture(medium.source, None, medium.region, scan=medium.scan)])[0]

    def _pictures(self, item: ShownItem, clip: VideoClip, times: Sequence[float], *, as_shown: bool) -> list[bytes]:
        shown = Item(id=item.key, group=item.key, question="What is shown?", answer=FreeTextFormat(), media=(clip,))
        library, condition = (self._library, item.condition) if as_shown else (self._whole, "video")
        return [frame.jpeg for frame in pictures_at(shown, condition, library, times)]

    def _times(self, clip: VideoClip, index: FrameIndex, stamps: Sequence[int]) -> list[float]:
        offset = self._clip_location(clip).offset
        return [index.seconds(pts) - offset for pts in stamps]

    def _clip_location(self, clip: VideoClip) -> ClipLocation:
        library = self._library
        return library.excerpts.locate(clip.source, clip.region, library.probe(clip.source))
