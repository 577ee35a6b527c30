"""Who asks for a page of a challenge, and in which team they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, cast

from fastapi import Depends, Form, HTTPException, Path, Request
from sqlalchemy import RowMapping

from proctor.challenges.challenge import Challenge
from proctor.challenges.pages.site import ChallengeSite
from proctor.challenges.settings import Phase
from proctor.challenges.teams import team_of
from proctor.web import Visitor, require, site_of, visitor_of

Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
PhaseName = Annotated[str, Path(max_length=80, pattern=r"^[\w.-]+$")]
Line = Annotated[str, Form(max_length=1000)]
Organiser = Annotated[Visitor, Depends(require("organiser"))]
Somebody = Annotated[Visitor | None, Depends(visitor_of)]
Audience = Literal["public", "participant", "organiser"]


@dataclass(frozen=True)
class Viewer:
    """Who looks at a page: as what they see boards and results, and the row of their team, None where they have
    none."""

    audience: Audience
    team: RowMapping | None = None

    @property
    def team_id(self) -> int | None:
        """The team's id."""
        return None if self.team is None else int(self.team["id"])


@dataclass(frozen=True)
class SiteParticipant:
    """A participant who is logged in."""

    account: int
    team: RowMapping | None

    @property
    def team_id(self) -> int:
        """The team's id; 404 where there is none."""
        if self.team is None:
            raise HTTPException(404)
        return int(self.team["id"])

    @property
    def viewer(self) -> Viewer:
        """The same, as who looks at a page."""
        return Viewer("participant", self.team)


def challenge_of(request: Request) -> Challenge:
    """The challenge that is served."""
    return cast("ChallengeSite", site_of(request)).challenge


def participant_of(request: Request, visitor: Annotated[Visitor, Depends(require("participant"))]) -> SiteParticipant:
    """A participant, for pages that are participants' alone."""
    with challenge_of(request).reading() as connection:
        return SiteParticipant(visitor.account, team_of(connection, visitor.account))


def viewer_of(request: Request, visitor: Visitor | None) -> Viewer:
    """Who asks: somebody who is logged in, or the public."""
    if visitor is None or visitor.role not in ("participant", "organiser"):
        return Viewer("public")
    if visitor.role == "organiser":
        return Viewer("organiser")
    with challenge_of(request).reading() as connection:
        return Viewer("participant", team_of(connection, visitor.account))


def known_phase(request: Request, name: PhaseName) -> Phase:
    """The phase of this name; 404 where there is none."""
    try:
        return challenge_of(request).settings.phase(name)
    except KeyError:
        raise HTTPException(404) from None


Participant = Annotated[SiteParticipant, Depends(participant_of)]
KnownPhase = Annotated[Phase, Depends(known_phase)]
