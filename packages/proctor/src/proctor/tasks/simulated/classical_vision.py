"""`classical-vision`: a system that answers from colour, shape and motion in the frames, without a learned model."""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import Field, JsonValue

from proctor.core import Answer, Frame, Item, View
from proctor.core.formats import OrderingFormat, RatingsFormat, option_letters
from proctor.systems import NO_OPTIONS, RandomGuess, SystemOptions, read_options, reply
from proctor.tasks.simulated.vision import LOOKS, Life, SeenPicture, Story, detect, follow, in_order

Hit = re.Match[str]
Handler = Callable[[Item, Story, Hit], JsonValue]

_X = r"(?:an?|the) (?P<x>[a-z ]+?)"
_TIME = r"(?P<time>\d\d:\d\d:\d\d)"


def understood(item: Item) -> bool:
    """Whether the question's wording is known."""
    return _handler(item) is not None


def answer_from(item: Item, story: Story) -> JsonValue:
    """The answer in canonical form; None if the story does not settle it."""
    found = _handler(item)
    if found is None:
        return None
    handler, hit = found
    return handler(item, story, hit)


def _handler(item: Item) -> tuple[Handler, Hit] | None:
    text = " ".join(item.question.casefold().split())
    for pattern, handler in _PATTERNS:
        hit = pattern.match(text)
        if hit and not any(_named(text) is None for name, text in hit.groupdict().items() if name != "time"):
            return handler, hit
    return None


def _named(text: str) -> str | None:
    """The class in a text, the longest name first."""
    return next((name for name in sorted(LOOKS, key=len, reverse=True) if name in text.casefold()), None)


def _class(hit: Hit, group: str = "x") -> str:
    name = _named(hit[group])
    if name is None:
        raise ValueError(f"no class in {hit[group]!r}")
    return name


def _seconds(hit: Hit) -> float:
    hours, minutes, seconds = hit["time"].split(":")
    return 3600.0 * int(hours) + 60 * int(minutes) + int(seconds)


def _letter(item: Item, right: str | None) -> JsonValue:
    """The letter of the option with a class (or with that text)."""
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
    """The labels in order of first occurrence; labels that do not occur come last."""
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


def _before(item: Item, story: Story, hit: Hit) -> JsonValue:
    del item
    x, y = story.of(_class(hit)), story.of(_class(hit, "y"))
    if not x or not y:
        return bool(x)
    return x[0].first < y[0].first


def _where(item: Item, story: Story, hit: Hit) -> JsonValue:
    shown = [region for life, region in story.in_view(_seconds(hit)) if life.class_name == _class(hit)]
    if not shown:
        return None
    side = "left" if shown[0].x < 0.5 else "right"
    return _letter(item, f"{'upper' if shown[0].y < 0.5 else 'lower'} {side}")


def _which(fits: Callable[[list[Life]], bool]) -> Handler:
    """Answers with the only option whose class fits, by its lives; None for none or several."""

    def answer(item: Item, story: Story, _: Hit) -> JsonValue:
        fitting = {name for name in _offered(item) if fits(story.of(name))}
        return _letter(item, fitting.pop()) if len(fitting) == 1 else None

    return answer


def _patterns(*entries: tuple[str, Handler]) -> tuple[tuple[re.Pattern[str], Handler], ...]:
    return tuple((re.compile(pattern), handler) for pattern, handler in entries)


