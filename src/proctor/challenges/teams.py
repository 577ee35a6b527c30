"""Teams. Members join by a secret, whose hash is stored; all changes are in the trail."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from proctor.challenges.challenge import Challenge
from proctor.challenges.schema import members, teams
from proctor.core import InputError, count_of, kept_text
from proctor.web import new_token, record_change, utc_text

_MARKS = " -_.&'()+"


class TeamError(InputError):
    """A team can't be registered or joined; `reason` is the key of the text that pages show."""

    def __init__(self, reason: str, place: str, *, found: str, expected: str) -> None:
        super().__init__(place, found=found, expected=expected)
        self.reason = reason


@dataclass(frozen=True)
class TeamEntry:
    """The registration of a team. `terms` is the hash of the terms that it agreed to (`Challenge.terms`), `eligible`
    whether it is eligible for awards, `listed` whether its results may be public."""

    name: str
    institution: str
    country: str
    terms: str
    eligible: bool = True
    listed: bool = True


def register_team(
    connection: Connection, challenge: Challenge, account: int | None, entry: TeamEntry
) -> tuple[int, str]:
    """Registers a team with this account as its first member (None: without members, from the shell). Returns its id
    and the secret by which others join. Raises `TeamError` for invalid values and a name that is taken."""
    name, institution = _team_name(entry.name), _line(entry.institution, "institution")
    _check_country(challenge, entry.country)
    if entry.terms != challenge.terms:
        raise TeamError("terms", "terms", found="other terms", expected="agreement to the terms as they are now")
    secret, now = new_token(), utc_text(challenge.now())
    values = {
        "name": name,
        "folded": name.casefold(),
        "institution": institution,
        "country": entry.country,
        "eligible": int(entry.eligible),
        "listed": int(entry.listed),
        "terms": entry.terms,
        "join_hash": _hash(secret),
        "created": now,
    }
    taken = TeamError("taken", "team", found=f"{name!r}, which there is already", expected="a new name")
    if connection.execute(select(teams.c.id).where(teams.c.folded == values["folded"])).first():
        raise taken
    try:
        team = int(connection.execute(insert(teams).values(values).returning(teams.c.id)).scalar_one())
    except IntegrityError as error:  # registered by another process at the same moment
        raise taken from error
    record_change(connection, challenge.now(), account, "register team", f"team {team}", {"country": entry.country})
    if account is not None:
        _add_member(connection, challenge, account, team)
    return team, secret


def join_team(connection: Connection, challenge: Challenge, account: int, secret: str) -> int:
    """Adds an account to the team with this secret; returns the team's id. Raises `TeamError` for an unknown secret, a
    full team, and an account that is in a team."""
    query = select(teams.c.id).where(teams.c.join_hash == _hash(secret), teams.c.withdrawn.is_(None))
    team = connection.execute(query.with_for_update()).scalar()  # two can't take the last place (PostgreSQL)
    if team is None:
        raise TeamError("secret", "join code", found="none of a team", expected="the one that a member was given")
    count = select(func.count()).where(members.c.team == team)
    limit = challenge.settings.teams.members
    if connection.execute(count).scalar_one() >= limit:
        expected = f"fewer than {limit}: nobody else can join"
        raise TeamError("full", "team", found=count_of(limit, "member"), expected=expected)
    _add_member(connection, challenge, account, int(team))
    record_change(connection, challenge.now(), account, "join team", f"team {team}")
    return int(team)


def team_of(connection: Connection, account: int) -> RowMapping | None:
    """The team of an account, also a withdrawn one; None for no team."""
    query = select(teams).join(members, members.c.team == teams.c.id).where(members.c.account == account)
    return connection.execute(query).mappings().first()


def all_teams(connection: Connection) -> list[RowMapping]:
    """All teams, by name."""
    return list(connection.execute(select(teams).order_by(teams.c.folded)).mappings())


def members_of(connection: Connection, team: int) -> list[int]:
    """The accounts of a team's members, in the order in which they joined."""
    query = select(members.c.account).where(members.c.team == team).order_by(members.c.joined, members.c.account)
    return [int(account) for account in connection.execute(query).scalars()]


def new_join_secret(connection: Connection, challenge: Challenge, account: int | None, team: int) -> str:
    """Replaces the secret of a team."""
    secret = new_token()
    connection.execute(update(teams).where(teams.c.id == team).values(join_hash=_hash(secret)))
    record_change(connection, challenge.now(), account, "new join secret", f"team {team}")
    return secret


def withdraw_team(
    connection: Connection, challenge: Challenge, account: int | None, team: int, *, undo: bool = False
) -> None:
    """Withdraws a team: it can't submit, and no board shows it. Its submissions are kept. `undo` readmits it."""
    withdrawn = None if undo else utc_text(challenge.now())
    connection.execute(update(teams).where(teams.c.id == team).values(withdrawn=withdrawn))
    action = "readmit team" if undo else "withdraw team"
    record_change(connection, challenge.now(), account, action, f"team {team}")


def set_eligible(
    connection: Connection, challenge: Challenge, account: int | None, team: int, *, eligible: bool
) -> None:
    """Rules whether a team is eligible for awards."""
    connection.execute(update(teams).where(teams.c.id == team).values(eligible=int(eligible)))
    record_change(connection, challenge.now(), account, "set eligible", f"team {team}", {"eligible": eligible})


def _add_member(connection: Connection, challenge: Challenge, account: int, team: int) -> None:
    taken = TeamError("member", "account", found="a member of a team", expected="an account in no team")
    if team_of(connection, account) is not None:
        raise taken
    values = {"account": account, "team": team, "joined": utc_text(challenge.now())}
    try:
        connection.execute(insert(members).values(values))
    except IntegrityError as error:  # joined another team at the same moment
        raise taken from error


def _line(text: str, what: str, max_length: int = 200) -> str:
    """A normalised line of text. Raises `TeamError` for empty or long lines, and for invisible characters."""
    line = " ".join(unicodedata.normalize("NFKC", kept_text(text)).split())
    if not 0 < len(line) <= max_length or any(unicodedata.category(one).startswith("C") for one in line):
        reason = "name" if what == "team" else what
        raise TeamError(reason, what, found=repr(line[:80]), expected=f"one line of at most {max_length} characters")
    return line


def _team_name(text: str) -> str:
    """A normalised team name: letters of one script, so that no two names look the same.

    >>> _team_name("  Hand  Surgeons 2 ")
    'Hand Surgeons 2'
    """
    name = _line(text, "team", 80)
    letters = [one for one in name if one.isalpha()]
    scripts = {unicodedata.name(one, "?").split()[0] for one in letters}
    alike = len(scripts) <= 1 or scripts <= {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}
    fit = all(one.isalnum() or unicodedata.combining(one) or one in _MARKS for one in name)
    if not (letters and alike and fit):
        expected = f"letters of one script, digits and {_MARKS.strip()}"
        raise TeamError("name", "team", found=repr(name), expected=expected)
    return name


def _check_country(challenge: Challenge, country: str) -> None:
    if not (len(country) == 2 and country.isascii() and country.isupper()):
        raise TeamError("country", "country", found=repr(country[:20]), expected="two letters, such as AT (ISO 3166)")
    if country in challenge.settings.teams.excluded_countries:
        expected = "another one: teams from there may not take part"
        raise TeamError("excluded", "country", found=country, expected=expected)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
