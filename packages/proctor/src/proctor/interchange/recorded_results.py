"""The results of recorded answers without a store: what a reader compares with published figures."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.core import Benchmark, FailedPolicy, RecordedAnswers
from proctor.metrics import code_scorers
from proctor.results import Options, Result, results
from proctor.runs import Store, import_answers

_DRAWS = 100  # intervals are not used


async def results_of_recorded(
    benchmark: Benchmark, recorded: Mapping[str, RecordedAnswers], by: Sequence[tuple[str, ...]] = ((),)
) -> list[Result]:
    """The results of recorded answers (by system), split in each of these ways, as `proctor results` gives them after
    `proctor import`. Failed calls count as wrong. Nothing is stored."""
    with tempfile.TemporaryDirectory(prefix="proctor-verify-") as folder:
        store = Store(Path(folder) / "recorded.db")
        scorers = code_scorers(benchmark)
        for name, answers in recorded.items():
            await import_answers(
                store, benchmark, answers, name=name, condition=answers.condition or "video", scorers=scorers
            )
        every = (Options(by=facets, draws=_DRAWS, failed=FailedPolicy.WRONG) for facets in by)
        return [row for options in every for row in results(store, benchmark.name, options).rows]
