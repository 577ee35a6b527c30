"""The ranking over buckets: tables, figures, notes, and the report's section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from proctor.core import (
    ACCURACY,
    DASH,
    HEADS,
    Cell,
    FailedPolicy,
    Row,
    Table,
    columns,
    count_of,
    difference,
    interval,
    number,
    p_value,
    percent,
    plain_name,
    rank_range,
    signed,
)
from proctor.reports.blocks import RANK_INTERVAL_LINE, Block, Figure, Folded, Prose, Section, Units, recorded_figure
from proctor.reports.comparisons import p_words
from proctor.reports.figures import (
    Box,
    Verdicts,
    draw_blobs,
    draw_list,
    draw_rank_lines,
    draw_verdict_panels,
    draw_verdicts,
    plain_axis,
)
from proctor.reports.leaderboard import remarks
from proctor.reports.report_numbers import Source
from proctor.results import FAILED_POLICIES, Analysis, Board, RankedRun, rule_rows, wins_of
from proctor.results import AnalysisRow as Record
from proctor.stats import Removal, TieOrder, TieRule, can_decide


def board_tables(board: Board, *, title: str = "") -> list[Table]:
    """The ranked systems, then those that can't be ranked, then the baselines."""
    tables = [_ranked_table(board, title)]
    if board.unranked:
        rows: list[Row] = [
            (Cell(run.name), percent(run.low), percent(run.high), ", ".join(remarks(run.lacking)))
            for run in board.unranked
        ]
        caption = (
            "Incomplete runs whose rank depends on what they lack, and systems that do not support some questions: the "
            "mean over buckets as a range."
        )
        heads = columns("System", ">Lacking items wrong", ">Lacking items left out", "Remarks")
        tables.append(Table(caption, heads, tuple(rows), title="Not ranked"))
    if board.baselines:
        rows = [
            (Cell(run.name, badge="baseline"), percent(run.mean), ", ".join(remarks(run.lacking)))
            for run in board.baselines
        ]
        caption = "Baselines, each on the questions that it answers: in no test and no pairwise comparison."
        heads = columns("System", f">{HEADS['mean']}", "Remarks")
        tables.append(Table(caption, heads, tuple(rows), title="Baselines: not ranked, in no test"))
    return tables


def _ranked_table(board: Board, title: str) -> Table:
    standings = board.standings
    heads = columns(
        *("System", ">Rank", f">Score ({standings.rule})", ">Won, lost, tied", f">{HEADS['mean']}"),
        *(f">{HEADS['rank_by_mean']}", ">Win rate (all)", ">Win rate (tied)"),
        *(f">{HEADS['resampled_ranks']}", f">{HEADS['p_first']}", "Remarks"),
    )
    groups = count_of(standings.groups, "group")
    caption = (
        f"{count_of(board.items, 'question')} in {groups}, {count_of(len(standings.buckets), 'bucket')}. Won, lost "
        "and tied are pairwise comparisons with each other system (left out where all are equal); the mean over buckets is "
        "that of the accuracies in them, beside it the rank by that mean with its simultaneous 95 % confidence interval "
        "from the paired tests. A win rate is the share of bootstrap samples in which a system is best of all systems or, "
        f"of those that share one of the first three ranks by the rule, best of the tied; {standings.ties} decides. "
        "The rank in 95 % of resamples is the spread of the rank over bootstrap samples of the groups, not a "
        "confidence interval; first in resamples is the share of them in which it is first."
    )
    shown = title or f"{board.title} ({board.items} in {groups})"
    rows = [_ranked_row(run) for run in board.runs]
    alike = {k for k in _RULE_COLUMNS if len({str(row[k]) for row in rows}) < 2}  # they tell nobody apart
    kept = [k for k in range(len(heads)) if k not in alike]
    return Table(
        caption, tuple(heads[k] for k in kept), tuple(tuple(row[k] for k in kept) for row in rows), title=shown
    )


_RULE_COLUMNS = (2, 3)  # the score of the rule, and the pairwise comparisons


