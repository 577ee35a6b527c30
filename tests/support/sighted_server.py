"""A scripted model that really looks: it decodes the pictures, clips and sounds of a request, and reads what they show.

`Sighted` answers the questions of a sight test as a `FaultyServer`'s reply. `fault` changes what it receives, as a broken
server would; `manner` changes how it answers, as sound models do. Digits are read by comparison with drawn ones, so a shrunk
picture can't be read for the reason for which nobody could.
"""

from __future__ import annotations

import base64
import io
import re
import wave
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from proctor.core import generator
from proctor.sight.pictures import COLOURS, CORNERS, WAYS, number
from tests.support.faulty_server import Calls, Cut, Rejects, Request, Tokens

Grey = NDArray[np.uint8]
Frames = tuple[tuple[float, NDArray[np.uint8]], ...]
_LEAST = 7  # pixels: below, digits can't be told apart
_CELL = (16, 24)


@dataclass(frozen=True)
class Part:
    """One part of a request: a `kind` ("text", "picture", "video", "sound"), and its content."""

    kind: str
    text: str = ""
    content: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Seen:
    """A picture as it reached the model, with the text before it, and its time in a video."""

    rgb: NDArray[np.uint8] = field(repr=False)
    label: str = ""
    time: float | None = None


def turned(frames: Frames) -> Frames:
    """The pictures of a video in the reverse order, at the times of the others."""
    return tuple((at, rgb) for (at, _), (_, rgb) in zip(frames, reversed(frames), strict=True))


Fault = Callable[[list[Part], Request], list[Part]]
Manner = Callable[[str, Request], "str | Calls | Rejects | Cut"]


def parts_of(request: Request) -> list[Part]:
    """The parts of the user's messages, in order."""
    found = []
    for message in request.body["messages"]:
        if message["role"] != "user":
            continue
        content = message["content"]
        some: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for one in some:
            if one["type"] == "text":
                found.append(Part("text", one["text"]))
            elif one["type"] == "input_audio":
                found.append(Part("sound", content=base64.b64decode(one["input_audio"]["data"].rpartition(",")[2])))
            else:
                url = one[one["type"]]["url"]
                kind = {"image_url": "picture", "video_url": "video"}[one["type"]]
                found.append(Part(kind, content=base64.b64decode(url.partition(",")[2])))
    return found


