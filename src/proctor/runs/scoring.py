"""Scoring the stored answers of runs by code: at no cost, so repeated each time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from proctor.core import InputError, Score, Scorer, Status
from proctor.runs.store import Run, Store


async def score_answers(store: Store, runs: Sequence[Run], scorer: Scorer, *, all_items: bool = False) -> int:
    """Scores every answer to an item that counts (or to all) that the scorer applies to; returns how many.

    A score that is there already is replaced: the function may have changed. Raises `InputError` where the store knows
    a metric of that name with another range or direction.
    """
    scored = 0
    for run in runs:
        card, answers = store.card(run.benchmark), store.answers(run)
        for metric in scorer.metrics:
            known = {one.name: one for one in card.metrics}.get(metric.name, metric)
            if replace(known, label="", formats=(), chance=None) != replace(metric, label="", formats=(), chance=None):
                expected = "the same range and direction, or another name"
                raise InputError(store.shown, f"metric {metric.name}", found="another declaration", expected=expected)
        items = [item for item in store.items(run.benchmark) if all_items or card.counts(item)]
        pairs = [
            (item, answers[item.id])
            for item in items
            if item.id in answers and answers[item.id].status is not Status.FAILED and scorer.applies(item)
        ]
        found: list[Score] = []
        for item, answer in pairs:
            found += await scorer.score(item, answer)
        store.declare_metrics(run.benchmark, scorer.metrics)
        await asyncio.to_thread(store.add_scores, run, found)
        scored += len(pairs)
    return scored
