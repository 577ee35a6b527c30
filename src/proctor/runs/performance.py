"""What the tables of an analysis are made from, and those of single systems: failures, errors by format, differences
from group to group, ensembles."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import FailedPolicy, InputError, Item, Status, natural
from proctor.core.formats import FreeTextFormat, RatingsFormat
from proctor.metrics import MISSING, is_right, item_sums, median_places
from proctor.runs.run_scores import Entry
from proctor.runs.table import ItemTable
from proctor.stats import Estimate, Floats, Resampling, mean_interval, paired_difference

AnalysisRow = dict[str, Any]


class NothingMarkedError(InputError):
    """No question has a mark from any system."""


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What an analysis needs of an answer; whole answers of fifty systems would take gigabytes."""

    status: Status
    parsed: JsonValue


@dataclass(frozen=True)
class AnalysisData:
    """The chosen systems on the items that count, each with its own marks: what one lacks is lacking in no other's
    numbers. `labels` is the tag that an item may carry several values
    of (its capabilities), `factors` are the tags that stand in the regression, `facets` all that results are split by;
    `plan` says how intervals are drawn, `policy` what becomes of what a run lacks."""

    items: ItemTable
    by_id: dict[str, Item]
    entries: list[Entry]
    answers: dict[str, dict[str, ParsedAnswer]]
    causes: dict[str, dict[int, str]]
    labels: str
    factors: tuple[str, ...]
    facets: tuple[str, ...]
    plan: Resampling
    policy: FailedPolicy = FailedPolicy.WRONG

    @property
    def names(self) -> list[str]:
        """The systems, by name."""
        return [entry.name for entry in self.entries]

    def carriers(self, tag: str) -> dict[str, NDArray[np.bool_]]:
        """Each value of a tag with the items that carry it."""
        column = self.items.facet(tag)
        values = sorted({value for row in column for value in row}, key=natural)
        return {value: np.array([value in row for row in column], dtype=np.bool_) for value in values}

    def marked(self) -> NDArray[np.int64]:
        """The items that some system has a mark for."""
        found = np.flatnonzero(np.logical_or.reduce([~np.isnan(entry.right) for entry in self.entries]))
        if not len(found):
            raise NothingMarkedError(None, "marks", found="no question with a mark", expected="one")
        return found


def numbers(estimate: Estimate) -> AnalysisRow:
    """An estimate as columns."""
    return {
        "n": estimate.n,
        "groups": estimate.groups,
        "value": estimate.value,
        "ci_low": estimate.ci_low,
        "ci_high": estimate.ci_high,
    }


UNSUPPORTED = "not supported"
"""The cause of an item whose format the system does not answer."""


def failure_rows(data: AnalysisData) -> list[AnalysisRow]:
    """Per system and format: how many questions ended how, whatever the policy. The cause is the label of the mark, by
    code or by the judge behind the ranking (right, wrong, unreadable, timed out, refused, error, missing; for a panel
    without a majority unresolved); right or wrong by the mark where it has none, "not marked" before there is a mark,
    "failed" where asking failed, and "not supported" where the system does not answer the format."""
    column = data.items.facet("answer_format" if "answer_format" in data.items.facet_names() else "format")
    rows = []
    for entry in data.entries:
        found: Counter[tuple[str, str]] = Counter()
        for position, values in enumerate(column):
            found[values[0] if values else "", _cause(data, entry, position)] += 1
        sizes: Counter[str] = Counter()
        for (form, _), count in found.items():
            sizes[form] += count
        rows += [
            {"system": entry.name, "format": form, "cause": cause, "count": count, "share": count / sizes[form]}
            for (form, cause), count in sorted(found.items())
        ]
    return rows


def _cause(data: AnalysisData, entry: Entry, place: int) -> str:
    label = data.causes[entry.name].get(place)
    if label:
        return label
    if entry.unsupported[place]:
        return UNSUPPORTED
    if entry.missing[place]:
        return MISSING
    answer = data.answers[entry.name].get(data.items.ids[place])
    if answer is not None and answer.status is Status.FAILED:
        return "failed"
    if np.isnan(entry.marked.scores[place]):
        return "not marked"
    return "right" if entry.marked.scores[place] >= 1 else "wrong"


