"""A store whose items were answered several times by one run, and once by another."""

from __future__ import annotations

from pathlib import Path

from proctor.core import ACCURACY, Answer, Benchmark, Item, Reference, Score, Status
from proctor.core.formats import ChoiceFormat
from proctor.runs import Store


def repeated_store(folder: Path, said: dict[str, str], *, repeats: int = 3, groups: int = 3) -> Store:
    """A store with one run `m`: for each item a letter for each repetition, `-` for a reply that can't be read, `!` for a
    failed one and `.` for none. A is right."""
    store = Store(folder / "again.db")
    items = tuple(
        Item(
            id=name,
            group=f"g{number % groups}",
            question="?",
            options=("a", "b", "c"),
            answer=ChoiceFormat(),
            reference=Reference(answer="A"),
        )
        for number, name in enumerate(said)
    )
    store.add_benchmark(Benchmark("again", "Again", items, (ACCURACY,), "accuracy"))
    run = store.start_run("again", "m", "video", {"repeats": repeats})
    rows = []
    for item, letters in said.items():
        for repetition, letter in enumerate(letters):
            if letter == ".":
                continue
            status = Status.FAILED if letter == "!" else Status.ANSWERED
            parsed = letter if letter.isalpha() else None
            answer = Answer(item_id=item, repetition=repetition, parsed=parsed, text=letter, status=status)
            score = Score(item_id=item, repetition=repetition, metric="accuracy", value=float(letter == "A"))
            rows.append((answer, [] if letter == "!" else [score]))
    store.write(run, rows)
    once = store.start_run("again", "once", "video", {})
    answers = [Answer(item_id=item, parsed="A", text="A") for item in said]
    store.write(once, [(answer, [Score(item_id=answer.item_id, metric="accuracy", value=1.0)]) for answer in answers])
    return store
