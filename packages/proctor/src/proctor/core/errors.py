"""The errors that Proctor raises on purpose: any other exception is a bug.

`InputError` is a problem with a user's file or argument and ends the command with exit code 1. Others end a single
answer: `InfrastructureError` with status `failed`, `SystemFaultError` with `error`, and `RefusalError` with `refused`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:
    from proctor.core.records import Usage


class ProctorError(Exception):
    """The base class of all errors that Proctor raises on purpose. Messages are single lines.

    >>> print(ProctorError("two\\nlines"))
    two lines
    """

    usage: Usage | None = None
    """The resources used before the error, if known."""

    rejected: Literal["", "item", "request", "form"] = ""
    """Whether a server rejected the request, which it would reject again: for what is in it ("item"), for the form of the
    reply that it asks for ("form"), or for a setting or an unknown reason, most probably the same for every item
    ("request")."""

    exit_code: int = 1
    """What a command ends with that raised it."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))

    def after(self, usage: Usage) -> Self:
        """The same error with this usage added."""
        self.usage = usage if self.usage is None else usage + self.usage
        return self

    def reworded(self, message: str) -> Self:
        """The same error with another message.

        >>> error = InfrastructureError("HTTP 400")
        >>> error.rejected = "request"
        >>> error.reworded("m: HTTP 400").rejected
        'request'
        """
        new = type(self)(message)
        new.usage, new.rejected = self.usage, self.rejected
        return new


def error_line(error: BaseException) -> str:
    """The type and message of any exception, on one line.

    >>> error_line(ValueError("no\\nweights"))
    'ValueError: no weights'
    """
    return " ".join(f"{type(error).__name__}: {error}".split())


def error_at(error: BaseException) -> str:
    """`error_line`, with the innermost file and line.

    >>> try:
    ...     {}["lamp"]
    ... except KeyError as error:
    ...     error_at(error).partition(" (")[0]
    "KeyError: 'lamp'"
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    location = "" if trace is None else f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
    return error_line(error) + location


_WITH_TORCH = {"local", "retrieval", "semantic", "train"}
_PACKAGES = {"build", "challenge", "train", "web"}  # proctor-build and so on, packages of their own
_ELSEWHERE = {"pipeline": "proctor-train"}  # extras of other packages than the core


def pip_install(extra: str, *, torch: bool | None = None) -> str:
    """The command that installs an extra, or a package by its last word, for messages. If it needs PyTorch and PyTorch is not installed
    (`torch`; None: check), the command for its CPU build stands with it, since the default build takes gigabytes.

    >>> pip_install("pose")
    "pip install 'proctor-eval[pose]'"
    >>> pip_install("web")
    'pip install proctor-web'
    >>> pip_install("local", torch=False)
    "pip install 'proctor-eval[local]'; without a GPU first: uv pip install --torch-backend=cpu torch (much smaller)"
    """
    installed = torch if torch is not None else find_spec("torch") is not None
    hint = "; without a GPU first: uv pip install --torch-backend=cpu torch (much smaller)"
    name = f"proctor-{extra}" if extra in _PACKAGES else f"'{_ELSEWHERE.get(extra, 'proctor-eval')}[{extra}]'"
    return f"pip install {name}{'' if installed or extra not in _WITH_TORCH else hint}"


def missing_extra(extra: str, what: str) -> ConfigurationError:
    """The error for a package of an extra that is not installed; `what` needs it.

    >>> print(missing_extra("plots", "a plot"))
    a plot needs the extra 'plots': pip install 'proctor-eval[plots]'
    """
    named = f"the package proctor-{extra}" if extra in _PACKAGES else f"the extra {extra!r}"
    return ConfigurationError(f"{what} needs {named}: {pip_install(extra)}")


def need_extra(extra: str, what: str, module: str) -> None:
    """Raises `ConfigurationError` if a module of an extra is not installed (see `missing_extra`).

    >>> need_extra("plots", "a plot", "sys")
    """
    try:
        missing = find_spec(module) is None
    except ValueError:  # another thread is importing it: OpenCV has no spec meanwhile
        missing = False
    if missing:
        raise missing_extra(extra, what)


class InputError(ProctorError):
    """Invalid input. The message names the file (if any), the location in it, what was found, and what was expected; each stands
    in a field of its own, "" where it is not known.

    >>> print(InputError("a.json", "item 3, field 'answer'", found="'E'", expected="one of A to D"))
    a.json: item 3, field 'answer': found 'E', expected one of A to D
    >>> print(InputError("level", found="95", expected="a share between 0 and 1"))
    level: found 95, expected a share between 0 and 1
    >>> error = InputError("a.json", "item 3", found="'E'", expected="one of A to D")
    >>> error.file, error.location, error.found, error.expected
    ('a.json', 'item 3', "'E'", 'one of A to D')
    """

    def __init__(self, file: str | Path | None, location: str = "", *, found: str = "", expected: str = "") -> None:
        verdict = ", ".join(
            part for part in (f"found {found}" if found else "", f"expected {expected}" if expected else "") if part
        )
        super().__init__(": ".join(part for part in (str(file or ""), location, verdict) if part))
        self.file = str(file or "") if location or verdict else ""  # else it is the whole message
        self.location, self.found, self.expected = location, found, expected


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A file and a location in it, which errors name.

    >>> print(FileLocation("a.json", "item 3").error("'E'", "one of A to D", field="answer"))
    a.json: item 3, field 'answer': found 'E', expected one of A to D
    """

    file: str | Path
    location: str = ""

    def error(self, found: str, expected: str, *, field: str = "") -> InputError:
        """An error at this location, or in a field there."""
        location = ", ".join(part for part in (self.location, f"field {field!r}" if field else "") if part)
        return InputError(self.file, location, found=found, expected=expected)


