"""Medical files (DICOM, NIfTI): their kind, facts and pictures, read by a separate process."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import ValidationError

from proctor.core import ConfigurationError, InputError, ParseError, Scan, first_problem, pip_install
from proctor.media.sampling import fitted

if TYPE_CHECKING:
    from PIL.Image import Image

    from proctor.core import ChildProcess
    from proctor.media.video import VideoInfo
    from proctor.media.video_clock import FrameIndex

ScanKind = Literal["dicom", "nifti"]

NIFTI_EXTENSIONS = (".nii", ".nii.gz")
DICOM_EXTENSIONS = (".dcm", ".dicom", ".ima")
_LIBRARIES: Mapping[str, tuple[str, str]] = {"dicom": ("pydicom", "dicom"), "nifti": ("nibabel", "nifti")}
_PATIENCE_S = 120.0  # of wall time; the process's own limit is processor time
_WINDOW = re.compile(r"\[?\s*([+-]?\d{1,9}(?:\.\d{1,9})?)\s*[/,;]\s*(\d{1,9}(?:\.\d{1,9})?)\s*\]?")
_TICKS = 1_000_000
_SAME_DIRECTION = 1e-3
_SAME_POSITION = 1e-3  # millimetres
_MAX_PIXEL_BYTES = 200_000_000


def scan_kind(path: Path) -> ScanKind | None:
    """The kind of a medical file, by its name or, for DICOM, its first bytes; None for any other file."""
    name = path.name.lower()
    if name.endswith(NIFTI_EXTENSIONS):
        return "nifti"
    if name.endswith(DICOM_EXTENSIONS):
        return "dicom"
    try:
        with path.open("rb") as file:
            head = file.read(132)
    except OSError:
        return None
    return "dicom" if head[128:] == b"DICM" else None


_AXES = ("axial", "coronal", "sagittal")
_FOREIGN: Mapping[ScanKind, tuple[str, ...]] = {"dicom": ("axis", "slice", "volume"), "nifti": ("frame",)}
"""The display options that a kind of file does not have."""


def parse_scan(text: str) -> Scan:
    """Display options of a medical file from a text: `window=CENTRE/WIDTH`, `frame=N` (from 1), `axial=N`, `coronal=N` or
    `sagittal=N` (slices from 0), `volume=N` (from 0), with commas or & between them. Raises `ParseError`.

    >>> parse_scan("axial=12,window=40/400").slice
    12
    """
    expected = "window=CENTRE/WIDTH, frame=N, axial=N, coronal=N, sagittal=N or volume=N"
    found: dict[str, Any] = {}
    for part in text.replace("&", ",").split(","):
        name, _, value = (one.strip() for one in part.partition("="))
        given: dict[str, Any] = {name: value}
        if name == "window":
            given = {"window": parse_window(value)}
        elif name in _AXES:
            given = {"axis": name, "slice": value}
        if not value or not set(given) <= set(Scan.model_fields) or set(given) & set(found):
            raise ParseError(expected=expected, found=part[:60])
        found |= given
    try:
        return Scan.model_validate(found)
    except ValidationError as error:
        raise ParseError(expected=expected, found=f"{text[:60]} ({first_problem(error).expected})") from error


def parse_window(text: str) -> tuple[float, float]:
    """Centre (level) and width of a window: "40/400", "40, 400" or "[40, 400]". Raises `ParseError`.

    >>> parse_window("40/400"), parse_window("[-600, 1500]")
    ((40.0, 400.0), (-600.0, 1500.0))
    """
    hit = _WINDOW.fullmatch(text.strip())
    if hit is None or float(hit[2]) <= 0:
        raise ParseError(expected="centre and width of a window, such as 40/400", found=text[:60])
    return float(hit[1]), float(hit[2])


@dataclass(frozen=True)
class DicomFacts:
    """The facts of a DICOM file. `series` is a hash; `plane` holds the directions of rows and columns and the position
    along their normal; `ends` are the ends of its frames in seconds, None without times; `marked` names the elements
    that declare identifying pixels."""

    series: str
    plane: tuple[tuple[float, ...], float] | None
    frames: int
    ends: tuple[float, ...] | None
    width: int
    height: int
    marked: tuple[str, ...]


@dataclass(frozen=True)
class NiftiFacts:
    """The number of slices of each axis, by its name, and of volumes."""

    slices: Mapping[str, int]
    volumes: int


@lru_cache(maxsize=20_000)
def _dicom_facts(path: str, _state: tuple[int, int]) -> DicomFacts:
    reply, _ = _ask(Path(path), {"kind": "dicom", "wanted": "facts"})
    plane = reply["plane"]
    return DicomFacts(
        series=str(reply["series"]),
        plane=None if plane is None else (tuple(plane["directions"]), float(plane["along"])),
        frames=int(reply["frames"]),
        ends=None if reply["ends"] is None else tuple(reply["ends"]),
        width=int(reply["width"]),
        height=int(reply["height"]),
        marked=tuple(reply["marked"]),
    )


def dicom_facts(path: Path) -> DicomFacts:
    """Raises `InputError` for a file that can't be read, `ConfigurationError` without the extra `dicom`."""
    return _dicom_facts(str(path), _state(path))


