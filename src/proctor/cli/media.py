"""`proctor media`, and the options of media that other commands share."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from proctor.cli.options import Output, OutputFormat
from proctor.cli.output import console, note, print_csv, print_json, print_table

if TYPE_CHECKING:
    from proctor.core import Excerpt, Frame, Region, VideoClip
    from proctor.media import Excerpts, KeptEntry, MediaLibrary

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_DAMAGED_EXIT = 1


class Overlay(StrEnum):
    """What time is burned into each picture."""

    value: Literal["none", "absolute", "clip"]
    NONE = "none"
    ABSOLUTE = "absolute"
    CLIP = "clip"


class MediaAs(StrEnum):
    """What the files of a benchmark's videos are."""

    FULL = "full"
    TRIMMED = "trimmed"
    CROPPED = "cropped"


class VideoAs(StrEnum):
    """What a model gets of a video."""

    value: Literal["frames", "file"]
    FRAMES = "frames"
    FILE = "file"


CacheFolder = Annotated[
    Path | None,
    typer.Option(
        "--cache", envvar="PROCTOR_CACHE", help="Where frames are kept.", show_default=False, rich_help_panel="Media"
    ),
]
CacheSize = Annotated[
    str | None,
    typer.Option(
        "--cache-size",
        metavar="SIZE",
        help="Keep the frames below this (20GB, 500MB): what was read longest ago goes first.",
        show_default=False,
        rich_help_panel="Media",
    ),
]
OverlayOption = Annotated[
    Overlay,
    typer.Option(
        "--overlay", help="Burn the elapsed time into each frame: the video's, or the clip's.", rich_help_panel="Media"
    ),
]
MediaAsOption = Annotated[
    MediaAs | None,
    typer.Option(
        "--media-as", help="Videos: whole, cut to length, or cropped too.", show_default=False, rich_help_panel="Media"
    ),
]
VideoAsOption = Annotated[
    VideoAs,
    typer.Option(
        "--video-as", help="Send frames, or the clip as a video file (not every model).", rich_help_panel="Media"
    ),
]


def excerpts_of(known: Mapping[str, Excerpt], media_as: MediaAs | None) -> Excerpts:
    """What a benchmark's video files are. Raises `typer.BadParameter` where nothing is known of them."""
    from proctor.media import Excerpts
    from proctor.media import MediaAs as Kind

    if media_as is not None and not known:
        raise typer.BadParameter("this benchmark's videos are no parts of others", param_hint="--media-as")
    return Excerpts(known, None if media_as is None else Kind(media_as.value))


