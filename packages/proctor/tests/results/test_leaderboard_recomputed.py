"""Every column of the leaderboard of one condition, worked out from the raw answers: who is ranked, on what, and
how."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from proctor.core import FailedPolicy
from proctor.results import Options, leaderboard
from proctor.runs import disqualify, reinstate
from proctor.stats import Rank, Resampling, rank_systems
from tests.support import recomputed
from tests.support.fuzzed_store import JUDGE, NAME, Fuzzed, fuzzed
from tests.support.recomputed import METRICS, lacks, parts_of, read, scored_by

Part = tuple[str, str]
RANKS = ("rank", "rank_low", "rank_high", "resampled_rank_low", "resampled_rank_high", "p_best")
SCORES = ("value", "ci_low", "ci_high", "n", "groups", "missing", "unsupported", "policy", "if_wrong", "if_excluded")
WAYS: list[tuple[str, Part, dict[str, Any]]] = [
    ("video", ("accuracy", "code"), {"failed": "wrong"}),
    ("video", ("accuracy", JUDGE), {"failed": "wrong", "seed": 3, "level": 0.8}),
    ("text-only", ("accuracy", "code"), {"failed": "wrong", "all_items": True}),
    ("text-only", ("effort", "code"), {"failed": "wrong"}),
    ("video", ("helpful", JUDGE), {"systems": ("gamma", "alpha", "beta")}),
    ("video", ("accuracy", "code"), {}),
    ("video", ("effort", "code"), {"failed": "exclude"}),
    ("video", ("effort", "code"), {}),
    ("text-only", ("effort", "code"), {"systems": ("alpha", "beta", "gamma")}),
    ("video", ("unresolved", JUDGE), {}),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Fuzzed:
    return fuzzed(tmp_path_factory.mktemp("fuzzed"), 31, items=150)


class Expected:
    def __init__(self, made: Fuzzed, condition: str, part: Part, out: str, way: dict[str, Any]) -> None:
        self.made, self.part, self.metric, self.failed = made, part, METRICS[part[0]], way.get("failed", "both")
        rows = recomputed.counted(made, all_items=way.get("all_items", False))
        self.rows = [row for row in rows if scored_by(part, made.items[row])]
        named = way.get("systems") or tuple(system for system, _ in made.runs)
        own = {one: made.runs[one] for one in sorted(made.runs) if one[1] == condition and one[0] in named}
        self.runs = {system: given for (system, _), given in own.items()}
        self.scored = [system for system, under in own if part in parts_of((system, under))]
        self.out, self.plan = out, Resampling(way["draws"], way.get("level", 0.95), way.get("seed", 0))
        self.common = [
            row
            for row in self.rows
            if any(self.value(name, row, "wrong") is not None for name in self.scored if name != out)
        ]

    @property
    def entered(self) -> list[str]:
        return [name for name in self.runs if name != self.out]

    def value(self, name: str, row: int, policy: str) -> float | None:
        return read(self.part, self.runs[name][row], policy, baseline=name == "random")

    def lacks(self, name: str, row: int) -> bool:
        return lacks(self.part, self.runs[name][row], baseline=name == "random")

    def ranks(self, fill: dict[str, float]) -> list[Rank]:
        units = [
            row
            for row in self.common
            for _ in range(int(str(self.made.items[row].tags["steps"])) if self.metric.per else 1)
        ]
        rows = [
            [fill[name] if self.lacks(name, row) else self.value(name, row, "exclude") for row in units]
            for name in fill
        ]
        plan = self.plan.within(self.metric.low, self.metric.high)
        return rank_systems(
            np.array(rows, dtype=float),
            list(fill),
            [self.made.items[row].group for row in units],
            higher_is_better=self.metric.higher_is_better,
            plan=plan,
        )

    def ranked(self) -> list[Rank]:
        """Those that have a value everywhere; and, where nothing is decided, those whose gaps can't change a rank."""
        best, worst = (self.metric.high, self.metric.low)[:: 1 if self.metric.higher_is_better else -1]
        reading = "wrong" if self.failed == "wrong" else "exclude"
        decided, undecided = [], []
        for name in self.entered:
            gaps = [rank for rank in self.common if self.value(name, rank, reading) is None]
            if not gaps:
                decided.append(name)
            elif self.failed == "both" and len(gaps) < len(self.common) and all(self.lacks(name, one) for one in gaps):
                undecided.append(name)
        lacking = {name: sum(self.lacks(name, row) for row in self.rows) for name in undecided}
        while undecided and not self.hold(decided, undecided, best, worst):
            most = max(lacking[name] for name in undecided)
            undecided = [name for name in undecided if lacking[name] < most]
        if len(undecided) == 1 and not decided and len(lacking) > 1:
            undecided = []
        names = [*decided, *undecided]
        return self.ranks(dict.fromkeys(names, worst)) if names else []

    def hold(self, decided: list[str], undecided: list[str], best: float, worst: float) -> bool:
        fills = [dict.fromkeys(undecided, one) for one in (worst, best)]
        fills += [one | {name: best + worst - one[name]} for one in fills for name in undecided]
        found = [self.ranks(dict.fromkeys(decided, worst) | fill) for fill in fills]
        return all({one.name: one.rank for one in ranks} == {one.name: one.rank for one in found[0]} for ranks in found)