def nifti_facts(path: Path) -> NiftiFacts:
    """Raises `InputError` for a file that can't be read, `ConfigurationError` without the extra `nifti`."""
    reply, _ = _ask(path, {"kind": "nifti", "wanted": "facts"})
    return NiftiFacts(dict(reply["slices"]), int(reply["volumes"]))


def scan_picture(path: Path, kind: ScanKind, scan: Scan | None) -> Image:
    """The picture in RGB, with square pixels. Raises `InputError` where there is none, `ConfigurationError` without the
    extra."""
    from PIL.Image import Resampling, fromarray

    wanted = (scan or Scan()).model_dump(mode="json")
    foreign = [name for name in _FOREIGN[kind] if wanted[name] is not None]
    if foreign:
        expected = "a window or a frame" if kind == "dicom" else "an axis, a slice, a window"
        raise InputError(path, found=f"{foreign[0]}={wanted[foreign[0]]} for it", expected=expected)
    reply, pixels = _ask(path, {"kind": kind, "wanted": "picture", **wanted})
    picture = fromarray(np.frombuffer(pixels, dtype=np.uint8).reshape(reply["shape"])).convert("RGB")
    aspect = Fraction(float(reply["aspect"])).limit_denominator(10_000)
    size = fitted(*picture.size, None, aspect)
    return picture if size == picture.size else picture.resize(size, Resampling.BICUBIC)


def in_order(files: Sequence[tuple[str, Path]]) -> list[str]:
    """The names of the DICOM files of one series, by their position along the normal of their planes: for an axial
    series from the feet to the head. Raises `InputError` for files of several series or directions, without positions,
    and with equal positions; the error holds nothing of a file's content."""
    folder = files[0][1].parent
    known = [(name, dicom_facts(path)) for name, path in files]
    if len({one.series for _, one in known}) > 1:
        found = f"DICOM files of {len({one.series for _, one in known})} series"
        raise InputError(folder, found=found, expected="one series in a folder")
    if len(known) == 1:
        return [known[0][0]]
    several = next((name for name, one in known if one.frames > 1), None)
    if several is not None:
        raise InputError(folder, found=f"several frames in {several}", expected="a series of single pictures")
    indexed = [(name, *one.plane) for name, one in known if one.plane is not None]
    if len(indexed) < len(known):
        lacking = next(name for name, one in known if one.plane is None)
        expected = "one (ImagePositionPatient, ImageOrientationPatient), or the files by name in their order"
        raise InputError(folder, found=f"no position in {lacking}", expected=expected)
    first = np.array(indexed[0][1])
    if any(np.abs(np.array(directions) - first).max() > _SAME_DIRECTION for _, directions, _ in indexed):
        raise InputError(folder, found="a series of planes in several directions", expected="parallel planes")
    ordered = sorted(indexed, key=lambda one: (one[2], one[0]))
    for before, after in pairwise(ordered):
        if after[2] - before[2] < _SAME_POSITION:
            found = f"{before[0]} and {after[0]} at one position"
            raise InputError(folder, found=found, expected="one picture at each")
    return [name for name, _, _ in ordered]


