"""The numbers of a made-up store (`fuzzed_store`) worked out again from its raw answers, in the plainest way there is.

Which items count, with which value, and in which part, is decided here anew, item by item; only the interval of the
list of numbers that comes out of it is that of `proctor.stats`, which has oracles of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

from proctor.core import Item, Metric, Status
from proctor.judges import PANEL_ACCURACY, UNRESOLVED
from proctor.stats import Difference, Estimate, Resampling, mean_interval, paired_difference
from tests.support.fuzzed_store import EFFORT, HELPFUL, JUDGE, OPEN, UNJUDGED, Fuzzed, Given

METRICS = {one.name: one for one in (PANEL_ACCURACY, HELPFUL, EFFORT, UNRESOLVED)}
PARTS = (("accuracy", "code"), ("accuracy", JUDGE), ("helpful", JUDGE), ("effort", "code"), ("unresolved", JUDGE))
"""Metric and scorer in the order of the tables."""


def parts_of(run: tuple[str, str]) -> Sequence[tuple[str, str]]:
    """What a run is scored by."""
    if run[0] == "random":
        return PARTS[:1]
    return (PARTS[0], ("accuracy", "")) if run == UNJUDGED else PARTS


def is_free(item: Item) -> bool:
    return item.answer.kind == "free_text"


def scored_by(part: tuple[str, str], item: Item) -> bool:
    """Whether a metric by a scorer is about an item."""
    if part == ("accuracy", "code"):
        return not is_free(item)
    return part in {("accuracy", JUDGE), ("effort", "code")} or is_free(item)


def value_of(part: tuple[str, str], one: Given) -> float | None:
    """The score; a judge's accuracy is completed by code's."""
    found = one.scores.get(part) or (one.scores.get(("accuracy", "code")) if part[0] == "accuracy" else None)
    return None if found is None else found[0]


def state_of(part: tuple[str, str], one: Given, *, baseline: bool) -> str:
    """Why there is no score: "" where there is one."""
    if value_of(part, one) is not None:
        return ""
    if one.status is None:
        return "unsupported" if baseline else "missing"
    if one.status is Status.FAILED:
        return "failed"
    judged = part[1] == JUDGE and one.unresolved in OPEN
    return "unresolved" if judged else "unscored"


LACKING = {"missing", "failed", "unresolved"}


def lacks(part: tuple[str, str], one: Given, *, baseline: bool) -> bool:
    """Whether it is a matter of the policy what an item counts; never of what a judge says of itself, or before it is
    asked."""
    return part[0] != "unresolved" and bool(part[1]) and state_of(part, one, baseline=baseline) in LACKING


def read(part: tuple[str, str], one: Given, policy: str, *, baseline: bool) -> float | None:
    """What an item counts under a policy; None: it does not."""
    state = state_of(part, one, baseline=baseline)
    if policy == "wrong" and lacks(part, one, baseline=baseline):
        metric = METRICS[part[0]]
        return metric.low if metric.higher_is_better else metric.high
    return value_of(part, one) if not state else None


def facet_values(item: Item, name: str) -> list[str]:
    if name in {"group", "format"}:
        return [item.group if name == "group" else item.answer.kind]
    found = item.tags[name]
    return list(dict.fromkeys(map(str, found))) if isinstance(found, list | tuple) else [str(found)]


def cells_of(items: Sequence[Item], by: Sequence[str]) -> list[tuple[dict[str, str], list[int]]]:
    """Each combination of values, sorted, with the positions of its items."""
    found: dict[tuple[str, ...], list[int]] = {}
    for row, item in enumerate(items):
        for cell in product(*(facet_values(item, name) for name in by)):
            found.setdefault(cell, []).append(row)
    return [(dict(zip(by, cell, strict=True)), found[cell]) for cell in sorted(found)]


def estimate(metric: Metric, items: Sequence[Item], values: Sequence[float | None], plan: dict[str, Any]) -> Estimate:
    """The mean over the units of the items that have a value."""
    pairs = [
        (value, item.group)
        for item, value in zip(items, values, strict=True)
        if value is not None
        for _ in range(int(str(item.tags["steps"])) if metric.per else 1)
    ]
    bounds = (metric.low, metric.high)
    return mean_interval([one for one, _ in pairs], [group for _, group in pairs], Resampling(**plan, bounds=bounds))


STATUSES = {
    "timed_out": Status.TIMED_OUT,
    "refused": Status.REFUSED,
    "error": Status.ERROR,
    "abstained": Status.ABSTAINED,
}


def counts(part: tuple[str, str], given: Sequence[Given], *, baseline: bool) -> dict[str, int]:
    """How the answers ended, each counted by hand."""
    states = [state_of(part, one, baseline=baseline) for one in given]
    unread = [one for one in given if one.status is Status.ANSWERED and not one.readable]
    return {
        "answered": sum(one.status not in {None, Status.FAILED} for one in given),
        "failed": sum(one.status is Status.FAILED for one in given),
        **{name: sum(one.status is status for one in given) for name, status in STATUSES.items()},
        "unreadable": sum(one.submitted for one in unread),
        "cut_off": 0,
        "not_submitted": sum(not one.submitted for one in unread),
        "unresolved": states.count("unresolved"),
        "decided": sum(part[1] == JUDGE and one.unresolved.startswith("decided by") for one in given),
        "unscored": states.count("unscored"),
        "missing": states.count("missing"),
        "unsupported": states.count("unsupported"),
    }


def counted(made: Fuzzed, *, all_items: bool = False) -> list[int]:
    return [row for row, item in enumerate(made.items) if all_items or item.tags["kept"]]


def results(
    made: Fuzzed,
    *,
    by: Sequence[str] = (),
    failed: str = "both",
    all_items: bool = False,
    systems: Sequence[str] = (),
    conditions: Sequence[str] = (),
    metrics: Sequence[str] = (),
    **plan: Any,
) -> list[dict[str, Any]]:
    """What `results` has to say, row by row and column by column."""
    indices = counted(made, all_items=all_items)
    rows = []
    for (system, condition), given in sorted(made.runs.items()):
        if (systems and system not in systems) or (conditions and condition not in conditions):
            continue
        baseline = system == "random"
        for part in parts_of((system, condition)):
            if metrics and part[0] not in metrics:
                continue
            metric = METRICS[part[0]]
            for facets, inside in cells_of([made.items[index] for index in indices], by):
                here = [index for at in inside if scored_by(part, made.items[index := indices[at]])]
                own, items = [given[index] for index in here], [made.items[index] for index in here]
                said = counts(part, own, baseline=baseline)
                asked = [at for at in indices if given[at].status is not None and scored_by(part, made.items[at])]
                if not said["answered"] + said["failed"] and not (by and asked and said["missing"]):
                    continue
                ends = {
                    policy: estimate(metric, items, [read(part, one, policy, baseline=baseline) for one in own], plan)
                    for policy in ("wrong", "exclude")
                }
                policy = failed if any(lacks(part, one, baseline=baseline) for one in own) else ""
                shown = ends.get(policy, ends["exclude"])
                low, high = shown.ci_low, shown.ci_high
                if policy == "both":
                    shown = ends["wrong"]
                    lows = [one.ci_low for one in ends.values() if one.ci_low is not None]
                    highs = [one.ci_high for one in ends.values() if one.ci_high is not None]
                    low, high = (min(lows), max(highs)) if len(lows) == len(highs) == 2 else (None, None)
                labels = [one.scores[part][1] for one in own if part in one.scores and part[1]]
                rows.append(
                    {"system": system, "condition": condition, "metric": part[0], "scorer": part[1], "facets": facets}
                    | said
                    | {"n": shown.n, "groups": shown.groups, "ci_low": low, "ci_high": high, "policy": policy}
                    | {"value": None if policy == "both" else shown.value}
                    | {"if_wrong": ends["wrong"].value, "if_excluded": ends["exclude"].value}
                    | {"levels": {one: labels.count(one) for one in labels} if metric.levels else {}}
                )
    return rows


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p of those that are there, step by step."""
    order = sorted((p, row) for row, p in enumerate(p_values) if p is not None)
    found: list[float | None] = [None] * len(p_values)
    least = 0.0
    for step, (p, row) in enumerate(order):
        least = max(least, min(1.0, p * (len(order) - step)))
        found[row] = least
    return found


