"""Who is in which team: joining by a secret, leaving, and what an organiser changes; all changes are in the trail.

Submissions stay with their team. For quotas they also count for everybody who was a member: a member who leaves
takes them along into the next team, where they stay counted after the next leaving, too. So nobody gains a submission
by changing teams.

Other platforms let nobody leave (Codabench, AIcrowd, EvalAI), and people are stuck. A quota of each person would multiply
a team's by its size.
"""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, RowMapping, Select, delete, func, insert, literal, select, union, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from proctor.core import InputError, count_of
from proctor_challenge.challenge import Challenge
from proctor_challenge.schema import account_charges, members, submissions, team_charges, teams
from proctor_challenge.states import PhaseState, phase_state
from proctor_challenge.submissions import quota_exceeded_by
from proctor_web import find_account, new_token, pseudonym_of, record_change, utc_text


class TeamError(InputError):
    """A team can't be registered, joined or left; `reason` is the key of the text that pages show."""

    def __init__(self, reason: str, location: str, *, found: str, expected: str) -> None:
        super().__init__(location, found=found, expected=expected)
        self.reason = reason


def join_team(connection: Connection, challenge: Challenge, account: int, secret: str) -> int:
    """Adds an account to the team with this secret; returns the team's id. Raises `TeamError` for an unknown secret, and
    as `add_member` does."""
    query = select(teams.c.id).where(teams.c.join_hash == secret_hash(secret), teams.c.withdrawn.is_(None))
    team = connection.execute(query).scalar()
    if team is None:
        raise TeamError("secret", "join code", found="none of a team", expected="the one that a member was given")
    _add_to(connection, challenge, account, int(team))
    record_change(connection, challenge.now(), account, "join team", f"team {team}")
    return int(team)


def add_member(connection: Connection, challenge: Challenge, by: int | None, account: int, team: int) -> None:
    """An organiser (`by`) adds an account to a team. Raises `TeamError` for a full team, an account that is in a team,
    and one with whose former teams' submissions the team would exceed a quota."""
    _add_to(connection, challenge, account, team)
    record_change(connection, challenge.now(), by, "add member", f"team {team}", _named(connection, account))


def end_membership(connection: Connection, challenge: Challenge, by: int | None, account: int) -> int:
    """Takes an account out of its team: by itself, or by an organiser (`by`). Returns the team's id. The team keeps its
    submissions and results, also without members, and its secret ends, since the account knows it. Raises `TeamError`
    for an account in no team."""
    team = _take_out(connection, account)
    action = "leave team" if by == account else "remove member"
    detail = None if by == account else _named(connection, account)
    record_change(connection, challenge.now(), by, action, f"team {team}", detail)
    return team


def move_member(connection: Connection, challenge: Challenge, by: int | None, account: int, team: int) -> None:
    """An organiser moves an account into another team. Raises `TeamError` as `end_membership` and `add_member` do; the
    transaction is to be rolled back then."""
    former = _take_out(connection, account)
    _add_to(connection, challenge, account, team)
    for action, which in (("remove member", former), ("add member", team)):  # last: others wait for the trail
        record_change(connection, challenge.now(), by, action, f"team {which}", _named(connection, account))


def _named(connection: Connection, account: int) -> dict[str, JsonValue]:
    """The account as entries of the trail name it."""
    return {"account": pseudonym_of(connection, account)}


def assign_member(connection: Connection, challenge: Challenge, by: int | None, name: str, team: int) -> None:
    """An organiser puts the account of this name into a team; from another team it is moved. Raises `InputError` for an
    unknown name, and `TeamError` for another role and as `move_member` does; the transaction is to be rolled back
    then."""
    account = find_account(connection, name)
    if account["role"] != "participant":
        raise TeamError("role", "account", found=account["role"], expected="a participant")
    former = team_of(connection, account["id"])
    change = add_member if former is None or former["id"] == team else move_member
    change(connection, challenge, by, account["id"], team)


def remove_member(connection: Connection, challenge: Challenge, by: int | None, name: str, team: int) -> None:
    """An organiser takes the account of this name out of a team. Raises `InputError` for an unknown name, and
    `TeamError` for an account that is not in this team."""
    account = find_account(connection, name)
    if not is_member(connection, account["id"], team):
        raise TeamError("no_member", "account", found=repr(name[:80]), expected="a member of the team")
    end_membership(connection, challenge, by, account["id"])


