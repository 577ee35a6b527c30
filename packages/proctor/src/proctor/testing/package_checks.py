"""Checks of a package that extends Proctor: all that it offers by entry points, and how it is imported and installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import SkipTest

from proctor.core import (
    BENCHMARKS,
    COMMANDS,
    VALIDATORS,
    InputError,
    PluginReport,
    ProctorError,
    Registry,
    ValidationRequest,
    error_at,
    one_of,
)
from proctor.judges import JUDGES
from proctor.media import CONDITIONS
from proctor.metrics import OVER_ITEMS, SCORERS
from proctor.systems import SYSTEMS
from proctor.testing import import_watch
from proctor.testing.benchmark_checks import benchmark_checks
from proctor.testing.checks import Check, CheckReport, Faults, run_checks
from proctor.testing.condition_checks import condition_checks
from proctor.testing.judge_checks import judge_checks
from proctor.testing.metric_checks import metric_checks
from proctor.testing.system_checks import system_checks

_PREFIX = "proctor."
_CHECKS: Mapping[str, Callable[..., list[Check]]] = {
    "systems": system_checks,
    "judges": judge_checks,
    "scorers": metric_checks,
    "corpus_metrics": metric_checks,
    "conditions": condition_checks,
}

Arguments = Mapping[str, Mapping[str, Any]]
"""The arguments of the checks of single things, by group and name of their entry point: `{"benchmarks.lamps":
{"data": "theatre", "media": "theatre"}, "judges.same": {"replies": Verdict(same=True)}}`."""


def check_package(name: str, arguments: Arguments | None = None) -> CheckReport:
    """Run `package_checks`. Raises `CheckFailedError` with all faults, and `InputError` for a package that is not
    installed.

    >>> check_package("no-such-package")
    Traceback (most recent call last):
    proctor.core.errors.InputError: package no-such-package: found nothing installed, expected its name: pip install -e .
    """
    return run_checks(package_checks(name, arguments))


def package_checks(name: str, arguments: Arguments | None = None) -> list[Check]:
    """The checks of an installed package: that its entry points have groups and names that exist and are free; that
    importing it does nothing, and loads no heavy library; that it is typed; and those of everything that it offers, with
    these arguments (see `Arguments`). A benchmark without `data` is only loaded. Raises `InputError` for a package that is not
    installed, and for arguments of what it does not offer.
    """
    try:
        found = distribution(name)
    except PackageNotFoundError as error:
        expected = "its name: pip install -e ."
        raise InputError(f"package {name}", found="nothing installed", expected=expected) from error
    given = dict(arguments or {})
    points = [point for point in found.entry_points if point.group.startswith(_PREFIX)]
    offered = {f"{point.group.removeprefix(_PREFIX)}.{point.name}": point for point in points}
    for location in given:
        if location not in offered:
            raise InputError(
                f"package {name}", "arguments", found=repr(location), expected=one_of(sorted(offered), location)
            )
    tried = _Tried(name, found, points)
    checks = {
        "it_offers_something": tried.it_offers_something,
        "entry_points_are_loaded": tried.entry_points_are_loaded,
        "importing_does_nothing": tried.importing_does_nothing,
        "it_is_typed": tried.it_is_typed,
    }
    own = [Check(f"package {name}", title, find) for title, find in checks.items()]
    return [
        *own,
        *(check for location, point in offered.items() for check in _checks_of(point, given.get(location, {}))),
    ]


def _checks_of(point: EntryPoint, given: Mapping[str, Any]) -> Iterator[Check]:
    """The checks of one thing that a package offers."""
    group = point.group.removeprefix(_PREFIX)
    if group in _CHECKS:
        yield from _lazily(f"{group} {point.name}", lambda: _CHECKS[group](point.name, **given))
    elif group == "benchmarks" and "data" in given:
        yield from _lazily(f"benchmark {point.name}", lambda: benchmark_checks(point.name, **given))
    elif group == "benchmarks":
        yield Check(f"benchmark {point.name}", "it_is_checked", _without_data)
    elif group == "validators":
        yield from validator_checks(point.name, **given)
    elif group in KIND_CHECKS.names():
        yield from KIND_CHECKS.get(group).checks(point.name)


def _lazily(subject: str, make: Callable[[], list[Check]]) -> Iterator[Check]:
    """The checks; if they can't be made, one check that says why."""
    try:
        yield from make()
    except ProctorError as error:
        message = str(error)
        yield Check(subject, "it_can_be_checked", lambda: [message])


