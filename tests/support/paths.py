"""Where the parts of the repository lie."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("proctor", "proctor-build", "proctor-web", "proctor-challenge", "proctor-train")
"""The folders of the distributions, each with `src` and `tests`."""

SOURCES = {name: ROOT / "packages" / name / "src" for name in PACKAGES}
CORE = SOURCES["proctor"] / "proctor"


def modules() -> dict[str, Path]:
    """The files of all modules of the five distributions, by the modules' names."""
    found = {}
    for source in SOURCES.values():
        for file in sorted(source.rglob("*.py")):
            parts = file.relative_to(source).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found
