"""Boards of a store: who is ranked, what baselines, failures and missing latencies may and may not do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from proctor.core import ACCURACY, FailedPolicy, InputError, Status
from proctor.reports import board_notes
from proctor.results import Board, Contest, analyse, lead_rows, rank_runs
from proctor.results.ranking import _Maker, advancing
from proctor.results.run_scores import readings
from proctor.runs import BASELINES, Store
from proctor.stats import BucketRankReadings, RankingPlan, Resampling
from tests.support.contest import NAME, Given, contest_store, skilled, write_run
from tests.support.program import within

HONEST, RIVAL, WEAK = skilled(0.9, 0.55, seed=1), skilled(0.8, 0.45, seed=2), skilled(0.84, 0.15, seed=3)
HARD: list[bool] = [bool(number % 2) for number in range(240)]


def board(store: Store, *, stability: int = 0, by: tuple[str, ...] = (), **contest: Any) -> Board:
    return rank_runs(store, NAME, Contest(**contest), by=by, plan=RankingPlan(draws=200, stability=stability))[0]


def ranks(found: Board) -> dict[str, int]:
    return {one.standing.name: one.standing.rank for one in found.runs}


def scores(found: Board) -> dict[str, tuple[float | None, ...]]:
    return {one.standing.name: one.standing.scores for one in found.runs}


CHEATS: dict[str, list[Given]] = {
    "an exception": [Status.ERROR if hard else one for one, hard in zip(WEAK, HARD, strict=True)],
    "a refusal": [Status.REFUSED if hard else one for one, hard in zip(WEAK, HARD, strict=True)],
    "a saboteur": [one if number < 12 else Status.FAILED for number, one in enumerate([True] * 240)],
    "not asked": [one if number < 12 else None for number, one in enumerate([True] * 240)],
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_who_fails_on_purpose_ends_below_the_honest_and_moves_nobody(tmp_path: Path, cheat: str) -> None:
    store = contest_store(tmp_path)
    write_run(store, "honest", HONEST)
    write_run(store, "rival", RIVAL)
    before = board(store)
    write_run(store, "cheat", CHEATS[cheat])
    found = board(store)
    assert ranks(found)["honest"] == 1
    assert ranks(found)["cheat"] == 3
    assert {name: scores(found)[name] for name in scores(before)} == scores(before)
    assert (found.items, found.left_out) == (240, 0)


def test_an_answer_that_trips_the_judge_is_worth_no_more_than_a_wrong_one(tmp_path: Path) -> None:
    """Forty free texts: the honest one has three quarters right; the other trips the judge where it would be wrong."""
    store = contest_store(tmp_path, texts=40)
    honest: list[Any] = ["right" if number % 4 else "wrong" for number in range(40)]
    tripping: list[Any] = ["right" if number % 2 else "none" for number in range(40)]
    write_run(store, "honest", honest + HONEST[40:])
    write_run(store, "rival", honest + RIVAL[40:])
    write_run(store, "cheat", tripping + WEAK[40:])
    found = board(store)
    assert ranks(found) == {"honest": 1, "rival": 2, "cheat": 3}
    assert {one.standing.name: one.lacking.unresolved for one in found.runs} == {"honest": 0, "rival": 0, "cheat": 20}
    assert (found.items, found.left_out) == (240, 0)


def test_an_incomplete_run_is_ranked_only_where_its_gaps_change_no_place(tmp_path: Path) -> None:
    """Without a rule of the benchmark. Ten failed answers of the last can't matter; 228 of the saboteur's decide."""
    store = contest_store(tmp_path, failed=None)
    write_run(store, "honest", HONEST)
    write_run(store, "last", [Status.FAILED if number < 4 else False for number in range(240)])
    found = board(store)
    assert ranks(found) == {"honest": 1, "last": 2}
    assert found.policies == tuple(FailedPolicy)
    before = scores(found)["honest"]
    write_run(store, "saboteur", CHEATS["a saboteur"])
    found = board(store)
    assert ranks(found) == {"honest": 1, "last": 2}
    assert [one.name for one in found.unranked] == ["saboteur"]
    assert [found.unranked[0].low, found.unranked[0].high] == pytest.approx([12 / 240, 1.0])
    assert scores(found)["honest"] == before
    with pytest.raises(InputError, match="found 'saboteur', whose run is incomplete, expected --failed wrong"):
        lead_rows(found, "saboteur")
    assert ranks(board(store, failed=FailedPolicy.WRONG))["saboteur"] == 2
    left_out = board(store, failed=FailedPolicy.EXCLUDE)
    assert (ranks(left_out), [one.name for one in left_out.unranked]) == ({"honest": 1, "last": 2}, ["saboteur"])
    alone = contest_store(tmp_path / "alone", failed=None)
    write_run(alone, "saboteur", CHEATS["a saboteur"])
    assert ranks(board(alone)) == {"saboteur": 1}


def test_baselines_enter_no_test_no_adjustment_and_no_duel(tmp_path: Path) -> None:
    """Whatever baselines there are, ranks, p, scores and rank distributions of the others stay; without any, too."""
    store = contest_store(tmp_path)
    for system, right in (("honest", HONEST), ("rival", RIVAL), ("weak", WEAK)):
        write_run(store, system, right)
    bare = board(store, stability=20)
    for number, name in enumerate(("random", "majority")):
        write_run(store, name, skilled(0.5, 0.5, seed=9 + number), condition="text-only")
    write_run(store, "frontier", skilled(0.85, 0.5, seed=20))

    def core(found: Board) -> Any:
        return (
            [(one.standing.name, one.standing) for one in found.runs],
            [table.tolist() for table in found.standings.p_values],
            found.standings.tau,
        )

    named = board(store, stability=20, systems=("honest", "rival", "weak"), baselines=("frontier", "random"))
    assert core(named) == core(bare)
    assert [one.name for one in named.baselines] == ["frontier", "random"]
    assert core(board(store, stability=20, systems=("honest", "rival", "weak"))) == core(bare)
    without = board(store, systems=("honest", "rival", "weak"), baselines=("none",))
    assert (without.baselines, [one.below for one in without.runs]) == ((), [None] * 3)
    assert named.names == ["honest", "rival", "weak", "frontier", "random"]
    assert {one.standing.name: (one.below, one.advances) for one in named.runs} == {
        "honest": (False, True),
        "rival": (True, False),
        "weak": (True, False),
    }


def test_under_text_only_all_built_in_baselines_stay_out_of_the_contest(tmp_path: Path) -> None:
    """They are asked beside every run there; two contestants are one pair, whatever else the store has."""
    store = contest_store(tmp_path)
    for system, right in (("honest", HONEST), ("rival", RIVAL)):
        write_run(store, system, right, condition="text-only")
    systems = ("honest", "rival")
    for name in BASELINES:
        write_run(store, name, WEAK, condition="text-only")
    blind = board(store, condition="text-only")
    assert ranks(blind) == {"honest": 1, "rival": 2}
    assert [one.name for one in blind.baselines] == ["majority", "random"]
    named = board(store, condition="text-only", systems=systems, baselines=("none",))
    assert [one.tolist() for one in named.standings.p_values] == [one.tolist() for one in blind.standings.p_values]
    asked_for = board(store, condition="text-only", systems=(*systems, "longest-option"))
    assert ranks(asked_for) == {"honest": 1, "rival": 2, "longest-option": 3}


def test_a_tie_for_a_prize_is_broken_though_baselines_are_ahead(tmp_path: Path) -> None:
    """Three baselines that are all right, two teams one answer apart behind them: their tie is one for the first
    rank."""
    store = contest_store(tmp_path)
    for name in ("b1", "b2", "b3"):
        write_run(store, name, [True] * 240)
    write_run(store, "one", [number % 3 == 0 or number == 1 for number in range(240)])
    write_run(store, "two", [number % 3 == 0 for number in range(240)])
    found = board(store, baselines=("b1", "b2", "b3"))
    assert {one.standing.name: (one.standing.rank, one.standing.tie_broken) for one in found.runs} == {
        "one": (1, True),
        "two": (2, True),
    }


def test_a_baseline_is_shown_on_the_questions_that_it_answers(tmp_path: Path) -> None:
    """The baseline answers no free text. Both teams are compared with it on the others."""
    store = contest_store(tmp_path, texts=40)
    texts: list[Any] = ["wrong"] * 40
    write_run(store, "team", [*texts, *[True] * 200])
    write_run(store, "base", [*[None] * 40, *(number % 5 > 0 for number in range(200))])
    found = board(store, baselines=("base",))
    base = found.baselines[0]
    assert base.mean == pytest.approx(0.8)
    assert (base.lacking.unsupported, base.lacking.missing) == (40, 0)
    team = found.runs[0]
    assert team.standing.mean == pytest.approx(200 / 240)
    assert team.below is False


def test_advancing_takes_one_board(tmp_path: Path) -> None:
    store = contest_store(tmp_path)
    write_run(store, "team", HONEST)
    write_run(store, "base", RIVAL)
    first = board(store, baselines=("base",))
    behind = replace(first, name="other", runs=[replace(one, below=True) for one in first.runs])
    assert [[one.advances for one in made.runs] for made in advancing([first, behind])] == [[True], [True]]
    assert [[one.advances for one in made.runs] for made in advancing([behind, behind])] == [[False], [False]]


def test_questions_that_are_in_no_bucket_are_counted(tmp_path: Path) -> None:
    odd: dict[int, str | tuple[str, ...] | None] = {0: None, 1: None, 2: ("easy", "hard")}
    store = contest_store(tmp_path, odd_tags=odd, texts=10)
    write_run(store, "team", [*["right"] * 10, *HONEST[10:]])
    found = board(store)
    assert (found.items, found.left_out, found.unbucketed) == (237, 0, 3)
    code, out = within("rank", NAME, "--store", store.shown, "--stability", "0")
    assert code == 0
    assert "3 questions without a tag of the buckets, or with two values of it" in out


def test_free_text_that_nobody_has_judged_is_left_out_for_all(tmp_path: Path) -> None:
    store = contest_store(tmp_path, texts=40)
    for system, right in (("honest", HONEST), ("rival", RIVAL)):
        write_run(store, system, [*[None] * 40, *right[40:]])
    found = board(store)
    assert (found.items, found.left_out, found.judge) == (200, 40, "code")


def test_a_rank_does_not_depend_on_the_seed(tmp_path: Path) -> None:
    """Twenty videos: more than can be enumerated, so that drawn flips decided at the very level."""
    store = contest_store(tmp_path, videos=20)
    for number in range(6):
        write_run(store, f"team{number}", skilled(0.5 + 0.07 * number, 0.4 + 0.06 * number, seed=30 + number))
    ranks = {
        json.dumps([(one.standing.name, one.standing.ranks, one.standing.score) for one in made.runs])
        for seed in range(6)
        for made in rank_runs(store, NAME, plan=RankingPlan(draws=2000, seed=seed))
    }
    assert len(ranks) == 1


class SomeRows:
    """Rows of readings by system: as it is, and with what it lacks wrong or right."""

    def __init__(self, right: NDArray[np.float64], lacking: NDArray[np.bool_], names: list[str]) -> None:
        self._rank: dict[tuple[str, float | None], int] = {}
        rows: list[NDArray[np.float64]] = []
        for name, line, gaps in zip(names, right, lacking, strict=True):
            for value in (None, 0.0, 1.0) if gaps.any() else (None,):
                self._rank[name, value] = len(rows)
                rows.append(np.where(gaps, np.nan if value is None else value, line))
        self.right = np.array(rows)

    def of(self, names: Sequence[str], fill: Mapping[str, float]) -> list[int]:
        return [self._rank[name, fill.get(name)] for name in names]


@pytest.mark.parametrize("seed", range(30))
def test_whose_rank_is_open_is_what_every_reading_by_itself_says(seed: int) -> None:
    """Systems that hardly differ, so that many ties are broken; some lack much, and others hardly anything."""
    rng, names = np.random.default_rng(seed), list("abcdefgh")
    videos, buckets = np.repeat(np.arange(8), 6), np.tile([0, 0, 1, 1, 2, 2], 8)
    right = (rng.random((8, 48)) < np.repeat(rng.choice([0.4, 0.9], 4), 2)[:, None]).astype(float)
    share = rng.choice([0.0, 0.02, 0.5], 8, p=[0.4, 0.4, 0.2])
    lacking = rng.random(right.shape) < share[:, None]
    open_ones = {name for name, gaps in zip(names, lacking, strict=True) if gaps.any()}
    rows = SomeRows(right, lacking, names)

    def ranks() -> BucketRankReadings:
        return BucketRankReadings(rows.right, videos, buckets, 3, RankingPlan(draws=60))

    fills = readings([name for name in names if name in open_ones], ACCURACY)
    alone = [ranks().of(one, one) for one in (rows.of(names, fill) for fill in ({}, *fills))]
    moved = {name for k, name in enumerate(names) if len({one[k] for one in alone}) > 1}
    expected = (moved & open_ones) or (open_ones if moved else set())
    found = _Maker._unsettled(ranks(), cast("Any", rows), names, open_ones)
    assert found == expected


LATE: list[float | None] = [1.0] * 240


def test_a_file_without_latencies_does_not_win_where_latency_is_judged(tmp_path: Path) -> None:
    store = contest_store(tmp_path)
    write_run(store, "honest", HONEST, latency=LATE, budget_s=5.0)
    write_run(store, "silent", [True] * 240, budget_s=5.0)
    found = board(store)
    assert ranks(found) == {"honest": 1, "silent": 2}
    assert {one.standing.name: one.lacking.untimed for one in found.runs} == {"honest": 0, "silent": 240}
    assert found.timed
    code, out = within("rank", NAME, "--store", store.shown, "--stability", "0")
    assert code == 0
    assert "no latency 240" in out
    assert "Answers without a latency count as late, so as wrong (--latency optional lets them in): silent 240." in out
    assert ranks(board(store, latency="optional")) == {"silent": 1, "honest": 2}
    report = tmp_path / "report.html"
    assert within("report", NAME, "--store", store.shown, "--out", report, "--draws", "100")[0] == 0
    assert "no latency 240" in report.read_text(encoding="utf-8")


def test_where_nobody_has_latencies_or_there_is_no_limit_they_are_not_judged(tmp_path: Path) -> None:
    store = contest_store(tmp_path)
    write_run(store, "a", HONEST, budget_s=5.0)
    write_run(store, "b", RIVAL, budget_s=5.0)
    found = board(store)
    assert (found.timed, ranks(found)) == (False, {"a": 1, "b": 2})
    assert {one.lacking.untimed for one in found.runs} == {240}
    assert board(store, latency="required").timed
    free = contest_store(tmp_path / "free")
    write_run(free, "a", HONEST, latency=LATE)
    write_run(free, "b", RIVAL)
    assert {one.lacking.untimed for one in board(free).runs} == {0}


def test_a_bucket_with_too_few_videos_says_so_on_board_report_and_json(tmp_path: Path) -> None:
    store = contest_store(tmp_path, videos=4, items=160)
    write_run(store, "all", [True] * 160)
    write_run(store, "none", [False] * 160)
    write_run(store, "half", HARD[:160])
    text = "Too few groups for any difference to be significant, so all share rank 1: easy (4 groups, smallest p 0.38 adjusted for all pairs)"
    code, out = within("rank", NAME, "--store", store.shown, "--stability", "0", "--draws", "100")
    assert code == 0
    assert text in " ".join(out.split())
    code, out = within(
        "rank", NAME, "--store", store.shown, "--stability", "0", "--draws", "100", "--format", "json", "--mine", "all"
    )
    found = json.loads(out)[0]
    assert found["smallest_p"] == {"easy": 0.375, "hard": 0.375}
    assert found["too_few_groups"] == ["easy", "hard"]
    assert {one["verdict"] for one in found["leads"]} == {"too few groups"}
    report = tmp_path / "report.html"
    assert within("report", NAME, "--store", store.shown, "--out", report, "--draws", "100")[0] == 0
    assert text in report.read_text(encoding="utf-8")


def test_one_verdict_rule_for_every_lead(tmp_path: Path) -> None:
    """The column `p` is that of one comparison everywhere, `p_adjusted` Holm's over the buckets, and decides."""
    store = contest_store(tmp_path)
    write_run(store, "team", HONEST)
    write_run(store, "other", RIVAL)
    rows = lead_rows(board(store), "team", plan=Resampling(draws=100))
    everything, *buckets = rows
    assert everything["bucket"] == "all"
    assert everything["p_adjusted"] == everything["p"]
    lowest, highest = sorted(row["p"] for row in buckets)
    assert sorted(row["p_adjusted"] for row in buckets) == pytest.approx(
        [min(1, 2 * lowest), min(1, max(2 * lowest, highest))]
    )
    for row in rows:
        assert row["verdict"] == ("ahead" if row["p_adjusted"] <= 0.05 and row["lead"] > 0 else "not shown")


