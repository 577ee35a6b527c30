"""Boards and analyses of a made-up store (`fuzzed_store`) worked out again from its raw answers.

Who takes part, which question is in which bucket, and what each answer counts, is decided here anew; the ranks that a
table of scores has are those of `proctor.stats.rank_buckets`, which has oracles of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import Status
from proctor.stats import RankingPlan, Standing, Standings, rank_buckets
from tests.support.fuzzed_store import JUDGE, SYSTEMS, Fuzzed, Given
from tests.support.recomputed import counted, facet_values, is_free, read, state_of

PART = ("accuracy", JUDGE)


@dataclass
class Scored:
    """Who is compared on which items: `right` by system (NaN: no score)."""

    ranks: list[int]
    given: dict[str, list[Given]]
    baselines: list[str]
    right: dict[str, NDArray[np.float64]]
    groups: list[str]
    judged: bool

    @property
    def contestants(self) -> list[str]:
        return [name for name in sorted(self.right) if name not in self.baselines]


def scored(
    made: Fuzzed,
    *,
    condition: str = "video",
    systems: Sequence[str] = (),
    baselines: Sequence[str] = (),
    failed: str = "wrong",
    all_items: bool = False,
    **_: Any,
) -> Scored:
    """The scores of everybody who takes part, on all items that count."""
    bases = [] if list(baselines) == ["none"] else list(baselines) or ["random"]
    names = [name for name in SYSTEMS if (name in systems if systems else name != "random")]
    under = {name: (name, condition) for name in names if (name, condition) in made.runs}
    under |= {name: (name, condition if (name, condition) in made.runs else "text-only") for name in bases}
    judged = any(PART in one.scores for run in under.values() for one in made.runs[run])
    rows = [row for row in counted(made, all_items=all_items) if judged or not is_free(made.items[row])]
    given = {name: [made.runs[run][row] for row in rows] for name, run in sorted(under.items())}
    right = {
        name: np.array(
            [
                np.nan if (value := read(PART, one, failed, baseline=name == "random")) is None else value
                for one in answers
            ]
        )
        for name, answers in given.items()
    }
    return Scored(rows, given, bases, right, [made.items[row].group for row in rows], judged)


def buckets(made: Fuzzed, indices: Sequence[int], by: Sequence[str]) -> tuple[list[str], list[int]]:
    """The names of the buckets, and the one of each item; −1: an item without one, or with several."""
    columns = [[facet_values(made.items[index], tag) for index in indices] for tag in by]
    values = [sorted({one for some in column for one in some}) for column in columns]
    cells = list(product(*values))
    own = [tuple(some[0] if len(some) == 1 else None for some in row) for row in zip(*columns, strict=True)]
    return [" / ".join(cell) for cell in cells], [cells.index(row) if row in cells else -1 for row in own]


def _means(right: NDArray[np.float64], codes: NDArray[np.int64], count: int) -> list[float | None]:
    inside = [right[(codes == number) & ~np.isnan(right)] for number in range(count)]
    return [float(one.mean()) if len(one) else None for one in inside]


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [one for one in scores if one is not None]
    return sum(known) / len(known) if known else None


def lacking(given: Sequence[Given], *, baseline: bool) -> dict[str, int]:
    """What a run lacks, counted by hand."""
    states = [state_of(PART, one, baseline=baseline) for one in given]
    return {
        "missing": sum(one.status is Status.ANSWERED and not one.submitted for one in given),
        "not_asked": states.count("missing"),
        "failed": states.count("failed"),
        "unresolved": states.count("unresolved"),
        "unscored": states.count("unscored"),
        "unsupported": states.count("unsupported"),
        "untimed": 0,
    }


@dataclass
class Ranked:
    """One board: what it was made from, the standings, and its rows."""

    scores: Scored
    codes: NDArray[np.int64]
    names: list[str]
    standings: Standings
    rows: list[dict[str, Any]]
    left_out: int
    unbucketed: int


STANDING = ("rank", "score", "mean", "win_rate", "win_rate_tied", "head_to_head", "tie_broken", "rank_low", "rank_high")


def board(made: Fuzzed, *, by: Sequence[str] = (), unranked: Sequence[str] = (), **way: Any) -> Ranked:
    """The one board of a benchmark, whose systems `unranked` are left out of the ranking."""
    found = scored(made, **way)
    names, codes = buckets(made, found.ranks, by or ("level",))
    inside = np.array(codes) >= 0
    code = np.array(codes)[inside]
    right = {name: one[inside] for name, one in found.right.items()}
    groups = [one for one, here in zip(found.groups, inside, strict=True) if here]
    ranked = [name for name in found.contestants if name not in unranked]
    way = {"leave_out": True} | way
    plan = RankingPlan(**{name: way[name] for name in way if name in RankingPlan.__dataclass_fields__})
    table = np.array([right[name] for name in ranked]).reshape(len(ranked), len(code))
    standings = rank_buckets(table, ranked, groups, code, names, plan)
    own = {name: [one for one, here in zip(given, inside, strict=True) if here] for name, given in found.given.items()}
    lacks = {name: lacking(given, baseline=name == "random") for name, given in own.items()}
    means = {name: _mean(_means(right[name], code, len(names))) for name in right}
    bases = sorted(found.baselines, key=lambda name: (-(means[name] or 0.0), name))
    rows = [_row(one, right, code, len(names), bases) | lacks[one.name] for one in standings.systems]
    for removal, row in zip(standings.removals, rows, strict=False):
        row["first_without"] = "; ".join(removal.first)
    for name in unranked:
        ends = {
            f"mean_if_{told}": _mean(_means(made_right, code, len(names)))
            for told, made_right in (
                (told, scored(made, **way | {"failed": policy}).right[name][inside])
                for told, policy in (("wrong", "wrong"), ("excluded", "exclude"))
            )
        }
        rows.append({"system": name, "baseline": False} | ends | lacks[name])
    rows += [{"system": name, "baseline": True, "mean": means[name]} | lacks[name] for name in bases]
    counting = counted(made, all_items=way.get("all_items", False))
    everywhere = buckets(made, counting, by or ("level",))[1]
    left = sum(code >= 0 and rank not in found.ranks for rank, code in zip(counting, everywhere, strict=True))
    return Ranked(
        Scored(found.ranks, own, bases, right, groups, found.judged),
        code,
        names,
        standings,
        rows,
        left,
        sum(code < 0 for code in everywhere),
    )


def duels(one: Standing) -> tuple[int, int, int]:
    """Systems beaten, lost to, and level with."""
    leads = [one.ahead[name] - one.behind[name] for name in one.ahead]
    return sum(lead > 0 for lead in leads), sum(lead < 0 for lead in leads), sum(lead == 0 for lead in leads)


def _row(
    one: Standing, right: dict[str, NDArray[np.float64]], codes: NDArray[np.int64], count: int, bases: Sequence[str]
) -> dict[str, Any]:
    below = False
    for base in bases:
        there = ~np.isnan(right[base])
        mean = _mean(_means(right[base], codes, count))
        own = _mean(_means(right[one.name][there], codes[there], count))
        below = below or (mean is not None and (own or 0.0) <= mean)
    won, lost, tied = duels(one)
    spread = one.stability
    return {
        "system": one.name,
        "baseline": False,
        **{name: getattr(one, name) for name in STANDING},
        "rank_by_mean": one.mean_rank,
        "won": won,
        "lost": lost,
        "tied": tied,
        "resampled_rank_low": spread.resampled_rank_low if spread else None,
        "resampled_rank_high": spread.resampled_rank_high if spread else None,
        "p_first": spread.chances[0] if spread else None,
        "below_line": below if bases else None,
        "advances": not below if bases else None,
    }
