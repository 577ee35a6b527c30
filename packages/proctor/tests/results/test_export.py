"""The export: the same rows in three formats, whole or not at all, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from proctor.core import ACCURACY, Answer, Benchmark, InputError, Score
from proctor.interchange.answer_files import read_table_of_answers
from proctor.results import export, scored_answers
from proctor.results.export import COLUMNS, ExportFormat
from proctor.runs import Store
from tests.support.ledger import HOSTILE, fill_ledger, ledger_benchmark
from tests.support.program import proctor
from tests.support.report_store import a_benchmark, a_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill_ledger(tmp_path / "runs.db")


def exported(store: Store, folder: Path, form: ExportFormat) -> Path:
    out = folder / f"rows.{form}"
    assert export(store, "ledger", out, form) == 8
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []
    return out


def jsonl(store: Store, folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(store, folder, "jsonl").read_text().splitlines()]


def test_export_has_one_row_an_item_and_metric_in_the_contracts_columns(store: Store, tmp_path: Path) -> None:
    rows = jsonl(store, tmp_path)
    assert [list(row) for row in rows] == [[*COLUMNS, "duration", "format", "kind", "skills", "scorer"]] * 8
    assert list(COLUMNS) == [
        "item", "group", "system", "condition", "status", "metric", "value", "text", "parsed", "latency_s", "extra",
        "repetition", "confidence",
    ]  # fmt: skip
    assert [(row["item"], row["status"], row["metric"], row["value"]) for row in rows] == [
        ("q0", "answered", "accuracy", 1.0),
        ("q1", "answered", "accuracy", 0.0),
        ("q2", "answered", "accuracy", 1.0),
        ("q3", "failed", "accuracy", None),
        ("q4", "timed_out", "accuracy", 0.0),
        ("q5", "refused", "accuracy", 0.0),
        ("q6", "answered", "points", 2.0),
        ("q7", "answered", "points", None),
    ]
    assert rows[0]["skills"] == "hands|eyes"
    assert (rows[1]["text"], rows[1]["parsed"]) == (HOSTILE, "null")
    assert (rows[2]["parsed"], rows[2]["latency_s"], rows[2]["scorer"]) == ("1", 0.5, "code")


def test_parquet_holds_the_same_rows(store: Store, tmp_path: Path) -> None:
    from pyarrow import parquet

    table = parquet.read_table(exported(store, tmp_path, "parquet"))
    assert table.to_pylist() == jsonl(store, tmp_path)
    assert str(table.schema.field("value").type) == "double"


def test_csv_runs_no_formula(store: Store, tmp_path: Path) -> None:
    with exported(store, tmp_path, "csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = jsonl(store, tmp_path)
    assert rows[1]["text"] == f"'{HOSTILE}"
    assert not any(value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for row in rows for value in row.values())
    plain = [{key: "" if value is None else str(value) for key, value in row.items()} for row in expected]
    plain[1]["text"] = f"'{HOSTILE}"
    assert rows == plain


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_whatever_begins_like_a_formula_gets_an_apostrophe(text: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(ledger_benchmark())
    run = store.start_run("ledger", text, "video", {})
    store.write(run, [(Answer(item_id="q0", text=text), [])])
    out = tmp_path / "rows.csv"
    export(store, "ledger", out, "csv")
    with out.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["system"], row["text"]) == (f"'{text}", f"'{text}")


def test_a_tag_named_like_a_column_does_not_displace_it(tmp_path: Path) -> None:
    item = ledger_benchmark().items[0].model_copy(update={"tags": {"scorer": "tag", "value": "tag"}})
    benchmark = Benchmark(name="ledger", title="Ledger", items=(item,), metrics=(ACCURACY,), headline="accuracy")
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(benchmark)
    run = store.start_run("ledger", "one", "video", {})
    scored = [(Answer(item_id="q0", text="1"), [Score(item_id="q0", metric="accuracy", value=1.0)])]
    store.write(run, scored)
    out = tmp_path / "rows.csv"
    export(store, "ledger", out, "csv")
    header, row = csv.reader(out.read_text(encoding="utf-8").splitlines())
    assert header == [*COLUMNS, "format", "scorer"]
    named = dict(zip(header, row, strict=True))
    assert (named["value"], named["scorer"]) == ("1.0", "code")


def test_export_that_cannot_be_written_leaves_nothing(store: Store, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match="expected a writable path"):
        export(store, "ledger", tmp_path / "taken" / "rows.csv", "csv")
    assert {path.name for path in tmp_path.iterdir() if "runs.db" not in path.name} == {"taken"}


def test_answers_that_no_score_speaks_of_have_a_row_each(tmp_path: Path) -> None:
    """A run of which code has scored what it can, while a judge is still to come; and one that nobody has scored."""
    benchmark = ledger_benchmark()
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(benchmark)
    answers = [Answer(item_id=item.id, text="t", parsed="t") for item in benchmark.items]
    scored, bare = (store.start_run("ledger", name, "video", {}) for name in ("scored", "bare"))
    store.write(scored, [(one, [Score(item_id=one.item_id, metric="accuracy", value=1)]) for one in answers[:1]])
    store.write(scored, [(one, []) for one in answers[1:]])
    store.write(bare, [(one, []) for one in answers])
    out = tmp_path / "rows.jsonl"
    assert export(store, "ledger", out, "jsonl") == 2 * len(answers)
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    expected = ["accuracy"] * 6 + ["points"] * 2 + ["accuracy"]  # the first metric that scores the answer's format
    for name, values in (("scored", [1.0] + [None] * 8), ("bare", [None] * 9)):
        own = [row for row in rows if row["system"] == name]
        assert [row["item"] for row in own] == [one.item_id for one in answers]
        assert [row["metric"] for row in own] == expected
        assert [row["value"] for row in own] == values


def test_export_on_the_command_line(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    done = proctor("export", "ledger", "--store", store.shown, "--format", "csv", "--out", out)
    assert (done.returncode, done.stdout) == (0, f"8 rows in {out}\n")
    assert out.read_bytes() == exported(store, tmp_path, "csv").read_bytes()


def test_scored_answers_are_those_that_are_there(tmp_path: Path) -> None:
    """The one that failed is no answer; a refused one is."""
    store = a_store(tmp_path)
    runs = [run for run in store.runs("toy") if run.condition == "video" and run.system in {"looker", "guesser"}]
    found = scored_answers(store, "toy", runs, "the-judge")
    of_looker = {one.item.id: one for one in found if one.system == "looker"}
    assert len(of_looker) == 47
    assert "q003" not in of_looker
    assert sum(one.system == "guesser" for one in found) == 48
    assert of_looker["q007"].values.keys() == {"helpful"} or not of_looker["q007"].values


def test_what_else_a_system_gave_goes_out_and_comes_back(tmp_path: Path) -> None:
    store, out = Store(tmp_path / "s.db"), tmp_path / "rows.csv"
    benchmark = a_benchmark(items=2, groups=2)
    store.add_benchmark(benchmark)
    run = store.start_run(benchmark.name, "planner", "video", {})
    kept: dict[str, JsonValue] = {"rationale": '=1, "then" 2', "calls": 3, "plan": ["A", "B"]}
    first, second = (item.id for item in benchmark.items)
    store.write(run, [(Answer(item_id=first, text="A", parsed="A", extra=kept), []), (Answer(item_id=second), [])])
    assert export(store, benchmark.name, out, "csv") == 2
    assert {one.key: one.extra for one in read_table_of_answers(out).answers} == {first: kept, second: {}}