def test_an_analysis_has_no_items_that_a_system_does_not_answer_or_nobody_can_score(tmp_path: Path) -> None:
    """A floor that answers no free text had them counted as wrong: 11.6 % where it reached 25.7 %."""
    store = contest_store(tmp_path, texts=120)
    write_run(store, "model", [*[None] * 120, *[True] * 120])
    write_run(store, "random", [*[None] * 120, *(number % 4 == 0 for number in range(120))], condition="text-only")
    found = analyse(store, NAME, stability=0, plan=Resampling(draws=100))
    sizes = {
        (row["system"], row["label"]): (row["n"], row["value"])
        for row in found.tables["capabilities"]
        if row["stratum"] == "all"
    }
    assert sizes == {
        ("model", "easy"): (60, 1.0),
        ("model", "hard"): (60, 1.0),
        ("random", "easy"): (60, 0.5),
        ("random", "hard"): (60, 0.0),
    }
    causes = {(row["system"], row["cause"]): row["count"] for row in found.tables["failures"]}
    assert causes["random", "unsupported"] == 120


def test_what_a_run_lacks_moves_no_other_number_of_an_analysis(tmp_path: Path) -> None:
    store = contest_store(tmp_path)
    write_run(store, "honest", HONEST)
    write_run(store, "rival", RIVAL)

    def numbers() -> list[Any]:
        found = analyse(store, NAME, stability=0, plan=Resampling(draws=100))
        return [
            {name: value for name, value in row.items() if name not in {"rank", "p_holm", "adjusted_for"}}
            for table in ("capabilities", "videos", "groups", "gaps", "pairs", "scores")
            for row in found.tables[table]
            if {row.get("system"), row.get("first"), row.get("second")} <= {"honest", "rival", None}
        ]

    before = numbers()
    write_run(store, "zz saboteur", CHEATS["a saboteur"])
    assert numbers() == before


