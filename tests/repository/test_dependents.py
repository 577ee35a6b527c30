"""A package's tests are run with those of what depends on it."""

from __future__ import annotations

import pytest

from tools.dependents import dependencies, dependents, main


@pytest.mark.parametrize(
    ("package", "found"),
    [
        ("proctor", {"proctor", "proctor-build", "proctor-challenge", "proctor-train", "proctor-web"}),
        ("proctor-build", {"proctor-build", "proctor-challenge", "proctor-web"}),
        ("proctor-web", {"proctor-challenge", "proctor-web"}),
        ("proctor-challenge", {"proctor-challenge"}),
        ("proctor-train", {"proctor-train"}),
    ],
)
def test_what_depends_on_a_package_is_tested_with_it(package: str, found: set[str]) -> None:
    assert dependents(package, dependencies()) == found


def test_the_folders_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("proctor-web") == 0
    assert capsys.readouterr().out == "packages/proctor-challenge/tests packages/proctor-web/tests tests\n"


def test_an_unknown_package_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("web") == 1
    assert capsys.readouterr().err == (
        "PACKAGE=web: found no such package, expected one of proctor, proctor-build, proctor-challenge, proctor-train, "
        "proctor-web\n"
    )
