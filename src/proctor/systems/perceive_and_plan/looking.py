"""The pictures that are sent: each with the places that matter enlarged beside it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.core import Frame, Region
from proctor.media.pose import Pose
from proctor.media.saliency import COLOURS, Detail, details_of, enlarged, saliency

__all__ = ["Look", "looks_at"]


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
    insets: bool = True,
) -> list[Look]:
    """One look for each frame; motion is taken between all of them. Raises `InputError` for an unreadable picture."""
    if not insets:
        return [Look(Frame(frame.jpeg, frame.time, ""), ()) for frame in frames]
    looks = []
    maps = saliency([frame.jpeg for frame in frames])
    for frame, pose, found in zip(frames, poses, maps, strict=True):
        details = details_of(found, _aspect(frame.jpeg), pose, marked)
        looks.append(Look(Frame(enlarged(frame.jpeg, details), frame.time, ""), tuple(details)))
    return looks


def _aspect(jpeg: bytes) -> float:
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as opened:
        return opened.width / opened.height
