"""Near-duplicates between two sets of videos or images: what a model may have been trained on."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.media.fingerprints import CROPS, Fingerprint, Hashes, distances, fingerprint
from proctor.media.library import MediaLibrary, Picture
from proctor.media.names import EXTENSIONS, IMAGE_EXTENSIONS
from proctor.media.sampling import clock_text, sample_times
from proctor.media.settings import MediaSettings

__all__ = ["Leak", "Looked", "Tolerance", "find_leaks", "look_at", "write_page"]

_SETTINGS = MediaSettings(max_side=320, quality=80)
_MOST_FRAMES = 4000
_ON_PAGE = 500
_AT_ONCE = 4000
_TEMPLATE = Path(__file__).parent / "leaks.html.j2"


@dataclass(frozen=True)
class Tolerance:
    """Two pictures are alike where their hashes differ in at most `distance` of their bits; two videos are
    where at least `share` of the pictures of one of them have one that is alike in the other."""

    distance: float = 0.18
    share: float = 0.3


@dataclass(frozen=True)
class Looked:
    """One file of a set, as its pictures look; a still image has one picture, at no time."""

    library: MediaLibrary
    source: str
    path: Path
    identity: str
    times: tuple[float | None, ...]
    looks: Fingerprint

    def picture(self, place: int) -> bytes:
        """One of its pictures."""
        return self.library.jpegs([Picture(self.source, self.times[place])])[0]


@dataclass(frozen=True)
class Leak:
    """A pair of files that show the same. `how` is "the same file", "alike", "mirrored" or how much is cropped;
    `share` of the pictures of one are in the other, `distance` is that of the nearest two, which stand at
    `places`."""

    first: Looked
    second: Looked
    how: str
    share: float
    distance: float
    places: tuple[int, int]

    @property
    def times(self) -> tuple[float | None, float | None]:
        """When the nearest two pictures are shown."""
        return self.first.times[self.places[0]], self.second.times[self.places[1]]


def look_at(
    where: Path,
    cache_dir: Path | None = None,
    *,
    fps: float = 2.0,
    on_file: Callable[[Path], None] = lambda _: None,
) -> tuple[list[Looked], list[str]]:
    """All videos and images of a folder (or one file), sorted by name, and what is wrong with the others.
    Raises `InputError` where there are none."""
    root = where if where.is_dir() else where.parent
    files = sorted(path for path in where.rglob("*") if path.is_file()) if where.is_dir() else [where]
    files = [path for path in files if path.suffix.lower() in EXTENSIONS]
    if not files:
        raise InputError(where, found="no video and no image", expected="a folder of them, or one")
    library = MediaLibrary(root, _SETTINGS, cache_dir)
    looked, problems = [], []
    for path in files:
        on_file(path)
        source = path.relative_to(root).as_posix()
        try:
            times = _times(library, source, fps)
            looks = fingerprint(library.jpegs([Picture(source, time) for time in times]))
            looked.append(Looked(library, source, path, library.identity(source), times, looks))
        except InputError as error:
            problems.append(str(error))
    return looked, problems


def find_leaks(
    first: Sequence[Looked], second: Sequence[Looked], tolerance: Tolerance = Tolerance()
) -> list[Leak]:
    """The pairs that show the same, the surest first (most shared, then nearest). A file is not compared
    with itself, and where both sets hold two files they are one pair."""
    found: dict[frozenset[Path], Leak] = {}
    for block in _blocks(second):
        ends = np.cumsum([0, *(len(one.looks) for one in block)])
        rows = _Rows.of(block)
        for one in first:
            for leak in _leaks_of(one, block, rows, ends, tolerance):
                pair = frozenset((leak.first.path.resolve(), leak.second.path.resolve()))
                if len(pair) == 2 and (pair not in found or leak.share > found[pair].share):
                    found[pair] = leak
    return sorted(found.values(), key=lambda leak: (-leak.share, leak.distance, leak.first.path))


def write_page(leaks: Sequence[Leak], out: Path, *, title: str) -> None:
    """One self-contained HTML file with the pairs side by side (the first 500). Raises `InputError` where it
    can't be written."""
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    pairs = [
        {
            "how": leak.how,
            "share": f"{100 * leak.share:.0f} %",
            "distance": f"{leak.distance:.3f}",
            "sides": [
                {"name": str(one.path), "time": _told(one.times[place]), "jpeg": _inline(one.picture(place))}
                for one, place in zip((leak.first, leak.second), leak.places, strict=True)
            ],
        }
        for leak in leaks[:_ON_PAGE]
    ]
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    page = template.render(title=title, pairs=pairs, left_out=max(0, len(leaks) - _ON_PAGE))
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(out, found=error.strerror or "", expected="a file to write to") from error


