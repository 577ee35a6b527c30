"""A study as a file: what is missing is done, every problem is told before anything is asked, and the report names its hash."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path

import pytest

import proctor
from proctor.core import InputError, ProblemsError
from proctor.runs import Store, studies_of
from proctor.shell import is_study, read_study
from tests.cli.test_score_cli import VERDICT
from tests.support.faulty_server import Fault, FaultyServer
from tests.support.program import proctor as command
from tests.support.text_folder import answer_tray, item_of, write_text_folder

ITEMS = 12

STUDY = """
study: trays 2026
store: runs.db
benchmarks:
  - {{name: simulated, data: data}}
systems:
  - {{name: new, model: served, base_url: "{url}", price: 100000/0}}
  - system: random
conditions: [text-only]
repetitions: 2
comparisons:
  - {{first: new/text-only, second: random/text-only, metric: accuracy, gate: better}}
limits: {{concurrency: 2}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_text_folder(tmp_path / "data", ITEMS)
    return tmp_path


def write(folder: Path, server: FaultyServer, *changes: tuple[str, str]) -> Path:
    text = STUDY.format(url=server.url)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = folder / "study.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_study_is_run_compared_and_named_in_the_report(folder: Path) -> None:
    with FaultyServer(answer_tray) as server:
        file = write(folder, server)
        done = command("run", file)
        assert done.returncode in {0, 1, 2}, done.stderr
        assert "Gate “better”: " in done.stdout
        asked = Counter(map(item_of, server.requests))
        assert (len(asked), set(asked.values())) == (ITEMS, {2})
        again = command("run", file)
        assert len(server.requests) == 2 * ITEMS, "a second call asks nothing"
        assert again.returncode == done.returncode
    study = read_study(file)
    store = Store(folder / "runs.db", create=False)
    assert f"complete in {store.shown}, sha256 {study.sha256}" in done.stdout
    (kept,) = studies_of(store, "simulated")
    assert (kept.name, kept.sha256, json.loads(kept.body)["repetitions"]) == ("trays 2026", study.sha256, 2)
    proctor.report(store, folder / "report.html")
    assert f"trays 2026, sha256 {study.sha256}" in (folder / "report.html").read_text(encoding="utf-8")
    proctor.report(store, folder / "public.html", publish=True)
    assert study.sha256 in (folder / "public.html").read_text(encoding="utf-8")
    store.close()


def test_more_repetitions_and_systems_ask_what_is_missing(folder: Path) -> None:
    with FaultyServer(answer_tray) as server:
        write(folder, server, ("repetitions: 2", "repetitions: 1"))
        first = proctor.run_study(folder / "study.yaml")
        assert (first.complete, len(server.requests)) == (True, ITEMS)
        write(
            folder,
            server,
            (
                "  - system: random",
                "  - system: random\n  - {name: other, model: served2, base_url: '" + server.url + "'}",
            ),
        )
        second = proctor.run_study(folder / "study.yaml")
        assert (second.complete, len(server.requests)) == (True, 4 * ITEMS)
    assert [run.runs[0].system for run in second.runs] == ["new", "random", "other"]
    assert len(studies_of(second.store, "simulated")) == 2
    assert [table.data.gate is not None for table in second.comparisons] == [True]
    second.store.close()


def test_a_limit_stops_the_study_and_it_goes_on(folder: Path) -> None:
    with FaultyServer(answer_tray) as server:
        file = write(folder, server, ("limits: {concurrency: 2}", "limits: {concurrency: 2, max_cost: 30}"))
        stopped = command("run", file)
        paid = len(server.requests)
        assert stopped.returncode == 130, stopped.stderr
        assert "--max-cost $30.00" in stopped.stderr
        assert "still to be asked: run the same command again." in stopped.stderr
        assert "Gate" not in stopped.stdout
        assert 0 < paid < 2 * ITEMS
        assert command("run", file, "--max-cost", "100000").returncode in {0, 1, 2}
        assert len(server.requests) == 2 * ITEMS


def test_the_hash_is_of_what_is_stated(folder: Path) -> None:
    with FaultyServer(answer_tray) as server:
        first = read_study(write(folder, server)).sha256
        same = read_study(write(folder, server, ("repetitions: 2", "# twice\nrepetitions:   2"), ("store: runs.db", "store: x.db"),
                                ("limits: {concurrency: 2}", "limits: {max_cost: 3}"))).sha256  # fmt: skip
        other = read_study(write(folder, server, ("repetitions: 2", "repetitions: 3"))).sha256
    assert first == same != other


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([("repetitions: 2", "repetitons: 2")], "repetitons: "),
        ([("repetitions: 2", "repetitions: 0")], "repetitions: expected"),
        ([("conditions: [text-only]", "conditions: [txt-only]")], "conditions 1: found 'txt-only', expected one of"),
        ([("name: simulated", "name: simulatd")], "benchmarks 1, name: found 'simulatd'"),
        ([("  - system: random", "  - system: random\n  - system: random")], "systems: found 'random' twice"),
        ([("name: new, ", "")], "expected a name for the model's runs"),
        ([("gate: better", "gate: bettr")], "comparisons 1, gate: --gate 'bettr' can't be used"),
        (
            [("first: new/text-only", "first: old/text-only")],
            "comparisons 1, first: found 'old/text-only', expected one of",
        ),
        (
            [("limits: {concurrency: 2}", "limits: {max_time: soon}")],
            "limits, max_time: --max-time 'soon' can't be used",
        ),
        ([("study: trays 2026", "study: trays\nstudy: again")], "line 3: found 'study' twice"),
        ([("limits:", "judges: [{repetitions: 2}]\nlimits:")], "expected a judge or a model"),
    ],
)
def test_every_problem_is_told_before_anything_is_asked(
    folder: Path, changes: list[tuple[str, str]], said: str
) -> None:
    with FaultyServer(answer_tray) as server:
        file = write(folder, server, *changes)
        done = command("run", file)
        assert server.requests == []
    assert (done.returncode, str(file) in done.stderr, said in done.stderr) == (1, True, True), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (folder / "runs.db").exists()