def _ranked_row(run: RankedRun) -> Row:
    standing, stability = run.standing, run.standing.stability
    notes = ["tie broken"] if standing.tie_broken else []
    notes += ["not above every baseline"] if run.below else []
    low, high = standing.rank_low, standing.rank_high
    return (
        Cell(standing.name),
        Cell(str(standing.rank), strong=True),
        signed(standing.score, 0 if float(standing.score).is_integer() else 3),
        "–".join(str(count) for count in wins_of(standing)),
        percent(standing.mean),
        _rank_by_mean(standing.mean_rank, low, high),
        percent(standing.win_rate),
        percent(standing.win_rate_tied),
        DASH if stability is None else rank_range(stability.resampled_rank_low, stability.resampled_rank_high),
        DASH if stability is None else percent(stability.chances[0]),
        ", ".join([*notes, *remarks(run.lacking)]),
    )


def _score(score: float) -> str:
    """The score of a rule: whole numbers as such, others with three digits."""
    return number(score, 0 if float(score).is_integer() else 3)


def _rank_by_mean(rank: int | None, low: int | None, high: int | None) -> str:
    if rank is None or low is None or high is None:
        return DASH
    return f"{rank} ({low} to {high})" if low < high else f"{rank} ({low})"


def detail_tables(board: Board) -> list[Table]:
    """Tables of the other rules, of buckets, and of pairs of systems; empty if no system is ranked."""
    if not board.runs:
        return []
    rule_values = rule_rows([board])
    rules = list(dict.fromkeys(row["rule"] for row in rule_values))
    cells = {(row["system"], row["rule"]): f"{row['rank']} ({_score(row['score'])})" for row in rule_values}
    names = [run.standing.name for run in board.runs]
    by_rule: list[Row] = [(Cell(name), *(cells[name, rule] for rule in rules)) for name in names]
    rule_caption = "Rank (score) under every rule, ties not broken: how far the rule decides."
    rule_title = "Rank (score) under every rule, ties not broken"
    by_bucket: list[Row] = []
    for one in board.runs:
        pairs = zip(one.standing.ranks, one.standing.scores, strict=True)
        shown = [DASH if rank is None else f"{rank} ({percent(score)})" for rank, score in pairs]
        by_bucket.append((Cell(one.standing.name), *shown))
    by_bucket += [
        (Cell(baseline.name, badge="baseline"), *map(percent, baseline.scores)) for baseline in board.baselines
    ]
    pairs_rows: list[Row] = []
    for index, one in enumerate(board.runs, start=1):
        own = one.standing
        counts = [f"{own.ahead[n]}–{own.behind[n]}–{own.tied[n]}" if n in own.ahead else "" for n in names]
        pairs_rows.append((Cell(own.name), str(index), *counts))
    title = "Buckets won, lost and tied by the row against the column"
    numbers = (f">{index}" for index in range(1, len(names) + 1))  # fifty names would not fit
    return [
        Table(rule_caption, columns("System", *(f">{rule}" for rule in rules)), tuple(by_rule), title=rule_title),
        Table(
            "Rank (accuracy) in each bucket.",
            columns("System", *(f">{bucket}" for bucket in board.standings.buckets)),
            tuple(by_bucket),
            title="Rank (accuracy) in each bucket",
        ),
        Table(
            f"{title}; columns are numbered as the rows are.",
            columns("System", ">Row", *numbers),
            tuple(pairs_rows),
            title=title,
        ),
        *_tie_tables(board),
    ]


