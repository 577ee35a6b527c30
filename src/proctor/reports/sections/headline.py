"""The headline: who scores what, under each condition, and how surely."""

from __future__ import annotations

from proctor.media import CONDITIONS
from proctor.reports.blocks import Block, Cell, Column, Folded, Prose, Section, Span, Table
from proctor.reports.source import Key, Source
from proctor.reports.words import interval, plain_name, score, value
from proctor.runs import BOTH, Leaderboard, LeaderboardRow, Result, leaderboard

__all__ = ["condition_line", "headline_section", "span_of"]

_BESIDE = (
    "answered",
    "failed",
    "timed_out",
    "refused",
    "error",
    "unreadable",
    "not_submitted",
    "unresolved",
    "unmarked",
    "missing",
)
_QUIET = {"missing": "not asked"}


def headline_section(source: Source) -> Section:
    """A leaderboard for each condition and leading metric; the other metrics folded below."""
    blocks: list[Block | str] = []
    folded: list[Block] = []
    for key in source.keys:
        tables: list[Block] = []
        for condition in source.conditions:
            tables.extend(_board(source, key, condition))
        if key in source.leading:
            blocks.append(source.label(key))
            blocks.extend(tables)
        else:
            folded.append(Folded(source.label(key), tuple(tables)))
    level = f"{100 * source.options.level:g} %"
    return Section(
        key="leaderboard",
        title="Leaderboard",
        lead=f"Each score with its {level} interval. The rank is 1 plus the number of systems that are significantly "
        "better, and never better than that of a system with a higher score. Beside it stands its confidence interval: "
        f"all of them together hold the true ranks with {level} confidence (paired tests, Holm). “Places in samples” is "
        "the spread of a system's place over bootstrap samples of the groups, not a confidence interval.",
        blocks=(*blocks, *folded),
    )


def span_of(
    axis: tuple[float, float], low: float | None, number: float | None, high: float | None, mark: float | None
) -> Span | None:
    """The drawn form of a value with its interval on an axis; None where there is no value."""
    if number is None or axis[1] <= axis[0]:
        return None

    def place(at: float) -> float:
        return min(1.0, max(0.0, (at - axis[0]) / (axis[1] - axis[0])))

    return Span(
        low=None if low is None else place(low),
        value=place(number),
        high=None if high is None else place(high),
        mark=None if mark is None else place(mark),
    )


def condition_line(condition: str) -> str:
    """A condition with what it shows, where it is a known one.

    >>> condition_line("reversed")
    'reversed: the pictures from last to first, while times and labels stay'
    >>> condition_line("of-a-package-that-is-not-installed")
    'of-a-package-that-is-not-installed'
    """
    meaning = CONDITIONS.get(condition).summary if condition in CONDITIONS.names() else ""
    return f"{condition}: {meaning}" if meaning else condition


def _board(source: Source, key: Key, condition: str) -> list[Block]:
    results = {
        row.system: row
        for row in source.overall
        if (row.metric, row.scorer, row.condition) == (key.metric, key.scorer, condition)
    }
    if not results:
        return []
    board = leaderboard(
        source.store,
        source.benchmark,
        condition=condition,
        metric=key.metric,
        scorer=key.scorer,
        options=source.options,
    )
    beside = [name for name in _BESIDE if name in {"answered", "failed"} or _any(results, name)]
    metric = source.metric(key.metric)
    level = f"{100 * source.options.level:g} %"
    columns = (
        Column("System"),
        Column("Rank", numeric=True),
        Column("Rank interval", numeric=True),
        Column("Places in samples", numeric=True),
        Column(metric.label, numeric=True),
        Column(f"{level} interval", numeric=True),
        Column(_ends(source, key)),
        Column(plain_name(metric.per) if metric.per else "Items", numeric=True),
        Column("Groups", numeric=True),
        *(Column(_QUIET.get(name, name.replace("_", " ")).capitalize(), numeric=True) for name in beside),
    )
    ranked = {row.system for row in board.rows}
    rows = [
        _row(source, key, row, results[row.system], beside) for row in board.rows if row.system in results
    ]
    rows += [_unscored(results[name], beside) for name in sorted(results) if name not in ranked]
    table = Table(f"{metric.label}, {condition_line(condition)}.", columns, tuple(rows))
    notes = _notes(source, board, results)
    return [
        table,
        *_levels(source, key, condition, results),
        *([Prose(" ".join(notes), quiet=True)] if notes else []),
    ]


