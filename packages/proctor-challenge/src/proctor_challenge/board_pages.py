"""Publishing: the boards of a phase as they are shown (rounded, without a row for any question), who may see which part
of them, and boards as tables and as a stand-alone page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, insert, select

from proctor.core import (
    ACCURACY,
    HEADS,
    PAGES,
    Cell,
    InputError,
    Metric,
    Table,
    columns,
    count_of,
    interval,
    output_file,
    percent,
    rank_range,
    value,
)
from proctor.reports import (
    RANK_INTERVAL_LINE,
    Block,
    Prose,
    ReportSummary,
    Section,
    Story,
    StoryAnswer,
    removal_lines,
    tie_lines,
    write_sections,
)
from proctor.stats import Removal, TieOrder
from proctor_challenge.awards import Contender, announced_teams
from proctor_challenge.board_charts import BoardText, board_chart, in_order
from proctor_challenge.boards import Figures, MadeBoard, given_away, result_counts
from proctor_challenge.challenge import Challenge
from proctor_challenge.descriptions import DESCRIBED, RULED, undescribed
from proctor_challenge.receipts import issue_receipts
from proctor_challenge.schema import boards, results, submissions, teams
from proctor_challenge.scoring import board_maker
from proctor_challenge.settings import ChallengeSettings, Phase, ResultsPolicy
from proctor_challenge.states import SubmissionState
from proctor_web import newest_change, utc_text

Visitor = Literal["public", "participant", "organiser"]

_MOVING = ("withdraw team", "readmit team", "disqualify", "reinstate")  # entries of the trail that change ranks

_OUTDATED = "Ranks are from before the last decision on a team or submission; a worker recomputes them."
_UNLISTED: dict[str, Any] = {"name": "", "institution": "", "number": None}  # a team as others see it
_KEPT = (
    *("rank", "score", "won", "lost", "tied", "mean", "low", "high", "rank_by_mean", "rank_low", "rank_high"),
    *(
        "win_rate",
        "win_rate_tied",
        "head_to_head",
        "tie_broken",
        "resampled_rank_low",
        "resampled_rank_high",
        "p_first",
        "chances",
    ),
    *("baseline", "below_line", "advances", "mean_if_wrong", "mean_if_excluded"),
)
_HEADS = (
    *("Team", ">Rank", ">Mean", ">95 % CI", f">{HEADS['rank_by_mean']}", ">Win rate (all)", ">Win rate (tied)"),
    *(f">{HEADS['resampled_ranks']}", f">{HEADS['p_first']}", ">Seconds (median)", "Remarks"),
)
GATE_LINE = (
    "A team passes the gate of a board if its mean is better than that of every baseline there: a rule, no test."
)
_READINGS = ("all", "tied", "head_to_head")
_NOT_LISTED = "a team that is not listed"
_PLAIN = Metric("mean", "Mean")
_CAPTION = (
    "Mean is that of the accuracies in the buckets, with its 95 % interval over whole groups; beside it the rank by the "
    "mean with its simultaneous interval. A win rate is the share of bootstrap samples in which a system is best of all or, of "
    "those that share one of the first three ranks by the rule, best of the tied. The rank in 95 % of resamples is the spread of the rank over bootstrap samples of groups, "
    "no confidence interval; first in resamples is the share of them in which it is first. Baselines have no rank."
)


@dataclass(frozen=True)
class Counted:
    """The submission that represents a team on the boards."""

    team: int
    team_name: str
    number: int
    institution: str
    eligible: bool
    listed: bool
    figures: Figures

    @property
    def system(self) -> str:
        """The name of its run."""
        return f"{self.team_name}#{self.number}"

    def row(self) -> dict[str, Any]:
        """The columns of a board that name the team."""
        seconds = self.figures.seconds
        return {
            "name": self.team_name,
            "team": self.team,
            "number": self.number,
            "institution": self.institution,
            "eligible": self.eligible,
            "listed": self.listed,
            "seconds": None if seconds is None else rounded(seconds.model_dump(mode="json"), 2),
        }

    def better_than(self, other: Counted) -> bool:
        """Whether it has the better mean on the first board; of equal ones neither is better."""
        mine, others = self.figures.boards[0], other.figures.boards[0]
        if mine.mean is None or others.mean is None:
            return others.mean is None and mine.mean is not None
        return mine.mean > others.mean if mine.higher_is_better else mine.mean < others.mean


def publish(challenge: Challenge, phase: str) -> None:
    """Computes and stores the boards of a phase as they are shown, and signs a receipt for each new result.

    Each team has one row: its best or its last shown result, by the phase's rule. Publishes nothing without results,
    and nothing while submissions are rescored, since their scores would come from two versions of the scorer.
    """
    rules, sealed = challenge.phase(phase), challenge.sealed
    with challenge.writing() as connection:
        issue_receipts(connection, challenge, sealed, phase)
        if _rescoring(connection, phase):
            return
        version = board_version(connection, phase)
        lacking = undescribed(connection, rules, challenge.now())
        counted = [entry for entry in counted_submissions(connection, rules, version) if not lacking(entry.team)]
        counts = result_counts(connection, phase, version)
    if not counted:
        return
    best = counted[0]
    for entry in counted:
        best = entry if entry.better_than(best) else best
    with sealed.store(phase) as store:
        maker = board_maker(sealed, store, phase)
        made = maker.made([entry.system for entry in counted])
        hidden = maker.hidden(best.system) if made[0].facts["shares"] else None
    content = {
        "phase": phase,
        "boards": [_content(board, counted, rules.results.digits) for board in made],
        "given_away": given_away(rules, [entry.figures for entry in counted], counts, hidden),
    }
    with challenge.writing() as connection:
        row = {"phase": phase, "scorer": version, "content": content, "at": utc_text(challenge.now())}
        connection.execute(insert(boards).values(row))


def _content(board: MadeBoard, counted: list[Counted], digits: int) -> dict[str, Any]:
    by_system = {entry.system: entry for entry in counted}
    rows = []
    for row in board.rows:
        kept = {name: rounded(row[name], digits) for name in _KEPT if name in row}
        entry = by_system.get(row["system"])
        rows.append(kept | ({"name": row["system"]} if entry is None else entry.row()))
    return {"name": board.name, "title": board.title, "facts": board.facts, "rows": rows}


def board_version(connection: Connection, phase: str) -> int:
    """The version of the scorer that a phase's boards show: the newest one that has scored all that any older one has;
    0 when nothing was scored."""
    query = select(results.c.submission, results.c.scorer).join(submissions, submissions.c.id == results.c.submission)
    by_version: dict[int, set[int]] = {}
    for submission, version in connection.execute(query.where(submissions.c.phase == phase)):
        by_version.setdefault(version, set()).add(submission)
    complete, older = 0, set[int]()
    for version in sorted(by_version):
        if by_version[version] >= older:
            complete = version
        older |= by_version[version]
    return complete


def _rescoring(connection: Connection, phase: str) -> bool:
    """Whether a submission of a phase has a result and is being rescored, or could not be."""
    query = select(results.c.submission).join(submissions, submissions.c.id == results.c.submission)
    unscored = query.where(submissions.c.phase == phase, submissions.c.state != SubmissionState.SCORED)
    return connection.execute(unscored.limit(1)).first() is not None


def counted_submissions(connection: Connection, phase: Phase, version: int) -> list[Counted]:
    """The submission of each team that counts, in the order of the teams' names. Withdrawn teams, disqualified
    submissions, and results that the ladder holds back are left out."""
    query = (
        select(submissions.c.number, teams, results.c.figures)
        .join(teams, teams.c.id == submissions.c.team)
        .join(results, results.c.submission == submissions.c.id)
        .where(submissions.c.phase == phase.name, results.c.scorer == version)
        .where(teams.c.withdrawn.is_(None), submissions.c.disqualified.is_(None))
        .order_by(teams.c.name, submissions.c.number)
    )
    found: dict[int, Counted] = {}
    for row in connection.execute(query):
        figures = Figures.model_validate(row.figures)
        entry = Counted(row.id, row.name, row.number, row.institution, bool(row.eligible), bool(row.listed), figures)
        former = found.get(entry.team)
        if figures.shown and (former is None or phase.counts == "last" or entry.better_than(former)):
            found[entry.team] = entry
    return list(found.values())


def rounded(value: Any, digits: int) -> Any:
    """A JSON value with all floats rounded.

    >>> rounded({"mean": 0.12345, "n": 12, "ends": [0.1004, None]}, 3)
    {'mean': 0.123, 'n': 12, 'ends': [0.1, None]}
    """
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, Mapping):
        return {name: rounded(item, digits) for name, item in value.items()}
    return [rounded(item, digits) for item in value] if isinstance(value, list) else value


def shown_figures(figures: Figures, phase: Phase) -> dict[str, Any] | None:
    """A result as its team sees it: rounded; None when the ladder holds it back."""
    return rounded(figures.model_dump(mode="json"), phase.results.digits) if figures.shown else None


def may_see(policy: ResultsPolicy, visitor: Visitor, now: datetime) -> bool:
    """Whether a visitor may see a phase's results; before `shown_from` only organisers may.

    >>> may_see(ResultsPolicy(boards="participants"), "public", datetime.now())
    False
    """
    early = policy.shown_from is not None and now < policy.shown_from
    allowed = 2 if early else ("public", "participants", "organisers").index(policy.boards)
    return ("public", "participant", "organiser").index(visitor) >= allowed


def visible_boards(
    connection: Connection,
    settings: ChallengeSettings,
    phase: str,
    visitor: Visitor,
    now: datetime,
    *,
    team: int | None = None,
) -> dict[str, Any] | None:
    """The newest boards of a phase as a visitor sees them, whose own team is `team`; None when there are none, or not
    for this visitor. Unlisted teams are anonymous to others, only organisers see `given_away`, and teams that were
    withdrawn or disqualified since then are left out. `outdated` says that a worker has yet to recompute the ranks
    after such a decision."""
    if not may_see(settings.phase(phase).results, visitor, now):
        return None
    newest = select(boards).where(boards.c.phase == phase).order_by(boards.c.id.desc()).limit(1)
    found = connection.execute(newest).mappings().first()
    if found is None:
        return None
    rules = settings.phase(phase)
    rulings, lacking = _rulings(connection, phase), undescribed(connection, rules, now)
    moving = (*_MOVING, DESCRIBED, RULED) if rules.description.required_for == "ranking" else _MOVING
    shown, outdated = [], newest_change(connection, moving) > found["at"]
    for board in found["content"]["boards"]:
        rows = [row | rulings.get((row.get("team"), row.get("number")), {}) for row in board["rows"]]
        there = [row for row in rows if not (row.pop("out", False) or ("team" in row and lacking(row["team"])))]
        kept = _announced(there, rules, visitor, now)
        outdated = outdated or len(kept) < len(rows)
        seen = [_seen(row, visitor, team) for row in kept]
        names = {_system(row): one["name"] or _NOT_LISTED for row, one in zip(kept, seen, strict=True)}
        first = {one["name"]: one["first"] for one in board["facts"].get("removals", ())}
        for row, one in zip(kept, seen, strict=True):
            without = [names.get(name) for name in first.get(_system(row), ())]
            one["first_without"] = without if without and None not in without else None
        facts = _named(board["facts"], names)
        shown.append(board | {"facts": facts, "rows": seen})
    more = {"given_away": found["content"]["given_away"]} if visitor == "organiser" else {}
    facts = {"phase": phase, "at": found["at"], "scorer": found["scorer"], "outdated": outdated}
    return {**facts, "boards": shown, **more}


def _system(row: Mapping[str, Any]) -> str:
    """The name of a row's run."""
    return f"{row['name']}#{row['number']}" if "number" in row else str(row["name"])