def _tie_tables(board: Board) -> list[Table]:
    """The win rates of tied systems, and the ranking without each system."""
    ties: list[Row] = [
        (Cell(one.name), *map(percent, (one.win_rate, one.win_rate_tied, one.head_to_head)))
        for one in (run.standing for run in board.runs)
        if one.win_rate_tied is not None
    ]
    ties_title = "Systems that share one of the first three ranks by the rule"
    ties_caption = (
        f"{ties_title}: who is best in bootstrap samples, of all and of the tied, or better than another tied one."
    )
    ties_heads = columns("System", ">Win rate (all)", ">Win rate (tied)", ">Head to head (mean)")
    without = "The ranking without each system"
    left: list[Row] = [(Cell(one.name), " = ".join(one.first), ", ".join(one.top)) for one in board.standings.removals]
    return [
        *([Table(f"{ties_caption}", ties_heads, tuple(ties), title=ties_title)] if ties else []),
        *(
            [Table(f"{without}.", columns("Without", "First", "First three"), tuple(left), title=without)]
            if left
            else []
        ),
    ]


def leads_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """The significance of a system's lead by bucket; one table for each system that it is compared with."""
    heads = columns("Bucket", ">Questions", ">Groups", ">Lead", ">95 % CI", ">p", f">{HEADS['p_adjusted']}", "Verdict")
    tables = []
    for other in dict.fromkeys(row["against"] for row in rows):
        here = [row for row in rows if row["against"] == other]
        title = f"{here[0]['system']} compared with {other}"
        cells: list[Row] = [
            (
                Cell(row["bucket"]),
                *(row["n"], row["groups"]),
                difference(ACCURACY, row["lead"]),
                interval(ACCURACY, row["ci_low"], row["ci_high"]),
                p_words(row["p"], row["groups"]),
                *(p_value(row["p_adjusted"]) if can_decide(row["groups"]) else DASH, row["verdict"]),
            )
            for row in here
        ]
        tested = [row for row in here if row["bucket"] != "all" and row["p"] is not None]
        if any(row["p"] != row["p_adjusted"] for row in tested):
            title += f"; p is adjusted for the {count_of(len(tested), 'bucket')}, and over all questions it is not"
        tables.append(Table(f"{title}.", heads, tuple(cells), title=title))
    return tables


def board_notes(board: Board) -> list[str]:
    """Notes on the ranking, one sentence each."""
    standings = board.standings
    notes = [*_policy_notes(board), *_latency_notes(board)]
    if standings.empty:
        notes.append(f"Buckets without questions count for nothing: {', '.join(standings.empty)}.")
    groups = dict(zip(standings.buckets, standings.bucket_groups, strict=True))
    few = [
        f"{name} ({count_of(groups[name], 'group')}, smallest p {p_value(least)} adjusted for all pairs)"
        for name, least in board.powerless.items()
    ]
    if few:
        notes.append(f"Too few groups for any difference to be significant, so all share rank 1: {'; '.join(few)}.")
    if board.disqualified:
        notes.append(f"Disqualified, and not ranked: {'; '.join(map(str, board.disqualified))}.")
    if board.judge != "code":
        notes.append(f"Free text is right or wrong by {board.judge}.")
    if board.left_out:
        notes.append(f"Left out: {count_of(board.left_out, 'question')} without a scorer (free text without a judge).")
    if board.unbucketed:
        notes.append(
            f"In no bucket, and counted for nobody: {count_of(board.unbucketed, 'question')} without a tag of the buckets, "
            "or with two values of it."
        )
    if standings.tau is not None and standings.tau_low is not None:
        equal = standings.tau_equal
        compared = "" if equal is None else f"; systems that are all equal would give {number(equal)}"
        notes.append(
            f"Kendall's tau to the ranking of each sample: mean {number(standings.tau)}, 2.5 % below "
            f"{number(standings.tau_low)}{compared}."
        )
    first = [one.name for one in standings.systems if one.rank == 1]
    notes += [*tie_lines(standings.tie_orders, standings.ties), *removal_lines(standings.removals, first)]
    return [*notes, RANK_INTERVAL_LINE] if any(one.rank_low for one in standings.systems) else notes


COPIES_LINE = (
    "Near-copies of a system share its win rate, so they can cost it a rank in a tie, also the first one; head to head "
    "they take nothing from it."
)


