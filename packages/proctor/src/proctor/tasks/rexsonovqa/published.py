"""The figures that ReXSonoVQA's paper states."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from proctor import core
from proctor.judges import RUBRIC_BY_ERROR_TYPE, RUBRIC_LABELS

FIRST = "Gemini 3 Pro"  # the system of the blind run and of the subsets in the text
_METRICS = {core.ACCURACY.name: core.ACCURACY, RUBRIC_BY_ERROR_TYPE.name: RUBRIC_BY_ERROR_TYPE}
LEVELS = {core.ACCURACY.name: ("correct", "incorrect"), RUBRIC_BY_ERROR_TYPE.name: RUBRIC_LABELS}
_WORTH = {core.ACCURACY.name: (1, 0), RUBRIC_BY_ERROR_TYPE.name: (2, 1, 1, 0)}


@cache
def published_table() -> core.PublishedTable:
    """The overall scores that follow from tables A1 to A8, the subsets in the text, and the tables.

    >>> [(row.system, round(row.values["accuracy"], 3)) for row in published_table().rows[:2]]
    [('Gemini 3 Pro', 0.663), ('LLaVA-Video-72B', 0.297)]
    """
    known = known_figures()
    tables = known["tables"]

    def means(system: str, counts: Callable[[Any], Iterable[Any]]) -> dict[str, float]:
        """Mean scores over the columns (video) or the rows (blind) of the tables."""
        return {
            table["metric"]: _mean(table["metric"], [sum(line) for line in counts(table["counts"])])
            for table in tables
            if table["system"] == system
        }

    rows = [
        core.PublishedRow(system, means(system, lambda counts: zip(*counts, strict=True)), "video")
        for system in systems_in(known)
    ]
    rows.append(core.PublishedRow(FIRST, means(FIRST, iter), "text-only"))
    for one in (*known["parts"], *known["gains"]):
        condition, part = one.get("condition", "video − text-only"), {one["facet"]: one["value"]}
        rows.append(core.PublishedRow(FIRST, {one["metric"]: one["number"]}, condition, part))
    crossings = tuple(
        core.PublishedCrossing(
            table["table"],
            table["system"],
            table["metric"],
            ("text-only", "video"),
            LEVELS[table["metric"]],
            tuple(map(tuple, table["counts"])),
        )
        for table in tables
    )
    return core.PublishedTable(known["source"], known["note"], tuple(_METRICS.values()), tuple(rows), crossings)


def known_figures() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(files(__package__).joinpath("published.json").read_text(encoding="utf-8"))
    return known


def systems_in(known: dict[str, Any]) -> list[str]:
    """The systems in the tables' order."""
    return list(dict.fromkeys(one["system"] for one in known["tables"]))


def _mean(metric: str, counts: list[int]) -> float:
    worth = _WORTH[metric]
    return sum(one * count for one, count in zip(worth, counts, strict=True)) / sum(counts)
