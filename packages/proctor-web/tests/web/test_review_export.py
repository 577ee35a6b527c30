"""What leaves a review: readings, the consensus, scores that the audit uses, preferences, a datasheet, and sheets."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, select

from proctor.core import ACCURACY, Answer, Benchmark, InputError, Item, ProblemsError, Reference, Score
from proctor.core.formats import FreeTextFormat
from proctor.results import compared
from proctor.runs import Store
from proctor.stats import Resampling
from proctor_web import schema
from proctor_web.agreement import agreement_tables, study_agreement
from proctor_web.export import (
    CONSENSUS_COLUMNS,
    READING_COLUMNS,
    consensus_rows,
    datasheet_section,
    preferences,
    reading_rows,
    scores_into_store,
    write_readings,
)
from proctor_web.readings import Save, adjudicate, edit_item, save_draft, seal
from proctor_web.settings import StudyPlan, StudySettings
from proctor_web.sheets import SheetTally, read_sheet, write_sheet
from proctor_web.sources import items_of_runs
from proctor_web.studies import add_study, deal_study, import_items
from tests.support.web_study import ACCEPT, ALL_CHECKS, NOW, QUESTION, REJECT, accounts_of, new_items, review, study_of


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = review(tmp_path / "review.sqlite")
    yield opened
    opened.dispose()


def settled_study(engine: Engine) -> dict[str, int]:
    """Three items: one agreed, one adjudicated with an edit, one with a reading missing."""
    ids = study_of(engine, new_items(3))
    edit: dict[str, Any] = {
        "decision": "edit",
        "checks": ALL_CHECKS,
        "reason": "=clearer",
        "edited": QUESTION | {"stem": "And now?"},
    }
    with engine.begin() as connection:
        who = accounts_of(connection)
        for name, key, payload in (
            ("anna", "q000", ACCEPT), ("ben", "q000", ACCEPT), ("anna", "q001", ACCEPT), ("ben", "q001", REJECT),
            ("anna", "q002", REJECT),
        ):  # fmt: skip
            seal(connection, who[name], ids[key], Save(1, 0, payload, f"by {name}", 5), NOW)
        adjudicate(connection, who["cleo"], ids["q001"], 1, edit, "seen twice", NOW)
    return ids


def test_every_single_reading_is_exported_by_pseudonym(engine: Engine, tmp_path: Path) -> None:
    settled_study(engine)
    with engine.begin() as connection:
        rows = reading_rows(connection, accounts_of(connection)["olga"], "s")
    assert [(one["item"], one["reader"], one["payload"]["decision"], one["comment"]) for one in rows] == [
        ("q000", "R0", "accept", "by anna"),
        ("q000", "R1", "accept", "by ben"),
        ("q001", "R0", "accept", "by anna"),
        ("q001", "R1", "reject", "by ben"),
    ]
    assert tuple(rows[0]) == READING_COLUMNS
    assert (rows[0]["version"], rows[0]["seconds"], rows[0]["sealed"]) == (1, 5.0, NOW.isoformat())
    assert write_readings(rows, READING_COLUMNS, tmp_path / "r.jsonl", "jsonl") == 4
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert lines == rows
    assert not any(name in (tmp_path / "r.jsonl").read_text() for name in ('"anna"', '"ben"'))


def test_readings_in_parquet_are_the_same(engine: Engine, tmp_path: Path) -> None:
    from pyarrow import parquet

    settled_study(engine)
    with engine.begin() as connection:
        rows = reading_rows(connection, accounts_of(connection)["olga"], "s")
    write_readings(rows, READING_COLUMNS, tmp_path / "r.parquet", "parquet")
    kept = parquet.read_table(tmp_path / "r.parquet").to_pylist()
    assert [one | {"payload": json.loads(one["payload"]), "gold": one["gold"] == "true"} for one in kept] == rows


def test_the_consensus_has_who_settled_and_the_settled_item(engine: Engine) -> None:
    settled_study(engine)
    with engine.begin() as connection:
        rows = consensus_rows(connection, accounts_of(connection)["olga"], "s")
        assert consensus_rows(connection, accounts_of(connection)["rita"], "s") == []
    assert [(one["item"], one["by"], one["reason"], one["body"]["stem"]) for one in rows] == [
        ("q000", "agreed", "", QUESTION["stem"]),
        ("q001", "R2", "seen twice", "And now?"),
    ]
    assert tuple(rows[0]) == CONSENSUS_COLUMNS


def test_what_nobody_settled_is_in_the_consensus_with_its_readings(engine: Engine) -> None:
    ids = study_of(engine, new_items(3, gold=1), gold_share=0.5)
    with engine.begin() as connection:
        who = accounts_of(connection)
        for key, said in (("q000", (ACCEPT, REJECT)), ("q001", (ACCEPT, ACCEPT)), ("q002", (ACCEPT,))):
            for name, payload in zip(("anna", "ben"), said, strict=False):
                seal(connection, who[name], ids[key], Save(1, 0, payload, "seen"), NOW)
        rows = consensus_rows(connection, who["olga"], "s")
        assert consensus_rows(connection, who["rita"], "s") == []
    assert [(row["item"], row["by"], row["payload"]) for row in rows] == [
        ("q000", "", None), ("q001", "agreed", ACCEPT)
    ]  # fmt: skip
    assert rows[0]["readings"] == [
        {"reader": reader, "payload": payload, "comment": "seen"}
        for reader, payload in (("R0", ACCEPT), ("R1", REJECT))
    ]


def test_readings_of_former_versions_stay_in_the_export(engine: Engine) -> None:
    ids = settled_study(engine)
    with engine.begin() as connection:
        who = accounts_of(connection)
        edit_item(connection, who["olga"], ids["q000"], QUESTION | {"stem": "Now?"}, "typing error", NOW)
        rows = reading_rows(connection, who["olga"], "s")
    assert [one["version"] for one in rows] == [1, 1, 1, 1]


def test_a_datasheet_says_who_reviewed_and_how_far_they_agreed(engine: Engine) -> None:
    settled_study(engine)
    with engine.begin() as connection:
        text = "\n".join(datasheet_section(connection, accounts_of(connection)["olga"], "s"))
    assert (
        "2 readers (R0, R1), each blind to the others until the reading was submitted: 4 submitted readings of 2 of 3 items."
        in text
    )
    assert (
        "1 item settled by agreement, 1 by adjudication. Two readings of an item said the same in 50.0 % of pairs"
        in text
    )
    assert "| decision | 50.0 % |" in text


# -- answers of runs

DIMENSION = {"name": "correct", "levels": [0, 1, 2]}


def rated(engine: Engine, folder: Path, form: str) -> tuple[Store, StudySettings]:
    items = tuple(
        Item(id=f"q{n}", group=f"v{n}", question="What?", answer=FreeTextFormat(), reference=Reference(answer="liver"))
        for n in range(4)
    )
    store = Store(folder / "runs.db")
    store.add_benchmark(Benchmark("b", "B", items, (ACCURACY,), "accuracy"))
    for system in ("good", "bad"):
        run = store.start_run("b", system, "video", {})
        store.write(run, [(Answer(item_id=item.id, text=f"{system} {item.id}"), []) for item in items])
    plan = StudyPlan(readers=("anna", "ben"))
    fields = {"name": "s", "form": form, "benchmark": "b", "dimensions": [DIMENSION], "plan": plan}
    study = StudySettings.model_validate(fields)
    with engine.begin() as connection:
        number = add_study(connection, study, NOW)
        import_items(connection, number, [new for new, _ in items_of_runs(store, study)], NOW)
        deal_study(connection, number, study.plan, NOW)
    return store, study


def read_all(engine: Engine, payload: Any) -> None:
    """Anna and Ben read all items; `payload` makes a reading of the name and the body."""
    from sqlalchemy import select

    from proctor_web.schema import study_items, versions

    with engine.begin() as connection:
        who = accounts_of(connection)
        query = select(study_items.c.id, versions.c.body).join(versions, versions.c.item == study_items.c.id)
        for row in connection.execute(query).all():
            for name in ("anna", "ben"):
                seal(connection, who[name], row.id, Save(1, 0, payload(name, row.body)), NOW)


def test_ratings_become_scores_that_the_audit_uses(engine: Engine, tmp_path: Path) -> None:
    store, study = rated(engine, tmp_path, "rating")
    read_all(
        engine,
        lambda name, body: {
            "scores": {
                "correct": (2 if "good" in body["answer"] else 0) - (name == "ben" and "good q0" in body["answer"])
            }
        },
    )
    for _ in range(2):  # again: the same scores
        with engine.begin() as connection:
            assert scores_into_store(connection, accounts_of(connection)["olga"], study, store) == 16
    assert store.scorers("b") == {"human:R0": {"correct"}, "human:R1": {"correct"}}
    for run in store.runs("b"):
        value = 2.0 if run.system == "good" else 0.0
        store.add_scores(run, [Score(item_id=f"q{n}", metric="correct", value=value, scorer="judge") for n in range(4)])
    table, (judge,) = compared(store, "b", ["judge"])
    assert len(table.ratings) == 16
    assert {one.rater for one in table.ratings} == {"R0", "R1"}
    assert judge.scores["q0", "good", "correct"] == 2.0
    assert {one.value for one in table.ratings if one.item == "q0" and one.system == "good"} == {1.0, 2.0}
    store.close()


def test_choices_become_strengths_of_systems(engine: Engine, tmp_path: Path) -> None:
    store, study = rated(engine, tmp_path, "pairwise")

    def choose(name: str, body: dict[str, Any]) -> dict[str, Any]:
        if "q0" in body["answers"][0]:
            return {"choice": "tie"}
        better = "good" if "q1" not in body["answers"][0] else "bad"
        return {"choice": "first" if body["answers"][0].startswith(better) else "second"}

    read_all(engine, choose)
    with engine.begin() as connection:
        found = preferences(connection, accounts_of(connection)["olga"], study, store, Resampling(draws=50))
        with pytest.raises(InputError, match="found the form pairwise, expected a study with form: rating"):
            scores_into_store(connection, accounts_of(connection)["olga"], study, store)
    assert [one.name for one in found.systems] == ["good", "bad"]
    assert found.systems[0].points.value == pytest.approx(5 / 8)  # of 8 comparisons 4 won, 2 lost, 2 tied
    store.close()


# -- sheets


def filled(file: Path, cells: dict[str, dict[str, str]]) -> None:
    """Fills cells of a sheet by item and column."""
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | cells.get(row["item"], {}) for row in rows)


YES = dict.fromkeys(ALL_CHECKS, "yes")
NO_SECOND = YES | {"one_right": "no", "reason": "two options are right"}


def items_of(connection: Connection) -> dict[str, int]:
    return {row.key: row.id for row in connection.execute(select(schema.study_items.c.key, schema.study_items.c.id))}


def drafts(engine: Engine, account: int) -> dict[str, str]:
    """The comments of a person's readings, sealed or not, by item."""
    with engine.begin() as connection:
        query = (
            select(schema.study_items.c.key, schema.readings.c.comment)
            .join(schema.versions, schema.versions.c.item == schema.study_items.c.id)
            .join(schema.readings, schema.readings.c.version == schema.versions.c.id)
            .where(schema.readings.c.account == account)
            .order_by(schema.study_items.c.key)
        )
        return {row.key: row.comment for row in connection.execute(query)}


