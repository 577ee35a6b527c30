"""A judge over many answers: some at once, and stopped when told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from proctor.core import ProctorError
from proctor.judges.dimensions.case import Case
from proctor.judges.dimensions.protocol import DimensionJudge, JudgesAll
from proctor.judges.dimensions.scores import DimensionScores

__all__ = ["NOT_JUDGED", "Progress", "judge_cases"]

NOT_JUDGED = "not judged: stopped before"
"""The reason of scores that are missing since the work was stopped, or given up, before their turn."""


@dataclass
class Progress:
    """Of `total` different answers, how many are `done`; `missing` of those lack a score."""

    total: int
    done: int = 0
    missing: int = 0
    last_reason: str = field(default="")


async def judge_cases(
    judge: DimensionJudge,
    cases: Sequence[Case],
    *,
    concurrency: int = 8,
    give_up_after: int = 50,
    stop: asyncio.Event | None = None,
    on_change: Callable[[Progress], None] = lambda _: None,
) -> list[DimensionScores]:
    """The scores of each case, in their order; equal cases (systems that answered alike) are judged once.

    After `give_up_after` answers in a row without any score, and after `stop`, the rest is missing as
    `NOT_JUDGED`. Raises what the judge raises, and `ProctorError` for scores that are not of the case.
    """
    different = list(dict.fromkeys(cases))
    stop = stop or asyncio.Event()
    progress = Progress(len(different))
    if isinstance(judge, JudgesAll):
        said = dict(zip(different, await judge.judge_all(different), strict=True))
        for case, scores in said.items():
            _count(progress, case, scores, judge.name)
        on_change(progress)
    else:
        said = await _one_by_one(judge, different, progress, (concurrency, give_up_after), stop, on_change)
    return [said.get(case) or DimensionScores.none(case, NOT_JUDGED) for case in cases]


async def _one_by_one(
    judge: DimensionJudge,
    cases: Sequence[Case],
    progress: Progress,
    limits: tuple[int, int],
    stop: asyncio.Event,
    on_change: Callable[[Progress], None],
) -> dict[Case, DimensionScores]:
    concurrency, give_up_after = limits
    said: dict[Case, DimensionScores] = {}
    left = iter(cases)
    in_a_row = 0

    async def worker() -> None:
        nonlocal in_a_row
        for case in left:
            if stop.is_set():
                return
            scores = await judge.judge(case)
            _count(progress, case, scores, judge.name)
            said[case] = scores
            in_a_row = 0 if scores.values else in_a_row + 1
            if in_a_row >= give_up_after:
                stop.set()
            on_change(progress)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(concurrency):
                tasks.create_task(worker())
    except* ProctorError as errors:
        raise errors.exceptions[0] from None
    return said


def _count(progress: Progress, case: Case, scores: DimensionScores, judge: str) -> None:
    scores.check(case, judge)
    progress.done += 1
    if scores.missing:
        progress.missing += 1
        progress.last_reason = next(iter(scores.missing.values()))
