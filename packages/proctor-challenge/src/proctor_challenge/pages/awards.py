"""The pages of prizes, and of the descriptions of methods that they require."""

from __future__ import annotations

from typing import Any, cast

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import FileResponse, RedirectResponse
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool

from proctor.core import InputError
from proctor_challenge.challenge import Challenge
from proctor_challenge.descriptions import (
    DescriptionEntry,
    DescriptionError,
    description_file,
    keep_description,
    kind_of_description,
)
from proctor_challenge.pages.access import Anybody, KnownPhase, LoggedIn, Number, Participant, Viewer, challenge_of
from proctor_challenge.pages.desk import OccupiedError, UploadDesk
from proctor_challenge.pages.phases import SPARE_BYTES, fault_of, phase_response
from proctor_challenge.prizes import prize_table
from proctor_challenge.schema import descriptions
from proctor_challenge.settings import Phase
from proctor_web import BusyError, NoRoomError, Upload, page, receive_upload

router = APIRouter()

_ENDINGS = {"pdf": ".pdf", "text": ".txt"}


@router.get("/prizes/{name}")
def prizes(request: Request, phase: KnownPhase, viewer: Anybody) -> Response:
    """The prize table of a phase; responds with 404 to those who may not see it yet."""
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        content = prize_table(connection, challenge, phase.name, viewer.audience)
    if content is None or phase.prizes is None:
        raise HTTPException(404)
    split = [f"{part:g}" for part in phase.prizes.split]
    shown: dict[str, Any] = {"content": content, "split": split, "coauthors": phase.prizes.coauthors}
    shown["everything"] = viewer.audience == "organiser"
    return page(request, "prizes", phase=phase, **shown)


@router.post("/phase/{name}/description")
async def submit_description(request: Request, phase: KnownPhase, viewer: Participant) -> Response:
    """Receives the description of a team's method. Nothing of it is rendered."""
    challenge = challenge_of(request)
    team, desk = viewer.own_team(), cast("UploadDesk", request.app.state.desk)
    try:
        with desk.occupied(team):
            async with receive_upload(request, challenge.uploads, keep_free=SPARE_BYTES) as upload:
                await desk.gate.run(_keep, challenge, phase, viewer, upload)
    except OccupiedError:
        fault, status = "reason.checking", 409
    except DescriptionError as error:
        fault, status = f"description.problem.{error.reason}", 422
    except (NoRoomError, BusyError) as error:
        fault, status = fault_of(error), 503
    else:
        return RedirectResponse(f"/phase/{phase.name}", 303)
    return await run_in_threadpool(_refused, request, phase, viewer, fault, status)


def _keep(challenge: Challenge, phase: Phase, viewer: Viewer, upload: Upload) -> None:
    kind = kind_of_description(upload.path)
    upload.path.chmod(0o640)
    name = upload.name or f"description{_ENDINGS[kind]}"
    entry = DescriptionEntry(viewer.own_team(), viewer.account, phase.name, kind, upload.sha256, upload.size, name)
    keep_description(challenge, entry, upload.path.replace)


def _refused(request: Request, phase: Phase, viewer: Viewer, fault: str, status: int) -> Response:
    return phase_response(request, phase, viewer, fault=fault, status=status)


@router.get("/description/{number}")
def description(request: Request, number: Number, viewer: LoggedIn) -> Response:
    """A description as a file to save, for its team and organisers; responds with 404 to others."""
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        row = connection.execute(select(descriptions).where(descriptions.c.id == number)).mappings().first()
    if row is None or not (viewer.audience == "organiser" or viewer.team_id == row["team"]):
        raise HTTPException(404)
    try:
        file = description_file(challenge, row)
    except InputError:
        raise HTTPException(404) from None
    name = f"description-{row['phase']}-{row['team']}{_ENDINGS[row['kind']]}"
    return FileResponse(file, media_type="application/octet-stream", filename=name)
