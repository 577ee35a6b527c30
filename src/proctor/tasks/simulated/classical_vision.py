"""`classical-vision`: colour, shape and motion without any learned model; it really looks at the frames."""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import Field, JsonValue

from proctor.core import Answer, Frame, Item, View
from proctor.core.formats import FreeTextFormat, OrderingFormat, RatingsFormat, option_letters
from proctor.systems import NO_OPTIONS, RandomGuess, SystemOptions, read_options, reply
from proctor.tasks.simulated.vision import LOOKS, Life, SeenPicture, Story, detect, follow, in_order

Asked = re.Match[str]
Handler = Callable[[Item, Story, Asked], JsonValue]

_X = r"(?:an?|the) (?P<x>[a-z ]+?)"
_TIME = r"(?P<time>\d\d:\d\d:\d\d)"


def understood(item: Item) -> bool:
    """Whether the question's wording is one that can be answered from the pixels."""
    return _handler(item) is not None


def answer_from(item: Item, story: Story) -> JsonValue:
    """The answer in the item's canonical form; None where the story does not settle it."""
    found = _handler(item)
    if found is None:
        return None
    handler, asked = found
    return handler(item, story, asked)


def _handler(item: Item) -> tuple[Handler, Asked] | None:
    text = " ".join(item.question.casefold().split())
    for pattern, handler in _PATTERNS:
        asked = pattern.match(text)
        if asked and not any(_named(said) is None for name, said in asked.groupdict().items() if name != "time"):
            return handler, asked
    return None


def _named(text: str) -> str | None:
    """The class that a text names, the longest name first."""
    return next((name for name in sorted(LOOKS, key=len, reverse=True) if name in text.casefold()), None)


def _class(asked: Asked, group: str = "x") -> str:
    name = _named(asked[group])
    if name is None:
        raise ValueError(f"no class in {asked[group]!r}")
    return name


def _seconds(asked: Asked) -> float:
    hours, minutes, seconds = asked["time"].split(":")
    return 3600.0 * int(hours) + 60 * int(minutes) + int(seconds)


def _letter(item: Item, right: str | None) -> JsonValue:
    """The letter of the option that names a class (or is that text)."""
    if right is None:
        return None
    letters = option_letters(len(item.options))
    for letter, option in zip(letters, item.options, strict=True):
        if right in (_named(option), option.casefold()):
            return letter
    return None


def _offered(item: Item) -> list[str]:
    return [name for option in item.options if (name := _named(option)) is not None]


def _classes(lives: Iterable[Life]) -> JsonValue:
    return [str(name) for name in sorted({life.class_name for life in lives})]


def _in_order(item: Item, lives: list[Life]) -> JsonValue:
    """The labels in the order in which they occur first; those that were missed come last."""
    if not isinstance(item.answer, OrderingFormat):
        return None
    names = [life.class_name for life in lives]
    labels = sorted(item.answer.labels, key=lambda label: names.index(label) if label in names else len(names))
    return [str(label) for label in labels]


def _first_of(item: Item, lives: list[Life]) -> JsonValue:
    offered = _offered(item)
    return _letter(item, next((life.class_name for life in lives if life.class_name in offered), None))


def _times(moments: list[float]) -> JsonValue:
    return [round(moment, 1) for moment in moments] if moments else None


def _out_time(life: Life, story: Story) -> float:
    return min(life.last + story.step / 2, story.end)


def _before(item: Item, story: Story, asked: Asked) -> JsonValue:
    del item
    x, y = story.of(_class(asked)), story.of(_class(asked, "y"))
    if not x or not y:
        return bool(x)
    return x[0].first < y[0].first


def _where(item: Item, story: Story, asked: Asked) -> JsonValue:
    shown = [region for life, region in story.in_view(_seconds(asked)) if life.class_name == _class(asked)]
    if not shown:
        return None
    side = "left" if shown[0].x < 0.5 else "right"
    return _letter(item, f"{'upper' if shown[0].y < 0.5 else 'lower'} {side}")