def test_a_class_like_a_formula_is_none_in_a_sheet_and_is_read(engine: Engine, tmp_path: Path) -> None:
    items = [replace(one, body={"classes": ["=clip", "-stapler"]}) for one in new_items(1, "presence")]
    study_of(engine, items, "presence")
    file = tmp_path / "anna.csv"
    with engine.begin() as connection:
        who = accounts_of(connection)
        assert write_sheet(connection, who["anna"], "s", file) == 1
        heads = next(csv.reader(file.read_text().splitlines()))
        assert [head for head in heads if head.startswith(("=", "-"))] == []
        filled(file, {"q000": {"'=clip": "yes", "'-stapler": "no"}})
        assert read_sheet(connection, who["anna"], "s", file, NOW).sealed == 1
        (payload,) = connection.execute(select(schema.readings.c.payload)).scalars()
    assert payload == {"present": ["=clip"]}


def test_a_sheet_is_written_filled_in_and_sealed(engine: Engine, tmp_path: Path) -> None:
    study_of(engine, new_items(3))
    file = tmp_path / "anna.csv"
    with engine.begin() as connection:
        who = accounts_of(connection)
        assert write_sheet(connection, who["anna"], "s", file) == 3
    assert "1. Slides to the liver edge" in file.read_text()
    filled(
        file,
        {
            "q000": {"decision": "Accept", **YES},
            "q001": {"decision": "reject", **YES, "one_right": "no", "reason": "two are right", "comment": "see 0:12"},
        },
    )
    for tally in (SheetTally(2, 1, 0), SheetTally(0, 1, 2)):
        with engine.begin() as connection:
            assert read_sheet(connection, who["anna"], "s", file, NOW) == tally
    with engine.begin() as connection:
        assert write_sheet(connection, who["anna"], "s", file) == 1


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            {"decision": "accept", **YES, "pictures": "maybe"},
            "row 2, column 'pictures': found 'maybe', expected yes or",
        ),
        ({"decision": "perhaps", **YES}, "row 2: reading, field 'decision': found 'perhaps', expected"),
        (
            {"decision": "accept"},
            (
                "row 2: not yet complete: the check: answerable from the pictures; the check: one correct option; "
                "the check: the other options; the check: clinically correct$"
            ),
        ),
        (
            {"decision": "accept", **YES, "pictures": "no"},
            "row 2: not yet complete: a question with a failed check can't be accepted; edit or reject it$",
        ),
        (
            {"decision": "Edit", **YES},
            "row 2, column 'decision': found 'edit', expected accept or reject: a question is edited in the browser$",
        ),
        ({"decision": "accept", **YES, "revision": "x"}, "row 2, column 'revision': found 'x', expected the number as"),
        ({"item": "q9"}, "row 2, column 'item': found 'q9', expected an item of this person's work"),
        ({"version": "2"}, "row 2, column 'version': found '2', expected 1: write a new sheet"),
    ],
)
def test_a_wrong_sheet_is_refused_as_a_whole(engine: Engine, tmp_path: Path, cells: dict[str, str], said: str) -> None:
    study_of(engine, new_items(2))
    file = tmp_path / "anna.csv"
    with engine.begin() as connection:
        who = accounts_of(connection)
        write_sheet(connection, who["anna"], "s", file)
    with file.open(newline="") as opened:
        first, second = (row["item"] for row in csv.DictReader(opened))
    filled(file, {first: cells, second: {"decision": "accept", **YES}})
    with pytest.raises(InputError, match=said), engine.begin() as connection:
        read_sheet(connection, who["anna"], "s", file, NOW)
    with engine.begin() as connection:
        assert write_sheet(connection, who["anna"], "s", file) == 2


