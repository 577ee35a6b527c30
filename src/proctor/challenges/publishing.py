"""Boards as they are shown: computed from a phase's answers, rounded, without a row for any question; and who sees
which part of them. Boards as tables, for the terminal and for a page that stands alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, insert, select

from proctor.challenges.boards import Counted, Figures, MadeBoard, attempts, given_away
from proctor.challenges.challenge import Challenge
from proctor.challenges.marking import board_maker
from proctor.challenges.receipts import issue_receipts
from proctor.challenges.schema import boards, results, submissions, teams
from proctor.challenges.settings import ChallengeSettings, Phase, ResultsPolicy
from proctor.challenges.states import SubmissionState
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
from proctor.web import utc_text

Visitor = Literal["public", "participant", "organiser"]
UNLISTED = ""
"""The name of a team that is not listed, as others see it."""

_KEPT = (
    *("place", "score", "won", "lost", "tied", "mean", "low", "high", "rank_by_mean", "rank_low", "rank_high"),
    *("win_rate", "tie_broken", "place_low", "place_high", "p_first", "chances", "baseline", "below_line", "advances"),
    *("mean_if_wrong", "mean_if_excluded"),
)


def publish(challenge: Challenge, phase: str) -> None:
    """Computes the boards of a phase and keeps them as they are shown, with a receipt for each new result; nothing
    where nobody has one, and nothing while results are marked again: then the answers' marks are of two versions. Each
    team has one row: its best result or its last one, as the phase says, of those that are shown."""
    one = challenge.phase(phase)
    sealed = challenge.sealed
    with challenge.writing() as connection:
        issue_receipts(connection, challenge, sealed, phase)
        if marked_again(connection, phase):
            return
        version = board_version(connection, phase)
        counted = counted_submissions(connection, one, version)
        tried = attempts(connection, phase, version)
    if not counted:
        return
    with sealed.store(phase) as store:
        made = board_maker(sealed, store, phase).made([entry.system for entry in counted])
    shown = [_content(board, counted, one) for board in made]
    content = {"phase": phase, "boards": shown, "given_away": given_away(one, counted, tried)}
    with challenge.writing() as connection:
        row = {"phase": phase, "scorer": version, "content": content, "at": utc_text(challenge.now())}
        connection.execute(insert(boards).values(row))


def board_version(connection: Connection, phase: str) -> int:
    """The version of the scorer that a phase's boards are of: the newest one that has marked all that any older one
    has, so that no board mixes two; 0 where nothing was marked."""
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


def marked_again(connection: Connection, phase: str) -> int:
    """How many submissions of a phase have a result and are marked again, or could not be: they are no longer
    `scored`."""
    again = select(results.c.submission).join(submissions, submissions.c.id == results.c.submission)
    found = again.where(submissions.c.phase == phase, submissions.c.state != SubmissionState.SCORED).distinct()
    return len(connection.execute(found).all())


def counted_submissions(connection: Connection, phase: Phase, version: int) -> list[Counted]:
    """For each team the submission that counts, by the team's name. Withdrawn teams, disqualified submissions, and
    results that the ladder holds back are left out."""
    own = select(
        *(submissions.c.id, submissions.c.number, teams.c.id.label("team"), teams.c.name, teams.c.institution),
        *(teams.c.eligible, teams.c.listed, results.c.figures),
    )
    query = (
        own.join(teams, teams.c.id == submissions.c.team)
        .join(results, results.c.submission == submissions.c.id)
        .where(submissions.c.phase == phase.name, results.c.scorer == version)
        .where(teams.c.withdrawn.is_(None), submissions.c.disqualified.is_(None))
        .order_by(teams.c.name, submissions.c.number)
    )
    found: dict[int, Counted] = {}
    for row in connection.execute(query).mappings():
        entry = _counted(row)
        former = found.get(entry.team)
        if entry.figures.shown and (former is None or phase.counts == "last" or _better(entry, former)):
            found[entry.team] = entry
    return list(found.values())


def _counted(row: RowMapping) -> Counted:
    return Counted(
        system=f"{row['name']}#{row['number']}",
        submission=row["id"],
        number=row["number"],
        team=row["team"],
        team_name=row["name"],
        institution=row["institution"],
        eligible=bool(row["eligible"]),
        listed=bool(row["listed"]),
        figures=Figures.model_validate(row["figures"]),
    )


def _better(entry: Counted, former: Counted) -> bool:
    """Whether a later result has the better mean on the first board; of equal ones the first stands."""
    new, old = entry.figures.boards[0], former.figures.boards[0]
    if new.mean is None or old.mean is None:
        return old.mean is None and new.mean is not None
    return new.mean > old.mean if new.higher_is_better else new.mean < old.mean


def _content(board: MadeBoard, counted: list[Counted], phase: Phase) -> dict[str, Any]:
    by_system = {one.system: one for one in counted}
    digits = phase.results.digits
    rows = []
    for row in board.rows:
        entry = by_system.get(row["system"])
        kept = {name: rounded(row[name], digits) for name in _KEPT if name in row}
        rows.append(kept | ({"name": row["system"]} if entry is None else _of_team(entry)))
    return {"name": board.name, "title": board.title, "facts": board.facts, "rows": rows}


def _of_team(entry: Counted) -> dict[str, Any]:
    seconds = entry.figures.seconds
    return {
        "name": entry.team_name,
        "team": entry.team,
        "number": entry.number,
        "institution": entry.institution,
        "eligible": entry.eligible,
        "listed": entry.listed,
        "seconds": None if seconds is None else rounded(seconds.model_dump(mode="json"), 2),
    }


def rounded(value: Any, digits: int) -> Any:
    """A value with all numbers that are not whole rounded.

    >>> rounded({"mean": 0.12345, "n": 12, "ends": [0.1004, None]}, 3)
    {'mean': 0.123, 'n': 12, 'ends': [0.1, None]}
    """
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, Mapping):
        return {name: rounded(one, digits) for name, one in value.items()}
    return [rounded(one, digits) for one in value] if isinstance(value, list) else value


def shown_figures(figures: Figures, phase: Phase) -> dict[str, Any] | None:
    """What its team is told of a result: rounded; None where the ladder holds it back."""
    return rounded(figures.model_dump(mode="json"), phase.results.digits) if figures.shown else None


def visible_boards(
    connection: Connection,
    settings: ChallengeSettings,
    phase: str,
    visitor: Visitor,
    now: datetime,
    *,
    team: int | None = None,
) -> dict[str, Any] | None:
    """The newest boards of a phase, as somebody sees them: `team` is the visitor's own. None where there are none, or
    not for this visitor. A team that is not listed has no name for others, and only organisers see what the phase has
    given away. Who was withdrawn or disqualified since the boards were made has no row any more."""
    if not may_see(settings.phase(phase).results, visitor, now):
        return None
    newest = select(boards).where(boards.c.phase == phase).order_by(boards.c.id.desc()).limit(1)
    row = connection.execute(newest).mappings().first()
    if row is None:
        return None
    ruled = _rulings(connection, phase)
    rows = [[entry | ruled.get(entry.get("team"), {}) for entry in one["rows"]] for one in row["content"]["boards"]]
    out = _disqualified(connection, phase)
    made = [
        one | {"rows": [_seen(entry, visitor, team) for entry in some if not _is_out(entry, out)]}
        for one, some in zip(row["content"]["boards"], rows, strict=True)
    ]
    told = {"given_away": row["content"]["given_away"]} if visitor == "organiser" else {}
    return {"phase": phase, "at": row["at"], "scorer": row["scorer"], "boards": made, **told}


def _rulings(connection: Connection, phase: str) -> dict[int | None, dict[str, Any]]:
    """What is said of each team now, whatever was when the boards were made."""
    own = select(teams.c.id, teams.c.withdrawn, teams.c.listed, teams.c.eligible)
    there = select(submissions.c.team).where(submissions.c.phase == phase)
    return {
        row.id: {"withdrawn": row.withdrawn is not None, "listed": bool(row.listed), "eligible": bool(row.eligible)}
        for row in connection.execute(own.where(teams.c.id.in_(there)))
    }


def _disqualified(connection: Connection, phase: str) -> set[tuple[int, int]]:
    """Each one's team and number."""
    own = select(submissions.c.team, submissions.c.number)
    return {
        (row.team, row.number)
        for row in connection.execute(own.where(submissions.c.phase == phase, submissions.c.disqualified.is_not(None)))
    }


