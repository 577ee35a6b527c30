"""A package that declares wrongly, or whose code fails: one line names it and the cause, and nothing else breaks."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from proctor.core import BENCHMARKS, ProctorError, Registry, registry
from proctor.judges import JUDGES
from proctor.media import CONDITIONS
from proctor.metrics import SCORERS
from proctor.systems import SYSTEMS
from tests.support.program import proctor_forked as proctor

GROUPS = {
    "benchmark": "benchmarks",
    "system": "systems",
    "condition": "conditions",
    "judge": "judges",
    "metric": "scorers",
}
MODULES = {
    "syntax": "def broken(:\n",
    "raises": "raise ValueError('the table\\nis broken')\n",
    "leaves": "import sys; sys.exit(3)\n",
    "number": "x = 5\n",
    "nothing": "def x(**_): return None\n",
}
CAUSES = {
    "syntax": "can't be loaded: invalid syntax (syntax.py, line 1)",
    "raises": "can't be loaded: ValueError: the table is broken (raises.py, line 1)",
    "leaves": "can't be loaded: SystemExit: 3 (leaves.py, line 1)",
    "missing": "can't be loaded: No module named 'clinic.missing'",
    "number": "found int, expected ",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with a package `clinic` that offers nothing yet, and a folder of questions."""
    (tmp_path / "clinic").mkdir()
    for name, text in {"__init__": "", **MODULES}.items():
        (tmp_path / "clinic" / f"{name}.py").write_text(text)
    (tmp_path / "theatre").mkdir()
    rows = [f"q{n},p{n},p.png,Is the lamp on?,{answer}" for n, answer in enumerate(["yes", "no", "yes"])]
    (tmp_path / "theatre" / "questions.csv").write_text("id,group,media,question,answer\n" + "\n".join(rows) + "\n")
    Image.new("RGB", (32, 32), "white").save(tmp_path / "theatre" / "p.png")
    return tmp_path


