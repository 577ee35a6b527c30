"""The media of an item, for those who may see it: whatever is not there or not theirs is answered alike with 404.
Nothing of it is kept by a browser (`no-store`, as of all pages)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar, cast

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi import Path as InPath
from fastapi.responses import FileResponse, Response
from pydantic import TypeAdapter

from proctor.core import Image, InputError, Media, VideoClip
from proctor.media import MediaLibrary
from proctor.web.access import AssignedItem, known_item
from proctor.web.video import ItemMedia, ShownItem

T = TypeVar("T")

_ONE_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))")
_MEDIA: TypeAdapter[tuple[Media, ...]] = TypeAdapter(tuple[Media, ...])
_MOST_S = 10**6
_RETRY_S = 2

router = APIRouter(prefix="/media/{item_id}/{number}")


def item_media(request: Request) -> ItemMedia:
    """The media of the review that is served."""
    return cast("ItemMedia", request.app.state.item_media)


def shown_item(item: Annotated[AssignedItem, Depends(known_item)]) -> ShownItem:
    """The item, where it is assigned to the visitor, or the visitor is an organiser."""
    return ShownItem(item.key, _MEDIA.validate_python(item.media), item.condition)


def one_medium(item: Annotated[ShownItem, Depends(shown_item)], number: Annotated[int, InPath(ge=0, le=999)]) -> Media:
    """The item's medium with this number, from 0."""
    if number >= len(item.media):
        raise HTTPException(404)
    return item.media[number]


def one_clip(medium: Annotated[Media, Depends(one_medium)]) -> VideoClip:
    """The same, where it is a video."""
    if not isinstance(medium, VideoClip):
        raise HTTPException(404)
    return medium


Shown = Annotated[ShownItem, Depends(shown_item)]
Clip = Annotated[VideoClip, Depends(one_clip)]
Ours = Annotated[ItemMedia, Depends(item_media)]


@router.get("/timestamps")
async def timestamps(clip: Clip, media: Ours) -> Response:
    """The clip's `FrameTable`; its video begins to be made playable."""
    return await _answer(lambda: media.table(clip), "application/json")


@router.api_route("/video", methods=["GET", "HEAD"])
async def video(request: Request, clip: Clip, media: Ours) -> Response:
    """The whole video, or one range of its bytes; 202 while it is being made playable. `Playback-Lead` says at which of
    its seconds the first picture of the table is."""
    made = await _found(lambda: media.video(clip))
    if made is None:
        return Response(status_code=202, headers={"Retry-After": str(_RETRY_S)})
    path, lead = made
    return _file(request, path, {"Playback-Lead": repr(lead)})


@router.get("/frame/{pts}")
async def frame(
    item: Shown, clip: Clip, media: Ours, pts: Annotated[int, InPath(ge=-(2**63), lt=2**63)], as_shown: bool = False
) -> Response:
    """The picture with this timestamp, as large as the file, or `as_shown` to systems."""
    return await _answer(lambda: media.frame(item, clip, pts, as_shown=as_shown), "image/jpeg")


@router.get("/picture")
async def picture(
    item: Shown,
    medium: Annotated[Media, Depends(one_medium)],
    media: Ours,
    time: Annotated[float | None, Query(ge=0, le=_MOST_S)] = None,
) -> Response:
    """A still image, or what a video shows at a time of the item's clock."""
    if not isinstance(medium, Image | VideoClip):
        raise HTTPException(404)
    return await _answer(lambda: media.picture(item, medium, time), "image/jpeg")


async def _found(read: Callable[[], T]) -> T:
    """What is read, by the threads that decode; 404 where it can't be: why is not the visitor's to know."""
    try:
        return await asyncio.get_running_loop().run_in_executor(MediaLibrary.workers(), read)
    except InputError as error:
        raise HTTPException(404) from error


async def _answer(read: Callable[[], bytes], kind: str) -> Response:
    return Response(await _found(read), media_type=kind)


def _file(request: Request, path: Path, headers: dict[str, str]) -> Response:
    """The file, or the one range of it that is asked for. Several ranges, ranges that are none, and such as lie outside
    are refused with 416: no browser's player asks for them."""
    state = path.stat()
    asked = request.headers.get("range")
    if asked is not None and not _within(asked, state.st_size):
        return Response(status_code=416, headers={"Content-Range": f"bytes */{state.st_size}"})
    return FileResponse(path, headers=headers, media_type="video/mp4", stat_result=state)


def _within(asked: str, size: int) -> bool:
    found = _ONE_RANGE.fullmatch(asked)
    if found is None:
        return False
    first, last, tail = found.groups()
    if tail is not None:
        return int(tail) > 0
    return int(first) < size and (not last or int(last) >= int(first))