def mark_rows(data: AnalysisData) -> list[AnalysisRow]:
    """Per system and format: the marks beyond accuracy (`proctor.metrics.corpus`). Under the policy `wrong` what failed
    or was not asked has the worst mark, as any answer that can't be read has."""
    rows = []
    for entry in data.entries:
        answers = data.answers[entry.name]
        by_kind: dict[str, list[tuple[Item, JsonValue]]] = {}
        out = _left_out(data, entry)
        for position, name in enumerate(data.items.ids):
            item, answer = data.by_id[name], answers.get(name)
            if item.reference is not None and position not in out:
                readable = answer is not None and answer.status is Status.ANSWERED
                value = answer.parsed if answer is not None and readable else None
                by_kind.setdefault(item.answer.kind, []).append((item, value))
        for kind, pairs in sorted(by_kind.items()):
            items, said = zip(*pairs, strict=True)
            groups = [item.group for item in items]
            rows += [
                {
                    "system": entry.name,
                    "format": kind,
                    "metric": mark.metric.name,
                    "label": mark.metric.label,
                    "part": mark.part,
                    "higher_is_better": mark.metric.higher_is_better,
                }
                | numbers(mark.estimate)
                for mark in (sums.estimate(groups, data.plan) for sums in item_sums(items, said))
            ]
    return rows


def _left_out(data: AnalysisData, entry: Entry) -> set[int]:
    """The places of items that are no part of the marks: of a format that the system does not answer and, where what a
    run lacks is left out, failed ones and those not asked."""
    out = entry.unsupported
    if data.policy is FailedPolicy.EXCLUDE:
        answers = data.answers[entry.name]
        lacking = [name not in answers or answers[name].status is Status.FAILED for name in data.items.ids]
        out = out | np.array(lacking, dtype=np.bool_)
    return set(np.flatnonzero(out).tolist())


ALL = "all"
_REACH = 1.5  # whiskers end at the last value within this many widths of the box (Tukey 1977)


def video_rows(data: AnalysisData) -> list[AnalysisRow]:
    """Per system the spread of the groups' accuracies, on all questions and on those that carry each label: the
    standard deviation, and what a box plot shows. Whiskers end at the last group within 1.5 widths of the box."""
    rows = []
    parts = {ALL: np.ones(len(data.items.ids), dtype=np.bool_)} | data.carriers(data.labels)
    for part, inside in parts.items():
        for entry in data.entries:
            _, count, total = _sums(data, entry.right, inside)
            means = total / count
            row: AnalysisRow = {"system": entry.name, "part": part, "groups": len(means)}
            row["sd"] = float(np.std(means, ddof=1)) if len(means) > 1 else None
            rows.append(row | box_of(means))
    return rows


def box_of(means: Floats) -> AnalysisRow:
    """What a box plot shows of the groups' accuracies; all None without a group."""
    names = ("lowest", "whisker_low", "q1", "median", "q3", "whisker_high", "highest")
    if not len(means):
        return dict.fromkeys(names)
    q1, median, q3 = (float(one) for one in np.quantile(means, (0.25, 0.5, 0.75)))
    reach = _REACH * (q3 - q1) + 1e-12
    low = float(means[means >= q1 - reach].min())
    high = float(means[means <= q3 + reach].max())
    values = (float(means.min()), min(low, q1), q1, median, q3, max(high, q3), float(means.max()))
    return dict(zip(names, values, strict=True))


def group_rows(data: AnalysisData) -> list[AnalysisRow]:
    """Every system on every group where it has a mark: its accuracy on its own questions, and its place there among the
    systems that are no baselines (equal ones share a place; None for a baseline): what a podium plot shows."""
    everything = np.ones(len(data.items.ids), dtype=np.bool_)
    values: dict[int, dict[str, tuple[int, float]]] = {}
    for entry in data.entries:
        groups, counts, totals = _sums(data, entry.right, everything)
        for group, count, total in zip(groups.tolist(), counts, totals, strict=True):
            values.setdefault(group, {})[entry.name] = (int(count), round(float(total / count), 12))
    contestants = [entry.name for entry in data.entries if not entry.baseline]
    rows = []
    for group in sorted(values):
        here = values[group]
        ranked = [here[name][1] for name in contestants if name in here]
        rows += [
            {
                "group": data.items.groups[group],
                "system": name,
                "n": count,
                "value": value,
                "place": 1 + sum(other > value for other in ranked) if name in contestants else None,
            }
            for name, (count, value) in here.items()
        ]
    return rows


def _sums(data: AnalysisData, right: Floats, inside: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Floats, Floats]:
    """The groups with a mark inside, how many marks each has, and how many of them are right."""
    marked = np.flatnonzero(~np.isnan(right) & inside)
    group = data.items.group[marked]
    count = np.bincount(group, minlength=len(data.items.groups)).astype(np.float64)
    total = np.bincount(group, right[marked], minlength=len(data.items.groups)).astype(np.float64)
    there = np.flatnonzero(count)
    return there, count[there], total[there]


