"""A benchmark of counts, and a view that shows nothing, for tests of the engine."""

from __future__ import annotations

from proctor.core import ACCURACY, Benchmark, Item, Reference
from proctor.core.formats import CountFormat
from proctor.testing import PictureView


class BlindView(PictureView):
    """A view that shows nothing."""

    def __init__(self) -> None:
        super().__init__((), "text-only")


def toy(count: int = 10, per_group: int = 2) -> Benchmark:
    """Items q000, q001 … of which `per_group` share a group, each with the answer 1."""
    return Benchmark(
        name="toy",
        title="Toy",
        items=tuple(
            Item(
                id=f"q{number:03d}",
                group=f"v{number // per_group}",
                question="How many clips?",
                answer=CountFormat(),
                reference=Reference(answer=1),
                tags={"secret": "the answer is 1"},
            )
            for number in range(count)
        ),
        metrics=(ACCURACY,),
        headline="accuracy",
    )