def tie_lines(orders: Sequence[TieOrder], rule: TieRule) -> list[str]:
    """Where the readings of the tie-break order the tied differently, and what near-copies of a system do to it."""
    lines = []
    for order in orders:
        where = f"Tied for rank {order.rank}"
        if order.differs:
            both = f"of all systems {_order_text(order.all)}; of the tied systems {_order_text(order.tied)}"
            lines.append(f"{where}, in the order of the win rate {both}. The two differ; --ties {rule} decides.")
        if order.head_to_head != order.by(rule):
            lines.append(
                f"{where}, in the order of the head-to-head mean (it decides nothing): {_order_text(order.head_to_head)}."
            )
    return [*lines, *([COPIES_LINE] if orders else [])]


def _order_text(order: Sequence[Sequence[str]]) -> str:
    return ", ".join(" = ".join(names) for names in order)


def removal_lines(removals: Sequence[Removal], first: Sequence[str]) -> list[str]:
    """Each system without which another one is `first`, or others are in the first three ranks."""
    lines = []
    for removal in removals:
        names = " and ".join(removal.first)
        if removal.moves_first:
            others = [name for name in first if name != removal.name]
            instead = f", not {' and '.join(others)}" if others else ""
            lines.append(f"Without {removal.name}, the first is {names}{instead}.")
        elif removal.moves_top:
            lines.append(f"Without {removal.name}, the first three are {', '.join(removal.top)}.")
    return lines


def _policy_notes(board: Board) -> list[str]:
    lacks = [run.standing.name for run in board.runs if run.lacking.incomplete]
    notes = _unranked_notes(board)
    if lacks and FailedPolicy.EXCLUDE in board.policies:
        notes.append(f"Incomplete: {', '.join(lacks)}; what they lack can't change any rank.")
    elif lacks or any(run.lacking.incomplete for run in board.baselines):
        text = FAILED_POLICIES[board.policies[0]]
        notes.append(f"{text[0].upper()}{text[1:]} (--failed {board.policies[0].value}).")
    return notes


def _unranked_notes(board: Board) -> list[str]:
    """Why runs are not ranked: each run is in the first of these notes that fits."""
    notes = []
    waiting = [run.name for run in board.unranked if run.lacking.unscored]
    never = [run for run in board.unranked if run.lacking.unsupported and run.name not in waiting]
    apart = [*waiting, *(run.name for run in never)]
    unscored = [run.name for run in board.unranked if run.name not in apart and not run.lacking.incomplete]
    others = [run.name for run in board.unranked if run.name not in (*apart, *unscored)]
    if waiting:
        notes.append(f"Not ranked, since answers wait for the judge: {', '.join(waiting)} (proctor score scores them).")
    if never:
        each = ", ".join(f"{run.name} ({count_of(run.lacking.unsupported, 'question')})" for run in never)
        notes.append(
            f"Not ranked, since the system does not support some questions: {each}. Its score leaves them out."
        )
    if unscored:
        notes.append(f"Not ranked, since no answer has a score: {', '.join(unscored)}.")
    if others:
        notes.append(
            f"Not ranked, since the run is incomplete and what it lacks may change a rank: {', '.join(others)} (running "
            "again completes it; --failed wrong counts it as wrong)."
        )
    return notes


def _latency_notes(board: Board) -> list[str]:
    names = ", ".join(f"{run.standing.name} {run.lacking.untimed}" for run in board.runs if run.lacking.untimed)
    if not names:
        return []
    if board.timed:
        return [f"Answers without a latency count as late, so as wrong (--latency optional lets them in): {names}."]
    return [f"Answers without a latency count as in time, unverified (--latency required): {names}."]


def who_advances(boards: Sequence[Board]) -> str:
    """The systems that beat all baselines on at least one board; empty without baselines, and if no system is ranked."""
    if not any(board.baselines and board.runs for board in boards):
        return ""
    names = sorted({run.standing.name for board in boards for run in board.runs if run.advances})
    return f"Beats all baselines on at least one board: {', '.join(names) or 'nobody'}."


_MAX_IN_PANELS = 20  # systems in the small maps of the buckets


