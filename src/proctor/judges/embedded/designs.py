"""Designs of a learner: which views of an answer count how much, and how freely it may follow the ratings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proctor.core import generator

VIEWS = {
    "measures": "measures of the answer, each standardised",
    "bends": "the same, with bends and interactions (random Fourier features of a Gaussian kernel)",
    "wording": "n-grams of characters of the answer (TF-IDF)",
    "wording-apart": "how far they differ from those of the references",
    "wording-shared": "those that the references have too",
    "wording-of-references": "n-grams of the references",
    "wording-of-all": "n-grams of all answers to the question, on average",
    "wording-of-query": "n-grams of the question",
    "meaning": "embedding of the answer",
    "meaning-of-references": "mean embedding of the references",
    "meaning-of-query": "embedding of the question",
    "meaning-shared": "product of the answer's and the references' embeddings",
    "meaning-apart": "how far they differ",
    "likeness": "the mean of plain measures of likeness to the references (`LIKENESS`)",
}
"""What an answer is seen as, by name. Each view is a block of columns that a linear model weighs."""

OF_OTHERS = ("wording-of-all",)
"""Views that look at other answers to the same question (some measures do so too)."""

LIKENESS = ("rouge-1-mean", "bert-f1-mean")
"""Measures that are good metrics by themselves, whatever was learned."""

_WEIGHTS = ((0.0, 0.5, 1.0, 2.0), (0.5, 0.15, 0.2, 0.15))
_FREEDOM = (0.5, 1.0, 2.0, 4.0)
_SHARED = (0.0, 0.3, 0.6, 0.9)


@dataclass(frozen=True, slots=True)
class Design:
    """A ridge regression on views. `weights` are the views' shares of the kernel; `penalty` is the ridge's
    per unit of weight, the larger the smoother; `shared` is how far each dimension is drawn to the mean of
    all (0: learned by itself)."""

    weights: Mapping[str, float]
    penalty: float
    shared: float

    @property
    def alpha(self) -> float:
        """The ridge's penalty. The view `likeness` does not add to it: a design that has it weighs its single
        column almost freely, and shrinks all else towards it."""
        return self.penalty * sum(weight for name, weight in self.weights.items() if name != "likeness")


def draw_designs(seed: int, count: int, *, alone: bool = False) -> tuple[Design, ...]:
    """Designs drawn at random, the same for the same seed; `alone`: none looks at other answers.

    Every design has the measures in it, and every second one likeness, with as much weight as all else.

    >>> draw_designs(0, 3) == draw_designs(0, 5)[:3], "measures" in draw_designs(0, 1)[0].weights
    (True, True)
    """
    rng = generator(seed, "embedded-judge", "designs")
    designs = []
    for number in range(count):
        drawn = {name: float(rng.choice(_WEIGHTS[0], p=_WEIGHTS[1])) for name in VIEWS if name != "likeness"}
        drawn["measures"] = max(drawn["measures"], float(rng.choice(_WEIGHTS[0][1:])))
        penalty, shared = float(rng.choice(_FREEDOM)), float(rng.choice(_SHARED))
        kept = {name: w for name, w in drawn.items() if w and not (alone and name in OF_OTHERS)}
        if number % 2:
            kept["likeness"] = sum(kept.values())
        designs.append(Design(kept, penalty, shared))
    return tuple(designs)
