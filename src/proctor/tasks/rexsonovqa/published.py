"""The paper's own figures: cross tables of two conditions, and the parts and gains that its text names."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from proctor.core import ACCURACY, Metric, PublishedCrossing, PublishedRow, PublishedTable
from proctor.judges.verdicts import RUBRIC_BY_ERROR_TYPE, RUBRIC_LABELS

_FIRST = "Gemini 3 Pro"  # whose blind run it is, and whose parts the text names
_METRICS = {ACCURACY.name: ACCURACY, RUBRIC_BY_ERROR_TYPE.name: RUBRIC_BY_ERROR_TYPE}
_LEVELS = {ACCURACY.name: ("correct", "incorrect"), RUBRIC_BY_ERROR_TYPE.name: RUBRIC_LABELS}
_WORTH = {ACCURACY.name: (1, 0), RUBRIC_BY_ERROR_TYPE.name: (2, 1, 1, 0)}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Table(_Frozen):
    table: str
    system: str
    metric: str
    counts: tuple[tuple[int, ...], ...]


class _Part(_Frozen):
    metric: str
    facet: str
    value: str
    number: float
    condition: str = "video − text-only"


class _Published(_Frozen):
    source: str
    note: str
    tables: tuple[_Table, ...]
    parts: tuple[_Part, ...]
    gains: tuple[_Part, ...]


@cache
def published_table() -> PublishedTable:
    """The overall scores that follow from tables A1 to A8, the parts that the text names, and the tables.

    >>> [(row.system, round(row.values["accuracy"], 3)) for row in published_table().rows[:2]]
    [('Gemini 3 Pro', 0.663), ('LLaVA-Video-72B', 0.297)]
    """
    text = files("proctor.tasks.rexsonovqa").joinpath("published.json").read_text(encoding="utf-8")
    known = _Published.model_validate_json(text)
    seeing = [
        PublishedRow(
            system,
            {
                one.metric: _mean(one.metric, [sum(column) for column in zip(*one.counts, strict=True)])
                for one in known.tables
                if one.system == system
            },
            "video",
        )
        for system in dict.fromkeys(one.system for one in known.tables)
    ]
    blind = PublishedRow(
        _FIRST,
        {
            one.metric: _mean(one.metric, [sum(line) for line in one.counts])
            for one in known.tables
            if one.system == _FIRST
        },
        "text-only",
    )
    parts = [
        PublishedRow(_FIRST, {one.metric: one.number}, one.condition, {one.facet: one.value})
        for one in (*known.parts, *known.gains)
    ]
    crossings = tuple(
        PublishedCrossing(one.table, one.system, one.metric, ("text-only", "video"), _LEVELS[one.metric], one.counts)
        for one in known.tables
    )
    metrics: tuple[Metric, ...] = tuple(_METRICS.values())
    return PublishedTable(known.source, known.note, metrics, (*seeing, blind, *parts), crossings)


def _mean(metric: str, counts: list[int]) -> float:
    worth = _WORTH[metric]
    return sum(one * count for one, count in zip(worth, counts, strict=True)) / sum(counts)
