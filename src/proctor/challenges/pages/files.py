"""What participants get of a phase, for teams: its questions and their media, once it was opened."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import FileResponse

from proctor.challenges.challenge import Challenge
from proctor.challenges.pages.access import KnownPhase, Somebody, Viewer, challenge_of, viewer_of
from proctor.challenges.phases import was_open
from proctor.challenges.settings import SEALED, Phase

router = APIRouter()


@router.get("/phase/{name}/files/{path:path}")
def handed_out(request: Request, phase: KnownPhase, visitor: Somebody, path: str) -> Response:
    """One file, to be kept: never shown as a page. 404 for everything else."""
    challenge, viewer = challenge_of(request), viewer_of(request, visitor)
    found = next((one for one in public_files(challenge, phase) if one.as_posix() == path), None)
    with challenge.reading() as connection:
        opened = was_open(connection, phase, challenge.now())
    if found is None or not may_have(viewer, opened=opened):
        raise HTTPException(404)
    return FileResponse(challenge.folder / found, media_type="application/octet-stream", filename=found.name)


def may_have(viewer: Viewer, *, opened: bool) -> bool:
    """Whether somebody may have a phase's files: organisers always, teams once it was opened and its day has come (see
    `was_open`)."""
    return viewer.audience == "organiser" or (viewer.team is not None and opened)


def public_files(challenge: Challenge, phase: Phase) -> list[Path]:
    """The files that a phase hands out, from the challenge's folder on: no links, and nothing of the sealed part."""
    found: set[Path] = set()
    for part in {phase.questions, phase.media}:
        if part and Path(part).parts[0] != SEALED:
            top = challenge.folder / part
            found |= {one.relative_to(challenge.folder) for one in top.rglob("*") if _plain(one, top)}
    return sorted(found)


def _plain(file: Path, top: Path) -> bool:
    inside = [file, *(one for one in file.parents if one.is_relative_to(top))]
    return file.is_file() and not any(one.is_symlink() for one in inside)
