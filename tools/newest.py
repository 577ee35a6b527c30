"""Installs the wheels with the newest version of everything on a second Python, and tries them as a user would.

python tools/newest.py [--python PATH] [--short]

The Python is the newest from 3.12 to 3.13 on this machine (PATH, then pyenv), or the one that runs this, with a
sentence that says so. The wheel of the core is installed alone into a fresh environment outside the project, without
constraints: `proctor demo` runs, and commands of the other packages say what to install. Then, with the other wheels: a
benchmark of own questions with videos (`new`, `check`, `run`), a review and a challenge behind nginx with an upload of
5 MB, and the tests of the core, which --short leaves out. The exit code is 1 if anything fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.13", "3.12")
"""Tried in this order; the classifiers in pyproject.toml name them."""

PACKAGES = ("proctor", "proctor-build", "proctor-web", "proctor-challenge", "proctor-train")
BUILT_FROM = ("src", "pyproject.toml", "README.md", "LICENSE")
MORE = ("proctor-eval[postgres,plots,vision]", "proctor-challenge")
"""What is installed after the core: not `proctor-train`, whose PyTorch takes gigabytes."""

TESTERS = ("pytest>=9.1,<9.2", "pytest-xdist", "hypothesis", "httpx2")
LENIENT = ("-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning")
"""Python 3.13 tells of connections to SQLite that tests leave to the garbage collector; 3.11 does not."""

MISSING = {
    "build new somewhere": "proctor-build",
    "serve somewhere": "proctor-web",
    "challenge status somewhere": "proctor-challenge",
    "train answerer": "proctor-train",
    "demo --challenge": "proctor-challenge",
}
"""Commands of other packages, each with the one that it needs."""

SERVED = ("packages/proctor-challenge/tests/pages/test_nginx.py",)
CORE = (
    "packages/proctor/tests/core/test_files.py",
    "packages/proctor/tests/core/test_formats.py",
    "packages/proctor/tests/core/test_registry.py",
    "packages/proctor/tests/core/test_replies.py",
    "packages/proctor/tests/media/test_pyav.py",
    "packages/proctor/tests/media/test_audio.py",
    "packages/proctor/tests/media/test_clip_files.py",
    "packages/proctor/tests/media/test_container.py",
    "packages/proctor/tests/media/test_conditions.py",
    "packages/proctor/tests/media/test_corrected_timestamps.py",
    "packages/proctor/tests/media/test_damaged_video.py",
    "packages/proctor/tests/media/test_frame_store.py",
    "packages/proctor/tests/media/test_picture_order.py",
    "packages/proctor/tests/media/test_redaction.py",
    "packages/proctor/tests/runs/test_engine.py",
    "packages/proctor/tests/runs/test_store.py",
    "packages/proctor/tests/results/test_results.py",
    "packages/proctor/tests/results/test_leaderboard.py",
    "packages/proctor-web/tests/web/test_readings.py",
    "packages/proctor-web/tests/web/test_uploads.py",
)


def second_python() -> tuple[Path, str]:
    """The newest Python of `VERSIONS` that starts, and a sentence about it."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for version in VERSIONS:
        on_path = shutil.which(f"python{version}")
        kept = sorted((pyenv / "versions").glob(f"{version}.*/bin/python3"), key=_patch, reverse=True)
        for candidate in (*([Path(on_path)] if on_path else []), *kept):
            # Debian's own Python has no ensurepip without python3-venv: it makes no environment.
            needed = "import ensurepip, ssl, sqlite3, venv, sys; print(sys.version.split()[0])"
            command = [str(candidate), "-c", needed]
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
            if done.returncode == 0 and done.stdout.startswith(f"{version}."):
                return candidate, f"Python {done.stdout.strip()}"
    own = ".".join(map(str, sys.version_info[:3]))
    return Path(sys.executable), f"no Python of {' or '.join(VERSIONS)} here: the newest versions on Python {own} alone"


def _patch(python: Path) -> int:
    """The last number of the version in a path of pyenv; -1 for one that has none, such as 3.13-dev."""
    last = python.parents[1].name.rpartition(".")[2]
    return int(last) if last.isdecimal() else -1


