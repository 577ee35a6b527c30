"""Who requests a page of a challenge: their role, account and team."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Form, HTTPException, Path, Request
from sqlalchemy import RowMapping

from proctor_challenge.board_pages import Visitor
from proctor_challenge.challenge import Challenge
from proctor_challenge.membership import team_of
from proctor_challenge.settings import Phase
from proctor_web import Visitor as Account
from proctor_web import current, require, site_of, visitor_of

if TYPE_CHECKING:
    from proctor_challenge.pages.site import ChallengeSite

Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
PhaseName = Annotated[str, Path(max_length=80, pattern=r"^[\w.-]+$")]
Line = Annotated[str, Form(max_length=1000)]
Organiser = Annotated[Account, Depends(require("organiser"))]


@dataclass(frozen=True)
class Viewer:
    """Who requests a page. `audience` decides which boards and results they see; `team` is the row of their team."""

    audience: Visitor
    account: int = 0
    team: RowMapping | None = None

    @property
    def team_id(self) -> int | None:
        """The id of the team; None without a team."""
        return None if self.team is None else int(self.team["id"])

    def own_team(self) -> int:
        """The id of the team; responds with 404 without a team."""
        if self.team is None:
            raise HTTPException(404)
        return int(self.team["id"])


def challenge_of(request: Request) -> Challenge:
    """The challenge that is served."""
    return cast("ChallengeSite", site_of(request)).challenge


def viewer_of(request: Request, account: Annotated[Account | None, Depends(visitor_of)]) -> Viewer:
    """Anybody, logged in or not."""
    if account is None or account.role not in ("participant", "organiser"):
        return Viewer("public")
    if account.role == "organiser":
        return Viewer("organiser", account.account)
    with challenge_of(request).reading() as connection:
        return Viewer("participant", account.account, team_of(connection, account.account))


def known_viewer(request: Request) -> Viewer:
    """Somebody who is logged in."""
    return viewer_of(request, current(request))


def participant_of(request: Request, account: Annotated[Account, Depends(require("participant"))]) -> Viewer:
    """A participant who is logged in; responds with 404 to organisers."""
    return viewer_of(request, account)


async def known_phase(request: Request, name: PhaseName) -> Phase:
    """The phase of this name; responds with 404 to an unknown name."""
    try:
        return challenge_of(request).settings.phase(name)
    except KeyError:
        raise HTTPException(404) from None


Anybody = Annotated[Viewer, Depends(viewer_of)]
LoggedIn = Annotated[Viewer, Depends(known_viewer)]
Participant = Annotated[Viewer, Depends(participant_of)]
KnownPhase = Annotated[Phase, Depends(known_phase)]
