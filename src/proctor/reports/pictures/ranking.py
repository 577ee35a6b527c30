"""Pictures of a ranking and of systems together."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core import ACCURACY, percent, plain_name
from proctor.reports.figures import (
    MOST_ON_PODIUM,
    Blobs,
    Box,
    Dot,
    Forest,
    Part,
    Podium,
    RankLines,
    SharePanel,
    Verdicts,
    draw_blobs,
    draw_box_rows,
    draw_forest,
    draw_podium,
    draw_rank_lines,
    draw_shares,
    draw_verdict_panels,
    draw_verdicts,
    plain_axis,
    signed_axis,
    value_axis,
)
from proctor.reports.pictures.picture import Picture, gap_text, picture
from proctor.runs import Analysis, AnalysisRow, Board

_MOST_IN_PANELS = 20  # systems in the small maps of single buckets


def board_pictures(analysis: Analysis, board: Board) -> list[Picture]:
    """Blobs of places, lines over the rules, and the significance maps of one board."""
    names = [one.standing.name for one in board.runs]
    found = []
    if any(one.standing.stability for one in board.runs):
        found.append(_blobs(analysis, board, names))
    if len(names) > 1:
        found += [_rules(analysis, board, names), _duels(analysis, board, names)]
        found.append(_buckets(analysis, board, names))
    return found


def _of(analysis: Analysis, table: str, board: Board) -> list[AnalysisRow]:
    return [row for row in analysis.tables[table] if row["board"] == board.name]


def _blobs(analysis: Analysis, board: Board, names: list[str]) -> Picture:
    chances = [one.standing.stability.chances if one.standing.stability else () for one in board.runs]
    blobs = Blobs(names, chances, [one.standing.place for one in board.runs])
    caption = (
        "How often a system has each place (from left to right) in bootstrap samples of the groups: the area of a blob is "
        "the share of samples; a ring is the place above. This is a spread, not a confidence interval: samples repeat the "
        "luck of the data where systems are close."
    )
    title = f"Places: {board.title}"
    name = f"places-{board.name}"
    rows = [row for row in _of(analysis, "places", board) if row["chance"] > 0]
    return picture(
        name, "Stability of the places", "places", draw_blobs(name, title, blobs), caption=caption, rows=rows
    )


def _rules(analysis: Analysis, board: Board, names: list[str]) -> Picture:
    rows = _of(analysis, "rules", board)
    rules = list(dict.fromkeys(row["rule"] for row in rows))
    place = {(row["system"], row["rule"]): row["place"] for row in rows}
    lines = RankLines(names, rules, [[place[name, rule] for rule in rules] for name in names])
    caption = (
        "The place of every system (the number in the mark) under each rule, from the same ranks in the buckets; ties are "
        "not broken here. Lines that run level do not depend on the rule."
    )
    key = f"rules-{board.name}"
    drawn = draw_rank_lines(key, f"Places by rule: {board.title}", lines)
    return picture(key, "Places under other rules", "rules", drawn, caption=caption, rows=rows)


def _duels(analysis: Analysis, board: Board, names: list[str]) -> Picture:
    rows = _of(analysis, "duels", board)
    number = {name: place for place, name in enumerate(names)}
    signs: list[list[int | None]] = [[None] * len(names) for _ in names]
    texts = [[""] * len(names) for _ in names]
    for row in rows:
        i, j = number[row["first"]], number[row["second"]]
        sign = (row["won"] > row["lost"]) - (row["won"] < row["lost"])
        signs[i][j], signs[j][i] = sign, -sign
        texts[i][j] = f"{row['won']}–{row['lost']}–{row['tied']}"
        texts[j][i] = f"{row['lost']}–{row['won']}–{row['tied']}"
    caption = (
        "Over all buckets: a triangle up where the row is ahead of the column in more buckets than behind, one down where it "
        "is behind in more; below it, where there is room, the buckets won, lost and tied. Numbers are rows of the board."
    )
    key = f"significance-{board.name}"
    drawn = draw_verdicts(key, f"Pairwise comparisons: {board.title}", names, Verdicts("all", signs, texts))
    return picture(key, "Pairwise comparisons", "duels", drawn, caption=caption, rows=rows)


def _buckets(analysis: Analysis, board: Board, names: list[str]) -> Picture:
    rows = _of(analysis, "significance", board)
    first = names[:_MOST_IN_PANELS]
    number = {name: place for place, name in enumerate(first)}
    panels = []
    for bucket in board.standings.buckets:
        if bucket in board.standings.empty:
            continue
        signs: list[list[int | None]] = [[None] * len(first) for _ in first]
        for row in rows:
            if row["bucket"] == bucket and row["first"] in number and row["second"] in number:
                i, j = number[row["first"]], number[row["second"]]
                sign = 0 if not row["better"] else 1 if row["better"] == row["first"] else -1
                signs[i][j], signs[j][i] = sign, -sign
        few = " (too few groups)" if bucket in board.powerless else ""
        panels.append(Verdicts(f"{plain_name(bucket)}{few}", signs))
    limit = f" Drawn for the first {len(first)} of {len(names)}." if len(first) < len(names) else ""
    caption = (
        f"In each bucket: who is significantly better (paired test over groups, adjusted for all pairs, level {board.alpha:g}). "
        f"Numbers are the rows of the board above; where a bucket has too few groups nobody can be.{limit}"
    )
    key = f"significance-buckets-{board.name}"
    drawn = draw_verdict_panels(key, f"Significance in each bucket: {board.title}", first, panels)
    return picture(key, "Significance in each bucket", "significance", drawn, caption=caption, rows=_wide(rows))


def _wide(rows: Sequence[AnalysisRow]) -> list[AnalysisRow]:
    """One row a pair with p of every bucket: a tenth of the long form."""
    found: dict[tuple[str, str], AnalysisRow] = {}
    for row in rows:
        pair = found.setdefault((row["first"], row["second"]), {"first": row["first"], "second": row["second"]})
        pair[f"p, {row['bucket']}"] = row["p"]
    return list(found.values())


def tau_picture(analysis: Analysis) -> Picture | None:
    """The spread of Kendall's τ over samples, a row a board; None without stability."""
    rows = [row for row in analysis.tables["tau"] if row["samples"]]
    if not rows:
        return None
    boxes = [Box(row["p2_5"], row["q1"], row["median"], row["q3"], row["p97_5"]) for row in rows]
    low = min([0.0, *(row["p2_5"] for row in rows)])
    texts = [f"mean {row['mean']:.2f}, {_equal(row)}median {row['median']:.2f}" for row in rows]
    names = [f"{row['board']} board" for row in rows]
    axis = plain_axis(low, 1.0)
    drawn = draw_box_rows("tau", "Kendall's τ", names, boxes, texts, axis, "Kendall's τ (1: the same order)")
    caption = (
        f"Agreement of the ranking with those of {rows[0]['samples']} samples of groups: the box holds half of the samples, "
        "the whiskers 95 %, the thick line is the median. Samples agree with the ranking of their own benchmark even where all "
        "systems are equal: what the mean would be then stands beside it."
    )
    return picture("tau", "Agreement with rankings of samples", "tau", drawn, caption=caption, rows=rows)


