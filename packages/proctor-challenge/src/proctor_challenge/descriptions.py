"""Descriptions of methods: a text or a PDF that a team hands in for a phase. The newest one counts.

What a team hands in may be hostile: it is kept as bytes under its hash, and only ever given out as a file to save.
"""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from proctor.core import InputError, kept_text, replacing
from proctor.interchange import file_hash
from proctor_challenge.challenge import Challenge
from proctor_challenge.membership import is_member
from proctor_challenge.schema import descriptions, teams
from proctor_challenge.settings import Phase, size_of
from proctor_challenge.states import PhaseState, phase_state
from proctor_challenge.teams import named_team
from proctor_web import record_change, utc_text

DAILY = 20
"""The maximum number of descriptions of a team in a phase within 24 hours."""

DESCRIBED, RULED = "submit description", "rule on description"
"""The entries of the trail, which may change who has a rank."""

_FOLDER = "descriptions"
_SHELL = 0  # the account of what an organiser hands in
_PDF, _PDF_END = b"%PDF-", b"%%EOF"
_PLAIN = "\t\n\r\f"


class DescriptionError(InputError):
    """A description is not accepted; `reason` is the key of the text that pages show."""

    def __init__(self, reason: str, *, found: str, expected: str) -> None:
        super().__init__("description", found=found, expected=expected)
        self.reason = reason


@dataclass(frozen=True)
class DescriptionEntry:
    """What a team hands in. `upload` is the SHA-256 of the bytes."""

    team: int
    account: int
    phase: str
    kind: Literal["text", "pdf"]
    upload: str
    size: int
    name: str


def kind_of_description(file: Path) -> Literal["text", "pdf"]:
    """What a file is, by its content. Raises `DescriptionError` for anything but a PDF and plain text in UTF-8."""
    content = file.read_bytes()
    if content.startswith(_PDF) and _PDF_END in content:
        return "pdf"
    expected = "a PDF, or plain text in UTF-8"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DescriptionError("kind", found="another kind of file", expected=expected) from error
    if any(unicodedata.category(one) == "Cc" and one not in _PLAIN for one in text):
        raise DescriptionError("kind", found="control characters", expected=expected)
    if not text.strip():
        raise DescriptionError("kind", found="no text", expected=expected)
    return "text"


def keep_description(challenge: Challenge, entry: DescriptionEntry, location: Callable[[Path], object]) -> int:
    """Records a description and calls `location` to store its bytes under the path that it gets. Returns its id. Raises
    `DescriptionError` for a phase that takes none (now), and for too many."""
    now, phase = challenge.now(), challenge.phase(entry.phase)
    folder = challenge.uploads / _FOLDER
    folder.mkdir(exist_ok=True)
    with challenge.writing() as connection:
        if entry.account != _SHELL and not is_member(connection, entry.account, entry.team):
            raise DescriptionError("left", found="no member of the team", expected="one of its members")
        if connection.execute(select(teams.c.withdrawn).where(teams.c.id == entry.team)).scalar_one() is not None:
            raise DescriptionError(
                "withdrawn", found="one of a team that was withdrawn", expected="one of another team"
            )
        _check_time(connection, phase, now)
        since = utc_text(now - timedelta(days=1))
        own = (descriptions.c.team == entry.team, descriptions.c.phase == phase.name)
        query = select(func.count()).select_from(descriptions).where(*own, descriptions.c.submitted > since)
        if connection.execute(query).scalar_one() >= DAILY:
            raise DescriptionError("too_many", found=f"{DAILY} in 24 hours", expected="fewer")
        values = {
            "team": entry.team,
            "account": entry.account,
            "phase": phase.name,
            "kind": entry.kind,
            "name": kept_text(entry.name)[:200],
            "upload": entry.upload,
            "bytes": entry.size,
            "submitted": utc_text(now),
        }
        former = description_of(connection, phase, entry.team)
        made = int(connection.execute(insert(descriptions).values(values).returning(descriptions.c.id)).scalar_one())
        location(folder / entry.upload)
        if former is not None:
            _remove_unused(connection, challenge, former["upload"])
        by = entry.account or None
        detail = {"phase": phase.name, "sha256": entry.upload}
        record_change(connection, now, by, DESCRIBED, f"team {entry.team}", detail)
    return made


