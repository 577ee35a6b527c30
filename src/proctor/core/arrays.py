"""Arrays in files: numbers and texts by name (NumPy's `.npz`), which run no code.

Nothing in a file is believed: what an array says of its size is compared with what there is before it is read.
"""

from __future__ import annotations

import io
import lzma
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from proctor.core.errors import InputError
from proctor.core.files import read_bytes

Arrays = dict[str, NDArray[Any]]

_MOST_BYTES = 500 * 2**20
_MOST_ARRAYS = 10_000
_BROKEN = (BadZipFile, ValueError, LookupError, TypeError, zlib.error, lzma.LZMAError, RuntimeError, EOFError)
"""What readers raise on files that are broken, or packed as no file of ours is."""


def write_arrays(file: Path, arrays: Arrays) -> None:
    """Writes the file. Raises `OSError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.npz"
    ...     write_arrays(file, {"weights": np.array([0.5, 1.5])})
    ...     list(read_arrays(file, "weights", "a file of weights"))
    ['weights']
    """
    with file.open("wb") as out:
        np.savez(out, allow_pickle=False, **arrays)


def read_arrays(file: Path, what: str, expected: str) -> Arrays:
    """The arrays of a file: numbers and texts, nothing else. Raises `InputError` for a file that is none, holds other
    types, or says that it holds more than it does or more than 500 MB. `what` names the content ("weights").

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.npz"
    ...     write_arrays(file, {"weights": np.array([0.5, 1.5])})
    ...     read_arrays(file, "weights", "a file of weights")["weights"].tolist()
    [0.5, 1.5]
    """
    try:
        with ZipFile(io.BytesIO(read_bytes(file, _MOST_BYTES // 2**20))) as archive:
            members = archive.infolist()
            if len(members) > _MOST_ARRAYS or sum(one.file_size for one in members) > _MOST_BYTES:
                raise InputError(file, found=f"more than 500 MB of {what}", expected=expected)
            names = [one.filename.removesuffix(".npy") for one in members]
            if len(set(names)) < len(names):
                raise InputError(file, found="an array twice", expected=expected)
            return {name: _array(archive.read(one)) for name, one in zip(names, members, strict=True)}
    except OSError as error:
        raise InputError(file, found=error.strerror or "an unreadable file", expected=expected) from error
    except _BROKEN as error:
        raise InputError(file, found=f"no readable file of {what}", expected=expected) from error


def _array(content: bytes) -> NDArray[Any]:
    """One array in NumPy's own form. Raises `ValueError` where it is none, or its size is not what it says."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError("an array of another version")
    shape, by_columns, kind = np.lib.format.read_array_header_1_0(stream)
    rest = content[stream.tell() :]
    count = 1
    for size in shape:
        count *= size
    if kind.kind not in "iufU" or kind.itemsize * count != len(rest) or min(shape, default=0) < 0:
        raise ValueError("not an array of numbers or texts of this size")
    if kind.itemsize == 0 or count == 0:
        return np.zeros(shape, dtype=kind)
    return np.frombuffer(rest, dtype=kind).reshape(shape, order="F" if by_columns else "C").copy()
