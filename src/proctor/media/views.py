"""Views: an item's media under a condition, a system's only way to the pixels."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from proctor.core import AudioClip, Frame, Image, InputError, Item, ProctorError, VideoClip, View, aside
from proctor.media.audio import Sound
from proctor.media.conditions import (
    CONDITIONS,
    Condition,
    ConditionContext,
    FrameSlot,
    SingleFrame,
    SoundSlot,
    time_label,
)
from proctor.media.library import MediaLibrary, Picture
from proctor.media.mp4 import ClipFile
from proctor.media.pictures import sample_times
from proctor.media.shown import ShownLog, ShownRecord

_USUAL_RATE = 25.0
_MOST_PICTURES = 20_000


@runtime_checkable
class ShowsFiles(Protocol):
    """A view that can also give an item's clips as video files, for models that take those."""

    async def files(self) -> list[ClipFile]:
        """Each clip under the condition as an MP4 whose times start at 0: `video` has the file's own pictures,
        the others have the pictures that `frames` would show at the file's rate (at most 25 a second).
        Empty where the condition shows nothing, and for an item with images, which come as frames."""


@runtime_checkable
class PlaysSounds(Protocol):
    """A view that can also give an item's sound."""

    @property
    def sounding(self) -> bool:
        """Whether the item has any, whatever the condition."""

    @property
    def unheard(self) -> bool:
        """Whether a system asked for what is to be seen, and never for what is to be heard under the condition."""

    async def sounds(self, *, window: tuple[float, float] | None = None) -> list[Sound]:
        """The sound of each clip and recording whose sound belongs to the question, in the item's order; `window`
        (seconds of the file) is cut to each. Empty where the condition lets nothing be heard. Raises `InputError` where
        a file can't be read, is silent there, or is longer than ten minutes."""


@runtime_checkable
class ShowsOriginals(Protocol):
    """A view that can also give its pictures as large as their files are, for a system that cuts details out."""

    async def originals(self) -> list[Frame]:
        """The same as `frames()` of an item with images, in the same order and under the same condition, not scaled."""


def view(item: Item, condition: str, library: MediaLibrary, *, seed: int = 0, others: Sequence[Item] = ()) -> View:
    """The view of one item. `others` are the benchmark's items, for conditions that borrow from them.

    Opens no file. Raises `UnknownNameError` for a condition that is not registered.
    """
    return _MediaView(item, condition, library, seed, others)


def viewer(
    items: Sequence[Item], condition: str, library: MediaLibrary, *, seed: int = 0, others: Sequence[Item] = ()
) -> Callable[[Item], View]:
    """The same for many items, in the order in which they will be asked: while a system looks at one, the
    frames of the next ones are decoded (see `LookAhead`)."""

    def prepare(item: Item, request: Request) -> None:
        _MediaView(item, condition, library, seed, others).prepare(request)

    def ready(item: Item, request: Request) -> bool:
        made = _MediaView(item, condition, library, seed, others)
        return made.at_hand(request.count, request.fps, None) is not None

    ahead = LookAhead(items, prepare, ready)
    return lambda item: _MediaView(item, condition, library, seed, others, ahead)


def pictures_at(
    item: Item, condition: str, library: MediaLibrary, times: Sequence[float], *, seed: int = 0
) -> list[Frame]:
    """What a system gets to see of an item's one clip at these moments (seconds of its video's clock), each asked for
    by itself: by the same path and in the same bytes as from its view. Empty where the condition shows nothing.
    Blocks. Raises `InputError` as `MediaLibrary.jpegs`."""
    return _MediaView(item, condition, library, seed, ()).at(times)


