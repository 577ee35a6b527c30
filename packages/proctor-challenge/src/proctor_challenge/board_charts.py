"""Boards as charts: one axis, chance and the best baseline as lines, and one spelling of each result and title."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.core import ACCURACY, DASH, Metric
from proctor.reports import ChartRow, ChartWords, Lane, LeaderboardChart, metric_axis, rank_ends

Row = Mapping[str, Any]
Board = Mapping[str, Any]

_TITLES = {"technical": "Technical leaderboard", "clinical": "Clinical leaderboard"}
_GENERIC = ("All questions", "Questions of ")  # titles that say no more than the name of the board
_PLAIN = Metric("mean", "Mean")

_OPTIONAL = (
    *(
        "low",
        "high",
        "rank_low",
        "rank_high",
        "resampled_rank_low",
        "resampled_rank_high",
        "p_first",
        "seconds",
        "below_line",
    ),
    "announced",
)

_WORDS = {
    "board.mean": "Score",
    "board.interval": "95 % CI",
    "board.baseline": "baseline",
    "board.yours": "your team",
    "board.above": "passes the gate",
    "board.announced": "announced",
    "board.unlisted": "a team that is not listed",
    "board.not_listed": "not listed",
    "board.no_award": "not eligible for awards",
    "board.incomplete": "incomplete: {low} to {high}",
    "board.range": "{low} to {high}",
    "board.chance": "chance {value}",
    "board.best": "best baseline: {name} {value}",
    **{f"board.{name}": title for name, title in _TITLES.items()},
}


def english(key: str, /, **values: object) -> str:
    """The English text of a board, as its pages have it."""
    return _WORDS[key].format(**values)


@dataclass(frozen=True)
class BoardText:
    """How a board is worded: `text` gives its words in the language of a page, `digits` are those of its results (of a
    share; a percentage has two fewer)."""

    text: Callable[..., str] = english
    digits: int = 3

    def title(self, board: Board) -> str:
        """The one title of a board.

        >>> BoardText().title({"name": "technical", "title": "All questions"})
        'Technical leaderboard'
        >>> BoardText().title({"name": "technical", "title": "Kendall's tau"})
        "Kendall's tau"
        """
        title = str(board["title"])
        if title and not title.startswith(_GENERIC):
            return title
        return self.text(f"board.{board['name']}") if board["name"] in _TITLES else str(board["name"])

    def result(self, number: float | None, *, percent: bool = True) -> str:
        """A result, in per cent where it is a share.

        >>> BoardText().result(0.8405), BoardText(digits=2).result(0.84), BoardText().result(12.5, percent=False)
        ('84.0 %', '84 %', '12.500')
        """
        if number is None:
            return DASH
        return f"{_plain(number, self.digits, percent=percent)}{' %' if percent else ''}"

    def interval(self, low: float | None, high: float | None, *, percent: bool = True) -> str:
        """The interval of a result.

        >>> BoardText().interval(0.8083, 0.8791)
        '80.8 to 87.9'
        """
        if low is None or high is None:
            return DASH
        ends = (_plain(end, self.digits, percent=percent) for end in (low, high))
        return self.text("board.range", **dict(zip(("low", "high"), ends, strict=True)))


def _plain(number: float, digits: int, *, percent: bool) -> str:
    shown = f"{100 * number:.{max(0, digits - 2)}f}" if percent else f"{number:.{digits}f}"
    return shown.replace("-", "−")


def in_order(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows as they are listed: ranked rows keep their order, and each baseline comes before the first row with a
    worse mean."""
    sign = 1.0 if board["facts"].get("higher_is_better", True) else -1.0
    complete = [dict.fromkeys(_OPTIONAL) | row for row in board["rows"]]
    rows = [row for row in complete if not row["baseline"]]
    scored = [row for row in complete if row["baseline"] and row["mean"] is not None]
    for baseline in sorted(scored, key=lambda row: -sign * row["mean"]):
        worse = (
            index
            for index, row in enumerate(rows)
            if row["mean"] is None or (not row["baseline"] and sign * row["mean"] <= sign * baseline["mean"])
        )
        rows.insert(next(worse, len(rows)), baseline)
    return rows + [row for row in complete if row["baseline"] and row["mean"] is None]


def board_chart(board: Board, rows: Sequence[Row], how: BoardText, *, organiser: bool = False) -> LeaderboardChart:
    """These rows of a board on the axis of its metric, whatever their values are."""
    percent = board["facts"].get("percent", True)
    ends = [row[name] for row in rows for name in ("mean", "low", "high") if row.get(name) is not None]
    return LeaderboardChart(
        how.title(board),
        metric_axis(ACCURACY if percent else _PLAIN, *ends),
        tuple(_chart_row(board, row, how, organiser=organiser) for row in rows),
        _lines(board, rows, how),
        ChartWords(score=how.text("board.mean"), ends=how.text("board.interval")),
    )


def _chart_row(board: Board, row: Row, how: BoardText, *, organiser: bool) -> ChartRow:
    percent = board["facts"].get("percent", True)
    lane = Lane(
        "",
        row["mean"],
        row.get("low"),
        row.get("high"),
        score=how.result(row["mean"], percent=percent),
        ends=how.interval(row.get("low"), row.get("high"), percent=percent),
    )
    by_mean = "buckets" not in board["facts"] and row.get("rank_low") is not None
    below = [] if row["baseline"] else [str(row.get("institution") or "")]
    if row["mean"] is None and row.get("mean_if_wrong") is not None:
        told = (how.result(row[name], percent=percent) for name in ("mean_if_wrong", "mean_if_excluded"))
        below.append(how.text("board.incomplete", **dict(zip(("low", "high"), told, strict=True))))
    return ChartRow(
        str(row["name"] or how.text("board.unlisted")),
        (lane,),
        DASH if row.get("rank") is None else str(row["rank"]),
        rank_ends(row.get("rank"), row["rank_low"], row["rank_high"]) if by_mean else "",
        " · ".join(filter(None, below)),
        tuple(how.text(f"board.{name}") for name in _badges(row, organiser=organiser)),
        is_baseline=bool(row["baseline"]),
        mine=bool(row.get("mine")),
    )


def _badges(row: Row, *, organiser: bool) -> list[str]:
    if row["baseline"]:
        return ["baseline"]
    known = (
        (row.get("mine"), "yours"),
        (row.get("below_line") is False, "above"),
        (row.get("announced"), "announced"),
        (organiser and not row.get("listed", True), "not_listed"),
        (organiser and not row.get("eligible", True), "no_award"),
    )
    return [name for there, name in known if there]


def _lines(board: Board, rows: Sequence[Row], how: BoardText) -> tuple[tuple[float, str], ...]:
    """Chance, and the best baseline."""
    facts = board["facts"]
    percent, chance = facts.get("percent", True), facts.get("chance")
    lines = [] if chance is None else [(chance, how.text("board.chance", value=how.result(chance, percent=percent)))]
    known = [row for row in rows if row["baseline"] and row["mean"] is not None]
    if known:
        best = (max if facts.get("higher_is_better", True) else min)(known, key=lambda row: row["mean"])
        shown = how.result(best["mean"], percent=percent)
        lines.append((best["mean"], how.text("board.best", name=best["name"], value=shown)))
    return tuple(lines)
