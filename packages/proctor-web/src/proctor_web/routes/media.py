"""The media of an item. What does not exist and what a visitor may not see are both answered with 404."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi import Path as InPath
from fastapi.responses import Response
from pydantic import TypeAdapter
from sqlalchemy import select

from proctor.core import Image, InputError, Media, VideoClip
from proctor.media import MediaLibrary
from proctor_web.byte_ranges import video_file
from proctor_web.forms import Form, form_named
from proctor_web.progress import read_version
from proctor_web.routes import RowId
from proctor_web.schema import assignments, studies, study_items, versions
from proctor_web.sessions import current, site_of
from proctor_web.video import ItemMedia, ShownItem

T = TypeVar("T")

_MEDIA: TypeAdapter[tuple[Media, ...]] = TypeAdapter(tuple[Media, ...])
_MOST_S = 10**6
_RETRY_S = 2

router = APIRouter(prefix="/media/{item_id}")


def item_media(request: Request) -> ItemMedia:
    """The media of the review that is served."""
    return cast("ItemMedia", request.app.state.item_media)


@dataclass(frozen=True)
class _Found:
    """An item that a visitor may see: its form, the fields of the version that is read now, and whether the visitor reads
    or settles it."""

    item: ShownItem
    form: Form[Any, Any]
    body: dict[str, Any]
    has_work: bool


def found_item(request: Request, item_id: RowId) -> _Found:
    """The item, if it is assigned to the visitor or the visitor is an organiser."""
    visitor = current(request)
    mine = (assignments.c.item == study_items.c.id) & (assignments.c.account == visitor.account)
    query = (
        select(
            study_items.c.key,
            study_items.c.media,
            studies.c.settings,
            studies.c.form,
            versions.c.body,
            assignments.c.role,
        )
        .join(studies, studies.c.id == study_items.c.study)
        .join(versions, versions.c.id == read_version(study_items.c.id))
        .join(assignments, mine, isouter=True)
        .where(study_items.c.id == item_id)
    )
    with site_of(request).reading() as connection:
        row = connection.execute(query).first()
    allowed = visitor.role not in {"participant", "public"}
    if row is None or not allowed or (row.role is None and visitor.role != "organiser"):
        raise HTTPException(404)
    item = ShownItem(row.key, _MEDIA.validate_python(row.media), row.settings.get("condition") or "video")
    return _Found(item, form_named(row.form), row.body, row.role is not None)


def shown_item(found: Annotated[_Found, Depends(found_item)]) -> ShownItem:
    """The item, if its media may be asked for by time: people who are to order its frames see those alone."""
    if found.form.frames_only and found.has_work:
        raise HTTPException(404)
    return found.item


def one_medium(item: Annotated[ShownItem, Depends(shown_item)], number: Annotated[int, InPath(ge=0, le=999)]) -> Media:
    """The item's medium with this number, from 0."""
    if number >= len(item.media):
        raise HTTPException(404)
    return item.media[number]


def one_clip(medium: Annotated[Media, Depends(one_medium)]) -> VideoClip:
    """The medium, if it is a video."""
    if not isinstance(medium, VideoClip):
        raise HTTPException(404)
    return medium


Shown = Annotated[ShownItem, Depends(shown_item)]
Clip = Annotated[VideoClip, Depends(one_clip)]
ServedMedia = Annotated[ItemMedia, Depends(item_media)]


@router.get("/{number}/timestamps")
async def timestamps(clip: Clip, media: ServedMedia) -> Response:
    """The clip's `FrameTable`; starts to make its video playable."""
    return await _answer(lambda: media.table(clip), "application/json")


@router.api_route("/{number}/video", methods=["GET", "HEAD"])
async def video(request: Request, clip: Clip, media: ServedMedia) -> Response:
    """The whole video, or one range of its bytes; 202 while it is being made playable. The header `Playback-Lead` is
    the second at which the table's first picture is shown."""
    made = await _found(lambda: media.video(clip))
    if made is None:
        return Response(status_code=202, headers={"Retry-After": str(_RETRY_S)})
    path, lead = made
    return video_file(request, path, {"Playback-Lead": repr(lead)})


@router.get("/{number}/frame/{pts}")
async def frame(
    item: Shown,
    clip: Clip,
    media: ServedMedia,
    pts: Annotated[int, InPath(ge=-(2**63), lt=2**63)],
    as_shown: bool = False,
) -> Response:
    """The picture with this timestamp, in full size or `as_shown` to systems."""
    return await _answer(lambda: media.frame(item, clip, pts, as_shown=as_shown), "image/jpeg")


@router.get("/{number}/picture")
async def picture(
    item: Shown,
    medium: Annotated[Media, Depends(one_medium)],
    media: ServedMedia,
    time: Annotated[float | None, Query(ge=0, le=_MOST_S)] = None,
) -> Response:
    """A still image, or the picture of a video at a time of the item's clock."""
    if not isinstance(medium, Image | VideoClip):
        raise HTTPException(404)
    return await _answer(lambda: media.picture(item, medium, time), "image/jpeg")


@router.get("/labelled")
async def labelled(
    found: Annotated[_Found, Depends(found_item)], media: ServedMedia, frame: Annotated[str, Query(max_length=80)]
) -> Response:
    """The frame with this id, of an item whose frames are to be ordered. The address says nothing of its time."""
    frames = found.form.read_body(found.body).frames if found.form.frames_only else ()
    shown = next((one for one in frames if one.id == frame), None)
    if shown is None or shown.media >= len(found.item.media):
        raise HTTPException(404)
    medium = found.item.media[shown.media]
    if not isinstance(medium, Image | VideoClip):
        raise HTTPException(404)
    return await _answer(lambda: media.picture(found.item, medium, shown.time), "image/jpeg")


async def _found(read: Callable[[], T]) -> T:
    """Reads in the threads that decode; 404 where that fails, without the reason."""
    try:
        return await asyncio.get_running_loop().run_in_executor(MediaLibrary.workers(), read)
    except InputError as error:
        raise HTTPException(404) from error


async def _answer(read: Callable[[], bytes], kind: str) -> Response:
    return Response(await _found(read), media_type=kind)
