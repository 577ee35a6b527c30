"""One system, or its recorded answers, under one condition in an opened store: what a challenge does with a submission.

The same steps as `run_preparation` takes, for a system that exists already: no model is connected, no option read, no
baseline added.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.core import Benchmark, RecordedAnswers, Scorer, System
    from proctor.runs import Limits, Outcome, Plan, PlanOptions, Run, Store, Tally


@dataclass(frozen=True)
class SingleRun:
    """A run of one system that is planned: `to_ask` is the number of questions that have no answer yet."""

    store: Store
    plan: Plan

    @property
    def run(self) -> Run:
        """The run in the store."""
        return self.plan.runs[0]

    @property
    def to_ask(self) -> int:
        """The number of questions that have no answer yet."""
        return self.plan.to_ask

    async def ask(
        self, limits: Limits, *, stop: asyncio.Event | None = None, on_change: Callable[[Tally], None] = lambda _: None
    ) -> Outcome:
        """Ask what is not answered yet. Raises `RunTakenError` while another process holds the run."""
        from proctor.runs import execute

        return await execute(self.store, self.plan, limits, stop=stop, on_change=on_change)


def plan_single(
    store: Store,
    benchmark: Benchmark,
    system: System,
    condition: str,
    options: PlanOptions,
    *,
    scorers: Sequence[Scorer] | None = None,
    cache_dir: Path | None = None,
) -> SingleRun:
    """Plan the run of a system on a benchmark's questions. None scores by code."""
    from proctor.media import Excerpts, MediaLibrary
    from proctor.metrics import code_scorers
    from proctor.runs import plan

    library = MediaLibrary(benchmark.media_root, cache_dir=cache_dir, excerpts=Excerpts(benchmark.excerpts))
    by = code_scorers(benchmark) if scorers is None else scorers
    return SingleRun(store, plan(store, benchmark, [system], [condition], library, scorers=by, options=options))


def import_single(store: Store, benchmark: Benchmark, answers: RecordedAnswers, name: str, condition: str) -> Run:
    """Store answers that are read already, without scores."""
    from proctor.runs import import_answers

    return asyncio.run(import_answers(store, benchmark, answers, name=name, condition=condition, scorers=()))


def score_by_code(store: Store, benchmark: Benchmark, run: Run) -> None:
    """Score all answers of a run by the present code; stored scores are replaced."""
    from proctor.metrics import code_scorers
    from proctor.runs import score_answers

    for scorer in code_scorers(benchmark):
        asyncio.run(score_answers(store, [run], scorer))
