"""The data of an analysis, and its tables on single systems: failures, metrics by format, variation between groups,
ensembles."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import FailedPolicy, InputError, Item, Status, natural
from proctor.core.formats import FreeTextFormat, RatingsFormat
from proctor.metrics import MISSING, is_right, item_sums, median_positions
from proctor.results.arrays import ItemTable
from proctor.results.ranking import Entry
from proctor.stats import Estimate, Floats, Ints, Resampling, mean_interval, paired_difference

AnalysisRow = dict[str, Any]


class NothingScoredError(InputError):
    """No question has a score of any system."""


@dataclass(frozen=True, slots=True)
class ParsedAnswers:
    """The parsed answers, coded to save memory. `values` are the distinct values; `codes` hold for each system the code of
    its answer to each item, −1 without a readable one."""

    values: list[JsonValue]
    codes: dict[str, Ints]

    def at(self, system: str, ranks: Ints) -> list[JsonValue]:
        """A system's answers at these positions; None without a value."""
        return [None if code < 0 else self.values[code] for code in self.codes[system][ranks].tolist()]

    def most_frequent(self, systems: Sequence[str], ranks: Ints) -> list[JsonValue]:
        """The most frequent answer of the systems at these positions (ties: of the first system); None without answers."""
        codes = np.array([self.codes[system][ranks] for system in systems])
        times = np.array([np.where(own < 0, 0, (codes == own).sum(axis=0)) for own in codes])
        chosen = codes[np.argmax(times, axis=0), np.arange(len(ranks))]
        return [None if code < 0 else self.values[code] for code in chosen.tolist()]


@dataclass(frozen=True)
class AnalysisData:
    """The chosen systems on the items that count; a system's lacking items affect only its own numbers. `asked` are the
    items of the table, `causes` say by system how its answers ended ("" without a label). `labels` is the tag with several
    values per item (capabilities), `factors` are the tags in the regression, `facets` all tags that results are split by;
    `plan` is that of the intervals, `policy` that for lacking items."""

    items: ItemTable
    asked: list[Item]
    entries: list[Entry]
    answers: ParsedAnswers
    causes: dict[str, list[str]]
    labels: str
    factors: tuple[str, ...]
    facets: tuple[str, ...]
    plan: Resampling
    policy: FailedPolicy = FailedPolicy.WRONG

    @property
    def names(self) -> list[str]:
        """The systems' names."""
        return [entry.name for entry in self.entries]

    @property
    def submissions(self) -> list[Entry]:
        """The systems that are no baselines: what is pooled over systems rests on these alone."""
        return [entry for entry in self.entries if not entry.baseline]

    def carriers(self, tag: str) -> dict[str, NDArray[np.bool_]]:
        """The items with each value of a tag."""
        codes, carried = self.items.coded_facet(tag)
        values = sorted({value for code in np.unique(codes) for value in carried[code]}, key=natural)
        return {value: np.array([value in some for some in carried], dtype=np.bool_)[codes] for value in values}

    def scored(self) -> NDArray[np.int64]:
        """The items with a score of any system."""
        found = np.flatnonzero(np.logical_or.reduce([~np.isnan(entry.right) for entry in self.entries]))
        if not len(found):
            expected = "one at least; of free text a judge gives them (proctor score)"
            raise NothingScoredError("accuracy", found="no answer with a score", expected=expected)
        return found


def numbers(estimate: Estimate) -> AnalysisRow:
    """An estimate as columns."""
    return {name: getattr(estimate, name) for name in ("n", "groups", "value", "ci_low", "ci_high")}


UNSUPPORTED = "unsupported"
"""The cause of an item whose format the system does not answer."""


def failure_rows(data: AnalysisData) -> list[AnalysisRow]:
    """The number of questions per system, format and cause, whatever the policy. The cause is the label of the score, by
    code or by the judge of the ranking (right, wrong, unreadable, timed out, refused, error, missing; unresolved for a
    panel without a majority); right or wrong for a score without a label, "not scored" without a score, "failed" after an
    infrastructure error, and "unsupported" if the system does not answer the format."""
    column = data.items.facet("answer_format" if "answer_format" in data.items.facet_names() else "format")
    forms = [values[0] if values else "" for values in column]
    rows = []
    for entry in data.entries:
        found = Counter(zip(forms, _causes(data, entry), strict=True))
        sizes: Counter[str] = Counter()
        for (form, _), count in found.items():
            sizes[form] += count
        rows += [
            {"system": entry.name, "format": form, "cause": cause, "count": count, "share": count / sizes[form]}
            for (form, cause), count in sorted(found.items())
        ]
    return rows


def _causes(data: AnalysisData, entry: Entry) -> list[str]:
    """The cause of each item; later assignments take precedence, and a label over all of them."""
    scores = entry.scored.scores
    found = np.full(len(scores), "wrong", dtype=object)
    found[scores >= 1] = "right"
    found[np.isnan(scores)] = "not scored"
    found[entry.scored.outcomes.where(Status.FAILED)] = "failed"
    found[entry.missing] = MISSING
    found[entry.unsupported] = UNSUPPORTED
    return [label or cause for label, cause in zip(data.causes[entry.name], found.tolist(), strict=True)]