def test_a_sheet_overwrites_nothing_that_was_saved_or_sealed_in_the_browser_since(
    engine: Engine, tmp_path: Path
) -> None:
    study_of(engine, new_items(4))
    file, old = tmp_path / "anna.csv", tmp_path / "old.csv"
    with engine.begin() as connection:
        anna = accounts_of(connection)["anna"]
        ids = items_of(connection)
        save_draft(connection, anna, ids["q003"], Save(1, 0, REJECT, "before", page="p", number=1), NOW)
        assert write_sheet(connection, anna, "s", file) == 4
        save_draft(connection, anna, ids["q000"], Save(1, 0, REJECT, "typed since", page="p", number=1), NOW)
        seal(connection, anna, ids["q001"], Save(1, 0, REJECT), NOW)
    filled(file, {f"q00{number}": {"decision": "accept", **YES} for number in range(4)})
    with file.open(newline="") as opened:
        rows = {row["item"]: number for number, row in enumerate(csv.DictReader(opened), start=2)}
    with pytest.raises(ProblemsError) as caught, engine.begin() as connection:
        read_sheet(connection, anna, "s", file, NOW)
    draft, sealed = "found a draft, saved since the sheet was", "found another reading, submitted since the sheet was"
    said = {rows["q000"]: f"row {rows['q000']}, item 'q000': {draft}"}
    said[rows["q001"]] = f"row {rows['q001']}, item 'q001': {sealed}"
    assert [one[: len(said[row])] for row, one in zip(sorted(said), caught.value.problems, strict=True)] == [
        said[row] for row in sorted(said)
    ]
    assert drafts(engine, anna) == {"q000": "typed since", "q001": "", "q003": "before"}
    with file.open(newline="") as opened, old.open("w", newline="") as written:  # as sheets were before
        names = ["item", "version", "decision", *YES]
        writer = csv.DictWriter(written, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(row for row in csv.DictReader(opened) if row["item"] != "q001")
    with pytest.raises(ProblemsError, match="item 'q003': found a draft"), engine.begin() as connection:
        read_sheet(connection, anna, "s", old, NOW)
    filled(file, {"q000": dict.fromkeys(["decision", *YES], ""), "q001": {"decision": "reject"} | NO_SECOND})
    with engine.begin() as connection:
        assert read_sheet(connection, anna, "s", file, NOW) == SheetTally(2, 1, 1)
    assert drafts(engine, anna) == {"q000": "typed since", "q001": "", "q002": "", "q003": "before"}


def test_a_comment_without_a_decision_is_kept_and_the_sheet_goes_on(engine: Engine, tmp_path: Path) -> None:
    study_of(engine, new_items(2))
    file = tmp_path / "anna.csv"
    with engine.begin() as connection:
        anna = accounts_of(connection)["anna"]
        write_sheet(connection, anna, "s", file)
    filled(file, {"q000": {"comment": "please look at this one"}})
    for _ in range(2):
        with engine.begin() as connection:
            assert read_sheet(connection, anna, "s", file, NOW) == SheetTally(0, 2, 0, 1)
        assert drafts(engine, anna) == {"q000": "please look at this one"}
    filled(file, {"q000": {"comment": "seen again"}})
    with engine.begin() as connection:
        assert read_sheet(connection, anna, "s", file, NOW) == SheetTally(0, 2, 0, 1)
    filled(file, {"q000": {"comment": "", "decision": "accept", **YES}})
    with engine.begin() as connection:
        assert read_sheet(connection, anna, "s", file, NOW) == SheetTally(1, 1, 0)
        (kept,) = connection.execute(select(schema.readings.c.comment, schema.readings.c.sealed)).all()
    assert tuple(kept) == ("seen again", NOW.isoformat())


def test_nobody_measures_the_time_of_a_sheet(engine: Engine, tmp_path: Path) -> None:
    ids = study_of(engine, new_items(2))
    with engine.begin() as connection:
        who = accounts_of(connection)
        write_sheet(connection, who["anna"], "s", tmp_path / "anna.csv")
        filled(tmp_path / "anna.csv", {key: {"decision": "accept", **YES} for key in ids})
        read_sheet(connection, who["anna"], "s", tmp_path / "anna.csv", NOW)
        for key, seconds in (("q000", 12.0), ("q001", 0.0)):
            seal(connection, who["ben"], ids[key], Save(1, 0, ACCEPT, seconds=seconds), NOW)
        found = study_agreement(connection, who["olga"], "s")
        assert [row["seconds"] for row in reading_rows(connection, who["olga"], "s")] == [None, 12.0, None, None]
    assert [one.seconds for one in found.readers] == [None, 12.0]
    assert [(one.key, one.seconds) for one in found.slowest] == [("q000", 12.0), ("q001", None)]
    by_reader = next(one for one in agreement_tables(found) if one.title == "By reader")
    assert [row[2] for row in by_reader.texts] == ["–", "12.0"]


def test_another_persons_sheet_is_refused(engine: Engine, tmp_path: Path) -> None:
    study_of(engine, [replace(one, key=f"k{one.key}") for one in new_items(4)], readings=1)
    with engine.begin() as connection:
        who = accounts_of(connection)
        write_sheet(connection, who["anna"], "s", tmp_path / "anna.csv")
        with pytest.raises(InputError, match="expected an item of this person's work"):
            read_sheet(connection, who["ben"], "s", tmp_path / "anna.csv", NOW)


@pytest.mark.parametrize(
    ("form", "cells", "payload"),
    [
        ("presence", {"clip": "yes", "stapler": "no"}, {"present": ["clip"]}),
        ("presence", {"clip": "no", "stapler": "nein"}, {"nothing": True}),
        ("rating", {"correct": "2", "tone": "0.5"}, {"scores": {"correct": 2.0, "tone": 0.5}}),
        ("choice", {"choice": "Reject"}, {"choice": "reject"}),
        ("pairwise", {"choice": "tie", "reason": "both wrong"}, {"choice": "tie", "reason": "both wrong"}),
    ],
)
def test_sheets_of_other_forms(
    engine: Engine, tmp_path: Path, form: str, cells: dict[str, str], payload: dict[str, Any]
) -> None:
    study_of(engine, new_items(1, form), form, readings=1, readers=("anna",))
    file = tmp_path / "anna.csv"
    with engine.begin() as connection:
        who = accounts_of(connection)
        write_sheet(connection, who["anna"], "s", file)
    filled(file, {"q000": cells})
    with engine.begin() as connection:
        read_sheet(connection, who["anna"], "s", file, NOW)
        (row,) = reading_rows(connection, who["olga"], "s")
    assert row["payload"] == payload


def test_boxes_fit_no_sheet(engine: Engine, tmp_path: Path) -> None:
    study_of(engine, new_items(1, "boxes"), "boxes")
    with (
        engine.begin() as connection,
        pytest.raises(InputError, match="found the form boxes, expected one of question, pres"),
    ):
        write_sheet(connection, accounts_of(connection)["anna"], "s", tmp_path / "a.csv")


def test_an_adjudicators_sheet_shows_both_readings_and_settles(engine: Engine, tmp_path: Path) -> None:
    ids = study_of(engine, new_items(3))
    file = tmp_path / "cleo.csv"
    with engine.begin() as connection:
        who = accounts_of(connection)
        for key, other in (("q000", REJECT), ("q001", ACCEPT)):
            seal(connection, who["anna"], ids[key], Save(1, 0, ACCEPT, "clear"), NOW)
            seal(connection, who["ben"], ids[key], Save(1, 0, other), NOW)
        assert write_sheet(connection, who["cleo"], "s", file) == 1
    with file.open(newline="") as opened:
        (row,) = csv.DictReader(opened)
    assert row["item"] == "q000"
    first, second = row["readings"].splitlines()
    assert (first.startswith("Reader A (R0): decision: accept; "), first.endswith("(clear)")) == (True, True)
    assert "two options are right" in second
    filled(file, {"q000": {"comment": "seen again"}})
    with engine.begin() as connection, pytest.raises(InputError, match="row 2: not yet complete: "):
        read_sheet(connection, who["cleo"], "s", file, NOW)  # the reason would be lost
    filled(file, {"q000": {"comment": "", "decision": "reject", "reason": "two are right"} | NO_SECOND})
    with (
        engine.begin() as connection,
        pytest.raises(InputError, match="row 2: not yet complete: the reason for the dec"),
    ):
        read_sheet(connection, who["cleo"], "s", file, NOW)
    filled(file, {"q000": {"comment": "seen again"}})
    for tally in (SheetTally(1, 0, 0), SheetTally(0, 0, 1)):
        with engine.begin() as connection:
            assert read_sheet(connection, who["cleo"], "s", file, NOW) == tally
            rows = consensus_rows(connection, who["olga"], "s")
    assert [(one["item"], one["by"], one["reason"]) for one in rows] == [
        ("q000", "R2", "seen again"), ("q001", "agreed", "")
    ]  # fmt: skip
    filled(file, {"q000": {"comment": "otherwise"}})
    with engine.begin() as connection, pytest.raises(ProblemsError, match="found another decision, expected no row"):
        read_sheet(connection, who["cleo"], "s", file, NOW)
