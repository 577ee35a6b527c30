"""The package in CONTRIBUTING works as it stands there: found by entry points, run, imported, scored."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from PIL import Image

from tests.support.faulty_server import FaultyServer, Request
from tests.support.markdown import blocks
from tests.support.paths import SOURCES
from tests.support.program import proctor_forked as proctor
from tools.docs import ROOT

QUESTIONS = """id,patient,theatre,picture,question,answer
q1,p1,east,on-1.png,Is the lamp on?,yes
q2,p1,east,off-1.png,Is the lamp on?,no
q3,p2,west,on-2.png,Is the lamp on?,yes
q4,p3,west,off-2.png,What stands beside the lamp?,the anaesthesia machine
"""
ANSWERS = """id,text
q1,Answer: yes
q2,Answer: yes
q3,hard to say
q4,the machine for anaesthesia
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as an installer would leave it: its modules, and its entry points."""
    site = tmp_path_factory.mktemp("site")
    for block in blocks(ROOT / "CONTRIBUTING.md"):
        titled = re.search(r'title="([^"]+)"', block.info)
        if titled:
            file = site / titled[1]
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.body, encoding="utf-8")
    for name in ("__init__.py", "py.typed"):
        (site / "hospital" / name).touch()
    project = tomllib.loads((site / "pyproject.toml").read_text("utf-8"))["project"]
    installed = site / f"{project['name']}-{project['version']}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    points = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items())
        for group, names in project["entry-points"].items()
    ]
    (installed / "entry_points.txt").write_text("\n".join(points), encoding="utf-8")
    return site


@pytest.fixture
def theatre(tmp_path: Path) -> Path:
    folder = tmp_path / "theatre"
    folder.mkdir()
    (folder / "questions.csv").write_text(QUESTIONS, encoding="utf-8")
    for name, light in (("on-1", 240), ("on-2", 200), ("off-1", 10), ("off-2", 30)):
        Image.new("RGB", (64, 48), (light, light, light)).save(folder / f"{name}.png")
    return folder


def values(package: Path, store: Path, *more: str) -> dict[tuple[str, str, str], float]:
    """(system, condition, metric) to value, floor left out."""
    done = proctor("results", "lamps", "--store", store, "--format", "json", *more, PYTHONPATH=str(package))
    assert done.returncode == 0, done.stderr
    return {(row["system"], row["condition"], row["metric"]): row["value"] for row in json.loads(done.stdout)}


@pytest.mark.parametrize(
    ("kind", "name"),
    [("benchmarks", "lamps"), ("systems", "brightness"), ("judges", "same"), ("conditions", "blurred")],
)
def test_what_a_package_adds_is_listed(package: Path, kind: str, name: str) -> None:
    done = proctor("list", kind, "--format", "json", PYTHONPATH=str(package))
    assert done.returncode == 0, done.stderr
    listed = {row["name"]: row["summary"] for row in json.loads(done.stdout)}
    assert listed[name]


def test_its_system_answers_its_benchmark_under_its_condition(package: Path, theatre: Path, tmp_path: Path) -> None:
    store, cache = tmp_path / "lamps.db", tmp_path / "frames"
    conditions = [word for name in ("video", "blurred", "black", "text-only") for word in ("--condition", name)]
    done = proctor(
        "run", "lamps", "--data", theatre, "--media", theatre, "--system", "brightness", *conditions,
        "--store", store, "--cache", cache, PYTHONPATH=str(package),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Asked 12: 9 answered, 3 refused" in done.stdout
    found = values(package, store, "--system", "brightness")
    assert found == {
        ("brightness", "video", "accuracy"): 1.0,
        ("brightness", "blurred", "accuracy"): 1.0,
        ("brightness", "black", "accuracy"): pytest.approx(1 / 3),
        ("brightness", "text-only", "accuracy"): 0.0,
        ("brightness", "video", "as_asked"): 1.0,
        ("brightness", "blurred", "as_asked"): 1.0,
        ("brightness", "black", "as_asked"): 1.0,
        ("brightness", "text-only", "as_asked"): 0.0,
    }


def test_its_judge_marks_imported_answers_once(package: Path, theatre: Path, tmp_path: Path) -> None:
    store, answers = tmp_path / "lamps.db", tmp_path / "answers.csv"
    answers.write_text(ANSWERS, encoding="utf-8")
    done = proctor(
        "import", "lamps", answers, "--data", theatre, "--name", "night-shift", "--store", store,
        PYTHONPATH=str(package),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    def reply(request: Request) -> str:
        assert "1. the anaesthesia machine\n2. <<<ANSWER\nthe machine for anaesthesia\nANSWER>>>" in request.text
        return '{"same": true}'

    with FaultyServer(reply) as server:
        for _ in range(2):
            done = proctor(
                "score", "lamps", "--judge", "same", "--model", "judge", "--base-url", server.url,
                "--system", "night-shift", "--store", store, PYTHONPATH=str(package),
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
    assert server.count == 1
    found = values(package, store, "--system", "night-shift")
    assert found == {
        ("night-shift", "video", "accuracy"): pytest.approx(1 / 3),
        ("night-shift", "video", "as_asked"): pytest.approx(2 / 3),
        ("night-shift", "video", "same"): 1.0,
    }


def test_its_metric_scores_imported_answers(package: Path, theatre: Path, tmp_path: Path) -> None:
    store, answers = tmp_path / "lamps.db", tmp_path / "answers.csv"
    answers.write_text(ANSWERS, encoding="utf-8")
    code = f"""