def size_in_bytes(text: str | None) -> int | None:
    """Bytes of a size as people write it (powers of ten); None stays None.

    >>> size_in_bytes("1.5GB"), size_in_bytes("800 mb"), size_in_bytes("4096")
    (1500000000, 800000000, 4096)
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?B?)", text.strip().upper())
    unit = "" if found is None or found[2] in {"", "B"} else found[2].removesuffix("B") + "B"
    if found is None:
        raise typer.BadParameter(f"found {text!r}, expected a size like 20GB or 500MB")
    return round(float(found[1]) * _UNITS[unit])


def frames(
    videos: Annotated[list[Path], typer.Argument(metavar="VIDEO...", help="Video files.", show_default=False)],
    fps: Annotated[float | None, typer.Option("--fps", min=0.001, help="Frames a second.", show_default=False)] = None,
    count: Annotated[
        int | None,
        typer.Option("--count", min=1, help="So many, spread evenly; with --fps: at most.", show_default=False),
    ] = None,
    start: Annotated[float, typer.Option("--start", min=0.0, help="From this second on.")] = 0.0,
    end: Annotated[float | None, typer.Option("--end", help="Up to this second.", show_default=False)] = None,
    region: Annotated[
        str | None, typer.Option("--region", metavar="X,Y,W,H", help="A part, in fractions.", show_default=False)
    ] = None,
    max_side: Annotated[int, typer.Option("--max-side", min=16, help="Longest side in pixels.")] = 512,
    quality: Annotated[int, typer.Option("--quality", min=1, max=95, help="JPEG quality.")] = 85,
    overlay: OverlayOption = Overlay.NONE,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the JPEGs into this folder.", show_default=False)
    ] = None,
    cache: CacheFolder = None,
    form: Output = OutputFormat.TABLE,
) -> None:
    """Decode frames and describe the videos.

    They go into the frame store, as in a run.

    Example: proctor media frames videos/v1.mp4 --fps 1 --out frames
    """
    from proctor.core import VideoClip
    from proctor.media import MediaLibrary, MediaSettings

    settings = MediaSettings(max_side=max_side, quality=quality, overlay=overlay.value)
    rows: list[dict[str, str | int | float]] = []
    for video in videos:
        library = MediaLibrary(video.parent, settings, cache)
        clip = VideoClip(source=video.name, start=start, end=end, region=_region(region))
        rate = 1.0 if fps is None and count is None else fps
        shown = _decoded(library, clip, count, rate)
        if out is not None:
            _write(out / video.stem, shown)
        info = library.probe(video.name)
        rows.append(
            {
                "video": str(video),
                "codec": info.codec,
                "width": info.width,
                "height": info.height,
                "fps": round(info.fps, 3),
                "duration_s": round(info.duration_s, 3),
                "start_s": round(info.start_s, 3),
                "frames": len(shown),
                "bytes": sum(len(frame.jpeg) for frame in shown),
            }
        )
    _show("Frames", rows, form)


def _decoded(library: MediaLibrary, clip: VideoClip, count: int | None, fps: float | None) -> list[Frame]:
    import asyncio

    from proctor.core import Item
    from proctor.core.formats import BinaryFormat
    from proctor.media import view

    item = Item(id=clip.source, group=clip.source, question="?", answer=BinaryFormat(), media=(clip,))
    return asyncio.run(view(item, "video", library).frames(count=count, fps=fps))


def _write(folder: Path, shown: list[Frame]) -> None:
    from proctor.core import InputError

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
    except (ValueError, ValidationError) as error:
        raise typer.BadParameter(
            f"found {text!r}, expected four fractions of the frame, like 0.25,0,0.5,1", param_hint="--region"
        ) from error


def cached(
    cache: CacheFolder = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read every entry; list those that are damaged.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="With --verify: remove what is damaged.")] = False,
    prune: Annotated[
        str, typer.Option("--prune", metavar="SIZE", help="Remove the oldest until so much stays.", show_default=False)
    ] = "",
    form: Output = OutputFormat.TABLE,
) -> None:
    """List, check or prune cached frames.

    The entry that was read longest ago comes first, and is pruned first; what a run is reading stays. --verify ends
    with exit code 1 where an entry is not what was written; a run decodes it again.

    Example: proctor media cache --prune 20GB
    """
    if verify and prune:
        raise typer.BadParameter("one of --verify and --prune, not both", param_hint="--prune")
    if remove and not verify:
        raise typer.BadParameter("needs --verify", param_hint="--remove")
    if verify:
        _verify(_folder(cache), form, remove=remove)
    elif prune:
        _prune(_folder(cache), prune, form)
    else:
        _list_kept(_folder(cache), form)


def _list_kept(folder: Path, form: OutputFormat) -> None:
    from proctor.media import kept

    entries = kept(folder)
    _show(f"{folder}", [_row(entry) for entry in entries], form)
    note(f"{len(entries)} entries, {_told(sum(entry.size for entry in entries))}")


def _verify(folder: Path, form: OutputFormat, *, remove: bool) -> None:
    from proctor.media import damaged, drop

    found = damaged(folder)
    _show("Damaged entries", [_row(entry) for entry in found], form)
    for entry in found if remove else ():
        drop(entry.path)
    note(f"{len(found)} damaged entries{' removed' if found and remove else ''}")
    if found and not remove:
        raise typer.Exit(_DAMAGED_EXIT)


def _prune(folder: Path, size: str, form: OutputFormat) -> None:
    from proctor.media import kept
    from proctor.media import prune as remove

    rows = {entry.path: _row(entry) for entry in kept(folder)}
    removed = remove(folder, size_in_bytes(size) or 0)
    _show("Removed", [rows.get(entry.path) or _row(entry) for entry in removed], form)
    note(f"{len(removed)} entries removed, {_told(sum(entry.size for entry in removed))}")


def duplicates(
    first: Annotated[Path, typer.Argument(metavar="A", help="A folder, or one file.", show_default=False)],
    second: Annotated[
        Path, typer.Argument(metavar="B", help="Another; the same one finds doubles in it.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="An HTML page with the pairs side by side.", show_default=False)
    ] = None,
    fps: Annotated[float, typer.Option("--fps", min=0.01, help="Frames a second that are compared.")] = 2.0,
    distance: Annotated[
        float, typer.Option("--distance", min=0.0, max=0.5, help="Pictures are alike up to this share of their bits.")
    ] = 0.18,
    share: Annotated[
        float, typer.Option("--share", min=0.0, max=1.0, help="So much of one video must be in the other.")
    ] = 0.3,
    cache: CacheFolder = None,
    form: Output = OutputFormat.TABLE,
) -> None:
    """Find near-duplicate videos or images.

    Between two sets, such as training data and a test set.

    Example: proctor media duplicates train test --out duplicates.html
    """
    from proctor.media import Tolerance, find_leaks, look_at, write_page

    looked = []
    for where in (first, second):
        files, problems = look_at(where, cache, fps=fps)
        for problem in problems:
            note(f"left out: {problem}")
        looked.append(files)
    found = find_leaks(looked[0], looked[1], Tolerance(distance, share))
    rows: list[dict[str, str | int | float]] = [
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
    _show("Near-duplicates", rows, form)
    note(f"{len(found)} pairs among {len(looked[0])} × {len(looked[1])} files")
    if out is not None:
        write_page(found, out, title=f"{first.name} and {second.name}: {len(found)} near-duplicates")
        note(f"{out}: the pairs side by side")


def _folder(cache: Path | None) -> Path:
    from proctor.media import cache_folder

    return cache or cache_folder()


def _row(entry: KeptEntry) -> dict[str, str | int | float]:
    used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used_at))
    return {"of": entry.source(), "bytes": entry.size, "read": used, "entry": str(entry.path)}


def _show(title: str, rows: list[dict[str, str | int | float]], form: OutputFormat) -> None:
    columns = list(rows[0]) if rows else []
    if form is OutputFormat.JSON:
        print_json(rows)
    elif form is OutputFormat.CSV:
        print_csv(columns, [list(row.values()) for row in rows])
    elif rows:
        heads = [column if isinstance(rows[0][column], str) else f">{column}" for column in columns]
        print_table(title, heads, [[str(value) for value in row.values()] for row in rows])
    else:
        console.print(f"{title}: none", markup=False, highlight=False)


def _told(size: int) -> str:
    """
    >>> _told(123_456_789)
    '123.5 MB'
    """
    return f"{size / 1e6:.1f} MB"