@dataclass
class Sighted:
    """The model. `acuity` is the height of the smallest digits that it reads, in pixels as they arrive; it misreads a share
    `misses` of the pictures, drawn by the picture and the `seed`."""

    fault: Fault = lambda parts, _: parts
    manner: Manner = lambda text, _: text
    acuity: int = _LEAST
    misses: float = 0.0
    seed: int = 0
    says_nothing: str = "I can't see any picture."
    samples: int = 0
    """How many pictures it takes of a video, spread evenly; 0: two a second."""
    of_video: Callable[[Frames], Frames] = lambda frames: frames
    """What becomes of the pictures of a video, each with its time."""

    def __call__(self, request: Request) -> str | Tokens | Calls | Rejects | Cut:
        parts = self.fault(parts_of(request), request)
        said = self.manner(self.answer(parts), request)
        return as_asked(said, request) if isinstance(said, str) else said

    def answer(self, parts: Sequence[Part]) -> str:
        """The answer to the question in the last text."""
        asked = next(part.text for part in reversed(parts) if part.kind == "text")
        seen = self._seen(parts)
        if "tones" in asked:
            sounds = [part.content for part in parts if part.kind == "sound"]
            return f"Answer: {heard(sounds[0])}" if sounds else "I hear nothing."
        if not seen:
            return self.says_nothing
        looks: tuple[tuple[str, Callable[[], str]], ...] = (
            (r"Which colour is the disc", lambda: self._letter(asked, discs(seen[-1].rgb)[0][0])),
            (r"Where is the disc", lambda: self._letter(asked, corner(seen[-1].rgb))),
            (r"largest disc", lambda: self._letter(asked, max(discs(seen[-1].rgb), key=lambda one: one[2])[0])),
            (r"Which way", lambda: self._letter(asked, way(seen))),
        )
        for words, read in looks:
            if re.search(words, asked):
                return read() if self._looks(seen[-1]) else self._letter(asked, "")
        return self._number(asked, seen)

    def _number(self, asked: str, seen: list[Seen]) -> str:
        if "At what time" in asked:
            wanted = int(re.findall(r"number (\d+)", asked)[0])
            hit = next((one for one in seen if self._value(one) == wanted), None)
            return "I can't see that number." if hit is None else f"Answer: {clock(_time_of(hit))}"
        one: Seen | None = seen[-1]
        if "first" in asked:
            one = seen[0]
        elif at := re.search(r"frame at t = ([\d.]+) s|shown (\d+) seconds after", asked):
            one = _nearest(seen, float(at[1] or at[2]))
        if one is None:
            return "I can't see such a frame."
        if "last that you can make out" in asked:
            values = [value for value, height in read_numbers(one.rgb) if height >= self.acuity]
            return f"Answer: {values[-1]}" if values and self._looks(one) else "I can't read any."
        value = self._value(one)
        return "I can't see a number in the picture." if value is None else f"Answer: {value}"

    def _value(self, one: Seen) -> int | None:
        """The number that it reads; another one where it misreads."""
        found = [value for value, height in read_numbers(one.rgb) if height >= self.acuity]
        if not found:
            return None
        return found[0] if self._looks(one) else (found[0] * 7 + 13) % 900 + 100

    def _looks(self, one: Seen) -> bool:
        return self.misses == 0 or bool(
            generator(self.seed, "eyes", one.rgb[::8, ::8].tobytes().hex()).random() >= self.misses
        )

    def _letter(self, asked: str, right: str) -> str:
        options = re.findall(r"^([A-D])\. (.+)$", asked, re.MULTILINE)
        return f"Answer: {next((letter for letter, text in options if text == right), 'A')}"

    def _seen(self, parts: Sequence[Part]) -> list[Seen]:
        seen: list[Seen] = []
        label = ""
        for part in parts:
            if part.kind == "text":
                label = part.text
            elif part.kind == "picture":
                seen.append(Seen(pixels(part.content), label))
                label = ""
            elif part.kind == "video":
                frames = frames_of(part.content)
                if many := self.samples:
                    frames = tuple(frames[round(k * (len(frames) - 1) / (many - 1))] for k in range(many))
                seen += [Seen(rgb, label, at) for at, rgb in self.of_video(frames)]
        return seen


def as_asked(said: str, request: Request) -> str | Calls:
    """The answer in the form that was requested: as the call of the last tool, or as JSON."""
    digits = re.findall(r"\d+", said)
    value = {"number": int(digits[-1]) if digits else 0}
    if request.body.get("tools"):
        return Calls([(request.body["tools"][-1]["function"]["name"], value)])
    if request.body.get("response_format"):
        return f'{{"number": {value["number"]}}}'
    return said


def clock(seconds: float) -> str:
    """As hh:mm:ss."""
    whole = round(seconds)
    return f"{whole // 3600:02d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def _time_of(one: Seen) -> float:
    if one.time is not None:
        begins = re.search(r"begins at (\d+):(\d+)(?::(\d+))?", one.label)
        return one.time + (
            0
            if begins is None
            else sum(int(n) * 60**k for k, n in enumerate(reversed([g for g in begins.groups() if g])))
        )
    told = re.search(r"t = ([\d.]+) s", one.label)
    return float(told[1]) if told else 0.0


def _nearest(seen: list[Seen], at: float) -> Seen | None:
    """The frame with the label of this time; of a video the last one at or before it."""
    if seen[0].time is not None:
        return max((one for one in seen if (one.time or 0) <= at), key=lambda one: one.time or 0, default=None)
    timed = [one for one in seen if "t = " in one.label]
    exact = [one for one in timed if abs(_time_of(one) - at) < 0.06]
    return exact[0] if exact else None


