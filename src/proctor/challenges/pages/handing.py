"""Handing in: the file goes to disk as it comes, is taken in, checked in a process of its own, and queued or
refused."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import Literal

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from proctor.challenges.challenge import Challenge
from proctor.challenges.checking import suffix_of
from proctor.challenges.handing import check_handed_in, keep_upload
from proctor.challenges.pages.access import KnownPhase, Participant, SiteParticipant, challenge_of
from proctor.challenges.pages.phases import card_of, show_phase
from proctor.challenges.settings import Kind, Phase, size_of
from proctor.challenges.submissions import HandIn, HandInError
from proctor.web import Upload, receive_upload

router = APIRouter()

_AT_ONCE = 2  # checks; further ones wait
_SPARE = 2**30  # of the disk, which stays free


@dataclass
class Desk:
    """What is under way in this process: the teams that send, and the checks."""

    teams: set[int] = field(default_factory=set)
    checks: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))


@router.post("/phase/{name}/{kind}")
async def submit(request: Request, phase: KnownPhase, entrant: Participant, kind: Literal["file", "image"]) -> Response:
    """Takes a file in. A team sends one at a time, and none where it could not be taken anyway."""
    challenge, team = challenge_of(request), entrant.team_id
    desk: Desk = request.app.state.desk
    if kind not in phase.accepts:
        raise HTTPException(404)
    if not await run_in_threadpool(_may_send, challenge, phase, entrant):
        return await run_in_threadpool(show_phase, request, phase, entrant.viewer, fault="phase.no_more", status=409)
    if not _has_room(challenge, kind):
        return await run_in_threadpool(show_phase, request, phase, entrant.viewer, fault="phase.full", status=503)
    if team in desk.teams:
        raise HTTPException(409)
    desk.teams.add(team)
    try:
        async with receive_upload(request, challenge.uploads) as upload:
            if not upload.size:
                return await run_in_threadpool(
                    show_phase, request, phase, entrant.viewer, fault="phase.empty", status=422
                )
            number = await run_in_threadpool(_taken_in, challenge, entry_of(phase, entrant, kind, upload), upload)
    except HandInError as error:
        fault = f"reason.{error.reason}"
        return await run_in_threadpool(show_phase, request, phase, entrant.viewer, fault=fault, status=409)
    finally:
        desk.teams.discard(team)
    async with desk.checks:
        await run_in_threadpool(check_handed_in, challenge, number)
    return RedirectResponse(f"/submission/{number}", 303)


def _may_send(challenge: Challenge, phase: Phase, entrant: SiteParticipant) -> bool:
    with challenge.reading() as connection:
        return card_of(connection, challenge, phase, entrant.viewer).takes


def _has_room(challenge: Challenge, kind: Kind) -> bool:
    disk = os.statvfs(challenge.uploads)
    return disk.f_bavail * disk.f_frsize > size_of(getattr(challenge.settings.uploads, kind)) + _SPARE


def entry_of(phase: Phase, entrant: SiteParticipant, kind: Kind, upload: Upload) -> HandIn:
    """What is handed in, as the form says it."""
    return HandIn(
        team=entrant.team_id,
        account=entrant.account,
        phase=phase.name,
        kind=kind,
        upload=upload.sha256,
        size=upload.size,
        name=upload.fields.get("name", "").strip()[:200] or upload.name or kind,
        suffix=suffix_of(upload.name),
        description=upload.fields.get("description", "")[:20_000],
    )


def _taken_in(challenge: Challenge, entry: HandIn, upload: Upload) -> int:
    upload.path.chmod(0o640)  # for the scorer's group
    return keep_upload(challenge, entry, upload.path.replace)
