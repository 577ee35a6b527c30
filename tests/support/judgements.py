"""Judgements of judges, kept in memory, under the name that our tests have for them."""

from __future__ import annotations

from proctor.testing import MemoryJudgements


class Judgements(MemoryJudgements):
    """A cache in memory that keeps the first judgement under a key, as the store does."""