def _equal(row: AnalysisRow) -> str:
    return "" if row["mean_if_equal"] is None else f"equal systems {row['mean_if_equal']:.2f}, "


def podium_picture(analysis: Analysis) -> Picture | None:
    """The first six systems on every group; None where there is one system alone."""
    names = [one.standing.name for one in analysis.boards[0].runs][:MOST_ON_PODIUM]
    rows = [row for row in analysis.tables["groups"] if row["system"] in names]
    if len(names) < 2 or not rows:
        return None
    value = {(row["group"], row["system"]): row["value"] for row in rows}
    groups = [
        group for group in dict.fromkeys(row["group"] for row in rows) if all((group, name) in value for name in names)
    ]
    if not groups:
        return None
    values = [[value[group, name] for name in names] for group in groups]
    places = [[1 + sum(other > one for other in line) for one in line] for line in values]
    axis = value_axis(ACCURACY, min(min(line) for line in values), max(max(line) for line in values), lines=5)
    drawn = draw_podium("podium", "Podium", Podium(names, values, places), axis)
    whole = len(analysis.boards[0].runs)
    limit = f" Places are among the first {len(names)} of {whole} on the board." if len(names) < whole else ""
    caption = (
        f"Every mark is one of {len(groups)} groups (videos), at the system's accuracy there, in the field of the place it "
        f"has there; equal ones share a place. Lines join the marks of a group.{limit}"
    )
    return picture("podium", "Podium", "groups", drawn, caption=caption, rows=rows)


