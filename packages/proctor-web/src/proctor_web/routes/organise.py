"""An organiser's pages: progress of studies, agreement of readers, versions of items, and exports."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection, select

from proctor.core import InputError, JsonError, load_json
from proctor_web.accounts import people_names
from proctor_web.agreement import agreement_tables, study_agreement
from proctor_web.export import ROWS, datasheet_section, write_readings
from proctor_web.forms import form_named
from proctor_web.pages import language_of, page
from proctor_web.progress import all_sealed, read_version, study_progress
from proctor_web.readings import NotAssignedError, edit_item, settlement
from proctor_web.routes import Organiser, RowId, StudyName
from proctor_web.schema import studies, study_items, versions
from proctor_web.sessions import Visitor, site_of
from proctor_web.visibility import others_readings

router = APIRouter()

_MOST_BODY = 200_000
_TYPES = {"jsonl": "application/jsonl", "csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


@router.get("/organise/")
def overview(request: Request, visitor: Organiser) -> Response:
    """All studies."""
    del visitor
    with site_of(request).reading() as connection:
        names = connection.execute(select(studies.c.name).order_by(studies.c.id)).scalars().all()
        found = [study_progress(connection, name) for name in names]
    return page(request, "organise", studies=found)


@router.get("/organise/study/{name}")
def study_page(request: Request, name: StudyName, visitor: Organiser) -> Response:
    """One study: people, agreement, items, exports."""
    with site_of(request).reading() as connection:
        progress = study_progress(connection, name)
        if progress is None:
            raise HTTPException(404)
        found = study_agreement(connection, visitor.account, name)
        names = {one.pseudonym: one.name for one in progress.people}
        tables = agreement_tables(found, language_of(request, visitor), names)
        items = _items(connection, name)
    return page(request, "study", study=progress, tables=tables, items=items)


def _items(connection: Connection, study: str) -> list[Any]:
    query = (
        select(
            study_items.c.id,
            study_items.c.key,
            study_items.c.group_name,
            study_items.c.gold.is_not(None).label("gold"),
            all_sealed(study_items.c.id).label("complete"),
        )
        .join(studies, studies.c.id == study_items.c.study)
        .where(studies.c.name == study)
        .order_by(study_items.c.position)
    )
    return list(connection.execute(query).mappings())


@router.get("/organise/item/{item_id}")
def item_page(request: Request, item_id: RowId, visitor: Organiser) -> Response:
    """One item: its versions, and the readings of those that every reader has sealed."""
    return _item_page(request, item_id, visitor)


def _item_page(
    request: Request, item_id: int, visitor: Visitor, fault: str = "", draft: str = "", status: int = 200
) -> Response:
    with site_of(request).reading() as connection:
        query = (
            select(study_items, studies.c.name.label("study_name"), studies.c.form)
            .join(studies, studies.c.id == study_items.c.study)
            .where(study_items.c.id == item_id)
        )
        row = connection.execute(query).mappings().one_or_none()
        if row is None:
            raise HTTPException(404)
        form = form_named(row["form"])
        stored = select(versions).where(versions.c.item == item_id).order_by(versions.c.number.desc())
        shown = [
            {
                "row": mapping,
                "body": form.read_body(mapping["body"]),
                "text": json.dumps(mapping["body"], ensure_ascii=False, indent=2),
                "readings": others_readings(connection, visitor.account, mapping["id"]),
                "settled": settlement(connection, visitor.account, mapping["id"]),
            }
            for mapping in connection.execute(stored).mappings()
        ]
        names = people_names(connection)
        current = connection.execute(select(read_version(study_items.c.id)).where(study_items.c.id == item_id)).scalar()
    draft = draft or next(one["text"] for one in shown if one["row"]["id"] == current)
    return page(
        request,
        "versions",
        status=status,
        item=row,
        form=form,
        versions=shown,
        names=names,
        current=current,
        fault=fault,
        draft=draft,
    )


@router.post("/organise/item/{item_id}")
def edit(
    request: Request,
    item_id: RowId,
    visitor: Organiser,
    body: Annotated[str, Form(max_length=_MOST_BODY)],
    why: Annotated[str, Form(max_length=10_000)] = "",
) -> Response:
    """Adds a new version of an item, which everybody reads again."""
    site = site_of(request)
    try:
        value = load_json(body)
        if not isinstance(value, dict):
            raise InputError("the new version", found="no object", expected="fields in JSON")
        with site.writing() as connection:
            edit_item(connection, visitor.account, item_id, value, why, site.now())
    except NotAssignedError:
        raise HTTPException(404) from None
    except (JsonError, InputError) as error:
        return _item_page(request, item_id, visitor, str(error), body, 422)
    return RedirectResponse(f"/organise/item/{item_id}", 303)


# -- exports


@router.get("/export/{name}/datasheet.md")
def export_datasheet(request: Request, name: StudyName, visitor: Organiser) -> Response:
    """The section of a datasheet on how the items were reviewed, in Markdown."""
    with site_of(request).reading() as connection:
        _check_study(connection, name)
        lines = datasheet_section(connection, visitor.account, name)
    return _attachment("\n".join(lines).encode() + b"\n", "text/markdown", "datasheet.md")


@router.get("/export/{name}/{what}.{form}")
def export_rows(
    request: Request,
    name: StudyName,
    what: Literal["readings", "consensus"],
    form: Literal["jsonl", "csv", "parquet"],
    visitor: Organiser,
) -> Response:
    """All readings, or the consensus, in one file."""
    read_rows, columns = ROWS[what]
    with site_of(request).reading() as connection:
        _check_study(connection, name)
        rows = read_rows(connection, visitor.account, name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "export"
        write_readings(rows, columns, file, form)
        return _attachment(file.read_bytes(), _TYPES[form], f"{what}.{form}")


def _check_study(connection: Connection, name: str) -> None:
    if connection.execute(select(studies.c.id).where(studies.c.name == name)).first() is None:
        raise HTTPException(404)


def _attachment(content: bytes, kind: str, name: str) -> Response:
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
