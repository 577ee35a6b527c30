"""How answers fail, by format and cause; and how far off they are, by the marks of their format."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from pydantic import JsonValue

from proctor.core import FailedPolicy, Item, Status, VideoClip
from proctor.metrics import MISSING, Mark, count_marks, nominal_marks, percentage_marks, set_marks, time_marks
from proctor.runs.analysis.gathered import Gathered, Row, numbers
from proctor.runs.ranking import Entry

__all__ = ["UNSUPPORTED", "failure_rows", "mark_rows"]

UNSUPPORTED = "not supported"
"""The cause of an item whose format the system does not answer."""


def failure_rows(data: Gathered) -> list[Row]:
    """Per system and format: how many questions ended how, whatever the policy. The cause is the label of the mark, by
    code or by the judge behind the ranking (right, wrong, unreadable, timed out, refused, error, missing; for a panel
    without a majority unresolved); right or wrong by the mark where it has none, "not marked" before there is a mark,
    "failed" where asking failed, and "not supported" where the system does not answer the format."""
    column = data.items.facet("answer_format" if "answer_format" in data.items.facet_names() else "format")
    rows = []
    for entry in data.entries:
        found: Counter[tuple[str, str]] = Counter()
        for place, values in enumerate(column):
            found[values[0] if values else "", _cause(data, entry, place)] += 1
        sizes: Counter[str] = Counter()
        for (form, _), count in found.items():
            sizes[form] += count
        rows += [
            {
                "system": entry.name,
                "format": form,
                "cause": cause,
                "count": count,
                "share": count / sizes[form],
            }
            for (form, cause), count in sorted(found.items())
        ]
    return rows


def _cause(data: Gathered, entry: Entry, place: int) -> str:
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


def mark_rows(data: Gathered) -> list[Row]:
    """Per system and format: the marks beyond accuracy (`proctor.metrics.marks`). Under the policy `wrong` what failed
    or was not asked has the worst mark, as any answer that can't be read has."""
    rows = []
    for entry in data.entries:
        answers = data.answers[entry.name]
        by_kind: dict[str, list[tuple[Item, JsonValue]]] = {}
        out = _left_out(data, entry)
        for place, name in enumerate(data.items.ids):
            item, answer = data.whole[name], answers.get(name)
            if item.reference is not None and place not in out:
                readable = answer is not None and answer.status is Status.ANSWERED
                value = answer.parsed if answer is not None and readable else None
                by_kind.setdefault(item.answer.kind, []).append((item, value))
        for kind, pairs in sorted(by_kind.items()):
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
                for mark in _marks(kind, pairs, data)
            ]
    return rows


def _left_out(data: Gathered, entry: Entry) -> set[int]:
    """The places of items that are no part of the marks: of a format that the system does not answer and, where what a
    run lacks is left out, failed ones and those not asked."""
    out = entry.unsupported
    if data.policy is FailedPolicy.EXCLUDE:
        answers = data.answers[entry.name]
        lacking = [name not in answers or answers[name].status is Status.FAILED for name in data.items.ids]
        out = out | np.array(lacking, dtype=np.bool_)
    return set(np.flatnonzero(out).tolist())


def _marks(kind: str, pairs: list[tuple[Item, JsonValue]], data: Gathered) -> list[Mark]:
    # What a format parses to is plain JSON; that its shape is the format's has been checked when it was read.
    truth: list[Any] = [item.reference.answer if item.reference else None for item, _ in pairs]
    said: list[Any] = [value for _, value in pairs]
    groups = [item.group for item, _ in pairs]
    options = data.options
    if kind == "count":
        return count_marks(truth, said, groups, **options)
    if kind == "timestamps":
        return time_marks(truth, said, groups, spans=[_span(item) for item, _ in pairs], **options)
    if kind == "percentage":
        return percentage_marks(truth, said, groups, **options)
    if kind == "classes":
        return set_marks(truth, said, groups, **options)
    if kind in {"binary", "choice"}:
        return nominal_marks(truth, said, groups, **options)
    return []


def _span(item: Item) -> tuple[float, float] | None:
    """From when to when a question's one clip shows its video, where that is known."""
    clips = [one for one in item.media if isinstance(one, VideoClip)]
    if len(clips) != 1 or clips[0].end is None:
        return None
    return clips[0].start, clips[0].end
