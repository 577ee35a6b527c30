"""Recorded answers marked as a run's are, to compare the figures with published ones."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.core import Benchmark, FailedPolicy, RecordedAnswers
from proctor.metrics import code_scorers
from proctor.runs.results import Options, Result, results
from proctor.runs.scoring import import_answers
from proctor.runs.store import Store

_DRAWS = 100  # intervals are not looked at


async def results_of_recorded(
    benchmark: Benchmark, recorded: Mapping[str, RecordedAnswers], by: Sequence[tuple[str, ...]] = ((),)
) -> list[Result]:
    """The results of recorded answers by the system's name, split in each of these ways, as `proctor results` has them
    after `proctor import`; a call that failed counts as wrong. Nothing is kept."""
    with tempfile.TemporaryDirectory(prefix="proctor-verify-") as folder:
        store = Store(Path(folder) / "recorded.db")
        scorers = code_scorers(benchmark)
        for name, answers in recorded.items():
            await import_answers(
                store, benchmark, answers, name=name, condition=answers.condition or "video", scorers=scorers
            )
        every = (Options(by=facets, draws=_DRAWS, failed=FailedPolicy.WRONG) for facets in by)
        return [row for options in every for row in results(store, benchmark.name, options).rows]
