"""Near-duplicates of pictures and videos, found by a perceptual hash of 255 bits, whatever their encoding."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proctor.core import PAGES, InputError, Item, clock_text, output_file, percent, write_whole
from proctor.media.library import MediaLibrary, Picture
from proctor.media.media_paths import EXTENSIONS
from proctor.media.sampling import MediaSettings, sample_times

if TYPE_CHECKING:
    from PIL.Image import Image

Hashes = NDArray[np.uint64]

_SIDE = 64
_WAVES = 16
BITS = _WAVES * _WAVES - 1
_WORDS = 4
_FLAT = 6.0  # standard deviation of brightness, below which all pictures look alike
CROPS = {"cropped by a twentieth": 0.05, "cropped by a tenth": 0.1}
"""How much is cut off at each side of the picture before it is hashed as well."""


@dataclass(frozen=True)
class Fingerprint:
    """The hashes of n pictures, n × 4 words each: as they are, mirrored left to right, and cropped. `positions` are the
    numbers of these pictures among all, since flat ones are left out."""

    plain: Hashes
    mirrored: Hashes
    cropped: dict[str, Hashes]
    positions: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.positions)


def fingerprint(jpegs: Sequence[bytes]) -> Fingerprint:
    """The fingerprint of a video's sampled frames, or of one image. Flat pictures (black, a fade) are left out: they
    resemble every other flat one."""
    positions, plain, mirrored = [], [], []
    cropped: dict[str, list[Hashes]] = {name: [] for name in CROPS}
    for position, jpeg in enumerate(jpegs):
        light = _light(jpeg)
        if _points(light).std() < _FLAT:
            continue
        positions.append(position)
        plain.append(_bits(_waves(light)))
        mirrored.append(_bits(_waves(light) * np.where(np.arange(_WAVES) % 2, -1.0, 1.0)))
        for name, edge in CROPS.items():
            cropped[name].append(_bits(_waves(_inner(light, edge))))
    return Fingerprint(
        _stacked(plain),
        _stacked(mirrored),
        {name: _stacked(rows) for name, rows in cropped.items()},
        np.array(positions, dtype=np.int64),
    )


def hashes(jpeg: bytes) -> Hashes:
    """The perceptual hash of one picture, four words: of its 255 lowest frequencies (a cosine transform of 64 × 64
    points) a bit each, set where the coefficient exceeds the median.

    Brightness and contrast do not change it; encoding, scaling and a narrow border change little; a rotation, a wide
    border or another aspect ratio change everything.
    """
    return _bits(_waves(_light(jpeg)))


def distances(first: Hashes, second: Hashes) -> NDArray[np.float64]:
    """Share of bits in which each of n hashes differs from each of m: n × m, from 0 (the same) to 1;
    unrelated pictures lie near a half."""
    different = np.zeros((len(first), len(second)), dtype=np.uint16)
    for word in range(_WORDS):
        different += np.bitwise_count(first[:, word, None] ^ second[None, :, word])
    return different / BITS


def _light(jpeg: bytes) -> Image:
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as opened:
        opened.draft("L", (4 * _SIDE, 4 * _SIDE))
        return opened.convert("L")


def _inner(light: Image, edge: float) -> Image:
    across, down = round(edge * light.width), round(edge * light.height)
    return light.crop((across, down, light.width - across, light.height - down))


def _points(light: Image) -> NDArray[np.float64]:
    from PIL.Image import Resampling

    return np.asarray(light.resize((_SIDE, _SIDE), Resampling.BOX), dtype=np.float64)


def _waves(light: Image) -> NDArray[np.float64]:
    from scipy.fft import dctn

    waves: NDArray[np.float64] = dctn(_points(light), norm="ortho")[:_WAVES, :_WAVES]
    return waves


def _bits(waves: NDArray[np.float64]) -> Hashes:
    slow = waves.ravel()[1:]
    bits = np.concatenate([slow > np.median(slow), [False]])
    return np.packbits(bits).view(np.uint64)


def _joined(looks: Sequence[Fingerprint]) -> Fingerprint:
    """Several fingerprints as one (at least one)."""
    return Fingerprint(
        np.concatenate([look.plain for look in looks]),
        np.concatenate([look.mirrored for look in looks]),
        {name: np.concatenate([look.cropped[name] for look in looks]) for name in CROPS},
        np.concatenate([look.positions for look in looks]),
    )


def _stacked(rows: Sequence[Hashes]) -> Hashes:
    return np.stack(rows) if rows else np.zeros((0, _WORDS), dtype=np.uint64)


_SETTINGS = MediaSettings(max_side=320, quality=80)
_MAX_FRAMES = 4000
_ON_PAGE = 500
_BLOCK_PICTURES = 4000
_TEMPLATE = Path(__file__).parent / "leaks.html.j2"


@dataclass(frozen=True)
class Tolerance:
    """Two pictures are alike if their hashes differ in at most `distance` of their bits; two videos are if at least
    `share` of the pictures of one of them have an alike picture in the other."""

    distance: float = 0.18
    share: float = 0.3


@dataclass(frozen=True)
class Looked:
    """One file with its fingerprint; a still image has one picture, without a time."""

    library: MediaLibrary
    source: str
    path: Path
    identity: str
    times: tuple[float | None, ...]
    looks: Fingerprint

    def picture(self, position: int) -> bytes:
        """One of its pictures."""
        return self.library.jpegs([Picture(self.source, self.times[position])])[0]


@dataclass(frozen=True)
class Leak:
    """A pair of files that show the same. `how` is "the same file", "alike", "mirrored" or how much is cropped;
    `share` of the pictures of one are in the other, `distance` is that of the nearest two, at `positions`."""

    first: Looked
    second: Looked
    how: str
    share: float
    distance: float
    positions: tuple[int, int]

    @property
    def times(self) -> tuple[float | None, float | None]:
        """When the nearest two pictures are shown."""
        return self.first.times[self.positions[0]], self.second.times[self.positions[1]]


def look_at(
    where: Path,
    cache_dir: str | Path | None = None,
    *,
    fps: float = 2.0,
    on_file: Callable[[Path], None] = lambda _: None,
) -> tuple[list[Looked], list[str]]:
    """The fingerprints of all videos and images of a folder (or of one file), sorted by name, and the problems of
    unreadable ones. Raises `InputError` where there are none."""
    root = where if where.is_dir() else where.parent
    files = sorted(path for path in where.rglob("*") if path.is_file()) if where.is_dir() else [where]
    files = [path for path in files if path.suffix.lower() in EXTENSIONS]
    if not files:
        raise InputError(where, found="no video and no image", expected="a folder of them, or one")
    names = [path.relative_to(root).as_posix() for path in files]
    return _look_at_all(
        MediaLibrary(root, _SETTINGS, cache_dir), names, fps, _MAX_FRAMES, lambda name: on_file(root / name)
    )


def look_at_items(items: Sequence[Item], library: MediaLibrary, count: int) -> tuple[list[Looked], list[str]]:
    """The fingerprints of the items' videos and images that are present, sorted by name, and the problems of unreadable
    ones. Each video is sampled by `count` pictures spread evenly, which finds copies with the same start and end;
    `look_at` finds others as well."""
    own = MediaLibrary(library.root, _SETTINGS, library.cache_dir)
    sources = {medium.source for item in items for medium in item.pictured} - {*library.missing(items)}
    return _look_at_all(own, sorted(sources), None, count)


def _look_at_all(
    library: MediaLibrary,
    sources: Iterable[str],
    fps: float | None,
    count: int,
    on_file: Callable[[str], None] = lambda _: None,
) -> tuple[list[Looked], list[str]]:
    looked, problems = [], []
    for source in sources:
        on_file(source)
        try:
            times = _times(library, source, fps, count)
            looks = fingerprint(library.jpegs([Picture(source, time) for time in times]))
            looked.append(Looked(library, source, library.locate(source), library.identity(source), times, looks))
        except InputError as error:
            problems.append(str(error))
    return looked, problems


def find_leaks(first: Sequence[Looked], second: Sequence[Looked], tolerance: Tolerance = Tolerance()) -> list[Leak]:
    """The pairs that show the same, most shared pictures first, then nearest. A file is not compared with itself, and
    two files that both sets hold are one pair."""
    found: dict[frozenset[Path], Leak] = {}
    for block in _blocks(second):
        ends = np.cumsum([0, *(len(looked.looks) for looked in block)])
        rows = _joined([looked.looks for looked in block])
        for looked in first:
            for leak in _leaks_of(looked, block, rows, ends, tolerance):
                pair = frozenset((leak.first.path.resolve(), leak.second.path.resolve()))
                if len(pair) == 2 and (pair not in found or leak.share > found[pair].share):
                    found[pair] = leak
    return sorted(found.values(), key=lambda leak: (-leak.share, leak.distance, leak.first.path))


def write_page(leaks: Sequence[Leak], out: Path, *, title: str) -> None:
    """One self-contained HTML file with the pairs side by side (the first 500). Raises `InputError` where it
    can't be written or would replace anything but an earlier page."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    pairs = [
        {
            "how": leak.how,
            "share": percent(leak.share),
            "distance": f"{leak.distance:.3f}",
            "sides": [
                {"name": str(one.path), "time": _told(one.times[position]), "jpeg": _inline(one.picture(position))}
                for one, position in zip((leak.first, leak.second), leak.positions, strict=True)
            ],
        }
        for leak in leaks[:_ON_PAGE]
    ]
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    page = template.render(title=title, pairs=pairs, left_out=max(0, len(leaks) - _ON_PAGE))
    write_whole(output_file(out, PAGES), page)


