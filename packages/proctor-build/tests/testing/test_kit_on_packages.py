"""The checks of a whole package: what it offers, how it is imported, and that each thing is checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from unittest import SkipTest

import pytest

from proctor import InputError
from proctor.core import VALIDATORS
from proctor.testing import CheckFailedError, CheckReport, check_package, package_checks, run_checks, validator_checks
from tests.support.broken_package import FIELDS, HEAD, READER, SYSTEM, Offer, offering
from tests.support.kit import finds, passes

GOOD = HEAD + SYSTEM.replace('text="yes"', 'text="yes" if item else ""')
SEES = """from proctor.media import Condition
class Plain(Condition):
    summary = "the media as they are"
PLAIN = Plain()
"""


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    yield from offering(tmp_path, monkeypatch)


def named(name: str) -> list[str]:
    """The faults of a check of the package."""
    (check,) = [check for check in package_checks("brk") if check.name == name]
    try:
        check()
    except CheckFailedError as error:
        return [fault.removeprefix(f"{check}: ") for fault in error.faults]
    return []


def test_all_that_it_offers_is_checked(offer: Offer, tmp_path: Path) -> None:
    modules = {
        "systems": GOOD,
        "conditions": SEES,
        "readers": HEAD + READER.format(judge=None, reference="A", fields=FIELDS),
    }
    points = {
        "systems.mine": "brk.systems:S",
        "conditions.plain": "brk.conditions:PLAIN",
        "benchmarks.b": "brk.readers:READER",
    }
    offer(modules, points)
    (tmp_path / "brk" / "py.typed").touch()
    subjects = {check.subject for check in package_checks("brk")}
    assert subjects == {"package brk", "system mine", "condition plain", "benchmark b"}
    report = check_package("brk")
    assert "system mine: it_answers_what_it_supports" in report.passed
    assert (
        report.skipped["benchmark b: it_is_checked"] == "no data were given: arguments={'benchmarks.NAME': {'data': …}}"
    )
    with pytest.raises(CheckFailedError) as failed:
        check_package("brk", {"benchmarks.b": {"data": tmp_path}})
    assert [fault for fault in failed.value.faults if "there_are_groups" in fault] == []  # one item needs one group
    assert any("missing file: found FileNotFoundError" in fault for fault in failed.value.faults)


def test_what_is_not_installed_or_offered_is_refused(offer: Offer) -> None:
    with pytest.raises(InputError, match="package no-such: found nothing installed, expected its name: pip install -e"):
        package_checks("no-such")
    offer({"systems": GOOD}, {"systems.mine": "brk.systems:S"})
    with pytest.raises(InputError, match=r"found 'judges\.mine', expected one of systems\.mine"):
        package_checks("brk", {"judges.mine": {}})


def test_entry_points_are_checked(offer: Offer) -> None:
    offer({"systems": GOOD}, {})
    assert named("it_offers_something") == [
        "found no entry point of a group proctor.…, expected some: [project.entry-points.'proctor.systems']"
    ]
    offer({"systems": GOOD}, {"sytems.mine": "brk.systems:S", "judges.mine": "brk.nothing:J"})
    wrong_group, not_there = named("entry_points_are_loaded")
    assert wrong_group.startswith("mine: found the group 'proctor.sytems', expected one of proctor.benchmarks")
    assert wrong_group.endswith("did you mean 'proctor.systems'?")
    assert not_there == "the judge 'mine' of brk (brk.nothing:J) can't be loaded: No module named 'brk.nothing'"
    offer({"systems": HEAD}, {"systems.random": "brk.systems:S"})
    with pytest.raises(CheckFailedError, match="the system 'random' is offered by brk"):
        run_checks(package_checks("brk"))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("open('log.txt', 'w').close()", "found the file 'log.txt' opened for writing, expected that it does nothing"),
        ("import socket; socket.getaddrinfo('localhost', 80)", "found a look-up of a network address"),
        ("import subprocess; subprocess.run(['true'])", "found another process"),
        ("import os; os.mkdir('new')", "found a new folder (new)"),
        ("import sklearn", "found sklearn imported by brk.systems, expected that it waits for the first call"),
        ("import nothing_of_this_name", "found that it can't be imported: ModuleNotFoundError"),
    ],
)
def test_importing_it_must_do_nothing(
    offer: Offer, code: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    offer({"systems": f"{code}\n{GOOD}"}, {"systems.mine": "brk.systems:S"})
    found = named("importing_does_nothing")
    assert any(told in fault for fault in found), found


def test_it_must_be_typed(offer: Offer, tmp_path: Path) -> None:
    offer({"systems": GOOD}, {"systems.mine": "brk.systems:S"})
    assert named("importing_does_nothing") == []
    assert named("it_is_typed") == ["brk: found no py.typed, expected one: type checkers ignore its types without it"]
    (tmp_path / "brk" / "py.typed").touch()
    assert named("it_is_typed") == []


def test_a_thing_that_cannot_be_made_is_one_fault(offer: Offer) -> None:
    offer({"metrics": "def m(text): return 1\n"}, {"scorers.m": "brk.metrics:m"})
    (check,) = [check for check in package_checks("brk") if check.subject == "scorers m"]
    assert check.name == "it_can_be_checked"
    finds(
        check, "found the parameter 'text', expected a factory without parameters, or a function with @proctor.metric"
    )


def test_validators_refuse_what_is_no_submission(data: Path, tmp_path: Path) -> None:
    for name in VALIDATORS.names():
        task = {"focus": data / "focus-toolkit", "mediqa-eval": data / "mediqa-eval"}.get(name)
        for check in validator_checks(name, data=task):
            passes(check)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("PluginReport({})", "a file that is empty: found a report that is ok, expected an InputError, or ok=False"),
        ("True", "a file that is missing: it returned bool, expected a PluginReport"),
        ("1 / 0", "an unknown option: it raised ZeroDivisionError"),
    ],
)
def test_faults_of_a_validator_are_found(offer: Offer, body: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VALIDATORS, "_known", {**VALIDATORS._known})
    monkeypatch.setattr(VALIDATORS, "_offered", None)
    offer({"checks": f"{HEAD}\ndef check(file, request): return {body}\n"}, {"validators.mine": "brk.checks:check"})
    (check,) = [check for check in package_checks("brk") if check.subject == "validator mine"]
    finds(check, told)
    monkeypatch.setattr(VALIDATORS, "_offered", None)


def test_an_example_must_name_its_kind_of_project(
    offer: Offer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from proctor_build.pipeline import PROJECT_KINDS

    monkeypatch.setattr(PROJECT_KINDS, "_known", {**PROJECT_KINDS._known})
    monkeypatch.setattr(PROJECT_KINDS, "_offered", None)
    example = tmp_path / "project.yaml"
    example.write_text("kind: rexsonovqa\n", encoding="utf-8")
    code = (
        "from pathlib import Path\nfrom proctor_build.pipeline import ProjectKind\n"
        f"KIND = ProjectKind('clips', 'Clips', (), Path({json.dumps(str(example))}))\n"
    )
    offer({"kinds": code}, {"project_kinds.clips": "brk.kinds:KIND"})
    (check,) = [check for check in package_checks("brk") if check.subject == "kind of project clips"]
    finds(check, "project.yaml: found the kind 'rexsonovqa', expected 'clips', of which it is the example")
    finds(check, "`stages`: found none, expected what a project does")


def test_our_kinds_of_projects_name_themselves() -> None:
    from proctor_build.kind_checks import kind_checks
    from proctor_build.pipeline import PROJECT_KINDS

    for name in PROJECT_KINDS.names():
        for check in kind_checks(name):
            passes(check)


def test_a_report_says_what_passed_and_what_did_not_apply() -> None:
    from proctor.testing import Check

    def skipped() -> list[str]:
        raise SkipTest("no data")

    report = run_checks([Check("system s", "a", list), Check("system s", "b", skipped)])
    assert report == CheckReport(("system s: a",), {"system s: b": "no data"})
