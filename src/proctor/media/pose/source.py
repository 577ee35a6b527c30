"""Where poses come from: a network, or a file of keypoints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue, ValidationError

from proctor.core import InputError, Region
from proctor.media.pose.coco import MARKS, KeypointFile
from proctor.media.pose.keypoints import Pose
from proctor.media.pose.network import PoseNetwork

__all__ = ["PoseSource", "marked_region", "marked_regions", "open_pose"]


class PoseSource(Protocol):
    """Finds the people in pictures. Where it does not look at the picture itself (`sees` is False) it goes by the
    name alone, and so knows what a view under another condition may not show."""

    @property
    def sees(self) -> bool:
        """Whether it looks at the picture."""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """What changes its findings, for the record."""

    def look(self, jpeg: bytes, name: str) -> Pose:
        """The people in a picture; `name` is the image's, like `i001/A`. Raises `InputError`."""


def open_pose(path: Path) -> PoseSource:
    """By the file's name: `.onnx` is a network, `.json` are keypoints. Raises `InputError` for another one, and what
    `PoseNetwork` and `KeypointFile` raise."""
    if path.suffix.casefold() == ".onnx":
        return PoseNetwork(path)
    if path.suffix.casefold() == ".json":
        return KeypointFile(path)
    raise InputError(
        path, found=f"the extension {path.suffix!r}", expected=".onnx (a network) or .json (keypoints)"
    )


def marked_region(text: str, what: str) -> Region:
    """A place as a person writes it: `x,y,width,height` in fractions of the picture. Raises `InputError`.

    >>> marked_region("0.25,0.5,0.1,0.2", "chest").height
    0.2
    """
    try:
        x, y, width, height = (float(part) for part in text.split(","))
        return Region(x=x, y=y, width=width, height=height)
    except (ValueError, ValidationError) as error:
        expected = "four fractions of the picture, like 0.25,0.5,0.1,0.2"
        raise InputError(None, what, found=repr(text), expected=expected) from error


def marked_regions(given: Mapping[str, str | None]) -> dict[str, Region]:
    """Those of head, chest and device that are given, read by `marked_region`."""
    return {name: marked_region(text, name) for name in MARKS if (text := given.get(name))}
