"""Admission: whether a file of answers is a submission, and which of its answers will be wrong. One rule for `proctor
validate`, the pages, the shell, packs, and the answers of baselines.

What is no submission (not readable, an unknown or repeated question, too large) is refused. What is missing, late or not
in its format is accepted and counted as a wrong answer; its team is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.api import validate
from proctor.core import InputError, ProctorError
from proctor_challenge.settings import Budget

_WRONG = "wrong: "


@dataclass(frozen=True)
class Admission:
    """`problems` are the reasons why a file is no submission, one line each; without any it is accepted, and `wrong`
    are the findings on the `count` questions whose answers are counted as wrong."""

    problems: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    count: int = 0


def admission(benchmark: str, track: str, data: Path, budget: Budget, file: Path) -> Admission:
    """Checks a file of answers by a phase's time limit and rule for latencies. `data` is the folder with the phase's
    questions; references are not needed."""
    rules: dict[str, Any] = {"budget_s": budget.question_s, "latency": budget.latency}
    try:
        found = validate(benchmark, file, data=data, track=track, every=True, **rules)
    except ProctorError as error:
        return Admission((str(error),))
    lines = [line for line in found.shown if isinstance(line, str)]
    if not found.ok:
        return Admission(tuple([line for line in lines if line.startswith("error")] or lines))
    wrong = tuple(line for line in lines if line.startswith(_WRONG))
    count = found.json.get("wrong") if isinstance(found.json, dict) else None
    return Admission(wrong=wrong, count=count if isinstance(count, int) else len(wrong))


def checked_submission(benchmark: str, track: str, data: Path, budget: Budget, file: Path) -> None:
    """Raises `InputError`, with the first problem, for a file that is no submission."""
    found = admission(benchmark, track, data, budget, file)
    if found.problems:
        more = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
        raise InputError(found.problems[0] + more)
