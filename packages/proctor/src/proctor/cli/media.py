"""`proctor media`: frames, the cache of frames, near-duplicates."""

from __future__ import annotations

import asyncio
import time
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.output import Output, OutputFormat, print_line, print_note, show
from proctor.core import JPEG_QUALITY, MAX_SIDE, PAGES, InputError, Option, UsageError, count_of, output_file
from proctor.shell import Cache, MaxSide, Overlay, size_in_bytes

if TYPE_CHECKING:
    from proctor.core import Frame, Image, Region, Scan, VideoClip
    from proctor.media import KeptEntry, MediaLibrary

_DAMAGED_EXIT = 1

Rows = list[dict[str, Any]]


def frames(
    videos: Annotated[list[Path], Option("Video, DICOM or NIfTI files.", metavar="FILE...", argument=True)],
    fps: Annotated[float | None, Option("Frames per second.", low=0.001)] = None,
    count: Annotated[int | None, Option("This many, spread evenly; with --fps: at most.", low=1)] = None,
    start: Annotated[float, Option("From this second on.", low=0.0)] = 0.0,
    end: Annotated[float | None, Option("Up to this second.")] = None,
    region: Annotated[str | None, Option("A part, in fractions.", metavar="X,Y,W,H")] = None,
    scan: Annotated[
        str | None, Option("How a medical file is shown, such as axial=12,window=40/400.", metavar="HOW")
    ] = None,
    max_side: MaxSide = MAX_SIDE,
    quality: Annotated[int, Option("JPEG quality.", low=1, high=95)] = JPEG_QUALITY,
    overlay: Overlay = "none",
    out: Annotated[Path | None, Option("Write the JPEGs into this folder.")] = None,
    cache: Cache = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Decode frames and describe the videos.

    Frames are cached, as in a run.

    Example: proctor media frames videos/v1.mp4 --fps 1 --out frames
    """
    from proctor.core import Image, VideoClip
    from proctor.media import MediaLibrary, MediaSettings

    if not start < (inf if end is None else end) or end == inf:
        raise UsageError(
            f"--end {'is missing' if end is None else f'{end:g} is not after --start'}: give a second after {start:g}."
        )
    folders = _folders(out, videos)
    settings = MediaSettings(max_side=max_side, quality=quality, overlay=overlay)
    how = _scan(scan)
    rows: Rows = []
    for video in videos:
        library = MediaLibrary(video.parent, settings, cache)
        part = _region(region)
        still = how is not None and (how.frame is not None or how.axis is not None)
        if still or library.is_still(video.name):
            shown = _decoded(library, Image(source=video.name, region=part, scan=how), None, None)
            if out is not None:
                _write(folders[video], shown)
            rows.append(_still_row(video, shown))
            continue
        clip = VideoClip(source=video.name, start=start, end=end, region=part, scan=how)
        shown = _decoded(library, clip, count, 1.0 if fps is None and count is None else fps)
        if out is not None:
            _write(folders[video], shown)
        info = library.probe(video.name)
        row = {"video": str(video), "codec": info.codec, "width": info.width, "height": info.height}
        row |= {name: round(getattr(info, name), 3) for name in ("fps", "duration_s", "start_s")}
        for remark in info.remarks:
            print_note(f"{video}: {remark}")
        rows.append(row | {"frames": len(shown), "bytes": sum(len(frame.jpeg) for frame in shown)})
    _show("Frames", rows, output)


def _folders(out: Path | None, videos: list[Path]) -> dict[Path, Path]:
    """The folder for each video's JPEGs. Raises `UsageError` if two videos would share one."""
    named: dict[str, Path] = {}
    for video in videos if out is not None else ():
        other = named.setdefault(video.stem, video)
        if other != video:
            raise UsageError(f"{other} and {video} would both go to {video.stem}. Give another --out for one of them.")
    return {video: (out or Path()) / video.stem for video in videos}


def _still_row(file: Path, shown: list[Frame]) -> dict[str, Any]:
    """The row of an image, with the columns of a video."""
    from io import BytesIO

    from PIL.Image import open as opened

    with opened(BytesIO(shown[0].jpeg)) as picture:
        width, height = picture.size
    row: dict[str, Any] = {"video": str(file), "codec": "still", "width": width, "height": height}
    row |= dict.fromkeys(("fps", "duration_s", "start_s"), "")
    return row | {"frames": len(shown), "bytes": sum(len(frame.jpeg) for frame in shown)}


def _scan(text: str | None) -> Scan | None:
    from proctor.core import ParseError
    from proctor.media import parse_scan

    if text is None:
        return None
    try:
        return parse_scan(text)
    except ParseError as error:
        raise UsageError(f"--scan {error.found!r} can't be used: give {error.expected}.") from None


def _decoded(library: MediaLibrary, clip: VideoClip | Image, count: int | None, fps: float | None) -> list[Frame]:
    from proctor.core import Item
    from proctor.core.formats import BinaryFormat
    from proctor.media import view

    item = Item(id=clip.source, group=clip.source, question="?", answer=BinaryFormat(), media=(clip,))
    return asyncio.run(view(item, "video", library).frames(count=count, fps=fps))


def _write(folder: Path, shown: list[Frame]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, frame in enumerate(shown):
            (folder / f"{number:06d}_{frame.time or 0.0:.3f}s.jpg").write_bytes(frame.jpeg)
    except OSError as error:
        raise InputError(folder, found=error.strerror or "", expected="a folder to write to") from error


def _region(text: str | None) -> Region | None:
    from pydantic import ValidationError

    from proctor.core import Region

    if text is None:
        return None
    try:
        x, y, width, height = (float(part) for part in text.split(","))
        return Region(x=x, y=y, width=width, height=height)
    except (ValueError, ValidationError):
        raise UsageError(
            f"--region {text!r} can't be used: give four fractions of the frame, like 0.25,0,0.5,1."
        ) from None


def cached(
    cache: Cache = None,
    verify: Annotated[bool, Option("Read every entry; list those that are damaged.")] = False,
    remove: Annotated[bool, Option("With --verify: remove what is damaged.")] = False,
    prune: Annotated[str, Option("Remove the oldest until this much stays.", metavar="SIZE")] = "",
    output: Output = OutputFormat.TABLE,
) -> None:
    """List, check or prune cached frames.

    The least recently read entry is listed and pruned first; entries that a run is reading stay. With --verify the exit
    code is 1 if an entry is damaged; a run decodes it again. For frames in object storage, these are the copies on this
    machine.

    Example: proctor media cache --prune 20GB
    """
    from proctor.media import cache_folder, kept
    from proctor.media import prune as remove_oldest

    if verify and prune:
        raise UsageError("--verify and --prune are two commands. Give one of them.")
    if remove and not verify:
        raise UsageError("--remove works with --verify only: add --verify.")
    folder = cache_folder(cache)
    if verify:
        _show_damaged(folder, output, remove=remove)
        return
    rows = {entry.path: _row(entry) for entry in kept(folder)}
    entries = remove_oldest(folder, size_in_bytes(prune) or 0) if prune else kept(folder)
    _show("Removed" if prune else f"{folder}", [rows.get(entry.path) or _row(entry) for entry in entries], output)
    done = f"{count_of(len(entries), 'entry')}{' removed' if prune else ''}"
    print_note(f"{done}, {sum(entry.size for entry in entries) / 1e6:.1f} MB")


def _show_damaged(folder: Path, output: OutputFormat, *, remove: bool) -> None:
    """Lists damaged entries, and removes them if asked to; the exit code is 1 if any is left."""
    from proctor.media import damaged, drop

    entries = damaged(folder)
    _show("Damaged entries", [_row(entry) for entry in entries], output)
    for entry in entries if remove else ():
        drop(entry.path)
    print_note(f"{count_of(len(entries), 'damaged entry')}{' removed' if entries and remove else ''}")
    if entries and not remove:
        raise typer.Exit(_DAMAGED_EXIT)


def _row(entry: KeptEntry) -> dict[str, Any]:
    used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used_at))
    return {"of": entry.source(), "bytes": entry.size, "read": used, "entry": str(entry.path)}