def _outcome(part: tuple[str, str], one: Given, value: float) -> str:
    if part[0] == "accuracy":
        return "correct" if value == 1 else "incorrect"
    return one.scores[part][1] if part in one.scores else ""


def _pair(
    part: tuple[str, str],
    items: Sequence[Item],
    sides: Sequence[tuple[str, str, Sequence[Given]]],
    failed: str,
    plan: Any,
) -> dict[str, Any]:
    metric = METRICS[part[0]]
    here = [index for index, item in enumerate(items) if scored_by(part, item)]
    bases = [system == "random" for system, _, _ in sides]
    lacking = any(
        lacks(part, given[index], baseline=base)
        for (_, _, given), base in zip(sides, bases, strict=True)
        for index in here
    )
    policy = failed if lacking else ""

    def values(reading: str) -> list[tuple[int, list[float | None]]]:
        both = zip(sides, bases, strict=True)
        own = [[read(part, given[index], reading, baseline=base) for index in here] for (_, _, given), base in both]
        return list(zip(here, map(list, zip(*own, strict=True)), strict=True))

    def difference(reading: str) -> Difference:
        kept = [
            (one[0], one[1], items[index].group)
            for index, one in values(reading)
            if one[0] is not None and one[1] is not None
            for _ in range(int(str(items[index].tags["steps"])) if metric.per else 1)
        ]
        first, second, groups = (list(column) for column in zip(*kept, strict=True)) if kept else ([], [], [])
        bounds = (metric.low, metric.high)
        return paired_difference(first, second, groups, Resampling(**plan, bounds=bounds))

    ends = {reading: difference(reading) for reading in ("wrong", "exclude")}
    wrong, excluded = ends["wrong"], ends["exclude"]
    if not policy:
        wrong = excluded
    shown = ends.get(policy, excluded)
    value, low, high, p = shown.value, shown.ci_low, shown.ci_high, shown.p
    if policy == "both":
        shown, value, p = wrong, None, None
        low, high = _widest(wrong, excluded)
        if (wrong.value or 0) * (excluded.value or 0) >= 0 and None not in (wrong.p, excluded.p):
            p = max(wrong.p, excluded.p)  # type: ignore[type-var]
    found = values("wrong" if policy == "wrong" else "exclude")
    kept = [(index, one) for index, one in found if None not in one]
    levels = ("correct", "incorrect") if part[0] == "accuracy" else metric.levels
    said = [
        tuple(_outcome(part, given[index], one[side] or 0.0) for side, (_, _, given) in enumerate(sides))
        for index, one in kept
    ]
    inside = [pair for pair in said if set(pair) <= set(levels)]
    others = [
        pair
        for (index, _), pair in zip(kept, said, strict=True)
        if set(pair) - set(levels)
        and not any(lacks(part, given[index], baseline=name == "random") for name, _, given in sides)
    ]
    table = [[inside.count((row, column)) for column in levels] for row in levels] if levels else None
    recovered: tuple[int, int] | tuple[None, None] = (None, None)
    share: Estimate | None = None
    blind = [condition == "text-only" for _, condition, _ in sides]
    if table and part[0] == "accuracy" and blind in ([True, False], [False, True]):
        without = blind.index(True)
        now = [
            (index, pair[1 - without])
            for (index, _), pair in zip(kept, said, strict=True)
            if pair[without] == "incorrect"
        ]
        hits = [float(outcome == "correct") for _, outcome in now]
        recovered = int(sum(hits)), len(hits)
        share = mean_interval(hits, [items[index].group for index, _ in now], Resampling(**plan, bounds=(0, 1)))
    return {
        "metric": part[0],
        "scorer": part[1],
        **{name: {"system": one[0], "condition": one[1]} for name, one in zip(("first", "second"), sides, strict=True)},
        "n": shown.n,
        "groups": shown.groups,
        "difference": value,
        "ci_low": low,
        "ci_high": high,
        "p": p,
        "decides": 2.0 ** (1 - max(1, shown.groups)) <= 1 - plan.get("level", 0.95) + 1e-9,
        "scored_only_first": sum(one[0] is not None and one[1] is None for _, one in found),
        "scored_only_second": sum(one[1] is not None and one[0] is None for _, one in found),
        "levels": list(levels),
        "table": table,
        "other_levels": len(others) if levels else 0,
        "counted_wrong": len(said) - len(inside) - len(others) if levels else 0,
        "recovered": recovered[0],
        "wrong_without_media": recovered[1],
        "recovery_low": None if share is None else share.ci_low,
        "recovery_high": None if share is None else share.ci_high,
        "recovery_groups": None if share is None else share.groups,
        "policy": policy,
        "difference_if_wrong": wrong.value,
        "p_if_wrong": wrong.p,
        "difference_if_excluded": excluded.value,
        "p_if_excluded": excluded.p,
    }