def score_rows(data: AnalysisData) -> list[AnalysisRow]:
    """Metrics beyond accuracy (`proctor.metrics.corpus`) per system and format. Under the policy `wrong` failed and unasked
    items have the worst value, as unreadable answers have."""
    by_kind: dict[str, list[int]] = {}
    for position, item in enumerate(data.asked):
        if item.has_answer:
            by_kind.setdefault(item.answer.kind, []).append(position)
    rows = []
    for entry in data.entries:
        inside = ~_left_out(data, entry)
        for kind, positions in sorted(by_kind.items()):
            indices = np.array(positions)[inside[positions]]
            items, given = [data.asked[index] for index in indices.tolist()], data.answers.at(entry.name, indices)
            groups = data.items.group[indices]
            rows += [
                {
                    "system": entry.name,
                    "format": kind,
                    "metric": score.metric.name,
                    "label": score.metric.label,
                    "part": score.part,
                    "higher_is_better": score.metric.higher_is_better,
                }
                | numbers(score.estimate)
                for score in (sums.estimate(groups, data.plan) for sums in item_sums(items, given))
            ]
    return rows


def _left_out(data: AnalysisData, entry: Entry) -> NDArray[np.bool_]:
    """The items that are left out of a system's metrics: unsupported ones and, under the policy `exclude`, failed and
    unasked ones."""
    lacking = ~entry.scored.outcomes.answered
    return entry.unsupported | lacking if data.policy is FailedPolicy.EXCLUDE else entry.unsupported


ALL = "all"
_REACH = 1.5  # whiskers end at the last value within this many widths of the box (Tukey 1977)


def video_rows(data: AnalysisData) -> list[AnalysisRow]:
    """The spread of the groups' accuracies per system, on all questions and on those with each label: the standard
    deviation, and a box plot with whiskers up to 1.5 widths of the box."""
    rows = []
    parts = {ALL: np.ones(len(data.items), dtype=np.bool_)} | data.carriers(data.labels)
    for part, inside in parts.items():
        for entry in data.entries:
            _, count, total = _sums(data, entry.right, inside)
            means = total / count
            row: AnalysisRow = {"system": entry.name, "part": part, "groups": len(means)}
            row["sd"] = float(np.std(means, ddof=1)) if len(means) > 1 else None
            rows.append(row | box_of(means))
    return rows


def box_of(means: Floats) -> AnalysisRow:
    """The box plot of the groups' accuracies; None without groups."""
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
    """Each system on each group with a score, for a podium plot: its accuracy on its own questions, and its rank among the
    systems that are no baselines (equal ones share a rank; None for a baseline)."""
    everything = np.ones(len(data.items), dtype=np.bool_)
    values: dict[int, dict[str, tuple[int, float]]] = {}
    for entry in data.entries:
        groups, counts, totals = _sums(data, entry.right, everything)
        for group, count, total in zip(groups.tolist(), counts, totals, strict=True):
            values.setdefault(group, {})[entry.name] = (int(count), round(float(total / count), 12))
    contestants = {entry.name for entry in data.submissions}
    rows = []
    for group in sorted(values):
        here = values[group]
        ranked = sorted(value for name, (_, value) in here.items() if name in contestants)
        rows += [
            {
                "group": data.items.groups[group],
                "system": name,
                "n": count,
                "value": value,
                "rank": 1 + len(ranked) - bisect_right(ranked, value) if name in contestants else None,
            }
            for name, (count, value) in here.items()
        ]
    return rows


def _sums(data: AnalysisData, right: Floats, inside: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Floats, Floats]:
    """The groups with scores inside, their numbers of scores, and their numbers of right answers."""
    scored = np.flatnonzero(~np.isnan(right) & inside)
    group = data.items.group[scored]
    count = np.bincount(group, minlength=len(data.items.groups)).astype(np.float64)
    total = np.bincount(group, right[scored], minlength=len(data.items.groups)).astype(np.float64)
    there = np.flatnonzero(count)
    return there, count[there], total[there]


_OF_NUMBERS = {"count", "percentage", "quantity", "scale"}
_OF_SEVERAL = {"classes", "timestamps", "intervals", "boxes"}
BEST, VOTE_OF_ALL, BOUND = "best", "vote of all", "any right (upper bound)"
_FEW = 3


