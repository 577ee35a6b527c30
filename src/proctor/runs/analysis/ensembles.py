"""What several submissions would be worth together: a vote per format, and the bound no vote can pass."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
from pydantic import JsonValue

from proctor.core import Item
from proctor.core.formats import FreeTextFormat, RatingsFormat
from proctor.metrics import is_right
from proctor.runs.analysis.gathered import Gathered, Row, numbers
from proctor.stats import mean_interval

__all__ = ["ensemble_rows", "vote"]

_FEW = 3


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
    """Accuracy of the best system, of votes of the best three and of all, and of "any of them is right".

    Baselines do not vote. Free text can't be voted on; only questions that all systems have a mark for and
    that code can mark are taken.
    """
    here = [
        int(place)
        for place in data.common()
        if not isinstance(data.whole[data.items.ids[place]].answer, FreeTextFormat | RatingsFormat)
    ]
    voters = [entry for entry in data.entries if not entry.baseline]
    voters.sort(key=lambda entry: (-float(np.mean(entry.right[here])) if here else 0.0, entry.run.system))
    rows = []
    sets = [("best", 1), (f"vote of the best {_FEW}", _FEW), ("vote of all", len(voters))]
    for name, size in sets:
        if size > len(voters) or (size == 1 and name != "best"):
            continue
        chosen = [entry.run.system for entry in voters[:size]]
        rows.append(_row(data, here, name, chosen, [_voted(data, place, chosen) for place in here]))
    everyone = [entry.run.system for entry in voters]
    any_right = [float(max(entry.right[place] for entry in voters)) for place in here]
    rows.append(_row(data, here, "any right (upper bound)", everyone, any_right))
    return rows


def _voted(data: Gathered, place: int, systems: Sequence[str]) -> float:
    item = data.whole[data.items.ids[place]]
    given = [data.answers[system].get(item.id) for system in systems]
    value = vote(item, [None if one is None or one.status != "answered" else one.parsed for one in given])
    return float(value is not None and is_right(item, value))


def _row(
    data: Gathered, here: Sequence[int], name: str, systems: Sequence[str], right: Sequence[float]
) -> Row:
    groups = data.items.group[np.asarray(here, dtype=np.int64)]
    one = mean_interval(right, groups, draws=data.draws, seed=data.seed, bounds=(0, 1))
    return {"ensemble": name, "systems": " + ".join(systems)} | numbers(one)