def board_figures(analysis: Analysis, board: Board) -> list[Figure]:
    """The figures of one board: ranks in samples, ranks by rule, and significance maps."""
    names = [run.standing.name for run in board.runs]
    figures = []
    if any(run.standing.stability for run in board.runs):
        figures.append(_stability(_of(analysis, "rank_chances", board), board, names))
    if len(names) > 1:
        figures.append(_rules(_of(analysis, "rules", board), board, names))
        figures.append(_pairwise_wins(_of(analysis, "pairwise_wins", board), board, names))
        figures.append(_significance(_of(analysis, "significance", board), board, names))
    return figures


def _of(analysis: Analysis, table: str, board: Board) -> list[Record]:
    return [row for row in analysis.tables[table] if row["board"] == board.name]


def _stability(rows: list[Record], board: Board, names: list[str]) -> Figure:
    chances = [run.standing.stability.chances if run.standing.stability else () for run in board.runs]
    name = f"ranks-{board.name}"
    drawn = draw_blobs(name, f"Ranks: {board.title}", names, chances, [run.standing.rank for run in board.runs])
    caption = (
        "How often a system has each rank (from left to right) in bootstrap samples of the groups: the area of a "
        "blob is the share of samples; a ring is the rank above. This is a spread, not a confidence interval: "
        "samples repeat the luck of the data where systems are close."
    )
    return recorded_figure(name, "Stability of the ranks", drawn, caption, [row for row in rows if row["chance"] > 0])


def _rules(rows: list[Record], board: Board, names: list[str]) -> Figure:
    rules = list(dict.fromkeys(row["rule"] for row in rows))
    rank = {(row["system"], row["rule"]): row["rank"] for row in rows}
    ranks = [[rank[name, rule] for rule in rules] for name in names]
    caption = (
        "The rank of every system (the number in the mark) under each rule, from the same ranks in the buckets; "
        "ties are not broken here. Lines that run level do not depend on the rule."
    )
    name = f"rules-{board.name}"
    drawn = draw_rank_lines(name, f"Ranks by rule: {board.title}", names, rules, ranks)
    return recorded_figure(name, "Ranks under other rules", drawn, caption, rows, units=Units())


def _pairwise_wins(rows: list[Record], board: Board, names: list[str]) -> Figure:
    row_of = {name: number for number, name in enumerate(names)}
    signs: list[list[int | None]] = [[None] * len(names) for _ in names]
    texts = [[""] * len(names) for _ in names]
    for row in rows:
        i, j = row_of[row["first"]], row_of[row["second"]]
        sign = (row["won"] > row["lost"]) - (row["won"] < row["lost"])
        signs[i][j], signs[j][i] = sign, -sign
        texts[i][j] = f"{row['won']}–{row['lost']}–{row['tied']}"
        texts[j][i] = f"{row['lost']}–{row['won']}–{row['tied']}"
    caption = (
        "Over all buckets: a triangle up where the row is ahead of the column in more buckets than behind, one down "
        "where it is behind in more; below it, where there is room, the buckets won, lost and tied. Numbers are rows "
        "of the board."
    )
    name = f"significance-{board.name}"
    drawn = draw_verdicts(name, f"Pairwise comparisons: {board.title}", names, Verdicts("all", signs, texts))
    return recorded_figure(name, "Pairwise comparisons", drawn, caption, rows)


