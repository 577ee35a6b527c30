"""Exports for organisers: single readings, the consensus, and the section of a datasheet."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from sqlalchemy import select

from proctor.web.access import StudyName, require, review_of
from proctor.web.export import (
    CONSENSUS_COLUMNS,
    READING_COLUMNS,
    consensus_rows,
    datasheet_section,
    reading_rows,
    write_readings,
)
from proctor.web.schema import studies
from proctor.web.sessions import Visitor

router = APIRouter(prefix="/export/{name}")

Organiser = Annotated[Visitor, Depends(require("organiser"))]
_TYPES = {"jsonl": "application/jsonl", "csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


@router.get("/datasheet.md")
def datasheet(request: Request, name: StudyName, visitor: Organiser) -> Response:
    """How the items were reviewed, in Markdown."""
    with review_of(request).reading() as connection:
        _check_study(connection.execute(select(studies.c.id).where(studies.c.name == name)).scalar())
        lines = datasheet_section(connection, visitor.account, name)
    return _attached("\n".join(lines).encode() + b"\n", "text/markdown", "datasheet.md")


@router.get("/{what}.{form}")
def exported(
    request: Request,
    name: StudyName,
    what: Literal["readings", "consensus"],
    form: Literal["jsonl", "csv", "parquet"],
    visitor: Organiser,
) -> Response:
    """All rows in one file."""
    with review_of(request).reading() as connection:
        _check_study(connection.execute(select(studies.c.id).where(studies.c.name == name)).scalar())
        rows = (reading_rows if what == "readings" else consensus_rows)(connection, visitor.account, name)
    columns = READING_COLUMNS if what == "readings" else CONSENSUS_COLUMNS
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "export"
        write_readings(rows, columns, file, form)
        return _attached(file.read_bytes(), _TYPES[form], f"{what}.{form}")


def _check_study(found: int | None) -> None:
    if found is None:
        raise HTTPException(404)


def _attached(content: bytes, kind: str, name: str) -> Response:
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