def _most(item: Item, marks: dict[str, float]) -> JsonValue:
    """The option whose class has the highest mark, if one has."""
    offered = {name: marks.get(name, 0.0) for name in _offered(item)}
    best = [name for name, mark in offered.items() if mark == max(offered.values()) and mark > 0]
    return _letter(item, best[0]) if len(best) == 1 else None


def _never(item: Item, story: Story, asked: Asked) -> JsonValue:
    del asked
    return _most(item, {name: float(not story.of(name)) for name in LOOKS})


def _several(item: Item, story: Story, asked: Asked) -> JsonValue:
    del asked
    return _most(item, {name: float(len(story.of(name)) > 1) for name in LOOKS})


def _which_hidden(item: Item, story: Story, asked: Asked) -> JsonValue:
    del asked
    return _most(item, {name: float(any(life.was_hidden for life in story.of(name))) for name in LOOKS})


def _which_moved(item: Item, story: Story, asked: Asked) -> JsonValue:
    del asked
    return _most(item, {name: float(any(life.was_moved for life in story.of(name))) for name in LOOKS})


def _patterns(*entries: tuple[str, Handler]) -> tuple[tuple[re.Pattern[str], Handler], ...]:
    return tuple((re.compile(pattern), handler) for pattern, handler in entries)


_PATTERNS = _patterns(
    (rf"does {_X} come into view before the first (?P<y>[a-z ]+?) does", _before),
    (rf"does {_X} come into view", lambda _, story, asked: bool(story.of(_class(asked)))),
    (
        rf"is {_X} in view at {_TIME}",
        lambda _, story, asked: any(life.class_name == _class(asked) for life, _ in story.in_view(_seconds(asked))),
    ),
    (rf"is {_X} carried out of view", lambda _, story, asked: bool(story.gone(_class(asked)))),
    (
        rf"is {_X} covered completely for a while",
        lambda _, story, asked: any(life.was_hidden for life in story.of(_class(asked))),
    ),
    (
        rf"is {_X} picked up and put down",
        lambda _, story, asked: any(life.was_moved for life in story.of(_class(asked))),
    ),
    (
        rf"which kinds of foreign object are in view at {_TIME}",
        lambda _, story, asked: _classes(life for life, _ in story.in_view(_seconds(asked))),
    ),
    (r"which kinds of foreign object are carried out", lambda _, story, __: _classes(story.gone())),
    (r"which kinds of foreign object come into view", lambda _, story, __: _classes(story.lives)),
    (rf"how many times is {_X} brought into view", lambda _, story, asked: len(story.of(_class(asked)))),
    (rf"how many foreign objects are in view at {_TIME}", lambda _, story, asked: len(story.in_view(_seconds(asked)))),
    (r"how many foreign objects are carried out", lambda _, story, __: len(story.gone())),
    (
        rf"when does {_X} first come into view",
        lambda _, story, asked: _times([life.first for life in story.of(_class(asked))][:1]),
    ),
    (
        rf"at which times is {_X} brought into view",
        lambda _, story, asked: _times([life.first for life in story.of(_class(asked))]),
    ),
    (
        rf"when is {_X} carried out of view",
        lambda _, story, asked: _times([_out_time(life, story) for life in story.gone(_class(asked))][:1]),
    ),
    (r"in which order do these .* come into view", lambda item, story, _: _in_order(item, list(story.lives))),
    (r"in which order are these .* carried out of view", lambda item, story, _: _in_order(item, story.gone())),
    (r"which of these objects comes into view first", lambda item, story, _: _first_of(item, list(story.lives))),
    (r"which of these objects is carried out of view first", lambda item, story, _: _first_of(item, story.gone())),
    (r"which of these objects never comes into view", _never),
    (r"which of these objects is brought into view more than once", _several),
    (r"which of these objects is covered completely", _which_hidden),
    (r"which of these objects is picked up and put down", _which_moved),
    (rf"in which part of the picture is {_X} at {_TIME}", _where),
)


VERSION = "2"
"""Changes whenever the same frames may give another answer."""

