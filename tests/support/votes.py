"""Votes of judges, kept in memory."""

from __future__ import annotations

from proctor.core import Vote


class Votes:
    """A book in memory that keeps the first vote under a key, as the store does."""

    def __init__(self, *votes: Vote) -> None:
        self.kept = {vote.key: vote for vote in votes}

    def get(self, key: str) -> Vote | None:
        return self.kept.get(key)

    def put(self, vote: Vote) -> None:
        self.kept.setdefault(vote.key, vote)
