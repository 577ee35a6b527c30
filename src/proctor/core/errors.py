"""The errors that Proctor raises on purpose, so that every other exception is a bug; and many problems told by their
few causes.

`InputError` is somebody's file or argument: it ends the command with exit code 1. The others end one answer:
`InfrastructureError` as `failed`; `SystemFaultError` as `error` and `RefusalError` as `refused`,
both the system's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from proctor.core.records import Usage


class ProctorError(Exception):
    """The root of all errors that Proctor raises on purpose. Its text is one line.

    >>> print(ProctorError("two\\nlines"))
    two lines
    """

    usage: Usage | None = None
    """What was consumed before it, where that is known."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))

    def after(self, usage: Usage) -> Self:
        """The same, after this was consumed as well."""
        self.usage = usage if self.usage is None else usage + self.usage
        return self


_WITH_TORCH = {"local", "retrieval", "semantic", "train"}


def pip_install(extra: str, *, torch: bool | None = None) -> str:
    """The command that installs an extra, for a message; where it brings PyTorch and that is not there
    (`torch`; None: looked for), with a hint, since the usual build for GPUs takes gigabytes.

    >>> pip_install("pose")
    "pip install 'proctor-eval[pose]'"
    >>> pip_install("local", torch=False)
    "pip install 'proctor-eval[local]'; without a GPU install PyTorch's CPU wheel (torch) first: it is much smaller"
    """
    there = torch if torch is not None else find_spec("torch") is not None
    hint = "; without a GPU install PyTorch's CPU wheel (torch) first: it is much smaller"
    return f"pip install 'proctor-eval[{extra}]'{'' if there or extra not in _WITH_TORCH else hint}"


class InputError(ProctorError):
    """Bad input: names the file, the place in it, what was found and what was expected; what is in no file names its
    place alone.

    >>> print(InputError("a.json", "item 3, field 'answer'", found="'E'", expected="one of A to D"))
    a.json: item 3, field 'answer': found 'E', expected one of A to D
    >>> print(InputError("level", found="95", expected="a share between 0 and 1"))
    level: found 95, expected a share between 0 and 1
    """

    def __init__(self, file: str | Path | None, place: str = "", *, found: str = "", expected: str = "") -> None:
        verdict = ", ".join(
            part for part in (f"found {found}" if found else "", f"expected {expected}" if expected else "") if part
        )
        super().__init__(": ".join(part for part in (str(file or ""), place, verdict) if part))


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A file and the place in it that is being read, which errors about its fields name.

    >>> print(FileLocation("a.json", "item 3").error("'E'", "one of A to D", field="answer"))
    a.json: item 3, field 'answer': found 'E', expected one of A to D
    """

    file: str | Path
    place: str = ""

    def error(self, found: str, expected: str, *, field: str = "") -> InputError:
        """What is wrong there, or in a field of it."""
        place = ", ".join(part for part in (self.place, f"field {field!r}" if field else "") if part)
        return InputError(self.file, place, found=found, expected=expected)


class ProblemsError(InputError):
    """What is wrong with a file of settings: all `problems`, each with its place.

    >>> print(ProblemsError("a.yaml", ["title: found 3", "phases: found none"]))
    a.yaml: 2 problems: title: found 3; phases: found none
    """

    def __init__(self, file: str | Path, problems: Sequence[str]) -> None:
        several = f"{len(problems)} problems: " if len(problems) > 1 else ""
        super().__init__(file, several + "; ".join(problems))
        self.problems = tuple(problems)


class UsageError(InputError):
    """An option that is needed was not given, or that does not go with the others: wrong usage, exit code 2.

    >>> print(UsageError("--data", "the folder with the files of focus"))
    --data: found none, expected the folder with the files of focus
    """

    def __init__(self, option: str, expected: str, *, found: str = "none") -> None:
        super().__init__(option, found=found, expected=expected)


class ConfigurationError(ProctorError):
    """A setting that can't work whatever is tried again: no key, no such model, access denied."""


