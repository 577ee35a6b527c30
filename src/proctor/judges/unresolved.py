"""What became of an answer that a judge was asked about, where there is no verdict, or not yet."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core import Metric, NoVerdictError, Score, human

RESOLVED = "resolved"
RESOLVED_SHORT = "resolved, a vote missing"
"""A majority of the whole panel agrees, so that the vote that did not come could change nothing."""
TIE = "tie"
VOTE_MISSING = "vote missing"
"""No majority, and a vote that did not come would decide."""

NO_VERDICT = "no verdict"
"""The judge was asked, and declined or gave nothing of the form asked for."""
BY_FALLBACK = "resolved by the fallback"
"""The judge had no verdict; the one that was named to stand in for it had."""

DECIDED_BY_A_PERSON = "decided by a person"
"""The judge had no verdict, and a person decided in its place, whose name is withheld here (see `decided_by`)."""

AWAITING_VOTES = frozenset({RESOLVED_SHORT, VOTE_MISSING, NO_VERDICT})
"""What another pass asks again: only the votes that are missing."""

UNRESOLVED = Metric(
    "unresolved",
    "Answers that the judge left unresolved",
    higher_is_better=False,
    percent=True,
    formats=("free_text",),
    levels=(RESOLVED, RESOLVED_SHORT, BY_FALLBACK, TIE, VOTE_MISSING, NO_VERDICT),
)
"""1 where an answer has no majority (it then has no accuracy, neither right nor wrong), else 0."""


def decided_by(person: str) -> str:
    """The label of `unresolved` where a person decided.

    >>> decided_by("anna"), is_decided(decided_by("anna")), is_decided("resolved by the fallback")
    ('decided by human:anna', True, False)
    """
    return f"decided by {human(person)}"


def is_decided(label: str) -> bool:
    """Whether a label of `unresolved` says that a person decided."""
    return label.startswith("decided by ")


class PartialScoresError(NoVerdictError):
    """A judge that gives several scores has some, and not all: `scores` are those it has. The message says why the
    others are missing; another pass asks for them."""

    def __init__(self, reason: str, scores: Sequence[Score]) -> None:
        super().__init__(reason)
        self.scores = tuple(scores)