_LOOKS = {
    "right": ("R", 0),
    "wrong": ("W", 1),
    "unreadable": ("U", 2),
    "missing": ("M", 3),
    "timed out": ("T", 4),
    "refused": ("X", 5),
    "error": ("E", 5),
    "unresolved": ("V", 6),
    "not marked": ("N", 6),
    "not supported": ("S", 6),
    "failed": ("F", 7),
}
"""The letter and the colour of every cause; what has no mark has one colour and several letters, as have the two ways in
which a system itself gives up."""


def together_pictures(analysis: Analysis) -> list[Picture]:
    """The ensembles against the best system, and the causes of failure by format."""
    order = analysis.boards[0].names
    found = [_ensembles(analysis), _failures(analysis, order)]
    return [one for one in found if one is not None]


def _ensembles(analysis: Analysis) -> Picture | None:
    rows = analysis.tables["ensembles"]
    whole = [row for row in rows if row["format"] == "all" and row["value"] is not None]
    if not whole or whole[0]["systems"] == whole[-1]["systems"]:
        return None  # one system alone
    best = whole[0]
    forest = Forest(
        [f"{row['ensemble']}: {percent(row['value'])}" for row in whole],
        [Dot(row["gain"], row["gain_low"], row["gain_high"]) for row in whole],
        ["" if row is best else gap_text(row["gain"], row["gain_low"], row["gain_high"]) for row in whole],
        "gain over the best alone (95 % interval)",
        (0.0, "best alone"),
    )
    ends = [row[name] for row in whole for name in ("gain_low", "gain_high") if row[name] is not None]
    axis = signed_axis(ACCURACY, min([-0.01, *ends]), max([0.01, *ends]), lines=5)
    drawn = draw_forest("ensembles", "Ensembles", forest, axis)
    out = (
        f" {best['left_out']} questions can't be voted on (free text, or a mark is missing)."
        if best["left_out"]
        else ""
    )
    caption = (
        f"Accuracy, and its paired difference to the best system's, on {best['n']} questions in {best['groups']} groups: {best['systems']} alone, votes of several systems, and the share that "
        "any of them has right, which no vote can pass. Votes: the median of counts, percentages and times, each class that most name, "
        f"else the most frequent answer. Who is best was chosen on the same questions.{out}"
    )
    return picture("ensembles", "Ensembles", "ensembles", drawn, caption=caption, rows=rows)


def _failures(analysis: Analysis, order: Sequence[str]) -> Picture | None:
    rows = analysis.tables["failures"]
    formats = list(dict.fromkeys(row["format"] for row in rows))
    causes = [cause for cause in _LOOKS if any(row["cause"] == cause for row in rows)]
    if not rows:
        return None
    counts = {(row["format"], row["system"], row["cause"]): row["count"] for row in rows}
    panels = []
    for form in formats:
        lines = [[counts.get((form, name, cause), 0) for cause in causes] for name in order]
        size = max(sum(line) for line in lines)
        panels.append(SharePanel(f"{plain_name(form) or 'no format'} ({size} questions)", lines))
    parts = [Part(_LOOKS[cause][0], cause, _LOOKS[cause][1]) for cause in causes]
    drawn = draw_shares("failures", "How answers end", order, parts, panels)
    caption = "How answers end, by format and cause: the share of a format's questions. Failed, unresolved and unmarked ones are not scored."
    return picture("failures", "Failures by answer format", "failures", drawn, caption=caption, rows=rows)
