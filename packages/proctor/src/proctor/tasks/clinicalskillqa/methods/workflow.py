"""Procedures as data, one file each: steps, the facts that show them, their precedence and its variants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, JsonValue, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from proctor.core import (
    ConfigurationError,
    FrozenModel,
    InputError,
    content_hash,
    expected_words,
    found_words,
    input_bytes,
)

Name = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
"""Lower-case letters, digits and underscores; names appear in prompts and replies."""

Words = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=300)]


class Lasting(FrozenModel):
    """A fact that stays true from the step `since` to the step `until` (None: to the end)."""

    since: Name
    until: Name | None = None


class Fact(FrozenModel):
    """Something that a picture shows or does not show, in words."""

    seen: Words
    lasts: Lasting | None = None


class Step(FrozenModel):
    """A step of the procedure. A picture shows it where all facts of `shown_by` are true and none of `never_with` is.
    `after` are its direct predecessors; an `optional` step may be left out."""

    name: Name
    title: Words
    shown_by: tuple[Name, ...] = Field(min_length=1)
    never_with: tuple[Name, ...] = ()
    after: tuple[Name, ...]
    optional: bool = False


class Variant(FrozenModel):
    """Steps whose order among each other is free, and why."""

    free: tuple[Name, ...] = Field(min_length=2)
    why: Words


class Workflow(FrozenModel):
    """A procedure. `words` are the words by which a question names it; `start` are the steps that it can begin with.

    Consistency (known names, no cycle …) is checked when a file is read; see `load_workflow`.
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
        return next((step for step in self.steps if step.name == name), None)

    def precedes(self, earlier: str, later: str) -> bool:
        """Whether one step always comes before another, directly or not, and no variant leaves the two free.
        False for unknown names."""
        return earlier in self._before.get(later, frozenset()) and not any(
            earlier in variant.free and later in variant.free for variant in self.variants
        )

    def level(self, name: str) -> int:
        """The length of the longest chain of steps before a step, from 0. Raises `KeyError` for an unknown name."""
        return self._levels[name]

    @cached_property
    def _after(self) -> dict[str, tuple[str, ...]]:
        """The direct predecessors of each step, predecessors first. Raises `CycleError` where steps form a cycle."""
        after = {step.name: step.after for step in self.steps}
        return {name: after.get(name, ()) for name in TopologicalSorter(after).static_order()}

    @cached_property
    def _before(self) -> dict[str, frozenset[str]]:
        """All steps that come before each, variants aside."""
        before: dict[str, frozenset[str]] = {}
        for name, after in self._after.items():
            before[name] = frozenset(after).union(*(before[one] for one in after))
        return before

    @cached_property
    def _levels(self) -> dict[str, int]:
        levels: dict[str, int] = {}
        for name, after in self._after.items():
            levels[name] = max((levels[one] + 1 for one in after), default=0)
        return levels


@dataclass(frozen=True, slots=True)
class Flaw:
    """One flaw of a file: its location, what was found, what was expected."""

    location: str
    found: str
    expected: str


def flaws(workflow: Workflow) -> list[Flaw]:
    """Every flaw: repeated or unknown names, steps that need and forbid a fact, cycles, steps that can't be reached from
    the start, variants around a step in a fixed position, facts that no step uses."""
    named = [*_twice(workflow), *_unknown(workflow), *_contradictory(workflow)]
    cycle = _cycle(workflow)
    if cycle:
        shown = " after ".join([*cycle, cycle[0]])
        named.append(
            Flaw(f"step {cycle[0]!r}, field 'after'", f"a cycle, {shown}", "steps that come one after another")
        )
    return named or [*_unreachable(workflow), *_around_fixed(workflow), *_unused(workflow)]


def _twice(workflow: Workflow) -> Iterator[Flaw]:
    names = [step.name for step in workflow.steps]
    for name in _repeated(names):
        yield Flaw(f"step {name!r}", "it a second time", "each step once")
    for position, listed in _lists(workflow):
        for name in _repeated(listed):
            yield Flaw(position, f"{name!r} twice", "each name once")


def _unknown(workflow: Workflow) -> Iterator[Flaw]:
    steps = {step.name for step in workflow.steps}
    for position, listed in _lists(workflow):
        facts = position.endswith(("'shown_by'", "'never_with'"))
        for name in listed:
            if name not in (workflow.facts if facts else steps):
                yield Flaw(position, f"the unknown {'fact' if facts else 'step'} {name!r}", "a name of this file")


def _contradictory(workflow: Workflow) -> Iterator[Flaw]:
    for step in workflow.steps:
        for name in step.shown_by:
            if name in step.never_with:
                yield Flaw(f"step {step.name!r}", f"{name!r} in shown_by and in never_with", "one of them")


def _cycle(workflow: Workflow) -> list[str]:
    """The steps of one cycle, each after the next one, from the first in the file on; empty where there is none."""
    after = {step.name: step.after for step in workflow.steps}
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][:0:-1]
        start = min(map(cycle.index, set(cycle)), key=lambda number: list(after).index(cycle[number]))
        return cycle[start:] + cycle[:start]
    return []