@dataclass(frozen=True)
class _Rows:
    """The hashes of all files of a set, one after the other."""

    plain: Hashes
    cropped: dict[str, Hashes]

    @classmethod
    def of(cls, looked: Sequence[Looked]) -> _Rows:
        nothing = np.zeros((0, 4), dtype=np.uint64)
        plain = np.concatenate([nothing, *(one.looks.plain for one in looked)])
        cropped = {
            name: np.concatenate([nothing, *(one.looks.cropped[name] for one in looked)]) for name in CROPS
        }
        return cls(plain, cropped)


def _blocks(looked: Sequence[Looked]) -> Iterator[list[Looked]]:
    """The files in lots, so that the distances to all pictures of a lot fit into memory."""
    block: list[Looked] = []
    for one in looked:
        block.append(one)
        if sum(len(other.looks) for other in block) >= _AT_ONCE:
            yield block
            block = []
    if block:
        yield block


def _leaks_of(
    one: Looked, second: Sequence[Looked], rows: _Rows, ends: NDArray[np.int64], tolerance: Tolerance
) -> Iterator[Leak]:
    for other in second:
        if other.identity == one.identity:
            yield Leak(one, other, "the same file", 1.0, 0.0, (0, 0))
    if not len(one.looks):
        return
    for how, mine, theirs in _ways(one.looks, rows):
        apart = distances(mine, theirs)
        alike = apart <= tolerance.distance
        for number in _candidates(alike, ends):
            other, part = second[number], slice(ends[number], ends[number + 1])
            share = max(alike[:, part].any(axis=1).mean(), alike[:, part].any(axis=0).mean())
            if share < tolerance.share or other.identity == one.identity:
                continue
            row, column = np.unravel_index(int(apart[:, part].argmin()), apart[:, part].shape)
            places = int(one.looks.places[row]), int(other.looks.places[column])
            yield Leak(one, other, how, float(share), float(apart[:, part].min()), places)


def _ways(mine: Fingerprint, rows: _Rows) -> Iterator[tuple[str, Hashes, Hashes]]:
    """What is held against what, and what it is if it fits; the plainest first."""
    yield "alike", mine.plain, rows.plain
    yield "mirrored", mine.mirrored, rows.plain
    for name in CROPS:
        yield name, mine.cropped[name], rows.plain
        yield name, mine.plain, rows.cropped[name]


def _candidates(alike: NDArray[np.bool_], ends: NDArray[np.int64]) -> list[int]:
    """The files of which at least one picture is alike."""
    columns = np.flatnonzero(alike.any(axis=0))
    return sorted({int(k) for k in np.searchsorted(ends, columns, side="right") - 1})


def _times(library: MediaLibrary, source: str, fps: float) -> tuple[float | None, ...]:
    if Path(source).suffix.lower() in IMAGE_EXTENSIONS:
        return (None,)
    end = library.probe(source).duration_s
    return tuple(sample_times(0.0, end, _SETTINGS, count=_MOST_FRAMES, fps=fps))


def _told(time: float | None) -> str:
    return "" if time is None else clock_text(time)


def _inline(jpeg: bytes) -> str:
    return base64.b64encode(jpeg).decode("ascii")
