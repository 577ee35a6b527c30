"""A challenge on simulated questions without media, with teams; its clock stands, and its seeds count up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from sqlalchemy import insert

from proctor_challenge.challenge import Access, Challenge
from proctor_challenge.states import PhaseState, set_phase
from proctor_challenge.submissions import HandIn, hand_in
from proctor_challenge.teams import TeamEntry, register_team
from proctor_web.schema import accounts

START = datetime(2026, 11, 23, 8, tzinfo=UTC)
SETTINGS = """
title: Trays
benchmark: simulated
phases:
  - name: test
    questions: public/test
    sealed: sealed/test
    condition: text-only
    accepts: [file, image]
    closes: 2026-12-24T00:00:00Z
    quota: {scored: 2, attempted: 4}
"""
SHA = "0" * 64


class StandingClock:
    """A clock that stands until a test moves it."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        return self.at

    def pass_by(self, **spans: float) -> None:
        self.at += timedelta(**spans)


def challenge_folder(folder: Path, settings: str = SETTINGS) -> Path:
    """A folder with both parts, whose phase has no questions yet."""
    for part in ("public/test", "sealed/test", "uploads"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "challenge.yaml").write_text(settings)
    return folder


def opened(
    folder: Path, access: Access = "organiser", store: str | None = None, now: Callable[[], datetime] | None = None
) -> Challenge:
    """The challenge of a folder, with open phases; its seeds count up."""
    found = Challenge.open(folder, access, store=store, same_user=True, now=now or StandingClock())
    with found.writing() as connection:
        for phase in found.settings.phases:
            set_phase(connection, phase.name, PhaseState.OPEN, found.now(), checks=())
    return replace(found, draw=count(1).__next__)


def account(challenge: Challenge, name: str) -> int:
    row = {"name": name, "pseudonym": name, "role": "participant", "password": "", "language": "en", "created": ""}
    with challenge.writing() as connection:
        return int(connection.execute(insert(accounts).values(row).returning(accounts.c.id)).scalar_one())


def team(challenge: Challenge, name: str = "Hand Surgeons") -> int:
    """A team without members."""
    entry = TeamEntry(name, "Clinic", "AT", challenge.terms)
    with challenge.writing() as connection:
        return register_team(connection, challenge, None, entry)[0]


def handed_in(challenge: Challenge, of: int, phase: str = "test", upload: str = SHA) -> int:
    """A file of a team, received."""
    with challenge.writing() as connection:
        entry = HandIn(of, 1, phase, "file", upload, 10, "answers.json", ".json")
        return hand_in(connection, challenge, entry)
