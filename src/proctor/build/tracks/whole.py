"""A folder that is there with all its files, or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proctor.core import InputError

__all__ = ["whole_folder"]


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A folder to write into that takes the name `out` when the block ends, and is removed where it raises.
    Raises `InputError` where `out` holds something, or can't be made."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(out, found="something there already", expected="a new or an empty folder")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise InputError(out, found=error.strerror or str(error), expected="a folder to write to") from error
    try:
        yield half
        half.chmod(0o755)
        half.replace(out)
    finally:
        shutil.rmtree(half, ignore_errors=True)