def _significance(rows: list[Record], board: Board, names: list[str]) -> Figure:
    first = names[:_MAX_IN_PANELS]
    row_of = {name: number for number, name in enumerate(first)}
    panels = []
    by_pair: dict[tuple[str, str], Record] = {}  # one row per pair with p of all buckets: a tenth of the long form
    for row in rows:
        pair = by_pair.setdefault((row["first"], row["second"]), {"first": row["first"], "second": row["second"]})
        pair[f"p, {row['bucket']}"] = row["p"]
    for bucket in board.standings.buckets:
        if bucket in board.standings.empty:
            continue
        signs: list[list[int | None]] = [[None] * len(first) for _ in first]
        for row in rows:
            if row["bucket"] == bucket and row["first"] in row_of and row["second"] in row_of:
                i, j = row_of[row["first"]], row_of[row["second"]]
                sign = 0 if not row["better"] else 1 if row["better"] == row["first"] else -1
                signs[i][j], signs[j][i] = sign, -sign
        few = " (too few groups)" if bucket in board.powerless else ""
        panels.append(Verdicts(f"{plain_name(bucket)}{few}", signs))
    limit = f" Drawn for the first {len(first)} of {len(names)}." if len(first) < len(names) else ""
    caption = (
        f"In each bucket: who is significantly better (paired test over groups, adjusted for all pairs, level "
        f"{board.alpha:g}). "
        f"Numbers are the rows of the board above; where a bucket has too few groups nobody can be.{limit}"
    )
    name = f"significance-buckets-{board.name}"
    drawn = draw_verdict_panels(name, f"Significance in each bucket: {board.title}", first, panels)
    return recorded_figure(name, "Significance in each bucket", drawn, caption, list(by_pair.values()))


def tau_figure(analysis: Analysis) -> Figure | None:
    """The distribution of Kendall's τ over samples, one row per board; None without stability."""
    rows = [row for row in analysis.tables["tau"] if row["samples"]]
    if not rows:
        return None
    shown = []
    for row in rows:
        equal = "" if row["mean_if_equal"] is None else f"equal systems {number(row['mean_if_equal'])}, "
        box = Box(row["p2_5"], row["q1"], row["median"], row["q3"], row["p97_5"])
        shown.append(
            (f"{row['board']} board", box, f"mean {number(row['mean'])}, {equal}median {number(row['median'])}")
        )
    axis = plain_axis(min([0.0, *(row["p2_5"] for row in rows)]), 1.0)
    drawn = draw_list("tau", "Kendall's τ", shown, axis, head="Kendall's τ (1: the same order)")
    caption = (
        f"Agreement of the ranking with those of {rows[0]['samples']} samples of groups: the box holds half of the "
        "samples, the whiskers 95 %, the thick line is the median. Samples agree with the ranking of their own "
        "benchmark even where all systems are equal: what the mean would be then stands beside it."
    )
    return recorded_figure("tau", "Agreement with rankings of samples", drawn, caption, rows, units=Units())


def ranking_section(source: Source) -> Section | None:
    """The section on the ranking; None without buckets or analysis."""
    analysis = source.analysis
    if not source.card.buckets or not isinstance(analysis, Analysis):
        return None
    blocks: list[Block | str] = []
    for board in analysis.boards:
        blocks += [f"{board.title}, {source.conditions[0]} ({board.name} board)", *board_tables(board)]
        if notes := board_notes(board):
            blocks.append(Prose("Notes:", tuple(notes), quiet=True))
        blocks += [
            replace(figure, caption=f"{figure.title}. {figure.caption}") for figure in board_figures(analysis, board)
        ]
        if tables := detail_tables(board):
            blocks.append(Folded("Other rules, bucket by bucket, and system by system", tuple(tables)))
    if tau := tau_figure(analysis):
        blocks += [tau.title, tau]
    if advancing := who_advances(analysis.boards):
        blocks.append(Prose(advancing))
    return Section(
        key="ranking",
        title="Ranking over buckets",
        lead="In each bucket a system's rank is 1 plus the number of systems that are significantly better there, "
        "and never better than that of a system with a higher accuracy. A system beats another that it is ahead of "
        "in more buckets than behind; the score is systems beaten less systems lost to. Ties in the first three "
        "ranks are broken by how often each is best of the tied in bootstrap samples of the groups. Baselines enter no test and "
        "no pairwise comparison. Tests are adjusted within a bucket, not over all of them: of two equal systems one "
        "may well get the higher score.",
        blocks=tuple(blocks),
        finding=", ".join(f"{board.title.lower()}: {board.names[0]}" for board in analysis.boards if board.names),
        count=count_of(len(analysis.boards), "board"),
    )
