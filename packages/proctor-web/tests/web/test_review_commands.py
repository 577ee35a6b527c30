"""`proctor review`: from a folder to agreement, exports and an audit, with sheets instead of a browser."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from proctor.core import ACCURACY, Answer, Benchmark, Item, Reference, Score
from proctor.core.formats import FreeTextFormat
from proctor.runs import Store, database
from tests.support.program import proctor
from tests.support.web_study import ALL_CHECKS, QUESTION

PLAN = "plan: {readings: 2, readers: [anna, ben], adjudicators: [cleo]}"


def folder_of(tmp_path: Path, study: str, people: str = "anna ben cleo olga") -> Path:
    """A review with one study."""
    folder = tmp_path / "review"
    folder.mkdir()
    lines = [{"id": f"q{number}", "group": f"v{number // 2}", "body": QUESTION} for number in range(4)]
    (folder / "items.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    (folder / "review.yaml").write_text(f"title: One\nstudies:\n  - {study}\n    {PLAN}\n")
    roles = {"cleo": "adjudicator", "olga": "organiser"}
    for name in people.split():
        assert proctor("serve", "users", "add", folder, name, "--role", roles.get(name, "reviewer")).returncode == 0
    return folder


def questions(tmp_path: Path, people: str = "anna ben cleo olga") -> Path:
    return folder_of(tmp_path, "name: q\n    form: question\n    items: items.jsonl", people)


def said(*arguments: Any) -> str:
    done = proctor("review", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fill(file: Path, cells: dict[str, dict[str, str]], every: dict[str, str]) -> None:
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | every | cells.get(row["item"], {}) for row in rows)


def test_a_study_by_sheets_from_update_to_export(tmp_path: Path) -> None:
    folder = questions(tmp_path)
    assert said("update", folder) == "q: 4 new items, 0 changed, 0 as before, 12 assignments made\n"
    assert said("update", folder) == "q: 0 new items, 0 changed, 4 as before, 0 assignments made\n"
    assert said("status", folder, "q") == "No item is submitted by all its readers yet.\n"
    accept = {"decision": "accept", **dict.fromkeys(ALL_CHECKS, "yes")}
    for name in ("anna", "ben"):
        file = tmp_path / f"{name}.csv"
        assert said("export", folder, "q", "--what", "sheet", "--reader", name, "--out", file) == f"4 items in {file}\n"
        reject = {"decision": "reject", "one_right": "no", "reason": "two are right"}
        fill(file, {"q0": reject} if name == "ben" else {}, accept)
        assert (
            said("update", folder, "--study", "q", "--reader", name, "--submit", file)
            == "4 submitted, 0 submitted before, 0 left open\n"
        )
    assert (
        proctor(
            "review", "export", folder, "q", "--what", "sheet", "--reader", "anna", "--out", folder / "items.jsonl"
        ).returncode
        == 1
    )
    kept = proctor("review", "export", folder, "q", "--out", folder / "items.jsonl")
    assert "found a file that this command reads, expected another name" in kept.stderr
    assert (folder / "items.jsonl").read_text().startswith('{"id": "q0"')
    status = json.loads(said("status", folder, "--format", "json"))
    assert [(one["read by all"], one["agreed"], one["waiting"]) for one in status] == [(4, 3, 1)]
    (found,) = json.loads(said("status", folder, "q", "--format", "json"))
    assert found["same"]["value"] == 0.75
    shown = said("status", folder, "q")
    assert "Agreement by dimension" in shown
    assert "75.0 %" in shown
    readings = tmp_path / "r.jsonl"
    assert said("export", folder, "q", "--out", readings) == f"8 rows of readings in {readings}\n"
    consensus = tmp_path / "c.parquet"
    assert said("export", folder, "q", "--what", "consensus", "--out", consensus).startswith("4 rows of consensus")
    sheet = tmp_path / "d.md"
    said("export", folder, "q", "--what", "datasheet", "--out", sheet)
    assert "8 submitted readings of 4 of 4 items" in sheet.read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("status", "x"), "study: found 'x', expected one of q"),
        (("export", "q", "--out", "r.xlsx"), "found a file for readings that ends in '.xlsx', expected one of .jsonl"),
        (
            ("export", "q", "--what", "sheet", "--reader", "zoe", "--out", "a.csv"),
            "person: found 'zoe', expected one of",
        ),
        (("update", "--study", "q", "--reader", "anna", "--submit", "none.csv"), "none.csv: found no such file"),
        (("export", "q", "--what", "scores"), "found the form question, expected a study with form: rating"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    folder = questions(tmp_path)
    said("update", folder)
    done = proctor("review", arguments[0], folder, *arguments[1:])
    assert done.returncode == 1
    assert told in done.stderr


_TOGETHER = "--what sheet and --reader NAME need each other."
_ONE = "Give --reassign NAME --study STUDY, or --submit FILE --study STUDY --reader NAME, or none."


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("export", "q", "--what", "sheet", "--out", "a.csv"), _TOGETHER),
        (("export", "q", "--reader", "anna", "--out", "a.csv"), _TOGETHER),
        (("export", "q", "--what", "sheet", "--reader", "anna"), "--out is missing"),
        (("update", "--submit", "a.csv"), _ONE),
        (("update", "--submit", "a.csv", "--reader", "anna"), _ONE),
        (("update", "--study", "q", "--reader", "anna"), _ONE),
        (("update", "--study", "q"), _ONE),
        (("update", "--reassign", "anna"), _ONE),
        (("update", "--reassign", "anna", "--study", "q", "--submit", "a.csv", "--reader", "ben"), _ONE),
    ],
)
def test_options_of_a_sheet_need_each_other(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    folder = questions(tmp_path)
    before = sorted(folder.iterdir())
    done = proctor("review", arguments[0], folder, *arguments[1:])
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert sorted(folder.iterdir()) == before


def test_exports_need_an_organiser(tmp_path: Path) -> None:
    folder = questions(tmp_path, "anna ben cleo")
    said("update", folder)
    done = proctor("review", "export", folder, "q", "--out", tmp_path / "r.csv")
    assert (done.returncode, "organiser: found no account" in done.stderr) == (1, True)
    assert not (tmp_path / "r.csv").exists()


def rated(tmp_path: Path, form: str) -> Path:
    """A review whose own store has the answers of two systems."""
    dimensions = "dimensions: [{name: correct, levels: [0, 1, 2]}]"
    folder = folder_of(tmp_path, f"name: a\n    form: {form}\n    benchmark: b\n    {dimensions}")
    items = tuple(
        Item(id=f"q{n}", group=f"v{n}", question="What?", answer=FreeTextFormat(), reference=Reference(answer="liver"))
        for n in range(4)
    )
    store = Store(folder / "review.sqlite")
    store.add_benchmark(Benchmark("b", "B", items, (ACCURACY,), "accuracy"))
    for system in ("good", "bad"):
        run = store.start_run("b", system, "video", {})
        store.write(run, [(Answer(item_id=item.id, text=f"{system} {item.id}"), []) for item in items])
        value = 2.0 if system == "good" else 0.0
        scores = [Score(item_id=item.id, metric="correct", value=value, scorer="judge") for item in items]
        store.add_scores(run, scores)
    store.close()
    return folder


def decide(folder: Path, tmp_path: Path, cells: Any) -> None:
    for name in ("anna", "ben"):
        file = tmp_path / f"{name}.csv"
        said("export", folder, "a", "--what", "sheet", "--reader", name, "--out", file)
        with file.open(newline="") as opened:
            rows = list(csv.DictReader(opened))
        fill(file, {row["item"]: cells(row) for row in rows}, {})
        said("update", folder, "--study", "a", "--reader", name, "--submit", file)


def test_ratings_go_into_the_audit(tmp_path: Path) -> None:
    folder = rated(tmp_path, "rating")
    assert said("update", folder).startswith("a: 8 new items")
    decide(folder, tmp_path, lambda row: {"correct": "2" if "good" in row["answer"] else "1"})
    assert said("export", folder, "a", "--what", "scores") == "16 scores by people\n"
    done = proctor("audit", "b", "--store", folder / "review.sqlite", "--draws", "50", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "judge" in done.stdout


def test_choices_become_preferences(tmp_path: Path) -> None:
    folder = rated(tmp_path, "pairwise")
    said("update", folder)
    decide(folder, tmp_path, lambda row: {"choice": "first" if row["answers"].startswith("1. good") else "second"})
    (good, bad) = json.loads(said("export", folder, "a", "--what", "scores", "--format", "json"))
    assert (good["system"], bad["system"]) == ("good", "bad")
    assert good["points expected"] == 1.0
    assert "preferred in every comparison" in said("export", folder, "a", "--what", "scores")


def test_a_disabled_reader_stops_no_review(tmp_path: Path) -> None:
    folder = questions(tmp_path)
    said("update", folder)
    assert proctor("serve", "users", "disable", folder, "ben").returncode == 0
    with (folder / "items.jsonl").open("a") as file:
        file.write(json.dumps({"id": "q9", "group": "v9", "body": QUESTION}) + "\n")
    done = proctor("review", "update", folder)
    assert (done.returncode, done.stdout) == (0, "q: 1 new item, 0 changed, 4 as before, 0 assignments made\n")
    assert "q: no new work for ben (disabled); proctor review update DIR --reassign NAME --study q" in done.stderr
    assert "q: 1 item waiting until enough of the plan's people may log in" in done.stderr
    proctor("serve", "users", "enable", folder, "ben")
    done = proctor("review", "update", folder)
    assert done.stdout == "q: 0 new items, 0 changed, 5 as before, 3 assignments made\n"
    assert done.stderr == ""


def test_who_leaves_passes_open_work_on(tmp_path: Path) -> None:
    folder = questions(tmp_path)
    settings = (folder / "review.yaml").read_text()
    said("update", folder)
    accept = {"decision": "accept", **dict.fromkeys(ALL_CHECKS, "yes")}
    file = tmp_path / "ben.csv"
    said("export", folder, "q", "--what", "sheet", "--reader", "ben", "--out", file)
    fill(file, {"q0": accept}, {})
    assert (
        said("update", folder, "--study", "q", "--reader", "ben", "--submit", file)
        == "1 submitted, 0 submitted before, 3 left open\n"
    )
    alone = proctor("review", "update", folder, "--reassign", "ben", "--study", "q")
    assert alone.stdout == "0 items passed on, 0 gold items taken away, 3 kept\n"
    assert "add a reader to the plan" in alone.stderr
    for name in ("dora", "eve"):
        proctor("serve", "users", "add", folder, name)
    (folder / "review.yaml").write_text(settings.replace("[anna, ben]", "[anna, ben, dora, eve]"))
    assert (
        said("update", folder, "--reassign", "ben", "--study", "q")
        == "3 items passed on, 0 gold items taken away, 0 kept\n"
    )
    assert said("export", folder, "q", "--what", "sheet", "--reader", "ben", "--out", file).startswith("0 items")
    counts = [
        int(said("export", folder, "q", "--what", "sheet", "--reader", name, "--out", file).split()[0])
        for name in ("anna", "dora", "eve")
    ]
    assert counts[0] == 4
    assert sorted(counts[1:]) == [1, 2]
    assert (
        said("update", folder, "--reassign", "ben", "--study", "q")
        == "0 items passed on, 0 gold items taken away, 0 kept\n"
    )


def test_who_reads_a_review_waits_for_nobody_and_leaves_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = questions(tmp_path)
    said("update", folder)
    monkeypatch.setattr(database, "_BUSY_S", 0.0)
    with closing(sqlite3.connect(folder / "review.sqlite", isolation_level=None)) as other:
        other.execute("begin immediate")
        assert said("status", folder).startswith("Studies")
        for words in ("list", "trail"):
            done = proctor("serve", "users", words, folder)
            assert (done.returncode, "olga" in done.stdout) == (0, True)
        refused = proctor("serve", "users", "disable", folder, "ben")
        told = "proctor: found database is locked, expected a database that can be written\n"
        assert (refused.returncode, refused.stderr) == (1, told)
        other.execute("rollback")
    said("status", folder)
    assert [one.name for one in folder.iterdir() if "sqlite" in one.name] == ["review.sqlite"]
