"""A small benchmark with one run, worked by hand: what every item is and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from proctor.core import ACCURACY, Answer, Benchmark, Item, Metric, Reference, Score, Status, Timing
from proctor.core.formats import CountFormat, FreeTextFormat
from proctor.runs import Store

POINTS = Metric("points", "Points", high=2.0, formats=("free_text",), levels=("full", "half", "none"))
JUDGE = "judge by hand"
HOSTILE = '=HYPERLINK("http://evil.example","…")\n"quoted", 2 lines'


@dataclass(frozen=True)
class Line:
    """One item and what became of it; `score` is None where nobody scored it."""

    item: str
    group: str
    kind: str
    skills: tuple[str, ...]
    duration: str
    status: Status | None
    score: float | None
    text: str = "Answer: 1"


# Right: q0, q2. Wrong: q1 (unreadable), q4 (late), q5 (refused). Not scored: q3 (failed), q8 (not asked).
# Free text: q6 has full points, q7 has no verdict.
LEDGER = (
    Line("q0", "v0", "count", ("hands", "eyes"), "5–10 s", Status.ANSWERED, 1.0),
    Line("q1", "v0", "count", ("hands",), "10–20 s", Status.ANSWERED, 0.0, HOSTILE),
    Line("q2", "v1", "count", ("eyes",), "5–10 s", Status.ANSWERED, 1.0),
    Line("q3", "v1", "count", ("hands",), "10–20 s", Status.FAILED, None, ""),
    Line("q4", "v2", "count", (), "5–10 s", Status.TIMED_OUT, 0.0, ""),
    Line("q5", "v2", "count", ("eyes",), "10–20 s", Status.REFUSED, 0.0, ""),
    Line("q6", "v3", "free", ("eyes",), "5–10 s", Status.ANSWERED, 2.0, "It is clipped."),
    Line("q7", "v3", "free", ("hands",), "5–10 s", Status.ANSWERED, None, "It is cut."),
    Line("q8", "v4", "count", ("hands",), "5–10 s", None, None),
)


def ledger_benchmark() -> Benchmark:
    """Its items, scored by code and, where they are free text, by a judge."""
    return Benchmark(
        name="ledger",
        title="Ledger",
        items=tuple(
            Item(
                id=line.item,
                group=line.group,
                question="How many clips?" if line.kind == "count" else "What happens to the duct?",
                answer=CountFormat() if line.kind == "count" else FreeTextFormat(),
                reference=Reference(answer=1 if line.kind == "count" else "It is clipped."),
                tags={"kind": line.kind, "skills": line.skills, "duration": line.duration},
            )
            for line in LEDGER
        ),
        metrics=(ACCURACY, POINTS),
        headline="accuracy",
        facets=("kind", "skills", "duration"),
    )


def fill_ledger(url: str | Path, benchmark: Benchmark | None = None) -> Store:
    """A store with the run in it."""
    store = Store(url)
    store.add_benchmark(benchmark or ledger_benchmark())
    run = store.start_run("ledger", "one", "video", {})
    for line in LEDGER:
        if line.status is None:
            continue
        readable = line.status is Status.ANSWERED and line.text != HOSTILE
        answer = Answer(
            item_id=line.item,
            text=line.text,
            parsed=(1 if line.kind == "count" else line.text) if readable else None,
            status=line.status,
            reason="" if line.status is Status.ANSWERED else line.status.value,
            timing=Timing(model_s=0.5, media_s=0.0, queue_s=0.0, retry_s=0.0),
        )
        store.write(run, [(answer, _scores(line))])
    return store


def _scores(line: Line) -> list[Score]:
    if line.score is None:
        return []
    if line.kind == "count":
        return [Score(item_id=line.item, metric="accuracy", value=line.score)]
    return [Score(item_id=line.item, metric="points", value=line.score, scorer=JUDGE, label="full")]
