"""The pages of phases: rules, files to download, upload forms and leaderboards."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import FileResponse, RedirectResponse
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from proctor.reports import chart_html
from proctor_challenge.board_charts import BoardText, board_chart, in_order
from proctor_challenge.board_pages import passed_gate, visible_boards
from proctor_challenge.challenge import Challenge
from proctor_challenge.descriptions import description_of
from proctor_challenge.pages.access import Anybody, KnownPhase, Participant, Viewer, challenge_of
from proctor_challenge.pages.desk import OccupiedError, UploadDesk
from proctor_challenge.prizes import prize_table
from proctor_challenge.settings import SEALED, Kind, Phase, size_of
from proctor_challenge.states import PhaseState, phase_state, was_open
from proctor_challenge.submissions import (
    HandIn,
    HandInError,
    IdenticalError,
    QuotaLeft,
    quota_left,
    submissions_of,
    uploads_left,
)
from proctor_challenge.uploads import keep_upload, suffix_of, upload_size
from proctor_web import BusyError, NoRoomError, Upload, page, receive_upload

router = APIRouter()

SPARE_BYTES = 2**30
"""Of the disk, kept free for the databases on it."""

_ANSWER_S = 15.0  # a check that takes longer goes on while its page is shown
_TRIES, _RETRY_S = 5, 5


@dataclass(frozen=True)
class PhaseCard:
    """A phase as a team sees it. `left` is the remaining quota (None without a team), `passed` whether the team passed
    the gate, `boards` whether there are boards that the viewer may see."""

    phase: Phase
    state: PhaseState
    left: QuotaLeft | None
    passed: bool
    boards: bool

    @property
    def takes(self) -> bool:
        """Whether the team may submit now."""
        return self.state is PhaseState.OPEN and self.passed and self.left is not None and self.left.any


def card_of(connection: Connection, challenge: Challenge, phase: Phase, viewer: Viewer) -> PhaseCard:
    """The card of a phase for a viewer."""
    team, now, settings = viewer.team, challenge.now(), challenge.settings
    left, passed = None, False
    if team is not None and not team["withdrawn"]:
        left = quota_left(connection, challenge, team["id"], phase.name)
        passed = passed_gate(connection, settings, phase.name, team["id"])
    boards = visible_boards(connection, settings, phase.name, viewer.audience, now)
    return PhaseCard(phase, phase_state(connection, phase, now), left, passed, boards is not None)


@router.get("/")
def home(request: Request, viewer: Anybody) -> Response:
    """All phases."""
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        cards = [card_of(connection, challenge, phase, viewer) for phase in challenge.settings.phases]
    contact = challenge.settings.contact
    return page(request, "phases", cards=cards, team=viewer.team, contact=contact, terms=bool(challenge.settings.terms))


@router.get("/phase/{name}")
def phase_page(request: Request, phase: KnownPhase, viewer: Anybody) -> Response:
    """One phase: its rules, the upload forms, and the team's own submissions."""
    return phase_response(request, phase, viewer)


def phase_response(
    request: Request, phase: Phase, viewer: Viewer, *, fault: str = "", again: int = 0, status: int = 200
) -> Response:
    """`fault` is the key of the text that says why an upload was not accepted; `again` is the number of a submission of
    the same file, which its team has to confirm. With status 503 the answer says when to try again."""
    challenge = challenge_of(request)
    with challenge.reading() as connection:
        card, team = card_of(connection, challenge, phase, viewer), viewer.team
        mine = [] if team is None else submissions_of(connection, team["id"], phase.name)
        description = _description(connection, challenge, phase, viewer)
        prizes = (
            phase.prizes is not None and prize_table(connection, challenge, phase.name, viewer.audience) is not None
        )
        files = public_files(challenge, phase) if _may_download(connection, challenge, phase, viewer) else []
    sizes = {kind: upload_size(challenge, phase, kind) for kind in phase.accepts}
    limits = challenge.settings.resources
    box = {"memory": size_of(limits.memory), "scratch": size_of(limits.scratch), "cpus": limits.cpus, "gpu": limits.gpu}
    shown: dict[str, Any] = {"card": card, "team": team, "mine": mine, "sizes": sizes, "box": box, "files": files}
    shown |= {"fault": fault, "again": again, "description": description, "prizes": prizes}
    headers = {"retry-after": str(_RETRY_S)} if status == 503 else {}
    return page(request, "phase", status=status, headers=headers, **shown)


def _description(connection: Connection, challenge: Challenge, phase: Phase, viewer: Viewer) -> dict[str, Any]:
    """What a phase's page says of the description of a team's method: whether it is asked for, the one that counts, and
    whether another one may be handed in now."""
    rule, now = phase.description, challenge.now()
    asked = rule.required_for != "nothing" and viewer.team is not None
    opened = phase_state(connection, phase, now) is not PhaseState.UNOPENED and (rule.due is None or now < rule.due)
    row = description_of(connection, phase, viewer.own_team()) if asked else None
    most = size_of(challenge.settings.uploads.description)
    return {"asked": asked, "row": row, "open": opened and viewer.team is not None, "most": most}


@router.get("/phase/{name}/files/{path:path}")
def download(request: Request, phase: KnownPhase, viewer: Anybody, path: str) -> Response:
    """One file of the phase as an attachment; responds with 404 to everything else."""
    challenge = challenge_of(request)
    file = next((one for one in public_files(challenge, phase) if one.as_posix() == path), None)
    with challenge.reading() as connection:
        allowed = _may_download(connection, challenge, phase, viewer)
    if file is None or not allowed:
        raise HTTPException(404)
    return FileResponse(challenge.folder / file, media_type="application/octet-stream", filename=file.name)


