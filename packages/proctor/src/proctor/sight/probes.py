"""The questions of a sight test: items like those of a benchmark, with pictures, clips and sounds drawn for them.

All numbers are drawn by the seed, and no two pictures share one: neither a prior nor a cache can know them, and a number in a
wrong reply says which picture it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from proctor.core import AudioClip, Image, Item, Reference, VideoClip, generator
from proctor.core.formats import AnswerFormat, ChoiceFormat, CountFormat, TimestampsFormat, option_letters
from proctor.media import MediaSettings, from_jpegs
from proctor.sight import pictures

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


_T = TypeVar("_T")


class Kind(StrEnum):
    """What a question asks."""

    NUMBER = "number"  # in a still picture
    BLACK = "black"  # the same question under the condition `black`
    COLOUR = "colour"
    POSITION = "position"
    SIZE = "size"
    MOTION = "motion"
    END = "first or last"  # the number on the first or last frame
    FRAME = "frame"  # the number on the frame with this time
    TIME = "time"  # the time of a number
    SMALLEST = "smallest"  # the smallest number that can be read on a ladder
    SMALL_DIGITS = "small digits"  # a number in digits of some height
    TONES = "tones"


READ = frozenset({Kind.NUMBER, Kind.END, Kind.FRAME})
"""Kinds whose answer is one of 900 numbers in large digits: a right one is no luck."""

SAYS_ZERO = READ | {Kind.BLACK, Kind.SMALL_DIGITS}
"""Kinds whose question says: "If none can be seen, answer 0." So 0 is a reply that nothing is seen, and no number."""

CHOSEN = frozenset({Kind.COLOUR, Kind.POSITION, Kind.SIZE, Kind.MOTION})
"""Kinds with few answers, of which a constant one is right at times."""

SECONDS_A_NUMBER = 4.0
"""How long each number is shown in a clip that is sent as a video file: servers take few pictures of it."""
NUMBERS_OF_A_FILE = 16
_LABELS_S = 0.1  # to which times stand in labels
_WAIT = (21, 80)  # seconds of the recording before a clip begins, so that times are no positions
_MOVES = 8
_EARLIER = 1e-5  # a tick of a video: rounded times must not come after the moments at which frames are taken


@dataclass(frozen=True)
class SightProbe:
    """One question. `kind` and `route` say what it tests, `at` is the position of the frame that it asks for, `clip` the
    positions of the numbers in its clip, `height` that of small digits, `large` whether they are on a large picture, and
    `rungs` the numbers of a ladder, largest first."""

    item: Item
    kind: Kind
    route: str = "frames"
    condition: str = "video"
    at: int = 0
    clip: dict[int, int] = field(default_factory=dict)
    height: int = 0
    large: bool = True
    rungs: tuple[int, ...] = ()

    @property
    def truth(self) -> object:
        """The right answer; None where there is nothing to see."""
        return None if self.item.reference is None else self.item.reference.answer


class Deck:
    """Draws probes, and writes their media below `folder`. With the same seed and the same calls it gives the same."""

    def __init__(self, folder: Path, seed: int, settings: MediaSettings) -> None:
        self._folder = folder
        self._settings = settings
        self._draw = generator(seed, "sight")
        self._numbers = [100 + int(one) for one in self._draw.permutation(900)]
        self._made = 0

    @property
    def frames_of_a_clip(self) -> int:
        """How many frames a clip has, one for each number: as many as a run sends at most."""
        return self._settings.max_frames

    @property
    def large(self) -> tuple[int, int]:
        """The size of a large picture: the longest side that a run sends."""
        side = self._settings.max_side or 1024
        return side, side * 3 // 4

    def numbers(self, count: int, route: str = "frames") -> list[SightProbe]:
        """Still pictures with a number; all are asked by the same words."""
        return [self._number(route) for _ in range(count)]

    def black(self) -> SightProbe:
        """The same question about a picture that the condition `black` hides."""
        probe = self._number("frames")
        item = probe.item.model_copy(update={"reference": None})
        return SightProbe(item, Kind.BLACK, condition="black")

    def colours(self, count: int) -> list[SightProbe]:
        """A disc: which colour?"""
        made = []
        for colour in self._some(list(pictures.COLOURS), count):
            picture = pictures.disc(colour, self._somewhere())
            made.append(self._choice(Kind.COLOUR, "Which colour is the disc?", picture, colour, pictures.COLOURS))
        return made

    def positions(self, count: int) -> list[SightProbe]:
        """A disc: where?"""
        made = []
        for corner in self._some(list(pictures.CORNERS), count):
            picture = pictures.disc(self._some(list(pictures.COLOURS), 1)[0], pictures.CORNERS[corner])
            made.append(self._choice(Kind.POSITION, "Where is the disc?", picture, corner, pictures.CORNERS))
        return made

    def sizes(self, count: int) -> list[SightProbe]:
        """Four discs: which is the largest?"""
        made = []
        for largest in self._some(list(pictures.COLOURS), count):
            corners = self._some(list(pictures.CORNERS.values()), 4)
            radii = [0.2 if colour == largest else 0.09 for colour in pictures.COLOURS]
            picture = pictures.discs(list(zip(pictures.COLOURS, corners, radii, strict=True)))
            words = "Which colour is the largest disc?"
            made.append(self._choice(Kind.SIZE, words, picture, largest, pictures.COLOURS))
        return made

    def motions(self, count: int) -> list[SightProbe]:
        """A disc in a clip of eight frames: which way does it move?"""
        made = []
        for way in self._some(list(pictures.WAYS), count):
            rate = self._settings.fps
            drawn = pictures.moving(way, min(_MOVES, self._settings.max_frames))
            source = self._video([(k / rate, one) for k, one in enumerate(drawn)], len(drawn) / rate)
            clip = VideoClip(source=source, end=len(drawn) / rate)
            made.append(self._chosen(Kind.MOTION, "Which way does the disc move?", clip, way, pictures.WAYS))
        return made

    def small(self, height: int, count: int, *, large: bool) -> list[SightProbe]:
        """A number in small digits, on a large picture or on a small one."""
        made = []
        for _ in range(count):
            value = self._next(1)[0]
            picture = pictures.number(value, self.large, height) if large else pictures.small_number(value, height)
            probe = self._still(Kind.SMALL_DIGITS, _WHICH, picture, value)
            made.append(SightProbe(probe.item, Kind.SMALL_DIGITS, height=height, large=large))
        return made

    def ladders(self, count: int) -> list[SightProbe]:
        """A ladder of numbers: which is the smallest that can be read?"""
        made = []
        for _ in range(count):
            rungs = self._next(len(pictures.rungs_in(self.large[1])))
            words = (
                "The picture shows one number in each line, in large print at the top and in ever smaller print below. "
                "Reading from the top, which number is the last that you can make out?"
            )
            probe = self._still(Kind.SMALLEST, words, pictures.ladder(rungs, self.large), rungs[-1])
            made.append(SightProbe(probe.item, Kind.SMALLEST, rungs=tuple(rungs)))
        return made

    def tones(self, count: int) -> list[SightProbe]:
        """How many tones?"""
        made = []
        for tones in self._some([2, 3, 4, 5], count):
            source = self._write(pictures.tones(tones), ".wav")
            item = self._item("How many tones are played?", CountFormat(), (AudioClip(source=source),), tones)
            made.append(SightProbe(item, Kind.TONES, "sound"))
        return made

    def clip(self) -> DrawnClip:
        """A clip with a number on each frame; before it the recording shows others, so that it does not begin at 0."""
        rate, count = self._settings.fps, self.frames_of_a_clip
        start = float(self._draw.integers(*_WAIT))
        values = self._next(count)
        return self._clip(values, 1 / rate, start, "frames")

    def file(self) -> DrawnClip:
        """A clip to be sent as a video file: fewer numbers, each for some seconds, from 0 on."""
        return self._clip(self._next(NUMBERS_OF_A_FILE), SECONDS_A_NUMBER, 0.0, "video")

    def _clip(self, values: list[int], each: float, start: float, route: str) -> DrawnClip:
        # A server that samples a file by its rate has to find several pictures of each number.
        repeats = 1 if route == "frames" else math.ceil(each / 0.5)
        step = each / repeats
        shown = [
            (max(0.0, start + k * each + more * step - _EARLIER), pictures.number(value, pictures.FRAME))
            for k, value in enumerate(values)
            for more in range(repeats)
        ]
        before = [(0.0, pictures.number(self._next(1)[0], pictures.FRAME))] if start else []
        end = start + len(values) * each
        source = self._video([*before, *shown], end)
        return DrawnClip(self, VideoClip(source=source, start=start, end=end), tuple(values), each, route)

    def _number(self, route: str) -> SightProbe:
        value = self._next(1)[0]
        return self._still(Kind.NUMBER, _WHICH, pictures.number(value), value, route)

    def _still(self, kind: Kind, question: str, picture: Picture, value: int, route: str = "frames") -> SightProbe:
        item = self._item(question, CountFormat(), (Image(source=self._picture(picture)),), value)
        return SightProbe(item, kind, route)

    def _choice(self, kind: Kind, question: str, picture: Picture, right: str, known: object) -> SightProbe:
        return self._chosen(kind, question, Image(source=self._picture(picture)), right, known)

    def _chosen(self, kind: Kind, question: str, medium: Image | VideoClip, right: str, known: object) -> SightProbe:
        options = self._some(list(known), 4)  # type: ignore[call-overload]  # the names of a mapping
        letter = option_letters(len(options))[options.index(right)]
        return SightProbe(self._item(question, ChoiceFormat(), (medium,), letter, tuple(options)), kind)

    def _item(
        self,
        question: str,
        form: AnswerFormat,
        media: tuple[Image | VideoClip | AudioClip, ...],
        right: object,
        options: tuple[str, ...] = (),
    ) -> Item:
        self._made += 1
        return Item(
            id=f"sight-{self._made}",
            group="sight",
            question=question,
            answer=form,
            media=media,
            options=options,
            reference=Reference(answer=right),  # type: ignore[arg-type]  # JSON
        )

    def _next(self, count: int) -> list[int]:
        """Numbers that were not drawn yet. Raises `ValueError` after 900."""
        if count > len(self._numbers):
            raise ValueError(f"{count} more numbers of three digits, {len(self._numbers)} are left")
        taken, self._numbers = self._numbers[:count], self._numbers[count:]
        return taken

    def _some(self, known: Sequence[_T], count: int) -> list[_T]:
        """Draws, all different until all were drawn."""
        drawn: list[_T] = []
        while len(drawn) < count:
            drawn += [known[int(k)] for k in self._draw.permutation(len(known))]
        return drawn[:count]

    def _somewhere(self) -> tuple[float, float]:
        x, y = self._draw.uniform(0.25, 0.75, 2)
        return float(x), float(y)

    def _picture(self, picture: Picture) -> str:
        self._made += 1
        name = f"{self._made}.png"
        picture.save(self._folder / name, compress_level=1)
        return name

    def _video(self, shown: Sequence[tuple[float, Picture]], end: float) -> str:
        """A video of pictures at times; the last one is shown once more at the end, which gives it its duration."""
        coded = [(at, pictures.jpeg(one)) for at, one in shown]
        return self._write(from_jpegs([*coded, (end, coded[-1][1])]), ".mp4")

    def _write(self, content: bytes, suffix: str) -> str:
        self._made += 1
        name = f"{self._made}{suffix}"
        (self._folder / name).write_bytes(content)
        return name


@dataclass(frozen=True)
class DrawnClip:
    """A clip whose frames show `values`, each for `each` seconds, and the questions about it, by `route`."""

    deck: Deck
    medium: VideoClip
    values: tuple[int, ...]
    each: float
    route: str

    @property
    def _times(self) -> list[float]:
        return [k * self.each for k in range(len(self.values))]

    def has(self, probe: SightProbe) -> bool:
        """Whether a question is about this clip."""
        return self.values[0] in probe.clip

    def ends(self) -> list[SightProbe]:
        """Which number is on the first frame, and which on the last?"""
        what = "frame" if self.route == "frames" else "number"
        words = {"frame": "Which number is on the {} frame?", "number": "Which number is shown {} in the video?"}[what]
        return [
            self._asked(Kind.END, words.format("first"), 0),
            self._asked(Kind.END, words.format("last"), len(self.values) - 1),
        ]

    @property
    def tells_frames_apart(self) -> bool:
        """Whether no two frames have the same label: a run writes times to a tenth of a second."""
        return self.each >= _LABELS_S - 1e-9

    def frames(self, positions: Sequence[int]) -> list[SightProbe]:
        """Which number is on the frame with this time? Nothing is asked where frames have the same label."""
        made: list[SightProbe] = []
        if not self.tells_frames_apart:
            return made
        for position in positions:
            at = self._times[position]
            words = f"Which number is on the frame at t = {at:.1f} s?{_OR_NONE}"
            if self.route == "video":
                words = f"Which number is shown {at + self.each / 2:.0f} seconds after the beginning of the video?{_OR_NONE}"
            made.append(self._asked(Kind.FRAME, words, position))
        return made

    def times(self, positions: Sequence[int]) -> list[SightProbe]:
        """At what time is this number shown? A second off is right, and so is any time while it is shown."""
        made = []
        for position in positions:
            start = self.medium.start + self._times[position]
            middle, tolerance = start, 1.0
            if self.route == "video":
                middle, tolerance = start + self.each / 2, self.each / 2 + 1
            form = TimestampsFormat(tolerance=tolerance)
            words = f"At what time of the recording is the number {self.values[position]} shown?"
            made.append(self._asked(Kind.TIME, words, position, form, [middle]))
        return made

    def _asked(
        self, kind: Kind, words: str, position: int, form: AnswerFormat | None = None, right: object = None
    ) -> SightProbe:
        value = self.values[position] if right is None else right
        item = self.deck._item(words, form or CountFormat(), (self.medium,), value)  # noqa: SLF001  # its own maker
        return SightProbe(item, kind, self.route, at=position, clip={one: k for k, one in enumerate(self.values)})


_OR_NONE = " If none can be seen, answer 0."
_WHICH = f"Which number is written in the picture?{_OR_NONE}"