def _without_data() -> list[str]:
    raise SkipTest("no data were given: arguments={'benchmarks.NAME': {'data': …}}")


@dataclass(frozen=True)
class KindChecks:
    """What another of Proctor's packages has things of its own kind checked by: `registry` holds them, and `checks(name)`
    are the checks of one."""

    registry: Registry[Any]
    checks: Callable[[str], list[Check]]


KIND_CHECKS: Registry[KindChecks] = Registry(
    "kind of things",
    group="proctor.kind_checks",
    fits=lambda thing: isinstance(thing, KindChecks),
    expected="KindChecks",
)
"""By the entry points' group without its `proctor.`, such as "project_kinds"."""


def _registries() -> dict[str, Registry[Any]]:
    known: tuple[Registry[Any], ...] = (BENCHMARKS, SYSTEMS, JUDGES, SCORERS, OVER_ITEMS, CONDITIONS, VALIDATORS)
    of_others = (KIND_CHECKS.get(name).registry for name in KIND_CHECKS.names())
    return {registry.group: registry for registry in (*known, COMMANDS, *of_others)}


class _Tried:
    """A package that is checked."""

    def __init__(self, name: str, found: Distribution, points: list[EntryPoint]) -> None:
        self.name = name
        self.found = found
        self.points = points

    @property
    def modules(self) -> list[str]:
        """The modules of its entry points."""
        return sorted({point.module for point in self.points})

    def it_offers_something(self) -> Faults:
        if not self.points:
            yield f"found no entry point of a group {_PREFIX}…, expected some: [project.entry-points.'{SYSTEMS.group}']"

    def entry_points_are_loaded(self) -> Faults:
        registries = _registries()
        for point in self.points:
            registry = registries.get(point.group)
            if registry is None:
                yield f"{point.name}: found the group {point.group!r}, expected {one_of(sorted(registries), point.group)}"
                continue
            try:
                registry.get(point.name)
            except ProctorError as error:
                yield str(error)

    def importing_does_nothing(self) -> Faults:
        if not self.modules:
            raise SkipTest("it has no modules with entry points")
        done = subprocess.run(  # noqa: S603  (this interpreter, and a file of this package)
            [sys.executable, "-B", str(import_watch.__file__), *self.modules],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            yield f"found that it can't be imported: {done.stderr.strip().rpartition(chr(10))[2]}"
            return
        yield from json.loads(done.stdout.splitlines()[-1])

    def it_is_typed(self) -> Faults:
        for top in sorted({module.partition(".")[0] for module in self.modules}):
            spec = find_spec(top)
            locations = [] if spec is None else list(spec.submodule_search_locations or ())
            if locations and not any((Path(location) / "py.typed").is_file() for location in locations):
                yield f"{top}: found no py.typed, expected one: type checkers ignore its types without it"


def validator_checks(name: str, *, data: str | Path | None = None, media: str | Path | None = None) -> list[Check]:
    """The checks of a check of submissions: a missing, an empty and a binary file, and an option that it does not have, are
    refused by an `InputError` or a report that is not ok. `data` and `media` are those of its benchmark."""

    def refuses() -> Faults:
        request = ValidationRequest(
            data=None if data is None else Path(data), media=None if media is None else Path(media)
        )
        with TemporaryDirectory(prefix="proctor-check-") as named:
            for how, content in {"missing": None, "empty": b"", "binary": bytes(range(256))}.items():
                file = Path(named) / f"{how}.json"
                if content is not None:
                    file.write_bytes(content)
                yield from _unless_refused(f"a file that is {how}", name, file, request)
            wrong = ValidationRequest(data=request.data, media=request.media, options={"no-such-option": 1})
            yield from _unless_refused("an unknown option", name, file, wrong)

    return [Check(f"validator {name}", "it_refuses_what_is_no_submission", refuses)]


def _unless_refused(location: str, name: str, file: Path, request: ValidationRequest) -> Faults:
    try:
        report: object = VALIDATORS.get(name)(file, request)
    except ProctorError:
        return
    except Exception as error:  # noqa: BLE001  (other people's code)
        yield f"{location}: it raised {error_at(error)}, expected an InputError"
        return
    if not isinstance(report, PluginReport):
        yield f"{location}: it returned {type(report).__name__}, expected a PluginReport"
    elif report.ok:
        yield f"{location}: found a report that is ok, expected an InputError, or ok=False"
