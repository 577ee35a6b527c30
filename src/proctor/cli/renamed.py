"""Renamed commands and options, for errors that name the new spelling."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

RENAMED_COMMANDS = {
    "analyse": "analyze",
    "audit-items": "items audit",
    "cache list": "media cache",
    "cache prune": "media cache",
    "cache verify": "media cache --verify",
    "disqualify": "store disqualify",
    "frames": "media frames",
    "judge calibrate": "judge fit --method=calibration",
    "judge choose": "judge fit --method=choice",
    "judge examples": "judge fit --method=examples",
    "judge train": "judge fit --method=embedded",
    "leaks": "media duplicates",
    "pose": "media pose",
    "store show": "list runs",
    "store unresolved": "export --format=unresolved",
}
"""Old command → new command."""

RENAMED_OPTIONS = {
    "analyze": {"--json": "--format json"},
    "export": {"--decided": "--format decided"},
    "import": {"--as": "--name"},
    "media cache": {"--cache-size": "--prune"},
    "results": {"--as": "--protocol"},
    "run": {"--as": "--name"},
    "score": {
        "--alpha": "--option alpha=",
        "--beta": "--option beta=",
        "--encoder": "--option encoder=",
        "--invalid": "--option invalid=",
        "--layer": "--option layer=",
        "--rescale": "--option rescale=",
        "--strict": "--option strict=true",
        "--text-metric": "--metric",
    },
    "validate": {"--any-scale": "--option any-scale=true", "--split": "--option split="},
}
"""By new command: old option → new option."""

REWRITTEN = {
    "audit judges": "proctor audit BENCHMARK --scorer JUDGE --against OTHER",
    "audit table": "proctor audit --scores SCORES.csv --ratings RATINGS.csv",
    "judge exemplars": "proctor judge fit BENCHMARK --method examples --model MODEL --out FILE",
    "judge mediqa-eval": "proctor import mediqa-eval RATINGS.csv --data FOLDER; proctor score mediqa-eval --judge NAME "
    "--model MODEL; proctor export mediqa-eval --format submission --scorer NAME --out FILE",
    "train embedded-judge": "proctor judge fit BENCHMARK --method embedded --out FOLDER",
}
"""Old command → the lines that replace it, if its arguments changed as well."""

ALIASES = {"lint": "validate"}
"""Other names of commands."""

DELETING = "store delete"
"""A command that is not suggested for a similar name."""

SIMILAR = {
    "benchmarks": "list benchmarks",
    "conditions": "list conditions",
    "eval": "run",
    "evaluate": "run",
    "judges": "list judges",
    "leaderboard": "results",
    "models": "list systems",
    "plot": "analyze",
    "ranking": "rank",
    "rm": DELETING,
    "runs": "list runs",
    "summary": "results",
    "systems": "list systems",
    "view": "report",
}
"""Names from other programs → the command."""


NO_CHOICE = {"models": "A model is named as provider:name, like openai:gpt-5.2, or with --base-url; none are listed."}
"""Hints for invalid values that resemble no choice."""


class ReplacedError(Exception):
    """An old spelling was used. The message has the new line."""


def replaced_command(path: Sequence[str], arguments: Sequence[str]) -> ReplacedError | None:
    """The error for an old command `path` with these arguments; None for any other command.

    >>> print(replaced_command(["analyse"], ["focus", "--json"]))
    'analyse' is now 'analyze': proctor analyze focus --format json
    """
    old = " ".join(path)
    if old in REWRITTEN:
        return ReplacedError(f"{old!r} is now: {REWRITTEN[old]}")
    new = RENAMED_COMMANDS.get(old)
    if new is None:
        return None
    return ReplacedError(f"{old!r} is now {new!r}: {_line(new, arguments)}")


def replaced_option(command: str, option: str, arguments: Sequence[str]) -> ReplacedError | None:
    """The error for an old option of a command; None for any other option.

    >>> print(replaced_option("run", "--as", ["focus", "--as", "mine"]))
    '--as' is now '--name': proctor run focus --name mine
    """
    new = RENAMED_OPTIONS.get(command, {}).get(option)
    if new is None:
        return None
    return ReplacedError(f"{option!r} is now {new!r}: {_line(command, arguments)}")


def _line(command: str, arguments: Sequence[str]) -> str:
    """The whole command line in the new spelling."""
    words = command.split()
    known = RENAMED_OPTIONS.get(" ".join(word for word in words if not word.startswith("-")), {})
    for argument in arguments:
        if words[-1].endswith("="):
            words[-1] += argument
            continue
        option, equals, value = argument.partition("=")
        words += known[option].split() if option in known else [option]
        if equals:
            words[-1] = f"{words[-1].removesuffix('=')}={value}"
    return shlex.join(["proctor", *words])
