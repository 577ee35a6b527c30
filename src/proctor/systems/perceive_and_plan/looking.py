"""The pictures that are sent: each with the places that matter enlarged beside it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from proctor.core import Frame, InputError, Region
from proctor.media.pose import Pose
from proctor.media.saliency import COLOURS, Detail, details_of, enlarged, saliency

__all__ = ["Insets", "Look", "looks_at"]

Insets = bool | Literal["both"]
"""Whether details are enlarged; "both" adds what stands out to what joints and marks tell."""


@dataclass(frozen=True)
class Look:
    """One picture to be sent, without a label (one picture alone needs none), and what is enlarged in it."""

    frame: Frame
    details: tuple[Detail, ...]

    @property
    def insets(self) -> list[tuple[str, str]]:
        """Colour and content ("" for a place that stands out) of each inset, in its order."""
        return [(colour, detail.what) for colour, detail in zip(COLOURS, self.details, strict=False)]


def looks_at(
    frames: Sequence[Frame],
    poses: Sequence[Pose | None],
    marked: Mapping[str, Region],
    *,
    insets: Insets = True,
    originals: Sequence[Frame] = (),
) -> list[Look]:
    """One look for each frame; motion is taken between all of them. Details are cut from the `originals`, the same
    pictures before they were scaled, where they are given. Raises `InputError` for an unreadable picture, and where
    the originals are not those of the frames."""
    if not insets:
        return [Look(Frame(frame.jpeg, frame.time, ""), ()) for frame in frames]
    if originals and [one.label for one in originals] != [one.label for one in frames]:
        given, expected = (", ".join(one.label for one in some) for some in (originals, frames))
        raise InputError(None, "originals", found=given, expected=expected)
    sources: list[bytes | None] = [one.jpeg for one in originals]
    sources = sources or [None] * len(frames)
    looks = []
    maps = saliency([frame.jpeg for frame in frames])
    for frame, pose, found, source in zip(frames, poses, maps, sources, strict=True):
        details = details_of(found, _aspect(frame.jpeg), pose, marked, both=insets == "both")
        looks.append(Look(Frame(enlarged(frame.jpeg, details, source), frame.time, ""), tuple(details)))
    return looks


def _aspect(jpeg: bytes) -> float:
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as opened:
        return opened.width / opened.height
