"""The pictures of an analysis as files."""

from __future__ import annotations

from pathlib import Path

from proctor.core import write_whole
from proctor.reports.figures import standalone
from proctor.reports.pictures.performance import Chance, performance_pictures
from proctor.reports.pictures.picture import Picture
from proctor.reports.pictures.ranking import board_pictures, podium_picture, tau_picture, together_pictures
from proctor.runs import Analysis


def all_pictures(analysis: Analysis, chance: Chance | None = None) -> list[Picture]:
    """All pictures: of every board, then of the performance (with the accuracy of random guessing, where it is known), then of the
    systems together."""
    found = [one for board in analysis.boards for one in board_pictures(analysis, board)]
    found += [one for one in (tau_picture(analysis), podium_picture(analysis)) if one is not None]
    return [*found, *performance_pictures(analysis, chance), *together_pictures(analysis)]


def write_pictures(analysis: Analysis, folder: Path, chance: Chance | None = None) -> list[Path]:
    """One SVG file a picture, beside the tables; raises `InputError` where the folder can't be written."""
    pictures = {folder / f"{one.name}.svg": standalone(one.figure.svg) for one in all_pictures(analysis, chance)}
    for file, picture in pictures.items():
        write_whole(file, picture)
    return list(pictures)
