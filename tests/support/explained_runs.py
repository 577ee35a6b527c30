"""A store with two runs of a benchmark, between which up to eight differences are planted.

Twelve videos with four questions each: three with four options, one in free text. Without a planted difference both runs
have the same answers, scores and settings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.core import ACCURACY, Answer, Benchmark, Item, Reference, Score, Status
from proctor.core.formats import ChoiceFormat, FreeTextFormat
from proctor.metrics import AccuracyScorer
from proctor.runs import Store

PLANTED = ("items", "missing", "reader", "judge", "frames", "options", "prompt", "sampling")
GROUPS = 12
JUDGES = ("three-level[one]", "three-level[two]")


def questions(groups: int = GROUPS) -> Benchmark:
    items = []
    for video in range(groups):
        group = f"v{video:02d}"
        items += [
            Item(
                id=f"{group}/q{number}",
                group=group,
                question=f"Which organ is in view {number}?",
                options=("liver", "spleen", "aorta", "colon"),
                answer=ChoiceFormat(),
                reference=Reference(answer="ABCD"[(video + number) % 4]),
            )
            for number in range(3)
        ]
        items.append(
            Item(
                id=f"{group}/why",
                group=group,
                question="What is done?",
                answer=FreeTextFormat(),
                reference=Reference(answer="the duct is cut"),
            )
        )
    return Benchmark("organs", "Organs", tuple(items), (ACCURACY,), "accuracy")


def settings(**changed: Any) -> dict[str, Any]:
    system: dict[str, Any] = {
        "model": "test:m",
        "model_settings": {"temperature": 0.0},
        "prompt": "model_answer",
        "prompt_sha256": "a" * 64,
        "sampling": {"count": None, "fps": None, "video_as": "frames"},
    }
    media: dict[str, Any] = {"max_side": 512, "quality": 85, "max_frames": 64, "fps": 1.0, "overlay": "none"}
    found: dict[str, Any] = {"system": system, "media": media, "seed": 0, "budget_s": None, "oracle": False}
    for name, value in changed.items():
        (system if name in system else media)[name] = value
    return found


def planted(file: Path, differences: Collection[str], *, groups: int = GROUPS) -> Store:
    """The runs `first` and `second` under `video`; `second` differs in what is planted. For "missing" the first answer of
    each third video has failed in both runs: the difference is how it counts."""
    benchmark, store = questions(groups), Store(file)
    store.add_benchmark(benchmark)
    store.declare_metrics("organs", (replace(ACCURACY, formats=("free_text",)),))  # as a judge does
    changed: dict[str, Any] = {}
    changed |= {"model_settings": {"temperature": 1.0}} if "sampling" in differences else {}
    changed |= {"prompt_sha256": "b" * 64} if "prompt" in differences else {}
    changed |= {"fps": 2.0} if "frames" in differences else {}
    for name, own in (("first", set[str]()), ("second", set(differences))):
        run = store.start_run("organs", name, "video", settings(**(changed if name == "second" else {})))
        rows = []
        for number, item in enumerate(benchmark.items):
            if "items" in own and number % 4 == 2 and number % 3 == 0:
                continue
            answer = _answer(item, number, own, failed="missing" in differences)
            scores = _scores(item, answer, number, JUDGES[0])
            if "judge" in differences:
                scores += _scores(item, answer, number, JUDGES[1])[-1:]
            rows.append((answer, scores))
        store.write(run, rows)
    return store


def _answer(item: Item, number: int, own: set[str], *, failed: bool) -> Answer:
    assert item.reference is not None
    video = number // 4
    if failed and video % 3 == 0 and number % 4 == 0:
        return Answer(item_id=item.id, status=Status.FAILED, reason="HTTP 500")
    pictures = 2 if "frames" in own else 1
    digests = [hashlib.sha256(f"{item.id}{n}{pictures}".encode()).hexdigest() for n in range(pictures)]
    shown = {"prefixes": [one[:8] for one in digests], "sha256": hashlib.sha256("".join(digests).encode()).hexdigest()}
    extra: dict[str, Any] = {
        "shown": [shown | {"times": [float(n) for n in range(pictures)]}],
        "messages_sha256": ("b" if "prompt" in own else "a") * 64,
    }
    if item.answer.kind == "free_text":
        return Answer(item_id=item.id, text="cut", parsed="cut", extra=extra)
    if "options" in own and number % 3:
        extra["options_shown"] = [*reversed(item.options)]
    right = number % 5 != 0
    for position, name in enumerate(("frames", "options", "prompt", "sampling")):
        if name in own and number % 7 == position:
            right = False
    key = str(item.reference.answer)
    said = key if right else "ABCD"[("ABCD".index(key) + 1) % 4]
    parsed = said
    if "reader" in own and number % 3 == 0 and right:  # a reader that finds no letter in every third reply
        return Answer(item_id=item.id, text=f"Answer: {said}", problem="expected a letter", extra=extra)
    return Answer(item_id=item.id, text=f"Answer: {said}", parsed=parsed, extra=extra)


def _scores(item: Item, answer: Answer, number: int, judge: str) -> list[Score]:
    if answer.status is Status.FAILED:
        return []
    if item.answer.kind != "free_text":
        return [AccuracyScorer().compute(item, answer)]
    mild = judge == JUDGES[1]
    value = float(number % (8 if mild else 12) < (4 if not mild else 7))
    return [Score(item_id=item.id, metric="accuracy", value=value, scorer=judge)]
