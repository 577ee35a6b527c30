"""The patient's pictures as a judge is shown them, and what is said where they can't be shown."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue

from proctor.core import Frame, InputError
from proctor.judges.dimensions.case import Case
from proctor.judges.dimensions.scores import IMAGES_ABSENT, IMAGES_BROKEN
from proctor.media import MediaSettings
from proctor.media.names import locate
from proctor.media.pictures import encode, read_image

__all__ = ["Pictures", "look"]

_SETTINGS = MediaSettings(max_side=1024, quality=90)
_LABELS = {"en": "Picture {place} of {count}", "zh": "照片 {place}/{count}"}


@dataclass(frozen=True)
class Pictures:
    """Those that could be loaded, in the order of the case; of how many; and what was wrong with the others."""

    frames: tuple[Frame, ...]
    named: int
    flags: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def hashes(self) -> list[JsonValue]:
        """What a vote is found by: other pictures are another vote."""
        return [hashlib.sha256(one.jpeg).hexdigest() for one in self.frames]

    @property
    def evidence(self) -> dict[str, JsonValue]:
        """For the record."""
        shown: dict[str, JsonValue] = {"named": self.named, "shown": len(self.frames)}
        return {"images": shown | ({"problems": list(self.problems)} if self.problems else {})}


async def look(case: Case) -> Pictures:
    """Loads a case's pictures. One that can't be loaded is left out, and said; no error is raised."""
    if not case.images:
        return Pictures((), 0)
    if case.image_root is None:
        return Pictures((), len(case.images), (IMAGES_ABSENT,))
    return await asyncio.to_thread(
        _load, case.image_root, case.images, _LABELS.get(case.language, _LABELS["en"])
    )


def _load(root: Path, names: tuple[str, ...], label: str) -> Pictures:
    frames, problems = [], []
    for place, name in enumerate(names, start=1):
        try:
            file = locate(root, name)
            stamp = file.stat()
            jpeg = _jpeg(file, stamp.st_mtime_ns, stamp.st_size)
        except InputError as error:
            problems.append(str(error))
        else:
            frames.append(Frame(jpeg, None, label.format(place=place, count=len(names))))
    return Pictures(tuple(frames), len(names), (IMAGES_BROKEN,) if problems else (), tuple(problems))


@lru_cache(maxsize=128)
def _jpeg(file: Path, changed_ns: int, size: int) -> bytes:  # noqa: ARG001 - a file that changed is read anew
    """A picture as it is sent; several systems answer to the same one, and several members look at it."""
    return encode(read_image(file), None, _SETTINGS)