def test_several_problems_are_told_together(folder: Path) -> None:
    with FaultyServer(answer_tray) as server:
        file = write(folder, server, ("gate: better", "gate: bettr"), ("[text-only]", "[text-only, odd]"))
    with pytest.raises(ProblemsError, match=r"2 problems: conditions 2: .*; comparisons 1, gate: "):
        read_study(file)


def test_options_that_the_file_states_are_refused_beside_it(folder: Path) -> None:
    with FaultyServer(answer_tray) as server:
        file = write(folder, server)
        with pytest.raises(InputError, match="found --repeats beside the study, expected it in the file"):
            proctor.run_study(file, repeats=3)
        assert "Leave --system, --workers and --on out" in command("run", file, "--system", "random").stderr
        assert "Leave --system, --workers and --on out" in command("run", file, "--workers", "2").stderr
        dry = command("run", file, "--dry-run")
        assert (dry.returncode, server.requests, (folder / "runs.db").exists()) == (0, [], False)


def test_what_is_a_study(folder: Path) -> None:
    with FaultyServer(answer_tray) as server:
        assert is_study(write(folder, server))
    assert not is_study("simulated")
    assert not is_study(folder / "data")
    assert not is_study("missing.yaml")


def test_a_server_that_is_gone_is_told_before_anything_is_compared(folder: Path) -> None:
    with FaultyServer(answer_tray) as server:
        file = write(folder, server)
    done = command("run", file)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr


def test_what_failed_is_asked_again_and_judged_and_nothing_is_compared_before(folder: Path) -> None:
    (folder / "mine").mkdir()
    rows = "".join(f"q{number},What happens?,The cup is moved away.,p{number}\n" for number in range(3))
    (folder / "mine" / "questions.csv").write_text(f"id,question,answer,patient\n{rows}")
    with FaultyServer(VERDICT, script=[Fault.SERVER_ERROR]) as server:
        (folder / "study.yaml").write_text(
            f"""
study: cups
store: runs.db
benchmarks: [{{path: mine}}]
systems: [{{name: a, model: served, base_url: "{server.url}"}}, {{name: b, model: served, base_url: "{server.url}"}}]
conditions: [text-only]
judges: [{{judge: three-level, model: served, base_url: "{server.url}"}}]
comparisons: [{{first: a/text-only, second: b/text-only}}]
"""
        )
        failed = command("run", folder / "study.yaml", "--retries", "0", "--concurrency", "1")
        assert failed.returncode == 3
        assert "1 answer failed: run the same command again to ask them again." in failed.stderr
        assert " minus " not in failed.stdout
        asked = server.count
        done = command("run", folder / "study.yaml", "--retries", "0")
        assert server.count > asked
        assert done.returncode == 0, done.stderr
        assert "three-level" in done.stdout
        assert "6 answers scored" in done.stdout
        assert " minus " in done.stdout
        judged = server.count
        assert command("run", folder / "study.yaml").returncode == 0
        assert server.count == judged, "a judgement was paid twice"
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("Next: proctor ")]
    words = shlex.split(line.removeprefix("Next: proctor "))
    assert command(*words[:-1], folder / words[-1]).returncode == 0
    opened = Store(folder / "runs.db", create=False)
    assert [opened.count_answers(run) for run in opened.runs("mine") if run.system in {"a", "b"}] == [(3, 0), (3, 0)]
    opened.close()
