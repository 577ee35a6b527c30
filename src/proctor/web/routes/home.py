"""The first page: the visitor's studies, and how much is left in each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import Connection, RowMapping, and_, distinct, func, select

from proctor.web.access import current, review_of
from proctor.web.pages import page
from proctor.web.schema import assignments, readings, studies, study_items, versions
from proctor.web.sessions import Visitor

router = APIRouter()


@router.get("/")
def home(request: Request, visitor: Annotated[Visitor, Depends(current)]) -> Response:
    """What there is to do."""
    with review_of(request).reading() as connection:
        work = work_of(connection, visitor.account)
    return page(request, "home", work=work)


def work_of(connection: Connection, account: int) -> list[RowMapping]:
    """Of each study in which the account has something to read: its name, the items (`total`), and those of them with
    a sealed reading of the account's (`sealed`)."""
    own = and_(readings.c.version == versions.c.id, readings.c.account == account, readings.c.sealed.is_not(None))
    read = select(versions.c.item).join(readings, own).distinct().subquery()
    query = (
        select(
            studies.c.name,
            func.count(distinct(assignments.c.item)).label("total"),
            func.count(distinct(read.c.item)).label("sealed"),
        )
        .select_from(assignments)
        .join(study_items, study_items.c.id == assignments.c.item)
        .join(studies, studies.c.id == study_items.c.study)
        .join(read, read.c.item == assignments.c.item, isouter=True)
        .where(assignments.c.account == account, assignments.c.role == "reader")
        .group_by(studies.c.id, studies.c.name)
        .order_by(studies.c.id)
    )
    return list(connection.execute(query).mappings())