def _widest(*ends: Difference) -> tuple[float | None, float | None]:
    lows = [one.ci_low for one in ends if one.ci_low is not None]
    highs = [one.ci_high for one in ends if one.ci_high is not None]
    return (min(lows), max(highs)) if len(lows) == len(highs) == len(ends) else (None, None)


def comparisons(
    made: Fuzzed,
    pairs: Sequence[tuple[tuple[str, str], tuple[str, str]]],
    *,
    by: Sequence[str] = (),
    failed: str = "both",
    all_items: bool = False,
    metrics: Sequence[str] = (),
    **plan: Any,
) -> list[dict[str, Any]]:
    """What `compare` has to say of pairs of runs, each named by system and condition."""
    rows = counted(made, all_items=all_items)
    found = []
    for facets, inside in cells_of([made.items[row] for row in rows], by):
        here = [rows[at] for at in inside]
        for first, second in pairs:
            for part in sorted(set(parts_of(first)) & set(parts_of(second)) - {("accuracy", "")}):
                if part[0] not in metrics if metrics else part[0] in FLAGS:
                    continue
                sides = [(*run, [made.runs[run][row] for row in here]) for run in (first, second)]
                one = _pair(part, [made.items[row] for row in here], sides, failed, plan)
                if one["n"] or not by:
                    found.append({"facets": facets} | one)
    for key in {(one["metric"], one["scorer"], _family(*_runs_of(one), by)) for one in found}:
        own = [one for one in found if (one["metric"], one["scorer"], _family(*_runs_of(one), by)) == key]
        asked = {frozenset(_runs_of(one)) for one in own}
        more = []
        for first, second in _whole(made, key[2]):
            there = key[:2] in parts_of(first) and key[:2] in parts_of(second)
            if there and frozenset((first, second)) not in asked:
                sides = [(*run, [made.runs[run][row] for row in rows]) for run in (first, second)]
                more.append(_pair(key[:2], [made.items[row] for row in rows], sides, failed, plan))
        tested = [1.0 if _open(one) else one["p"] for one in [*own, *more]]
        size = sum(p is not None for p in tested)
        systems = {run[0] for one in [*own, *more] for run in _runs_of(one)}
        for one, p in zip(own, holm(tested), strict=False):
            one["p_holm"] = None if _open(one) else p
            one["adjusted_for"] = _named(key[2], size, len(systems)) if size > 1 else ""
    return found


