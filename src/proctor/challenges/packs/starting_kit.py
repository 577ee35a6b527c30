"""What participants start with: how to hand in, and a file of answers that is valid."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import proctor
from proctor.api import export, run
from proctor.challenges.packs.figures import RATINGS_FILE
from proctor.challenges.packs.parts import PhaseSource
from proctor.challenges.packs.texts import filled
from proctor.core import reader_of

_GUESSER, _BLIND = "random", "text-only"


def write_starting_kit(source: PhaseSource, folder: Path) -> None:
    """Writes the kit of a phase: `README.md`, and an example by the system that guesses, where the benchmark has a format
    for answers; of a benchmark with ratings the answers to be scored."""
    folder.mkdir(parents=True)
    example = _example(source, folder)
    settings, phase = source.settings, source.phase
    how: dict[str, Any] = {"settings": settings, "phase": phase, "example": example, "version": proctor.__version__}
    (folder / "README.md").write_text(filled("starting_kit.md.j2", **how), encoding="utf-8")


def _example(source: PhaseSource, folder: Path) -> str:
    reader = reader_of(source.settings.benchmark, source.settings.track)
    questions = source.folder / source.phase.questions
    if reader.ratings:
        shutil.copyfile(questions / RATINGS_FILE, folder / "template.csv")
        return "template.csv"
    if not reader.submission_formats:
        return ""
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        store = Path(scratch) / "guesses.sqlite"
        benchmark = source.handed_out().benchmark
        run(benchmark, _GUESSER, conditions=_BLIND, baselines=False, store=store)
        out = folder / "example.json"
        how: dict[str, Any] = {"systems": _GUESSER, "conditions": _BLIND, "format": reader.submission_formats[0]}
        export(store, out, benchmark.name, **how)
    return out.name
