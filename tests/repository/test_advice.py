"""What a command says to do next can be done, and does something: each line of advice in the source is known here, with the
test that takes it; those of a small store are taken here."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.runs import Store
from proctor_build.pipeline.commands import _advice
from proctor_build.pipeline.status import FunnelRow
from tests.support.faulty_server import Fault, FaultyServer
from tests.support.paths import ROOT, modules, source_name
from tests.support.program import proctor

_ADVICE = re.compile(r"Next: |same command|call again|[Rr]un (?:it )?again")

HERE = "repository/test_advice.py::"
TAKEN = {
    ("api/downloads.py", "Next: proctor run "): "interchange/test_fetch.py::",
    ("shell/model_choice.py", "all answers of all models: run the same command again"): "cli/test_choose_cli.py::",
    ("shell/scorers.py", " without a verdict: call again to ask again."): "api/test_function_judges.py::",
    ("proctor_train/answerer_training.py", "Next: proctor run BENCHMARK --model "): "training/test_train_answerer.py::",
    ("shell/workers.py", ": use the same command as the others, proctor run … --share"): "shell/test_where_workers_are.py::",
    ("cli/new.py", "Next: pip install -e "): "testing/test_new_package.py::",
    ("cli/__init__.py", "proctor: stopped by Ctrl-C; the same command starts again."): "cli/test_interrupted.py::",
    ("proctor_challenge/commands/challenge.py", "Next: edit "): "challenges/test_organisers_shell.py::",
    ("proctor_challenge/commands/challenge.py", "Next: proctor challenge status "): "challenges/test_organisers_shell.py::",
    ("cli/report.py", "Next: open "): f"{HERE}test_own_questions_the_whole_way",
    ("cli/report.py", "Next: proctor check "): f"{HERE}test_an_export_is_validated_by_its_store",
    ("cli/compare.py", "Next: proctor report "): f"{HERE}test_own_questions_the_whole_way",
    ("cli/run.py", "Run the same command again when the replies are there."): "models/test_batch_folder.py::",
    ("shell/sight_check.py", "Run the same command again when the replies are there."): "sight/test_sight_command.py::",
    ("cli/run.py", "Next: proctor results "): f"{HERE}test_own_questions_the_whole_way",
    ("cli/demo.py", "Next: open "): "cli/test_demo.py::",
    ("cli/run.py", " still to be asked: run the same command again."): "cli/test_run_cli.py::test_ctrl_c_lets_answers_come",
    ("cli/run.py", "): run the same command again to ask them again."): f"{HERE}test_what_failed_is_asked_again",
    ("cli/study.py", " still to be asked: run the same command again."): "api/test_study_files.py::test_a_limit_stops_the_study",
    ("cli/study.py", " failed: run the same command again to ask them again."): "api/test_study_files.py::test_what_failed_is_asked",
    ("cli/study.py", "Next: proctor report "): "api/test_study_files.py::test_what_failed_is_asked",
    ("cli/score.py", "Next: proctor "): "cli/test_score_cli.py::",
    ("cli/score.py", "run the same command again"): f"{HERE}test_what_failed_is_asked_again",
    ("proctor_build/pipeline/commands.py", "Next: proctor build status "): "construction/pipeline/test_pipeline.py::",
    ("proctor_build/pipeline/commands.py", ". Next: proctor build run "): f"{HERE}test_a_stage_that_kept_nothing",
    (
        "proctor_build/pipeline/commands.py",
        " can't be done. Change what the lines above name. Next: ",
    ): f"{HERE}test_a_stage_that_kept_nothing",
    ("proctor_build/sources/report.py", "Next: proctor build table "): "construction/sources/",
    (
        "reports/leaderboard.py",
        " Run the same command again to ask the missing items, or choose --failed wrong or exclude.",
    ): f"{HERE}test_what_failed_is_asked_again",
    ("tasks/clinicalskillqa/commands.py", "Next: proctor run clinicalskillqa --data "): "cli/test_demo.py::",
    ("proctor_build/focus/commands.py", "Next: proctor audit items focus --data "): "cli/test_build_focus_cli.py::",
    ("tasks/questions/commands.py", "Next: proctor check "): "cli/test_next_commands.py::",
    ("tasks/questions/reader.py", "Next: proctor run "): f"{HERE}test_own_questions_the_whole_way",
    ("tasks/simulated/commands.py", "Next: proctor run simulated --data "): "cli/test_demo.py::",
}  # fmt: skip
"""By file and words: the tests that take the advice, or show what it leads to."""

_OTHERS = {
    "Share the questions with other processes that run the same command."  # the help of an option
}


def advice() -> Iterator[tuple[str, str]]:
    """The texts of the source that tell what to do next; docstrings are no advice."""
    for file in modules().values():
        text = file.read_text(encoding="utf-8")
        if not _ADVICE.search(text):
            continue
        tree = ast.parse(text)
        plain = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            said = node.value if isinstance(node, ast.Constant) and id(node) not in plain else None
            if isinstance(said, str) and _ADVICE.search(said) and said not in _OTHERS:
                yield source_name(file), said


def test_every_advice_is_known_and_taken_somewhere() -> None:
    found = {one for one in advice() if not one[1].startswith("A range is the score of")}
    assert found == set(TAKEN)
    for test in set(TAKEN.values()):
        file, _, name = test.partition("::")
        there = [path for path in (ROOT / "tests" / file, *ROOT.glob(f"packages/*/tests/{file}")) if path.exists()]
        assert there, f"{file} is no test"
        assert name in there[0].read_text(encoding="utf-8") if name else True


def _next(told: str) -> list[str]:
    (line,) = [one for one in told.splitlines() if one.startswith("Next: ")]
    words = line.partition("proctor ")[2]
    return shlex.split(words)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROCTOR_STORE", raising=False)
    (tmp_path / "u1").mkdir()
    return tmp_path


def test_own_questions_the_whole_way(folder: Path) -> None:
    rows = "".join(f"q{number},Is it on?,yes,p{number}\n" for number in range(9))
    (folder / "u1" / "questions.csv").write_text(f"id,question,answer,patient\n{rows}")
    checked = proctor("check", "u1")
    asked = proctor(*_next(checked.stderr), "--condition", "text-only", "--store", "a.db")
    assert asked.stdout.startswith("Asked 9: 9 answered"), asked.stderr
    shown = proctor(*_next(asked.stderr))
    assert (shown.returncode, "random" in shown.stdout) == (0, True), shown.stderr
    compared = proctor("compare", "u1", "--store", "a.db", "--system", "random", "--system", "majority")
    reported = proctor(*_next(compared.stderr))
    assert (reported.returncode, (folder / "report.html").is_file()) == (0, True), reported.stderr
    words = [word if word != "ITEM" else "q3" for word in _next(reported.stderr)]
    one = proctor(*words)
    assert (one.returncode, "Is it on?" in one.stdout) == (0, True), one.stderr


def test_where_only_a_model_can_answer_no_baseline_is_advised(folder: Path) -> None:
    (folder / "u1" / "questions.csv").write_text(
        "id,question,answer,patient\nq1,What happens?,The cup is moved away.,p\n"
    )
    words = _next(proctor("check", "u1").stderr)
    assert words == ["run", "u1", "--model", "PROVIDER:NAME"]
    none = proctor("run", "u1", "--system", "random", "--condition", "text-only", "--store", "a.db")
    assert "Asked 0" in none.stdout, "the baseline would have been of no use"


def test_what_failed_is_asked_again(folder: Path) -> None:
    (folder / "u1" / "questions.csv").write_text(
        "id,question,answer,patient\nq1,What happens?,The cup is moved away.,p\n"
    )
    with FaultyServer("The cup is moved.", script=[Fault.SERVER_ERROR, None, Fault.SERVER_ERROR]) as server:
        model = ("--model", "openai:m", "--base-url", server.url, "--retries", "0", "--store", "a.db")
        run = ("run", "u1", "--condition", "text-only", *model)
        first = proctor(*run, OPENAI_API_KEY="k")
        assert first.returncode == 3
        assert "run the same command again to ask them again." in first.stderr
        again = proctor(*run, OPENAI_API_KEY="k")
        assert again.stdout.startswith("Asked 1: 1 answered"), again.stderr
        score = ("score", "u1", "--judge", "three-level", *model)
        judged = proctor(*score, OPENAI_API_KEY="k")
        assert "run the same command again" in judged.stderr
        before = server.count
        proctor(*score, OPENAI_API_KEY="k")
        assert server.count > before, "the same command asked again"


def test_an_export_is_validated_by_its_store(folder: Path) -> None:
    shown = {"videoID": "v1.mp4", "start_time": 0, "end_time": 60, "procedure_type": "resection", "question": "What?"}
    requests = [{"qID": f"q{number}", **shown, "answer_format": "binary"} for number in range(4)]
    (folder / "data").mkdir()
    (folder / "data" / "requests.json").write_text(json.dumps(requests))
    run = ("run", "focus", "--data", "data", "--system", "random", "--condition", "text-only", "--store", "a.db")
    assert proctor(*run).returncode == 0
    only = ("--system", "random", "--condition", "text-only")
    written = proctor("export", "focus", "--format", "answer", *only, "--out", "answer.json", "--store", "a.db")
    checked = proctor(*_next(written.stderr))
    assert (checked.returncode, "4 answers to 4 questions: 0 errors" in checked.stdout) == (0, True), checked.stderr
    assert Store(folder / "a.db", create=False).card("focus").folders["data"] == str(folder / "data")


def test_a_stage_that_kept_nothing() -> None:
    def row(stage: str, done: int, out: int) -> FunnelRow:
        return FunnelRow(stage, "", done, 1, 3, out, 0, 0, 0, 0, 0, None, (), {}, ())

    assert _advice(Path("p"), [row("screen", 1, 4), row("export", 0, 0)], ["export"]) == (
        "Not done: export. Next: proctor build run p"
    )
    assert _advice(Path("p"), [row("screen", 1, 0), row("export", 0, 0)], ["export"]) == (
        "Nothing is left after screen, so that export can't be done. Change what the lines above name. "
        "Next: proctor build run p --redo screen"
    )
