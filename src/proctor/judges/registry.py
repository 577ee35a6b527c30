"""The judges that can be named: those built in, and those other packages add."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from proctor.core import Registry, Scorer, VoteBook
from proctor.models import ModelClient

__all__ = ["JUDGES", "BuildJudge"]


class BuildJudge(Protocol):
    """Makes a judge that asks `client` and keeps its votes in `votes`; `prompt` is a template file of
    one's own."""

    def __call__(self, client: ModelClient, votes: VoteBook, *, prompt: Path | None = None) -> Scorer: ...


JUDGES: Registry[BuildJudge] = Registry("judge", group="proctor.judges")
"""Factories by name; built-in ones are entry points like everybody's."""
