"""The tracks that show a part of a video: one frame, or a segment. Which parts are shown, which rules they settle, and
how these ask."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from proctor.build.tracks.annotation import Annotation
from proctor.build.tracks.focus_words import FocusDialect
from proctor.build.tracks.timeline import Timeline, arrivals

__all__ = ["FRAME_RULES", "SEGMENT_RULES", "Window", "window_words", "windows_of"]

FRAME_RULES = (
    "seen-at",
    "kinds-seen-at",
    "how-many-at",
    "where",
    "cell",
    "property",
    "is-property",
    "site",
    "use",
    "action",
    "holder",
)
"""The rules that one picture settles."""

SEGMENT_RULES = (
    *FRAME_RULES,
    "seen",
    "kinds-seen",
    "never",
    "how-many",
    "plural",
    "when-seen",
    "when-each",
    "when-out",
    "when-nth",
    "before",
    "first-seen",
    "order-seen",
    "order-out",
    "kinds-out",
    "first-out",
    "last-seen",
    "happens",
    "which-in",
    "which-away",
)
"""The rules that what happens within a segment settles; what is still inside depends on what came before it."""

_CALM_S = 1.0  # nothing comes or goes so close to where a segment is cut
_SECONDS_ASKED = 8  # of a segment that its questions may name


class Window(Timeline):
    """A part of a video from `start` to `end` seconds, by the video's own clock: nothing before it is known, either.
    A frame (`start` = `end`) is known with the seconds beside it, which say whether it is clear."""

    def __init__(self, annotation: Annotation, start: float, end: float, rng: np.random.Generator) -> None:
        beside = 1.0 if start == end else 0.0
        low, high = start - beside, end + beside
        part = annotation.model_copy(
            update={
                "sightings": tuple(one for one in annotation.sightings if low <= one.second <= high),
                "moments": tuple(one for one in annotation.moments if low <= one.time <= high),
            }
        )
        super().__init__(part, high)
        quiet = [
            second
            for second in Timeline(annotation).quiet()
            if (second == start if beside else start + 1 <= second <= end - 1)
        ]
        some = rng.choice(len(quiet), min(_SECONDS_ASKED, len(quiet)), replace=False) if quiet else ()
        self._asked = sorted(quiet[int(index)] for index in some)

    def times_to_ask(self) -> list[int]:
        """The quiet seconds of the part, or some of them."""
        return self._asked


def windows_of(
    annotation: Annotation, seconds: int, number: int, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """The parts of a video that are shown, one from each of `number` equal parts of where there may be one: frames at
    which it is clear what is in view (`seconds` 0), or segments that are cut where nothing comes or goes."""
    if seconds:
        length = min(seconds, int(annotation.video.seconds))
        changes = [one.time for one in (*arrivals(annotation), *annotation.moments)]
        starts = [
            start
            for start in range(int(annotation.video.seconds) - length + 1)
            if all(abs(time - cut) >= _CALM_S for time in changes for cut in (start, start + length))
        ]
    else:
        length, starts = 0, Timeline(annotation).quiet()
    parts = [part for part in np.array_split(np.array(starts, dtype=np.int64), number) if len(part)]
    drawn = [float(part[int(rng.integers(len(part)))]) for part in parts]
    return [(start, start + length) for start in drawn]


def window_words(say: FocusDialect, seconds: int) -> FocusDialect:
    """How a part of a video is asked about: of a frame without a time, of a segment within it; a time may be off by as
    much as the length of what is shown allows."""
    if not seconds:
        texts = {rule: text.replace(" at {time}", "") for rule, text in say.texts.items()}
        return replace(say, texts=texts)
    texts = {
        rule: text if rule in FRAME_RULES else f"In this segment: {text.replace(' so far', '')}"
        for rule, text in say.texts.items()
    }
    return replace(say, texts=texts, shown_s=float(seconds))
