"""A store of made-up runs in which everything occurs that a table counts, and the raw answers that it was made of.

Tests work the numbers of its tables out again from these answers, so nothing here is computed by the package.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from proctor.core import (
    NO_ANSWER,
    Answer,
    Benchmark,
    FailedPolicy,
    Item,
    Judgement,
    Metric,
    PublishedRow,
    PublishedTable,
    Reference,
    Score,
    Status,
    Timing,
    Usage,
    content_hash,
)
from proctor.core.formats import BinaryFormat, FreeTextFormat
from proctor.judges import NO_VERDICT, PANEL_ACCURACY, RESOLVED, TIE, UNRESOLVED
from proctor.runs import Store

NAME, JUDGE, DECIDED = "fuzzed", "panel[m]", "decided by human:anna"
HELPFUL = Metric("helpful", "Helpful (0–2)", high=2.0, formats=("free_text",), levels=("2", "1", "0"))
EFFORT = Metric("effort", "Effort", low=1.0, high=9.0, higher_is_better=False, per="steps")
SKILLS = {"alpha": 0.85, "beta": 0.68, "gamma": 0.55, "delta": 0.4, "random": 0.55}
SYSTEMS = tuple(SKILLS)
CONDITIONS = ("video", "text-only")
OPEN = (NO_VERDICT, TIE)
UNJUDGED = ("gamma", "text-only")
"""The run whose free text no judge was asked about."""


@dataclass
class Given:
    """One answer of one run: how it ended, and its scores by metric and scorer with their labels. `status` None: not
    asked. `unresolved` says that the judge was asked, "no" with a verdict."""

    status: Status | None
    readable: bool = True
    submitted: bool = True
    unresolved: str = ""
    scores: dict[tuple[str, str], tuple[float, str]] = field(default_factory=dict)


@dataclass
class Fuzzed:
    """The store, its items, and by system and condition what was given to each item."""

    store: Store
    items: list[Item]
    runs: dict[tuple[str, str], list[Given]]


def fuzzed(
    folder: Path,
    seed: int,
    *,
    failed: FailedPolicy | None = None,
    items: int = 72,
    waits: float = 0.15,
    abstains: bool = False,
) -> Fuzzed:
    """Five systems under two conditions, one of which is a baseline that answers no free text. The judge was not asked
    about this share of the other texts (`waits`), nor about any of the run `UNJUDGED`. With `abstains` systems abstain where
    they would refuse."""
    rng = random.Random(seed)
    asked = [_item(number, rng) for number in range(items)]
    store = Store(folder / f"fuzzed-{seed}.db")
    published = PublishedTable("A paper", "of old", (PANEL_ACCURACY,), (PublishedRow("a team", {"accuracy": 0.625}),))
    store.add_benchmark(
        Benchmark(
            NAME,
            "Fuzzed",
            tuple(asked),
            (PANEL_ACCURACY, HELPFUL, EFFORT, UNRESOLVED),
            "accuracy",
            facets=("area", "level"),
            conditions=CONDITIONS,
            only={"kept": True},
            buckets=("level",),
            failed=failed,
            published=published,
        )
    )
    runs = {}
    for system, skilled in SKILLS.items():
        for condition in CONDITIONS:
            skill = skilled - 0.15 * (condition == "text-only")
            baseline = system == "random"
            if baseline and condition == "video":
                continue
            runs[system, condition] = [_given(one, skill, rng, baseline=baseline, waits=waits) for one in asked]
            if (system, condition) == UNJUDGED:
                for one in runs[system, condition]:
                    one.unresolved = ""
                    one.scores = {key: value for key, value in one.scores.items() if key == ("accuracy", "code")}
            for one in runs[system, condition] if abstains else ():
                one.status = Status.ABSTAINED if one.status is Status.REFUSED else one.status
            _write(store, system, condition, asked, runs[system, condition])
    return Fuzzed(store, asked, runs)


def _item(number: int, rng: random.Random) -> Item:
    areas = ["neck", "hip", "knee"]
    free = number % 3 == 0
    return Item(
        id=f"q{number:03d}",
        group=f"v{int(11 * rng.random() ** 1.4):02d}",
        question="Is it there?",
        answer=FreeTextFormat(max_chars=20) if free else BinaryFormat(),
        reference=Reference(answer="there" if free else number % 7 < 4),
        tags={
            "level": rng.choice(("easy", "hard", "hard")),
            "area": tuple(rng.sample(areas, rng.choice((1, 1, 2))) if rng.random() < 0.9 else [])
            * (1 + (number % 5 == 0)),
            "steps": rng.randint(1, 4),
            "kept": rng.random() < 0.85,
        },
    )


def _given(item: Item, skill: float, rng: random.Random, *, baseline: bool, waits: float) -> Given:
    free = isinstance(item.answer, FreeTextFormat)
    if baseline:
        known = not free
        right = rng.random() < skill
        own = {("accuracy", "code"): (float(right), "right" if right else "wrong")}
        return Given(Status.ANSWERED if known else None, scores=own if known else {})
    status = rng.choices(
        (Status.ANSWERED, Status.FAILED, None, Status.TIMED_OUT, Status.REFUSED, Status.ERROR), (80, 5, 4, 4, 4, 3)
    )[0]
    one = Given(status)
    if status is None or status is Status.FAILED:
        return one
    if status is Status.ANSWERED:
        one.readable = free or rng.random() < 0.92
        one.submitted = one.readable or rng.random() < 0.6
    fine = status is Status.ANSWERED and one.readable
    right = fine and rng.random() < skill
    if not free:
        one.scores["accuracy", "code"] = (float(right), "right" if right else "wrong" if fine else "unreadable")
    elif (drawn := rng.random()) < 1 - waits:
        one.unresolved = DECIDED if drawn < 0.1 else RESOLVED if drawn < 0.7 else TIE if drawn < 0.78 else NO_VERDICT
        if one.unresolved not in OPEN:
            level = rng.choice((1, 2)) if right else rng.choice((0, 0, 1)) if fine else 0
            one.scores["accuracy", JUDGE] = (float(right), "right" if right else "wrong")
            one.scores["helpful", JUDGE] = (float(level), str(level))
        one.scores["unresolved", JUDGE] = (float(one.unresolved in OPEN), one.unresolved)
    if rng.random() < 0.95:
        one.scores["effort", "code"] = (round(1 + 8 * rng.random() * (1.1 - skill), 3), "")
    return one


def said(item: Item, one: Given) -> bool | None:
    """What an answer to a yes-or-no question says; None: nothing that can be read."""
    if item.reference is None or one.status is not Status.ANSWERED or not one.readable:
        return None
    return (item.reference.answer is True) == bool(one.scores["accuracy", "code"][0])


def _write(store: Store, system: str, condition: str, asked: list[Item], given: list[Given]) -> None:
    run = store.start_run(NAME, system, condition, {})
    rows = []
    for number, (item, one) in enumerate(zip(asked, given, strict=True)):
        if one.status is None:
            continue
        free = isinstance(item.answer, FreeTextFormat)
        parsed: object = "it is there" if free else said(item, one)
        read = one.status is Status.ANSWERED and one.readable
        answer = Answer(
            item_id=item.id,
            text=("it is there" if free else "yes" if parsed else "no") if read else "",
            parsed=parsed if read else None,  # type: ignore[arg-type]
            problem="" if read else "no answer",
            status=one.status,
            reason="" if one.submitted else NO_ANSWER,
            usage=Usage(requests=1, input_tokens=number, output_tokens=2 * number + 1, cost_usd=0.001 * number),
            timing=Timing(model_s=0.5 + number % 7),
        )
        key = content_hash([system, condition, item.id]) if one.unresolved in {RESOLVED, TIE} else ""
        scores = [
            Score(item_id=item.id, metric=metric, value=value, scorer=scorer, label=label, judgement_key=key)
            if scorer == JUDGE
            else Score(item_id=item.id, metric=metric, value=value, scorer=scorer, label=label)
            for (metric, scorer), (value, label) in one.scores.items()
        ]
        rows.append((answer, scores))
        if key:
            flags = ("steered",) if number % 4 == 0 else ()
            store.put(Judgement(key=key, judge=JUDGE, item_id=item.id, reply={"says": one.unresolved}, flags=flags))
    store.write(run, rows)