@lru_cache(maxsize=4096)
def pixels(jpeg: bytes) -> NDArray[np.uint8]:
    """A picture in RGB."""
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))


@lru_cache(maxsize=64)
def frames_of(mp4: bytes) -> tuple[tuple[float, NDArray[np.uint8]], ...]:
    """The pictures of a video, two a second, with their times."""
    kept: list[tuple[float, NDArray[np.uint8]]] = []
    last = -1.0
    with av.open(io.BytesIO(mp4), "r") as container:
        for frame in container.decode(container.streams.video[0]):
            if (frame.time or 0.0) >= last + 0.45:
                last = frame.time or 0.0
                kept.append((last, np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)))
    return tuple(kept)


def heard(wav: bytes) -> int:
    """How many tones a sound has."""
    with wave.open(io.BytesIO(wav)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float)
    loud = np.abs(samples[: len(samples) // 800 * 800].reshape(-1, 800)).max(axis=1) > 3000
    return int(np.sum(loud[1:] & ~loud[:-1]) + loud[0])


_READ: dict[bytes, list[tuple[int, int]]] = {}


def read_numbers(rgb: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """The numbers of three digits in a picture, top to bottom, each with the height of its digits."""
    key = rgb.tobytes() if rgb.size < 2**20 else bytes(rgb.data)
    if (found := _READ.get(key)) is None:
        found = _READ[key] = _numbers(np.asarray(Image.fromarray(rgb).convert("L")))
    return found


def _numbers(grey: Grey) -> list[tuple[int, int]]:
    found = []
    for top, bottom in _runs((grey < 128).any(axis=1)):
        if bottom - top < _LEAST:
            continue
        line = grey[top:bottom]
        digits = [_digit(line[:, left:right]) for left, right in _runs((line < 128).any(axis=0))]
        if len(digits) == 3 and all(one is not None for one in digits):
            found.append((int("".join(map(str, digits))), bottom - top))
    return found


def _runs(dark: Any) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], dark, [False]]).astype(int)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _cell(grey: Grey) -> NDArray[np.float64]:
    rows = np.flatnonzero((grey < 128).any(axis=1))
    inside = grey[rows[0] : rows[-1] + 1] if len(rows) else grey
    return np.asarray(Image.fromarray(inside).resize(_CELL, Image.Resampling.BICUBIC), dtype=float) / 255


@lru_cache(maxsize=1)
def _templates() -> tuple[list[NDArray[np.float64]], list[float]]:
    cells, shapes = [], []
    for digit in range(10):
        grey = np.asarray(number(digit, (200, 200), 80).convert("L"))
        rows = np.flatnonzero((grey < 128).any(axis=1))
        left, right = _runs((grey < 128).any(axis=0))[0]
        cells.append(_cell(grey[:, left:right]))
        shapes.append((right - left) / (rows[-1] + 1 - rows[0]))
    return cells, shapes


def _digit(grey: Grey) -> int | None:
    cells, shapes = _templates()
    shape, cell = grey.shape[1] / grey.shape[0], _cell(grey)
    costs = [float(np.mean((cell - one) ** 2)) + (shape - own) ** 2 for one, own in zip(cells, shapes, strict=True)]
    best = int(np.argmin(costs))
    return best if costs[best] < 0.12 else None


def discs(rgb: NDArray[np.uint8]) -> list[tuple[str, tuple[float, float], int]]:
    """The discs in a picture: colour, centre as shares, and how many pixels."""
    found = []
    for name, colour in COLOURS.items():
        near = np.abs(rgb.astype(int) - colour).sum(axis=2) < 90
        if near.sum() > 20:
            down, across = np.nonzero(near)
            centre = float(across.mean()) / rgb.shape[1], float(down.mean()) / rgb.shape[0]
            found.append((name, centre, int(near.sum())))
    return found or [("", (0.5, 0.5), 0)]


