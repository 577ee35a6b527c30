"""A benchmark's items as examples to learn from: asked just as they are when a model is examined, with the right reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

from proctor.core import Frame, Item, ParseError, VideoClip, View, generator
from proctor.media import CONDITIONS, MediaLibrary, pictures_at
from proctor.systems import ModelSystem, say
from proctor.training.chat_examples import ChatExample

_KEPT_BYTES = 2**28
"""So much of what was read once is kept in memory."""


@dataclass(frozen=True)
class Lesson:
    """An item with the reply to learn. In `turn` 0 it is shown as in an examination; in each further one a clip that is
    longer than its frames is shown at other moments."""

    item: Item
    reply: str
    turn: int = 0


def reply_to(item: Item) -> str | None:
    """The reference answer in the form that the prompt asks for; None where there is none, or where the item's format
    does not read it back as right."""
    if item.reference is None or item.reference.answer is None:
        return None
    text = say(item.answer, item.reference.answer)
    try:
        return text if item.answer.match(item.reference.answer, item.answer.parse(text, item.options)) else None
    except ParseError:
        return None


def lessons(items: Sequence[Item], library: MediaLibrary, *, windows: int = 1) -> list[Lesson]:
    """What is learned from items, in their order; those without a reply are left out. A clip that is longer than the
    most frames at their rate is shown in `windows` ways: each cuts it into as many equal windows as there are frames
    and shows a moment of each (Wang et al. 2016, Temporal Segment Networks, ECCV). Other conditions than `video` show
    all of these as in an examination."""
    found = []
    for item in items:
        reply = reply_to(item)
        if reply is not None:
            turns = windows if windows > 1 and _is_long(item, library) else 1
            found += [Lesson(item, reply, turn) for turn in range(turns)]
    return found


def _is_long(item: Item, library: MediaLibrary) -> bool:
    if len(item.pictured) != 1 or not isinstance(clip := item.pictured[0], VideoClip):
        return False
    start, end = library.span(clip)
    return (end - start) * library.settings.fps > library.settings.max_frames


class ItemExamples(Sequence[ChatExample]):
    """Each example is made when it is read: its pictures stay in the frame store. `view` is that of an examination
    under a condition."""

    def __init__(
        self,
        given: Sequence[Lesson],
        system: ModelSystem,
        view: Callable[[Item], View],
        library: MediaLibrary,
        seed: int = 0,
    ) -> None:
        self._lessons, self._system, self._view, self._library, self._seed = given, system, view, library, seed
        self._kept: dict[int, ChatExample] = {}
        self._left = _KEPT_BYTES

    def __len__(self) -> int:
        return len(self._lessons)

    @overload
    def __getitem__(self, place: int) -> ChatExample: ...
    @overload
    def __getitem__(self, place: slice) -> list[ChatExample]: ...
    def __getitem__(self, place: int | slice) -> ChatExample | list[ChatExample]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        if place in self._kept:
            return self._kept[place]
        made = asyncio.run(self._made(self._lessons[place]))
        size = sum(len(picture) for picture in made.query.pictures)
        if size <= self._left:
            self._kept[place] = made
            self._left -= size
        return made

    async def _made(self, lesson: Lesson) -> ChatExample:
        item = lesson.item
        view = self._view(item)
        shown = view if lesson.turn == 0 else DrawnMoments(view, lesson, self._library, self._seed)
        return ChatExample(await self._system.query(item.as_asked(), shown), lesson.reply, item.group)


class DrawnMoments:
    """A view of one clip that is shown at a drawn moment of each of as many equal windows as it has frames."""

    def __init__(self, view: View, lesson: Lesson, library: MediaLibrary, seed: int) -> None:
        self._view, self._lesson, self._library, self._seed = view, lesson, library, seed

    @property
    def condition(self) -> str:
        """The condition's name."""
        return self._view.condition

    @property
    def span(self) -> tuple[float, float] | None:
        """Start and end of the clip."""
        return self._view.span

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        """As many frames as the view gives, each with its own time."""
        usual = await self._view.frames(count=count, fps=fps, window=window)
        span, lesson = self._view.span, self._lesson
        if span is None or window is not None or not CONDITIONS.get(self.condition).unchanged:
            return usual
        start, end = span
        drawn = generator(self._seed, "windows", lesson.item.id, str(lesson.turn)).uniform(size=len(usual))
        times = [start + (end - start) * (place + share) / len(usual) for place, share in enumerate(drawn.tolist())]
        return await asyncio.to_thread(pictures_at, lesson.item, self.condition, self._library, times, seed=self._seed)
