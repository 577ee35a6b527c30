"""Which workflows a method goes by: a file of its own, the scenario that is named, or all that are known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pydantic import JsonValue

from proctor.core import ConfigurationError, content_hash
from proctor.systems.workflow.model import Workflow
from proctor.systems.workflow.reading import load_workflow

__all__ = ["SCENARIOS", "Offer", "built_in"]

SCENARIOS = ("cpr", "aed", "bmv")
"""The procedures that are known."""


@cache
def built_in(name: str) -> Workflow:
    """A workflow of this package, by its name in `SCENARIOS`."""
    return load_workflow(Path(__file__).with_name(f"{name}.yaml"))


class Offer:
    """What of the workflows is offered for an item.

    A file, where one is given, is the only one. Else the scenario that is given. Else those that the question names
    by one of their words; a question that names none is offered all.

    Raises `ConfigurationError` for a file beside a scenario and for an unknown scenario, `InputError` for a file
    that is no workflow.
    """

    def __init__(self, method: str, *, scenario: str | None = None, workflow: str | None = None) -> None:
        if scenario is not None and workflow is not None:
            raise ConfigurationError(
                f"{method}: found a workflow beside a scenario, expected one of the options"
            )
        if scenario is not None and scenario.casefold() not in SCENARIOS:
            raise ConfigurationError(
                f"{method}: option 'scenario': found {scenario!r}, expected one of {', '.join(SCENARIOS)}"
            )
        if workflow is not None:
            self._known: tuple[Workflow, ...] = (load_workflow(Path(workflow)),)
        else:
            names = SCENARIOS if scenario is None else (scenario.casefold(),)
            self._known = tuple(built_in(name) for name in names)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The workflows by name, each with the hash of its content."""
        return {"workflows": {one.name: content_hash(one) for one in self._known}}

    def of(self, question: str) -> tuple[Workflow, ...]:
        """One or more workflows."""
        named = tuple(one for one in self._known if _names(question, one.words))
        return named or self._known


def _names(question: str, words: Sequence[str]) -> bool:
    """Whether one of the words stands in the question, whatever its case."""
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", question, re.IGNORECASE) for word in words)
