"""A small store with everything that a report shows: four conditions, several ways to fail, judgements."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from proctor.core import (
    ACCURACY,
    Answer,
    Benchmark,
    Item,
    Judgement,
    Metric,
    Reference,
    Score,
    Status,
    TagValue,
    Timing,
    Usage,
    content_hash,
    generator,
)
from proctor.core.formats import ChoiceFormat, FreeTextFormat
from proctor.runs import Run, Store

CONDITIONS = ("video", "text-only", "black", "shuffled")

# How often each system is right under each condition: one looks, one guesses from the words, one does neither.
SHARES = {
    "looker": {"video": 0.9, "text-only": 0.25, "black": 0.25, "shuffled": 0.7},
    "guesser": {"video": 0.6, "text-only": 0.6, "black": 0.6, "shuffled": 0.6},
    "random": dict.fromkeys(CONDITIONS, 0.25),
}

HELPFUL = Metric("helpful", "Helpful (0–2)", high=2.0, formats=("free_text",), levels=("2", "1", "0"))

FATES = {("looker", "q003"): Status.FAILED, ("looker", "q005"): Status.TIMED_OUT, ("guesser", "q006"): Status.REFUSED}

JPEG = b"\xff\xd8\xff\xe0" + b"not really a picture" + b"\xff\xd9"


def a_benchmark(*, items: int = 48, groups: int = 12, title: str = "Toy procedures") -> Benchmark:
    return Benchmark(
        name="toy",
        title=title,
        items=tuple(_item(number, groups) for number in range(items)),
        metrics=(ACCURACY, HELPFUL),
        headline="accuracy",
        facets=("phase", "length"),
        conditions=CONDITIONS,
        seeds={"options": 3},
        notes=("Every procedure was drawn by a program.",),
        simulated=True,
    )


def _item(number: int, groups: int) -> Item:
    tags: dict[str, TagValue] = {
        "phase": ("approach", "repair")[number % 2],
        "length": ("0-5 s", "5-10 s", "10-20 s")[number % 3],
    }
    if number % 8 == 7:
        return Item(
            id=f"q{number:03d}",
            group=f"v{number % groups:02d}",
            question=f"Describe step {number}.",
            answer=FreeTextFormat(),
            reference=Reference(answer="the clip is placed", rationale="It is seen at the end."),
            tags=tags,
        )
    return Item(
        id=f"q{number:03d}",
        group=f"v{number % groups:02d}",
        question=f"Which instrument is seen in step {number}?",
        options=("grasper", "scissors", "needle driver", "clip applier"),
        answer=ChoiceFormat(),
        reference=Reference(answer="ABCD"[number % 4], rationale="By its tip."),
        tags=tags,
    )


def fill(store: Store, benchmark: Benchmark, *, shares: dict[str, dict[str, float]] | None = None) -> None:
    store.add_benchmark(benchmark)
    for system, by_condition in (shares or SHARES).items():
        for condition, share in by_condition.items():
            settings: dict[str, JsonValue] = {"seed": 1, "notes": [f"{system} was run by hand"]}
            run = store.start_run(benchmark.name, system, condition, settings)
            store.write(run, [_answered(store, run, item, share) for item in benchmark.items])
    store.set_flags(
        benchmark.name,
        "guessable",
        {item.id: "yes" if row % 5 == 0 else "no" for row, item in enumerate(benchmark.items)},
    )


def _answered(store: Store, run: Run, item: Item, share: float) -> tuple[Answer, list[Score]]:
    rng = generator(0, run.system, run.condition, item.id)
    right = bool(rng.random() < share)
    asks = run.system != "random"
    base = Answer(
        item_id=item.id,
        timing=Timing(model_s=round(float(rng.uniform(0.5, 2)), 3), media_s=0.1, queue_s=0.02),
        usage=Usage(requests=1, input_tokens=900, output_tokens=20, cost_usd=0.001) if asks else Usage(),
    )
    status = FATES.get((run.system, item.id), Status.ANSWERED)
    if status is Status.FAILED:
        return base.model_copy(update={"status": status, "reason": "connection reset"}), []
    if status is not Status.ANSWERED:
        ended = base.model_copy(update={"status": status, "reason": "as it happens"})
        return ended, [_accuracy(item, 0.0)]
    if isinstance(item.answer, FreeTextFormat):
        return _judged(store, run, item, right, base)
    if (run.system, item.id) == ("guesser", "q012"):
        problem = "expected one of the letters, found 'I can't tell.'"
        unreadable = base.model_copy(update={"text": "I can't tell.", "problem": problem})
        return unreadable, [_accuracy(item, 0.0)]
    key = str(item.reference.answer) if item.reference else "A"
    said = key if right else "ABCD"[("ABCD".index(key) + 1) % 4]
    answer = base.model_copy(update={"text": f"Answer: {said}", "parsed": said})
    return answer, [_accuracy(item, float(right))]


def _accuracy(item: Item, value: float) -> Score:
    return Score(item_id=item.id, metric="accuracy", value=value)


def _judged(store: Store, run: Run, item: Item, right: bool, base: Answer) -> tuple[Answer, list[Score]]:
    text = "A clip is placed." if right else "Nothing happens."
    value = 2 if right else 0
    judgement = Judgement(
        key=content_hash({"run": f"{run.system}/{run.condition}", "item": item.id}),
        judge="the-judge",
        item_id=item.id,
        reply={"score": value, "explanation": "Both halves hold." if right else "Neither half holds."},
        flags=("contradiction",) if (run.system, item.id) == ("guesser", "q007") else (),
    )
    store.put(judgement)
    score = Score(
        item_id=item.id,
        metric="helpful",
        value=value,
        scorer="the-judge",
        label=str(value),
        judgement_key=judgement.key,
    )
    return base.model_copy(update={"text": text, "parsed": text}), [score]


def a_store(folder: Path) -> Store:
    store = Store(folder / "toy.db")
    fill(store, a_benchmark())
    return store
