"""Two runs side by side: the difference with its interval, the cells of right and wrong, and the items of a cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from proctor.core import DASH, count_of, difference, interval, p_value, plain_name
from proctor.results import CELLS, AnswerIndex, Options, RunColumn, load_excerpts, reading_once
from proctor.runs import BASELINES
from proctor_web.view.answers import PAGE_ROWS, row_key, row_of
from proctor_web.view.query import answer_path, column_name, column_of, path_of
from proctor_web.view.site import Asked, Page, View
from proctor_web.view.words import excerpt, groups_words, key_of, kind_of, mark_of, said, state_words, without_beginning

if TYPE_CHECKING:
    from proctor.results import Comparison

_PATIENCE_S = 0.4
_FACETS = 12


@dataclass(frozen=True)
class Cell:
    """One cell of two runs crossed."""

    name: str
    label: str
    count: int
    href: str
    chosen: bool


@dataclass(frozen=True)
class Names:
    """What two runs are called where they stand side by side: by what tells them apart. `title` has all of both.

    >>> Names.of(("x", "video", 0), ("y", "video", 0))
    Names(a='x', b='y', title='x and y under video')
    >>> Names.of(("x", "video", 0), ("x", "black", 0))
    Names(a='video', b='black', title='x under video and under black')
    >>> Names.of(("x", "video", 0), ("y", "black", 0)).a
    'x under video'
    >>> Names.of(("x", "video", 0), ("x", "video", 1)).b
    'repetition 2'
    """

    a: str
    b: str
    title: str

    @classmethod
    def of(cls, first: tuple[str, str, int], second: tuple[str, str, int]) -> Names:
        """The names of two runs, each by system, condition and repetition (from 0)."""
        (system, condition, repetition), (other, under, again) = first, second
        if repetition != again:
            one, two = f"repetition {repetition + 1}", f"repetition {again + 1}"
            if (system, condition) == (other, under):
                return cls(one, two, f"{one} and {two} of {system} under {condition}")
            a, b = f"{system} under {condition}, {one}", f"{other} under {under}, {two}"
            return cls(a, b, f"{a}, and {b}")
        if system != other and condition == under:
            return cls(system, other, f"{system} and {other} under {condition}")
        if system == other and condition != under:
            return cls(condition, under, f"{system} under {condition} and under {under}")
        a, b = f"{system} under {condition}", f"{other} under {under}"
        return cls(a, b, f"{a} and {b}")

    def cell(self, name: str) -> str:
        """A cell of `CELLS` in words.

        >>> [Names("x", "y", "").cell(name) for name in ("only-a", "only-b", "lacking")]
        ['only x right', 'only y right', 'missing in x or y']
        """
        return {
            "only-a": f"only {self.a} right",
            "only-b": f"only {self.b} right",
            "both": "both right",
            "neither": "neither right",
            "lacking": f"missing in {self.a} or {self.b}",
        }[name]


@dataclass(frozen=True)
class Part:
    """The difference on a part of the items."""

    facet: str
    value: str
    shown: str
    ends: str
    items: int
    drawn: float


@dataclass(frozen=True)
class Pair:
    """What is computed of two runs: the comparison by the metric that decides, and the difference by facet."""

    comparison: Comparison | None
    parts: tuple[Part, ...]

    def sentence(self, names: Names) -> str:
        """The difference in words."""
        one = self.comparison
        if one is None:
            return "The two have no metric in common by the same scorer."
        if one.drawn is None:
            return "No item has a score in both."
        found, metric = one.difference, one.declared
        ends = interval(metric, found.ci_low, found.ci_high)
        level = f"{100 * one.level:g} % CI"
        shown = difference(metric, one.drawn)
        if one.if_wrong != one.if_excluded:
            excluded = difference(metric, one.if_excluded.value)
            shown = f"{shown} with missing answers as wrong and {excluded} without them"
        p = "" if found.p is None else f"; p {p_value(found.p)}"
        adjusted = "" if one.p_holm is None else f", adjusted {p_value(one.p_holm)}"
        family = f" for {one.family}" if one.p_holm is not None and one.family else ""
        size = groups_words(found.n, found.groups)
        few = "" if one.decides else " So few groups can't decide."
        said_ends = "no interval" if ends == DASH else f"{level} {ends}"
        better = names.a if metric.higher_is_better else names.b
        return (
            f"{metric.label}: {names.a} minus {names.b} is {shown} ({said_ends}{p}{adjusted}{family}) on {size}; above 0, "
            f"{better} is better.{few}"
        )


@dataclass(frozen=True)
class Side:
    """One of two answers: whose it is, the class of its state, its sign and words, what was said, and how the reply begins."""

    name: str
    kind: str
    mark: str
    words: str
    said: str
    text: str


@dataclass(frozen=True)
class Both:
    """An item of a cell with both answers."""

    key: str
    question: str
    item: str
    href: str
    key_text: str
    a: Side
    b: Side


def compare(asked: Asked) -> Page:
    """Two runs side by side."""
    index, query = asked.state.index, asked.query
    names = [column_name(column) for column in index.columns]
    chosen = _chosen(index, query.a, query.b)
    if chosen is None:
        return Page("compare", {"names": names, "a": "", "b": "", "cells": ()}, {"runs": names}, [], "compare")
    a, b = chosen
    called = Names.of(*(_identity(index.columns[number]) for number in chosen))
    crossed = index.crossed(a, b)
    query = replace(query, a=names[a], b=names[b])
    cell = query.cell or "only-a"
    mask = crossed.named(cell)
    for name, value_ in query.wanted.facets:
        mask = mask & index.facet_mask(name, value_)
    path = path_of("b", asked.state.name, "compare")
    cells = [
        Cell(name, called.cell(name), int(crossed.named(name).sum()), path + query.but(cell=name).text(), name == cell)
        for name in CELLS
    ]
    positions = mask.nonzero()[0]
    after = row_of(index, query.after) if query.after else None
    start = 0 if after is None else int((positions <= index.located(after)[0]).sum())
    here = positions[start : start + PAGE_ROWS].tolist()
    more = row_key(index, index.row(here[-1], a)) if here and start + PAGE_ROWS < len(positions) else ""
    stamp = index.fingerprint, index.stamps[index.columns[a].run.id], index.stamps[index.columns[b].run.id]
    key = "pair", asked.state.name, names[a], names[b]
    figures = asked.view.desk.get(key, stamp, lambda: compute_pair(asked.view, index, a, b), _PATIENCE_S)
    rows = _both(asked, called, here, a, b)
    context = {
        "names": names,
        "a": names[a],
        "b": names[b],
        "cells": cells,
        "cell": cell,
        "called": called,
        "rows": rows,
        "count": f"{count_of(len(positions), 'item')}, {called.cell(cell)}",
        "more": path + query.but(after=more).text() if more else "",
        "swap": path
        + query.but(a=names[b], b=names[a], cell={"only-a": "only-b", "only-b": "only-a"}.get(cell, cell)).text(),
        "figures": figures,
        "repeated": index.columns[a].repetition or index.columns[b].repetition,
    }
    comparison = figures.value.comparison if figures is not None and figures.value is not None else None
    data = {
        "a": names[a],
        "b": names[b],
        "cells": {one.name: one.count for one in cells},
        "comparison": None if comparison is None else comparison.to_json(),
        "rows": [{"item": one.item, "a": one.a.said, "b": one.b.said, "reference": one.key_text} for one in rows],
    }
    return Page("compare", context, data, data["rows"], "compare")  # type: ignore[arg-type]


def _chosen(index: AnswerIndex, a: str, b: str) -> tuple[int, int] | None:
    """The columns to compare: the named ones, else the first two under one condition; None without two."""
    if len(index.columns) < 2:
        return None
    usual = [number for number, one in enumerate(index.columns) if one.run.condition == index.conditions[0]]
    usual.sort(key=lambda number: index.columns[number].run.system in BASELINES)
    first = column_of(index, a) if a else usual[0]
    if b:
        return first, column_of(index, b)
    own = index.columns[first]
    others = [number for number in range(len(index.columns)) if number != first]
    others.sort(key=lambda number: _farness(index.columns[number], own))
    return first, others[0]


def _farness(one: RunColumn, own: RunColumn) -> tuple[bool, bool, bool]:
    """How unlike another run is as a partner of a comparison: another condition, the same system, a baseline."""
    run = one.run
    return run.condition != own.run.condition, run.system == own.run.system, run.system in BASELINES


@reading_once()
def compute_pair(view: View, index: AnswerIndex, a: int, b: int) -> Pair:
    """The comparison of two runs by the metric that decides most items, and by facets. Only first repetitions have
    statistics."""
    from proctor.results import compare_runs

    first, second = index.columns[a], index.columns[b]
    if first.run == second.run or first.repetition or second.repetition:
        return Pair(None, ())
    pair = [(first.run, second.run)]
    headline, benchmark = index.card.headline, index.card.name
    found = compare_runs(view.store, benchmark, pair, Options())
    found = [one for one in found if one.metric == headline] or found
    comparison = next(iter(found), None)
    parts: list[Part] = []
    for facet in list(index.facets)[:_FACETS] if comparison is not None else ():
        for one in compare_runs(view.store, benchmark, pair, Options(by=(facet,))):
            if comparison is None or (one.metric, one.scorer) != (comparison.metric, comparison.scorer):
                continue
            if one.drawn is not None:
                ends = interval(one.declared, one.difference.ci_low, one.difference.ci_high)
                shown = difference(one.declared, one.drawn)
                parts.append(Part(plain_name(facet), one.facets[facet], shown, ends, one.difference.n, one.drawn))
    several = Counter(part.facet for part in parts)
    parts = [part for part in parts if several[part.facet] > 1]
    parts.sort(key=lambda part: -abs(part.drawn))
    return Pair(comparison, tuple(parts))


def _identity(column: RunColumn) -> tuple[str, str, int]:
    return column.run.system, column.run.condition, column.repetition


def _both(asked: Asked, called: Names, positions: list[int], a: int, b: int) -> list[Both]:
    index = asked.state.index
    rows = [index.row(position, column) for position in positions for column in (a, b)]
    excerpts = {one.row: one for one in load_excerpts(asked.view.store, index, rows)}
    questions = without_beginning([excerpts[index.row(position, a)].item.question for position in positions])
    found = []
    for position, question in zip(positions, questions, strict=True):
        one, other = excerpts[index.row(position, a)], excerpts[index.row(position, b)]
        href = (
            answer_path(one.item.id, one.column)
            + asked.query.but(beside=column_name(other.column), cell="", a="", b="").text()
        )
        sides = [
            Side(
                name,
                kind_of(each.state),
                mark_of(each.state),
                state_words(each.state),
                excerpt(said(each.parsed), 60),
                excerpt(each.text or each.reason, 160),
            )
            for name, each in ((called.a, one), (called.b, other))
        ]
        found.append(
            Both(row_key(index, one.row), excerpt(question), one.item.id, href, excerpt(key_of(one.item), 60), *sides)
        )
    return found
