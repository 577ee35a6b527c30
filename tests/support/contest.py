"""A small challenge made by hand: yes-or-no questions in buckets on videos, and runs whose answers are written down."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from proctor.core import Answer, Benchmark, FailedPolicy, Item, Reference, Score, Status, Timing
from proctor.core.formats import BinaryFormat, FreeTextFormat
from proctor.judges import PANEL_ACCURACY, UNRESOLVED
from proctor.metrics import AccuracyScorer
from proctor.runs import ORACLE, Store

Given = bool | Status | str | None

NAME, JUDGE = "contest", "panel[a]"


def contest_store(
    folder: Path,
    items: int = 240,
    videos: int = 12,
    *,
    failed: FailedPolicy | None = FailedPolicy.WRONG,
    odd_tags: Mapping[int, str | tuple[str, ...] | None] | None = None,
    texts: int = 0,
) -> Store:
    """Questions q000 …, easy and hard in turn (the tag `level`: the buckets), the video changing with each pair; the
    key is always yes. The first `texts` of them are free text. `odd_tags` are other values of `level`, None for no
    tag."""
    made = []
    for number in range(items):
        level = (odd_tags or {}).get(number, "hard" if number % 2 else "easy")
        text = number < texts
        made.append(
            Item(
                id=f"q{number:03d}",
                group=f"v{number // 2 % videos:02d}",
                question="Is it there?",
                answer=FreeTextFormat(max_chars=20) if text else BinaryFormat(),
                reference=Reference(answer="there" if text else True),
                tags={} if level is None else {"level": level},
            )
        )
    store = Store(folder / "contest.db")
    store.add_benchmark(
        Benchmark(
            NAME,
            "Contest",
            tuple(made),
            (PANEL_ACCURACY,),
            "accuracy",
            facets=("level",),
            buckets=("level",),
            failed=failed,
        )
    )
    return store


def skilled(easy: float, hard: float, items: int = 240, seed: int = 0) -> list[bool]:
    """Whether each answer is right, at these rates on easy and on hard questions."""
    rng = np.random.default_rng(seed)
    return [bool(rng.random() < (hard if number % 2 else easy)) for number in range(items)]


def write_run(
    store: Store,
    system: str,
    right: Sequence[Given],
    *,
    condition: str = "video",
    latency: Sequence[float | None] | None = None,
    budget_s: float | None = None,
    oracle: bool = False,
) -> None:
    """A run of one answer a question: right or wrong, ended with a status, None for not asked. A text is that answer to
    free text; the judge's verdict on it is its first word: right, wrong or none (it was asked, and gave none). For
    "unscored" it was not asked. An
    `oracle` uses the reference answers."""
    items = {item.id: item for item in store.items(NAME)}
    run = store.start_run(NAME, system, condition, {"budget_s": budget_s, ORACLE: oracle})
    answers, verdicts = [], []
    for number, one in enumerate(right):
        if one is None:
            continue
        name = f"q{number:03d}"
        seconds = latency[number] if latency else None
        timing = None if seconds is None else Timing(model_s=seconds)
        if isinstance(one, Status):
            answer = Answer(item_id=name, status=one, timing=timing)
        elif isinstance(one, str):
            answer = Answer(item_id=name, text=one, parsed=one, timing=timing)
            verdicts += [] if one == "unscored" else [(name, one.split()[0])]
        else:
            answer = Answer(item_id=name, text="yes" if one else "no", parsed=bool(one), timing=timing)
        answers.append(answer)
    store.write(run, asyncio.run(_scored(items, answers)))
    for name, verdict in verdicts:
        store.declare_metrics(NAME, (PANEL_ACCURACY, UNRESOLVED))
        store.change_card(NAME, lambda card: card.model_copy(update={"gives": card.gives | {JUDGE: ("accuracy",)}}))
        scores = [(UNRESOLVED.name, float(verdict == "none"), "no verdict")]
        scores += [] if verdict == "none" else [("accuracy", float(verdict == "right"), verdict)]
        store.add_scores(
            run,
            [
                Score(item_id=name, metric=metric, value=value, scorer=JUDGE, label=label)
                for metric, value, label in scores
            ],
        )


async def _scored(items: Mapping[str, Item], answers: Sequence[Answer]) -> list[tuple[Answer, Sequence[Score]]]:
    scorer = AccuracyScorer()
    rows: list[tuple[Answer, Sequence[Score]]] = []
    for answer in answers:
        item = items[answer.item_id]
        due = scorer.applies(item) and answer.status is not Status.FAILED
        rows.append((answer, await scorer.score(item, answer) if due else []))
    return rows
