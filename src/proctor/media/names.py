"""From a benchmark's name of a file to the file on this machine, never outside the media folder."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TypeVar

from proctor.core import InputError

T = TypeVar("T")

VIDEO_EXTENSIONS = (".mp4", ".mkv", ".webm", ".mov", ".avi", ".m4v", ".mpg", ".mpeg", ".ts", ".wmv", ".flv")
IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif")
EXTENSIONS = VIDEO_EXTENSIONS + IMAGE_EXTENSIONS
"""What is tried, in this order, after a name that is no file by itself."""


def locate(root: Path | None, source: str) -> Path:
    """The file of this name below `root`: as it stands, or with a usual extension appended.

    Raises `InputError` where there is no media folder, no such file, or the name leads out of it
    (`..`, an absolute path, a symbolic link).
    """
    if root is None:
        raise InputError(source, found="no media folder", expected="the folder that holds this file")
    found = find(root, source)
    if found is None:
        what = "a folder" if _or_none((root / source).is_dir) else "no such file"
        raise InputError(source, f"below {root}", found=what, expected="a video or image of this name")
    return found


def find(root: Path, source: str) -> Path | None:
    """The same, or None where there is no such file."""
    pure = PurePosixPath(source)
    if not source or pure.is_absolute() or ".." in pure.parts or "\0" in source or "\\" in source:
        raise InputError(repr(source), found="a name that leads out of the media folder")
    candidates = _or_none(lambda: _candidates(root, pure)) or ()
    found = _or_none(lambda: next((one for one in candidates if one.is_file()), None))
    if found is not None and not found.resolve().is_relative_to(root.resolve()):
        raise InputError(source, found="a link that leads out of the media folder")
    return found


def _or_none(look: Callable[[], T]) -> T | None:
    """What looking gives; None for a name that is too long for any file."""
    try:
        return look()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return None


def _candidates(root: Path, name: PurePosixPath) -> list[Path]:
    exact = root / name
    if not name.name or not exact.parent.is_dir():
        return [exact]
    beside = [exact.with_name(name.name + extension) for extension in EXTENSIONS]
    shouted = [exact.with_name(name.name + extension.upper()) for extension in EXTENSIONS]
    return [exact, *beside, *shouted]
