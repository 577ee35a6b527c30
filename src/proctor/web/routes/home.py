"""The first page: the visitor's studies, and how much is left in each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from proctor.web.access import current, review_of
from proctor.web.pages import page
from proctor.web.sessions import Visitor
from proctor.web.studies import my_studies

router = APIRouter()


@router.get("/")
def home(request: Request, visitor: Annotated[Visitor, Depends(current)]) -> Response:
    """What there is to do."""
    with review_of(request).reading() as connection:
        return page(request, "home", work=my_studies(connection, visitor.account))