def test_the_policy_changes_rank_analysis_and_report_alike(tmp_path: Path) -> None:
    store = contest_store(tmp_path, failed=None)
    write_run(store, "honest", HONEST)
    write_run(store, "saboteur", CHEATS["a saboteur"])
    shown, outcomes = {}, {}
    for policy in ("wrong", "exclude"):
        tail = ("--store", store.shown, "--failed", policy, "--draws", "100")
        out = within("rank", NAME, *tail, "--stability", "0", "--format", "json")[1]
        ranked = {
            one["system"]: (one["rank"], one["mean"], one["mean_if_excluded"]) for one in json.loads(out)[0]["systems"]
        }
        tables = json.loads(within("analyze", NAME, *tail, "--stability", "0", "--format", "json")[1])
        assert {row["setting"]: row["value"] for row in tables["settings"]}["failed"] == policy
        easy = next(
            row["value"]
            for row in tables["capabilities"]
            if (row["system"], row["label"], row["stratum"]) == ("saboteur", "easy", "all")
        )
        shown[policy] = (ranked["saboteur"], easy)
        page = tmp_path / f"{policy}.html"
        assert within("report", NAME, *tail, "--out", page)[0] == 0
        text = page.read_text(encoding="utf-8")
        outcomes[policy] = text.count('"outcome":"unscored"') + text.count('"outcome": "unscored"')
        assert ("Not ranked" in text[text.index('id="ranking"') :]) == (policy == "exclude")
    assert outcomes == {"wrong": 0, "exclude": 228}
    assert shown == {"wrong": ((2, pytest.approx(0.05), None), 0.05), "exclude": ((None, None, 1.0), 1.0)}


