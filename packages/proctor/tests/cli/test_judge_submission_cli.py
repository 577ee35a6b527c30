"""A judge's scores leave as the task's submission, and those of other programs come in."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.faulty_server import Fault, FaultyServer
from tests.support.program import within
from tests.support.rated_task import COLUMNS, SCORER, export, judgements, reply, rows_of, score, stored


def test_a_submission_of_the_real_answers_passes_lint_and_audit(data: Path, tmp_path: Path) -> None:
    folder, store, out = data / "mediqa-eval", tmp_path / "runs.db", tmp_path / "mine.csv"
    ratings = folder / "ratings.csv"
    assert within("import", "mediqa-eval", ratings, "--data", folder, "--store", store)[0] == 0
    with FaultyServer(reply) as server:
        code, said = score(store, "--concurrency", "16", server=server)
        assert code == 0, said
        assert f"726 answers scored by {SCORER}" in said
        paid = server.count
        first = judgements(store)
        code, said = score(store, server=server)
        assert (code, server.count, judgements(store)) == (0, paid, first)
        assert "new judgements" not in said
    assert paid <= 726
    code, said = export(store, out, "--template", ratings)
    assert (code, "2904 rows in " in said) == (0, True), said
    assert len(rows_of(out)) == 2904
    code, said = within("check", "mediqa-eval", out, "--ratings", ratings)
    assert (code, "0 errors, 0 warnings" in said) == (0, True), said
    code, said = within("audit", "mediqa-eval", "--store", store, "--protocol", "official")
    assert (code, len(json.loads(said))) == (0, 98), said


def test_the_submission_has_the_tasks_columns_and_each_answer_once(tmp_path: Path) -> None:
    store, out = stored(tmp_path), tmp_path / "mine.csv"
    with FaultyServer(reply) as server:
        code, said = score(store, server=server)
    assert code == 0, said
    assert server.count == 3
    assert export(store, out)[0] == 0
    rows = rows_of(out)
    assert list(rows[0]) == COLUMNS
    assert len(rows) == 2 * 6 + 2
    assert {row["rater_id"] for row in rows} == {SCORER}
    assert rows[6]["candidate"] == 'Rosacea, "likely",\nsee a physician.'
    assert (rows[-1]["lang"], rows[-1]["metric"]) == ("zh", "writing-style")
    assert b"\r" not in out.read_bytes()


def test_rows_of_a_template_come_in_its_order(tmp_path: Path) -> None:
    store, out = stored(tmp_path), tmp_path / "mine.csv"
    with FaultyServer(reply) as server:
        assert score(store, server=server)[0] == 0
    assert export(store, out)[0] == 0
    rows = rows_of(out)
    template = tmp_path / "template.csv"
    with template.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, COLUMNS[:-2], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows[::-1][:5])
    assert export(store, out, "--template", template)[0] == 0
    assert rows_of(out) == rows[::-1][:5]
    template.write_text(template.read_text(encoding="utf-8").replace("湿疹。", "疣。"), encoding="utf-8")
    code, said = export(store, out, "--template", template)
    assert (code, "found another text than the scored one, expected the same" in said) == (1, True), said
    assert rows_of(out) == rows[::-1][:5]


def test_missing_scores_leave_nothing_written_until_they_are_there(tmp_path: Path) -> None:
    store, out = stored(tmp_path), tmp_path / "mine.csv"
    with FaultyServer(reply, script=[Fault.SERVER_ERROR]) as server:
        code, said = score(store, "--concurrency", "1", server=server)
        assert code == 3
        assert "1 answer without a score (openai:judge: HTTP 500" in said
        assert "run the same command again" in said
        code, said = export(store, out)
        assert (code, out.exists()) == (1, False)
        assert "found no score for 6 of 14 rows, the first iiyi/E1/en, S1, disagree_flag, expected one" in said
        code, said = score(store, server=server)
        assert (code, server.count) == (0, 4), said
    assert export(store, out)[0] == 0
    assert len(rows_of(out)) == 14


def test_allow_missing_leaves_rows_out_and_says_so(tmp_path: Path) -> None:
    store, out = stored(tmp_path), tmp_path / "mine.csv"
    with FaultyServer(reply, script=[Fault.REFUSAL]) as server:
        assert score(store, "--concurrency", "1", server=server)[0] == 3
    code, said = export(store, out, "--allow-missing")
    assert (code, "8 rows in " in said) == (0, True), said
    assert len(rows_of(out)) == 8
    assert all(row["value"] for row in rows_of(out))
    code, said = within("check", "mediqa-eval", out, "--ratings", tmp_path / "ratings.csv", "--all")
    assert code == 1
    assert said.count("error: found no row for iiyi, E1, en, S1, ") == 6
    assert "no row for iiyi, E1, en, S1, overall" in said
    code, said = within("audit", "mediqa-eval", "--store", store, "--draws", "0")
    assert code == 1
    assert f"scores by {SCORER}: found none for 6 rated answers, the first iiyi/E1/en, S1, " in said
    code, said = within("audit", "mediqa-eval", "--store", store, "--draws", "0", "--allow-missing")
    assert (code, f"{SCORER}: 6 scores by human:A, human:B alone: left out" in said) == (0, True), said


def test_a_file_that_was_there_stays_where_scores_are_missing(tmp_path: Path) -> None:
    store, out = stored(tmp_path), tmp_path / "mine.csv"
    out.write_text("before")
    with FaultyServer("no") as server:
        assert score(store, server=server)[0] == 3
    assert export(store, out)[0] == 1
    assert out.read_text() == "before"


@pytest.mark.parametrize("form", ["judgements", "submission"])
@pytest.mark.parametrize(
    ("where", "text"),
    [
        (lambda folder: folder / "runs.db" / "mine.csv", "expected a place to write to"),
        (lambda folder: folder, "expected a place to write to"),
    ],
)
def test_where_it_can_not_write_it_says_so(where: Callable[[Path], Path], text: str, form: str, tmp_path: Path) -> None:
    if form == "judgements" and where(tmp_path).suffix:
        text = "found a name that ends in .csv, expected one that ends in .jsonl"  # told before anything is written
    store = stored(tmp_path)
    with FaultyServer(reply) as server:
        assert score(store, server=server)[0] == 0
    code, said = export(store, where(tmp_path), form=form)
    assert (code, text in said) == (1, True), said


def test_an_unknown_scorer_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    store = stored(tmp_path)
    code, said = export(store, tmp_path / "mine.csv", scorer="mine")
    assert (code, "found 'mine', expected one of human:A, human:B" in said) == (1, True), said


def test_scores_of_another_program_are_imported_compared_and_exported(tmp_path: Path) -> None:
    store, out = stored(tmp_path), tmp_path / "mine.csv"
    with FaultyServer(reply) as server:
        assert score(store, server=server)[0] == 0
    assert export(store, out)[0] == 0
    given = ("import", "mediqa-eval", out, "--data", tmp_path / "encounters.jsonl", "--store", store)
    code, said = within(*given, "--scorer", "theirs")
    assert (code, "14 scores by theirs in " in said) == (0, True), said
    assert within(*given, "--scorer", "theirs")[0] == 0  # again: nothing changes
    again = tmp_path / "again.csv"
    assert export(store, again, scorer="theirs")[0] == 0
    assert [row | {"rater_id": ""} for row in rows_of(again)] == [row | {"rater_id": ""} for row in rows_of(out)]
    rows = rows_of(out)
    with out.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, COLUMNS)
        writer.writeheader()
        writer.writerows([rows[0] | {"value": "0.123"}, *rows[1:]])
    code, said = within(*given, "--scorer", "theirs")
    assert (code, "scores by theirs: found other ones already" in said) == (1, True), said
    code, said = within(*given, "--scorer", "human:me")
    assert (code, "expected the name of an automatic scorer" in said) == (1, True), said
