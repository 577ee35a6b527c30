"""The weights of learned judges as a file: named arrays of numbers and texts (NumPy's `.npz`), which runs no code.

Nothing in a file is believed: what an array says of its size is compared with what there is before it is read.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.core.files import read_bytes
from proctor.judges.embedded.designs import LIKENESS, VIEWS
from proctor.judges.embedded.learning import Learned
from proctor.judges.embedded.views import PARTS, Views

__all__ = ["Arrays", "arrays_of", "hash_of", "learned_from", "read_arrays", "write_arrays"]

Arrays = dict[str, NDArray[Any]]

_MOST_BYTES = 500 * 2**20
_MOST_ARRAYS = 10_000
_BROKEN = (BadZipFile, ValueError, LookupError, TypeError, zlib.error, lzma.LZMAError)
"""What readers raise on files that are broken, or packed as no file of ours is."""
_EXPECTED = "the weights of a learned judge (proctor train embedded-judge)"


def arrays_of(learned: Mapping[str, Learned]) -> Arrays:
    """All that judges learned, by language, under names such as "en/grams/query"."""
    found: Arrays = {}
    for language, one in learned.items():
        views = one.views
        plain: dict[str, Any] = {
            "dimensions": np.array(one.dimensions, dtype=np.str_),
            "columns": np.array(views.columns, dtype=np.int64),
            "centre": views.centre,
            "spread": views.spread,
            "waves": views.waves,
            "phases": views.phases,
            **{f"grams/{part}": np.array(names, dtype=np.str_) for part, names in views.grams.items()},
            **{f"rarity/{part}": values for part, values in views.rarity.items()},
            **{f"means/{name}": mean for name, (mean, _) in views.scaling.items()},
            **{
                f"sizes/{name}": np.array(size, dtype=np.float64) for name, (_, size) in views.scaling.items()
            },
            **{f"weights/{name}": values for name, values in one.weights.items()},
            "offset": one.offset,
            "curve": one.curve,
            "chosen": np.array(one.chosen, dtype=np.int64),
            "figures": np.array(one.figures, dtype=np.float64),
        }
        found |= {f"{language}/{name}": array for name, array in plain.items()}
    return found


def write_arrays(file: Path, arrays: Arrays) -> None:
    """Writes the file. Raises `OSError`."""
    with file.open("wb") as out:
        np.savez(out, allow_pickle=False, **arrays)


def read_arrays(file: Path) -> Arrays:
    """The arrays of a file: numbers and texts, nothing else. Raises `InputError` for a file that is none, holds other
    types, or says that it holds more than it does or more than 500 MB."""
    try:
        with ZipFile(io.BytesIO(read_bytes(file, _MOST_BYTES // 2**20))) as archive:
            members = archive.infolist()
            if len(members) > _MOST_ARRAYS or sum(one.file_size for one in members) > _MOST_BYTES:
                raise InputError(file, found="more than 500 MB of weights", expected=_EXPECTED)
            names = [one.filename.removesuffix(".npy") for one in members]
            if len(set(names)) < len(names):
                raise InputError(file, found="an array twice", expected=_EXPECTED)
            return {name: _array(archive.read(one)) for name, one in zip(names, members, strict=True)}
    except OSError as error:
        raise InputError(file, found=error.strerror or "an unreadable file", expected=_EXPECTED) from error
    except (*_BROKEN, RuntimeError, EOFError) as error:
        raise InputError(file, found="no readable file of weights", expected=_EXPECTED) from error


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


def learned_from(
    file: Path, arrays: Arrays, levels: Mapping[str, Mapping[str, object]]
) -> dict[str, Learned]:
    """The learned judges in the arrays of a file, by language; `levels` are the languages and dimensions that there
    should be. Raises `InputError` where they are others, or an array has not the shape that the others ask for."""
    found: dict[str, Learned] = {}
    for language, dimensions in levels.items():
        own = {
            name.removeprefix(f"{language}/"): array
            for name, array in arrays.items()
            if name.startswith(f"{language}/")
        }
        try:
            found[language] = _checked(_learned(own), tuple(dimensions))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            reason = str(error.args[0]) if error.args else type(error).__name__
            raise InputError(
                file,
                f"language {language!r}",
                found=f"weights of another form ({reason})",
                expected=_EXPECTED,
            ) from error
    if sum(len([name for name in arrays if name.startswith(f"{one}/")]) for one in levels) != len(arrays):
        raise InputError(file, found="weights of another language", expected=_EXPECTED)
    return found


def _learned(arrays: Arrays) -> Learned:
    def named(prefix: str) -> Arrays:
        return {
            name.removeprefix(f"{prefix}/"): array
            for name, array in arrays.items()
            if name.startswith(f"{prefix}/")
        }

    sizes = named("sizes")
    views = Views(
        columns=tuple(arrays["columns"].tolist()),
        centre=arrays["centre"],
        spread=arrays["spread"],
        waves=arrays["waves"],
        phases=arrays["phases"],
        grams={part: tuple(names.tolist()) for part, names in named("grams").items()},
        rarity=named("rarity"),
        scaling={name: (mean, float(sizes[name])) for name, mean in named("means").items()},
    )
    return Learned(
        dimensions=tuple(arrays["dimensions"].tolist()),
        views=views,
        weights=named("weights"),
        offset=arrays["offset"],
        curve=arrays["curve"],
        chosen=tuple(arrays["chosen"].tolist()),
        figures=tuple(arrays["figures"].tolist()),
    )


def _checked(learned: Learned, dimensions: tuple[str, ...]) -> Learned:
    """The judge whose arrays fit each other. Raises `ValueError` with what does not."""
    views = learned.views
    if sorted(learned.dimensions) != sorted(dimensions):
        raise ValueError("dimensions that the manifest does not name")
    if set(views.grams) != set(PARTS) or set(views.rarity) != set(PARTS):
        raise ValueError("other texts than candidate, references and query")
    if set(views.scaling) != set(VIEWS) or not set(learned.weights) <= set(VIEWS):
        raise ValueError("other views than there are")
    columns, waves, many = len(views.columns), len(views.phases), len(dimensions)
    if columns < len(LIKENESS) or not all(isinstance(one, int) and one >= 0 for one in views.columns):
        raise ValueError("columns that are none")
    wanted = {
        "centre": (views.centre, (columns,)),
        "spread": (views.spread, (columns,)),
        "waves": (views.waves, (columns, waves)),
        "phases": (views.phases, (waves,)),
        "offset": (learned.offset, (many,)),
        "curve": (learned.curve, (2, many)),
        **{f"rarity/{part}": (views.rarity[part], (len(views.grams[part]),)) for part in PARTS},
    }
    for view, width in _widths(views).items():
        wanted[f"means/{view}"] = (views.scaling[view][0], (width,))
        if view in learned.weights:
            wanted[f"weights/{view}"] = (learned.weights[view], (width, many))
    for name, (array, shape) in wanted.items():
        if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"{name}: {array.shape} of {array.dtype}, not finite numbers of {shape}")
    if not (views.spread > 0).all() or not all(size > 0 for _, size in views.scaling.values()):
        raise ValueError("a spread that is not above 0")
    return learned


def _widths(views: Views) -> dict[str, int]:
    """How many columns each view has; those of meanings have as many as the encoder has numbers."""
    vocabulary = {part: len(views.grams[part]) for part in PARTS}
    known = {
        "likeness": 1,
        "measures": len(views.columns),
        "bends": len(views.phases),
        "wording-of-references": vocabulary["references"],
        "wording-of-query": vocabulary["query"],
    }
    encoded = len(views.scaling["meaning"][0]) if views.scaling["meaning"][0].ndim == 1 else -1
    return {
        view: known.get(view, vocabulary["candidate"] if view.startswith("wording") else encoded)
        for view in VIEWS
    }


def hash_of(arrays: Arrays) -> str:
    """A hash of what is in the arrays, whatever file they are in."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        whole = np.ascontiguousarray(arrays[name])
        digest.update(f"{name!r} {whole.dtype.str} {whole.shape}\n".encode())
        digest.update(whole.tobytes())
    return digest.hexdigest()