def corner(rgb: NDArray[np.uint8]) -> str:
    """Where the disc is."""
    x, y = discs(rgb)[0][1]
    return min(CORNERS, key=lambda name: abs(CORNERS[name][0] - x) + abs(CORNERS[name][1] - y))


def way(seen: Sequence[Seen]) -> str:
    """Which way the disc moves from the first picture to the last."""
    (x, y), (to_x, to_y) = discs(seen[0].rgb)[0][1], discs(seen[-1].rgb)[0][1]
    return max(WAYS, key=lambda name: WAYS[name][0] * (to_x - x) + WAYS[name][1] * (to_y - y))


# Faults of servers: each changes what a request holds when it reaches the model.


def _pictures(parts: Sequence[Part]) -> list[int]:
    return [k for k, part in enumerate(parts) if part.kind == "picture"]


def _without(parts: Sequence[Part], gone: set[int]) -> list[Part]:
    return [part for k, part in enumerate(parts) if k not in gone]


def nothing_arrives(parts: list[Part], _: Request) -> list[Part]:
    return [part for part in parts if part.kind == "text"]


def only_first(many: int) -> Fault:
    return lambda parts, _: _without(parts, set(_pictures(parts)[many:]))


def only_last(many: int) -> Fault:
    return lambda parts, _: _without(parts, set(_pictures(parts)[:-many]))


def every_second(parts: list[Part], _: Request) -> list[Part]:
    return _without(parts, set(_pictures(parts)[1::2]))


def reordered(new: Callable[[list[Part]], list[Part]]) -> Fault:
    """Pictures in another order; their labels stay where they are."""

    def fault(parts: list[Part], _: Request) -> list[Part]:
        at = _pictures(parts)
        changed = dict(zip(at, new([parts[k] for k in at]), strict=True))
        return [changed.get(k, part) for k, part in enumerate(parts)]

    return fault


def backwards(pictures: list[Part]) -> list[Part]:
    return pictures[::-1]


def by_size(pictures: list[Part]) -> list[Part]:
    return sorted(pictures, key=lambda part: (len(part.content), part.content))


@lru_cache(maxsize=4096)
def _shrunk(jpeg: bytes, side: int) -> bytes:
    with Image.open(io.BytesIO(jpeg)) as picture:
        picture.thumbnail((side, side), Image.Resampling.BICUBIC)
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=90)
    return out.getvalue()


def shrinks(side: int) -> Fault:
    return lambda parts, _: [
        replace(part, content=_shrunk(part.content, side)) if part.kind == "picture" else part for part in parts
    ]


def invents_times(parts: list[Part], _: Request) -> list[Part]:
    """Labels are lost, and frames get times as if 24 of them were a second."""
    number, made = 0, []
    at = _pictures(parts)
    for k, part in enumerate(parts):
        if part.kind == "text" and k + 1 in at and "t = " in part.text:
            made.append(Part("text", f"t = {number / 24:.1f} s"))
            number += 1
        else:
            made.append(part)
    return made


def labels_later(many: int) -> Fault:
    """The label of each frame stands with a later one, as where a server collects texts and pictures apart."""

    def fault(parts: list[Part], _: Request) -> list[Part]:
        labels = [part for part in parts if part.text.startswith("t = ")]
        moved = iter([*labels[:1] * many, *labels])
        return [next(moved) if part.text.startswith("t = ") else part for part in parts]

    return fault


def ignores_video(parts: list[Part], _: Request) -> list[Part]:
    return [part for part in parts if part.kind != "video"]


def strips_with(field: str) -> Fault:
    """Pictures are lost when the request has this field."""
    return lambda parts, request: nothing_arrives(parts, request) if request.body.get(field) else parts


@dataclass
class Caching(Sighted):
    """Replies are kept by the text of a request alone."""

    kept: dict[str, Any] = field(default_factory=dict)

    def __call__(self, request: Request) -> Any:
        key = request.text
        if key not in self.kept:
            self.kept[key] = super().__call__(request)
        return self.kept[key]