class _MediaView:
    """Several clips of one item are sampled each by itself and share the settings' cap; the span is the
    first one's."""

    def __init__(
        self,
        item: Item,
        condition: str,
        library: MediaLibrary,
        seed: int,
        others: Sequence[Item],
        ahead: LookAhead | None = None,
    ) -> None:
        self._condition: Condition = CONDITIONS.get(condition)
        self._name = condition
        self._item = item
        self._library = library
        self._seed = seed
        self._others = others
        self._ahead = ahead
        self._log = ShownLog()

    @property
    def shown(self) -> tuple[ShownRecord, ...]:
        """As `RecordsShown` says."""
        return self._log.records

    @property
    def condition(self) -> str:
        return self._name

    @property
    def span(self) -> tuple[float, float] | None:
        if not self._condition.sees:
            return None
        clip = next((medium for medium in self._item.media if isinstance(medium, VideoClip)), None)
        if clip is not None:
            return self._library.span(clip)
        heard = next((medium for medium in self._item.media if isinstance(medium, AudioClip)), None)
        return None if heard is None or not self._condition.hears else self._library.sound_span(heard)

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        """As the protocol says. A moment's picture is the last one at or before it by presentation
        timestamp; the time told is that moment. With `fps` and `count`: that rate, at most this many.
        """
        _check_window(window, "frames")
        if not self._shows or not self._item.pictured:
            self._log.add(ShownRecord.of([], count=count, fps=fps, window=window))
            return []
        loop = asyncio.get_running_loop()
        with aside("media"):
            at_hand = self.at_hand(count, fps, window)
            if at_hand is not None:
                frames = self._recorded(at_hand, count, fps, window)
            else:
                frames = await loop.run_in_executor(self._library.workers(), self._made, count, fps, window)
        if self._ahead is not None and window is None:
            self._ahead.asked(self._item, Request(count, fps))
        return frames

    async def files(self) -> list[ClipFile]:
        """As `ShowsFiles` says."""
        if not self._shows or any(isinstance(medium, Image) for medium in self._item.media):
            return []
        loop = asyncio.get_running_loop()
        with aside("media"):
            return await loop.run_in_executor(self._library.workers(), self._recorded_files)

    @property
    def sounding(self) -> bool:
        """As `PlaysSounds` says."""
        return bool(self._item.sounding)

    @property
    def unheard(self) -> bool:
        """As `PlaysSounds` says."""
        asked = {one.asked_as for one in self.shown}
        return self._hears and bool(asked) and "sounds" not in asked

    async def sounds(self, *, window: tuple[float, float] | None = None) -> list[Sound]:
        """As `PlaysSounds` says; under `other-video` those of the other item, as far into it."""
        _check_window(window, "sounds")
        if not self._hears:
            if self.sounding:
                self._log.add(ShownRecord.of([], asked_as="sounds", window=window))
            return []
        loop = asyncio.get_running_loop()
        with aside("media"):
            return await loop.run_in_executor(self._library.workers(), self._recorded_sounds, window)

    @property
    def _shows(self) -> bool:
        return self._condition.sees and self._condition.shows

    @property
    def _hears(self) -> bool:
        return self._condition.sees and self._condition.hears and self.sounding

    def _sounds(self, window: tuple[float, float] | None) -> list[Sound]:
        clips = [medium for medium in self._item.media if isinstance(medium, VideoClip)]
        recordings = [medium for medium in self._item.media if isinstance(medium, AudioClip)]
        slots = []
        for medium in self._item.sounding:
            what, alike = ("clip", clips) if isinstance(medium, VideoClip) else ("recording", recordings)
            label = what if len(alike) == 1 else f"{what} {_place(medium, alike) + 1}"
            start, end = clip = self._library.sound_span(medium)
            if window is not None:
                start, end = max(start, window[0]), min(end, window[1])
            if start < end:
                slots.append(SoundSlot(medium, (start, end), label, clip))
        scene = ConditionContext(self._item, self._others, self._seed, self._library, window is None)
        heard = self._condition.listen(slots, scene)
        return [
            Sound(self._library.sound(one.medium, one.span), one.label, slot.span)
            for one, slot in zip(heard, slots, strict=True)
        ]

    async def originals(self) -> list[Frame]:
        """As `ShowsOriginals` says."""
        whole = _MediaView(self._item, self._name, self._library.unscaled(), self._seed, self._others)
        frames = await whole.frames()
        for one in whole.shown:
            self._log.add(one.model_copy(update={"asked_as": "originals"}))
        return frames

    def _files(self) -> list[ClipFile]:
        library, condition = self._library, self._condition
        clips = [medium for medium in self._item.media if isinstance(medium, VideoClip)]
        labels = [f"clip {number + 1}" if len(clips) > 1 else "" for number in range(len(clips))]
        if condition.unchanged and library.settings.overlay == "none":
            return [
                ClipFile(library.mp4(clip), label, library.span(clip))
                for clip, label in zip(clips, labels, strict=True)
            ]
        files = []
        paint = condition.paint, self._name
        for clip, label in zip(clips, labels, strict=True):
            rate = library.probe(clip.source).fps or _USUAL_RATE
            item = self._item.model_copy(update={"media": (clip,)})
            alone = _MediaView(item, self._name, library, self._seed, self._others)
            slots = alone.arranged(_MOST_PICTURES, min(rate, _USUAL_RATE), None)
            span = library.span(clip)
            times = [(slot.time or 0.0) - span[0] for slot in slots]
            first = min(times, default=0.0)
            mp4 = library.mp4_of([slot.picture for slot in slots], [time - first for time in times], paint)
            files.append(ClipFile(mp4, label, span))
            if isinstance(condition, SingleFrame):
                break
        return files

    def prepare(self, request: Request) -> None:
        """Makes what `frames` would be asked for with this request, without giving it."""
        if self._shows and self._item.pictured:
            self._library.jpegs([slot.picture for slot in self.arranged(request.count, request.fps, None)])

    def _made(self, count: int | None, fps: float | None, window: tuple[float, float] | None) -> list[Frame]:
        return self._recorded(self._frames(count, fps, window), count, fps, window)

    def _recorded(
        self, frames: list[Frame], count: int | None, fps: float | None, window: tuple[float, float] | None
    ) -> list[Frame]:
        self._log.add(ShownRecord.of(frames, count=count, fps=fps, window=window, media=self._identities()))
        return frames

    def at_hand(self, count: int | None, fps: float | None, window: tuple[float, float] | None) -> list[Frame] | None:
        """What `frames` gives, where these are images in memory; else None. Never blocks."""
        if not self._condition.unchanged or not all(isinstance(one, Image) for one in self._item.pictured):
            return None
        slots = self.arranged(count, fps, window)
        jpegs = self._library.at_hand([slot.picture for slot in slots])
        return None if jpegs is None else self._painted(slots, jpegs)

    def _recorded_files(self) -> list[ClipFile]:
        files = self._files()
        self._log.add(ShownRecord.of(files, asked_as="files", media=self._identities()))
        return files

    def _recorded_sounds(self, window: tuple[float, float] | None) -> list[Sound]:
        sounds = self._sounds(window)
        self._log.add(ShownRecord.of(sounds, asked_as="sounds", window=window, media=self._identities()))
        return sounds

    def _identities(self) -> dict[str, str]:
        return {source: self._library.identity(source) for source in sorted({one.source for one in self._item.media})}

    def _frames(self, count: int | None, fps: float | None, window: tuple[float, float] | None) -> list[Frame]:
        return self._shown(self.arranged(count, fps, window))

    def _shown(self, slots: Sequence[FrameSlot]) -> list[Frame]:
        return self._painted(slots, self._library.jpegs([slot.picture for slot in slots]))

    def _painted(self, slots: Sequence[FrameSlot], jpegs: Sequence[bytes]) -> list[Frame]:
        return [
            Frame(self._condition.paint(jpeg), slot.time, slot.label) for slot, jpeg in zip(slots, jpegs, strict=True)
        ]

    def at(self, times: Sequence[float]) -> list[Frame]:
        """The picture of each moment, as if it were asked for alone."""
        clip = next((medium for medium in self._item.media if isinstance(medium, VideoClip)), None)
        if clip is None or not self._shows:
            return []
        span = self._library.span(clip)
        own = [FrameSlot(Picture(clip.source, time, clip.region, scan=clip.scan), time, "", span) for time in times]
        return self._shown([slot for one in own for slot in self._under_condition([one], whole=False)])

    def arranged(self, count: int | None, fps: float | None, window: tuple[float, float] | None) -> list[FrameSlot]:
        """What is shown for a request, before anything is decoded."""
        slots, whole = self._slots(count, fps, window)
        return self._under_condition(slots, whole=whole)

    def _under_condition(self, slots: list[FrameSlot], *, whole: bool) -> list[FrameSlot]:
        scene = ConditionContext(self._item, self._others, self._seed, self._library, whole)
        slots = self._condition.arrange(slots, scene)
        overlay = self._library.settings.overlay
        return slots if overlay == "none" else [_painted(slot, overlay) for slot in slots]

    def _slots(
        self, count: int | None, fps: float | None, window: tuple[float, float] | None
    ) -> tuple[list[FrameSlot], bool]:
        """What is shown without any condition, and whether that is of the whole clips."""
        clips = [medium for medium in self._item.media if isinstance(medium, VideoClip)]
        settings = self._library.settings
        shared = max(1, settings.max_frames // max(1, len(clips)))
        settings = settings.model_copy(update={"max_frames": shared})
        slots, whole = [], True
        for medium in self._item.pictured:
            if not isinstance(medium, VideoClip):
                slots.append(
                    FrameSlot(Picture(medium.source, None, medium.region, scan=medium.scan), None, medium.label)
                )
                continue
            start, end = clip = self._library.span(medium)
            if window is not None:
                start, end = max(start, window[0]), min(end, window[1])
                whole = whole and (start, end) == clip
            if start >= end:
                continue
            prefix = f"clip {clips.index(medium) + 1}, " if len(clips) > 1 else ""
            slots += [
                FrameSlot(
                    Picture(medium.source, time, medium.region, scan=medium.scan), time, prefix + time_label(time), clip
                )
                for time in sample_times(start, end, settings, count=count, fps=fps)
            ]
        return slots, whole


def _check_window(window: tuple[float, float] | None, what: str) -> None:
    if window is not None and not window[0] < window[1]:
        raise InputError(what, found=f"window={window}", expected="its end after its start")


def _place(medium: object, among: Sequence[object]) -> int:
    return next(place for place, one in enumerate(among) if one is medium)


def _painted(slot: FrameSlot, overlay: str) -> FrameSlot:
    """With the time that is told, whatever the picture's own is: it must not give an order away."""
    if slot.clip is None or slot.time is None:
        return slot
    start = slot.clip[0] if overlay == "clip" else 0.0
    return replace(slot, picture=replace(slot.picture, shows=slot.time - start))


_IDLE_S = 0.2  # a thread waits so long for more: starting one takes longer than most of its tasks
_AHEAD = 8
"""So many items beyond the last one that was asked for; their frames go to the store, not into memory."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a system asks a view for."""

    count: int | None = None
    fps: float | None = None


class LookAhead:
    """Of items in the order in which they will be asked: whatever the last one was asked for is made for the
    next ones as well, one after the other, in the background.

    It changes when frames are made and nothing else: what a view gives comes from the store, and what goes
    wrong ahead is told when the item itself is asked for. What is `ready` is left out. The thread ends when it has
    nothing to do, and with the process.
    """

    def __init__(
        self,
        items: Sequence[Item],
        prepare: Callable[[Item, Request], object],
        ready: Callable[[Item, Request], bool] = lambda _item, _request: False,
    ) -> None:
        self._items = list(items)
        self._places = {item.id: place for place, item in enumerate(items)}
        self._prepare = prepare
        self._ready = ready
        self._guard = threading.Condition()
        self._waiting: deque[tuple[int, Request]] = deque()
        self._reached = self._planned = 0
        self._working = False

    def asked(self, item: Item, request: Request) -> None:
        """An item's frames were asked for, and are there."""
        place = self._places.get(item.id)
        if place is None:
            return
        with self._guard:
            self._reached = max(self._reached, place + 1)
            end = min(len(self._items), self._reached + _AHEAD)
            new = range(max(self._planned, self._reached), end)
            self._waiting.extend((k, request) for k in new if not self._ready(self._items[k], request))
            self._planned = max(self._planned, end)
            if self._waiting and not self._working:
                self._working = True
                threading.Thread(target=self._work, name="look-ahead", daemon=True).start()
            elif self._waiting:
                self._guard.notify()

    def _work(self) -> None:
        while (task := self._next()) is not None:
            place, request = task
            try:
                self._prepare(self._items[place], request)
            except ProctorError:
                continue  # told when the item itself is asked for
            except RuntimeError as error:
                if "interpreter shutdown" in str(error):
                    return  # the program ends: nobody will ask
                raise

    def _next(self) -> tuple[int, Request] | None:
        with self._guard:
            while True:
                while self._waiting and self._waiting[0][0] < self._reached:
                    self._waiting.popleft()  # the item itself was faster
                if self._waiting:
                    return self._waiting.popleft()
                if not self._guard.wait(_IDLE_S):
                    self._working = False
                    return None