def offered(site: Path, group: str, name: str, value: str) -> dict[str, str]:
    """The environment in which the package is installed, and offers one thing."""
    installed = site / "clinic-1.dist-info"
    installed.mkdir(exist_ok=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: clinic\nVersion: 1\n")
    (installed / "entry_points.txt").write_text(f"[proctor.{group}]\n{name} = {value}\n")
    return {"PYTHONPATH": str(site)}


@pytest.mark.parametrize("module", CAUSES)
@pytest.mark.parametrize("known", [BENCHMARKS, SYSTEMS, CONDITIONS, JUDGES, SCORERS], ids=lambda one: one.group)
def test_what_can_not_be_loaded_is_told_with_its_package(
    site: Path, monkeypatch: pytest.MonkeyPatch, known: Registry[Any], module: str
) -> None:
    point = EntryPoint("mine", f"clinic.{module}:x", known.group)
    vars(point)["dist"] = SimpleNamespace(name="clinic")
    monkeypatch.setattr(registry, "entry_points", lambda **_: [point])
    monkeypatch.setattr(known, "_offered", None)
    monkeypatch.syspath_prepend(str(site))
    for asked in (known.get, known.summary):
        for name in [one for one in sys.modules if one.partition(".")[0] == "clinic"]:
            del sys.modules[name]
        with pytest.raises(ProctorError) as told:
            asked("mine")
        assert f" 'mine' of clinic (clinic.{module}:x)" in str(told.value)
        assert CAUSES[module] in str(told.value)


def test_a_broken_package_breaks_no_other_command(site: Path) -> None:
    where = offered(site, "conditions", "mine", "clinic.raises:x")
    run: list[str | Path] = ["run", site / "theatre", "--system", "random", "--store", site / "s.db"]
    done = proctor(*run, "--condition", "mine", **where)
    assert done.returncode == 1
    assert done.stderr == (
        "proctor: the condition 'mine' of clinic (clinic.raises:x) can't be loaded: ValueError: the table is broken "
        "(raises.py, line 1)\n"
    )
    assert proctor(*run, **where).returncode == 0


def test_a_broken_package_stops_no_list(site: Path) -> None:
    where = offered(site, "conditions", "mine", "clinic.raises:x")
    with (site / "clinic-1.dist-info" / "entry_points.txt").open("a") as points:
        points.write("[proctor.corpus_metrics]\nours = clinic.leaves:x\n[proctor.systems]\nlooks = clinic.syntax:x\n")
    faults = (
        "the condition 'mine' of clinic (clinic.raises:x) can't be loaded: ValueError: the table is broken ",
        "the metric over items 'ours' of clinic (clinic.leaves:x) can't be loaded: SystemExit: 3 ",
        "the system 'looks' of clinic (clinic.syntax:x) can't be loaded: invalid syntax (syntax.py, line 1)",
    )
    done = proctor("list", "--format", "csv", **where)
    assert done.returncode == 0
    for row in ("conditions,text-only", "scorers,mcc", "systems,random"):
        assert f"\n{row}," in done.stdout
    for fault in faults:
        assert done.stderr.count(fault) == 1


@pytest.mark.parametrize(
    ("kind", "needed"), [("system", "name, settings, supports, answer"), ("metric", "name, metrics, applies, score")]
)
def test_what_a_factory_returns_is_checked(site: Path, kind: str, needed: str) -> None:
    where = offered(site, GROUPS[kind], "mine", "clinic.nothing:x")
    proctor("run", site / "theatre", "--system", "random", "--store", site / "s.db")
    used: list[str | Path] = (
        ["run", site / "theatre", "--system", "mine"] if kind == "system" else ["score", "theatre", "--metric", "mine"]
    )
    done = proctor(*used, "--store", site / "s.db", **where)
    assert done.stderr.splitlines()[-1] == (
        f"proctor: the {kind} 'mine' of clinic (clinic.nothing:x): it returned NoneType, expected an object with "
        f"{needed} (missing: {needed})"
    )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def x(count: Unknown): pass", "can't be loaded: NameError: name 'Unknown' is not defined"),
        ("def x(count: list[dict[str, int]]): pass", "failed: "),
    ],
)
def test_a_broken_command_breaks_no_other_of_its_group(site: Path, code: str, said: str) -> None:
    (site / "clinic" / "command.py").write_text(code + "\n")
    where = offered(site, "commands", "build.mine", "clinic.command:x")
    done = proctor("build", "mine", "--out", site, "-x", **where)
    *_, line = done.stderr.splitlines()
    assert line.startswith("proctor: the command 'build.mine' of clinic (clinic.command:x)")
    assert said in line
    made = proctor("build", "new", site / "project", "--kind", "focus", **where)
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("def paint(self, jpeg): raise ValueError('lens')", "ValueError: lens (blurred.py, line 4)"),
        ("def paint(self, jpeg): return None", "paint returned NoneType, expected bytes"),
        ("def arrange(self, slots, scene): return {}['lens']", "KeyError: 'lens' (blurred.py, line 4)"),
    ],
)
def test_a_fault_of_a_condition_is_no_wrong_answer(site: Path, method: str, said: str) -> None:
    (site / "clinic" / "blurred.py").write_text(
        f"from proctor.media import Condition\nclass Blurred(Condition):\n    summary = 'blurred'\n    {method}\nX = Blurred()\n"
    )
    (site / "clinic" / "looks.py").write_text("import proctor\n@proctor.system()\ndef looks(frames): return 'yes'\n")
    where = offered(site, "conditions", "mine", "clinic.blurred:X")
    with (site / "clinic-1.dist-info" / "entry_points.txt").open("a") as points:
        points.write("[proctor.systems]\nlooks = clinic.looks:looks\n")
    run: list[str | Path] = [
        "run",
        site / "theatre",
        "--system",
        "looks",
        "--condition",
        "mine",
        "--store",
        site / "s.db",
    ]
    done = proctor(*run, **where)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"proctor: condition mine, item 'q0': {said}"


def test_a_reader_that_fails_is_told_in_one_line_with_its_package(site: Path) -> None:
    (site / "clinic" / "lamps.py").write_text(
        "from proctor.core import BenchmarkReader\nclass Lamps(BenchmarkReader):\n    name = 'lamps'\n    summary = 'Lamps'\n"
        "    def load(self, data, media=None, *, seed=0): raise KeyError('patient')\nREADER = Lamps()\nOTHER = Lamps()\n"
    )
    where = offered(site, "benchmarks", "lamps", "clinic.lamps:READER")
    done = proctor("run", "lamps", "--data", site, "--system", "random", "--store", site / "s.db", **where)
    assert done.returncode == 1
    assert done.stderr == (
        "proctor: the benchmark 'lamps' of clinic (clinic.lamps:READER) failed: KeyError: 'patient' (lamps.py, line 5)\n"
    )
    where = offered(site, "benchmarks", "lights", "clinic.lamps:OTHER")
    done = proctor("run", "lights", "--data", site, "--system", "random", "--store", site / "s.db", **where)
    assert done.stderr == (
        "proctor: the benchmark 'lights' of clinic (clinic.lamps:OTHER): found the name 'lamps', expected 'lights', as "
        "its entry point\n"
    )
