"""The errors that Proctor raises on purpose, so that every other exception is a bug.

`InputError` is somebody's file or argument: it ends the command with exit code 1. The others end one answer:
`MachineryError`, an infrastructure error, as `failed`; `SystemFaultError` as `error` and `RefusalError` as `refused`,
both the system's own.
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "ConfigurationError",
    "InputError",
    "MachineryError",
    "NoVerdictError",
    "ParseError",
    "ProctorError",
    "RefusalError",
    "SystemFaultError",
]


class ProctorError(Exception):
    """The root of all errors that Proctor raises on purpose. Its text is one line.

    >>> print(ProctorError("two\\nlines"))
    two lines
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class InputError(ProctorError):
    """Bad input: names the file, the place in it, what was found and what was expected.

    >>> print(InputError("a.json", "item 3, field 'answer'", found="'E'", expected="one of A to D"))
    a.json: item 3, field 'answer': found 'E', expected one of A to D
    """

    def __init__(
        self, file: str | Path | None, place: str = "", *, found: str = "", expected: str = ""
    ) -> None:
        verdict = ", ".join(
            part
            for part in (f"found {found}" if found else "", f"expected {expected}" if expected else "")
            if part
        )
        super().__init__(": ".join(part for part in (str(file or ""), place, verdict) if part))


class ConfigurationError(ProctorError):
    """A setting that can't work whatever is tried again: no key, no such model, access denied."""


class MachineryError(ProctorError):
    """The machinery between us and a model failed (connection, rate limit, broken reply).

    Whoever catches it retries, and then records `failed`: never a wrong answer or verdict.
    """


class NoVerdictError(MachineryError):
    """A judge was asked and gave no verdict on this answer: it declined, or no reply had the form asked for. The answer
    stays unresolved, and is asked again by another pass.

    >>> issubclass(NoVerdictError, MachineryError)
    True
    """


class RefusalError(ProctorError):
    """The model declined to answer, or a content policy rejected the question: its own doing, recorded as `refused`."""


class SystemFaultError(ProctorError):
    """The system can't handle this item: the context is too long for it, its content is rejected, it runs out of memory,
    or no reply has the form asked for. Another try changes nothing: recorded as `error`, which is wrong.

    >>> issubclass(SystemFaultError, MachineryError)
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