def _is_out(row: Mapping[str, Any], disqualified: set[tuple[int, int]]) -> bool:
    return bool(row.get("withdrawn")) or (row.get("team"), row.get("number")) in disqualified


def may_see(policy: ResultsPolicy, visitor: Visitor, now: datetime) -> bool:
    """Whether a visitor may see a phase's results; before `shown_from` only organisers may.

    >>> may_see(ResultsPolicy(boards="participants"), "public", datetime.now())
    False
    """
    early = policy.shown_from is not None and now < policy.shown_from
    allowed = 2 if early else ("public", "participants", "organisers").index(policy.boards)
    return ("public", "participant", "organiser").index(visitor) >= allowed


def _seen(row: dict[str, Any], visitor: Visitor, team: int | None) -> dict[str, Any]:
    row = {name: value for name, value in row.items() if name != "withdrawn"}
    if "team" not in row or visitor == "organiser":
        return row | {"mine": False}
    mine = row["team"] == team
    hidden = {} if row["listed"] or mine else {"name": UNLISTED, "institution": "", "number": None}
    return {name: value for name, value in row.items() if name != "team"} | hidden | {"mine": mine}


def passed_gate(connection: Connection, settings: ChallengeSettings, phase: str, team: int) -> bool:
    """Whether a team may hand in for a phase: it has no gate, or one of the team's results in the gate's phase beats
    every baseline on one of the boards. Where the gate's phase has no baseline, any result does."""
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
    if any(gate.phase in one.answers for one in settings.baselines) or any(one.above is not None for one in found):
        return any(one.above for one in found)
    return bool(found)


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
