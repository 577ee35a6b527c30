"""The site of a challenge: its pages, the sizes of its uploads, and whether anybody may register."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from re import Pattern
from typing import TYPE_CHECKING

from proctor_challenge.challenge import Challenge, challenge_store
from proctor_challenge.settings import CHALLENGE_FILE, read_challenge, size_of
from proctor_challenge.uploads import upload_size
from proctor_web import AccountsLocation, Listening, Site, remove_unfinished, signing_key

if TYPE_CHECKING:
    from fastapi import FastAPI
    from sqlalchemy import Engine

KEY_FILE = "challenge.key"
_HERE = Path(__file__).parent
_FORM = 200_000  # what a form holds beside its file


@dataclass(frozen=True, kw_only=True)
class ChallengeSite(Site):
    """The web pages of a challenge that was opened with the access "web": they can't reach the sealed part."""

    templates = _HERE / "templates"
    texts = _HERE / "texts"
    roles = ("organiser", "participant")
    newcomer = "participant"

    challenge: Challenge

    @property
    def open_registration(self) -> bool:
        """Whether anybody may register."""
        return self.challenge.settings.teams.registration == "open"

    @property
    def uploads(self) -> Mapping[Pattern[str], int]:
        """The largest request for each path that takes uploads, in bytes."""
        return self._uploads

    @cached_property
    def _uploads(self) -> Mapping[Pattern[str], int]:
        sizes: dict[str, int] = {}
        description = size_of(self.challenge.settings.uploads.description)
        for phase in self.challenge.settings.phases:
            location = f"/phase/{re.escape(phase.name)}/"
            sizes |= {location + kind: upload_size(self.challenge, phase, kind) for kind in phase.accepts}
            sizes[location + "description"] = description
        return {re.compile(path): size + _FORM for path, size in sizes.items()}

    def mount(self, app: FastAPI) -> None:
        """Adds the pages of this folder."""
        from fastapi.staticfiles import StaticFiles

        from proctor_challenge.pages import awards, organisers, phases, team
        from proctor_challenge.pages.desk import UploadDesk

        app.state.desk = UploadDesk(self.challenge, app.state.gate)
        for module in (organisers, awards, phases, team):
            app.include_router(module.router)
        app.mount("/static/challenge", StaticFiles(directory=_HERE / "static"))


def open_challenge(
    folder: Path, store: str | None = None, listening: Listening | None = None, *, same_user: bool = False
) -> ChallengeSite:
    """The site of a challenge's folder. Raises `InputError` for invalid settings and when this process could open the
    sealed part (unless `same_user`), and `UsageError` for a server that would accept passwords without TLS."""
    at, address = listening or Listening(), read_challenge(folder).address
    tls = at.tls(address, CHALLENGE_FILE)
    challenge = Challenge.open(folder, "web", store=store, same_user=same_user)
    challenge.uploads.mkdir(exist_ok=True)
    remove_unfinished(challenge.uploads)
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


def challenge_accounts(folder: Path, store: str | None = None) -> AccountsLocation:
    """The accounts of a challenge, for any user who may write its database. Raises `InputError` for a folder without a
    challenge."""
    settings = read_challenge(folder)

    def opened(create: bool) -> Engine:
        return Challenge.open(folder, "organiser", store=store, create=create).engine

    location = challenge_store(folder, settings, store)
    return AccountsLocation(location, opened, settings.address, CHALLENGE_FILE, "participant")
