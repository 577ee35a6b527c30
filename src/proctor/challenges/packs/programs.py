"""What runs on the other platform: it finds answers where that puts them, marks them, and writes aggregates."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from proctor.challenges.packs.figures import figures_of, read_part, shown
from proctor.core import InputError, ProctorError, write_whole

DIGITS = "PROCTOR_PACK_DIGITS"
"""The variable by which who checks a pack sees more digits than it shows."""

_NOT_ANSWERS = ("metadata", "metadata.yaml", "__MACOSX")


def run_scorer(score: Callable[..., None], *arguments: str) -> None:
    """Runs a scorer as a program: what is wrong with the answers is one line and the exit code 1."""
    try:
        score(*map(Path, arguments))
    except ProctorError as error:
        sys.stderr.write(f"proctor: {error}\n")
        sys.exit(1)


def score_codabench(given: Path, out: Path) -> None:
    """Codabench's scoring step: `given` holds the submission in `res` and the references in `ref`; the scores go to
    `scores.json` in `out`."""
    part = read_part(given / "ref")
    found = figures_of(given / "ref", part.settings, part.phase, _only_file(given / "res"))
    _write(out / "scores.json", shown(found, _digits(part.phase.results.digits)))


def _only_file(folder: Path) -> Path:
    """The one file of a submission. What the platform and archivers add is not looked at."""
    files = [one for one in sorted(_files(folder, folder)) if not one.name.startswith(".")]
    if len(files) != 1:
        raise InputError(
            None, "the submission", found=f"{len(files)} files", expected="an archive with one file of answers"
        )
    return files[0]


def _files(folder: Path, top: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        if entry.name in _NOT_ANSWERS and folder == top:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), top)
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


def _digits(declared: int) -> int:
    return int(os.environ.get(DIGITS, declared))


def _write(file: Path, content: dict[str, Any]) -> None:
    write_whole(file, json.dumps(content, indent=1, allow_nan=False) + "\n")