def test_nobody_stands_above_and_below_the_line(tmp_path: Path) -> None:
    store = contest_store(tmp_path)
    for system, right in (("team", HONEST), ("under", WEAK), ("base", RIVAL), ("lesser", skilled(0.3, 0.2, seed=7))):
        write_run(store, system, right)
    code, out = within(
        *("rank", NAME, "--store", store.shown, "--stability", "0", "--baseline", "base", "--baseline", "lesser")
    )
    assert code == 0
    board, baselines = out.split("Baselines: not ranked, in no test")
    rows = {line.split()[0]: line for line in board.splitlines() if line.split()[:1] in (["team"], ["under"])}
    assert "not above every baseline" in rows["under"]
    assert "not above every baseline" not in rows["team"]
    assert " team " not in baselines
    assert "under" not in baselines
    for name in ("base", "lesser"):
        lines = [line for line in out.splitlines() if name in line.split()]
        assert len(lines) == 1, lines
    assert "Beats all baselines on at least one board: team." in out
    assert rows["team"].split()[1] == "1"


def test_two_incomplete_runs_that_depend_on_their_gaps_are_both_not_ranked(tmp_path: Path) -> None:
    """One has 100 % of what it answered and 50 % of all, the other 90 % and 75 %: whoever is first depends on the
    gaps."""
    store = contest_store(tmp_path, failed=None)
    video = [number // 2 % 12 for number in range(240)]
    write_run(store, "one", [Status.FAILED if one < 6 else True for one in video])
    write_run(store, "two", [None if one < 2 else number % 20 > 1 for number, one in enumerate(video)])
    found = board(store, stability=10)
    assert ([one.name for one in found.unranked], found.runs) == (["one", "two"], [])
    assert [one.high for one in found.unranked] == pytest.approx([1.0, 0.9])
    assert found.standings.empty == ()
    code, out = within("rank", NAME, "--store", store.shown, "--stability", "10", "--draws", "100", "--detail")
    assert code == 0, out
    assert "Not ranked" in out
    code, out = within("rank", NAME, "--store", store.shown, "--stability", "0", "--format", "json")
    assert [one["mean_if_excluded"] for one in json.loads(out)[0]["systems"]] == pytest.approx([1.0, 0.9])
    report = tmp_path / "report.html"
    assert within("report", NAME, "--store", store.shown, "--out", report, "--draws", "100")[0] == 0


def test_groups_that_are_enough_for_one_comparison_may_be_too_few_for_several(tmp_path: Path) -> None:
    """Six videos: the smallest p is 2 / 2^6 = 0.031; adjusted for two buckets it is 0.063."""
    store = contest_store(tmp_path, videos=6)
    write_run(store, "good", [True] * 240)
    write_run(store, "bad", [False] * 240)
    (board,) = rank_runs(store, NAME, plan=RankingPlan(stability=0, draws=100))
    verdicts = {row["bucket"]: row["verdict"] for row in lead_rows(board, "good", ("bad",))}
    assert verdicts == {"all": "ahead", "easy": "too few groups", "hard": "too few groups"}


def test_who_has_no_score_has_no_rank_even_alone(tmp_path: Path) -> None:
    store = contest_store(tmp_path, failed=None, items=24, texts=24)
    write_run(store, "silent", ["none"] * 24)
    found = board(store)
    assert (ranks(found), [one.name for one in found.unranked]) == ({}, ["silent"])
    assert ranks(board(store, failed=FailedPolicy.WRONG)) == {"silent": 1}  # as chosen


def test_a_board_without_a_question_that_has_a_score_has_no_place(tmp_path: Path) -> None:
    store = contest_store(tmp_path, items=24, texts=24)
    write_run(store, "a", ["unscored"] * 24)
    found = board(store)
    assert (ranks(found), found.items, found.left_out) == ({}, 0, 24)
    assert "Not ranked, since no answer has a score: a." in board_notes(found)
    with pytest.raises(
        InputError, match=r"'a', whose answers wait for a judge, expected scores of them .proctor score."
    ):
        lead_rows(found, "a")