def _may_download(connection: Connection, challenge: Challenge, phase: Phase, viewer: Viewer) -> bool:
    """Organisers always may; teams once the phase has been open (see `was_open`)."""
    if viewer.audience == "organiser":
        return True
    return viewer.team is not None and was_open(connection, phase, challenge.now())


def public_files(challenge: Challenge, phase: Phase) -> list[Path]:
    """The files that participants may download, relative to the challenge's folder: no symbolic links, and nothing from
    the sealed part."""
    files: set[Path] = set()
    for part in {phase.questions, phase.media}:
        if part and Path(part).parts[0] != SEALED:
            top = challenge.folder / part
            files |= {file.relative_to(challenge.folder) for file in top.rglob("*") if _is_plain(file, top)}
    return sorted(files)


def _is_plain(file: Path, top: Path) -> bool:
    inside = [file, *(folder for folder in file.parents if folder.is_relative_to(top))]
    return file.is_file() and not any(path.is_symlink() for path in inside)


@router.post("/phase/{name}/{kind}")
async def submit(request: Request, phase: KnownPhase, viewer: Participant, kind: Literal["file", "image"]) -> Response:
    """Receives an upload, checks it in a process of its own, and queues or refuses it. A team uploads one file at a
    time, and the next one once the check of the last has ended; an upload that could not be accepted anyway is not
    read. A check that takes longer than a few seconds goes on while the page of the submission is shown."""
    challenge, team = challenge_of(request), viewer.own_team()
    desk: UploadDesk = request.app.state.desk

    async def refused(fault: str, status: int, again: int = 0) -> Response:
        shown = partial(phase_response, request, phase, viewer, fault=fault, status=status, again=again)
        return await run_in_threadpool(shown)

    if kind not in phase.accepts:
        raise HTTPException(404)
    if fault := await run_in_threadpool(_hindrance, challenge, phase, viewer):
        return await refused(fault, 409)
    try:
        with desk.occupied(team):
            async with receive_upload(request, challenge.uploads, keep_free=SPARE_BYTES) as upload:
                if not upload.size:
                    return await refused("phase.empty", 422)
                number = await _kept(desk, _entry(phase, viewer, kind, upload), upload)
            check = desk.check(team, number)
    except HandInError as error:
        return await refused(f"reason.{error.reason}", 409, error.number if isinstance(error, IdenticalError) else 0)
    except OccupiedError:
        return await refused("reason.checking", 409)
    except (NoRoomError, BusyError) as error:
        return await refused(fault_of(error), 503)
    done, _ = await asyncio.wait({check}, timeout=_ANSWER_S)
    for task in done:
        task.result()  # raises what ended it
    return RedirectResponse(f"/submission/{number}", 303)


def fault_of(error: NoRoomError | BusyError) -> str:
    """Why an upload may be accepted in a moment, as a key of the pages' texts."""
    return "phase.full" if isinstance(error, NoRoomError) else "phase.busy"


def _hindrance(challenge: Challenge, phase: Phase, viewer: Viewer) -> str:
    """Why the team can't submit now, as a key of the pages' texts; "" if it can."""
    with challenge.reading() as connection:
        if not card_of(connection, challenge, phase, viewer).takes:
            return "phase.no_more"
        left = uploads_left(connection, challenge, viewer.own_team(), phase.name)
    return "" if left > 0 else "reason.too_many"


def _entry(phase: Phase, viewer: Viewer, kind: Kind, upload: Upload) -> HandIn:
    return HandIn(
        team=viewer.own_team(),
        account=viewer.account,
        phase=phase.name,
        kind=kind,
        upload=upload.sha256,
        size=upload.size,
        name=upload.fields.get("name", "").strip()[:200] or upload.name or kind,
        suffix=suffix_of(upload.name),
        description=upload.fields.get("description", "")[:20_000],
        once=upload.fields.get("again", "") != "yes",
    )


async def _kept(desk: UploadDesk, entry: HandIn, upload: Upload) -> int:
    """Records the submission and stores its bytes. Since they took long to arrive, it waits longer for the database
    than other changes do. Raises `BusyError`."""
    for _ in range(_TRIES):
        with suppress(BusyError):
            return await desk.gate.run(_keep, desk.challenge, entry, upload)
        await asyncio.sleep(_RETRY_S)
    return await desk.gate.run(_keep, desk.challenge, entry, upload)


def _keep(challenge: Challenge, entry: HandIn, upload: Upload) -> int:
    upload.path.chmod(0o640)  # for the scorer's group
    return keep_upload(challenge, entry, upload.path.replace)


@router.get("/board/{name}")
def board(request: Request, phase: KnownPhase, viewer: Anybody) -> Response:
    """All boards of a phase; responds with 404 to those who may not see them."""
    challenge = challenge_of(request)
    settings, now = challenge.settings, challenge.now()
    with challenge.reading() as connection:
        seen = visible_boards(connection, settings, phase.name, viewer.audience, now, team=viewer.team_id)
        prizes = (
            phase.prizes is not None and prize_table(connection, challenge, phase.name, viewer.audience) is not None
        )
    if seen is None:
        raise HTTPException(404)
    how = partial(BoardText, digits=phase.results.digits)
    drawing: dict[str, Any] = {"how": how, "in_order": in_order, "draw": _drawn}
    return page(request, "board", phase=phase, seen=seen, prizes=prizes, **drawing)


def _drawn(board: dict[str, Any], rows: list[dict[str, Any]], how: BoardText, *, organiser: bool) -> str:
    """The chart of a board as HTML."""
    return chart_html(board_chart(board, rows, how, organiser=organiser))
