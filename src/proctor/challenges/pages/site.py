"""A challenge as a site: who is served what stands in the modules beside this one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from re import Pattern
from typing import TYPE_CHECKING

from proctor.challenges.challenge import Challenge
from proctor.challenges.settings import CHALLENGE_FILE, read_challenge, size_of
from proctor.web import AccountsPlace, Listening, Site, signing_key

if TYPE_CHECKING:
    from fastapi import FastAPI

KEY_FILE = "challenge.key"
_HERE = Path(__file__).parent
_FORM = 200_000  # what a form holds beside its file


@dataclass(frozen=True, kw_only=True)
class ChallengeSite(Site):
    """The pages of a challenge, which was opened for the web process: nothing here can reach the sealed part."""

    templates = _HERE / "templates"
    texts = _HERE / "texts"
    roles = ("organiser", "participant")
    newcomer = "participant"

    challenge: Challenge

    @property
    def open_registration(self) -> bool:
        """As the settings say."""
        return self.challenge.settings.teams.registration == "open"

    @property
    def uploads(self) -> Mapping[Pattern[str], int]:
        """Where a team hands in; how much depends on what."""
        sizes = self.challenge.settings.uploads
        kinds = {"file": sizes.file, "image": sizes.image}
        return {re.compile(rf"/phase/[\w.-]+/{kind}"): size_of(size) + _FORM for kind, size in kinds.items()}

    def mount(self, app: FastAPI) -> None:
        """Adds the pages of this folder."""
        from fastapi.staticfiles import StaticFiles

        from proctor.challenges.pages import boards, files, handing, organising, phases, submissions, teams

        app.state.desk = handing.Desk()
        for module in (boards, files, organising, handing, phases, submissions, teams):
            app.include_router(module.router)
        app.mount("/static/challenge", StaticFiles(directory=_HERE / "static"))


def open_challenge(
    folder: Path, store: str | None = None, listening: Listening | None = None, *, same_user: bool = False
) -> ChallengeSite:
    """A challenge's folder as a site. Raises `InputError` for settings that do not fit, and where this process could
    open the sealed part, unless `same_user` is said; `UsageError` for a server that would take passwords without
    TLS."""
    at, address = listening or Listening(), read_challenge(folder).address
    tls = at.tls(address, CHALLENGE_FILE)
    challenge = Challenge.open(folder, "web", store=store, same_user=same_user)
    challenge.uploads.mkdir(exist_ok=True)
    for left in challenge.uploads.glob(".incoming-*"):  # of a process that was killed
        left.unlink(missing_ok=True)
    return ChallengeSite(
        folder=folder,
        title=challenge.settings.title or challenge.name,
        engine=challenge.engine,
        key=signing_key(folder / KEY_FILE),
        address=address,
        hosts=at.names(address),
        tls=tls,
        now=challenge.now,
        challenge=challenge,
    )


def challenge_accounts(folder: Path, store: str | None = None) -> AccountsPlace:
    """The accounts of a challenge. Raises `InputError` for a folder that holds none."""
    address = read_challenge(folder).address
    opened = lambda: Challenge.open(folder, "organiser", store=store).engine  # noqa: E731
    return AccountsPlace(opened, address, CHALLENGE_FILE, "participant")
