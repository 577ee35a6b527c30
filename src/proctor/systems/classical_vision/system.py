"""The system: looks at frames, follows coloured regions, and answers what the question's wording asks for."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Sequence

from pydantic import JsonValue

from proctor.core import Answer, Frame, Item, System, View
from proctor.core.formats import FreeTextFormat, OrderingFormat, RatingsFormat
from proctor.systems.classical_vision.detection import Picture, detect
from proctor.systems.classical_vision.reading import answer_from, understood
from proctor.systems.classical_vision.stills import in_order
from proctor.systems.classical_vision.tracking import follow
from proctor.systems.random_guess import RandomGuess
from proctor.systems.wording import reply

__all__ = ["VERSION", "ClassicalVision", "build"]

VERSION = "2"
"""Changes whenever the same frames may give another answer."""

_MOST_FRAMES = 3600
_REMEMBERED = 20_000  # pictures; each remembers a few numbers only


class ClassicalVision:
    """Colour segmentation and tracking, made for the looks and the questions of the simulated procedures.

    It reads `fps` frames a second (at most 3600, then spread evenly), in the order in which the view shows
    them and at the times that the view tells, so disorder in the frames is disorder in its answers. Still
    pictures that are to be put in order, whatever the wording, are strung together by how far objects move. Where
    it has no frames, or black ones (`text-only`, `black`), or a question whose wording it does not know, it
    answers by a seeded guess that is valid for the format, and so scores at chance. `Answer.extra` says
    which: `{"evidence": "pixels"}`, or `{"evidence": "guess", "because": …}`. It answers every format but
    free text and ratings.
    """

    def __init__(self, *, seed: int = 0, fps: float = 6.0) -> None:
        self._seed = seed
        self._fps = fps
        self._guess = RandomGuess(seed)
        self._known: dict[bytes, Picture] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """As on the command line."""
        return "classical-vision"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Version, frame rate and the seed of its guesses."""
        return {"version": VERSION, "fps": self._fps, "seed": self._seed}

    def supports(self, item: Item) -> bool:
        """Every format but free text and ratings."""
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

    def _picture(self, jpeg: bytes) -> Picture:
        """What a picture shows; the same bytes are looked at once."""
        key = hashlib.blake2b(jpeg, digest_size=16).digest()
        known = self._known.get(key)
        if known is None:
            known = detect(jpeg)
            with self._lock:
                while len(self._known) >= _REMEMBERED:
                    del self._known[next(iter(self._known))]
                self._known[key] = known
        return known

    def _guessed(self, item: Item, view: View, because: str) -> Answer:
        return reply(item, self._guess.draw(item, view.span), evidence="guess", because=because)


def build(*, seed: int = 0, fps: float = 6.0) -> System:
    """Colour and motion from the frames, made for the simulated procedures; elsewhere it guesses.

    `fps` is how many frames a second it reads.
    """
    return ClassicalVision(seed=seed, fps=fps)
