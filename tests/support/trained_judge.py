"""A task that a tiny judge can learn in seconds: what a clinician thinks of an answer stands in one of its words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from proctor.judges.dimensions import Case, Dimension, RatedCase, ReferenceAnswer

DIMENSIONS = (Dimension("overall", (0.0, 0.5, 1.0)), Dimension("relevance", (0.0, 1.0)))
_SAYS = {0.0: "bad", 0.5: "soso", 1.0: "good"}
_AGREES = {0.0: "no", 1.0: "yes"}

_PROMPT = """{% block system %}{{ dimensions | map(attribute="name") | join(" ") }}{% endblock %}
{% block user %}{{ candidate }}{% endblock %}
"""


def short_prompts(folder: Path) -> Path:
    """A folder with a prompt of a few letters, for models that read letter by letter."""
    (folder / "rubric.txt.j2").write_text(_PROMPT)
    return folder


def told_by_a_word(encounters: int = 40, seed: int = 0) -> list[RatedCase]:
    """Three answers to each encounter; each says how good it is, in its own order of words."""
    draw = np.random.default_rng(seed)
    rated = []
    for number in range(encounters):
        for answer in range(3):
            overall = float(draw.choice([0.0, 0.5, 1.0]))
            relevance = float(draw.choice([0.0, 1.0]))
            case = Case(
                id=f"e{number}/en",
                encounter=f"e{number}",
                dataset="d",
                language="en",
                query=f"Question {number}, asked by a patient who is unlike any other patient in the whole {number}?",
                references=(ReferenceAnswer(text="Good."),),
                candidate=f"{_SAYS[overall]} {_AGREES[relevance]} {number % 10}{answer}",
                dimensions=DIMENSIONS,
            )
            rated.append(RatedCase(case, {"overall": overall, "relevance": relevance}))
    return rated
