"""A reader's and an adjudicator's work: the start page, the page of an item, and what that page saves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Concatenate, ParamSpec

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from sqlalchemy import Connection

from proctor.core import InputError
from proctor_web.forms import QuestionText
from proctor_web.pages import language_of, page
from proctor_web.progress import my_studies, next_item, position_in_work
from proctor_web.questions import guessability, write_question
from proctor_web.readings import (
    ConflictError,
    IncompleteError,
    NotAssignedError,
    OpenItem,
    Save,
    adjudicate,
    my_reading,
    open_item,
    save_draft,
    seal,
    settlement,
)
from proctor_web.routes import RowId, StudyName
from proctor_web.sessions import Visitor, current, require, site_of, visitor_of
from proctor_web.settings import READING_ROLES
from proctor_web.strings import text
from proctor_web.visibility import others_readings

router = APIRouter()

P = ParamSpec("P")
Worker = Annotated[Visitor, Depends(require(*READING_ROLES))]

_LETTERS = "bdfghpqtvxyz"
"""Letters that neither the player nor the page uses as keys."""


def shortcut_keys(labels: Sequence[str], *, nothing: bool = False, positions: bool = False) -> list[str]:
    """The keyboard shortcut of each label, "" for those beyond the last key. A digit never stands for another number
    than the label's own: labels with one digit each have it as key. Other labels with digits have letters, as have all
    if the page numbers `positions`. Labels without digits have 1 to 9 in their order, then letters. With `nothing`, the
    key 0 is taken.

    >>> shortcut_keys(["0", "1", "2"]), shortcut_keys(["0", "0.5", "1"]), shortcut_keys(["clip", "stapler"])
    (['0', '1', '2'], ['b', 'd', 'f'], ['1', '2'])
    """
    numbers = [re.findall(r"-?\d+", label) for label in labels]
    own = [one[0] if len(one) == 1 and len(one[0]) == 1 else "" for one in numbers]
    if all(own) and len(set(own)) == len(own) and not (nothing and "0" in own):
        return own
    used = {label.lower() for label in labels}
    keys = [key for key in _LETTERS if key not in used]
    keys = keys if positions or any(numbers) else [*"123456789", *keys]
    return [keys[row] if row < len(keys) else "" for row in range(len(labels))]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class SaveRequest(_Request):
    """What a page saves (see `Save`)."""

    version: int = Field(ge=1)
    revision: int = Field(ge=0)
    payload: dict[str, JsonValue]
    comment: str = Field(default="", max_length=20_000)
    seconds: float = Field(default=0.0, ge=0)
    page: str = Field(default="", max_length=40)
    number: int = Field(default=0, ge=0, le=2**31 - 1)


class SettleRequest(SaveRequest):
    """What an adjudicator's page sends; the comment is the reason."""

    revision: int = 0
    seconds: float = 0.0


class QuestionRequest(_Request):
    """A question as it stands in the page."""

    text: dict[str, JsonValue]


def _saving(act: Callable[Concatenate[Request, P], dict[str, JsonValue]]) -> Callable[..., Response]:
    """A route that answers the page's script in JSON: saved, in conflict with another window, or refused with a
    reason."""

    @wraps(act)
    def answered(request: Request, *args: P.args, **kwargs: P.kwargs) -> Response:
        language = language_of(request, visitor_of(request))
        more: dict[str, JsonValue] = {}
        try:
            return JSONResponse(act(request, *args, **kwargs))
        except NotAssignedError:
            key, status = "error.e404", 404
        except ConflictError as error:
            key, status = "work.conflict", 409
            more["revision"] = error.reading.revision if error.reading is not None else 0
        except IncompleteError as error:
            key, status = "work.incomplete", 422
            more["missing"] = [text(language, "missing." + name) for name in error.missing]
        except InputError as error:
            key, status = "work.refused", 422
            more["missing"] = [str(error)]
        return JSONResponse({"message": text(language, key), **more}, status)

    return answered


@router.get("/")
def home(request: Request, visitor: Annotated[Visitor, Depends(current)]) -> Response:
    """The visitor's studies, and how much is left in each."""
    with site_of(request).reading() as connection:
        return page(request, "home", work=my_studies(connection, visitor.account))


@router.get("/study/{name}/next")
def next_of_study(
    request: Request, name: StudyName, visitor: Worker, after: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None
) -> Response:
    """Redirects to the next item that waits, or to the start page."""
    with site_of(request).reading() as connection:
        return RedirectResponse(_next_path(connection, visitor, name, after), 303)


