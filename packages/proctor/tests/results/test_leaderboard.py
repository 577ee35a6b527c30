"""The leaderboard of `results` and the report: who is ranked, and why somebody is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core import ACCURACY, FailedPolicy, Status
from proctor.reports import leaderboard_notes, leaderboard_table, write_report
from proctor.results import Leaderboard, LeaderboardRow, Options, leaderboard, results
from proctor.runs import Store
from tests.support.contest import JUDGE, NAME, Given, contest_store, skilled, write_run

QUESTIONS = 240
SYSTEMS = {"first": skilled(0.9, 0.8, seed=1), "second": skilled(0.9, 0.6, seed=2), "third": skilled(0.5, 0.3, seed=3)}
HALF: list[Given] = [number % 4 == 1 if number % 2 else None for number in range(QUESTIONS)]


def contest(folder: Path) -> Store:
    store = contest_store(folder, failed=None)
    for system, right in SYSTEMS.items():
        write_run(store, system, right)
    return store


def board(store: Store, failed: FailedPolicy | None = None) -> Leaderboard:
    return leaderboard(store, NAME, condition="video", options=Options(draws=200, failed=failed))


def by_name(found: Leaderboard) -> dict[str, LeaderboardRow]:
    return {row.system: row for row in found.rows}


@pytest.mark.parametrize("best", [True, False])
def test_an_oracle_baseline_has_no_rank_and_enters_no_test_of_others(tmp_path: Path, best: bool) -> None:
    """Whether it is better than all or worse than all: the rows of the contestants stay to the last digit."""
    store = contest(tmp_path)
    before = board(store)
    ranks = {row.system: row.rank for row in before.rows}
    assert ranks["first"] == 1 < (ranks["third"] or 0)
    for name in ("majority", "text-similarity", "another oracle"):
        write_run(store, name, [best] * QUESTIONS, oracle=True)
    after = by_name(board(store))
    assert [after[row.system] for row in before.rows] == before.rows
    oracle = after["majority"]
    assert oracle.oracle_baseline
    assert (oracle.rank, oracle.rank_low, oracle.rank_high, oracle.resampled_rank_low, oracle.p_best) == (None,) * 5
    assert (oracle.value, oracle.n, oracle.policy) == (float(best), QUESTIONS, "")


def test_oracles_alone_rank_nobody(tmp_path: Path) -> None:
    store = contest_store(tmp_path)
    write_run(store, "majority", [True] * QUESTIONS, oracle=True)
    found = board(store)
    assert ([row.rank for row in found.rows], found.items) == ([None], 0)


def test_systems_without_a_rank_stand_best_first_behind_the_ranked(tmp_path: Path) -> None:
    store = contest(tmp_path)
    ranked = [row.system for row in board(store).rows]
    for name, right in (("a", 60), ("b", 180), ("c", 120)):
        write_run(store, name, [number < right for number in range(QUESTIONS)], oracle=True)
    write_run(store, "unfinished", [True] * 100)
    rows = board(store, None).rows
    assert [row.system for row in rows] == [*ranked, "b", "c", "unfinished", "a"]
    assert [row.drawn for row in rows[-4:]] == pytest.approx([180 / QUESTIONS, 120 / QUESTIONS, 100 / QUESTIONS, 0.25])


@pytest.mark.parametrize("failed", [None, *FailedPolicy])
def test_a_format_that_a_baseline_does_not_answer_is_told_apart_from_items_not_asked(
    tmp_path: Path, failed: FailedPolicy | None
) -> None:
    """`longest-option` answers no orders, whatever it is asked: that is no incomplete run, and no policy is about
    it."""
    store = contest(tmp_path)
    write_run(store, "longest-option", HALF)
    write_run(store, "unfinished", HALF)
    rows = by_name(board(store, failed))
    baseline, unfinished = rows["longest-option"], rows["unfinished"]
    assert (baseline.unsupported, baseline.missing, baseline.policy, baseline.rank) == (120, 0, "", None)
    assert (baseline.value, baseline.n) == (0.5, 120)
    assert (unfinished.unsupported, unfinished.missing) == (0, 120)
    assert unfinished.policy == (failed or "both")
    found = {row.system: row for row in results(store, NAME, Options(draws=200, failed=failed)).rows}
    assert (found["longest-option"].unsupported, found["longest-option"].missing) == (120, 0)
    assert (found["unfinished"].unsupported, found["unfinished"].missing) == (0, 120)


def test_the_report_says_who_is_shown_and_not_ranked(tmp_path: Path) -> None:
    store = contest(tmp_path)
    write_run(store, "longest-option", HALF)
    write_run(store, "majority", [True] * QUESTIONS, oracle=True)
    write_report(store, NAME, tmp_path / "report.html", options=Options(draws=200), max_items=0)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Unsupported items: longest-option skipped 120." in page
    assert "oracle baseline" in page
    assert "A system without a score for every item has no rank." not in page


def test_items_of_a_format_that_code_does_not_score_are_not_counted_as_left_out(tmp_path: Path) -> None:
    store = contest_store(tmp_path, failed=None, texts=10)
    for system, right in SYSTEMS.items():
        write_run(store, system, ["there" if number < 10 else one for number, one in enumerate(right)])
    found = leaderboard(store, NAME, condition="video", scorer="code", options=Options(draws=200))
    assert (found.items, found.left_out) == (QUESTIONS - 10, 0)


def test_the_table_of_a_terminal_has_what_the_rows_have(tmp_path: Path) -> None:
    store = contest(tmp_path)
    write_run(store, "fourth", skilled(0.52, 0.3, seed=4))
    write_run(store, "majority", [True] * QUESTIONS, oracle=True)
    write_run(store, "unfinished", [True] * 100)
    found = board(store, None)
    ranges = {(row.rank_low or 0, row.rank_high or 0) for row in found.rows}
    assert any(low < high for low, high in ranges)
    for row, cells in zip(found.rows, leaderboard_table(found, "By accuracy").rows, strict=True):
        rank, name, value, interval, between, leads, note = map(str, cells)
        assert (rank, name) == ("–" if row.rank is None else str(row.rank), row.system)
        assert between == (
            "–"
            if row.rank is None
            else f"{row.rank_low} to {row.rank_high}"
            if row.rank_low != row.rank_high
            else str(row.rank_low)
        )
        assert leads == ("–" if row.p_best is None else f"{100 * row.p_best:.1f} %")
        assert note == {"majority": "oracle baseline", "unfinished": "140 not asked"}.get(row.system, "")
        if row.value is not None:
            assert value == f"{100 * row.value:.1f} %"
            assert interval == f"{100 * (row.ci_low or 0):.1f} to {100 * (row.ci_high or 0):.1f}"


def judged_board(store: Store, failed: FailedPolicy | None = None) -> Leaderboard:
    return leaderboard(
        store, NAME, condition="video", metric=ACCURACY.name, scorer=JUDGE, options=Options(draws=200, failed=failed)
    )


def remarks_of(found: Leaderboard) -> dict[str, str]:
    return {str(row[1]): str(row[-1]) for row in leaderboard_table(found, "").rows}


def test_each_system_without_a_rank_has_a_reason(tmp_path: Path) -> None:
    """All questions are free text that a judge scores."""
    store = contest_store(tmp_path, failed=None, items=24, texts=24)
    write_run(store, "good", ["right"] * 24)
    write_run(store, "unfinished", ["right"] * 4)
    write_run(store, "cut off", [*["right"] * 7, *[Status.FAILED] * 17])
    write_run(store, "silent", ["none"] * 24)
    write_run(store, "waits", ["unscored"] * 24)
    write_run(store, "never came", [Status.FAILED] * 24)
    found = judged_board(store)
    assert {row.system: row.rank for row in found.rows if row.rank} == {"good": 1}
    assert remarks_of(found) == {
        "good": "",
        "unfinished": "20 not asked",
        "cut off": "17 failed",
        "silent": "24 unresolved",
        "waits": "24 not scored",
        "never came": "24 failed",
    }
    notes = " ".join(leaderboard_notes(found))
    assert "A … B: this run is incomplete." in notes
    assert "A system without a score for every item has no rank." in notes
    assert "always says the same" not in notes


def test_who_lacks_everything_is_not_first_even_alone(tmp_path: Path) -> None:
    store = contest_store(tmp_path, failed=None, items=10, texts=10)
    write_run(store, "silent", ["none"] * 10)
    (row,) = judged_board(store).rows
    assert (row.rank, row.p_best, row.if_wrong, row.if_excluded, row.undefined) == (None, None, 0.0, None, False)
    write_report(store, NAME, tmp_path / "report.html", options=Options(draws=200), max_items=0)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "No system has a score under video." in page
    assert "has the best" not in page
    assert judged_board(store, FailedPolicy.WRONG).rows[0].rank == 1  # as chosen


def test_of_two_that_lack_equally_much_neither_is_first_by_its_name(tmp_path: Path) -> None:
    store = contest_store(tmp_path, failed=None)
    for name, shift in (("a", 0), ("b", 1)):
        write_run(store, name, [None if number % 2 == shift else True for number in range(QUESTIONS)])
    assert [row.rank for row in board(store).rows] == [None, None]


def test_one_of_two_incomplete_systems_is_not_ranked_alone(tmp_path: Path) -> None:
    """The one that lacks less would be first of one, and the other might be better."""
    store = contest_store(tmp_path, failed=None)
    write_run(store, "a", [None if number % 2 else True for number in range(QUESTIONS)])
    write_run(store, "b", [None if number % 3 else True for number in range(QUESTIONS)])
    assert [row.rank for row in board(store).rows] == [None, None]
    write_report(store, NAME, tmp_path / "report.html", options=Options(draws=200), max_items=0)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Not known: no system has a rank (the leaderboard says why). a reaches 50.0 % … 100.0 %" in page
    assert "has the best" not in page


def test_the_items_of_the_one_scorer_there_is_are_ranked_on_without_naming_it(tmp_path: Path) -> None:
    """All free text, by one judge: without its name nothing was scorable, and all were first on no item."""
    store = contest_store(tmp_path, failed=None, items=24, texts=24)
    write_run(store, "good", ["right"] * 24)
    write_run(store, "bad", ["wrong"] * 24)
    write_run(store, "waits", ["unscored"] * 24)
    found = leaderboard(store, NAME, condition="video", metric=ACCURACY.name, options=Options(draws=200))
    assert found == judged_board(store)
    assert ([(row.system, row.rank) for row in found.rows], found.items) == (
        [("good", 1), ("bad", 2), ("waits", None)],
        24,
    )


def test_who_waits_for_the_judge_keeps_the_scores_by_code(tmp_path: Path) -> None:
    store = contest_store(tmp_path, failed=None, items=24, texts=12)
    write_run(store, "good", [*["right"] * 12, *[True] * 12])
    write_run(store, "waits", [*["unscored"] * 12, *[True] * 12])
    rows = by_name(judged_board(store))
    assert (rows["waits"].rank, rows["waits"].n, rows["waits"].value, rows["waits"].unscored) == (None, 12, 1.0, 12)


def test_a_report_on_two_silent_systems_compares_nothing(tmp_path: Path) -> None:
    store = contest_store(tmp_path, failed=None, items=24, texts=24)
    for name in ("a", "b"):
        write_run(store, name, ["none"] * 24)
    write_report(store, NAME, tmp_path / "report.html", options=Options(draws=100), max_items=0)
    assert "No system has a score under video." in (tmp_path / "report.html").read_text(encoding="utf-8")
