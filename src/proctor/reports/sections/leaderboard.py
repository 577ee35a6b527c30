"""Who scores what under each condition, and what others published."""

from __future__ import annotations

from proctor.core import PublishedCrossing, PublishedRow, PublishedTable, plain_name, value
from proctor.reports.blocks import Block, Cell, Column, Folded, Prose, Section, Table
from proctor.reports.source import Key, Source
from proctor.reports.tables import leaderboard_table, levels_table
from proctor.reports.wording import DECIDED_LINE, condition_line
from proctor.runs import BOTH, Leaderboard, Result

_RANKS = (
    "The rank is 1 plus the number of systems that are significantly better, and never better than that of a system with a "
    "higher score. Beside it stands its confidence interval: all of them together hold the true ranks with {level} confidence "
    "(paired tests, Holm). “Places in samples” is the spread of a system's place over bootstrap samples of the groups, not a "
    "confidence interval."
)


def headline_section(source: Source) -> Section:
    """A leaderboard for each condition and leading metric; the other metrics folded below."""
    blocks: list[Block | str] = []
    folded: list[Block] = []
    for key in source.keys:
        tables: list[Block] = []
        for condition in source.conditions:
            tables.extend(_board(source, key, condition))
        if key in source.leading and key.scorer:
            blocks.append(source.label(key))
            blocks.extend(tables)
        else:
            folded.append(Folded(source.label(key), tuple(tables)))
    level = f"{100 * source.options.level:g} %"
    return Section(
        key="leaderboard",
        title="Leaderboard",
        lead=f"Each score with its {level} confidence interval (CI). Rank 1 includes every system that no other "
        "significantly outperforms.",
        blocks=(*blocks, *folded, Folded("How to read ranks", (Prose(_RANKS.format(level=level)),))),
        opened=True,
    )


def _board(source: Source, key: Key, condition: str) -> list[Block]:
    results = source.results_of(key, condition)
    if not results:
        return []
    board = source.board(key, condition)
    metric = source.metric(key.metric)
    table = leaderboard_table(
        board,
        results,
        level=source.options.level,
        axis=source.axis(key),
        chance=source.chance(key),
        caption=f"{metric.label}, {condition_line(condition)}.",
    )
    levels = levels_table(
        f"{source.label(key)}, {condition}: answers at each level.",
        metric,
        [results[name] for name in source.systems if name in results],
    )
    notes = _notes(source, board, results)
    return [table, *([levels] if levels else []), *([Prose(" ".join(notes), quiet=True)] if notes else [])]


def _notes(source: Source, board: Leaderboard, results: dict[str, Result]) -> list[str]:
    notes = []
    key = Key(board.metric.name, board.scorer)
    if board.left_out:
        notes.append(f"{board.left_out} items that no system has a score for are left out.")
    if any(row.policy == BOTH for row in board.rows):
        notes.append(
            "A range is the score of an incomplete run: its failed, unasked and unresolved items counted as wrong … left "
            "out. It has a rank only if these items can't change any."
        )
    unsupported = [row for row in board.rows if row.unsupported]
    if unsupported:
        skipped = ", ".join(f"{row.system} skipped {row.unsupported}" for row in unsupported)
        notes.append(
            f"Items whose answer format a baseline does not support: {skipped}. It is shown on the others, not ranked."
        )
    contestants = [row for row in board.rows if not (row.disqualified or row.oracle_baseline or row.unsupported)]
    if any(row.rank is None and row.policy != BOTH for row in contestants):
        notes.append("A system without a score for every item has no rank.")
    out = [str(source.card.disqualified[row.system]) for row in board.rows if row.disqualified]
    if out:
        notes.append(f"Disqualified, and not ranked: {'; '.join(out)}.")
    if any(row.oracle_baseline for row in board.rows):
        notes.append("An oracle baseline uses the reference answers: it is shown, and enters neither ranks nor tests.")
    chance = source.chance(key)
    if chance is not None:
        notes.append(f"The broken line in the bars is the chance level: {value(board.metric, chance)}.")
    return notes + _judge_notes(results)


def _judge_notes(results: dict[str, Result]) -> list[str]:
    """What a judge left open, and who decided it."""
    notes = []
    if any(row.unresolved for row in results.values()):
        notes.append(
            "Unresolved answers have no verdict: the judge declined or gave none of the form asked for, or a panel came "
            "to no majority. They are asked again by another pass, and lacking until then."
        )
    if any(row.decided for row in results.values()):
        notes.append(DECIDED_LINE)
    if any(row.unmarked for row in results.values()):
        notes.append("Unmarked answers wait for their judge: they are in no average.")
    return notes


def published_section(source: Source) -> Section | None:
    """The published rows in their own order, then those of parts of the items, then tables of two conditions; None
    where the benchmark has none."""
    known = source.card.published
    if known is None:
        return None
    whole = [row for row in known.rows if not row.facets]
    parts = [row for row in known.rows if row.facets]
    blocks: list[Block | str] = [_rows(known, whole, f"{known.source}.")]
    if parts:
        blocks.append(_rows(known, parts, "By kind of question, as far as the text gives numbers."))
    if known.crossings:
        tables = tuple(_crossing(source, one) for one in known.crossings)
        blocks.append(Folded(f"Two conditions item by item: {len(tables)} published tables", tables))
    if known.note:
        blocks.append(Prose(known.note, quiet=True))
    return Section(
        key="published",
        title="Published results",
        lead="For orientation: these systems were not run here, so they have no interval and no rank.",
        blocks=blocks,
    )


def _rows(known: PublishedTable, shown: list[PublishedRow], caption: str) -> Table:
    conditions = any(row.condition for row in shown)
    facets = list(dict.fromkeys(name for row in shown for name in row.facets))
    columns = (
        Column("System"),
        *([Column("Condition")] if conditions else []),
        *(Column(plain_name(name).capitalize()) for name in facets),
        *(Column(metric.label, numeric=True) for metric in known.metrics),
    )
    rows: list[tuple[Cell | str | int, ...]] = [
        (
            Cell(row.system, badge="published"),
            *([row.condition] if conditions else []),
            *(row.facets.get(name, "") for name in facets),
            *(value(metric, row.values.get(metric.name)) for metric in known.metrics),
        )
        for row in shown
    ]
    return Table(caption, columns, tuple(rows))


def _crossing(source: Source, one: PublishedCrossing) -> Table:
    first, second = one.conditions
    sums = [sum(column) for column in zip(*one.counts, strict=True)]
    rows: list[tuple[Cell | str | int, ...]] = [
        (Cell(level), *map(str, line), sum(line)) for level, line in zip(one.levels, one.counts, strict=True)
    ]
    columns = (
        Column(f"{first} ↓  {second} →"),
        *(Column(level, numeric=True) for level in one.levels),
        Column("Total", numeric=True),
    )
    caption = f"{one.name}: {one.system}, {source.metric(one.metric).label}, as published."
    return Table(caption, columns, tuple(rows), ("Total", *sums, sum(sums)))
