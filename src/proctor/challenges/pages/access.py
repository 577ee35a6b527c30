"""Who asks for a page of a challenge, and in which team they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Form, HTTPException, Path, Request
from sqlalchemy import RowMapping

from proctor.challenges.challenge import Challenge
from proctor.challenges.pages.site import ChallengeSite
from proctor.challenges.settings import Phase
from proctor.challenges.teams import team_of
from proctor.web import Visitor, current, require, site_of, visitor_of

Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
PhaseName = Annotated[str, Path(max_length=80, pattern=r"^[\w.-]+$")]
Line = Annotated[str, Form(max_length=1000)]
Text = Annotated[str, Form(max_length=20_000)]
Organiser = Annotated[Visitor, Depends(require("organiser"))]
Somebody = Annotated[Visitor | None, Depends(visitor_of)]


@dataclass(frozen=True)
class SiteParticipant:
    """A participant; `team` is the row of theirs, None where they are in none."""

    visitor: Visitor
    team: RowMapping | None

    @property
    def account(self) -> int:
        """The account's id."""
        return self.visitor.account

    @property
    def team_id(self) -> int:
        """The team's id; 404 where there is none."""
        if self.team is None:
            raise HTTPException(404)
        return int(self.team["id"])


def challenge_site(request: Request) -> ChallengeSite:
    """The site that is served."""
    return cast("ChallengeSite", site_of(request))


def challenge_of(request: Request) -> Challenge:
    """The challenge that is served."""
    return challenge_site(request).challenge


def entrant(request: Request, visitor: Annotated[Visitor, Depends(require("participant"))]) -> SiteParticipant:
    """A participant, for pages that are participants' alone."""
    with challenge_of(request).reading() as connection:
        return SiteParticipant(visitor, team_of(connection, visitor.account))


def team_for(request: Request, visitor: Visitor | None) -> RowMapping | None:
    """The team of who asks, if any."""
    if visitor is None or visitor.role != "participant":
        return None
    with challenge_of(request).reading() as connection:
        return team_of(connection, visitor.account)


def known_phase(request: Request, name: PhaseName) -> Phase:
    """The phase of this name; 404 where there is none."""
    try:
        return challenge_of(request).settings.phase(name)
    except KeyError:
        raise HTTPException(404) from None


Participant = Annotated[SiteParticipant, Depends(entrant)]
KnownPhase = Annotated[Phase, Depends(known_phase)]

__all__ = [
    "KnownPhase",
    "Line",
    "Number",
    "Organiser",
    "Participant",
    "PhaseName",
    "SiteParticipant",
    "Somebody",
    "Text",
    "challenge_of",
    "challenge_site",
    "current",
    "entrant",
    "known_phase",
    "team_for",
]  # fmt: skip