def _blocks(looked: Sequence[Looked]) -> Iterator[list[Looked]]:
    """The files in blocks, so that the distances to all pictures of a block fit into memory."""
    block: list[Looked] = []
    for one in looked:
        block.append(one)
        if sum(len(other.looks) for other in block) >= _BLOCK_PICTURES:
            yield block
            block = []
    if block:
        yield block


def _leaks_of(
    looked: Looked, second: Sequence[Looked], rows: Fingerprint, ends: NDArray[np.int64], tolerance: Tolerance
) -> Iterator[Leak]:
    for other in second:
        if other.identity == looked.identity:
            yield Leak(looked, other, "the same file", 1.0, 0.0, (0, 0))
    if not len(looked.looks):
        return
    for how, mine, theirs in _ways(looked.looks, rows):
        apart = distances(mine, theirs)
        alike = apart <= tolerance.distance
        for number in _candidates(alike, ends):
            other, part = second[number], slice(ends[number], ends[number + 1])
            share = max(alike[:, part].any(axis=1).mean(), alike[:, part].any(axis=0).mean())
            if share < tolerance.share or other.identity == looked.identity:
                continue
            row, column = np.unravel_index(int(apart[:, part].argmin()), apart[:, part].shape)
            positions = int(looked.looks.positions[row]), int(other.looks.positions[column])
            yield Leak(looked, other, how, float(share), float(apart[:, part].min()), positions)


def _ways(mine: Fingerprint, rows: Fingerprint) -> Iterator[tuple[str, Hashes, Hashes]]:
    """The comparisons by name, the simplest first."""
    yield "alike", mine.plain, rows.plain
    yield "mirrored", mine.mirrored, rows.plain
    for name in CROPS:
        yield name, mine.cropped[name], rows.plain
        yield name, mine.plain, rows.cropped[name]


def _candidates(alike: NDArray[np.bool_], ends: NDArray[np.int64]) -> list[int]:
    """The files with at least one alike picture."""
    columns = np.flatnonzero(alike.any(axis=0))
    return sorted({int(k) for k in np.searchsorted(ends, columns, side="right") - 1})


def _times(library: MediaLibrary, source: str, fps: float | None, count: int) -> tuple[float | None, ...]:
    if library.is_still(source):
        return (None,)
    end = library.probe(source).duration_s
    return tuple(sample_times(0.0, end, _SETTINGS, count=count, fps=fps))


def _told(time: float | None) -> str:
    return "" if time is None else clock_text(time)


def _inline(jpeg: bytes) -> str:
    return base64.b64encode(jpeg).decode("ascii")
