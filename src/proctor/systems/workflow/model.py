"""What is known of a procedure: its steps, what shows them, which come before which, and where that is free."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

__all__ = ["Fact", "Lasting", "Name", "Step", "Variant", "Workflow"]

Name = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
"""Lower-case letters, digits and underscores: it stands in prompts and replies."""

Words = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=300)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Lasting(_Frozen):
    """That a fact, once true, stays true: `since` the step that brings it about, `until` the one that ends it."""

    since: Name
    until: Name | None = None


class Fact(_Frozen):
    """Something that a picture shows or does not show, in words; see `Lasting`."""

    seen: Words
    lasts: Lasting | None = None


class Step(_Frozen):
    """A step of the procedure. A picture shows it where all facts of `shown_by` are true and none of `never_with`
    is. `after` are the steps that it directly follows; `optional` ones may be left out."""

    name: Name
    title: Words
    shown_by: tuple[Name, ...] = Field(min_length=1)
    never_with: tuple[Name, ...] = ()
    after: tuple[Name, ...]
    optional: bool = False


class Variant(_Frozen):
    """Steps that have no fixed order among each other, and why."""

    free: tuple[Name, ...] = Field(min_length=2)
    why: Words


class Workflow(_Frozen):
    """A procedure. `words` are those by which a question names it; `start` are the steps that it can begin with.

    What holds a file together (names that exist, no cycle …) is checked where one is read; see `load_workflow`.
    """

    name: Name
    title: Words
    words: tuple[Words, ...] = Field(min_length=1)
    source: tuple[Words, ...] = Field(min_length=1)
    facts: dict[Name, Fact] = Field(min_length=1)
    steps: tuple[Step, ...] = Field(min_length=2)
    start: tuple[Name, ...] = Field(min_length=1)
    variants: tuple[Variant, ...] = ()

    def step(self, name: str | None) -> Step | None:
        """The step of this name, if there is one."""
        return next((step for step in self.steps if step.name == name), None)

    def precedes(self, earlier: str, later: str) -> bool:
        """Whether one step always comes before another: by `after`, over any number of steps, unless a variant
        leaves the two free. False for names that are not steps."""
        return earlier in self._before.get(later, frozenset()) and not any(
            earlier in variant.free and later in variant.free for variant in self.variants
        )

    def level(self, name: str) -> int:
        """The place of a step in the usual course, from 0: the most steps that one after the other come before it.

        Raises `KeyError` for a name that is not a step.
        """
        return self._levels[name]

    @cached_property
    def _before(self) -> dict[str, frozenset[str]]:
        """All steps that come before each, variants aside."""
        direct = {step.name: step.after for step in self.steps}
        before: dict[str, frozenset[str]] = {}
        for name, after in direct.items():
            found: set[str] = set()
            waiting = list(after)
            while waiting:
                one = waiting.pop()
                if one not in found:
                    found.add(one)
                    waiting += direct.get(one, ())
            before[name] = frozenset(found)
        return before

    @cached_property
    def _levels(self) -> dict[str, int]:
        levels: dict[str, int] = {}
        for step in sorted(
            self.steps, key=lambda one: len(self._before[one.name])
        ):  # predecessors come first
            levels[step.name] = max((levels[name] + 1 for name in step.after), default=0)
        return levels
