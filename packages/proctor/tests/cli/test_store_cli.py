"""Runs shown, renamed and deleted from the command line, and one item shown in the terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from proctor.core import InputError, Metric
from proctor.runs import Store, disqualify
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor
from tests.support.report_store import a_benchmark, fill

AT = "2026-08-01T10:00:00+00:00"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(Store(tmp_path / "toy.db"), a_benchmark())
    return tmp_path / "toy.db"


def runs(path: Path) -> dict[tuple[str, str], int]:
    """(system, condition) to the number of answers."""
    opened = Store(path, create=False)
    return {(run.system, run.condition): sum(opened.count_answers(run)) for run in opened.runs("toy")}


def test_show_lists_runs_with_their_settings(path: Path) -> None:
    rows = json.loads(proctor("list", "runs", "--store", path, "--format", "json").stdout)
    assert {(row["system"], row["condition"]) for row in rows} == set(runs(path))
    assert all(row["answered"] + row["failed"] == 48 for row in rows)
    assert all(row["begun"] and isinstance(row["settings"], dict) for row in rows)
    assert "looker" in proctor("list", "runs", "--store", path).stdout


def test_a_run_is_deleted_with_its_answers_and_scores_alone(path: Path) -> None:
    before = runs(path)
    done = proctor(
        *("store", "change", "delete", "toy", "--system", "looker", "--condition", "black", "--yes", "--store", path)
    )
    assert (done.returncode, done.stdout) == (0, "Deleted 1 run, 48 answers\n")
    del before["looker", "black"]
    assert runs(path) == before
    assert proctor("check", "store", "--store", path).returncode == 0
    assert "looker" in proctor("results", "toy", "--store", path, "--draws", "100").stdout


def test_nothing_is_deleted_unasked(path: Path) -> None:
    before = runs(path)
    done = proctor("store", "change", "delete", "toy", "--system", "looker", "--store", path)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    for wrong in ((), ("--all", "--system", "looker")):
        done = proctor("store", "change", "delete", "toy", *wrong, "--yes", "--store", path)
        assert done.returncode == 2
        assert "--all" in done.stderr
    done = proctor("store", "change", "delete", "toy", "--system", "loker", "--yes", "--store", path)
    assert done.returncode == 1
    assert "did you mean 'looker'?" in done.stderr
    assert runs(path) == before


def test_a_benchmark_goes_with_everything(path: Path) -> None:
    judgements = _judgements(path)
    done = proctor("store", "change", "delete", "toy", "--all", "--yes", "--store", path)
    assert done.returncode == 0
    assert Store(path, create=False).benchmark_names() == []
    assert _judgements(path) == judgements > 0
    fill(Store(path), a_benchmark())
    assert len(runs(path)) == 12


def _judgements(path: Path) -> int:
    import sqlite3

    with sqlite3.connect(path) as connection:
        return int(connection.execute("select count(*) from judgements").fetchone()[0])


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("said", "left"), [("n\n", 12), ("y\n", 8)])
def test_a_terminal_is_asked(path: Path, said: str, left: int) -> None:
    import subprocess

    master, slave = os.openpty()
    words = ["store", "change", "delete", "toy", "--system", "looker", "--store", str(path)]
    with subprocess.Popen(
        [sys.executable, "-c", "from proctor.cli.main import main; main()", *words],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        os.write(master, said.encode())
        out, _ = process.communicate()
    os.close(slave)
    os.close(master)
    assert "Delete looker / black, looker / shuffled" in out
    assert "(192 answers) of toy" in out
    assert len(runs(path)) == left


def test_a_system_is_renamed_with_its_disqualification(path: Path) -> None:
    disqualify(Store(path), "toy", "looker", "it peeked", at=AT)
    done = proctor(
        "store", "change", "rename", "toy", "--system", "looker", "--to", "watcher", "--yes", "--store", path
    )
    assert (done.returncode, done.stdout) == (0, "looker is watcher now, in 4 runs\n")
    opened = Store(path, create=False)
    assert {run.system for run in opened.runs("toy")} == {"watcher", "guesser", "random"}
    assert list(opened.card("toy").disqualified) == ["watcher"]
    taken = proctor(
        "store", "change", "rename", "toy", "--system", "watcher", "--to", "guesser", "--yes", "--store", path
    )
    assert taken.returncode == 1
    assert "found a run of 'guesser' already" in taken.stderr


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", "a name that can be seen"),
        (" \u00a0", "a name that can be seen"),
        ("\u200b", "a name that can be seen"),
        ("\x07", "a name that can be seen"),
        ("a\x1b[31mb", "a name without control characters"),
        ("a\tb", "a name without control characters"),
        ("a\nb", "a name without control characters"),
        ("a\u202eb", "a name without control characters"),
    ],
)
def test_no_system_has_a_name_that_nobody_sees(path: Path, name: str, expected: str) -> None:
    before, why = runs(path), f"the system's name: found {name!r}, expected {expected}"
    done = proctor("store", "change", "rename", "toy", "--system", "looker", "--to", name, "--yes", "--store", path)
    assert (done.returncode, done.stderr) == (1, f"proctor: {why}\n")
    if "seen" in expected:
        with pytest.raises(InputError, match=re.escape(why)):
            Store(path).start_run("toy", name, "video", {})
    assert runs(path) == before


@pytest.mark.parametrize(
    ("name", "expected"), [(" ", "a name that can be seen"), ("a\x1bb", "a name without control characters")]
)
def test_a_run_and_an_import_refuse_such_a_name(tmp_path: Path, name: str, expected: str) -> None:
    questions, answers, store = tmp_path / "tiny.csv", tmp_path / "a.csv", tmp_path / "s.db"
    questions.write_text("id,question,answer,patient\nq1,Is it on?,yes,p1\n")
    answers.write_text("id,answer\nq1,yes\n")
    with FaultyServer("yes") as server:
        model = ("--model", "openai:m", "--base-url", server.url)
        for command in (("run", questions, *model), ("import", questions, answers)):
            done = proctor(*command, "--name", name, "--store", store)
            assert (done.returncode, server.count) == (1, 0)
            assert done.stderr.endswith(f"proctor: the system's name: found {name!r}, expected {expected}\n")
            assert Store(store).benchmark_names() == []


@pytest.mark.parametrize(
    "name", ["Modèle 2", "系统", "a b", "system\N{ZERO WIDTH JOINER}x", "👩\N{ZERO WIDTH JOINER}⚕️", "-1"]
)
def test_a_name_in_any_script_is_kept(path: Path, name: str) -> None:
    done = proctor(
        "store", "change", "rename", "toy", "--system", "looker", "--to", name, "--yes", "--store", path, "--"
    )
    assert (done.returncode, name in {run.system for run in Store(path).runs("toy")}) == (0, True), done.stderr


def test_a_run_at_work_is_left_alone(path: Path) -> None:
    import sqlite3
    import time

    with sqlite3.connect(path) as connection:
        connection.execute("update runs set owner='0123 - 1 - elsewhere', owned_until=?", (time.time() + 60,))
    done = proctor("store", "change", "delete", "toy", "--system", "looker", "--yes", "--store", path)
    assert done.returncode == 1
    assert "at work on it" in done.stderr
    assert len(runs(path)) == 12


def test_an_item_is_shown_with_answers_scores_and_judgements(path: Path) -> None:
    done = proctor("show", "toy", "q000", "--store", path, "--system", "looker", "--condition", "video")
    assert done.returncode == 0
    item = Store(path, create=False).items("toy")[0]
    assert item.question in done.stdout
    assert all(option in done.stdout for option in item.options)
    assert "looker / video: " in done.stdout
    assert "guesser" not in done.stdout
    found = json.loads(proctor("show", "toy", "q000", "--store", path, "--format", "json").stdout)
    assert found["item"]["id"] == "q000"
    assert len(found["runs"]) == 12
    assert all(one["scores"] for one in found["runs"] if one["answer"]["status"] == "answered")


def test_an_answer_is_shown_with_its_rationale_and_what_a_method_kept(path: Path) -> None:
    kept = {
        "rationale": "the pads lie bare",
        "descriptions": {"A": "a hand"},
        "cut_off": False,
        "frames": 4,
        "plan": [],
    }
    import sqlite3

    with sqlite3.connect(path) as connection:
        connection.execute("update answers set extra=?", (json.dumps(kept),))
    said = proctor("show", "toy", "q000", "--store", path, "--system", "looker", "--condition", "video").stdout
    assert "  Rationale: the pads lie bare\n" in said
    assert "  Kept with it: descriptions (--format json shows them, proctor export has them as extra)\n" in said


def test_failed_and_refused_answers_say_why(path: Path) -> None:
    assert "looker / video: failed" in proctor("show", "toy", "q003", "--store", path).stdout
    assert "guesser / video: refused" in proctor("show", "toy", "q006", "--store", path).stdout


def test_judgements_stand_under_the_answer(path: Path) -> None:
    opened = Store(path, create=False)
    free = next(item.id for item in opened.items("toy") if item.answer.kind == "free_text")
    assert " replied" in proctor("show", "toy", free, "--store", path, "--system", "looker").stdout


def test_an_unknown_item_is_told_with_the_nearest(path: Path) -> None:
    done = proctor("show", "toy", "p003", "--store", path)
    assert done.returncode == 1
    assert "item of toy: found 'p003', expected one of q000, q001" in done.stderr
    assert "did you mean 'q003'?" in done.stderr
    part = proctor("show", "toy", "04", "--store", path).stderr
    assert "expected one of q004, q040, q041, q042, q043 … (48 in all)" in part


def test_hostile_texts_reach_no_terminal(tmp_path: Path) -> None:
    import asyncio

    from proctor.core import ACCURACY, Answer, Benchmark, Item, RecordedAnswers
    from proctor.core.formats import FreeTextFormat
    from proctor.runs import import_answers

    item = Item(id="q", group="g", question="Is it \x1b[31mred?", answer=FreeTextFormat())
    store = Store(tmp_path / "h.db")
    answer = Answer(item_id="q", text="[bold]no[/bold] \x1b]0;title\x07 \u202eno", parsed="no")
    benchmark = Benchmark("h", "H", (item,), (ACCURACY,), "accuracy")
    asyncio.run(import_answers(store, benchmark, RecordedAnswers((answer,)), name="m", condition="video", scorers=()))
    said = proctor("show", "h", "q", "--store", tmp_path / "h.db").stdout
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "[bold]no[/bold]" in said


def test_a_name_that_is_taken_is_refused_before_anything_is_written(path: Path) -> None:
    from proctor.runs import chosen_runs, rename_system

    opened = Store(path)
    with pytest.raises(InputError, match="found a run of 'random' already"):
        rename_system(opened, "toy", chosen_runs(opened, "toy", ("looker",)), "random")
    assert len(runs(path)) == 12


def test_flags_are_those_of_the_named_systems_and_conditions(path: Path) -> None:
    def flagged(*options: str) -> list[tuple[str, str]]:
        done = proctor("results", "toy", "--flags", "--format", "json", "--store", path, *options)
        assert done.returncode == 0, done.stderr
        return [(one["system"], one["condition"]) for one in json.loads(done.stdout)]

    every = [("guesser", condition) for condition in ("black", "shuffled", "text-only", "video")]
    assert sorted(flagged()) == every
    assert flagged("--condition", "black") == [("guesser", "black")]
    assert sorted(flagged("--system", "guesser")) == every
    assert flagged("--system", "looker") == []


def test_metrics_are_listed_with_their_range_and_direction(path: Path) -> None:
    store = Store(path)
    store.declare_metrics("toy", (Metric("seconds", "Seconds", high=60.0, higher_is_better=False),))
    store.close()
    done = proctor("list", "metrics", "--format", "json", "--store", path)
    assert done.returncode == 0, done.stderr
    listed = {one["metric"]: (one["low"], one["high"], one["better"]) for one in json.loads(done.stdout)}
    assert listed["accuracy"] == (0.0, 1.0, "up")
    assert listed["helpful"] == (0.0, 2.0, "up")
    assert listed["seconds"] == (0.0, 60.0, "down")


def test_an_export_has_the_form_that_its_name_ends_with(path: Path, tmp_path: Path) -> None:
    def export(name: str, *options: str) -> str:
        out = tmp_path / name
        done = proctor("export", "toy", "--out", out, "--store", path, *options)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(f" rows in {out}\n")
        return out.read_text(encoding="utf-8").splitlines()[0]

    assert export("a.csv").startswith("item,group,system,condition,status,metric,value")
    assert json.loads(export("a.jsonl"))["item"] == "q000"
    assert export("a.txt", "--format", "csv") == export("a.csv")
    done = proctor("export", "toy", "--out", tmp_path / "a.txt", "--store", path)
    assert (done.returncode, "found a name that ends in .txt, expected one that ends in .jsonl" in done.stderr) == (
        1,
        True,
    )
