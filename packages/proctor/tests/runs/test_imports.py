"""What an import loads: libraries that take seconds wait for the first call that needs them, and a package's modules
for the first use of their names."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

from proctor.runs import Store
from tests.runs.test_store import a_benchmark, a_run, an_answer

HEAVY = {
    "av", "cv2", "jinja2", "matplotlib", "onnxruntime", "openai", "pandas", "PIL", "pyarrow",
    "pydantic_ai", "sacrebleu", "scipy", "sentence_transformers", "sklearn", "statsmodels", "torch",
    "transformers", "typer",
}  # fmt: skip
LAZY = (
    "audits", "core", "judges", "media", "metrics", "metrics.ordering", "metrics.text", "models",
    "reports", "results", "runs", "stats", "systems",
)  # fmt: skip


def loaded_by(statement: str) -> set[str]:
    """The modules that an interpreter has after this statement."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def libraries(modules: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize(
    "statement",
    [
        "from proctor.runs import *",
        "from proctor.core import *",
        "from proctor.stats import *",
        "from proctor.metrics import *",
    ],
)
def test_an_import_loads_no_heavy_library(statement: str) -> None:
    assert HEAVY & libraries(loaded_by(statement)) == set()


def test_the_store_needs_no_room_that_asks_shows_or_knows_a_task() -> None:
    loaded = loaded_by("from proctor.runs import Store")
    above = ("audits", "construction", "judges", "media", "models", "reports", "systems", "tasks")
    assert [name for name in loaded if name.startswith(tuple(f"proctor.{room}" for room in above))] == []
    assert HEAVY & libraries(loaded) == set()


def test_a_package_loads_nothing_until_a_name_is_used() -> None:
    loaded = loaded_by("\n".join(f"import proctor.{room}" for room in LAZY))
    assert {"numpy", "pydantic", "sqlalchemy"} & libraries(loaded) == set()
    assert {name for name in loaded if name.startswith("proctor")} == {
        "proctor", "proctor.lazy", *(f"proctor.{room}" for room in LAZY)
    }  # fmt: skip


@pytest.mark.parametrize("room", LAZY)
def test_all_that_a_package_exports_is_there(room: str) -> None:
    package = import_module(f"proctor.{room}")
    assert set(package.__all__) <= set(dir(package))
    assert [name for name in package.__all__ if isinstance(getattr(package, name), ModuleType)] == []
    with pytest.raises(AttributeError, match=f"module 'proctor.{room}' has no attribute 'storr'"):
        _ = package.storr


def test_a_name_that_a_module_has_too_stays_what_is_exported() -> None:
    for order in ("import proctor.results.results", "from proctor.results import results"):
        code = f"{order}\nfrom proctor.results import results\nassert results.__name__ == 'results', results\n"
        code += "from proctor.results.results import Options\nfrom proctor import results\nresults.__call__"
        subprocess.run([sys.executable, "-c", code], check=True)


def test_a_module_deep_in_a_task_can_be_imported_first() -> None:
    """Its rooms import one another's names, which must not be a circle."""
    assert "proctor_build.focus.rules" in loaded_by("import proctor_build.focus.rules")


def loaded_by_commands(*commands: str) -> set[str]:
    """The modules that the program has after these commands, one after another."""
    lines = ["import contextlib, io", "from proctor.cli.main import main"]
    for command in commands:
        lines += [f"sys.argv = {['proctor', *command.split()]!r}"]
        lines += ["with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):", "    main()"]
    return loaded_by("\n".join(lines))


def test_what_asks_nobody_waits_for_no_library_that_asks_draws_or_computes() -> None:
    """Help and the listings come at once, with all tasks, systems and judges."""
    kinds = ("benchmarks", "systems", "methods", "judges", "conditions")
    loaded = loaded_by_commands("--help", *(f"list {kind}" for kind in kinds))
    assert "proctor.tasks.clinicalskillqa.methods.votes" in loaded
    assert libraries(loaded) & (HEAVY - {"typer"} | {"aiohttp", "httpx", "sqlalchemy"}) == set()


def test_a_wrong_benchmark_is_told_without_what_a_right_one_needs(tmp_path: Path) -> None:
    Store(tmp_path / "runs.db").close()
    reading = (f"{command} nothing --store {tmp_path / 'runs.db'}" for command in ("results", "compare"))
    loaded = loaded_by_commands(*reading, "run nothing --data . --system random")
    assert "sqlalchemy" in loaded
    assert libraries(loaded) & HEAVY == {"typer"}
    above = ("proctor.reports.", "proctor.models.")
    assert [name for name in loaded if name.startswith(above)] == [
        "proctor.reports.frames"
    ]  # a table that is waited for


def test_results_load_what_they_print_and_nothing_of_reports_media_or_another_database(tmp_path: Path) -> None:
    benchmark = a_benchmark()
    store = Store(tmp_path / "runs.db")
    store.write(a_run(store, benchmark), [(an_answer(item.id), []) for item in benchmark.items])
    store.close()
    loaded = loaded_by_commands(f"results toy --store {tmp_path / 'runs.db'} --by half")
    assert "proctor.reports.leaderboard" in loaded
    assert libraries(loaded) & HEAVY == {"scipy", "typer"}
    rest = ("proctor.reports.report_numbers", "proctor.metrics.corpus", "proctor.media.", "proctor.results.analyses")
    assert [name for name in loaded if name.startswith((*rest, "sqlalchemy.dialects.postgresql"))] == []


def test_help_and_what_no_command_takes_need_no_array() -> None:
    loaded = loaded_by_commands("--help", "results --help", "frobnicate", "list conditons")
    assert "proctor.cli.results" in loaded
    assert libraries(loaded) & (HEAVY - {"typer"} | {"numpy", "sqlalchemy"}) == set()


MOST_OF_A_RUN, MOST_OF_RESULTS = 113, 59
"""Modules of the package, packages included. A run of questions with pictures also asks the baselines, keeps frames, and
scores by code: of its modules 41 are items, formats and files (`core`), 16 the store, leases and the engine (`runs`), 16
frames and conditions (`media`), 10 the spreadsheet."""


def test_a_spreadsheet_of_ones_own_loads_the_one_reader_that_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (32, 32)).save("a.jpg")
    Path("my.csv").write_text(
        "id,image,group,question,options,answer\nq1,a.jpg,g,Which?,red|blue,red\nq2,a.jpg,h,Which?,red|blue,blue\n"
    )
    Path("mine.py").write_text("def always_a(question, frames):\n    return 'A'\n")
    found = [one for one in loaded_by_commands("run my.csv --system mine.py:always_a --store s.db") if is_own(one)]
    others = ("clinicalskillqa", "focus", "mediqa_eval", "rexsonovqa", "simulated")
    above = tuple(f"proctor.{name}" for name in ("training", "construction", "interchange", "web", "challenges"))
    assert "proctor.tasks.questions.reader" in found
    assert [one for one in found if one.startswith((*(f"proctor.tasks.{name}" for name in others), *above))] == []
    assert len(found) <= MOST_OF_A_RUN, found

    found = [one for one in loaded_by_commands("results my.csv --store s.db") if is_own(one)]
    assert "proctor.reports.leaderboard" in found
    assert [one for one in found if one.startswith(("proctor.tasks", "proctor.media", "proctor.models", *above))] == []
    assert len(found) <= MOST_OF_RESULTS, found


def is_own(module: str) -> bool:
    return module == "proctor" or module.startswith("proctor.")
