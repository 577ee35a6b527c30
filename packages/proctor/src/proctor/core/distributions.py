"""The five distributions of Proctor, which of them brings a command, and what a missing one is told with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from proctor.core.errors import ConfigurationError

DISTRIBUTIONS: Mapping[str, str] = {
    "proctor": "proctor-eval",
    "proctor_build": "proctor-build",
    "proctor_web": "proctor-web",
    "proctor_challenge": "proctor-challenge",
    "proctor_train": "proctor-train",
}
"""The distribution of each package that is imported."""

COMMANDS_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "proctor_build": (
        "build new", "build run", "build status", "build table", "build focus", "build convert", "build repair",
    ),
    "proctor_web": (
        "serve site", "serve users", "review update", "review status", "review export",
        "review sample", "view",
    ),
    "proctor_challenge": (
        "challenge new", "challenge check", "challenge phase", "challenge status",
        "challenge submission", "challenge team", "challenge pack", "challenge try",
    ),
    "proctor_train": (
        "judge fit", "judge compare", "train answerer", "train generative-judge", "train classifier-judge",
    ),
}  # fmt: skip
"""The commands that the other packages bring, in the order of the help. They are found by their entry points; these names
say which package to install for a command that is not there."""


def is_own(module: str) -> bool:
    """Whether a module belongs to Proctor.

    >>> is_own("proctor_web.accounts"), is_own("proctor"), is_own("proctor_lamps")
    (True, True, False)
    """
    return module.partition(".")[0] in DISTRIBUTIONS


@cache
def package_folders() -> tuple[Path, ...]:
    """The folders of Proctor's own packages that are installed."""
    specs = (find_spec(package) for package in DISTRIBUTIONS)
    return tuple(Path(str(spec.origin)).resolve().parent for spec in specs if spec is not None)


def missing_package(package: str, what: str) -> ConfigurationError:
    """The error for a package of Proctor that is not installed, and that `what` needs.

    >>> print(missing_package("proctor_web", "proctor serve"))
    proctor serve needs the package proctor-web: pip install proctor-web
    """
    distribution = DISTRIBUTIONS[package]
    return ConfigurationError(f"{what} needs the package {distribution}: pip install {distribution}")


def need_package(package: str, what: str) -> None:
    """Raises `ConfigurationError` if a package of Proctor is not installed (see `missing_package`).

    >>> need_package("proctor", "proctor run")
    """
    if find_spec(package) is None:
        raise missing_package(package, what)


def missing_commands() -> dict[str, str]:
    """The commands whose package is not installed, each with that package.

    >>> missing_commands()  # where all are installed
    {}
    """
    gone = [package for package in COMMANDS_ELSEWHERE if find_spec(package) is None]
    return {words: package for package in gone for words in COMMANDS_ELSEWHERE[package]}
