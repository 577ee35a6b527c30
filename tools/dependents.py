"""The folders of tests of a package and of all packages that depend on it: `make test PACKAGE=proctor-web`.

python tools/dependents.py proctor-web      packages/proctor-challenge/tests packages/proctor-web/tests tests
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[1] / "packages"


def dependencies() -> dict[str, set[str]]:
    """Of each folder below `packages` those of Proctor's packages that it needs."""
    projects = {
        file.parent.name: tomllib.loads(file.read_text("utf-8"))["project"]
        for file in PACKAGES.glob("*/pyproject.toml")
    }
    folders = {project["name"]: folder for folder, project in projects.items()}
    return {
        folder: {folders[name] for name in map(_name, project["dependencies"]) if name in folders}
        for folder, project in projects.items()
    }


def _name(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement, maxsplit=1)[0]


def dependents(package: str, needed: Mapping[str, set[str]]) -> set[str]:
    """A package and all that depend on it.

    >>> sorted(dependents("web", {"core": set(), "web": {"core"}, "challenge": {"web"}}))
    ['challenge', 'web']
    """
    found = {package}
    while more := {one for one, needs in needed.items() if needs & found} - found:
        found |= more
    return found


def main(package: str) -> int:
    """Print the folders of tests. The exit code is 1 for an unknown package."""
    needed = dependencies()
    if package not in needed:
        sys.stderr.write(f"PACKAGE={package}: found no such package, expected one of {', '.join(sorted(needed))}\n")
        return 1
    print(*(f"packages/{one}/tests" for one in sorted(dependents(package, needed))), "tests")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
