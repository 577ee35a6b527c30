"""Judgements of judges, kept in memory."""

from __future__ import annotations

from proctor.core import Judgement


class Judgements:
    """A book in memory that keeps the first judgement under a key, as the store does."""

    def __init__(self, *judgements: Judgement) -> None:
        self.kept = {judgement.key: judgement for judgement in judgements}

    def get(self, key: str) -> Judgement | None:
        return self.kept.get(key)

    def put(self, judgement: Judgement) -> None:
        self.kept.setdefault(judgement.key, judgement)