class Trial:
    """A fresh environment in a folder outside the project, and commands run in it."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder, self.python = folder, folder / "environment" / "bin" / "python"
        plain = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        inside = f"{self.python.parent}{os.pathsep}{plain['PATH']}"
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.environment = plain | one_thread | {"PATH": inside, "PROCTOR_CACHE": str(folder / "cache")}
        self.run("make an environment", [str(python), "-m", "venv", str(folder / "environment")])

    def run(self, what: str, command: Sequence[str], *, within: Path | None = None) -> None:
        """Runs a command to its end and prints how long it took. Raises `SystemExit` where it fails, with its output."""
        started = time.monotonic()
        done = subprocess.run(  # noqa: S603 - our own words
            command,
            cwd=within or self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{what}: exit code {done.returncode}\n{' '.join(command)}\n{done.stdout[-8000:]}")
        last = done.stdout.strip().splitlines()[-1:] if "pytest" in command else []
        print(f"{what}: {time.monotonic() - started:.0f} s", *last, flush=True)

    def pip(self, what: str, *given: str) -> None:
        """Runs pip of the environment."""
        pip = [str(self.python), "-m", "pip", "--disable-pip-version-check"]
        self.run(what, [*pip, *given[:1], "--quiet", *given[1:]])

    def test(self, what: str, files: Sequence[str], *more: str) -> None:
        """Runs the files of tests from a copy, which lies where the installed package is the only one."""
        copy = self.folder / "project"
        if not copy.is_dir():
            copy.mkdir()
            for name in ("pyproject.toml", "conftest.py"):
                shutil.copy(ROOT / name, copy)
            for name in ("tests", "tools", "docs", *(f"packages/{package}/tests" for package in PACKAGES)):
                shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        pytest = [str(self.python), "-m", "pytest", "--quiet", *LENIENT, *more, *files]
        self.run(what, pytest, within=copy)


def build_wheels(folder: Path) -> Path:
    """Builds the wheels from copies of what they are built from, so that nothing is left in the project. Returns the
    folder with the wheels."""
    wheels = folder / "wheels"
    for package in PACKAGES:
        source = folder / "source" / package
        source.mkdir(parents=True)
        for name in BUILT_FROM:
            there = ROOT / "packages" / package / name
            if there.is_dir():
                shutil.copytree(there, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy(there, source)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--wheel-dir", str(wheels), str(source)], check=True)  # noqa: S603 - our own words
    return wheels


def core_alone(trial: Trial, proctor: str) -> None:
    """The core does what `make demo` shows, and says what to install for the rest. Raises `SystemExit` where not."""
    trial.run("the core alone: proctor demo", [proctor, "demo", "--videos", "2", "--out", "demo"])
    for words, package in MISSING.items():
        command = [proctor, *words.split()]
        told = subprocess.run(  # noqa: S603 - our own words
            command, cwd=trial.folder, env=trial.environment, capture_output=True, text=True, check=False
        )
        wanted = f"needs the package {package}: pip install {package}\n"
        if told.returncode != 1 or not told.stderr.endswith(wanted):
            raise SystemExit(f"proctor {words}: exit code {told.returncode}, {told.stderr!r}, expected {wanted!r}")
    print("the core alone: the other packages' commands say what to install", flush=True)


def tried(python: Path, folder: Path, *, short: bool) -> None:
    """Installs the wheels and tries them. Raises `SystemExit` for the first thing that fails."""
    trial, wheels = Trial(folder, python), build_wheels(folder)
    (core,) = wheels.glob("proctor_eval-*.whl")
    proctor = str(trial.python.parent / "proctor")
    trial.pip("install the newest of the core", "install", "--no-compile", str(core))
    core_alone(trial, proctor)
    others = ["install", "--no-compile", "--find-links", str(wheels), *MORE, *TESTERS]
    trial.pip("install the newest of everything", *others)
    shown = "import av, numpy, proctor; print(f'av {av.__version__}, numpy {numpy.__version__}, {proctor.__file__}')"
    print(subprocess.check_output([trial.python, "-c", shown], text=True, env=trial.environment, cwd=folder).strip())  # noqa: S603
    found = "from proctor.constraints import CONSTRAINTS; assert CONSTRAINTS.is_file()"
    trial.run("the tested versions travel along", [str(trial.python), "-c", found])
    trial.run("proctor new", [proctor, "new", "own"])
    trial.run("proctor check", [proctor, "check", "own", "--out", "preview.html"])
    asked = ["--system", "random", "--condition", "video", "--condition", "text-only"]
    trial.run("proctor run", [proctor, "run", "own", *asked, "--store", "own.db"])
    trial.test("a review and a challenge behind nginx", SERVED)
    if not short:
        trial.test("tests of the core", CORE, "-m", "not slow", "--numprocesses", "2", "--dist", "loadgroup")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="the Python to install it on")
    parser.add_argument("--short", action="store_true", help="without the tests of the core")
    given = parser.parse_args()
    given_python = given.python and given.python.absolute()
    python, told = (given_python, str(given_python)) if given_python else second_python()
    print(told, flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="proctor-newest-", ignore_cleanup_errors=True) as folder:
        tried(python, Path(folder), short=given.short)
    print(f"all of it works; {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
