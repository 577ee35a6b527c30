"""Checks: named, callable one by one, each of which collects every fault that it finds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from unittest import SkipTest

from proctor.core import ProctorError, UsageError, error_at, one_of

T = TypeVar("T")

Faults = Iterator[str]
"""What a check finds: one line for each fault, with what was found and what is expected."""


class CheckFailedError(ProctorError):
    """Something does not fit the protocol. `faults` are all that were found, each one line with what was checked, the
    location, what was found and what was expected; the message has the first of them, and their number.

    >>> print(CheckFailedError(["system s: name: found '', expected a name", "system s: settings: found None"]))
    system s: name: found '', expected a name (and 1 more)
    """

    def __init__(self, faults: Sequence[str]) -> None:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(f"{faults[0]}{more}")
        self.faults = tuple(" ".join(fault.split()) for fault in faults)
        for fault in self.faults[1:]:
            self.add_note(fault)


@dataclass(frozen=True)
class Check:
    """One check of one thing. `subject` is the thing ("system brightness"), `name` what is checked, in words with
    underscores. Calling it raises `CheckFailedError` with all faults, and `unittest.SkipTest`, which pytest knows, where
    it does not apply.

    With `expected_failure`, the reason why the thing may fail it, a failure is skipped, and a pass is a failure.

    >>> def has_a_name():
    ...     yield "found '', expected a name"
    >>> Check("system s", "has_a_name", has_a_name)()
    Traceback (most recent call last):
    proctor.testing.checks.CheckFailedError: system s: has_a_name: found '', expected a name
    >>> str(Check("system s", "has_a_name", has_a_name))
    'system s: has_a_name'
    """

    subject: str
    name: str
    find: Callable[[], Iterable[str]]
    expected_failure: str = ""

    def __str__(self) -> str:
        """The subject and the name, as id of a test."""
        return f"{self.subject}: {self.name}"

    def __call__(self) -> None:
        """Run the check."""
        faults = [f"{self}: {fault}" for fault in _found(self.find)]
        if faults and self.expected_failure:
            raise SkipTest(f"{self}: expected to fail: {self.expected_failure}")
        if self.expected_failure:
            raise CheckFailedError([f"{self}: found no fault, expected one: {self.expected_failure}"])
        if faults:
            raise CheckFailedError(faults)


def _found(find: Callable[[], Iterable[str]]) -> list[str]:
    """The faults, an exception of the checked code among them."""
    faults: list[str] = []
    try:
        faults.extend(find())  # what was yielded before an exception stays
    except SkipTest:
        if not faults:
            raise
    except ProctorError as error:
        faults.append(str(error))
    except Exception as error:  # noqa: BLE001  (the checked code is other people's)
        faults.append(f"it raised {error_at(error)}")
    return faults


def expecting(checks: Iterable[Check], expected_failures: Mapping[str, str] | None) -> list[Check]:
    """The checks, with the reasons why some of them may fail, by name. Raises `UsageError` for a name that is none of
    them."""
    given = list(checks)
    names = {check.name for check in given}
    for name in expected_failures or {}:
        if name not in names:
            raise UsageError("expected_failures", one_of(sorted(names), name), found=repr(name))
    reasons = expected_failures or {}
    return [replace(check, expected_failure=reasons.get(check.name, "")) for check in given]


@dataclass(frozen=True)
class CheckReport:
    """What came of checks that all passed: the names of those that `passed`, and of the `skipped` ones with the reason."""

    passed: tuple[str, ...]
    skipped: Mapping[str, str]


def run_checks(checks: Iterable[Check]) -> CheckReport:
    """Run all checks. Raises `CheckFailedError` with the faults of all of them.

    >>> run_checks([Check("system s", "has_a_name", lambda: ())]).passed
    ('system s: has_a_name',)
    """
    passed: list[str] = []
    skipped: dict[str, str] = {}
    faults: list[str] = []
    for check in checks:
        try:
            check()
        except SkipTest as reason:
            skipped[str(check)] = str(reason)
        except CheckFailedError as error:
            faults += error.faults
        else:
            passed.append(str(check))
    if faults:
        raise CheckFailedError(faults)
    return CheckReport(tuple(passed), skipped)


def awaited(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, in an event loop of its own, also where one is running (in a notebook or an `async`
    test)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    done: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            done.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
            raised.append(error)

    thread = threading.Thread(target=run, name="proctor-check")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return done[0]
