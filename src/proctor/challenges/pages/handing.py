"""Handing in: the file goes to disk as it comes, is taken in, checked in a process of its own, and queued or refused."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import dataclass, field, replace
from typing import Literal

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool

from proctor.challenges.challenge import Challenge
from proctor.challenges.checking import check_upload, suffix_of
from proctor.challenges.pages.access import KnownPhase, Participant, SiteParticipant, challenge_of
from proctor.challenges.pages.phases import card_of, show_phase
from proctor.challenges.publishing import passed_gate
from proctor.challenges.schema import submissions
from proctor.challenges.settings import Kind, Phase, size_of
from proctor.challenges.states import SubmissionState
from proctor.challenges.submissions import HandIn, HandInError, hand_in, settle, submission_row
from proctor.web import Upload, receive_upload

router = APIRouter()

_AT_ONCE = 2  # checks; further ones wait
_SPARE = 2**30  # of the disk, which stays free


@dataclass
class Desk:
    """What is under way in this process: the teams that send, the checks, and files that come and go."""

    teams: set[int] = field(default_factory=set)
    checks: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    files: threading.Lock = field(default_factory=threading.Lock)


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
            number = await run_in_threadpool(_taken_in, challenge, desk, entry_of(phase, entrant, kind, upload), upload)
    except HandInError as error:
        fault = f"reason.{error.reason}"
        return await run_in_threadpool(show_phase, request, phase, entrant.viewer, fault=fault, status=409)
    finally:
        desk.teams.discard(team)
    async with desk.checks:
        await run_in_threadpool(_checked, challenge, desk, number)
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


def _taken_in(challenge: Challenge, desk: Desk, entry: HandIn, upload: Upload) -> int:
    """Enters the submission and puts its bytes where they stay, under their hash: both, or neither. Its id."""
    with desk.files, challenge.writing() as connection:
        passed = passed_gate(connection, challenge.settings, entry.phase, entry.team)
        number = hand_in(connection, challenge, replace(entry, passed=passed))
        upload.path.chmod(0o640)  # for the scorer's group
        upload.path.replace(challenge.uploads / upload.sha256)
    return number


def _checked(challenge: Challenge, desk: Desk, number: int) -> None:
    """Checks it, queues or refuses it; what was refused and nobody else handed in is not kept."""
    with challenge.reading() as connection:
        row = submission_row(connection, number)
    file, phase = challenge.uploads / row["upload"], challenge.phase(row["phase"])
    problems = check_upload(challenge, phase, row["kind"], file, row["suffix"])
    with desk.files, challenge.writing() as connection:
        settle(connection, challenge, number, problems)
        kept = (submissions.c.upload == row["upload"], submissions.c.state != SubmissionState.REFUSED.value)
        if connection.execute(select(submissions.c.id).where(*kept).limit(1)).first() is None:
            file.unlink(missing_ok=True)
