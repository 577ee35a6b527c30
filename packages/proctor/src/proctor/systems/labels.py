"""The labels of what is sent with a question: times and sources of pictures, clips and sounds."""

from __future__ import annotations

import re
from dataclasses import replace

from proctor.core import Frame, clock_text
from proctor.media import ClipFile, Sound

CLIP = re.compile(r"clip (\d+), ")
"""The beginning of the label of a picture of one of several clips."""


def with_start(file: ClipFile) -> ClipFile:
    """The clip with its start on the whole video's clock in its label."""
    if not file.span[0]:
        return file
    begins = f"this video begins at {clock_text(file.span[0])} of the recording"
    return replace(file, label=", ".join(part for part in (file.label, begins) if part))


def with_caption(sound: Sound, by_own_clock: bool) -> Sound:
    """The sound with its source and its times in its label, on the same clock as frames."""
    start, end = sound.span if by_own_clock else (0.0, sound.span[1] - sound.span[0])
    clock = f" ({clock_text(start)} to {clock_text(end)})" if by_own_clock else ""
    whose = sound.label if sound.label.startswith("recording") else f"sound of the {sound.label}"
    return replace(sound, label=f"{whose}, from t = {start:.1f} s to t = {end:.1f} s{clock}")


def with_time(frame: Frame, span: tuple[float, float] | None, by_own_clock: bool) -> Frame:
    """The frame with its time in its label: from the clip's start, or, where question or answer have times
    (`by_own_clock`) or an item has several clips, on the video's own clock."""
    if frame.time is None:
        return frame
    clip = CLIP.match(frame.label)
    start = 0.0 if span is None or by_own_clock or clip else span[0]
    time = max(0.0, frame.time - start)
    label = f"{clip[0] if clip else ''}t = {time:.1f} s"
    if by_own_clock:
        label += f" ({clock_text(time)})"
    return replace(frame, time=time, label=label)
