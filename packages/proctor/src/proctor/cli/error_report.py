"""Errors for programs: one JSON object on standard error where a command was called with `--format json`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from proctor.core import ConfigurationError, InfrastructureError, InputError, UsageError, clean, error_line

_KINDS = {
    UsageError: "usage",
    InputError: "input",
    ConfigurationError: "configuration",
    InfrastructureError: "infrastructure",
}

_LED = re.compile(r"(?:Help|Example|Next): (proctor .+)$")
_WITHIN = re.compile(r"\bproctor(?: (?:[a-z]+\b(?:-[a-z]+)*|--[a-z-]+|[A-Z][A-Z:/=…]*))+")
_INSTALL = re.compile(r"\b(?:uv )?pip install (?:'[^']+'|[\w.-]+)")


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command is called with `--format json`.

    >>> wants_json(["results", "--format", "json"]), wants_json(["results", "--format=json"]), wants_json(["json"])
    (True, True, False)
    """
    pairs = zip(arguments, [*arguments[1:], ""], strict=False)
    return any(word == "--format=json" or (word == "--format" and value == "json") for word, value in pairs)


def next_command(message: str, arguments: Sequence[str] = ()) -> str:
    """The command to call next that a message names: to see the help, to do what is missing, or to install something; ""
    without one. Wrong usage leads to the help of the command.

    >>> next_command("BENCHMARK is missing. Example: proctor results focus --store runs.db")
    'proctor results focus --store runs.db'
    >>> next_command("No run has this system: proctor list runs"), next_command("found 3, expected 4")
    ('proctor list runs', '')
    >>> next_command("a plot needs the extra 'plots': pip install 'proctor-eval[plots]'")
    "pip install 'proctor-eval[plots]'"
    """
    if found := _LED.search(message):
        return found[1]
    for pattern in (_INSTALL, _WITHIN):
        if found := pattern.search(message):
            return found[0]
    return f"proctor {arguments[0]} --help" if arguments else ""


def error_json(error: BaseException, message: str, code: int, arguments: Sequence[str]) -> str:
    """An error as one line of JSON: its kind, the location (`file` and `location`), what was `found` and `expected` (null where
    it does not say), the whole `message`, the `next` command (null: none is known), `notes`, and the exit code.

    Texts of files and servers may be hostile: they are values of JSON, without control characters.
    """
    named = _KINDS.get(type(error)) or next((name for kind, name in _KINDS.items() if isinstance(error, kind)), "other")
    usage = named == "usage" and bool(arguments) and not arguments[0].startswith("-")
    words = arguments if usage else ()
    fields = {name: clean(getattr(error, name, "")) or None for name in ("file", "location", "found", "expected")}
    body: dict[str, Any] = {
        "kind": named,
        **fields,
        "message": clean(message),
        "next": next_command(clean(message), words) or None,
        "notes": [clean(line) for line in getattr(error, "__notes__", ())],
        "exit_code": code,
    }
    return json.dumps({"error": body}, ensure_ascii=False)


def bug_json(error: BaseException, code: int) -> str:
    """What is no error that Proctor raises on purpose, as one line of JSON (kind "bug")."""
    nothing = dict.fromkeys(("file", "location", "found", "expected"))
    body: dict[str, Any] = {
        "kind": "bug",
        **nothing,
        "message": clean(error_line(error)),
        "next": None,
        "notes": [],
        "exit_code": code,
    }
    return json.dumps({"error": body}, ensure_ascii=False)