def duplicates(
    first: Annotated[Path, Option("A folder, or one file.", metavar="A", argument=True)],
    second: Annotated[Path, Option("Another folder; the same one finds duplicates in it.", metavar="B", argument=True)],
    out: Annotated[Path | None, Option("An HTML page with the pairs side by side.")] = None,
    fps: Annotated[float, Option("Frames per second to compare.", low=0.01)] = 2.0,
    distance: Annotated[float, Option("Maximum share of bits that differ in duplicates.", low=0.0, high=0.5)] = 0.18,
    share: Annotated[float, Option("This share of one video must be in the other.", low=0.0, high=1.0)] = 0.3,
    cache: Cache = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Find near-duplicate videos or images.

    Between two sets, such as training data and a test set.

    Example: proctor media duplicates train test --out duplicates.html
    """
    from proctor.media import Tolerance, find_leaks, look_at, write_page

    if out is not None:
        output_file(out, PAGES)
    looked, left_out = [], dict[str, None]()
    for where in (first, second):
        files, problems = look_at(where, cache, fps=fps)
        left_out |= dict.fromkeys(map(str, problems))
        looked.append(files)
    print_note(*(f"left out: {problem}" for problem in left_out))
    found = find_leaks(looked[0], looked[1], Tolerance(distance, share))
    rows: Rows = [
        {
            "a": str(leak.first.path),
            "b": str(leak.second.path),
            "how": leak.how,
            "share": round(leak.share, 3),
            "distance": round(leak.distance, 3),
            "a_s": leak.times[0] or 0.0,
            "b_s": leak.times[1] or 0.0,
        }
        for leak in found
    ]
    _show("Near-duplicates", rows, output)
    print_note(f"{count_of(len(found), 'pair')} among {len(looked[0])} × {count_of(len(looked[1]), 'file')}")
    if out is not None:
        write_page(found, out, title=f"{first.name} and {second.name}: {count_of(len(found), 'near-duplicate')}")
        print_note(f"{out}: the pairs side by side")


def _show(title: str, rows: Rows, output: OutputFormat) -> None:
    if not rows and output is OutputFormat.TABLE:
        print_line(f"{title}: none")
        return
    from proctor.reports import rows_table

    show(output, rows, rows_table(title, rows))
