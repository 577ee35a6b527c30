"""The pages of a challenge on simulated FOCUS questions: three phases, people in teams, and browsers without a
window."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import httpx2
from starlette.testclient import TestClient

from proctor_challenge.challenge import Challenge
from proctor_challenge.folder import NewChallenge, new_challenge
from proctor_challenge.membership import join_team
from proctor_challenge.pages.site import ChallengeSite
from proctor_challenge.states import PhaseState, set_phase
from proctor_challenge.teams import TeamEntry, register_team
from tests.support.challenge_data import focus_answers, focus_data
from tests.support.web_site import Clock, browser, csrf_of, join, log_in

HIDDEN = "pre-evaluation"


@cache
def made_folder() -> Path:
    """A challenge made once: eight videos of ten questions, two for training, two for the pre-evaluation, four for the
    test."""
    folder = Path(mkdtemp(prefix="proctor-challenge-"))
    data = focus_data(folder / "data", questions=10)
    new_challenge(folder / "challenge", NewChallenge("focus", data, track="procedure"))
    return folder / "challenge"


def challenge_site(folder: Path, settings: Mapping[str, str] | None = None, store: str | None = None) -> ChallengeSite:
    """A copy with all phases open and a clock of its own; texts of its `challenge.yaml` may be replaced."""
    shutil.copytree(made_folder(), folder, dirs_exist_ok=True)
    file = folder / "challenge.yaml"
    text = file.read_text()
    for old, new in (settings or {}).items():
        assert old in text, text
        text = text.replace(old, new)
    file.write_text(text)
    clock = Clock()
    challenge = replace(Challenge.open(folder, "web", store=store, same_user=True, now=clock), draw=count(1).__next__)
    with challenge.writing() as connection:
        for phase in challenge.settings.phases:
            set_phase(connection, phase.name, PhaseState.OPEN, clock(), checks=())
    return ChallengeSite(
        folder=folder,
        title=challenge.settings.title or "Simulated challenge",
        engine=challenge.engine,
        key="k" * 43,
        hosts=("review.test",),
        now=clock,
        challenge=challenge,
    )


def team_of_two(site: ChallengeSite, name: str, *people: str, **said: Any) -> int:
    """A team whose members have accounts; its id."""
    challenge = site.challenge
    ids = [join(site, one, "participant") for one in people]
    with challenge.writing() as connection:
        entry = TeamEntry(name, "Clinic", "AT", challenge.terms, **said)
        team, secret = register_team(connection, challenge, ids[0], entry)
        for one in ids[1:]:
            join_team(connection, challenge, one, secret)
    return team


def logged_in(site: ChallengeSite, name: str) -> TestClient:
    """A browser of somebody who has an account."""
    client = browser(site)
    assert log_in(client, name).status_code == 303
    return client


def posted(client: TestClient, path: str, page: str = "/", **fields: str) -> httpx2.Response:
    """Sends a form of a page."""
    return client.post(path, data={"csrf": csrf_of(client.get(page))} | fields)


def handed(
    client: TestClient,
    content: bytes,
    phase: str = HIDDEN,
    kind: str = "file",
    file_name: str = "answers.json",
    **fields: str,
) -> httpx2.Response:
    """Hands in a file by the phase's page."""
    csrf = csrf_of(client.get(f"/phase/{phase}"))
    said = {"csrf": csrf, "name": "first try"} | fields
    return client.post(f"/phase/{phase}/{kind}", data=said, files={"upload": (file_name, content)})


def answers(site: ChallengeSite, phase: str = HIDDEN, skill: float = 0.7) -> bytes:
    """Answers to a phase's questions that fit."""
    settings = site.challenge.settings.phase(phase)
    keys = site.folder / (settings.sealed or settings.questions)
    file = focus_answers(site.folder / settings.questions, keys, site.folder / "made.json", skill)
    made = file.read_bytes()
    file.unlink()
    return made