FLAGS = {"unresolved", "contradiction"}
"""What a judge's metric says of the judge alone."""

Run = tuple[str, str]


def _runs_of(one: dict[str, Any]) -> tuple[Run, Run]:
    first, second = ((one[side]["system"], one[side]["condition"]) for side in ("first", "second"))
    return first, second


def _open(one: dict[str, Any]) -> bool:
    """Whether the two readings of a pair point different ways."""
    return one["p"] is None and None not in (one["p_if_wrong"], one["p_if_excluded"])


def _family(first: Run, second: Run, by: Sequence[str]) -> str:
    """What p is adjusted for: a condition of all pairs of systems, text-only, or what was asked for."""
    if by:
        return "asked"
    if first[1] == second[1] and "random" not in (first[0], second[0]):
        return f"systems under {first[1]}"
    return "text-only" if first[0] == second[0] and "text-only" in (first[1], second[1]) else "asked"


def _whole(made: Fuzzed, family: str) -> list[tuple[Run, Run]]:
    if family.startswith("systems under "):
        runs = [run for run in made.runs if run[1] == family.removeprefix("systems under ") and run[0] != "random"]
        return list(combinations(runs, 2))
    if family == "text-only":
        return [(run, (run[0], family)) for run in made.runs if run[1] != family and (run[0], family) in made.runs]
    return []


def _named(family: str, size: int, systems: int) -> str:
    if family.startswith("systems"):
        return f"the {size} pairs of {systems} systems"
    return f"the {size} comparisons {'with text-only' if family == 'text-only' else 'asked for'}"