class InfrastructureError(ProctorError):
    """The infrastructure between us and a model failed (connection, rate limit, broken reply).

    The caller retries, and then records `failed`: never a wrong answer or verdict.
    """


class PendingError(ProctorError):
    """The reply comes later, by another way: nothing is recorded, and the same command asks again."""


class NoVerdictError(InfrastructureError):
    """A judge was asked and gave no verdict on this answer: it declined, or no reply had the form asked for. The answer
    stays unresolved, and is asked again by another pass.

    >>> issubclass(NoVerdictError, InfrastructureError)
    True
    """


class RefusalError(ProctorError):
    """The model declined to answer, or a content policy rejected the question: its own doing, recorded as `refused`."""


class SystemFaultError(ProctorError):
    """The system can't handle this item: the context is too long for it, its content is rejected, it runs out of
    memory, or no reply has the form asked for. Another try changes nothing: recorded as `error`, which is wrong.

    >>> issubclass(SystemFaultError, InfrastructureError)
    False
    """


class ParseError(ProctorError):
    """A text that is not in the answer format; names what was expected and what came.

    >>> print(ParseError(expected="yes or no", found="perhaps"))
    expected yes or no, found 'perhaps'
    """

    def __init__(self, *, expected: str, found: str) -> None:
        shown = found if len(found) <= 80 else found[:77] + "..."
        super().__init__(f"expected {expected}, found {shown!r}")
        self.expected = expected
        self.found = found


_SHOWN = 3


@dataclass(frozen=True)
class Noted:
    """One finding: `line` says all of it; `place` is where it is ("q1", "row 7"), `row` its number where it has one.
    Findings with one `kind` (level, rule or column) and one `expected` have one cause."""

    kind: str
    place: str
    found: str
    expected: str
    line: str
    row: int = 0


def by_cause(findings: Sequence[Noted], option: str = "--all") -> list[str]:
    """A line for each cause that more than three findings share, with three examples or the rows, and one for every
    other finding; in order of appearance, but what has a row before what only follows from it. `option` is that of the
    command that lists all of them ("": none).

    >>> noted = [Noted("error: lang", f"row {n}", "'EN'", "one of en, zh", "", n) for n in range(2, 2906)]
    >>> by_cause(noted)
    ["error: lang: 2,904 times: found 'EN', expected one of en, zh (rows 2–2905)"]
    """
    groups: dict[tuple[str, str], list[Noted]] = {}
    for one in findings:
        groups.setdefault((one.kind, one.expected), []).append(one)
    lines: list[str] = []
    for some in sorted(groups.values(), key=_rank):
        lines += [_told(some, f" ({option})" if option else "")] if len(some) > _SHOWN else [one.line for one in some]
    return lines


def _rank(some: Sequence[Noted]) -> tuple[bool, bool]:
    return not some[0].kind.startswith("error"), not any(one.row for one in some)


def _told(some: Sequence[Noted], option: str) -> str:
    first = some[0]
    head = f"{first.kind}: {len(some):,} times"
    if len({one.found for one in some}) == 1:
        where = (_rows if all(one.row for one in some) else _places)(some, option)
        return f"{head}: found {first.found}, expected {first.expected} ({where})"
    examples = "; ".join(f"{one.place}: {one.found}" if one.place else one.found for one in some[:_SHOWN])
    return f"{head}: expected {first.expected}; found {examples}; and {len(some) - _SHOWN:,} more{option}"


def _places(some: Sequence[Noted], option: str) -> str:
    return f"{', '.join(one.place for one in some[:_SHOWN])} and {len(some) - _SHOWN:,} more{option}"


def _rows(some: Sequence[Noted], option: str) -> str:
    """Rows on end as a range; else the first ones."""
    rows = sorted(one.row for one in some)
    if rows[-1] - rows[0] == len(rows) - 1:
        return f"rows {rows[0]}–{rows[-1]}"
    return f"rows {', '.join(map(str, rows[:_SHOWN]))} and {len(rows) - _SHOWN:,} more{option}"
