"""Every column of a board, under every option of `rank`, worked out from the raw answers; and how leads are tested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proctor
from proctor.core import FailedPolicy
from proctor.reports import board_notes
from proctor.results import Board, Contest, board_json, lead_rows, rank_runs, rule_rows
from proctor.stats import RANK_RULES, Resampling, competition_ranks, paired_difference
from tests.support import recomputed_boards
from tests.support.fuzzed_store import JUDGE, NAME, Fuzzed, fuzzed
from tests.support.recomputed import holm

WAYS: list[dict[str, Any]] = [
    {"failed": "wrong", "stability": 30},
    {"failed": "wrong", "condition": "text-only", "seed": 4},
    {"failed": "wrong", "systems": ("gamma", "alpha"), "baselines": ("none",), "rule": "borda"},
    {"failed": "wrong", "baselines": ("delta", "random"), "all_items": True, "rule": "mean", "stability": 20},
    {"failed": "wrong", "by": ("area",), "correction": "none", "alpha": 0.2},
    {"failed": "wrong", "by": ("format", "level"), "correction": "holm-board", "draws": 150},
    {"failed": "wrong", "condition": "text-only", "systems": ("gamma",)},
    {"failed": "exclude"},
    {},
]

ALPHA = 0.1


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Fuzzed:
    return fuzzed(tmp_path_factory.mktemp("fuzzed"), 11, items=120, waits=0.0)


def close(value: object) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


def ranked(made: Fuzzed, way: dict[str, Any]) -> tuple[Board, recomputed_boards.Ranked]:
    (board,) = proctor.rank(made.store, NAME, **way).boards
    unranked = [one.name for one in board.unranked]
    return board, recomputed_boards.board(made, unranked=unranked, **way)


@pytest.mark.parametrize("given", WAYS, ids=[" ".join(way) or "plain" for way in WAYS])
def test_every_column(made: Fuzzed, given: dict[str, Any]) -> None:
    way = {"draws": 120, "stability": 0} | given
    board, wanted = ranked(made, way)
    told = board_json(board)
    table = proctor.rank(made.store, NAME, **way).rows
    assert [row["system"] for row in table] == [row["system"] for row in wanted.rows]
    for row, shown, own in zip(table, told["systems"], wanted.rows, strict=True):
        for name in (set(row) - {"board"}) | set(own):
            assert row[name] == shown[name] == close(own.get(name)), (name, row["system"])
    standings = wanted.standings
    said = {
        "board": "technical",
        "rule": way.get("rule", "copeland"),
        "questions": len(wanted.codes),
        "scored_by": JUDGE if wanted.scores.judged else "code",
        "failed": [given["failed"]] if "failed" in given else ["wrong", "exclude"],
        "latency": "optional",
        "left_out": wanted.left_out,
        "unbucketed": wanted.unbucketed,
        "groups": len(set(wanted.scores.groups)),
        "empty_buckets": [name for code, name in enumerate(wanted.names) if code not in wanted.codes],
        "bucket_groups": {
            name: len({one for one, at in zip(wanted.scores.groups, wanted.codes, strict=True) if at == code})
            for code, name in enumerate(wanted.names)
        },
        "smallest_p": dict(zip(wanted.names, standings.reach, strict=True)),
        "too_few_groups": [
            name
            for name, least in zip(wanted.names, standings.reach, strict=True)
            if least is not None and least > way.get("alpha", 0.05)
        ],
        "disqualified": [],
        "tau": standings.tau,
        "tau_low": standings.tau_low,
        "tau_if_equal": standings.tau_equal,
        "p_values": {name: table.tolist() for name, table in zip(wanted.names, standings.p_values, strict=True)},
    }
    assert {name: told[name] for name in said} == said
    assert [row["rank"] is None for row in told["systems"]].count(False) == len(standings.systems)


def test_details(made: Fuzzed) -> None:
    board, wanted = ranked(made, {"failed": "wrong", "stability": 30, "draws": 120})
    systems, names = wanted.standings.systems, wanted.names
    shown = {row["system"]: row for row in board_json(board)["systems"]}
    for one in systems:
        row = shown[one.name]
        assert row["scores"] == dict(zip(names, one.scores, strict=True))
        assert row["ranks"] == dict(zip(names, one.ranks, strict=True))
        assert (row["buckets_ahead"], row["buckets_behind"], row["buckets_tied"]) == (one.ahead, one.behind, one.tied)
        assert one.stability is not None
        assert row["chances"] == list(one.stability.chances)
        for code, name in enumerate(names):
            assert row["scores"][name] == pytest.approx(np.nanmean(wanted.scores.right[one.name][wanted.codes == code]))
    base = wanted.scores.right["random"]
    assert shown["random"]["scores"] == {
        name: pytest.approx(np.nanmean(base[wanted.codes == code])) for code, name in enumerate(names)
    }
    ranks = np.array([one.ranks for one in systems], dtype=float).T
    by_rule = {rule: RANK_RULES[rule](ranks) for rule in ("copeland", "borda")}
    by_rule["mean"] = np.array([one.mean for one in systems], dtype=float)
    told = [
        {"board": "technical", "rule": rule, "system": one.name, "score": float(score), "rank": int(index)}
        for rule, scores in by_rule.items()
        for one, score, index in zip(systems, scores, competition_ranks(scores), strict=True)
    ]
    assert rule_rows([board]) == told
    assert board_json(board)["rules"] == [{key: row[key] for key in row if key != "board"} for row in told]


def leads_by_hand(
    wanted: recomputed_boards.Ranked, other: str, plan: Resampling, *, holms: bool
) -> list[dict[str, Any]]:
    """How far beta is ahead of another system: on all questions, and in each bucket."""
    first, second = wanted.scores.right["beta"], wanted.scores.right[other]
    parts = [("all", np.ones(len(wanted.codes), dtype=bool))]
    parts += [(name, wanted.codes == code) for code, name in enumerate(wanted.names)]
    rows: list[dict[str, Any]] = []
    for name, inside in parts:
        here = np.flatnonzero(inside & ~np.isnan(first) & ~np.isnan(second))
        groups = [wanted.scores.groups[at] for at in here]
        if len(here):
            one = paired_difference(first[here], second[here], groups, plan.within(0, 1))
            numbers = {"bucket": name, "against": other, "n": len(here), "groups": len(set(groups)), "p": one.p}
            rows.append(numbers | {"lead": one.value, "ci_low": one.ci_low, "ci_high": one.ci_high})
    alone = [row["p"] for row in rows]
    for number, (row, p) in enumerate(zip(rows, [alone[0], *(holm(alone[1:]) if holms else alone[1:])], strict=True)):
        tests = len(rows) - 1 if holms and number else 1
        few = tests * 2.0 ** (1 - row["groups"]) > ALPHA
        shown = p is not None and p <= ALPHA and row["lead"]
        row["p_adjusted"] = p
        row["verdict"] = (
            "too few groups" if few else "not shown" if not shown else "ahead" if row["lead"] > 0 else "behind"
        )
    return rows


@pytest.mark.parametrize("correction", ["holm", "none"])
@pytest.mark.parametrize("against", [(), ("alpha", "gamma")])
def test_leads(made: Fuzzed, correction: str, against: tuple[str, ...]) -> None:
    """In all buckets together and in each: difference, interval, p, and p adjusted over the buckets alone."""
    way = {"failed": "wrong", "by": ("level", "format"), "correction": correction, "alpha": ALPHA, "draws": 100}
    board, wanted = ranked(made, way | {"stability": 0})
    plan = Resampling(150, seed=2, two_level=True)
    told = [
        row
        for other in against or ("random",)
        for row in leads_by_hand(wanted, other, plan, holms=correction == "holm")
    ]
    found = lead_rows(board, "beta", against, plan)
    assert len(found) == len(told)
    for one, row in zip(found, told, strict=True):
        assert {name: one[name] for name in row} == {name: close(value) for name, value in row.items()}
        assert (one["board"], one["system"], one["two_level"]) == ("technical", "beta", True)


def test_without_options(made: Fuzzed) -> None:
    """The defaults: under `video`, tests at 0.05 by Holm, 2,000 draws and 1,000 samples, seed 0; both policies."""
    (bare,) = rank_runs(made.store, NAME)
    assert (bare.policies, bare.alpha, bare.correction) == (tuple(FailedPolicy), 0.05, "holm")
    assert bare.standings.rule == "copeland"
    wanted = recomputed_boards.board(made, failed="wrong", draws=2000, stability=1000)
    (full,) = proctor.rank(made.store, NAME, failed="wrong").boards
    assert [one.standing for one in full.runs] == list(wanted.standings.systems)
    assert bare.items == full.items == len(wanted.codes)


@pytest.mark.parametrize("policy", [None, *FailedPolicy])
def test_answers_that_wait_for_the_judge_leave_a_run_without_a_rank(
    tmp_path: Path, policy: FailedPolicy | None
) -> None:
    """The free text of gamma under text-only was not judged, that of the others was: its ranks would be those of the
    questions that are left."""
    made = fuzzed(tmp_path, 11, items=120, waits=0.0)
    (board,) = rank_runs(made.store, NAME, Contest(condition="text-only", failed=policy))
    found = {one.name: one.lacking.unscored for one in board.unranked}
    assert found["gamma"] > 0
    assert "gamma" not in {one.standing.name for one in board.runs}
    if policy is FailedPolicy.WRONG:
        assert found.keys() == {"gamma"}
    assert "Not ranked, since answers wait for the judge: gamma (proctor score scores them)." in board_notes(board)
