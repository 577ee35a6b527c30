"""Wrong usage of a command in one line: the mistake first, then what to do."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from proctor import core
from proctor.core import UsageError, shell_word

DELETING = "store change delete"
"""A command that is not suggested for a similar name."""

SIMILAR = {
    "analyse": "analyze",
    "benchmarks": "list benchmarks",
    "conditions": "list conditions",
    "eval": "run",
    "evaluate": "run",
    "judges": "list judges",
    "leaderboard": "results",
    "lint": "check",
    "models": "list systems",
    "plot": "analyze",
    "ranking": "rank",
    "monitor": "status",
    "pause": "store change pause",
    "requeue": "store change requeue",
    "resume": "store change resume",
    "rm": DELETING,
    "runs": "list runs",
    "summary": "results",
    "systems": "list systems",
    "validate": "check",
}
"""Other spellings, and names from other programs → the command that is suggested for them."""

NO_CHOICE = {"models": "A model is named as provider:name, like openai:gpt-5.2, or with --base-url; none are listed."}
"""Hints for invalid values that resemble no choice."""


def wrong_usage(error: Any, path: str, command: Any, more: str = "") -> UsageError:
    """What the library says of wrong arguments of a `command`, as one sentence; `more` is said of an argument too many.

    A missing value is followed by the command's example, anything else by the line that prints its help.
    """
    param, message = getattr(error, "param", None), str(getattr(error, "message", error))
    option, hint = getattr(error, "option_name", ""), f"Help: {' '.join(('proctor', *path.split()))} --help"
    if type(error).__name__ == "MissingParameter" and param is not None:
        return UsageError(f"{_name(param)} is missing. {_example(command) or hint}")
    if param is not None:
        return UsageError(f"{_bad_value(param, error)} {hint}")
    if option and "requires" in message:
        return UsageError(f"{option} needs a value. {hint}")
    if option and "take" in message:
        return UsageError(f"{option} takes no value. {hint}")
    if option:
        known = [name for one in command.params for name in one.opts if name.startswith("--")]
        near = get_close_matches(option, known, n=1, cutoff=0.75)
        return UsageError(f"No such option {option}.{f' Did you mean {near[0]}?' if near else ''} {hint}")
    extra = re.search(r"unexpected extra arguments?(?:\(s\))? \((.*)\)", message)
    if extra is not None:
        return UsageError(f"Too many arguments: {extra[1]}.{more} {hint}")
    return UsageError(f"{message.rstrip('.')}. {hint}")


def refuse_options(given: Mapping[str, object], why: str) -> None:
    """Raise `UsageError` for the first option, by its name, that was given although it has no part in what is done.

    >>> refuse_options({"--data": None, "--track": "procedure"}, "it goes with a FILE")
    Traceback (most recent call last):
    proctor.core.errors.UsageError: --track has no part here: it goes with a FILE
    """
    if name := next((name for name, value in given.items() if value not in (None, "", []) and value is not False), ""):
        raise UsageError(f"{name} has no part here: {why}")


def _name(param: Any) -> str:
    """An option as it is typed, or an argument as the help names it."""
    if param.param_type_name == "argument":
        return str(param.metavar or param.name or "").strip("[]{}.").upper()
    return max(param.opts, key=len, default=str(param.name))


def _bad_value(param: Any, error: Any) -> str:
    name = _name(param)
    if not isinstance(error.__cause__, ValidationError):
        return f"{name}: {str(error.message).rstrip('.')}."
    problem = core.first_problem(error.__cause__)
    if " is not one of " in problem.expected:
        return f"{name}: {with_hint(problem.expected)}"
    typed = error.__cause__.errors()[0]["input"]
    shown = shell_word(typed[:80]) if isinstance(typed, str) else problem.found
    return f"{name} {shown} can't be used: give {problem.expected}."


def with_hint(message: str) -> str:
    """Add the nearest choice to an error that lists the choices in quotes after the wrong value.

    >>> with_hint("'runss' is not one of 'metrics', 'runs'.")
    "'runss' is not one of 'metrics', 'runs'. Did you mean 'runs'?"
    """
    found, *choices = re.findall(r"'([^']*)'", message) or [""]
    if found in NO_CHOICE:
        return f"{message} {NO_CHOICE[found]}"
    near = get_close_matches(found, choices, n=1)
    return f"{message} Did you mean {near[0]!r}?" if near else message


def _example(command: Any) -> str:
    """The example in a command's help; "" for a command without one."""
    text = " ".join(inspect.cleandoc(command.help or "").split())
    _, found, example = text.rpartition("Example: ")
    return f"Example: {example}" if found else ""
