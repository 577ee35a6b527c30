"""Boards as tables, for the terminal and for a page that stands alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.challenges.challenge import Challenge
from proctor.challenges.publishing import Visitor, visible_boards
from proctor.core import (
    ACCURACY,
    PAGES,
    Cell,
    Column,
    InputError,
    Metric,
    Span,
    Table,
    columns,
    count_of,
    interval,
    output_file,
    percent,
    rank_range,
    value,
)
from proctor.reports import ReportSummary, Section, Story, StoryAnswer, write_sections

_HEADS = (
    *("Team", ">Place", ">Mean", ">95 % CI", ">Rank by it (95 % CI)", ">Places in samples", ">First in samples"),
    *(">Seconds (median)", "Remarks"),
)
_PLAIN = Metric("mean", "Mean")
_CAPTION = (
    "Mean is that of the accuracies in the buckets, with its 95 % interval over whole groups; beside it the rank by the "
    "mean with its simultaneous interval. Places in samples is the spread of the place over bootstrap samples of groups, "
    "no confidence interval; first in samples is the share of them in which it is first. Baselines have no place; "
    "the line across the drawing is the best of them."
)


def seen_boards(challenge: Challenge, phase: str, visitor: Visitor) -> dict[str, Any]:
    """A phase's boards as a visitor sees them. Raises `InputError` where there are none, or not for this visitor."""
    named = challenge.phase(phase)
    with challenge.reading() as connection:
        found = visible_boards(connection, challenge.settings, named.name, visitor, challenge.now())
    if found is None:
        expected = "a result, and an audience that sees the phase's boards (--audience organiser)"
        raise InputError(f"phase {named.name}", found=f"no boards for {visitor}", expected=expected)
    return found


def board_tables(content: dict[str, Any]) -> list[Table]:
    """One table a board, best first, baselines last."""
    return [_table(board) for board in content["boards"]]


def write_boards(challenge: Challenge, phase: str, out: Path, visitor: Visitor = "public") -> ReportSummary:
    """A page with a phase's boards, complete in itself. Raises `InputError` as `seen_boards`, and where `out` would
    replace anything but an earlier page."""
    output_file(out, PAGES)
    content, one = seen_boards(challenge, phase, visitor), challenge.phase(phase)
    sections = [
        Section(board["name"], table.title, "", (table,), opened=True)
        for board, table in zip(content["boards"], board_tables(content), strict=True)
    ]
    title = f"{challenge.settings.title or challenge.name}: {one.title or one.name}"
    facts = content["boards"][0]["facts"]
    groups = f" in {count_of(facts['groups'], 'group')}" if facts.get("groups") else ""
    ranked = [row for row in content["boards"][0]["rows"] if not row["baseline"]]
    story = Story(
        f"{count_of(len(ranked), 'team')} on {count_of(facts['questions'], 'question')}{groups}, {content['at'][:16]} UTC.",
        tuple(StoryAnswer(f"Who leads ({board['title'].lower()})?", leaders(board)) for board in content["boards"]),
    )
    return write_sections(out, story, sections, title=title)


def leaders(board: dict[str, Any]) -> str:
    """Who has the first place, and how sure that is."""
    first = [row for row in board["rows"] if row["place"] == 1]
    names = ", ".join(row["name"] or "a team that is not listed" for row in first)
    if not first:
        return "Nobody has a place."
    if len(first) > 1:
        return f"{names}, who share the first place ({len(first)})."
    low, high = first[0].get("rank_low"), first[0].get("rank_high")
    if high is None or high == 1:
        return f"{names}."
    return f"{names}; not certain: its rank by the mean is {low} to {high} (95 % CI)."


def _table(board: dict[str, Any]) -> Table:
    rows = board["rows"]
    facts = board["facts"]
    groups = f" in {count_of(facts['groups'], 'group')}" if facts.get("groups") else ""
    ends = [row[name] for row in rows for name in ("mean", "low", "high") if row[name] is not None]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    known = [row["mean"] for row in rows if row["baseline"] and row["mean"] is not None]
    best = max if facts.get("higher_is_better", True) else min
    line = best(known) if known else None
    metric = ACCURACY if facts.get("percent", True) else _PLAIN
    heads = (*columns(*_HEADS), Column("Drawn", drawn=True))
    caption = _CAPTION if "buckets" in facts else ""
    few = facts.get("too_few_groups")
    caption += f" Too few groups for any difference to be significant in: {', '.join(few)}." if few else ""
    title = f"{board['title']} ({count_of(facts['questions'], 'question')}{groups})"
    return Table(
        caption, heads, tuple((*_cells(row, metric), _drawn(row, low, high, line)) for row in rows), title=title
    )


def _cells(row: dict[str, Any], metric: Metric) -> tuple[Cell | str, ...]:
    name = row["name"] or "not listed"
    seconds = row.get("seconds")
    return (
        Cell(name, badge="baseline" if row["baseline"] else ""),
        str(row["place"] or ""),
        value(metric, row["mean"]),
        interval(metric, row["low"], row["high"]),
        _ranks(row),
        "" if row.get("place_low") is None else rank_range(row["place_low"], row["place_high"]),
        "" if row.get("p_first") is None else percent(row["p_first"]),
        "" if seconds is None else f"{seconds['median']:.1f}{'' if seconds['measured'] else ' (said)'}",
        _remarks(row),
    )


def _ranks(row: dict[str, Any]) -> str:
    if row.get("rank_by_mean") is None:
        return ""
    return f"{row['rank_by_mean']} ({rank_range(row['rank_low'], row['rank_high'])})"


def _remarks(row: dict[str, Any]) -> str:
    said = []
    if row.get("below_line") and not row["baseline"]:
        said.append("not above every baseline")
    if row.get("mean_if_wrong") is not None and row["mean"] is None:
        said.append(f"incomplete: {percent(row['mean_if_wrong'])} to {percent(row['mean_if_excluded'])}")
    return "; ".join(said)


def _drawn(row: dict[str, Any], low: float, high: float, line: float | None) -> Cell:
    """A row's interval on the axis of all, with a line at the best baseline."""

    def at(one: float) -> float:
        return (one - low) / (high - low) if high > low else 0.5

    if row["mean"] is None:
        return Cell("")
    ends = [None if row[name] is None else at(row[name]) for name in ("low", "high")]
    return Cell("", span=Span(ends[0], at(row["mean"]), ends[1], None if line is None else at(line)))
