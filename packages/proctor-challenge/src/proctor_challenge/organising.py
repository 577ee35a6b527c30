"""What organisers do from the shell: teams, submissions, receipts and descriptions, by their names. The functions below,
and the entries of the trail, are those of the pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from proctor.core import InputError, UsageError, one_of
from proctor_challenge.board_pages import passed_gate
from proctor_challenge.challenge import Challenge
from proctor_challenge.descriptions import (
    describe,
    described,
    description_fault,
    description_file,
    description_of,
    rule_on_description,
)
from proctor_challenge.membership import assign_member, members_of, new_join_secret, remove_member
from proctor_challenge.receipts import SignedReceipt, public_key, receipt_of
from proctor_challenge.schema import submissions, teams
from proctor_challenge.states import SubmissionState
from proctor_challenge.submissions import disqualify, submissions_of
from proctor_challenge.teams import TeamEntry, all_teams, named_team, register_team, set_eligible, withdraw_team
from proctor_challenge.uploads import cancel_upload
from proctor_web import account_names

_NUMBERED = re.compile(r"(?P<team>.+)#(?P<number>[0-9]{1,9})")


@dataclass(frozen=True)
class TeamChange:
    """What a change of a team needs: of a new one the `institution`, the `country` (two letters), whether it `agreed` to
    the terms, is `not_eligible` for awards, and its results may not be public (`not_listed`); a reason (`why`); or the
    name of an account (`member`)."""

    institution: str = ""
    country: str = ""
    agreed: bool = False
    not_eligible: bool = False
    not_listed: bool = False
    why: str = ""
    member: str = ""


def change_team(challenge: Challenge, action: str, name: str, change: TeamChange = TeamChange()) -> str:
    """Changes a team; returns what was done, in a sentence. The actions are those of `TEAM_ACTIONS`. Raises `InputError`
    for an unknown team or account, `TeamError` for what the rules do not allow, and `UsageError` for what is missing."""
    if action not in TEAM_ACTIONS:
        raise UsageError(f"ACTION {action!r} is unknown: choose {one_of([*TEAM_ACTIONS], action)}")
    with challenge.writing() as connection:
        return TEAM_ACTIONS[action](connection, challenge, name, change)


def _add(connection: Connection, challenge: Challenge, name: str, change: TeamChange) -> str:
    if challenge.settings.terms and not change.agreed:
        raise UsageError(f"--agreed is missing. Give it if the team agreed to the terms ({challenge.settings.terms}).")
    country = change.country.strip().upper()
    rights = (not change.not_eligible, not change.not_listed)
    entry = TeamEntry(name, change.institution, country, challenge.terms, *rights)
    _, secret = register_team(connection, challenge, None, entry)
    return f"{name} is registered. Its members join with the code {secret}"


def _withdraw(connection: Connection, challenge: Challenge, name: str, _: TeamChange) -> str:
    team = named_team(connection, name)
    withdraw_team(connection, challenge, None, team["id"])
    return f"{team['name']} is withdrawn"


def _disqualify(connection: Connection, challenge: Challenge, name: str, change: TeamChange) -> str:
    team = named_team(connection, name)
    withdraw_team(connection, challenge, None, team["id"], why=_reason(change.why))
    return f"{team['name']} is disqualified"


def _readmit(connection: Connection, challenge: Challenge, name: str, _: TeamChange) -> str:
    team = named_team(connection, name)
    withdraw_team(connection, challenge, None, team["id"], undo=True)
    return f"{team['name']} is readmitted"


def _eligible(connection: Connection, challenge: Challenge, name: str, _: TeamChange) -> str:
    team = named_team(connection, name)
    set_eligible(connection, challenge, None, team["id"], eligible=True)
    return f"{team['name']} is eligible for awards"


def _ineligible(connection: Connection, challenge: Challenge, name: str, _: TeamChange) -> str:
    team = named_team(connection, name)
    set_eligible(connection, challenge, None, team["id"], eligible=False)
    return f"{team['name']} is not eligible for awards"


def _join(connection: Connection, challenge: Challenge, name: str, change: TeamChange) -> str:
    team, member = named_team(connection, name), _member(change)
    assign_member(connection, challenge, None, member, team["id"])
    return f"{member} is a member of {team['name']}"


def _remove(connection: Connection, challenge: Challenge, name: str, change: TeamChange) -> str:
    team, member = named_team(connection, name), _member(change)
    remove_member(connection, challenge, None, member, team["id"])
    return f"{member} is no longer a member of {team['name']}"


def _code(connection: Connection, challenge: Challenge, name: str, _: TeamChange) -> str:
    team = named_team(connection, name)
    return f"Members of {team['name']} join with the code {new_join_secret(connection, challenge, None, team['id'])}"


def _member(change: TeamChange) -> str:
    if not change.member.strip():
        raise UsageError("--member is missing. Give the name of an account (proctor serve users list).")
    return change.member.strip()


def _reason(why: str) -> str:
    if not why.strip():
        raise UsageError("--why is missing. Give the reason; the team sees it.")
    return why.strip()


TEAM_ACTIONS: MappingProxyType[str, Callable[[Connection, Challenge, str, TeamChange], str]] = MappingProxyType(
    {
        "add": _add,
        "withdraw": _withdraw,
        "disqualify": _disqualify,
        "readmit": _readmit,
        "eligible": _eligible,
        "ineligible": _ineligible,
        "join": _join,
        "remove": _remove,
        "code": _code,
    }
)
"""The changes of a team by name: `join` and `remove` change its members, `code` replaces the code by which they join."""


def team_rows(connection: Connection, challenge: Challenge) -> list[dict[str, Any]]:
    """All teams by name: members, awards, state, submissions, the phases whose gate they passed, and the phases for which
    there is a description that suffices."""
    phases = challenge.settings.phases
    gated = [phase.name for phase in phases if phase.gate is not None]
    known = {phase.name: described(connection, phase) for phase in phases}
    rows: list[dict[str, Any]] = []
    for team in all_teams(connection):
        number = int(team["id"])
        own = submissions_of(connection, number)
        row = {name: team[name] for name in ("name", "institution", "country")}
        row |= {"members": account_names(connection, members_of(connection, number))}
        row |= {"eligible": bool(team["eligible"]), "listed": bool(team["listed"]), "created": team["created"]}
        row |= {"withdrawn": team["withdrawn"] or "", "disqualified": team["disqualified"] or ""}
        row |= {"submissions": len(own), "results": sum(int(one["scored"]) for one in own)}
        row["passed"] = [name for name in gated if passed_gate(connection, challenge.settings, name, number)]
        row["described"] = [name for name, rows in known.items() if not description_fault(rows.get(number))]
        rows.append(row)
    return rows


def submission_rows(
    connection: Connection, challenge: Challenge, phase: str = "", team: str = "", state: str = ""
) -> list[dict[str, Any]]:
    """The submissions, oldest first, of a phase, a team, or in a state. Raises `InputError` for an unknown one."""
    query = select(submissions, teams.c.name.label("team_name")).join(teams, teams.c.id == submissions.c.team)
    if phase:
        query = query.where(submissions.c.phase == challenge.phase(phase).name)
    if team:
        query = query.where(submissions.c.team == named_team(connection, team)["id"])
    if state:
        known = [one.value for one in SubmissionState]
        if state not in known:
            raise InputError("state", found=repr(state[:40]), expected=one_of(known, state))
        query = query.where(submissions.c.state == state)
    names = ("phase", "kind", "state", "reason", "bytes", "name", "submitted", "upload")
    rows = []
    for row in connection.execute(query.order_by(submissions.c.id)).mappings():
        told = row["log"] or {}
        kept = {"submission": f"{row['team_name']}#{row['number']}"} | {name: row[name] for name in names}
        wrong = told.get("wrong", {})
        kept |= {"wrong": wrong.get("count", 0), "wrong_lines": wrong.get("lines", [])}
        kept |= {"problems": told.get("problems", [])}
        rows.append(kept | {"disqualified": row["disqualified"] or ""})
    return rows


def named_submission(connection: Connection, challenge: Challenge, phase: str, name: str) -> RowMapping:
    """The submission of a phase with a name such as "Hand Surgeons#2". Raises `InputError` for an unknown one."""
    found = _NUMBERED.fullmatch(name.strip())
    if found is None:
        raise InputError("submission", found=repr(name[:80]), expected="TEAM#NUMBER, such as Hand Surgeons#2")
    team, number = named_team(connection, found["team"]), int(found["number"])
    rows = submissions_of(connection, team["id"], challenge.phase(phase).name)
    row = next((row for row in rows if row["number"] == number), None)
    if row is None:
        numbers = ", ".join(str(row["number"]) for row in reversed(rows[:20])) or "none"
        expected = f"a submission of {team['name']} in {phase}: {numbers}"
        raise InputError("submission", found=f"#{number}", expected=expected)
    return row


SUBMISSION_ACTIONS = ("cancel", "disqualify", "reinstate")
"""What an organiser does with a submission."""


def change_submission(challenge: Challenge, action: str, phase: str, name: str, why: str = "") -> str:
    """Cancels, disqualifies or reinstates a submission ("TEAM#NUMBER"); returns what was done. Raises `InputError` for an
    unknown submission, `UsageError` without a reason, and `StaleError` when it can no longer be cancelled."""
    if action not in SUBMISSION_ACTIONS:
        raise UsageError(f"ACTION {action!r} is unknown: choose {one_of([*SUBMISSION_ACTIONS], action)}")
    with challenge.reading() as connection:
        row = named_submission(connection, challenge, phase, name)
    if action == "cancel":
        cancel_upload(challenge, row["id"], organiser=True)
        return f"{name} is cancelled"
    kept = _reason(why) if action == "disqualify" else ""
    with challenge.writing() as connection:
        disqualify(connection, challenge, None, row["id"], kept, undo=action == "reinstate")
    return f"{name} is {'disqualified' if action == 'disqualify' else 'reinstated'}"


def signed_receipt(challenge: Challenge, phase: str, name: str) -> SignedReceipt:
    """The receipt of a submission ("TEAM#NUMBER"). Raises `InputError` for one without a result."""
    with challenge.reading() as connection:
        row = named_submission(connection, challenge, phase, name)
        found = receipt_of(connection, row["id"], public_key(challenge.folder))
    if found is None:
        raise InputError(f"submission {name}", found=f"no receipt ({row['state']})", expected="a result")
    return found


DESCRIPTION_ACTIONS = ("submit", "save", "reject", "accept")
"""What an organiser does with the description of a method."""


def change_description(
    challenge: Challenge, action: str, phase: str, team: str, file: Path | None = None, why: str = ""
) -> str:
    """Hands in a team's description from a file, saves it to one, or rules that it does not suffice (`reject`, with a
    reason) or does (`accept`); returns what was done. Raises `InputError` for an unknown team, without a description, and
    for a file that is there, and `UsageError` for what is missing."""
    if action not in DESCRIPTION_ACTIONS:
        raise UsageError(f"ACTION {action!r} is unknown: choose {one_of([*DESCRIPTION_ACTIONS], action)}")
    if action in {"submit", "save"}:
        if file is None:
            raise UsageError("--file is missing. Give the description: a PDF, or plain text in UTF-8.")
        if action == "submit":
            describe(challenge, phase, team, file)
            return f"{team} handed in a description for {phase}"
        return _save(challenge, phase, team, file)
    with challenge.writing() as connection:
        found, reason = named_team(connection, team), _reason(why) if action == "reject" else ""
        rule_on_description(connection, challenge, None, phase, found["id"], reason)
    return f"The description of {found['name']} for {phase} {'does not suffice' if reason else 'suffices'}"


def _save(challenge: Challenge, phase: str, team: str, file: Path) -> str:
    with challenge.reading() as connection:
        row = description_of(connection, challenge.phase(phase), named_team(connection, team)["id"])
    if row is None:
        raise InputError("description", found="none", expected=f"one of {team} in {phase}")
    content = description_file(challenge, row).read_bytes()
    try:
        with file.open("xb") as out:
            out.write(content)
    except FileExistsError:
        raise InputError(file, found="a file that is there", expected="a new one") from None
    return f"{file} written: {row['kind']}, {row['bytes']:,} bytes"