def cine_info(path: Path) -> VideoInfo:
    """The facts of a DICOM file as a video. Raises `InputError` where its frames have no times."""
    from proctor.media.video import VideoInfo

    facts, ends = _timed(path)
    return VideoInfo(
        duration_s=ends[-1],
        width=facts.width,
        height=facts.height,
        fps=len(ends) / ends[-1],
        start_s=0.0,
        codec="dicom",
    )


def cine_index(path: Path) -> FrameIndex:
    """The timestamps of such a file; decoding can begin at each frame."""
    from proctor.media.video_clock import FrameIndex

    _, ends = _timed(path)
    starts = np.array([0, *(round(end * _TICKS) for end in ends[:-1])], dtype=np.int64)
    if np.any(np.diff(starts) <= 0):
        raise InputError(path, found="frames less than a microsecond apart", expected="frames that can be told apart")
    return FrameIndex(Fraction(1, _TICKS), 0, starts, starts)


def _timed(path: Path) -> tuple[DicomFacts, tuple[float, ...]]:
    if scan_kind(path) == "nifti":
        raise InputError(path, found="a NIfTI file", expected="a video")
    facts = dicom_facts(path)
    if facts.ends is None:
        found = f"{facts.frames} frames without times" if facts.frames > 1 else "one picture"
        raise InputError(
            path,
            found=found,
            expected="a video, or a DICOM file whose frames have times (write FrameTime or CineRate into it)",
        )
    return facts, facts.ends


def _state(path: Path) -> tuple[int, int]:
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(path, found=f"an unreadable file ({error.strerror or error})") from error
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=1)
def _reader(_of: int) -> _ScanReader:
    return _ScanReader()


def _ask(path: Path, request: Mapping[str, object]) -> tuple[dict[str, Any], bytes]:
    """The reply, and the pixels of a picture."""
    library, extra = _LIBRARIES[str(request["kind"])]
    if importlib.util.find_spec(library) is None:
        raise ConfigurationError(f"{path}: {library} is not installed, which reads it: {pip_install(extra)}")
    from proctor.core import ChildEndedError

    try:
        reply, pixels = _reader(os.getpid()).ask({**request, "path": str(path.absolute())})
    except ChildEndedError:
        from proctor.media.scan_process import MAX_BYTES, MAX_SECONDS

        limits = f"{MAX_SECONDS} s or {MAX_BYTES // 2**20} MB"
        raise InputError(path, found=f"a file that takes more than {limits}", expected="a smaller one") from None
    if "found" in reply:
        raise InputError(path, found=str(reply["found"]), expected=str(reply["expected"]))
    return reply, pixels


class _ScanReader:
    """The process that reads medical files (see `scan_process`), one at a time. It starts with the first file, again
    after a file that ended it, and ends with this process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._child: ChildProcess | None = None

    def ask(self, request: Mapping[str, object]) -> tuple[dict[str, Any], bytes]:
        with self._guard:
            child = self._child
            if child is None or not child.is_running:
                from proctor.core import ChildProcess

                program = ("-m", "proctor.media.scan_process")
                child = self._child = ChildProcess(*program, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
            reply = child.ask(json.dumps(request).encode() + b"\n", patience_s=_PATIENCE_S)
            size = math.prod(map(int, reply.get("shape", [0])))
            if size > _MAX_PIXEL_BYTES:
                raise child.ended()
            pixels = child.read(size)
            if "last" in reply:
                child.end()
            return reply, pixels
