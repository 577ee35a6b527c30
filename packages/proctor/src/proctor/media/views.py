"""Views: an item's media under a condition, a system's only way to the pixels; how many frames each clip gets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Protocol, TypeVar, runtime_checkable

from proctor.core import (
    AudioClip,
    ConfigurationError,
    Frame,
    Image,
    InputError,
    Item,
    Media,
    ProctorError,
    VideoClip,
    View,
    aside,
    error_at,
    thousands,
)
from proctor.media.condition import Condition, ConditionContext, FrameSlot, SoundSlot
from proctor.media.conditions import CONDITIONS, SingleFrame, time_label
from proctor.media.library import MediaLibrary, Picture
from proctor.media.look_ahead import LookAhead, Request
from proctor.media.sampling import count_at_rate, picture_starts, sample_parts
from proctor.media.shown import ClipFile, ShownLog, ShownRecord, Sound

T = TypeVar("T")

_USUAL_RATE = 25.0
_MAX_PICTURES = 20_000


@runtime_checkable
class ShowsFiles(Protocol):
    """A view that can also give an item's clips as video files, for models that take those."""

    async def files(self) -> list[ClipFile]:
        """Each clip under the condition as an MP4 whose times start at 0: `video` has the file's own pictures, other
        conditions show these, too, or 25 a second of a faster file. Empty where the condition shows nothing, and for
        an item with images, which come as frames."""


@runtime_checkable
class PlaysSounds(Protocol):
    """A view that can also give an item's sound."""

    @property
    def sounding(self) -> bool:
        """Whether the item has any, whatever the condition."""

    @property
    def unheard(self) -> bool:
        """Whether a system requested pictures, but never the sound that the condition lets it hear."""

    async def sounds(self, *, window: tuple[float, float] | None = None) -> list[Sound]:
        """The sound of each clip and recording whose sound belongs to the question, in the item's order; `window`
        (seconds of the file) is cut to each. Empty where the condition lets nothing be heard. Raises `InputError` where
        a file can't be read, is silent there, or is longer than ten minutes."""


@runtime_checkable
class ShowsOriginals(Protocol):
    """A view that can also give its pictures unscaled, for a system that crops details."""

    async def originals(self) -> list[Frame]:
        """The frames of an item with images as `frames()` gives them, not scaled."""


def view(
    item: Item, condition: str | Condition, library: MediaLibrary, *, seed: int = 0, others: Sequence[Item] = ()
) -> View:
    """The view of one item under a condition, by its name or itself. `others` are the benchmark's items, for conditions
    that borrow from them.

    Opens no file. Raises `UnknownNameError` for a condition that is not registered.
    """
    return _MediaView(item, condition, library, seed, others)


def viewer(
    items: Sequence[Item], condition: str, library: MediaLibrary, *, seed: int = 0, others: Sequence[Item] = ()
) -> Callable[[Item], View]:
    """The views of many items, in the order in which a system gets them: while it works on one, the frames of the next
    ones are decoded (see `LookAhead`)."""

    def prepare(item: Item, request: Request) -> None:
        _MediaView(item, condition, library, seed, others).prepare(request)

    def ready(item: Item, request: Request) -> bool:
        made = _MediaView(item, condition, library, seed, others)
        return made.at_hand(request) is not None

    ahead = LookAhead(items, prepare, ready)
    return lambda item: _MediaView(item, condition, library, seed, others, ahead)


def pictures_at(
    item: Item, condition: str, library: MediaLibrary, times: Sequence[float], *, seed: int = 0
) -> list[Frame]:
    """The pictures of an item's one clip at these moments (seconds of its video's clock), as its view would show each
    alone, byte for byte. Empty where the condition shows nothing. Blocks. Raises `InputError` as
    `MediaLibrary.jpegs`."""
    return _MediaView(item, condition, library, seed, ()).at(times)


