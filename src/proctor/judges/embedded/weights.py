"""The weights of learned judges as a file of named arrays, which runs no code."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from proctor.core import Arrays, InputError
from proctor.core import arrays as files
from proctor.judges.embedded.designs import LIKENESS, VIEWS
from proctor.judges.embedded.learning import Learned
from proctor.judges.embedded.views import PARTS, Views

_EXPECTED = "the weights of a learned judge (proctor judge train)"


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
            **{f"sizes/{name}": np.array(size, dtype=np.float64) for name, (_, size) in views.scaling.items()},
            **{f"weights/{name}": values for name, values in one.weights.items()},
            "offset": one.offset,
            "curve": one.curve,
            "chosen": np.array(one.chosen, dtype=np.int64),
            "figures": np.array(one.figures, dtype=np.float64),
        }
        found |= {f"{language}/{name}": array for name, array in plain.items()}
    return found


def read_arrays(file: Path) -> Arrays:
    """The arrays of a file of weights. Raises `InputError` as `proctor.core.arrays` does."""
    return files.read_arrays(file, "weights", _EXPECTED)


def learned_from(file: Path, arrays: Arrays, levels: Mapping[str, Mapping[str, object]]) -> dict[str, Learned]:
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
                file, f"language {language!r}", found=f"weights of another form ({reason})", expected=_EXPECTED
            ) from error
    if sum(len([name for name in arrays if name.startswith(f"{one}/")]) for one in levels) != len(arrays):
        raise InputError(file, found="weights of another language", expected=_EXPECTED)
    return found


def _learned(arrays: Arrays) -> Learned:
    def named(prefix: str) -> Arrays:
        return {
            name.removeprefix(f"{prefix}/"): array for name, array in arrays.items() if name.startswith(f"{prefix}/")
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
    return {view: known.get(view, vocabulary["candidate"] if view.startswith("wording") else encoded) for view in VIEWS}


def hash_of(arrays: Arrays) -> str:
    """A hash of what is in the arrays, whatever file they are in."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        whole = np.ascontiguousarray(arrays[name])
        digest.update(f"{name!r} {whole.dtype.str} {whole.shape}\n".encode())
        digest.update(whole.tobytes())
    return digest.hexdigest()
