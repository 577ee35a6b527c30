"""Judgements of judges, kept in memory, under the name that our tests have for them."""

from proctor.testing import MemoryJudgements as Votes

__all__ = ["Votes"]
