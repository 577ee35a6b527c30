"""Baselines for BERTScore: what unrelated sentences reach, in the original's file format."""

from __future__ import annotations

import csv
import math
from importlib.util import find_spec
from pathlib import Path

from proctor.core import InputError
from proctor.core.files import read_text

__all__ = ["Baseline", "packaged_baseline", "read_baseline"]

Baseline = tuple[float, float, float]
"""Of precision, recall and F1, each below 1."""

_COLUMNS = ["LAYER", "P", "R", "F"]


def read_baseline(file: Path, layer: int) -> Baseline:
    """The baseline of one layer from a file of comma-separated lines `LAYER,P,R,F`.

    Raises `InputError` for a file that can't be read, is not of this form, or has no line for the layer.
    """
    try:
        lines = list(csv.reader(read_text(file).splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        found = error.strerror if isinstance(error, OSError) else "bytes that are not UTF-8"
        raise InputError(file, found=str(found), expected="a baseline file") from error
    if not lines or lines[0] != _COLUMNS:
        found = ",".join(lines[0]) if lines else "nothing"
        raise InputError(file, "line 1", found=found, expected=",".join(_COLUMNS))
    for number, line in enumerate(lines[1:], 2):
        if line and line[0].strip() == str(layer):
            return _numbers(file, number, line)
    raise InputError(file, found=f"no line for layer {layer}", expected="one per layer")


def packaged_baseline(language: str, encoder: str) -> Path:
    """The file for a language and an encoder that comes with the package `bert-score`, where that is installed.

    Raises `InputError` where there is none.
    """
    package = find_spec("bert_score")
    places = list(package.submodule_search_locations or ()) if package else []
    for place in places:
        file = Path(place) / "rescale_baseline" / language / f"{encoder}.tsv"
        if language.isascii() and language.replace("-", "").isalnum() and file.is_file():
            return file
    where = "the package bert-score" if places else "the package bert-score, which is not installed"
    raise InputError(
        None,
        "baseline",
        found=f"none for {encoder!r} and the language {language!r} in {where}",
        expected="a file with the columns LAYER,P,R,F",
    )


def _numbers(file: Path, number: int, line: list[str]) -> Baseline:
    try:
        precision, recall, f1 = (float(cell) for cell in line[1:])
    except ValueError:
        precision = recall = f1 = math.nan
    if not all(-1 <= value < 1 for value in (precision, recall, f1)):
        raise InputError(file, f"line {number}", found=",".join(line), expected="three numbers below 1")
    return precision, recall, f1
