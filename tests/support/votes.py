"""Votes of judges, kept in memory."""

from __future__ import annotations

from proctor.core import Judgement


class Votes:
    """A book in memory that keeps the first vote under a key, as the store does."""

    def __init__(self, *votes: Judgement) -> None:
        self.kept = {vote.key: vote for vote in votes}

    def get(self, key: str) -> Judgement | None:
        return self.kept.get(key)

    def put(self, vote: Judgement) -> None:
        self.kept.setdefault(vote.key, vote)
