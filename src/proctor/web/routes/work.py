"""A reader's and an adjudicator's work: the next item, the page of one, and what the page saves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import InputError
from proctor.web.access import ItemId, StudyName, current, review_of
from proctor.web.forms import QuestionText
from proctor.web.guessing import guessability
from proctor.web.pages import language_of, page
from proctor.web.readings import (
    ConflictError,
    IncompleteError,
    MyReading,
    NotAssignedError,
    OpenItem,
    Save,
    adjudicate,
    my_reading,
    open_item,
    others_readings,
    save_draft,
    seal,
    settlement,
)
from proctor.web.sessions import Visitor
from proctor.web.settings import READING_ROLES
from proctor.web.strings import text
from proctor.web.studies import my_studies, next_item
from proctor.web.writing import write_question

router = APIRouter()

T = TypeVar("T")


def _worker(request: Request) -> Visitor:
    visitor = current(request)
    if visitor.role not in READING_ROLES:
        raise HTTPException(404)
    return visitor


Worker = Annotated[Visitor, Depends(_worker)]
After = Annotated[int | None, Query(ge=1, le=2**31 - 1)]


class _Json(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class SaveRequest(_Json):
    """What a page saves (see `Save`)."""

    version: int = Field(ge=1)
    revision: int = Field(ge=0)
    payload: dict[str, JsonValue]
    comment: str = Field(default="", max_length=20_000)
    seconds: float = Field(default=0.0, ge=0)
    page: str = Field(default="", max_length=40)
    number: int = Field(default=0, ge=0, le=2**31 - 1)

    @property
    def save(self) -> Save:
        """The same, for the room."""
        return Save(**self.model_dump())


class SettleRequest(SaveRequest):
    """What an adjudicator's page sends; the comment is the reason."""

    revision: int = 0
    seconds: float = 0.0


class QuestionRequest(_Json):
    """A question as it stands in the page."""

    text: dict[str, JsonValue]


@router.get("/study/{name}/next")
def next_of_study(request: Request, name: StudyName, visitor: Worker, after: After = None) -> Response:
    """Leads to the item that waits, or to the start."""
    with review_of(request).reading() as connection:
        item = next_item(connection, visitor.account, name, after)
    return RedirectResponse("/" if item is None else f"/item/{item}", 303)


@router.get("/item/{item_id}")
def item_page(request: Request, item_id: ItemId, visitor: Worker) -> Response:
    """The page of one item, as a reader or an adjudicator sees it."""
    with review_of(request).reading() as connection:
        opened = _theirs(lambda: open_item(connection, visitor.account, item_id))
        mine = my_reading(connection, visitor.account, opened.version)
        others = others_readings(connection, visitor.account, opened.version)
        settled = settlement(connection, visitor.account, opened.version)
        study = next(iter(my_studies(connection, visitor.account, opened.study)), None)
    known = settled.payload if settled is not None and opened.role == "adjudicator" else {}
    return page(
        request,
        "item",
        item=opened,
        form=opened.form,
        body=opened.body,
        mine=mine,
        payload=mine.payload if mine is not None else known,
        comment=mine.comment if mine is not None else settled.reason if settled and known else "",
        others=[one for one in others if one.account != visitor.account] if opened.role == "reader" else others,
        settled=settled,
        open=settled is None if opened.role == "adjudicator" else mine is None or mine.sealed is None,
        study=study,
        keys=_KEYS,
    )


_KEYS = "123456789bdfghpqtvxyz"
"""Keys of classes, kinds and frames: none that the player or the page has."""


@router.post("/item/{item_id}/draft")
def save(request: Request, item_id: ItemId, visitor: Worker, said: SaveRequest) -> Response:
    """Keeps a draft."""
    site = review_of(request)

    def kept() -> MyReading:
        with site.writing() as connection:
            return save_draft(connection, visitor.account, item_id, said.save, site.now())

    return _answered(request, visitor, kept, lambda mine: {"revision": mine.revision})


