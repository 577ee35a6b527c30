"""Who asks, and what they may open: for the routes, as dependencies or as functions.

    @router.get("/item/{item_id}")
    def item_page(request: Request, item: Annotated[AssignedItem, Depends(assigned_item)]) -> Response: ...

    @router.get("/organise/", dependencies=[Depends(require("organiser"))])

Where something is not there and where it is somebody else's, the answer is the same: 404.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from fastapi import HTTPException, Path, Request
from sqlalchemy import select

from proctor.web.review import ReviewSite
from proctor.web.schema import Role, assignments, studies, study_items
from proctor.web.sessions import Visitor, site_of, visitor_of

ItemId = Annotated[int, Path(ge=1, le=2**31 - 1)]
StudyName = Annotated[str, Path(max_length=80, pattern=r"^[\w.-]+$")]
"""As `review.yaml` names studies: what can be no name is not there, and reaches no database."""


class LoginNeededError(Exception):
    """Nobody is logged in: a page leads to the login, everything else is answered 401."""


@dataclass(frozen=True)
class AssignedItem:
    """An item of a study, and as what it is assigned to who asks: `organiser` where it is not, but is theirs to see.
    `condition` is the one under which systems saw its media."""

    id: int
    study: int
    study_name: str
    form: str
    key: str
    media: list[dict[str, Any]]
    condition: str
    role: Literal["reader", "adjudicator", "organiser"]


def review_of(request: Request) -> ReviewSite:
    """The review that is served."""
    return cast("ReviewSite", site_of(request))


def current(request: Request) -> Visitor:
    """Who is logged in; raises `LoginNeededError` where nobody is."""
    visitor = visitor_of(request)
    if visitor is None:
        raise LoginNeededError
    return visitor


def require(*roles: Role) -> Callable[[Request], Visitor]:
    """A dependency: who is logged in, in one of these roles. For others the page is not there."""

    def allowed(request: Request) -> Visitor:
        visitor = current(request)
        if visitor.role not in roles:
            raise HTTPException(404)
        return visitor

    return allowed


def assigned_item(request: Request, item_id: ItemId) -> AssignedItem:
    """The item, where it is assigned to who asks."""
    return _item(request, item_id, organiser=False)


def known_item(request: Request, item_id: ItemId) -> AssignedItem:
    """The item, where it is assigned to who asks, or an organiser asks."""
    return _item(request, item_id, organiser=True)


def _item(request: Request, item_id: int, *, organiser: bool) -> AssignedItem:
    visitor = current(request)
    mine = (assignments.c.item == study_items.c.id) & (assignments.c.account == visitor.account)
    query = (
        select(
            study_items,
            studies.c.name.label("study_name"),
            studies.c.form,
            studies.c.settings,
            assignments.c.role.label("mine"),
        )
        .join(studies, studies.c.id == study_items.c.study)
        .join(assignments, mine, isouter=True)
        .where(study_items.c.id == item_id)
    )
    with review_of(request).reading() as connection:
        row = connection.execute(query).mappings().first()
    role = None if row is None else row["mine"]
    if role is None and organiser and visitor.role == "organiser":
        role = "organiser"
    if row is None or role is None or visitor.role in {"participant", "public"}:
        raise HTTPException(404)
    names = ("id", "study", "study_name", "form", "key", "media")
    condition = row["settings"].get("condition") or "video"
    return AssignedItem(**{name: row[name] for name in names}, condition=condition, role=role)