@pytest.mark.parametrize("out", ["", "beta"])
@pytest.mark.parametrize(("condition", "part", "given"), WAYS)
def test_every_column(made: Fuzzed, condition: str, part: Part, given: dict[str, Any], out: str) -> None:
    way: dict[str, Any] = {"draws": 100} | given
    wanted = Expected(made, condition, part, out, way)
    if out:
        disqualify(made.store, NAME, out, "it was told", at="2026-11-01T00:00:00+00:00")
    options = Options(**way | {"failed": FailedPolicy(way["failed"])} if "failed" in way else way)
    found = leaderboard(made.store, NAME, condition=condition, metric=part[0], scorer=part[1], options=options)
    if out:
        reinstate(made.store, NAME, out, "it was not", at="2026-11-02T00:00:00+00:00")
    ranks = wanted.ranked()
    rows = {row["system"]: row for row in recomputed.results(made, conditions=(condition,), metrics=part[:1], **way)
            if row["scorer"] == part[1]}  # fmt: skip
    assert (found.scorer, found.condition, found.metric.name) == (part[1], condition, part[0])
    assert found.items == (len(wanted.common) if ranks else 0)
    assert found.left_out == (len(wanted.rows) - len(wanted.common) if ranks else 0)
    named = [one.name for one in ranks]
    worse_end = {name: row["if_wrong" if row["policy"] == "both" else "value"] for name, row in rows.items()}
    sign = -1 if wanted.metric.higher_is_better else 1
    unranked = sorted(set(wanted.scored) - set(named), key=lambda name: (sign * worse_end[name], name))
    assert [row.system for row in found.rows if row.system in {*named, *wanted.scored}] == [*named, *unranked]
    assert {row.system for row in found.rows} == set(wanted.runs)
    for row in found.rows:
        if row.system not in wanted.scored:
            assert (row.if_excluded, row.lacking > 0) == (None, True)
            continue
        own, rank = rows[row.system], next((one for one in ranks if one.name == row.system), None)
        told = {name: own[name] for name in SCORES} | {name: getattr(rank, name, None) for name in RANKS}
        told |= {"system": row.system, "oracle_baseline": False, "disqualified": row.system == out}
        lacking = ("failed", "missing", "unresolved", "unscored", "unsupported")
        shown = asdict(row)
        assert shown["lacking"] == sum(own[name] for name in lacking)
        for name, value in told.items():
            assert shown[name] == (pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value)
        assert row.drawn == (row.if_wrong if row.policy == "both" else row.value)


def test_without_options(made: Fuzzed) -> None:
    """The headline by the one scorer that is there; else the scorer must be named."""
    bare = leaderboard(made.store, NAME, condition="text-only", metric="effort")
    wanted = Expected(made, "text-only", ("effort", "code"), "", {"draws": 2000}).ranked()
    assert [row.system for row in bare.rows if row.rank] == [one.name for one in wanted]
    assert bare.scorer == "code"
    headline = leaderboard(made.store, NAME, condition="video", scorer="code", options=Options(draws=100))
    assert headline.metric.name == "accuracy"
    assert {row.system for row in headline.rows} == {"alpha", "beta", "gamma", "delta"}
