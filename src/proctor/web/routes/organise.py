"""An organiser's pages: how far studies are, how far readers agree, and the items with their versions."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection, select

from proctor.core import InputError, JsonError, load_json
from proctor.web.access import ItemId, StudyName, require, review_of
from proctor.web.agreement import study_agreement
from proctor.web.forms import form_named
from proctor.web.pages import page
from proctor.web.readings import NotAssignedError, edit_item, others_readings, settlement
from proctor.web.schema import studies, study_items, versions
from proctor.web.sessions import Visitor
from proctor.web.studies import all_sealed, read_version, study_progress
from proctor.web.tables import agreement_tables

router = APIRouter(prefix="/organise")

Organiser = Annotated[Visitor, Depends(require("organiser"))]
_MOST_BODY = 200_000


@router.get("/")
def overview(request: Request, visitor: Organiser) -> Response:
    """All studies."""
    del visitor
    with review_of(request).reading() as connection:
        names = connection.execute(select(studies.c.name).order_by(studies.c.id)).scalars().all()
        found = [study_progress(connection, name) for name in names]
    return page(request, "organise", studies=found)


@router.get("/study/{name}")
def study_page(request: Request, name: StudyName, visitor: Organiser) -> Response:
    """One study: people, agreement, items, exports."""
    with review_of(request).reading() as connection:
        progress = study_progress(connection, name)
        if progress is None:
            raise HTTPException(404)
        tables = agreement_tables(study_agreement(connection, visitor.account, name))
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


@router.get("/item/{item_id}")
def item_of(request: Request, item_id: ItemId, visitor: Organiser) -> Response:
    """One item: its versions, and the readings of those that every reader has sealed."""
    return _item_page(request, item_id, visitor)


def _item_page(
    request: Request, item_id: int, visitor: Visitor, fault: str = "", draft: str = "", status: int = 200
) -> Response:
    with review_of(request).reading() as connection:
        query = (
            select(study_items, studies.c.name.label("study_name"), studies.c.form)
            .join(studies, studies.c.id == study_items.c.study)
            .where(study_items.c.id == item_id)
        )
        row = connection.execute(query).mappings().one_or_none()
        if row is None:
            raise HTTPException(404)
        form = form_named(row["form"])
        made = select(versions).where(versions.c.item == item_id).order_by(versions.c.number.desc())
        shown = [
            {
                "row": one,
                "body": form.read_body(one["body"]),
                "text": json.dumps(one["body"], ensure_ascii=False, indent=2),
                "readings": others_readings(connection, visitor.account, one["id"]),
                "settled": settlement(connection, visitor.account, one["id"]),
            }
            for one in connection.execute(made).mappings()
        ]
        current = connection.execute(select(read_version(study_items.c.id)).where(study_items.c.id == item_id)).scalar()
    newest = next(one["text"] for one in shown if one["row"]["id"] == current)
    return page(
        request,
        "versions",
        status=status,
        item=row,
        form=form,
        versions=shown,
        current=current,
        fault=fault,
        draft=draft or newest,
    )


@router.post("/item/{item_id}")
def edit(
    request: Request,
    item_id: ItemId,
    visitor: Organiser,
    body: Annotated[str, Form(max_length=_MOST_BODY)],
    why: Annotated[str, Form(max_length=10_000)] = "",
) -> Response:
    """Makes a new version, which everybody reads again."""
    site = review_of(request)
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