class ProblemsError(InputError):
    """All `problems` of a settings file, each with its location.

    >>> print(ProblemsError("a.yaml", ["title: found 3", "phases: found none"]))
    a.yaml: 2 problems: title: found 3; phases: found none
    """

    def __init__(self, file: str | Path, problems: Sequence[str]) -> None:
        several = f"{len(problems)} problems: " if len(problems) > 1 else ""
        super().__init__(file, several + "; ".join(problems))
        self.problems = tuple(problems)


class UsageError(InputError):
    """A required option is missing, has a wrong value, or conflicts with others: wrong usage, exit code 2. One line says
    the mistake, and then what to do; what was found and expected only where that says it better.

    >>> print(UsageError("--data is missing: give the folder with the files of focus."))
    --data is missing: give the folder with the files of focus.
    >>> print(UsageError("--phase", "one of test, final", found="'tset'"))
    --phase: found 'tset', expected one of test, final
    """

    exit_code = 2

    def __init__(self, mistake: str, expected: str = "", *, found: str = "none") -> None:
        super().__init__(mistake, found=found if expected else "", expected=expected)
        self.file, self.location = "", mistake if expected else ""


class ConfigurationError(ProctorError):
    """A setting that fails on every attempt: a missing key, an unknown model, denied access."""


class InfrastructureError(ProctorError):
    """A failure of the infrastructure: connection, rate limit, malformed reply.

    The caller retries, and then records `failed`, which never counts as a wrong answer or verdict.
    """


class PendingError(ProctorError):
    """The reply will arrive later in another way (such as a batch): nothing is recorded; the same command asks
    again."""


class NoVerdictError(InfrastructureError):
    """A judge returned no verdict on an answer: it declined, or no reply had the requested form. The answer remains
    unresolved and is judged again in the next pass.

    >>> issubclass(NoVerdictError, InfrastructureError)
    True
    """


class RefusalError(ProctorError):
    """The model declined to answer, or a content policy rejected the question; recorded as `refused`."""


class SystemFaultError(ProctorError):
    """The system can't handle an item: the context is too long, its content is rejected, it runs out of memory, or no
    reply has the requested form. Retrying does not help; recorded as `error`, which counts as wrong.

    >>> issubclass(SystemFaultError, InfrastructureError)
    False
    """


class ParseError(ProctorError):
    """Text that is not in the answer format. The message has what was expected and what was found.

    >>> print(ParseError(expected="yes or no", found="perhaps"))
    expected yes or no, found 'perhaps'
    """

    def __init__(self, *, expected: str, found: str) -> None:
        shown = found if len(found) <= 80 else found[:77] + "..."
        super().__init__(f"expected {expected}, found {shown!r}")
        self.expected = expected
        self.found = found
        self._shown = shown

    def at(self, file: str | Path | None, location: str = "") -> InputError:
        """The same at a location in a file.

        >>> print(ParseError(expected="yes or no", found="perhaps").at("a.csv", "row 3"))
        a.csv: row 3: found 'perhaps', expected yes or no
        """
        return InputError(file, location, found=repr(self._shown), expected=self.expected)
