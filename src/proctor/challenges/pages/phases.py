"""The first page: the phases, what a team may still hand in, and where to go on."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from sqlalchemy import Connection

from proctor.challenges.challenge import Challenge
from proctor.challenges.pages.access import KnownPhase, Somebody, Viewer, challenge_of, viewer_of
from proctor.challenges.pages.files import may_have, public_files
from proctor.challenges.phases import PhaseState, phase_state, was_open
from proctor.challenges.publishing import passed_gate, visible_boards
from proctor.challenges.settings import Phase, size_of
from proctor.challenges.submissions import QuotaLeft, quota_left, submissions_of
from proctor.web import page

router = APIRouter()


@dataclass(frozen=True)
class PhaseCard:
    """A phase as a team sees it: `left` is None for who has no team, `passed` says that its gate is open to the team,
    `boards` that there are some to see."""

    phase: Phase
    state: PhaseState
    left: QuotaLeft | None
    passed: bool
    boards: bool

    @property
    def takes(self) -> bool:
        """Whether the team may hand something in now."""
        may = self.state is PhaseState.OPEN and self.passed
        return may and self.left is not None and self.left.any


def card_of(connection: Connection, challenge: Challenge, phase: Phase, viewer: Viewer) -> PhaseCard:
    """A phase for somebody."""
    team, now, settings = viewer.team, challenge.now(), challenge.settings
    left, passed = None, False
    if team is not None and not team["withdrawn"]:
        left = quota_left(connection, challenge, team["id"], phase.name)
        passed = passed_gate(connection, settings, phase.name, team["id"])
    seen = visible_boards(connection, settings, phase.name, viewer.audience, now)
    return PhaseCard(phase, phase_state(connection, phase, now), left, passed, seen is not None)


@router.get("/")
def home(request: Request, visitor: Somebody) -> Response:
    """All phases."""
    challenge, viewer = challenge_of(request), viewer_of(request, visitor)
    with challenge.reading() as connection:
        cards = [card_of(connection, challenge, phase, viewer) for phase in challenge.settings.phases]
    contact = challenge.settings.contact
    return page(request, "phases", cards=cards, team=viewer.team, contact=contact, terms=bool(challenge.settings.terms))


@router.get("/phase/{name}")
def phase_page(request: Request, phase: KnownPhase, visitor: Somebody) -> Response:
    """One phase: its rules, the forms to hand in, and the team's own submissions."""
    return show_phase(request, phase, viewer_of(request, visitor))


def show_phase(request: Request, phase: Phase, viewer: Viewer, *, fault: str = "", status: int = 200) -> Response:
    """The page of a phase, with what kept a team from handing in."""
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        card, team = card_of(connection, challenge, phase, viewer), viewer.team
        mine = [] if team is None else submissions_of(connection, team["id"], phase.name)
        opened = was_open(connection, phase, challenge.now())
    files = public_files(challenge, phase) if may_have(viewer, opened=opened) else []
    sizes = {kind: size_of(getattr(challenge.settings.uploads, kind)) for kind in phase.accepts}
    most = challenge.settings.resources
    box = {"memory": size_of(most.memory), "scratch": size_of(most.scratch), "cpus": most.cpus, "gpu": most.gpu}
    return page(
        request, "phase", status=status, card=card, team=team, mine=mine, sizes=sizes, box=box, files=files, fault=fault
    )
