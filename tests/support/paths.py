"""Where the parts of the repository lie."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("proctor", "proctor-build", "proctor-web", "proctor-challenge", "proctor-train")
"""The folders of the distributions, each with `src` and `tests`."""

SOURCES = {name: ROOT / "packages" / name / "src" for name in PACKAGES}
TESTED = [str(ROOT), *(str(ROOT / "packages" / name) for name in PACKAGES)]
"""Where `tests` is imported from, for `PYTHONPATH` of a process that a test starts."""

CORE = SOURCES["proctor"] / "proctor"


def modules() -> dict[str, Path]:
    """The files of all modules of the five distributions, by the modules' names."""
    found = {}
    for source in SOURCES.values():
        for file in sorted(source.rglob("*.py")):
            parts = file.relative_to(source).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def source_file(name: str) -> Path:
    """The file that pages and lists name: `runs/engine.py` of the core, `proctor_web/trail.py` of another package.

    >>> source_file("proctor_web/trail.py").is_file(), source_file("runs/engine.py").is_file()
    (True, True)
    """
    top = name.partition("/")[0].replace("_", "-")
    return SOURCES[top] / name if top in SOURCES else CORE / name


def source_name(file: Path) -> str:
    """The name of a source file (see `source_file`)."""
    if file.is_relative_to(CORE):
        return file.relative_to(CORE).as_posix()
    return next(file.relative_to(source).as_posix() for source in SOURCES.values() if file.is_relative_to(source))