def _levels(source: Source, key: Key, condition: str, results: dict[str, Result]) -> list[Block]:
    """How many answers reached each named level."""
    named = source.metric(key.metric).levels
    levels = [*named, *sorted({level for row in results.values() for level in row.levels} - set(named))]
    if not any(row.levels for row in results.values()):
        return []
    rows: list[tuple[Cell | str | int, ...]] = [
        (Cell(name), *(results[name].levels.get(level, 0) for level in levels))
        for name in source.systems
        if name in results
    ]
    columns = (Column("System"), *(Column(level, numeric=True) for level in levels))
    return [Table(f"{source.label(key)}, {condition}: answers at each level.", columns, tuple(rows))]


def _any(results: dict[str, Result], name: str) -> bool:
    return any(getattr(row, name) for row in results.values())


def _ends(source: Source, key: Key) -> str:
    metric = source.metric(key.metric)
    low, high = source.axis(key)
    scale, unit = (100, " %") if metric.percent else (1, "")
    return f"{scale * low:.3g} to {scale * high:.3g}{unit}"


def _row(
    source: Source, key: Key, row: LeaderboardRow, result: Result, beside: list[str]
) -> tuple[Cell | str | int, ...]:
    """A score over the same items is shown as everywhere else, so that its interval has the same draws."""
    metric = source.metric(key.metric)
    shown = result if (result.n, result.drawn) == (row.n, row.drawn) else row
    return (
        Cell(row.system, badge=_badge(row)),
        "–" if row.rank is None else str(row.rank),
        _range(row.rank_low, row.rank_high),
        _range(row.place_low, row.place_high),
        Cell(score(metric, row), strong=True),
        interval(metric, shown.ci_low, shown.ci_high),
        Cell(
            "", span=span_of(source.axis(key), shown.ci_low, shown.drawn, shown.ci_high, source.chance(key))
        ),
        row.n,
        row.groups,
        *(int(getattr(result, name)) for name in beside),
    )


def _range(low: int | None, high: int | None) -> str:
    if low is None or high is None:
        return "–"
    return str(low) if low == high else f"{low} to {high}"


def _badge(row: LeaderboardRow) -> str:
    if row.disqualified:
        return "disqualified"
    return "told the key" if row.told_the_key else ""


def _unscored(result: Result, beside: list[str]) -> tuple[Cell | str | int, ...]:
    counts = [int(getattr(result, name)) for name in beside]
    return (Cell(result.system), "–", "–", "–", Cell("–"), "–", Cell("no score"), 0, 0, *counts)


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
    if any(row.rank is None and row.policy != BOTH and not row.disqualified for row in board.rows):
        notes.append("A system without a score for every item has no rank.")
    out = [str(source.card.disqualified[row.system]) for row in board.rows if row.disqualified]
    if out:
        notes.append(f"Disqualified, and not ranked: {'; '.join(out)}.")
    if any(row.told_the_key for row in board.rows):
        notes.append(
            "“Told the key” marks a floor that knows how the right answers are spread; it does not compete."
        )
    chance = source.chance(key)
    if chance is not None:
        notes.append(
            f"The broken line in the bars is what guessing by lot reaches: {value(board.metric, chance)}."
        )
    if any(row.unresolved for row in results.values()):
        notes.append(
            "Unresolved answers have no verdict: the judge declined or gave none of the form asked for, or a panel came "
            "to no majority. They are asked again by another pass, and lacking until then."
        )
    if any(row.unmarked for row in results.values()):
        notes.append("Unmarked answers wait for their judge: they are in no average.")
    return notes