def vote(item: Item, values: Sequence[JsonValue]) -> JsonValue:
    """The vote of several answers, best system first; None without an answer.

    Count, percentage, quantity and scale: the lower median. Classes: those in more than half of the answers. Times,
    intervals and boxes: the most frequent number of them (of equals the smaller), and the median at each position over the
    answers with that number. All others: the most frequent answer, of equals that of the best system.

    >>> from proctor.core.formats import CountFormat
    >>> vote(Item(id="q", group="v", question="How many?", answer=CountFormat()), [4, 1, 2])
    2
    """
    given = [value for value in values if value is not None]
    if not given:
        return None
    kind = item.answer.kind
    if kind in _OF_NUMBERS:
        return sorted(given, key=lambda value: float(str(value)))[(len(given) - 1) // 2]
    if kind == "classes":
        return _majority_classes(given)
    if kind == "timestamps":
        return _median_times(given)
    if kind in {"intervals", "boxes"}:
        return median_positions(given)
    times = Counter(json.dumps(value) for value in given)
    best = max(times.values())
    return next(value for value in given if times[json.dumps(value)] == best)


def _majority_classes(given: Sequence[JsonValue]) -> list[JsonValue]:
    """The classes in more than half of the answers."""
    named = Counter(str(name) for value in given if isinstance(value, list) for name in value)
    return [name for name in sorted(named) if named[name] * 2 > len(given)]


def _median_times(given: Sequence[JsonValue]) -> list[JsonValue]:
    """The median at each position, over the answers with the most frequent number of times."""
    lists = [[float(str(moment)) for moment in value] for value in given if isinstance(value, list)]
    sizes = Counter(len(moments) for moments in lists)
    usual = min(sizes, key=lambda size: (-sizes[size], size))
    table = np.array([moments for moments in lists if len(moments) == usual])
    return [float(moment) for moment in np.median(table, axis=0)]


def ensemble_rows(data: AnalysisData) -> list[AnalysisRow]:
    """The accuracy of the best system, of votes of the best three and of all, and of "any of them is right": over all
    formats and for each, with the paired difference to the best system.

    Baselines do not vote. Free text and ratings have no vote; these, and questions without a score, are `left_out`. A
    system without a score for a question has no vote on it and does not count in the bound; the best system is wrong
    there. The best systems are chosen on the same questions, which biases the votes of the best upwards. The best system
    has no gain over itself. "Any of them" is never worse than the best on a question, so its gain is the share of
    questions that only others got right: no end of its interval is below 0, and there is nothing to test.
    """
    voters = data.submissions
    scored = np.logical_or.reduce([~np.isnan(entry.right) for entry in voters])
    here = [
        int(position)
        for position in np.flatnonzero(scored)
        if not isinstance(data.asked[position].answer, FreeTextFormat | RatingsFormat)
    ]
    own = {entry.name: np.nan_to_num(entry.right[np.array(here, dtype=np.int64)]) for entry in voters}
    everyone = sorted(own, key=lambda name: (-float(own[name].mean()) if here else 0.0, name))
    made = [(BEST, everyone[:1], own[everyone[0]])]
    for name, size in ((f"vote of the best {_FEW}", _FEW), (VOTE_OF_ALL, len(voters))):
        if size > 2 and (size < len(voters) or name == VOTE_OF_ALL):  # two have no majority
            chosen = everyone[:size]
            made.append((name, chosen, _voted(data, here, chosen)))
    made.append((BOUND, everyone, np.max(list(own.values()), axis=0)))
    formats = np.array([data.asked[position].answer.kind for position in here])
    rows = []
    for kind in ("all", *sorted(set(formats))):
        inside = np.flatnonzero((formats == kind) | (kind == "all"))
        groups = data.items.group[np.asarray(here, dtype=np.int64)][inside]
        best = made[0][2][inside]
        for name, systems, right in made:
            row: AnalysisRow = {"ensemble": name, "format": kind, "systems": " + ".join(systems)}
            one = mean_interval(right[inside], groups, data.plan.within(0, 1))
            gain = _NO_GAIN if name == BEST else _gain(right[inside], best, groups, data, never_worse=name == BOUND)
            rows.append(row | numbers(one) | gain)
            rows[-1]["left_out"] = len(data.items) - len(here) if kind == "all" else 0
    return rows


_NO_GAIN: AnalysisRow = {"gain": None, "gain_low": None, "gain_high": None, "p": None}


def _gain(
    right: Floats, best: Floats, groups: NDArray[np.int64], data: AnalysisData, *, never_worse: bool
) -> AnalysisRow:
    if never_worse:
        share = mean_interval(right - best, groups, data.plan.within(0, 1))
        return {"gain": share.value, "gain_low": share.ci_low, "gain_high": share.ci_high, "p": None}
    one = paired_difference(right, best, groups, data.plan.within(0, 1))
    return {"gain": one.value, "gain_low": one.ci_low, "gain_high": one.ci_high, "p": one.p}


def _voted(data: AnalysisData, here: Sequence[int], systems: Sequence[str]) -> Floats:
    """Whether the vote of the systems is right on each of these items."""
    indices = np.asarray(here, dtype=np.int64)
    voted = data.answers.most_frequent(systems, indices)
    kinds = np.array([data.asked[index].answer.kind for index in here])
    counted = np.flatnonzero(np.isin(kinds, list(_OF_NUMBERS | _OF_SEVERAL)))
    given = [data.answers.at(system, indices[counted]) for system in systems]
    for row, *values in zip(counted.tolist(), *given, strict=True):
        voted[row] = vote(data.asked[here[row]], values)
    right = [value is not None and is_right(data.asked[index], value) for index, value in zip(here, voted, strict=True)]
    return np.array(right, dtype=np.float64)