_PATTERNS = _patterns(
    (rf"does {_X} come into view before the first (?P<y>[a-z ]+?) does", _before),
    (rf"does {_X} come into view", lambda _, story, hit: bool(story.of(_class(hit)))),
    (
        rf"is {_X} in view at {_TIME}",
        lambda _, story, hit: any(life.class_name == _class(hit) for life, _ in story.in_view(_seconds(hit))),
    ),
    (rf"is {_X} carried out of view", lambda _, story, hit: bool(story.gone(_class(hit)))),
    (
        rf"is {_X} covered completely for a while",
        lambda _, story, hit: any(life.was_hidden for life in story.of(_class(hit))),
    ),
    (rf"is {_X} picked up and put down", lambda _, story, hit: any(life.was_moved for life in story.of(_class(hit)))),
    (
        rf"which kinds of foreign object are in view at {_TIME}",
        lambda _, story, hit: _classes(life for life, _ in story.in_view(_seconds(hit))),
    ),
    (r"which kinds of foreign object are carried out", lambda _, story, __: _classes(story.gone())),
    (r"which kinds of foreign object come into view", lambda _, story, __: _classes(story.lives)),
    (rf"how many times is {_X} brought into view", lambda _, story, hit: len(story.of(_class(hit)))),
    (rf"how many foreign objects are in view at {_TIME}", lambda _, story, hit: len(story.in_view(_seconds(hit)))),
    (r"how many foreign objects are carried out", lambda _, story, __: len(story.gone())),
    (
        rf"when does {_X} first come into view",
        lambda _, story, hit: _times([life.first for life in story.of(_class(hit))][:1]),
    ),
    (
        rf"at which times is {_X} brought into view",
        lambda _, story, hit: _times([life.first for life in story.of(_class(hit))]),
    ),
    (
        rf"when is {_X} carried out of view",
        lambda _, story, hit: _times([_out_time(life, story) for life in story.gone(_class(hit))][:1]),
    ),
    (r"in which order do these .* come into view", lambda item, story, _: _in_order(item, list(story.lives))),
    (r"in which order are these .* carried out of view", lambda item, story, _: _in_order(item, story.gone())),
    (r"which of these objects comes into view first", lambda item, story, _: _first_of(item, list(story.lives))),
    (r"which of these objects is carried out of view first", lambda item, story, _: _first_of(item, story.gone())),
    (r"which of these objects never comes into view", _which(lambda lives: not lives)),
    (r"which of these objects is brought into view more than once", _which(lambda lives: len(lives) > 1)),
    (r"which of these objects is covered completely", _which(lambda lives: any(life.was_hidden for life in lives))),
    (r"which of these objects is picked up and put down", _which(lambda lives: any(life.was_moved for life in lives))),
    (rf"in which part of the picture is {_X} at {_TIME}", _where),
)


VERSION = "2"
"""Changes if the same frames may give another answer."""

_MOST_FRAMES = 3600
_REMEMBERED = 20_000  # frames in the cache, each with a few numbers


class VisionOptions(SystemOptions):
    """`fps` is the number of frames read per second."""

    fps: float = Field(default=6.0, gt=0)


@dataclass
class _Glance:
    lock: threading.Lock = field(default_factory=threading.Lock)
    seen: SeenPicture | None = None


class ClassicalVision:
    """Answers questions on simulated procedures from colour and motion; elsewhere it guesses.

    The option `fps` is the number of frames read per second (at most 3600 in all, then evenly spaced). Their order and
    times are those of the view, so shuffled frames change its answers. Still images to be put in order are sorted by how
    far objects move, whatever the wording. Without frames, with black ones (`text-only`, `black`), and for a question
    with unknown wording it gives a seeded guess that is valid for the format, and so scores at chance. `Answer.extra` is
    `{"evidence": "pixels"}` or `{"evidence": "guess", "because": …}`. It answers all formats but free text and ratings.
    """

    name = "classical-vision"

    def __init__(self, options: Mapping[str, JsonValue] = NO_OPTIONS, seed: int = 0) -> None:
        self._fps = read_options(self.name, VisionOptions, options).fps
        self.settings: dict[str, JsonValue] = {"version": VERSION, "fps": self._fps, "seed": seed}
        self._guess = RandomGuess(seed)
        self._known: dict[bytes, _Glance] = {}
        self._lock = threading.Lock()

    def supports(self, item: Item) -> bool:
        return self._guess.supports(item) and not isinstance(item.answer, RatingsFormat)

    async def answer(self, item: Item, view: View) -> Answer:
        """Answers from the frames, or guesses without evidence. Pixels are processed in a thread."""
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
        return reply(item, [frames[position].label for position in order], evidence="pixels")

    def _picture(self, jpeg: bytes) -> SeenPicture:
        """The content of a frame; equal bytes are processed once."""
        key = hashlib.blake2b(jpeg, digest_size=16).digest()
        with self._lock:
            if key not in self._known:
                while len(self._known) >= _REMEMBERED:
                    del self._known[next(iter(self._known))]
                self._known[key] = _Glance()
            glance = self._known[key]
        with glance.lock:  # several questions on one video run at the same time
            if glance.seen is None:
                glance.seen = detect(jpeg)
            return glance.seen

    def _guessed(self, item: Item, view: View, because: str) -> Answer:
        return reply(item, self._guess.draw(item, view.span), evidence="guess", because=because)
