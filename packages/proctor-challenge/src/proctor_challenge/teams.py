"""Teams: registering, withdrawing, awards. Members join by a secret, whose hash is stored (`membership`). All changes
are in the trail."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, insert, select, update
from sqlalchemy.exc import IntegrityError

from proctor.core import InputError, kept_text, one_of
from proctor_challenge.challenge import Challenge
from proctor_challenge.membership import TeamError, enter_team, secret_hash
from proctor_challenge.schema import teams
from proctor_web import new_token, record_change, utc_text

_MARKS = " -_.&'()+"


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
    """Registers a team with this account as its first member (None: without members, by an organiser). Returns its id
    and the secret by which others join. Raises `TeamError` for invalid values, a name that is taken, and an account
    outside the dates of registration."""
    if account is not None and not challenge.settings.teams.registers(challenge.now()):
        raise TeamError("registration", "team", found="a date without registration", expected="one within its dates")
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
        "join_hash": secret_hash(secret),
        "created": now,
    }
    taken = TeamError("taken", "team", found=f"{name!r}, which there is already", expected="a new name")
    if connection.execute(select(teams.c.id).where(teams.c.folded == values["folded"])).first():
        raise taken
    try:
        team = int(connection.execute(insert(teams).values(values).returning(teams.c.id)).scalar_one())
    except IntegrityError as error:  # registered by another process at the same moment
        raise taken from error
    if account is not None:
        enter_team(connection, challenge, account, team)
    record_change(connection, challenge.now(), account, "register team", f"team {team}", {"country": entry.country})
    return team, secret


def named_team(connection: Connection, name: str) -> RowMapping:
    """The team of this name, in any case. Raises `InputError` for an unknown name."""
    found = connection.execute(select(teams).where(teams.c.folded == name.strip().casefold())).mappings().first()
    if found is None:
        known = list(connection.execute(select(teams.c.name).order_by(teams.c.folded)).scalars())
        expected = one_of(known, name) if known else "a team of the challenge: there is none yet"
        raise InputError("team", found=repr(name[:80]), expected=expected)
    return found


def all_teams(connection: Connection) -> list[RowMapping]:
    """All teams, by name."""
    return list(connection.execute(select(teams).order_by(teams.c.folded)).mappings())


def withdraw_team(
    connection: Connection, challenge: Challenge, account: int | None, team: int, *, why: str = "", undo: bool = False
) -> None:
    """Withdraws a team: it can't submit, and no board shows it. Its submissions are kept. With the reason `why`, which
    the team sees, it is disqualified. `undo` readmits it."""
    withdrawn, kept = None if undo else utc_text(challenge.now()), kept_text(why)[:1000] or None
    values = {"withdrawn": withdrawn, "disqualified": None if undo else kept}
    connection.execute(update(teams).where(teams.c.id == team).values(values))
    action = "readmit team" if undo else "withdraw team"
    record_change(connection, challenge.now(), account, action, f"team {team}", {"why": kept} if kept else None)


def set_eligible(
    connection: Connection, challenge: Challenge, account: int | None, team: int, *, eligible: bool
) -> None:
    """Rules whether a team is eligible for awards."""
    connection.execute(update(teams).where(teams.c.id == team).values(eligible=int(eligible)))
    record_change(connection, challenge.now(), account, "set eligible", f"team {team}", {"eligible": eligible})


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
    scripts = {unicodedata.name(letter, "?").split()[0] for letter in letters}
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
