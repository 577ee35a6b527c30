"""Every table of an analysis, column by column, worked out from the raw answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM

import proctor
from proctor.core import Item, Status
from proctor.judges import TIE
from proctor.metrics import estimates_of
from proctor.metrics.corpus import nominal_sums
from proctor.results import Contest, analyse
from proctor.stats import Difference, Estimate, Resampling, logistic, mean_interval, paired_difference
from tests.support import recomputed_boards
from tests.support.contest import contest_store, skilled, write_run
from tests.support.fuzzed_store import JUDGE, NAME, Fuzzed, Given, fuzzed, said
from tests.support.recomputed import facet_values, holm, is_free, state_of
from tests.support.recomputed_boards import PART, Ranked, Scored

WAYS: list[dict[str, Any]] = [
    {"failed": "wrong", "stability": 20},
    {"failed": "exclude", "all_items": True, "seed": 3},
    {"failed": "wrong", "condition": "text-only", "systems": ("delta", "beta", "alpha"), "two_level": True},
    {"failed": "wrong", "systems": ("gamma", "alpha"), "baselines": ("none",)},
    {"failed": "wrong", "baselines": ("delta", "random")},
]
AREAS, LEVELS = ("hip", "knee", "neck"), ("easy", "hard")
Rows = list[dict[str, Any]]
Inside = NDArray[np.bool_]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Fuzzed:
    return fuzzed(tmp_path_factory.mktemp("fuzzed"), 21, items=120)


class Expected:
    """The tables of one analysis."""

    def __init__(self, made: Fuzzed, way: dict[str, Any]) -> None:
        self.made, self.way = made, way
        self.scores: Scored = recomputed_boards.scored(made, **way)
        self.items = [made.items[row] for row in self.scores.ranks]
        self.names = sorted(self.scores.right)
        self.plan = Resampling(way["draws"], seed=way.get("seed", 0), two_level=way.get("two_level", False))

    def carry(self, facet: str, value: str) -> Inside:
        return np.array([value in facet_values(item, facet) for item in self.items], dtype=bool)

    def groups(self, here: Inside) -> list[str]:
        return [item.group for item, one in zip(self.items, here, strict=True) if one]

    def known(self, name: str) -> Inside:
        return ~np.isnan(self.scores.right[name])

    def mean(self, name: str, inside: Inside) -> dict[str, Any]:
        here = inside & self.known(name)
        return numbers(mean_interval(self.scores.right[name][here], self.groups(here), self.plan.within(0, 1)))

    def truth(self, item: Item) -> bool:
        return item.reference is not None and item.reference.answer is True

    def capabilities(self) -> Rows:
        areas = {name: self.carry("area", name) for name in AREAS}
        carried = np.sum(list(areas.values()), axis=0)
        parts = []
        for name, mask in areas.items():
            parts += [(name, "all", mask), (name, "alone", mask & (carried == 1))]
            beside = [(other, mask & areas[other]) for other in AREAS if other != name]
            parts += [(name, f"with {other}", both) for other, both in beside if both.sum() >= 10]
        return [
            {"system": name, "label": label, "stratum": stratum} | self.mean(name, mask)
            for name in self.names
            for label, stratum, mask in parts
        ]

    def factors(self) -> Rows:
        return [
            {"system": name, "factor": factor, "value_of": value} | self.mean(name, self.carry(factor, value))
            for factor, values in (("level", LEVELS), ("area", AREAS))
            for name in self.names
            for value in values
        ]

    def gaps(self) -> Rows:
        easy, hard = (self.carry("level", one) for one in LEVELS)
        rows = []
        for name in self.names:
            right, known = self.scores.right[name], self.known(name)
            one = {"system": name, "factor": "level", "first": "easy", "second": "hard", "n": int(np.sum(known))}
            one["value"] = float(right[known & hard].mean() - right[known & easy].mean())
            rows.append(one | {"groups": len(set(self.groups(known)))})
        return rows

    def regression(self) -> Rows:
        columns: dict[str, list[bool]] = {f"area: {name}": [] for name in AREAS}
        names = self.scores.contestants  # baselines guess: what is hard for them is no property of the questions
        columns |= {"level = hard": []} | {f"system = {name}": [] for name in names[1:]}
        right, groups = [], []
        for name in names:
            for row in np.flatnonzero(self.known(name)):
                item = self.items[row]
                right.append(self.scores.right[name][row])
                groups.append(item.group)
                for area in AREAS:
                    columns[f"area: {area}"].append(area in facet_values(item, "area"))
                columns["level = hard"].append(item.tags["level"] == "hard")
                for other in names[1:]:
                    columns[f"system = {other}"].append(other == name)
        fields = ("odds_ratio", "ci_low", "ci_high", "log_odds", "error", "df", "p")
        found = logistic(right, columns, groups)
        assert (found.dropped, found.single, found.problem) == ((), (), "")
        design = np.column_stack([np.ones(len(right)), *columns.values()]).astype(float)
        named = dict(zip(("intercept", *columns), GLM(right, design, Binomial()).fit(tol=1e-14).params, strict=True))
        assert {term.name: term.log_odds for term in found.terms} == pytest.approx(named, abs=1e-9)
        return [{"term": one.name, "note": ""} | {name: getattr(one, name) for name in fields} for one in found.terms]

    def videos(self) -> Rows:
        rows = []
        for part in ("all", *AREAS):
            mask = np.ones(len(self.items), dtype=bool) if part == "all" else self.carry("area", part)
            for name in self.names:
                here = mask & self.known(name)
                by: dict[str, list[float]] = {}
                for group, value in zip(self.groups(here), self.scores.right[name][here].tolist(), strict=True):
                    by.setdefault(group, []).append(value)
                means = [sum(own) / len(own) for own in by.values()]
                q1, median, q3 = np.quantile(means, (0.25, 0.5, 0.75))
                low, high = q1 - 1.5 * (q3 - q1) - 1e-9, q3 + 1.5 * (q3 - q1) + 1e-9
                ends = {"lowest": min(means), "highest": max(means), "q1": q1, "median": median, "q3": q3}
                ends["whisker_low"] = min(q1, *(one for one in means if one >= low))
                ends["whisker_high"] = max(q3, *(one for one in means if one <= high))
                rows.append({"system": name, "part": part, "groups": len(means), "sd": stdev(means)} | ends)
        return rows

    def podium(self) -> Rows:
        rows = []
        for group in dict.fromkeys(item.group for item in self.items):
            here = np.array([item.group == group for item in self.items]) & True
            own = {name: self.scores.right[name][here & self.known(name)] for name in self.names}
            means = {name: (len(one), one.mean()) for name, one in own.items() if len(one)}
            for name, (n, mean) in means.items():
                rivals = [one for other, (_, one) in means.items() if other in self.scores.contestants]
                row = 1 + sum(one > mean + 1e-9 for one in rivals)
                ranked = name in self.scores.contestants
                rows.append({"group": group, "system": name, "n": n, "value": mean, "rank": row if ranked else None})
        return rows

    def difference(self, first: NDArray[Any], second: NDArray[Any], groups: list[str]) -> Difference:
        return paired_difference(first, second, groups, self.plan.within(0, 1))

    def pairs(self) -> Rows:
        ranked = self.scores.contestants
        families = {
            "systems": list(combinations(ranked, 2)),
            "baselines": [(one, other) for one in ranked for other in sorted(self.scores.baselines)],
        }
        rows = []
        for family, pairs in families.items():
            own: Rows = []
            for first, second in pairs:
                here = self.known(first) & self.known(second)
                a, b = self.scores.right[first][here], self.scores.right[second][here]
                one = self.difference(a, b, self.groups(here))
                row: dict[str, Any] = {
                    "family": family,
                    "first": first,
                    "second": second,
                    "n": int(here.sum()),
                    "groups": one.groups,
                }
                row |= {"difference": one.value, "ci_low": one.ci_low, "ci_high": one.ci_high, "p": one.p}
                own.append(row | {"only_first_right": int(np.sum(a > b)), "only_second_right": int(np.sum(b > a))})
            tests = sum(row["p"] is not None for row in own)
            named = {
                "systems": f"the {tests} pairs of {len(ranked)} systems",
                "baselines": f"the {tests} pairs of a system and a baseline",
            }
            told = {"adjusted_for": named[family] if tests > 1 else ""}
            rows += [row | told | {"p_holm": p} for row, p in zip(own, holm([row["p"] for row in own]), strict=True)]
        return rows

    def ensembles(self) -> Rows:
        """Yes-or-no questions alone can be voted on."""
        voters = self.scores.contestants
        scored = np.logical_or.reduce([self.known(name) for name in voters])
        here = scored & np.array([not is_free(item) for item in self.items])
        right = {name: np.nan_to_num(self.scores.right[name][here]) for name in voters}
        order = sorted(voters, key=lambda name: (-right[name].mean(), name))

        def voted(chosen: list[str]) -> NDArray[Any]:
            found = []
            for index in np.flatnonzero(here):
                item = self.items[index]
                votes = [said(item, self.scores.given[name][index]) for name in chosen]
                known = [one for one in votes if one is not None]
                yes, no = known.count(True), known.count(False)
                voice = None if not known else known[0] if yes == no else yes > no
                found.append(float(voice == self.truth(item)))
            return np.array(found)

        ways = {"best": (order[:1], right[order[0]])}
        if len(voters) > 3:
            ways["vote of the best 3"] = (order[:3], voted(order[:3]))
        if len(voters) > 2:  # two have no majority
            ways["vote of all"] = (order, voted(order))
        ways["any right (upper bound)"] = (order, np.max(list(right.values()), axis=0))
        groups, rows = self.groups(here), []
        for form in ("all", "binary"):
            for name, (systems, own) in ways.items():
                gain = self.difference(own, right[order[0]], groups)
                if name.startswith("any"):  # a share: never below 0 on an item, and no hypothesis
                    share = mean_interval(own > right[order[0]], groups, self.plan.within(0, 1))
                    gain = replace(gain, ci_low=share.ci_low, ci_high=share.ci_high, p=None)
                    assert share.ci_low is not None
                    assert share.ci_low >= 0
                row: dict[str, Any] = {"ensemble": name, "format": form, "systems": " + ".join(systems)}
                row |= numbers(mean_interval(own, groups, self.plan.within(0, 1)))
                gains = (gain.value, gain.ci_low, gain.ci_high, gain.p) if name != "best" else (None,) * 4
                row |= dict(zip(("gain", "gain_low", "gain_high", "p"), gains, strict=True))
                rows.append(row | {"left_out": len(self.items) - int(here.sum()) if form == "all" else 0})
        return rows

    def failures(self) -> Rows:
        rows = []
        for name in self.names:
            for form in ("binary", "free_text"):
                here = [
                    one
                    for one, item in zip(self.scores.given[name], self.items, strict=True)
                    if item.answer.kind == form
                ]
                causes = Counter(cause(one, baseline=name == "random") for one in here)
                rows += [
                    {"system": name, "format": form, "cause": each, "count": count, "share": count / len(here)}
                    for each, count in sorted(causes.items())
                ]
        return rows

    def metrics(self) -> Rows:
        rows = []
        for name in self.names:
            pairs = [
                (said(item, one), item)
                for one, item in zip(self.scores.given[name], self.items, strict=True)
                if not is_free(item) and not (self.way["failed"] == "exclude" and one.status in {None, Status.FAILED})
            ]
            found = estimates_of(
                nominal_sums([self.truth(item) for _, item in pairs], [one for one, _ in pairs]),
                [item.group for _, item in pairs],
                self.plan,
            )
            rows += [
                {
                    "system": name,
                    "format": "binary",
                    "metric": one.metric.name,
                    "label": one.metric.label,
                    "part": one.part,
                }
                | {"higher_is_better": one.metric.higher_is_better}
                | numbers(one.estimate)
                for one in found
            ]
        return rows


def numbers(one: Estimate) -> dict[str, Any]:
    return {"n": one.n, "groups": one.groups, "value": one.value, "ci_low": one.ci_low, "ci_high": one.ci_high}


def cause(one: Given, *, baseline: bool) -> str:
    """How an answer ended: what code says of it, else the judge, else what is known of the asking."""
    for part in (("accuracy", "code"), PART):
        if part in one.scores:
            return one.scores[part][1]
    if one.unresolved == TIE:
        return "unresolved"
    state = state_of(PART, one, baseline=baseline)
    return {"unsupported": "unsupported", "failed": "failed", "missing": "missing"}.get(state, "not scored")


def board_tables(made: Fuzzed, way: dict[str, Any], unranked: list[str]) -> dict[str, Rows]:
    """The tables that say what the board says."""
    plan = {"draws": 10_000, "stability": way["stability"], "seed": way.get("seed", 0), "leave_out": True}
    wanted: Ranked = recomputed_boards.board(made, unranked=unranked, **way | plan)
    own, board = wanted.standings, {"board": "technical"}
    systems = own.systems
    ranking = []
    for row in wanted.rows:
        if row["system"] in unranked:
            continue
        one = next((one for one in systems if one.name == row["system"]), None)
        chances = one.stability.chances if one is not None and one.stability else ()
        mean = sum(index * share for index, share in enumerate(chances, start=1))
        spread = sum(share * (index - mean) ** 2 for index, share in enumerate(chances, start=1)) ** 0.5
        names = (
            "rank",
            "score",
            "mean",
            "win_rate",
            "resampled_rank_low",
            "resampled_rank_high",
            "won",
            "lost",
            "tied",
            "below_line",
        )
        names += ("win_rate_tied", "head_to_head", "first_without")  # type: ignore[assignment]
        more = {name: row.get(name) for name in (*names, "rank_by_mean", "rank_low", "rank_high", "system", "baseline")}
        ranking.append(
            board | more | {"resampled_rank_sd": spread if chances else None, "tau": own.tau if one else None}
        )
    pairs = [(one, other) for index, one in enumerate(systems) for other in systems[index + 1 :]]
    codes = {one.name: index for index, one in enumerate(systems)}
    significance = []
    for number, bucket in enumerate(wanted.names):
        for one, other in pairs:
            p = own.p_values[number][codes[one.name], codes[other.name]]
            lead = (one.scores[number] or 0.0) - (other.scores[number] or 0.0)
            better = "" if p > 0.05 or lead == 0 else one.name if lead > 0 else other.name
            significance.append(
                board | {"bucket": bucket, "first": one.name, "second": other.name, "p": p, "better": better}
            )
    tau: dict[str, Any] = board | {"samples": len(own.taus), "mean": own.tau, "mean_if_equal": own.tau_equal}
    for name, share in (("p2_5", 2.5), ("q1", 25), ("median", 50), ("q3", 75), ("p97_5", 97.5)):
        tau[name] = float(np.percentile(own.taus, share)) if own.taus else None
    return {
        "ranking": ranking,
        "rank_chances": [
            board | {"system": one.name, "rank": index, "chance": chance}
            for one in systems
            if one.stability
            for index, chance in enumerate(one.stability.chances, start=1)
        ],
        "pairwise_wins": [
            board | {"first": one.name, "second": other.name}
            | {"won": one.ahead[other.name], "lost": one.behind[other.name], "tied": one.tied[other.name]}
            for one, other in pairs
        ],
        "significance": significance,
        "tau": [tau],
    }  # fmt: skip


def same(name: str, found: Rows, wanted: Rows) -> None:
    assert len(found) == len(wanted), name
    for one, other in zip(found, wanted, strict=True):
        for key, value in other.items():
            number = isinstance(value, float) and not isinstance(value, bool)
            assert one[key] == (pytest.approx(value, rel=1e-9, abs=1e-9) if number else value), (name, key, one, other)


def every_table(made: Fuzzed, way: dict[str, Any]) -> tuple[dict[str, Rows], dict[str, Rows]]:
    analysis = proctor.analyze(made.store, NAME, **way).data
    found, unranked = dict(analysis.tables), [one.name for one in analysis.boards[0].unranked]
    own = Expected(made, way)
    wanted = {
        "capabilities": own.capabilities(),
        "regression": own.regression(),
        "factors": own.factors(),
        "gaps": own.gaps(),
        "videos": own.videos(),
        "groups": own.podium(),
        "pairs": own.pairs(),
        "ensembles": own.ensembles(),
        "failures": own.failures(),
        "scores": own.metrics(),
        **board_tables(made, way, unranked),
    }
    told = {"draws": way["draws"], "two_level": way.get("two_level", False), "stability": way["stability"]}
    told |= {"seed": way.get("seed", 0), "alpha": 0.05, "ties": "tied"}
    told |= {"scored_by": JUDGE, "failed": way["failed"]}
    wanted["settings"] = [{"setting": name, "value": value} for name, value in told.items()]
    return found, wanted


@pytest.mark.parametrize("given", WAYS, ids=[" ".join(way) for way in WAYS])
def test_every_table(made: Fuzzed, given: dict[str, Any]) -> None:
    found, wanted = every_table(made, {"draws": 120, "stability": 0} | given)
    assert set(found) == {*wanted, "rules", "reliance"}
    assert found["reliance"] == [], "no run hides the evidence: test_reliance has it"
    for name, rows in wanted.items():
        same(name, found[name], rows)
    for row in found["gaps"]:  # the interval is of the difference of two means
        assert -1 <= row["ci_low"] <= row["value"] <= row["ci_high"] <= 1


def test_without_options(made: Fuzzed) -> None:
    """The defaults of the room below are those that are documented: 2,000 draws, 1,000 samples, seed 0, 95 %."""
    settings = {
        row["setting"]: row["value"]
        for row in analyse(made.store, NAME, Contest(baselines=("none",))).tables["settings"]
    }
    wanted = {"draws": 2000, "two_level": False, "stability": 1000, "seed": 0, "alpha": 0.05, "ties": "tied"}
    assert settings == wanted | {"scored_by": JUDGE, "failed": "wrong"}


def test_one_group_has_no_spread(tmp_path: Path) -> None:
    store = contest_store(tmp_path, 12, videos=1)
    for system, rate in (("one", 0.9), ("two", 0.4)):
        write_run(store, system, skilled(rate, rate, 12, 3))
    rows = proctor.analyze(store, baselines="none", draws=100, stability=0).data.tables["videos"]
    assert {(row["groups"], row["sd"], row["lowest"] == row["q1"] == row["highest"]) for row in rows} == {
        (1, None, True)
    }
