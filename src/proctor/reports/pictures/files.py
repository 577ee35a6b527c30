"""The pictures of an analysis as files."""

from __future__ import annotations

from pathlib import Path

from proctor.core import InputError
from proctor.reports.figures import standalone
from proctor.reports.pictures.performance import Chance, performance_pictures
from proctor.reports.pictures.picture import Picture
from proctor.reports.pictures.ranking import board_pictures, podium_picture, tau_picture
from proctor.reports.pictures.together import together_pictures
from proctor.runs import Analysis

__all__ = ["all_pictures", "write_pictures"]


def all_pictures(analysis: Analysis, chance: Chance | None = None) -> list[Picture]:
    """All pictures: of every board, then of the performance (with the accuracy by lot, where it is known), then of the
    systems together."""
    found = [one for board in analysis.boards for one in board_pictures(analysis, board)]
    found += [one for one in (tau_picture(analysis), podium_picture(analysis)) if one is not None]
    return [*found, *performance_pictures(analysis, chance), *together_pictures(analysis)]


def write_pictures(analysis: Analysis, folder: Path, chance: Chance | None = None) -> list[Path]:
    """One SVG file a picture, beside the tables; raises `InputError` where the folder can't be written."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in all_pictures(analysis, chance):
            file = folder / f"{one.name}.svg"
            file.write_text(standalone(one.figure.svg), encoding="utf-8")
            written.append(file)
    except OSError as error:
        raise InputError(
            folder, found=error.strerror or "an error", expected="a folder to write to"
        ) from error
    return written