_MOST_FRAMES = 3600
_REMEMBERED = 20_000  # pictures; each remembers a few numbers only


class VisionOptions(SystemOptions):
    """`fps` is how many frames a second are read."""

    fps: float = Field(default=6.0, gt=0)


@dataclass
class _Glance:
    """One picture, and what it shows once it was looked at."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    seen: SeenPicture | None = None


class ClassicalVision:
    """Colour and motion from the frames, made for the simulated procedures; elsewhere it guesses.

    The option `fps` is how many frames a second it reads (at most 3600, then spread evenly), in the order in which the
    view shows them and at the times that the view tells, so disorder in the frames is disorder in its answers. Still
    pictures that are to be put in order, whatever the wording, are strung together by how far objects move. Where it
    has no frames, or black ones (`text-only`, `black`), or a question whose wording it does not know, it answers by a
    seeded guess that is valid for the format, and so scores at chance. `Answer.extra` says which: `{"evidence":
    "pixels"}`, or `{"evidence": "guess", "because": …}`. It answers every format but free text and ratings.
    """

    name = "classical-vision"

    def __init__(self, options: Mapping[str, JsonValue] = NO_OPTIONS, seed: int = 0) -> None:
        self._fps = read_options(self.name, VisionOptions, options).fps
        self.settings: dict[str, JsonValue] = {"version": VERSION, "fps": self._fps, "seed": seed}
        self._guess = RandomGuess(seed)
        self._known: dict[bytes, _Glance] = {}
        self._lock = threading.Lock()

    def supports(self, item: Item) -> bool:
        return not isinstance(item.answer, FreeTextFormat | RatingsFormat)

    async def answer(self, item: Item, view: View) -> Answer:
        """Looks, follows, answers; guesses where there is nothing to go by. Pixels are read off the event loop."""
        if isinstance(item.answer, OrderingFormat) and view.span is None:
            stills = await view.frames()
            if stills:
                return await asyncio.to_thread(self._put_in_order, item, view, item.answer.labels, stills)
        if not understood(item):
            return self._guessed(item, view, "the wording is not one that it knows")
        frames = await view.frames(fps=self._fps, count=_MOST_FRAMES)
        if not frames:
            return self._guessed(item, view, "there is nothing to look at")
        value, because = await asyncio.to_thread(self._look, item, frames)
        if value is None:
            return self._guessed(item, view, because)
        return reply(item, value, evidence="pixels")

    def _look(self, item: Item, frames: Sequence[Frame]) -> tuple[JsonValue, str]:
        pictures = [self._picture(frame.jpeg) for frame in frames]
        if all(picture.blank for picture in pictures):
            return None, "every frame is black"
        times = [float(index) if frame.time is None else frame.time for index, frame in enumerate(frames)]
        return answer_from(item, follow(times, pictures)), "what it asks for was not found"

    def _put_in_order(self, item: Item, view: View, labels: Sequence[str], frames: Sequence[Frame]) -> Answer:
        if sorted(frame.label for frame in frames) != sorted(labels):
            return self._guessed(item, view, "there is not one picture for each label")
        order = in_order([self._picture(frame.jpeg) for frame in frames])
        if order is None:
            return self._guessed(item, view, "no object tells the pictures apart")
        return reply(item, [frames[place].label for place in order], evidence="pixels")

    def _picture(self, jpeg: bytes) -> SeenPicture:
        """What a picture shows; the same bytes are looked at once."""
        key = hashlib.blake2b(jpeg, digest_size=16).digest()
        with self._lock:
            if key not in self._known:
                while len(self._known) >= _REMEMBERED:
                    del self._known[next(iter(self._known))]
                self._known[key] = _Glance()
            glance = self._known[key]
        with glance.lock:  # questions on one video are asked at the same time
            if glance.seen is None:
                glance.seen = detect(jpeg)
            return glance.seen

    def _guessed(self, item: Item, view: View, because: str) -> Answer:
        return reply(item, self._guess.draw(item, view.span), evidence="guess", because=because)
