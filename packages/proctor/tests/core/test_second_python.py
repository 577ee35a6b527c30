"""Which Python the newest versions are tried on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import newest


def interpreter(path: Path, version: str, code: int = 0) -> Path:
    """A program that says that it is a Python of this version, or ends with another code."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One without any Python but that which runs."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def test_without_another_python_it_is_said(machine: Path) -> None:
    python, told = newest.second_python()
    assert python == Path(sys.executable)
    assert told.startswith("no Python of 3.13 or 3.12 here: the newest versions on Python 3.")


def test_the_newest_that_starts_is_taken(machine: Path) -> None:
    older = interpreter(machine / "bin" / "python3.12", "3.12.9")
    assert newest.second_python() == (older, "Python 3.12.9")
    interpreter(machine / "bin" / "python3.13", "pyenv: python3.13: command not found", 127)
    assert newest.second_python() == (older, "Python 3.12.9")
    kept = interpreter(machine / "pyenv" / "versions" / "3.13.0" / "bin" / "python3", "3.13.0")
    assert newest.second_python() == (kept, "Python 3.13.0")


def test_the_classifiers_name_what_is_tried() -> None:
    text = (newest.ROOT / "packages/proctor/pyproject.toml").read_text("utf-8")
    for version in ("3.11", *newest.VERSIONS):
        assert f'"Programming Language :: Python :: {version}"' in text
    for file in (*newest.CORE, *newest.SERVED):
        assert (newest.ROOT / file).is_file(), file


def test_the_tenth_patch_is_newer_than_the_second(machine: Path) -> None:
    versions = machine / "pyenv" / "versions"
    interpreter(versions / "3.13.2" / "bin" / "python3", "3.13.2")
    newer = interpreter(versions / "3.13.10" / "bin" / "python3", "3.13.10")
    assert newest.second_python() == (newer, "Python 3.13.10")


def test_one_that_makes_no_environment_is_not_taken(machine: Path) -> None:
    older = interpreter(machine / "bin" / "python3.12", "3.12.9")
    bare = interpreter(machine / "bin" / "python3.13", "3.13.1")
    bare.write_text('#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\necho 3.13.1\n')
    assert newest.second_python() == (older, "Python 3.12.9")
