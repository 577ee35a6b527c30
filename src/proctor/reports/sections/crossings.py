"""Cross-setting tables: which items were right in both, in one, in neither."""

from __future__ import annotations

from proctor.reports.blocks import Block, Cell, Column, Folded, Prose, Section, Table
from proctor.reports.sections.conditions import Paired
from proctor.reports.source import Source
from proctor.reports.words import difference_of, interval, p_value
from proctor.runs import Comparison, compare_runs

__all__ = ["crossings_section"]

_MOST_SYSTEMS = 4  # systems are compared pair by pair only where these are few
_MOST_TABLES = 60


def crossings_section(source: Source, pairs: Paired | None) -> Section | None:
    """The tables of the paired conditions; where there is one condition alone, of few systems."""
    found = pairs.comparisons if pairs is not None else _among_systems(source)
    found = [one for one in found if one.table is not None]
    if not found:
        return None
    blocks: list[Block | str] = []
    left = _MOST_TABLES
    for key in source.keys:
        of_key = [one for one in found if (one.metric, one.scorer) == (key.metric, key.scorer)]
        tables = tuple(
            block
            for one in of_key[: max(left, 0)]
            for block in _blocks(source, one, turned=pairs is not None)
        )
        left -= len(of_key)
        if not tables:
            continue
        if key in source.leading and len(of_key) <= 6:
            blocks += [source.label(key), *tables]
        else:
            blocks.append(Folded(f"{source.label(key)}: {len(of_key)} pairs", tables))
    if left < 0:
        blocks.append(Prose(f"{-left} more tables are left out here; the command compare gives them all."))
    return Section(
        key="crossings",
        title="Item by item: two runs side by side",
        lead="Rows say how an item went in the one run (of two conditions: the baseline), columns how it went in the "
        "other; on the diagonal both agree. Off it stands what one run could do and the other could not.",
        blocks=blocks,
    )


def _among_systems(source: Source) -> list[Comparison]:
    runs = [run for name in source.systems for run in source.runs if run.system == name]
    if not 2 <= len(runs) <= _MOST_SYSTEMS or len({run.condition for run in runs}) > 1:
        return []
    marked: dict[str, set[tuple[str, str]]] = {}
    for row in source.overall:
        if row.if_excluded is not None:
            marked.setdefault(row.system, set()).add((row.metric, row.scorer))
    pairs = [
        (first, second)
        for place, first in enumerate(runs)
        for second in runs[place + 1 :]
        if marked.get(first.system, set()) & marked.get(second.system, set())
    ]
    return compare_runs(source.store, source.benchmark, pairs, source.options)


def _blocks(source: Source, one: Comparison, *, turned: bool) -> list[Block]:
    """The table of one pair; `turned`: its second run, the baseline, in the rows, as papers print it."""
    metric = source.metric(one.metric)
    counts = one.table or []
    if turned:
        counts = [list(line) for line in zip(*counts, strict=True)]
    sums = [sum(column) for column in zip(*counts, strict=True)]
    first, second = _sides(one)[:: -1 if turned else 1]
    rows: list[tuple[Cell | str | int, ...]] = [
        (
            Cell(level),
            *(Cell(str(count), strong=row == column) for column, count in enumerate(line)),
            sum(line),
        )
        for row, (level, line) in enumerate(zip(one.levels, counts, strict=True))
    ]
    each = one.difference
    caption = (
        f"{one.second if turned else one.first} (rows), {one.first if turned else one.second} (columns): "
        f"{one.first} minus {one.second} "
        f"{difference_of(metric, one)} (95 % interval {interval(metric, each.ci_low, each.ci_high)}), "
        f"p {p_value(each.p)}, Holm {p_value(one.p_holm)}; {each.n} items in {each.groups} groups."
    )
    columns = (
        Column(f"{first} ↓  {second} →"),
        *(Column(level, numeric=True) for level in one.levels),
        Column("Total", numeric=True),
    )
    table = Table(caption, columns, tuple(rows), ("Total", *sums, sum(sums)))
    notes = []
    if one.recovered is not None and one.recovered[1]:
        right, wrong = one.recovered
        notes.append(
            f"Of {wrong} items that were wrong without the media, {right} are right with them ({right / wrong:.0%}, the "
            "recovery rate)."
        )
    if one.other_levels:
        notes.append(
            f"{one.other_levels} items with an outcome outside these levels (contradictory verdicts) are not in the table."
        )
    if one.only_first or one.only_second:
        notes.append(
            f"Only one side has a score for {one.only_first + one.only_second} items; they are left out."
        )
    return [table, *([Prose(" ".join(notes), quiet=True)] if notes else [])]


def _sides(one: Comparison) -> tuple[str, str]:
    if one.first.system == one.second.system:
        return one.first.condition, one.second.condition
    return one.first.system, one.second.system