def _unreachable(workflow: Workflow) -> Iterator[Flaw]:
    for step in workflow.steps:
        if not step.after and step.name not in workflow.start:
            expected = "a step that it comes after, or its name in 'start'"
            yield Flaw(f"step {step.name!r}", "no way to it from the start", expected)
        if step.after and step.name in workflow.start:
            yield Flaw("field 'start'", f"{step.name!r}, which comes after {step.after[0]!r}", "steps that come first")


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
    """Every list of names, with its location."""
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
    return [name for position, name in enumerate(names) if names.index(name) < position]


MAX_BYTES = 200_000
"""Longer files are refused."""


def load_workflow(file: Path) -> Workflow:
    """Reads one. Raises `InputError` with the first of what `check_workflow` finds."""
    workflow, wrong = _read(file)
    if workflow is None or wrong:
        raise wrong[0]
    return workflow


def check_workflow(file: Path) -> list[InputError]:
    """Every fault of a file; empty where there is none.

    Faults of form are reported alone: only a well-formed file is checked for consistency (see `flaws`).
    """
    return _read(file)[1]


def _read(file: Path) -> tuple[Workflow | None, list[InputError]]:
    try:
        raw = _yaml(file)
    except InputError as error:
        return None, [error]
    if not isinstance(raw, dict):
        found = "nothing" if raw is None else f"a {type(raw).__name__}"
        return None, [InputError(file, found=found, expected="a mapping with name, title, facts, steps …")]
    try:
        workflow = Workflow.model_validate(raw)
    except ValidationError as error:
        return None, [_form_error(file, raw, one) for one in error.errors(include_url=False)]
    return workflow, [
        InputError(file, flaw.location, found=flaw.found, expected=flaw.expected) for flaw in flaws(workflow)
    ]


_NOT_GUESSED = {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int"}
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}\Z")
"""A whole number as people write it; YAML would also read 1:30 as 90."""


def _loader() -> type[Any]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses repeated keys (YAML would silently keep the last) and references to other parts (a short file could
        expand to gigabytes). Dates are texts."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.composer.ComposerError(None, None, "a reference to another part", mark)
            return super().compose_node(parent, index)

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            known: set[str] = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue  # refused below: no key of a workflow is one
                if key.value in known:
                    problem = f"the key {key.value!r} twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                known.add(key.value)
            return super().construct_mapping(node, deep)

    Loader.yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in known if tag not in _NOT_GUESSED]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver("tag:yaml.org,2002:int", _INTEGER, list("-+0123456789"))
    return Loader


def _yaml(file: Path) -> object:
    import yaml

    try:
        raw = input_bytes(file, "a YAML file")
        if len(raw) > MAX_BYTES:
            raise InputError(file, found=f"{len(raw)} bytes", expected=f"at most {MAX_BYTES}")
        return yaml.load(raw.decode(), _loader())  # noqa: S506 - a safe loader
    except UnicodeDecodeError as error:
        raise InputError(file, found="bytes that are no UTF-8", expected="a YAML file") from error
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        location = f"line {mark.line + 1}" if mark is not None else ""
        found = getattr(error, "problem", None) or "what can't be read"
        raise InputError(file, location, found=str(found), expected="YAML") from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        # what the library lets through where a tag promises another kind of value
        raise InputError(file, found="a value that is not what its tag says", expected="YAML") from error


def _form_error(file: Path, raw: dict[Any, Any], error: ErrorDetails) -> InputError:
    """An error of form at its location in the file; steps are named, not numbered."""
    where = list(error["loc"])
    steps = raw.get("steps")
    parts = []
    if where[0] == "steps" and len(where) > 1 and isinstance(steps, list) and isinstance(where[1], int):
        step = steps[where[1]]
        name = step.get("name") if isinstance(step, dict) else None
        parts.append(f"step {name!r}" if isinstance(name, str) else f"step {where[1] + 1}")
        where = where[2:]
    if where:
        parts.append(f"field {'.'.join(str(one) for one in where if one != '[key]')!r}")
    if error["type"] == "extra_forbidden":
        return InputError(file, ", ".join(parts), found="an unknown field", expected="none of this name")
    return InputError(file, ", ".join(parts), found=found_words(error)[:60], expected=expected_words(error))


SCENARIOS = ("cpr", "aed", "bmv")
"""The built-in procedures."""


@cache
def built_in(name: str) -> Workflow:
    """A built-in workflow by its name in `SCENARIOS`."""
    return load_workflow(Path(__file__).with_name("workflows") / f"{name}.yaml")


class WorkflowChoice:
    """The candidate workflows for an item: the given file or scenario alone, else the built-in ones that the question
    names by one of their words, else all built-in ones.

    Raises `ConfigurationError` for a file beside a scenario and for an unknown scenario, `InputError` for a file
    that is no workflow.
    """

    def __init__(self, method: str, *, scenario: str | None = None, workflow: str | None = None) -> None:
        if scenario is not None and workflow is not None:
            raise ConfigurationError(f"{method}: found a workflow beside a scenario, expected one of the options")
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
        return {"workflows": {workflow.name: content_hash(workflow) for workflow in self._known}}

    def of(self, question: str) -> tuple[Workflow, ...]:
        named = tuple(workflow for workflow in self._known if _names(question, workflow.words))
        return named or self._known


def _names(question: str, words: Sequence[str]) -> bool:
    """Whether the question contains one of the words, in any case."""
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", question, re.IGNORECASE) for word in words)
