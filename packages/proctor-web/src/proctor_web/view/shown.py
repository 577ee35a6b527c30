"""The pictures that a model was given, made again from the media and compared with the record of their hashes."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import Answer, InputError, Item
from proctor.runs import Run, Store

if TYPE_CHECKING:
    from proctor.media import MediaLibrary, MediaSettings, ShownRecord
    from proctor.runs import Remake, Reproducer
    from proctor_web.video import ItemMedia

_KEPT_BYTES = 64 * 2**20
_CACHE = 2 * 10**9


@dataclass(frozen=True)
class ShownPicture:
    """One picture of a request: the time in the video in seconds (None for a still), the first digits of its SHA-256 as
    it was recorded, and what it is asked as (frames, files, sounds)."""

    request: int
    number: int
    time: float | None
    prefix: str
    asked_as: str


def shown_records(answer: Answer) -> Sequence[ShownRecord]:
    """The record of what was shown, request by request."""
    from proctor.runs import recorded  # it brings all that reads media, which the first page does not need

    return recorded(answer)


def shown_pictures(answer: Answer) -> list[ShownPicture]:
    """The record of what was shown for an answer, picture by picture; empty without a record."""
    found = []
    for request, record in enumerate(shown_records(answer)):
        times = [*record.times, *([None] * (len(record.prefixes) - len(record.times)))]
        found += [
            ShownPicture(request, number, time, prefix, record.asked_as)
            for number, (prefix, time) in enumerate(zip(record.prefixes, times, strict=False))
        ]
    return found


class ShownAgain:
    """Makes pictures of a benchmark's answers again. `root` is the folder of its media (None: none is known)."""

    def __init__(self, store: Store, benchmark: str, root: Path | None) -> None:
        self._store, self._benchmark, self._root = store, benchmark, root
        self._folder = tempfile.TemporaryDirectory(prefix="proctor-view-")
        self._libraries: dict[MediaSettings, MediaLibrary] = {}
        self._reproducer: Reproducer | None = None
        self._lock = asyncio.Lock()
        self._clips: ItemMedia | None = None
        self._kept: OrderedDict[tuple[int, str, int], list[Remake]] = OrderedDict()

    def _library(self, settings: MediaSettings) -> MediaLibrary:
        from proctor.media import Excerpts, MediaLibrary

        if settings not in self._libraries:
            excerpts = Excerpts(self._store.card(self._benchmark).excerpts)
            self._libraries[settings] = MediaLibrary(
                self._root, settings, Path(self._folder.name), cache_bytes=_CACHE, excerpts=excerpts
            )
        return self._libraries[settings]

    def clips(self) -> ItemMedia:
        """The media of items as they are, to be played. Raises `InputError` where no folder is known."""
        from proctor.media import MediaSettings
        from proctor_web.video import ItemMedia

        if self._root is None:
            raise InputError("media", found="no folder", expected="that of the benchmark's media: --media FOLDER")
        if self._clips is None:
            self._clips = ItemMedia(self._library(MediaSettings()))
        return self._clips

    async def remade(self, run: Run, item: Item, answer: Answer) -> list[Remake]:
        """The requests of an answer, made again. Raises `InputError` where the media are not there or can't be read."""
        key = run.id, item.id, answer.repetition
        async with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            if self._root is None:
                raise InputError("media", found="no folder", expected="that of the benchmark's media: --media FOLDER")
            if self._reproducer is None:
                from proctor.runs import Reproducer

                make = asyncio.to_thread(Reproducer, self._store, self._benchmark, self._library)
                self._reproducer = await make
            found = await self._reproducer.remade(run, item, answer)
            self._kept[key] = found
            while len(self._kept) > 1 and sum(map(_size, self._kept.values())) > _KEPT_BYTES:
                self._kept.popitem(last=False)
            return found

    async def picture(self, run: Run, item: Item, answer: Answer, request: int, number: int) -> bytes:
        """One picture. Raises `InputError` where it can't be made again, and where it is not the one that was shown."""
        record = shown_records(answer)
        if not (0 <= request < len(record) and 0 <= number < len(record[request].prefixes)):
            raise InputError("picture", found=f"{request}/{number}", expected="one that was shown")
        made = await self.remade(run, item, answer)
        pictures = made[request].pictures if request < len(made) else []
        if number >= len(pictures):
            raise InputError("picture", found=f"{len(pictures)} now", expected=f"{len(record[request].prefixes)} then")
        content = pictures[number][1]
        now, then = hashlib.sha256(content).hexdigest(), record[request].prefixes[number]
        if not now.startswith(then):
            raise InputError("picture", found=f"other pixels than were shown ({now[:8]})", expected=f"SHA-256 {then}…")
        return content

    def close(self) -> None:
        """Removes the cached frames."""
        self._folder.cleanup()


def _size(made: list[Remake]) -> int:
    return sum(len(content) for remake in made for _, content in remake.pictures)
