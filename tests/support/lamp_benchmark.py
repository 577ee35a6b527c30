"""A benchmark made in Python: is the lamp on? Four rooms, three questions in each, no media."""

from __future__ import annotations

from proctor import ACCURACY, Benchmark, Item, Metric, Reference
from proctor.core import Scorer
from proctor.core.formats import BinaryFormat, FreeTextFormat


def lamps(*, free_text: bool = False, scorers: tuple[Scorer, ...] = ()) -> Benchmark:
    """Twelve questions, the right answer to every third of them is no; with `free_text` one more in each room."""
    items = [
        Item(
            id=f"room-{room}/q{number}",
            group=f"room-{room}",
            question=f"Is lamp {number} on?",
            answer=BinaryFormat(),
            reference=Reference(answer=number != 3),
            tags={"lamp": str(number)},
        )
        for room in range(1, 5)
        for number in range(1, 4)
    ]
    if free_text:
        items += [
            Item(
                id=f"room-{room}/why",
                group=f"room-{room}",
                question="What stands beside the lamp?",
                answer=FreeTextFormat(),
                reference=Reference(answer="the anaesthesia machine"),
                tags={"lamp": "none"},
            )
            for room in range(1, 5)
        ]
    metrics = (ACCURACY,)
    assert isinstance(ACCURACY, Metric)
    return Benchmark(
        "lamps", "Lamps", tuple(items), metrics, "accuracy", facets=("lamp",), buckets=("lamp",), scorers=scorers
    )