class _MediaView:
    """Clips of one item are sampled one by one and share the settings' cap; the span is the first clip's."""

    def __init__(
        self,
        item: Item,
        condition: str | Condition,
        library: MediaLibrary,
        seed: int,
        others: Sequence[Item],
        ahead: LookAhead | None = None,
        *,
        whole: Item | None = None,
    ) -> None:
        """`whole` is the item that `item` is a part of: another video is none of the whole item's."""
        self._given = condition
        self._condition = CONDITIONS.get(condition) if isinstance(condition, str) else condition
        self._name = condition if isinstance(condition, str) else type(condition).__name__
        self._item = item
        self._whole = whole or item
        self._clips = [medium for medium in item.media if isinstance(medium, VideoClip)]
        self._library = library
        self._seed = seed
        self._others = others
        self._ahead = ahead
        self._log = ShownLog()

    @property
    def shown(self) -> tuple[ShownRecord, ...]:
        """See `RecordsShown`."""
        return self._log.records

    @property
    def condition(self) -> str:
        return self._name

    @property
    def span(self) -> tuple[float, float] | None:
        if not self._condition.sees:
            return None
        if self._clips:
            return self._library.span(self._clips[0])
        heard = next((medium for medium in self._item.media if isinstance(medium, AudioClip)), None)
        return None if heard is None or not self._condition.hears else self._library.sound_span(heard)

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        """See `View`. A moment's picture is the last one at or before it by presentation timestamp; the frame's time is
        that moment. With `fps` and `count`: that rate, at most this many frames."""
        _check_window(window, "frames")
        request = Request(count, fps, window)
        if not self._shows or not self._item.pictured:
            self._log.add(ShownRecord.of([], count=count, fps=fps, window=window))
            return []
        with aside("media"):
            at_hand = self.at_hand(request)
            frames = await self._in_thread(self._made, request) if at_hand is None else self._logged(at_hand, request)
        if self._ahead is not None and window is None:
            self._ahead.asked(self._item, request)
        return frames

    async def files(self) -> list[ClipFile]:
        """See `ShowsFiles`."""
        if not self._shows or any(isinstance(medium, Image) for medium in self._item.media):
            return []
        with aside("media"):
            return await self._in_thread(self._made_files)

    @property
    def sounding(self) -> bool:
        """See `PlaysSounds`."""
        return bool(self._item.sounding)

    @property
    def unheard(self) -> bool:
        """See `PlaysSounds`."""
        asked = {shown_record.asked_as for shown_record in self.shown}
        return self._hears and bool(asked) and "sounds" not in asked

    async def sounds(self, *, window: tuple[float, float] | None = None) -> list[Sound]:
        """See `PlaysSounds`; under `other-video` the sounds of the other item, as far into it."""
        _check_window(window, "sounds")
        if not self._hears:
            if self.sounding:
                self._log.add(ShownRecord.of([], asked_as="sounds", window=window))
            return []
        with aside("media"):
            return await self._in_thread(self._made_sounds, window)

    async def originals(self) -> list[Frame]:
        """See `ShowsOriginals`."""
        whole = _MediaView(self._item, self._given, self._library.unscaled(), self._seed, self._others)
        frames = await whole.frames()
        for shown_record in whole.shown:
            self._log.add(shown_record.model_copy(update={"asked_as": "originals"}))
        return frames

    def prepare(self, request: Request) -> None:
        """Makes what `frames` would give for this request."""
        if self._shows and self._item.pictured:
            self._library.jpegs([slot.picture for slot in self.arranged(request)])

    def at_hand(self, request: Request) -> list[Frame] | None:
        """What `frames` gives, where these are images in memory; else None. Never blocks."""
        if not self._condition.unchanged or not all(isinstance(one, Image) for one in self._item.pictured):
            return None
        slots = self.arranged(request)
        jpegs = self._library.at_hand([slot.picture for slot in slots])
        return None if jpegs is None else self._painted(slots, jpegs)

    def at(self, times: Sequence[float]) -> list[Frame]:
        """The picture of each moment, as if it were requested alone."""
        if not self._clips or not self._shows:
            return []
        clip, span = self._clips[0], self._library.span(self._clips[0])
        pictures = [Picture(clip.source, time, clip.region, scan=clip.scan) for time in times]
        own = [FrameSlot(one, one.at, "", span, self._position_of(clip)) for one in pictures]
        return self._frames([slot for frame_slot in own for slot in self._under_condition([frame_slot], whole=False)])

    def arranged(self, request: Request) -> list[FrameSlot]:
        """What is shown for a request, before anything is decoded."""
        slots, whole = self._slots(request)
        return self._under_condition(slots, whole=whole)

    @property
    def _shows(self) -> bool:
        return self._condition.sees and self._condition.shows

    @property
    def _hears(self) -> bool:
        return self._condition.sees and self._condition.hears and self.sounding

    async def _in_thread(self, make: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._library.workers(), make, *args)

    def _made(self, request: Request) -> list[Frame]:
        return self._logged(self._frames(self.arranged(request)), request)

    def _logged(self, frames: list[Frame], request: Request) -> list[Frame]:
        count, fps, window = request.count, request.fps, request.window
        self._log.add(ShownRecord.of(frames, count=count, fps=fps, window=window, media=self._identities()))
        return frames

    def _made_files(self) -> list[ClipFile]:
        files = self._files()
        self._log.add(ShownRecord.of(files, asked_as="files", media=self._identities()))
        return files

    def _made_sounds(self, window: tuple[float, float] | None) -> list[Sound]:
        sounds = self._sounds(window)
        self._log.add(ShownRecord.of(sounds, asked_as="sounds", window=window, media=self._identities()))
        return sounds

    def _identities(self) -> dict[str, str]:
        return {
            source: self._library.identity(source) for source in sorted({medium.source for medium in self._item.media})
        }

    def _frames(self, slots: Sequence[FrameSlot]) -> list[Frame]:
        return self._painted(slots, self._library.jpegs([slot.picture for slot in slots]))

    def _painted(self, slots: Sequence[FrameSlot], jpegs: Sequence[bytes]) -> list[Frame]:
        pairs = zip(slots, jpegs, strict=True)
        return [Frame(self._changed(jpeg), slot.time, slot.label) for slot, jpeg in pairs]

    def _changed(self, jpeg: bytes) -> bytes:
        """The picture as the condition shows it."""
        shown: object = self._of_condition(lambda: self._condition.paint(jpeg))
        if not isinstance(shown, bytes):
            raise self._fault(f"paint returned {type(shown).__name__}, expected bytes")
        if not shown.startswith(_JPEG):
            raise self._fault(f"paint returned {len(shown)} bytes that are no JPEG, expected a JPEG: save(out, 'JPEG')")
        return shown

    def _of_condition(self, work: Callable[[], T]) -> T:
        """Work of the condition, whose exceptions would count as the system's answer. Raises `ConfigurationError` for
        them."""
        try:
            return work()
        except (ProctorError, OSError):
            raise
        except Exception as error:  # a condition may be other people's code
            raise self._fault(error_at(error)) from error

    def _fault(self, problem: str) -> ConfigurationError:
        return ConfigurationError(f"condition {self._name}, item {self._item.id!r}: {problem}")

    def _files(self) -> list[ClipFile]:
        library, condition = self._library, self._condition
        if condition.parts_of_clips:
            expected = "frames (--video-as frames): a video file has no gaps"
            raise ConfigurationError(f"condition {self._name}: found a request for video files, expected {expected}")
        labels = [f"clip {number + 1}" if len(self._clips) > 1 else "" for number in range(len(self._clips))]
        labelled = list(zip(self._clips, labels, strict=True))
        if condition.unchanged and library.settings.overlay == "none":
            return [ClipFile(library.mp4(clip), label, library.span(clip)) for clip, label in labelled]
        files = []
        paint = self._changed, self._name
        for clip, label in labelled:
            rate = library.probe(clip.source).fps or _USUAL_RATE
            item = self._item.model_copy(update={"media": (clip,)})
            alone = _MediaView(item, self._given, library, self._seed, self._others, whole=self._item)
            slots = alone.arranged(Request(_MAX_PICTURES, min(rate, _USUAL_RATE), own=rate <= _USUAL_RATE))
            span = library.span(clip)
            times = [(slot.time or 0.0) - span[0] for slot in slots]
            first = min(times, default=0.0)
            mp4 = library.mp4_of([slot.picture for slot in slots], [time - first for time in times], paint)
            files.append(ClipFile(mp4, label, span))
            if isinstance(condition, SingleFrame):
                break
        return files

    def _sounds(self, window: tuple[float, float] | None) -> list[Sound]:
        recordings = [medium for medium in self._item.media if isinstance(medium, AudioClip)]
        slots = []
        for medium in self._item.sounding:
            what, alike = ("clip", self._clips) if isinstance(medium, VideoClip) else ("recording", recordings)
            label = what if len(alike) == 1 else f"{what} {_position(medium, alike) + 1}"
            clip = self._library.sound_span(medium)
            start, end = _within(clip, window)
            if start < end:
                slots.append(SoundSlot(medium, (start, end), label, clip, self._position_of(medium)))
        heard = self._of_condition(lambda: self._condition.listen(slots, self._scene(whole=window is None)))
        wavs = [self._library.sound(one.medium, one.span, silent=one.silent) for one in heard]
        return [Sound(wav, one.label, slot.span) for wav, one, slot in zip(wavs, heard, slots, strict=True)]

    def _under_condition(self, slots: list[FrameSlot], *, whole: bool) -> list[FrameSlot]:
        slots = self._of_condition(lambda: self._condition.arrange(slots, self._scene(whole=whole)))
        overlay = self._library.settings.overlay
        return slots if overlay == "none" else [_with_clock(slot, overlay) for slot in slots]

    def _scene(self, *, whole: bool) -> ConditionContext:
        return ConditionContext(self._whole, self._others, self._seed, self._library, whole)

    def _position_of(self, medium: Media) -> int:
        """The position of a medium among those of the whole item."""
        return _position(medium, self._whole.media)

    def _slots(self, request: Request) -> tuple[list[FrameSlot], bool]:
        """What is shown without any condition, and whether that is of the whole clips."""
        settings = self._library.settings
        shared = max(1, settings.max_frames // max(1, len(self._clips)))
        settings = settings.model_copy(update={"max_frames": shared})
        slots, whole = [], True
        for medium in self._item.pictured:
            if not isinstance(medium, VideoClip):
                picture = Picture(medium.source, None, medium.region, scan=medium.scan)
                slots.append(FrameSlot(picture, None, medium.label, medium=self._position_of(medium)))
                continue
            clip = self._library.span(medium)
            start, end = _within(clip, request.window)
            whole = whole and (start, end) == clip
            if start >= end:
                continue
            self._check_number(medium, (start, end), request)
            prefix = f"clip {self._clips.index(medium) + 1}, " if len(self._clips) > 1 else ""
            own = picture_starts(self._library, medium, (start, end)) if request.own else None
            position = self._position_of(medium)
            parts = self._of_condition(partial(self._condition.parts, position, (start, end), self._scene(whole=whole)))
            for time in own or sample_parts(parts, settings, count=request.count, fps=request.fps):
                picture = Picture(medium.source, time, medium.region, scan=medium.scan)
                slots.append(FrameSlot(picture, time, prefix + time_label(time), clip, position))
        return slots, whole

    def _check_number(self, clip: VideoClip, span: tuple[float, float], request: Request) -> None:
        """Raises `InputError` for more frames than `_MAX_PICTURES` and than the video has in this span. Below, a system
        may want the same frame more than once."""
        fps, count = request.fps, request.count
        if fps is not None and not 0 < fps < inf:
            return  # `sample_times` refuses the rate
        wanted = inf if fps is None else count_at_rate(*span, fps)
        wanted = wanted if count is None else min(wanted, count)
        if wanted <= _MAX_PICTURES or (fps is None and count is None):
            return
        own = len(picture_starts(self._library, clip, span))
        if wanted > max(_MAX_PICTURES, own):
            asked = ", ".join(f"{name}={value:g}" for name, value in (("fps", fps), ("count", count)) if value)
            expected = f"at most {thousands(max(_MAX_PICTURES, own))} frames; the video has {thousands(own)} there"
            raise InputError(clip.source, found=f"{asked} from {span[0]:g} to {span[1]:g} s", expected=expected)


def _check_window(window: tuple[float, float] | None, what: str) -> None:
    if window is not None and not window[0] < window[1]:
        raise InputError(what, found=f"window={window}", expected="its end after its start")


def _within(clip: tuple[float, float], window: tuple[float, float] | None) -> tuple[float, float]:
    return clip if window is None else (max(clip[0], window[0]), min(clip[1], window[1]))


def _position(medium: object, among: Sequence[object]) -> int:
    return next(position for position, one in enumerate(among) if one is medium)


def _with_clock(slot: FrameSlot, overlay: str) -> FrameSlot:
    """Paints the time of the slot, not the picture's own: that would reveal the order."""
    if slot.clip is None or slot.time is None:
        return slot
    start = slot.clip[0] if overlay == "clip" else 0.0
    return replace(slot, picture=replace(slot.picture, shows=slot.time - start))


_JPEG = b"\xff\xd8\xff"
"""How every JPEG begins (ITU-T T.81, B.1.1.3)."""