BEST, VOTE_OF_ALL, BOUND = "best", "vote of all", "any right (upper bound)"
_FEW = 3


def vote(item: Item, values: Sequence[JsonValue]) -> JsonValue:
    """What the answers say together, best system first; None without an answer.

    Count, percentage, quantity and scale: the lower median. Classes: those that more than half name. Times, intervals
    and boxes: the number of them that most have (of equals the smaller), and of these answers the median at each place.
    All others: the most frequent answer, of equals the one of the best system.

    >>> from proctor.core.formats import CountFormat
    >>> vote(Item(id="q", group="v", question="How many?", answer=CountFormat()), [4, 1, 2])
    2
    """
    said = [value for value in values if value is not None]
    if not said:
        return None
    kind = item.answer.kind
    if kind in {"count", "percentage", "quantity", "scale"}:
        return sorted(said, key=lambda value: float(str(value)))[(len(said) - 1) // 2]
    if kind == "classes":
        named = Counter(str(name) for value in said if isinstance(value, list) for name in value)
        return [name for name in sorted(named) if named[name] * 2 > len(said)]
    if kind == "timestamps":
        lists = [[float(str(moment)) for moment in value] for value in said if isinstance(value, list)]
        sizes = Counter(len(moments) for moments in lists)
        usual = min(sizes, key=lambda size: (-sizes[size], size))
        table = np.array([moments for moments in lists if len(moments) == usual])
        return [float(moment) for moment in np.median(table, axis=0)]
    if kind in {"intervals", "boxes"}:
        return median_places(said)
    times = Counter(json.dumps(value) for value in said)
    best = max(times.values())
    return next(value for value in said if times[json.dumps(value)] == best)


def ensemble_rows(data: AnalysisData) -> list[AnalysisRow]:
    """Accuracy of the best system, of votes of the best three and of all, and of "any of them is right": over all
    formats and for each, with the paired difference to the best system.

    Baselines do not vote. Free text and ratings can't be voted on; these, and questions without a mark, are `left_out`.
    Who has no mark for a question has no vote on it and no share in the bound. Who is best is chosen on the same
    questions, which flatters the votes of the best; where the best one has no mark it is wrong here.
    """
    voters = [entry for entry in data.entries if not entry.baseline]
    marked = np.logical_or.reduce([~np.isnan(entry.right) for entry in voters])
    here = [
        int(position)
        for position in np.flatnonzero(marked)
        if not isinstance(data.by_id[data.items.ids[position]].answer, FreeTextFormat | RatingsFormat)
    ]
    own = {entry.name: np.nan_to_num(entry.right[np.array(here, dtype=np.int64)]) for entry in voters}
    everyone = sorted(own, key=lambda name: (-float(own[name].mean()) if here else 0.0, name))
    made = [(BEST, everyone[:1], own[everyone[0]])]
    for name, size in ((f"vote of the best {_FEW}", _FEW), (VOTE_OF_ALL, len(voters))):
        if size > 1 and (size < len(voters) or name == VOTE_OF_ALL):
            chosen = everyone[:size]
            made.append((name, chosen, np.array([_voted(data, position, chosen) for position in here])))
    made.append((BOUND, everyone, np.max(list(own.values()), axis=0)))
    formats = np.array([data.by_id[data.items.ids[position]].answer.kind for position in here])
    rows = []
    for kind in ("all", *sorted(set(formats))):
        inside = np.flatnonzero((formats == kind) | (kind == "all"))
        groups = data.items.group[np.asarray(here, dtype=np.int64)][inside]
        best = made[0][2][inside]
        for name, systems, right in made:
            row: AnalysisRow = {"ensemble": name, "format": kind, "systems": " + ".join(systems)}
            one = mean_interval(right[inside], groups, data.plan.within(0, 1))
            rows.append(row | numbers(one) | _gain(right[inside], best, groups, data))
            rows[-1]["left_out"] = len(data.items.ids) - len(here) if kind == "all" else 0
    return rows


def _gain(right: Floats, best: Floats, groups: NDArray[np.int64], data: AnalysisData) -> AnalysisRow:
    one = paired_difference(right, best, groups, data.plan.within(0, 1))
    return {"gain": one.value, "gain_low": one.ci_low, "gain_high": one.ci_high, "p": one.p}


def _voted(data: AnalysisData, place: int, systems: Sequence[str]) -> float:
    item = data.by_id[data.items.ids[place]]
    given = [data.answers[system].get(item.id) for system in systems]
    value = vote(item, [None if one is None or one.status != "answered" else one.parsed for one in given])
    return float(value is not None and is_right(item, value))