def _named(facts: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The facts of a board with the names of systems as a visitor sees them. What concerns a system that is out is left
    out, and so are the systems without which nothing changes."""
    orders, removals = [], []
    for order in facts.get("tie_orders", ()):
        if all(name in names for tied in order["all"] for name in tied):
            readings = {how: [[names[name] for name in tied] for tied in order[how]] for how in _READINGS}
            orders.append({"rank": order["rank"], **readings})
    for one in facts.get("removals", ()):
        changes = one["moves_first"] or one["moves_top"]
        if changes and {one["name"], *one["first"], *one["top"]} <= names.keys():
            moved = {how: [names[name] for name in one[how]] for how in ("first", "top")}
            removals.append(one | moved | {"name": names[one["name"]]})
    return {**facts, "tie_orders": orders, "removals": removals}


def _rulings(connection: Connection, phase: str) -> dict[tuple[Any, Any], dict[str, Any]]:
    """The present rulings by team and number: whether the submission is out, and whether its team is listed and
    eligible."""
    own = (submissions.c.team, submissions.c.number, submissions.c.disqualified)
    query = select(*own, teams.c.withdrawn, teams.c.listed, teams.c.eligible)
    query = query.join(teams, teams.c.id == submissions.c.team).where(submissions.c.phase == phase)
    return {
        (row.team, row.number): {
            "out": row.withdrawn is not None or row.disqualified is not None,
            "listed": bool(row.listed),
            "eligible": bool(row.eligible),
        }
        for row in connection.execute(query)
    }


def _announced(rows: list[dict[str, Any]], rules: Phase, visitor: Visitor, now: datetime) -> list[dict[str, Any]]:
    """The rows, those of announced teams marked so: for organisers at any time, for others once they are announced."""
    prizes = rules.prizes
    if prizes is None or (visitor != "organiser" and (prizes.at is None or now < prizes.at)):
        return rows
    teams = [Contender(row["name"], row["rank"], not row.get("below_line")) for row in rows if not row["baseline"]]
    first = announced_teams(teams, prizes.announced)
    return [row | {"announced": True} if not row["baseline"] and row["name"] in first else row for row in rows]


def _seen(row: dict[str, Any], visitor: Visitor, team: int | None) -> dict[str, Any]:
    """A row without what a visitor may not see."""
    if "team" not in row or visitor == "organiser":
        return row | {"mine": False}
    mine = row["team"] == team
    hidden = {} if row["listed"] or mine else _UNLISTED
    return {name: item for name, item in row.items() if name != "team"} | hidden | {"mine": mine}


def passed_gate(connection: Connection, settings: ChallengeSettings, phase: str, team: int) -> bool:
    """Whether a team passed the gate of a phase: there is none, or one of the team's results in the gate's phase beats
    every baseline on one of the boards. When the gate's phase has no baseline, any result passes."""
    gate = settings.phase(phase).gate
    if gate is None:
        return True
    query = (
        select(results.c.figures)
        .join(submissions, submissions.c.id == results.c.submission)
        .where(submissions.c.team == team, submissions.c.phase == gate.phase, submissions.c.disqualified.is_(None))
        .where(results.c.scorer == board_version(connection, gate.phase))
    )
    found = [board for figures in connection.scalars(query) for board in Figures.model_validate(figures).boards]
    if any(gate.phase in baseline.answers for baseline in settings.baselines) or any(
        board_figure.above is not None for board_figure in found
    ):
        return any(board.above for board in found)
    return bool(found)


def seen_boards(challenge: Challenge, phase: str, visitor: Visitor) -> dict[str, Any]:
    """A phase's boards as a visitor sees them. Raises `InputError` when there are none, or not for this visitor."""
    rules = challenge.phase(phase)
    with challenge.reading() as connection:
        found = visible_boards(connection, challenge.settings, rules.name, visitor, challenge.now())
    if found is None:
        expected = "a result, and an audience that sees the phase's boards (--audience organiser)"
        raise InputError(f"phase {rules.name}", found=f"no boards for {visitor}", expected=expected)
    return found


def board_tables(content: dict[str, Any]) -> list[Table]:
    """One table per board, best first, baselines last."""
    return [replace(table, title=table.title + _outdated(content)) for table in map(_table, content["boards"])]


def _outdated(content: Mapping[str, Any]) -> str:
    return f" ({_OUTDATED[0].lower()}{_OUTDATED[1:-1]})" if content.get("outdated") else ""


def board_lines(board: Mapping[str, Any]) -> list[str]:
    """What to know of a board, one sentence each: where the readings of the tie-break differ, what changes without a team,
    and what the intervals of ranks promise."""
    facts = board["facts"]
    orders = [TieOrder(one["rank"], *(tuple(map(tuple, one[how])) for how in _READINGS)) for one in facts["tie_orders"]]
    removals = [Removal(**one) for one in facts["removals"]]
    first = [row["name"] or _NOT_LISTED for row in board["rows"] if row["rank"] == 1]
    lines = [*tie_lines(orders, facts.get("ties", "tied")), *removal_lines(removals, first)]
    ranked = any(row.get("rank_low") is not None for row in board["rows"])
    return [*lines, RANK_INTERVAL_LINE] if ranked else lines


def write_boards(challenge: Challenge, phase: str, out: Path, visitor: Visitor = "public") -> ReportSummary:
    """Writes a stand-alone page with a phase's boards. Raises `InputError` as `seen_boards` does, and when `out` would
    replace anything but an earlier page."""
    output_file(out, PAGES)
    content, rules = seen_boards(challenge, phase, visitor), challenge.phase(phase)
    how = BoardText(digits=rules.results.digits)
    sections = [
        _section(board, table, how, _outdated(content))
        for board, table in zip(content["boards"], board_tables(content), strict=True)
    ]
    first = content["boards"][0]
    n_teams = count_of(sum(not row["baseline"] for row in first["rows"]), "team")
    told = [(how.title(board), leaders(board)) for board in content["boards"]]
    story = Story(
        f"{n_teams} on {_size(first['facts'])}, {content['at'][:16].replace('T', ' ')} UTC.",
        tuple(StoryAnswer(who_leads(name), said) for name, said in told),
        headline=_finding(first),
    )
    title = f"{challenge.settings.title or challenge.name}: {rules.title or rules.name}"
    return write_sections(out, story, sections, title=title)


def who_leads(title: str) -> str:
    """The question of who leads a board.

    >>> who_leads("Technical leaderboard"), who_leads("Kendall's tau")
    ('Who leads the technical leaderboard?', "Who leads in Kendall's tau?")
    """
    board = title.endswith(" leaderboard")
    return f"Who leads the {title[0].lower()}{title[1:]}?" if board else f"Who leads in {title}?"


def _section(board: dict[str, Any], table: Table, how: BoardText, note: str) -> Section:
    """A board as a chart, with its table folded below."""
    chart = replace(board_chart(board, in_order(board), how), caption=f"{_size(board['facts'])}{note}.", numbers=table)
    notes = [*([GATE_LINE] if _gated(board) else []), *board_lines(board)]
    blocks: list[Block | str] = [chart, *([Prose("Notes:", tuple(notes), quiet=True)] if notes else [])]
    return Section(board["name"], how.title(board), "", blocks, opened=True)


def _finding(board: dict[str, Any]) -> str:
    """Who leads the first board, in one sentence."""
    best = min((row["rank"] for row in board["rows"] if row["rank"]), default=None)
    first = [row["name"] or _NOT_LISTED for row in board["rows"] if best and row["rank"] == best]
    if not first:
        return "Nobody has a rank"
    if len(first) > 1:
        return f"{', '.join(first)} share rank 1"
    high = next(row.get("rank_high") for row in board["rows"] if row["rank"] == best)
    return f"{first[0]} leads" if high in {None, 1} else f"{first[0]} leads, but not certainly"


def _gated(board: Mapping[str, Any]) -> bool:
    return any(row.get("below_line") is not None for row in board["rows"])


def _size(facts: dict[str, Any]) -> str:
    groups = f" in {count_of(facts['groups'], 'group')}" if facts.get("groups") else ""
    return f"{count_of(facts['questions'], 'question')}{groups}"


def leaders(board: dict[str, Any]) -> str:
    """Who has rank 1, and how certain that is. It is the best rank that is shown: the first one may have
    been disqualified since."""
    best = min((row["rank"] for row in board["rows"] if row["rank"]), default=None)
    first = [row for row in board["rows"] if best and row["rank"] == best]
    names = ", ".join(row["name"] or _NOT_LISTED for row in first)
    if not first:
        return "Nobody has a rank."
    if len(first) > 1:
        return f"{names}, who share rank 1 ({len(first)})."
    low, high = first[0].get("rank_low"), first[0].get("rank_high")
    if high is None or high == 1:
        return f"{names}."
    return f"{names}; not certain: its rank by the mean is {low} to {high} (95 % CI)."


def _table(board: dict[str, Any]) -> Table:
    facts = board["facts"]
    metric = ACCURACY if facts.get("percent", True) else _PLAIN
    caption = _CAPTION if "buckets" in facts else ""
    if few := facts.get("too_few_groups"):
        caption += f" Too few groups for any difference to be significant in: {', '.join(few)}."
    cells = tuple(_cells(row, metric) for row in board["rows"])
    return Table(caption, columns(*_HEADS), cells, title=f"{BoardText().title(board)} ({_size(facts)})")


def _cells(row: dict[str, Any], metric: Metric) -> tuple[Cell | str, ...]:
    seconds = row.get("seconds")
    ranked = row.get("rank_by_mean") is not None
    remarks = ["announced"] if row.get("announced") else []
    remarks += ["passes the gate"] if row.get("below_line") is False and not row["baseline"] else []
    if row.get("mean_if_wrong") is not None and row["mean"] is None:
        ends = (value(metric, row[name]) for name in ("mean_if_wrong", "mean_if_excluded"))
        remarks.append(f"incomplete: {' to '.join(ends)}")
    return (
        Cell(row["name"] or "not listed", badge="baseline" if row["baseline"] else ""),
        str(row["rank"] or ""),
        value(metric, row["mean"]),
        interval(metric, row["low"], row["high"]),
        f"{row['rank_by_mean']} ({rank_range(row['rank_low'], row['rank_high'])})" if ranked else "",
        *("" if row.get(name) is None else percent(row[name]) for name in ("win_rate", "win_rate_tied")),
        ""
        if row.get("resampled_rank_low") is None
        else rank_range(row["resampled_rank_low"], row["resampled_rank_high"]),
        "" if row.get("p_first") is None else percent(row["p_first"]),
        "" if seconds is None else f"{seconds['median']:.1f}{'' if seconds['measured'] else ' (self-reported)'}",
        "; ".join(remarks),
    )
