"""What several submissions would be worth together: a vote per format, and the bound no vote can pass."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import Item
from proctor.core.formats import FreeTextFormat, RatingsFormat
from proctor.metrics import is_right
from proctor.runs.analysis.gathered import Gathered, Row, numbers
from proctor.stats import Options, mean_interval, paired_difference
from proctor.stats.clusters import Floats

__all__ = ["BEST", "BOUND", "VOTE_OF_ALL", "ensemble_rows", "vote"]

BEST, VOTE_OF_ALL, BOUND = "best", "vote of all", "any right (upper bound)"
_FEW = 3
_UNIT = Options(bounds=(0.0, 1.0))


def vote(item: Item, values: Sequence[JsonValue]) -> JsonValue:
    """What the answers say together, best system first; None without an answer.

    Count and percentage: the lower median. Classes: those that more than half name. Times: the number of
    times that most have (of equals the smaller), and of these answers the median at each place. All others:
    the most frequent answer, of equals the one of the best system.

    >>> from proctor.core.formats import CountFormat
    >>> vote(Item(id="q", group="v", question="How many?", answer=CountFormat()), [4, 1, 2])
    2
    """
    said = [value for value in values if value is not None]
    if not said:
        return None
    kind = item.answer.kind
    if kind in {"count", "percentage"}:
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
    times = Counter(json.dumps(value) for value in said)
    best = max(times.values())
    return next(value for value in said if times[json.dumps(value)] == best)


def ensemble_rows(data: Gathered) -> list[Row]:
    """Accuracy of the best system, of votes of the best three and of all, and of "any of them is right": over all
    formats and for each, with the paired difference to the best system.

    Baselines do not vote. Free text and ratings can't be voted on; these, and questions without a mark, are `left_out`.
    Who has no mark for a question has no vote on it and no share in the bound. Who is best is chosen on the same
    questions, which flatters the votes of the best; where the best one has no mark it is wrong here.
    """
    voters = [entry for entry in data.entries if not entry.baseline]
    marked = np.logical_or.reduce([~np.isnan(entry.right) for entry in voters])
    here = [
        int(place)
        for place in np.flatnonzero(marked)
        if not isinstance(data.whole[data.items.ids[place]].answer, FreeTextFormat | RatingsFormat)
    ]
    own = {entry.name: np.nan_to_num(entry.right[np.array(here, dtype=np.int64)]) for entry in voters}
    everyone = sorted(own, key=lambda name: (-float(own[name].mean()) if here else 0.0, name))
    made = [(BEST, everyone[:1], own[everyone[0]])]
    for name, size in ((f"vote of the best {_FEW}", _FEW), (VOTE_OF_ALL, len(voters))):
        if size > 1 and (size < len(voters) or name == VOTE_OF_ALL):
            chosen = everyone[:size]
            made.append((name, chosen, np.array([_voted(data, place, chosen) for place in here])))
    made.append((BOUND, everyone, np.max(list(own.values()), axis=0)))
    formats = np.array([data.whole[data.items.ids[place]].answer.kind for place in here])
    rows = []
    for kind in ("all", *sorted(set(formats))):
        inside = np.flatnonzero((formats == kind) | (kind == "all"))
        groups = data.items.group[np.asarray(here, dtype=np.int64)][inside]
        best = made[0][2][inside]
        for name, systems, right in made:
            row: Row = {"ensemble": name, "format": kind, "systems": " + ".join(systems)}
            one = mean_interval(right[inside], groups, **(data.options | _UNIT))
            rows.append(row | numbers(one) | _gain(right[inside], best, groups, data))
            rows[-1]["left_out"] = len(data.items.ids) - len(here) if kind == "all" else 0
    return rows


def _gain(right: Floats, best: Floats, groups: NDArray[np.int64], data: Gathered) -> Row:
    one = paired_difference(right, best, groups, **(data.options | _UNIT))
    return {"gain": one.value, "gain_low": one.ci_low, "gain_high": one.ci_high, "p": one.p}


def _voted(data: Gathered, place: int, systems: Sequence[str]) -> float:
    item = data.whole[data.items.ids[place]]
    given = [data.answers[system].get(item.id) for system in systems]
    value = vote(item, [None if one is None or one.status != "answered" else one.parsed for one in given])
    return float(value is not None and is_right(item, value))