import proctor
made = proctor.import_answers("lamps", {str(answers)!r}, name="night-shift", data={str(theatre)!r}, store={str(store)!r})
print(proctor.score({str(store)!r}, metrics="names_the_machine", systems="night-shift").by)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "{'names_the_machine': 1}\n"
    assert values(package, store, "--system", "night-shift")["night-shift", "video", "names_the_machine"] == 1.0


def test_its_metrics_over_items_are_shown(package: Path, theatre: Path, tmp_path: Path) -> None:
    """By hand, of yes, no, yes answered yes, yes and nothing readable: F1 of yes 2/4, of no 0."""
    store, answers = tmp_path / "lamps.db", tmp_path / "answers.csv"
    answers.write_text(ANSWERS, encoding="utf-8")
    done = proctor(
        "import", "lamps", answers, "--data", theatre, "--name", "night-shift", "--store", store,
        PYTHONPATH=str(package),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = values(package, store, "--metric", "macro_f1", "--metric", "share_of_yes", "--system", "night-shift")
    assert found == {
        ("night-shift", "video", "macro_f1"): pytest.approx(0.25),
        ("night-shift", "video", "share_of_yes"): pytest.approx(2 / 3),
    }


def test_its_system_asks_a_model_twice(package: Path, theatre: Path, tmp_path: Path) -> None:
    def reply(request: Request) -> str:
        return "A lamp shines." if "Describe what the pictures show." in request.text else "Answer: yes"

    store = tmp_path / "lamps.db"
    with FaultyServer(reply) as server:
        done = proctor(
            "run", "lamps", "--data", theatre, "--media", theatre, "--system", "described", "--model", "reader",
            "--base-url", server.url, "--condition", "video", "--limit", "2", "--store", store,
            "--cache", tmp_path / "frames", PYTHONPATH=str(package),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        second = [request.text for request in server.requests if "A lamp shines." in request.text]
    assert (server.count, len(second)) == (4, 2)
    assert all(re.search(r"Is the lamp on\?|What stands beside the lamp\?", text) for text in second)


@pytest.mark.parametrize(
    ("judge", "said", "marks"),
    [
        ("correct_and_short", '{"correct": true, "short": 3}', {"correct": 1.0, "short": 3.0}),
        ("strict", '{"same": false}', {"complete": 0.0}),
    ],
)
def test_its_judges_mark(
    package: Path, theatre: Path, tmp_path: Path, judge: str, said: str, marks: dict[str, float]
) -> None:
    store, answers = tmp_path / "lamps.db", tmp_path / "answers.csv"
    answers.write_text(ANSWERS, encoding="utf-8")
    where = {"PYTHONPATH": str(package)}
    proctor("import", "lamps", answers, "--data", theatre, "--name", "night-shift", "--store", store, **where)

    def reply(request: Request) -> str:
        assert "<<<ANSWER\nthe machine for anaesthesia\nANSWER>>>" in request.text
        assert ("You are a senior surgeon." in request.text) == (judge == "correct_and_short")
        return said

    with FaultyServer(reply) as server:
        done = proctor(
            "score", "lamps", "--judge", judge, "--model", "judge", "--base-url", server.url, "--store", store, **where
        )
        assert done.returncode == 0, done.stderr
    assert server.count == 1
    found = values(package, store, *(word for name in marks for word in ("--metric", name)))
    assert found == {("night-shift", "video", name): value for name, value in marks.items()}


def test_its_prompt_is_what_a_model_reads(package: Path, theatre: Path, tmp_path: Path) -> None:
    with FaultyServer("Answer: yes") as server:
        done = proctor(
            "run", "lamps", "--data", theatre, "--media", theatre, "--model", "reader", "--base-url", server.url,
            "--limit", "1", "--store", tmp_path / "lamps.db", "--cache", tmp_path / "frames", PYTHONPATH=str(package),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (request,) = server.requests
    assert "You look after the lamps of an operating theatre." in request.text
    assert "Is the lamp on?" in request.text


def test_its_reader_refuses_unknown_ids(package: Path, theatre: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.csv"
    answers.write_text("id,text\nq9,Answer: yes\n", encoding="utf-8")
    done = proctor(
        "import", "lamps", answers, "--data", theatre, "--name", "night-shift", "--store", tmp_path / "new.db",
        PYTHONPATH=str(package),
    )  # fmt: skip
    assert done.returncode == 1
    hint, said = done.stderr.splitlines()
    assert said == f"proctor: {answers}: row 2: found id 'q9', expected the id of a question"
    assert "--from (proctor list formats)" in hint
    assert not (tmp_path / "new.db").exists()


def test_its_reader_refuses_two_answers_to_one_question(package: Path, theatre: Path, tmp_path: Path) -> None:
    """The text of the first was shown beside the score of the last."""
    answers = tmp_path / "night.csv"
    answers.write_text("id,text\nq1,Answer: no\nq1,Answer: yes\nq2,Answer: no\n", encoding="utf-8")
    done = proctor(
        "import", "lamps", answers, "--data", theatre, "--name", "night", "--store", tmp_path / "new.db",
        PYTHONPATH=str(package),
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"proctor: {answers}: row 3: found id 'q1' again, expected one answer to each question"
    )
    assert not (tmp_path / "new.db").exists()


def run(*words: str, folder: Path, path: str) -> str:
    """What this Python prints, in a folder, with these modules."""
    environment = os.environ | {"PYTHONPATH": path, "MYPYPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_own_test_passes(package: Path, theatre: Path) -> None:
    path = os.pathsep.join([str(package), *map(str, SOURCES.values())])
    test = str(package / "test_hospital.py")
    said = run(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(package),
        test,
        folder=theatre.parent,
        path=path,
    )
    assert " passed" in said
    assert "failed" not in said


def test_its_types_are_right(package: Path) -> None:
    path = os.pathsep.join([str(package), *map(str, SOURCES.values())])
    cache = str(ROOT / ".mypy_cache" / "packages")
    said = run("-m", "mypy", "--strict", "--cache-dir", cache, "-p", "hospital", folder=package, path=path)
    assert said.startswith("Success: no issues found in ")
