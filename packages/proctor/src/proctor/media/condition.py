"""What a condition is: the frames and sounds that a view is about to show, and what may be done to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.core import AudioClip, Item, VideoClip
from proctor.media.library import MediaLibrary, Picture


@dataclass(frozen=True, slots=True)
class FrameSlot:
    """One frame that a system gets: the picture, and the time and label that go with it.

    `clip` is start and end of the clip that the frame belongs to, None for a still image; `medium` is the position of its
    medium among the item's media.
    """

    picture: Picture
    time: float | None
    label: str
    clip: tuple[float, float] | None = None
    medium: int = 0


@dataclass(frozen=True, slots=True)
class SoundSlot:
    """One sound that a system gets: its medium, start and end, and label. `clip` is start and end of the whole sound,
    `position` the position of its medium among the item's media. It is made `silent` in these stretches, in seconds of the file."""

    medium: VideoClip | AudioClip
    span: tuple[float, float]
    label: str
    clip: tuple[float, float]
    position: int = 0
    silent: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionContext:
    """What a condition may use: the item, the other items of its benchmark, the run's seed, the media, and whether the
    request is for the whole media or a window of a clip."""

    item: Item
    others: Sequence[Item]
    seed: int
    library: MediaLibrary
    whole: bool


class Condition:
    """The base of all conditions, which changes nothing.

    `summary` is the line for `proctor list`. `sees=False`: no media, and no file is opened. `shows=False`: no pictures;
    `hears=False`: no sound. `borrows=True`: it shows other items' media. `unchanged=True`: a video file may be given as
    it is. `parts_of_clips=True`: it shows parts of clips (see `parts`), which no video file can.
    """

    summary = ""
    sees = True
    shows = True
    hears = True
    borrows = False
    unchanged = False
    parts_of_clips = False

    def unfit(self, items: Sequence[Item]) -> str:
        """Why the condition does not fit these items; "" where it does."""
        del items
        return ""

    def unable(self, scene: ConditionContext) -> str:
        """Why one item can't be shown under the condition, in a few words; "" where it can. Such an item is not asked, and
        counted as unsupported. May read the item's media, and raises `InputError` where it can't."""
        del scene
        return ""

    def parts(self, medium: int, span: tuple[float, float], scene: ConditionContext) -> list[tuple[float, float]]:
        """The parts of a clip (the position of its medium, start and end) that are shown, ascending: frames are spread over
        them."""
        del medium, scene
        return [span]

    def arrange(self, slots: list[FrameSlot], scene: ConditionContext) -> list[FrameSlot]:
        """The frames to show, before anything is decoded."""
        del scene
        return slots

    def paint(self, jpeg: bytes) -> bytes:
        """Changes the pixels of one picture."""
        return jpeg

    def listen(self, slots: list[SoundSlot], scene: ConditionContext) -> list[SoundSlot]:
        """The sounds to play, before anything is decoded."""
        del scene
        return slots
