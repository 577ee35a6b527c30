"""Reads and checks a workflow file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from proctor.core import InputError
from proctor.core.files import read_bytes
from proctor.systems.workflow.faults import flaws
from proctor.systems.workflow.model import Workflow

__all__ = ["MOST_BYTES", "check_workflow", "load_workflow"]

MOST_BYTES = 200_000
"""A longer file is no workflow."""


def load_workflow(file: Path) -> Workflow:
    """Reads one. Raises `InputError` with the first of what `check_workflow` finds."""
    workflow, wrong = _read(file)
    if workflow is None or wrong:
        raise wrong[0]
    return workflow


def check_workflow(file: Path) -> list[InputError]:
    """Everything that is wrong with a file, one line each; empty where nothing is.

    Form first (what is no YAML has no fields, and fields of a wrong kind have no meaning), then meaning: see `flaws`.
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
        return None, [_said(file, raw, dict(one)) for one in error.errors(include_url=False)]
    return workflow, [
        InputError(file, flaw.place, found=flaw.found, expected=flaw.expected) for flaw in flaws(workflow)
    ]


_NOT_GUESSED = {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int"}
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}\Z")
"""A whole number as people write it; YAML would also read 1:30 as 90."""


def _loader() -> type[Any]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a key that comes twice, where YAML would keep the last one in silence, and references to other
        parts, which make a file of a page a value of gigabytes. What looks like a date is a text."""

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
        raw = read_bytes(file)
        if len(raw) > MOST_BYTES:
            raise InputError(file, found=f"{len(raw)} bytes", expected=f"at most {MOST_BYTES}")
        return yaml.load(raw.decode(), _loader())  # noqa: S506 - a safe loader
    except OSError as error:
        raise InputError(file, found=str(error.strerror), expected="a YAML file") from error
    except UnicodeDecodeError as error:
        raise InputError(file, found="bytes that are no UTF-8", expected="a YAML file") from error
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark is not None else ""
        found = getattr(error, "problem", None) or "what can't be read"
        raise InputError(file, place, found=str(found), expected="YAML") from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        # what the library lets through where a tag promises another kind of value
        raise InputError(file, found="a value that is not what its tag says", expected="YAML") from error


def _said(file: Path, raw: dict[Any, Any], error: dict[str, Any]) -> InputError:
    """One error of form, at the place that a person sees: steps by their name, not their number."""
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
    kind = error["type"]
    if kind == "missing":
        return InputError(file, ", ".join(parts), found="nothing", expected="a value")
    if kind == "extra_forbidden":
        return InputError(file, ", ".join(parts), found="an unknown field", expected="none of this name")
    return InputError(file, ", ".join(parts), found=repr(error["input"])[:60], expected=str(error["msg"]))