@router.get("/item/{item_id}")
def item_page(request: Request, item_id: RowId, visitor: Worker) -> Response:
    """The page of an item for a reader or an adjudicator."""
    with _opened(request, item_id, visitor) as (connection, opened):
        mine = my_reading(connection, visitor.account, opened.version)
        others = others_readings(connection, visitor.account, opened.version)
        settled = settlement(connection, visitor.account, opened.version)
        study = next(iter(my_studies(connection, visitor.account, opened.study)), None)
        position = position_in_work(connection, visitor.account, opened.study, item_id)
    is_reader = opened.role == "reader"
    shown = settled if settled is not None and not is_reader else None
    begun = (
        {} if is_reader else opened.form.begun(opened.body, [opened.form.read(opened.body, o.payload) for o in others])
    )
    return page(
        request,
        "item",
        item=opened,
        form=opened.form,
        body=opened.body,
        mine=mine,
        payload=mine.payload if mine is not None else shown.payload if shown is not None else begun,
        comment=mine.comment if mine is not None else shown.reason if shown is not None else "",
        others=[visible_reading for visible_reading in others if visible_reading.account != visitor.account]
        if is_reader
        else others,
        settled=settled,
        open=mine is None or mine.sealed is None if is_reader else settled is None,
        study=study,
        position=position,
        keys_of=shortcut_keys,
    )


@router.post("/item/{item_id}/draft")
@_saving
def save(request: Request, item_id: RowId, visitor: Worker, body: SaveRequest) -> dict[str, JsonValue]:
    """Saves a draft."""
    site = site_of(request)
    with site.writing() as connection:
        draft = save_draft(connection, visitor.account, item_id, Save(**body.model_dump()), site.now())
    return {"revision": draft.revision}


@router.post("/item/{item_id}/seal")
@_saving
def seal_reading(request: Request, item_id: RowId, visitor: Worker, body: SaveRequest) -> dict[str, JsonValue]:
    """Saves and seals a reading; returns the next item's path."""
    site = site_of(request)
    with site.writing() as connection:
        study = open_item(connection, visitor.account, item_id).study
        seal(connection, visitor.account, item_id, Save(**body.model_dump()), site.now())
        return {"next": _next_path(connection, visitor, study, item_id)}


@router.post("/item/{item_id}/adjudicate")
@_saving
def settle(request: Request, item_id: RowId, visitor: Worker, body: SettleRequest) -> dict[str, JsonValue]:
    """Settles readings that differ; returns the next item's path."""
    site = site_of(request)
    with site.writing() as connection:
        study = open_item(connection, visitor.account, item_id).study
        adjudicate(connection, visitor.account, item_id, body.version, body.payload, body.comment, site.now())
        return {"next": _next_path(connection, visitor, study, item_id)}


@router.post("/item/{item_id}/guess")
def guess(request: Request, item_id: RowId, visitor: Worker, body: QuestionRequest) -> Response:
    """A fragment that says how guessable the page's question is."""
    with _opened(request, item_id, visitor, form="question") as (connection, opened):
        try:
            draft = QuestionText.model_validate(body.text)
        except ValueError:
            raise HTTPException(422) from None
        found = guessability(connection, item_id, opened.body, draft)
    return page(request, "guess", found=found)


@router.get("/item/{item_id}/new")
def new_question(request: Request, item_id: RowId, visitor: Worker) -> Response:
    """A page to write a new question about the same media."""
    with _opened(request, item_id, visitor, form="question") as (_, opened):
        return page(request, "new", item=opened, body=opened.body)


@router.post("/item/{item_id}/new")
@_saving
def add_question(request: Request, item_id: RowId, visitor: Worker, body: SaveRequest) -> dict[str, JsonValue]:
    """Adds the new question to the study, for others to read."""
    site = site_of(request)
    with site.writing() as connection:
        if open_item(connection, visitor.account, item_id).form.name != "question":
            raise HTTPException(404)
        write_question(connection, visitor.account, item_id, body.payload, body.comment, site.now())
    return {"next": f"/item/{item_id}"}


@contextmanager
def _opened(request: Request, item_id: int, visitor: Visitor, form: str = "") -> Iterator[tuple[Connection, OpenItem]]:
    """The visitor's item, of this form where one is named, with a connection to read more; else 404."""
    with site_of(request).reading() as connection:
        try:
            opened = open_item(connection, visitor.account, item_id)
        except NotAssignedError:
            raise HTTPException(404) from None
        if form and opened.form.name != form:
            raise HTTPException(404)
        yield connection, opened


def _next_path(connection: Connection, visitor: Visitor, study: str, after: int | None) -> str:
    item = next_item(connection, visitor.account, study, after)
    return "/" if item is None else f"/item/{item}"
