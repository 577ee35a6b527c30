"""Guesses: a submission that is valid, scores near chance, and tells nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from proctor.api import export, run
from proctor.challenges.settings import ChallengeSettings
from proctor.core import Benchmark, reader_of

GUESSER = "random"
"""The system that guesses."""

_BLIND = "text-only"


def write_guesses(benchmark: Benchmark, settings: ChallengeSettings, folder: Path) -> Path | None:
    """Writes the answers of the system that guesses as a submission, and gives the file; None where the benchmark has
    no format for answers."""
    forms = reader_of(settings.benchmark, settings.track).submission_formats
    if not forms:
        return None
    out = folder / "example.json"
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        store = Path(scratch) / "guesses.sqlite"
        run(benchmark, GUESSER, conditions=_BLIND, baselines=False, store=store)
        how: dict[str, Any] = {"systems": GUESSER, "conditions": _BLIND, "format": forms[0]}
        export(store, out, benchmark.name, **how)
    return out