def team_of(connection: Connection, account: int) -> RowMapping | None:
    """The team of an account, also a withdrawn one; None for no team."""
    query = select(teams).join(members, members.c.team == teams.c.id).where(members.c.account == account)
    return connection.execute(query).mappings().first()


def is_member(connection: Connection, account: int, team: int) -> bool:
    """Whether an account is in a team. The membership lasts at least until this transaction ends."""
    query = select(members.c.account).where(members.c.account == account, members.c.team == team)
    return connection.execute(query.with_for_update()).first() is not None


def members_of(connection: Connection, team: int) -> list[int]:
    """The accounts of a team's members, in the order in which they joined."""
    query = select(members.c.account).where(members.c.team == team).order_by(members.c.joined, members.c.account)
    return [int(account) for account in connection.execute(query).scalars()]


def new_join_secret(connection: Connection, challenge: Challenge, account: int | None, team: int) -> str:
    """Replaces the secret of a team."""
    secret = new_token()
    connection.execute(update(teams).where(teams.c.id == team).values(join_hash=secret_hash(secret)))
    record_change(connection, challenge.now(), account, "new join secret", f"team {team}")
    return secret


def enter_team(connection: Connection, challenge: Challenge, account: int, team: int) -> None:
    """Adds an account to a team, with the submissions of its former teams. Raises `TeamError` for an account that is in a
    team."""
    taken = TeamError("member", "account", found="a member of a team", expected="an account in no team")
    if team_of(connection, account) is not None:
        raise taken
    values = {"account": account, "team": team, "joined": utc_text(challenge.now())}
    try:
        connection.execute(insert(members).values(values))
    except IntegrityError as error:  # joined another team at the same moment
        raise taken from error
    brought = select(literal(team), account_charges.c.submission)
    brought = brought.join(submissions, submissions.c.id == account_charges.c.submission)
    brought = brought.where(account_charges.c.account == account, submissions.c.team != team)
    _add_rows(connection, team_charges, brought)


def secret_hash(secret: str) -> str:
    """The hash by which a team's secret is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _take_out(connection: Connection, account: int) -> int:
    team = connection.scalar(delete(members).where(members.c.account == account).returning(members.c.team))
    if team is None:
        raise TeamError("no_member", "account", found="one in no team", expected="a member of a team")
    own = select(submissions.c.id).where(submissions.c.team == team)
    brought = select(team_charges.c.submission).where(team_charges.c.team == team)
    counted = union(own, brought).subquery()
    _add_rows(connection, account_charges, select(literal(account), counted.c[0]))
    connection.execute(update(teams).where(teams.c.id == team).values(join_hash=secret_hash(new_token())))
    return int(team)


def _add_to(connection: Connection, challenge: Challenge, account: int, team: int) -> None:
    lock = select(teams.c.id).where(teams.c.id == team).with_for_update(key_share=True)
    connection.execute(lock)  # no two take the last free seat (PostgreSQL); uploads go on, which refer to the team
    limit = challenge.settings.teams.members
    count = select(func.count()).where(members.c.team == team)
    if connection.execute(count).scalar_one() >= limit:
        expected = f"fewer than {limit}: nobody else can join"
        raise TeamError("full", "team", found=count_of(limit, "member"), expected=expected)
    now = challenge.now()
    for phase in challenge.settings.phases:
        is_over = phase_state(connection, phase, now) is PhaseState.CLOSED
        if not is_over and quota_exceeded_by(connection, account, team, phase, now):
            expected = "no more in both teams together than the quota of a team allows"
            raise TeamError("quota", "phase " + phase.name, found="submissions of a former team", expected=expected)
    enter_team(connection, challenge, account, team)


def _add_rows(connection: Connection, table: Any, rows: Select[Any]) -> None:
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    found = [tuple(row) for row in connection.execute(rows)]
    if found:
        names = [column.name for column in table.columns]
        values = [dict(zip(names, row, strict=True)) for row in found]
        connection.execute(dialect.insert(table).on_conflict_do_nothing(), values)