def _check_time(connection: Connection, phase: Phase, now: datetime) -> None:
    if phase_state(connection, phase, now) is PhaseState.UNOPENED:
        raise DescriptionError("early", found="a phase that nobody has opened", expected="an opened one")
    due = phase.description.due
    if due is not None and now >= due:
        raise DescriptionError("late", found=f"a time after {utc_text(due)}", expected="one before")


def _remove_unused(connection: Connection, challenge: Challenge, upload: str) -> None:
    """Deletes the bytes of a description that was replaced, unless they are those of a newest one."""
    newest = select(func.max(descriptions.c.id)).group_by(descriptions.c.team, descriptions.c.phase)
    query = select(descriptions.c.id).where(descriptions.c.upload == upload, descriptions.c.id.in_(newest))
    if connection.execute(query.limit(1)).first() is None:
        (challenge.uploads / _FOLDER / upload).unlink(missing_ok=True)


def describe(challenge: Challenge, phase: str, team: str, file: Path) -> int:
    """Hands in the description of a team's method, from the shell. Returns its id. Raises `InputError` for an unknown
    team or file, and `DescriptionError`."""
    challenge.phase(phase)
    with challenge.reading() as connection:
        number = int(named_team(connection, team)["id"])
    if not file.is_file():
        raise InputError(file, found="no such file", expected="a PDF, or plain text in UTF-8")
    most = challenge.settings.uploads.description
    size = file.stat().st_size
    if size > size_of(most):
        raise DescriptionError("size", found=f"{size:,} bytes", expected=f"at most {most}")

    def copied(to: Path) -> None:
        with replacing(to) as draft:
            shutil.copyfile(file, draft)
            draft.chmod(0o640)

    kind, digest = kind_of_description(file), file_hash(file)
    return keep_description(challenge, DescriptionEntry(number, _SHELL, phase, kind, digest, size, file.name), copied)


def description_of(connection: Connection, phase: Phase, team: int) -> RowMapping | None:
    """The description of a team that counts: its newest one, if it arrived in time; None without one."""
    return described(connection, phase).get(team)


def all_descriptions(connection: Connection, phases: Sequence[Phase], team: int) -> dict[str, RowMapping]:
    """The descriptions of a team that count, by phase."""
    found = {phase.name: description_of(connection, phase, team) for phase in phases}
    return {name: row for name, row in found.items() if row is not None}


def described(connection: Connection, phase: Phase) -> Mapping[int, RowMapping]:
    """The description that counts of each team that has one, by the team's id."""
    query = select(descriptions).where(descriptions.c.phase == phase.name).order_by(descriptions.c.id)
    if phase.description.due is not None:  # it may have been moved forward
        query = query.where(descriptions.c.submitted < utc_text(phase.description.due))
    return {int(row["team"]): row for row in connection.execute(query).mappings()}


def description_fault(row: RowMapping | None) -> str:
    """What is wrong with a team's description: "none", the reason why it does not suffice, or ""."""
    if row is None:
        return "none"
    return str(row["insufficient"] or "")


def undescribed(connection: Connection, phase: Phase, now: datetime) -> Callable[[int], bool]:
    """Whether a team (by its id) has no rank now because its description is missing or insufficient."""
    if phase.description.required_for != "ranking" or not phase.description.holds(now):
        return lambda _: False
    known = described(connection, phase)
    return lambda team: bool(description_fault(known.get(team)))


def rule_on_description(
    connection: Connection, challenge: Challenge, account: int | None, phase: str, team: int, why: str
) -> None:
    """Rules that a team's description does not suffice, with a reason that the team sees; "" accepts it again. Raises
    `InputError` for a team without one."""
    row = description_of(connection, challenge.phase(phase), team)
    if row is None:
        raise InputError("description", found="none", expected="one of this team in this phase")
    kept = kept_text(why).strip()[:1000] or None
    connection.execute(update(descriptions).where(descriptions.c.id == row["id"]).values(insufficient=kept))
    detail = {"phase": phase, "insufficient": kept}
    record_change(connection, challenge.now(), account, RULED, f"team {team}", detail)


def description_file(challenge: Challenge, row: RowMapping) -> Path:
    """The file with the bytes of a description. Raises `InputError` when they are gone."""
    file = challenge.uploads / _FOLDER / str(row["upload"])
    if not file.is_file():
        raise InputError(file, found="no such file", expected="the bytes of a description")
    return file
