"""What is wrong with a workflow that has the right form: names that nobody defines, cycles, steps out of reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from proctor.systems.workflow.model import Workflow

__all__ = ["Flaw", "flaws"]


@dataclass(frozen=True, slots=True)
class Flaw:
    """One flaw: the place in the file, what is there, what is expected."""

    place: str
    found: str
    expected: str


def flaws(workflow: Workflow) -> list[Flaw]:
    """Every flaw: names twice or unknown, steps that need and forbid a fact, cycles, steps that the procedure
    can't reach from its start, variants around a step that has a fixed place, facts that no step looks at."""
    named = [*_twice(workflow), *_unknown(workflow), *_contradictory(workflow)]
    cycle = _cycle(workflow)
    if cycle:
        shown = " after ".join([*cycle, cycle[0]])
        named.append(
            Flaw(
                f"step {cycle[0]!r}, field 'after'", f"a cycle, {shown}", "steps that come one after another"
            )
        )
    return named or [*_unreachable(workflow), *_around_fixed(workflow), *_unused(workflow)]


def _twice(workflow: Workflow) -> Iterator[Flaw]:
    names = [step.name for step in workflow.steps]
    for name in _repeated(names):
        yield Flaw(f"step {name!r}", "it a second time", "each step once")
    for place, listed in _lists(workflow):
        for name in _repeated(listed):
            yield Flaw(place, f"{name!r} twice", "each name once")


def _unknown(workflow: Workflow) -> Iterator[Flaw]:
    steps = {step.name for step in workflow.steps}
    for place, listed in _lists(workflow):
        facts = place.endswith(("'shown_by'", "'never_with'"))
        for name in listed:
            if name not in (workflow.facts if facts else steps):
                yield Flaw(
                    place, f"the unknown {'fact' if facts else 'step'} {name!r}", "a name of this file"
                )


def _contradictory(workflow: Workflow) -> Iterator[Flaw]:
    for step in workflow.steps:
        for name in step.shown_by:
            if name in step.never_with:
                yield Flaw(f"step {step.name!r}", f"{name!r} in shown_by and in never_with", "one of them")


def _cycle(workflow: Workflow) -> list[str]:
    """The steps of one cycle, each after the next one; empty where there is none."""
    after = {step.name: step.after for step in workflow.steps}
    done: set[str] = set()
    for name, first in after.items():
        path, choices = [name], [iter(first)]
        while choices:
            following = next((one for one in choices[-1] if one in after and one not in done), None)
            if following is None:
                done.add(path.pop())
                choices.pop()
            elif following in path:
                return path[path.index(following) :]
            else:
                path.append(following)
                choices.append(iter(after[following]))
    return []


def _unreachable(workflow: Workflow) -> Iterator[Flaw]:
    for step in workflow.steps:
        if not step.after and step.name not in workflow.start:
            expected = "a step that it comes after, or its name in 'start'"
            yield Flaw(f"step {step.name!r}", "no way to it from the start", expected)
        if step.after and step.name in workflow.start:
            yield Flaw(
                "field 'start'",
                f"{step.name!r}, which comes after {step.after[0]!r}",
                "steps that come first",
            )


def _around_fixed(workflow: Workflow) -> Iterator[Flaw]:
    for number, variant in enumerate(workflow.variants, 1):
        for one, other in permutations(variant.free, 2):
            for step in workflow.steps:
                if workflow.precedes(one, step.name) and workflow.precedes(step.name, other):
                    found = f"{one!r} and {other!r} free, with {step.name!r} always between them"
                    yield Flaw(f"variant {number}", found, f"{step.name!r} among the free ones")


def _unused(workflow: Workflow) -> Iterator[Flaw]:
    used = {name for step in workflow.steps for name in (*step.shown_by, *step.never_with)}
    for name, fact in workflow.facts.items():
        if name not in used and fact.lasts is None:
            yield Flaw(f"fact {name!r}", "no step that looks at it, and it does not last", "a use of it")


def _lists(workflow: Workflow) -> Iterator[tuple[str, Sequence[str]]]:
    """Every list of names, with its place."""
    for step in workflow.steps:
        yield f"step {step.name!r}, field 'shown_by'", step.shown_by
        yield f"step {step.name!r}, field 'never_with'", step.never_with
        yield f"step {step.name!r}, field 'after'", step.after
    yield "field 'start'", workflow.start
    for number, variant in enumerate(workflow.variants, 1):
        yield f"variant {number}, field 'free'", variant.free
    for name, fact in workflow.facts.items():
        if fact.lasts is not None:
            yield f"fact {name!r}, field 'since'", (fact.lasts.since,)
            if fact.lasts.until is not None:
                yield f"fact {name!r}, field 'until'", (fact.lasts.until,)


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for place, name in enumerate(names) if names.index(name) < place]
