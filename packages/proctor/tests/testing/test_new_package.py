"""`proctor new package`: what it writes is typed, clean, tested and runs as it stands; and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor import InputError
from proctor.core import UsageError
from proctor.testing import new_package
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor as run_proctor
from tests.support.program import proctor_process

NAME, MODULE = "lap-kit", "lap_kit"
SOURCE = Path(proctor.__file__).parents[1]
FILES = {
    "README.md", "pyproject.toml", "example/answers.csv", "example/off-1.png", "example/off-2.png", "example/on-1.png",
    "example/on-2.png", "example/questions.csv", "tests/test_package.py", f"src/{MODULE}/__init__.py",
    f"src/{MODULE}/benchmark.py", f"src/{MODULE}/condition.py", f"src/{MODULE}/judge.py", f"src/{MODULE}/judge.txt.j2",
    f"src/{MODULE}/{NAME}.txt.j2", f"src/{MODULE}/metric.py", f"src/{MODULE}/py.typed", f"src/{MODULE}/system.py",
}  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's folder, as it was written."""
    return new_package(NAME, tmp_path_factory.mktemp("new") / NAME)


@pytest.fixture(scope="module")
def installed(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which a wheel of the package was installed."""
    site = tmp_path_factory.mktemp("site")
    run("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", site, project)
    return site


def run(*words: str | Path, folder: Path | None = None, path: str = "") -> str:
    """What this Python prints, in a folder, with these modules."""
    environment = os.environ | {"PYTHONPATH": path, "MYPYPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_files_are_whole(project: Path) -> None:
    written = {str(file.relative_to(project)) for file in project.rglob("*") if file.is_file()}
    assert written == FILES | {name for name in written if name.startswith("build/") or ".egg-info/" in name}
    for name in FILES - {name for name in FILES if name.endswith(".png")}:
        text = (project / name).read_text(encoding="utf-8")
        assert "[[" not in text.replace("[[project", "")
        assert text.endswith("\n") or not text


def test_the_template_is_in_the_wheel_of_proctor() -> None:
    """Its folders are no packages of Python: they are found as namespaces, with the patterns of package data."""
    build = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    setuptools: Any = import_module("setuptools")  # it has no types
    packages, patterns = setuptools.find_namespace_packages(where=str(SOURCE)), build["package-data"]["*"]
    template = [file for file in (SOURCE / "proctor" / "testing" / "template").rglob("*") if file.is_file()]
    assert len(template) == len(FILES) - 4  # the pictures are drawn
    for file in template:
        assert ".".join(file.parent.relative_to(SOURCE).parts) in packages
        assert any(file.match(pattern) for pattern in patterns), file


def test_ruff_finds_nothing(project: Path) -> None:
    assert run("-m", "ruff", "check", "--no-cache", ".", folder=project) == "All checks passed!\n"


def test_mypy_finds_nothing_in_it(project: Path) -> None:
    cache = SOURCE.parent / ".mypy_cache" / "packages"  # what Proctor's own modules cost is paid once
    said = run("-m", "mypy", "--strict", "--cache-dir", cache, folder=project, path=str(SOURCE))
    assert said == "Success: no issues found in 7 source files\n"


def test_its_tests_pass(project: Path, installed: Path) -> None:
    path = os.pathsep.join([str(installed), str(SOURCE)])
    said = run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=project, path=path)
    assert " passed" in said
    assert "failed" not in said


def test_it_runs_as_it_stands(project: Path, installed: Path, tmp_path: Path) -> None:
    where = {"PYTHONPATH": os.pathsep.join([str(installed), str(SOURCE)])}
    store, example = tmp_path / "runs.db", project / "example"
    done = proctor_process(
        "run", NAME, "--data", example, "--media", example, "--system", f"{NAME}-brightness", "--condition", "video",
        "--condition", f"{NAME}-blurred", "--store", store, "--cache", tmp_path / "frames", **where,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Asked 6: 6 answered" in done.stdout
    done = proctor_process(
        "import", NAME, example / "answers.csv", "--data", example, "--name", "night", "--store", store, **where
    )
    assert done.returncode == 0, done.stderr
    with FaultyServer('{"reason": "Both name it.", "same": true}') as server:
        done = proctor_process(
            "score", NAME, "--judge", f"{NAME}-same", "--model", "judge", "--base-url", server.url, "--system", "night",
            "--store", store, **where,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "You are a senior surgeon." in server.requests[0].text
    done = proctor_process("score", NAME, "--metric", f"{MODULE}_short", "--store", store, **where)
    assert done.returncode == 0, done.stderr
    done = proctor_process("results", NAME, "--store", store, "--format", "json", **where)
    found = {(row["system"], row["condition"], row["metric"]): row["value"] for row in json.loads(done.stdout)}
    assert found[f"{NAME}-brightness", f"{NAME}-blurred", "accuracy"] == 1.0
    assert found["night", "video", f"{NAME}-same"] == 1.0
    assert found["night", "video", f"{MODULE}_short"] == 1.0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Lap-Kit", "NAME: found 'Lap-Kit', expected small letters and digits, with hyphens between them"),
        ("lap_kit", "expected small letters and digits"),
        ("-kit", "expected small letters and digits"),
        ("../kit", "expected small letters and digits"),
        ("", "expected small letters and digits"),
        ("class", "NAME: found 'class', expected a name that Python does not use itself"),
        ("json", "expected a name that Python does not use itself"),
        (
            "numpy",
            "NAME: found 'numpy', which is that of the installed package numpy, expected one that nothing has yet",
        ),
        ("proctor", "which is that of the module proctor"),
        ("rexsonovqa", "which is that of the benchmark rexsonovqa"),
    ],
)
def test_a_name_that_no_package_can_have_is_refused(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        new_package(name, tmp_path / "new")
    assert told in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="found something there already, expected a new or an empty folder"):
        new_package(NAME, tmp_path / "new")
    assert [file.name for file in tmp_path.rglob("*")] == ["new", "mine.txt"]


def test_nothing_is_left_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(light: int) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("proctor.testing.package_template._drawn", full)
    with pytest.raises(InputError, match="found no space left on device"):
        new_package(NAME, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_comes_next(tmp_path: Path) -> None:
    done = run_proctor("new", "package", tmp_path / NAME)
    assert (done.returncode, done.stdout) == (0, f"18 files in {tmp_path / NAME}\n")
    assert f"Next: pip install -e {tmp_path / NAME}" in done.stderr
    done = run_proctor("new", "package", tmp_path / "Kit")
    assert (done.returncode, done.stderr) == (
        2,
        "proctor: NAME: found 'Kit', expected small letters and digits, with hyphens between them\n",
    )
    said = json.loads(run_proctor("new", "package", tmp_path / "json" / NAME, "--format", "json").stdout)
    assert (said["name"], set(said["files"])) == (NAME, FILES)


def test_without_a_kind_it_is_an_example_of_questions(tmp_path: Path) -> None:
    for words in (["new"], ["new", "questions"], ["new", "--format", "json"]):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        done = run_proctor(*words, folder)
        assert done.returncode == 0, done.stderr
        assert (folder / "questions.csv").is_file()


@pytest.mark.parametrize("kind", ["package", "questions", "simulated"])
def test_a_kind_alone_lacks_its_folder(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_proctor("new", kind)
    told = f"proctor: DIR is missing. Give a new folder: proctor new {kind} DIR\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)
    assert list(tmp_path.iterdir()) == []


def test_another_kind_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    done = run_proctor("new", "benchmark", tmp_path / "mine")
    assert (done.returncode, done.stderr) == (
        2,
        "proctor: KIND 'benchmark' is unknown: choose one of package, questions, simulated\n",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--videos 3", "--seconds 9", "--questions 1", "--narrated", "--seed 1"])
@pytest.mark.parametrize("kind", ["package", "questions"])
def test_what_only_the_simulation_takes_is_refused(kind: str, option: str, tmp_path: Path) -> None:
    done = run_proctor("new", kind, tmp_path / "lap-kit", *option.split())
    name = option.partition(" ")[0]
    told = f"proctor: {name} has no part here: it goes with proctor new simulated DIR\n"
    assert (done.returncode, done.stderr) == (2, told)
    assert list(tmp_path.iterdir()) == []


def test_simulated_videos_are_as_many_and_as_long_as_was_asked(tmp_path: Path) -> None:
    done = run_proctor(
        *("new", "simulated", tmp_path / "sim", "--videos", "2", "--seconds", "9"),
        *("--questions", "3", "--narrated", "--seed", "7"),
    )
    assert (done.returncode, done.stdout) == (0, f"2 simulated videos in {tmp_path / 'sim'}\n")
    manifest = json.loads((tmp_path / "sim" / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["seed"], len(manifest["videos"])) == (7, 2)
    assert {video["seconds"] for video in manifest["videos"]} == {9.0}
    asked = json.loads((tmp_path / "sim" / "questions.json").read_text(encoding="utf-8"))
    assert len(asked["questions"]) == 6
    assert len(list((tmp_path / "sim").rglob("*.vtt"))) == 2