@router.post("/item/{item_id}/seal")
def seal_reading(request: Request, item_id: ItemId, visitor: Worker, said: SaveRequest) -> Response:
    """Saves and seals, and says which item comes next."""
    site = review_of(request)

    def sealed() -> str:
        with site.writing() as connection:
            study = open_item(connection, visitor.account, item_id).study
            seal(connection, visitor.account, item_id, said.save, site.now())
            return _after(next_item(connection, visitor.account, study, item_id))

    return _answered(request, visitor, sealed, lambda after: {"next": after})


@router.post("/item/{item_id}/adjudicate")
def settle(request: Request, item_id: ItemId, visitor: Worker, said: SettleRequest) -> Response:
    """Settles readings that differ."""
    site = review_of(request)

    def settled() -> str:
        with site.writing() as connection:
            study = open_item(connection, visitor.account, item_id).study
            adjudicate(connection, visitor.account, item_id, said.version, said.payload, said.comment, site.now())
            return _after(next_item(connection, visitor.account, study, item_id))

    return _answered(request, visitor, settled, lambda after: {"next": after})


@router.post("/item/{item_id}/guess")
def guess(request: Request, item_id: ItemId, visitor: Worker, said: QuestionRequest) -> Response:
    """How guessable the text is that stands in the page: a fragment."""
    with review_of(request).reading() as connection:
        opened = _theirs(lambda: open_item(connection, visitor.account, item_id))
        if opened.form.name != "question":
            raise HTTPException(404)
        try:
            draft = QuestionText.model_validate(said.text)
        except ValueError:
            raise HTTPException(422) from None
        found = guessability(connection, item_id, opened.body, draft)
    return page(request, "guess", found=found)


@router.get("/item/{item_id}/new")
def new_question(request: Request, item_id: ItemId, visitor: Worker) -> Response:
    """A page to write a new question about the same media."""
    with review_of(request).reading() as connection:
        opened = _question(connection, visitor, item_id)
    return page(request, "new", item=opened, body=opened.body)


@router.post("/item/{item_id}/new")
def add_question(request: Request, item_id: ItemId, visitor: Worker, said: SaveRequest) -> Response:
    """Adds the new question to the study, for others to read."""
    site = review_of(request)

    def added() -> str:
        with site.writing() as connection:
            _question(connection, visitor, item_id)
            write_question(connection, visitor.account, item_id, said.payload, said.comment, site.now())
        return f"/item/{item_id}"

    return _answered(request, visitor, added, lambda after: {"next": after})


def _question(connection: Any, visitor: Visitor, item: int) -> OpenItem:
    opened = _theirs(lambda: open_item(connection, visitor.account, item))
    if opened.form.name != "question":
        raise HTTPException(404)
    return opened


def _after(item: int | None) -> str:
    return "/" if item is None else f"/item/{item}"


def _theirs(read: Callable[[], T]) -> T:
    try:
        return read()
    except NotAssignedError:
        raise HTTPException(404) from None


def _answered(
    request: Request, visitor: Visitor, act: Callable[[], T], told: Callable[[T], dict[str, JsonValue]]
) -> Response:
    """What became of a save, for the page's script: done, in conflict with another window, or refused, and why."""
    language = language_of(request, visitor)
    try:
        return JSONResponse(told(act()))
    except NotAssignedError:
        return JSONResponse({"told": text(language, "error.e404")}, 404)
    except ConflictError as error:
        revision = error.reading.revision if error.reading is not None else 0
        return JSONResponse({"told": text(language, "work.conflict"), "revision": revision}, 409)
    except IncompleteError as error:
        lacking: list[JsonValue] = [text(language, "missing." + name) for name in error.missing]
        return JSONResponse({"told": text(language, "work.incomplete"), "missing": lacking}, 422)
    except InputError as error:
        return JSONResponse({"told": text(language, "work.refused"), "missing": [str(error)]}, 422)
