"""An item's media as its page shows them: videos to play, the table of their timestamps, and exact pictures.

A picture is always known by its presentation timestamp: the video plays at times that follow from it (see
`MediaLibrary.playback`), and what is shown while time stands still is the frame store's own JPEG.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from proctor.core import Image, InputError, Item, Media, ProctorError, Region, VideoClip
from proctor.core.formats import FreeTextFormat
from proctor.media import FrameIndex, MediaLibrary, Picture, Placed, pictures_at, scan_kind

_AT_ONCE = 2  # videos that are made playable at once; further ones wait
_PATIENCE_S = 0.5  # most videos need no longer
_BLOCK = 8  # pictures that are made together: decoding starts at a keyframe for one as for many
_MOST_TABLES = 64


class FrameTable(BaseModel):
    """The pictures of a clip's whole video, in order. Timestamps count ticks of `time_base` (numerator, denominator):
    the `first`, as text since it may not fit a JavaScript number, and the `steps` from each to the next; `keys` are the
    places (from 0) of keyframes. Played, a picture is at (its timestamp - first) * time_base seconds after the first
    one; `origin` is the item's time of that, and `start` and `end` of the clip are item's times. `width` and `height`
    are as displayed, turned upright; `region` is the part that is shown, None for the whole. `sha256` is the file's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    """An item whose media a visitor may see: its key, media, and under which condition systems saw them."""

    key: str
    media: tuple[Media, ...]
    condition: str = "video"


class _Played(NamedTuple):
    """What is played: a video, or a part of its picture."""

    source: str
    region: Region | None


class ItemMedia:
    """The media of a review's items. Its methods may block while a file is read."""

    def __init__(self, library: MediaLibrary) -> None:
        self._library, self._whole = library, library.unscaled(painted=False)
        self._guard = threading.Lock()
        self._made: dict[_Played, Future[Path]] = {}
        self._waiting: deque[tuple[_Played, Future[Path]]] = deque()
        self._makers = 0
        self._tables: OrderedDict[tuple[str, VideoClip], bytes] = OrderedDict()

    def table(self, clip: VideoClip) -> bytes:
        """The clip's `FrameTable` as JSON; the video begins to be made playable. Raises `InputError` where the file
        can't be read."""
        if self._plays(clip):
            self._making(self._played(clip))
        address = self._library.identity(clip.source), clip
        with self._guard:
            if address in self._tables:
                self._tables.move_to_end(address)
                return self._tables[address]
        table = self._table(clip).model_dump_json().encode()
        with self._guard:
            self._tables[address] = table
            while len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)
        return table

    def _table(self, clip: VideoClip) -> FrameTable:
        library, index = self._library, self._library.index(clip.source)
        info, (start, end), placed = library.probe(clip.source), library.span(clip), self._placed(clip)
        return FrameTable(
            first=str(int(index.pts[0])),
            steps=tuple(np.diff(index.pts).tolist()),
            keys=tuple(np.flatnonzero(np.isin(index.pts, index.keys)).tolist()),
            time_base=index.time_base.as_integer_ratio(),
            origin=index.seconds(int(index.pts[0])) - placed.offset,
            start=start,
            end=end,
            width=info.width,
            height=info.height,
            region=self._played(clip).region,
            sha256=library.identity(clip.source),
            plays=self._plays(clip),
        )

    def video(self, clip: VideoClip) -> tuple[Path, float] | None:
        """The whole video as a browser plays it, black outside the clip's region, and at which of its seconds the first
        picture is; None while it is being made. Raises `InputError` where it can't be."""
        played = self._played(clip)
        made = self._making(played)
        wait([made], _PATIENCE_S)
        return (made.result(), self._library.playback_lead(*played)) if made.done() else None

    def _played(self, clip: VideoClip) -> _Played:
        return _Played(clip.source, None if clip.region is None or self._placed(clip).cropped else clip.region)

    def _making(self, played: _Played) -> Future[Path]:
        """What failed once, or was removed to make room, is tried again when it is asked for again."""
        with self._guard:
            made = self._made.pop(played, None)
            if made is not None and made.done() and made.exception():
                return made
            if made is None or (made.done() and not made.result().is_file()):
                made = Future()
                self._waiting.append((played, made))
                if self._makers < _AT_ONCE:
                    self._makers += 1
                    threading.Thread(target=self._make, name="playback", daemon=True).start()
            self._made[played] = made
        return made

    def _make(self) -> None:
        """Makes what waits. A server that is stopped does not wait for it: what is half made is never shown."""
        while (task := self._next()) is not None:
            played, made = task
            try:
                made.set_result(self._library.playback(*played))
            except ProctorError as error:
                made.set_exception(error)
            finally:
                if not made.done():
                    made.set_exception(InputError(played.source, found="a video that can't be made playable"))

    def _next(self) -> tuple[_Played, Future[Path]] | None:
        with self._guard:
            if self._waiting:
                return self._waiting.popleft()
            self._makers -= 1
            return None

    def _plays(self, clip: VideoClip) -> bool:
        return scan_kind(self._library.locate(clip.source)) is None

    def frame(self, item: ShownItem, clip: VideoClip, pts: int, *, as_shown: bool) -> bytes:
        """The JPEG of the picture with this timestamp, as large as the file. With `as_shown`: the very bytes that a
        system gets at that moment, scaled, under the item's condition and with the overlay.

        Raises `InputError` where the video has no such picture, and where systems saw none.
        """
        index = self._library.index(clip.source)
        place = int(np.searchsorted(index.pts, pts))
        if place >= len(index.pts) or index.pts[place] != pts:
            raise InputError(clip.source, found=f"no picture with timestamp {pts}")
        begin = place // _BLOCK * _BLOCK
        times = self._times(clip, index, index.pts[begin : begin + _BLOCK].tolist())
        shown = self._pictures(item, clip, times, as_shown=as_shown)
        if not shown:
            raise InputError(clip.source, found=f"no picture under the condition {item.condition!r}")
        return shown[place - begin]

    def picture(self, item: ShownItem, medium: Image | VideoClip, time: float | None) -> bytes:
        """The JPEG of a still image, or of the picture that a video shows at a time of the item's clock, as large as
        the file. Raises `InputError` where the file can't be read or the two do not fit."""
        if isinstance(medium, VideoClip) and time is not None:
            return self._pictures(item, medium, [time], as_shown=False)[0]
        if isinstance(medium, VideoClip) or time is not None:
            raise InputError(medium.source, found="a time of an image" if time is not None else "a video without one")
        return self._whole.jpegs([Picture(medium.source, None, medium.region, scan=medium.scan)])[0]

    def _pictures(self, item: ShownItem, clip: VideoClip, times: Sequence[float], *, as_shown: bool) -> list[bytes]:
        asked = Item(id=item.key, group=item.key, question="What is shown?", answer=FreeTextFormat(), media=(clip,))
        library, condition = (self._library, item.condition) if as_shown else (self._whole, "video")
        return [frame.jpeg for frame in pictures_at(asked, condition, library, times)]

    def _times(self, clip: VideoClip, index: FrameIndex, stamps: Sequence[int]) -> list[float]:
        offset = self._placed(clip).offset
        return [index.seconds(pts) - offset for pts in stamps]

    def _placed(self, clip: VideoClip) -> Placed:
        library = self._library
        return library.excerpts.place(clip.source, clip.region, library.probe(clip.source))
