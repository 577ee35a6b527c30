"""What commands say in cases that hardly occur."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import proctor as python
from proctor.cli import media, score, store, tree
from proctor.cli.output import OutputFormat, print_json, print_records
from proctor.core import InputError, PluginReport, Table, Usage, UsageError, columns
from tests.support.fuzzed_store import NAME, fuzzed
from tests.support.lamp_benchmark import lamps
from tests.support.program import proctor, within


@pytest.mark.parametrize(
    ("agreement", "measured", "told"),
    [
        (None, False, "Second ratings: not simulated, since nothing says how far raters agree: --rater-agreement R."),
        (0.5, True, "Second ratings are simulated for raters that agree by r = 0.500 (as measured here)."),
        (0.25, False, "Second ratings are simulated for raters that agree by r = 0.250 (as given)."),
    ],
)
def test_where_the_agreement_of_raters_is_from(agreement: float | None, measured: bool, told: str) -> None:
    assert score._of_second_ratings(cast("Any", SimpleNamespace(agreement=agreement, measured=measured))) == told


def test_pictures_are_written_to_folders(tmp_path: Path) -> None:
    frames = [SimpleNamespace(time=None, jpeg=b"a"), SimpleNamespace(time=1.25, jpeg=b"b")]
    media._write(tmp_path / "new" / "folder", cast("Any", frames))
    made = {one.name: one.read_bytes() for one in (tmp_path / "new" / "folder").iterdir()}
    assert made == {"000000_0.000s.jpg": b"a", "000001_1.250s.jpg": b"b"}
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file/x: found Not a directory, expected a folder to write to"):
        media._write(tmp_path / "file" / "x", cast("Any", frames))


def test_a_plugins_command_that_can_not_be_loaded_says_so_when_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(_: str) -> Any:
        raise InputError("mine:broken", found="no module", expected="one")

    monkeypatch.setattr(tree, "COMMANDS", SimpleNamespace(get=get))
    command = tree._command("mine:broken")
    assert command.__doc__ == "Can't be loaded: mine:broken."
    with pytest.raises(InputError, match="mine:broken: found no module, expected one"):
        command()


def test_a_ranking_by_a_metric_for_programs(tmp_path: Path) -> None:
    made = fuzzed(tmp_path, 1, items=12).store.shown
    shown = {
        name: within("rank", NAME, "--store", made, "--metric", "helpful", "--draws", "100", "--format", name)
        for name in ("csv", "tsv")
    }
    assert {code for code, _ in shown.values()} == {0}
    separated = [
        {line.count(score) for line in shown[name][1].splitlines()} for name, score in (("csv", ","), ("tsv", "\t"))
    ]
    assert separated[0] == separated[1] != {0}
    assert "," not in shown["tsv"][1].splitlines()[0]


@pytest.mark.parametrize(("said", "goes_on"), [("y\n", True), ("n\n", False), ("", False)])
def test_a_person_is_asked_and_a_script_is_not(
    said: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = io.StringIO(said)
    monkeypatch.setattr(sys, "stdin", answers)
    with pytest.raises(UsageError, match=r"Here nobody can be asked\. Add --yes"):
        store._confirm("Delete it?", yes=False)
    monkeypatch.setattr(answers, "isatty", lambda: True)
    store._confirm("Delete it?", yes=True)
    assert capsys.readouterr().out == ""
    if goes_on:
        store._confirm("Delete \x1b[1mit?", yes=False)
    else:
        with pytest.raises(Exception) as raised:  # noqa: PT011  (typer's own)
            store._confirm("Delete \x1b[1mit?", yes=False)
        assert (type(raised.value).__name__, getattr(raised.value, "exit_code", None)) == ("Exit", 1)
    out = capsys.readouterr().out
    assert out.startswith("Delete ")
    assert "\x1b" not in out


def test_a_grid_of_judges_tells_what_it_cost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = python.run(lamps(), "random", conditions="text-only", store=tmp_path / "runs.db")
    made.store.close()
    cells = [SimpleNamespace(judgements=n, usage=Usage(requests=n, cost_usd=cost)) for n, cost in ((2, 0.25), (3, 0.5))]

    async def grid(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(tables=(), cells=cells)

    monkeypatch.setattr("proctor.api.judge_grid_async", grid)
    words = ("judge", "compare", "lamps", "--model", "openai:m", "--store", tmp_path / "runs.db")
    assert f"5 new judgements, $0.7500, kept in {tmp_path / 'runs.db'}" in proctor(*words).stderr.replace("\n", "")
    cells[:] = [SimpleNamespace(judgements=0, usage=Usage())]
    assert proctor(*words).stderr == "no new judgements\n"


def test_all_lists_end_with_where_more_is_for_people_alone() -> None:
    told = "Runs and metrics of a store: proctor list runs --store STORE"
    shown = {form: proctor("list", "--format", form) for form in ("table", "csv", "json")}
    assert {form: told in done.stderr + done.stdout for form, done in shown.items()} == {
        "table": True, "csv": False, "json": False,
    }  # fmt: skip


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [1.0, float("-inf")]}])
def test_what_no_json_can_say_is_never_printed_as_if_it_could(
    value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="JSON"):
        print_json(value)
    print_json({"μ": [0.5, None]})
    assert capsys.readouterr().out == '{\n "μ": [\n  0.5,\n  null\n ]\n}\n'


def test_several_tables_are_no_csv(capsys: pytest.CaptureFixture[str]) -> None:
    one = Table("One", columns("a", ">b"), (("x", 1),))
    report = PluginReport(shown=("A word.", one, one), json={"a": [1, 2]})
    with pytest.raises(UsageError, match="2 tables don't fit one CSV"):
        tree.show_plugin_report(report, OutputFormat.CSV)
    tree.show_plugin_report(replace(report, shown=("A word.", one)), OutputFormat.CSV)
    assert capsys.readouterr().out.splitlines() == ["a,b", "x,1"]


def test_a_report_without_a_table_is_csv_where_it_has_one_list_of_rows(tmp_path: Path) -> None:
    made = proctor("new", tmp_path / "mine", "--format", "csv")
    assert (made.returncode, made.stdout) == (0, f"out,questions\n{tmp_path / 'mine'},10\n"), made.stderr
    table, page = tmp_path / "q.csv", ("--out", tmp_path / "preview.html")
    table.write_text("id,question,answer,patient\nq1,Is it on?,yes,p1\n")
    sound = proctor("check", table, "--format", "csv", *page)
    assert (sound.returncode, sound.stdout) == (0, ""), sound.stderr
    table.write_text("id,question,answer,patient\nq1,Is it on?,yes,p1\nq2,Is it on?,,p1\n")
    faulty = proctor("check", table, "--format", "csv", *page)
    lines = ["file,row,column,found,expected", f"{table},3,answer,nothing,the right answer"]
    assert (faulty.returncode, faulty.stdout.splitlines()) == (1, lines), faulty.stderr


def test_no_cell_of_csv_is_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    print_records([{"system": "=cmd|' /C calc'!A0", "value": -0.5, "none": None}])
    assert capsys.readouterr().out.splitlines() == ["system,value,none", "'=cmd|' /C calc'!A0,-0.5,"]
