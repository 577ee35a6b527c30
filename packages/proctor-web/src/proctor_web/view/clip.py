"""The clips of an item, played exactly, by the player of a review: the item's media as they are, with the times at which an
answer's frames were taken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from proctor.core import InputError, Item, VideoClip, count_of
from proctor.results import items_at
from proctor_web.byte_ranges import video_file
from proctor_web.strings import DEFAULT, text
from proctor_web.view.one_answer import addressed_answer
from proctor_web.view.query import answer_path, path_of
from proctor_web.view.shown import shown_pictures
from proctor_web.view.site import Asked, Page, View
from proctor_web.view.words import column_words

if TYPE_CHECKING:
    from proctor_web.video import ItemMedia

T = TypeVar("T")

_RETRY_S = 2
_LEAST, _MOST = -(2**63), 2**63


def clip_page(asked: Asked) -> Page:
    """The clips of an item, at …/clip/ITEM/SYSTEM/CONDITION/K: with the times of the frames that this answer's model got.
    Raises `InputError` for an unknown answer, and for an item without a video."""
    column, item, answer = addressed_answer(asked)
    numbers = [number for number, medium in enumerate(item.media) if isinstance(medium, VideoClip)]
    if not numbers:
        raise InputError("item", found=f"{item.id!r}, without a video", expected="one with a clip to play")
    times = sorted({one.time for one in shown_pictures(answer) if one.time is not None})
    context = {
        "item": item,
        "answer_href": answer_path(item.id, column),
        "whose": " / ".join(column_words(column)),
        "events": times if len(numbers) == 1 else (),
        "frames": count_of(len(times), "frame"),
        "players": [path_of("b", asked.state.name, "media", item.id, number) for number in numbers],
        "t": partial(text, DEFAULT),
    }
    data = {
        "item": item.id,
        "clips": [item.media[number].model_dump(mode="json") for number in numbers],
        "times": times,
    }
    return Page("clip", context, data, [{"time": time} for time in times], "answers")


async def clip_media(request: Request, view: View, segments: Sequence[str]) -> Response:
    """What the player asks for: …/media/ITEM/NUMBER/timestamps, /video or /frame/TIMESTAMP. Raises `InputError` for
    anything else, and for media that can't be read."""
    asked = await run_in_threadpool(Asked.of, view, segments[1], (), segments)
    item, number = await run_in_threadpool(_item, asked)
    clip = item.media[number]
    if not isinstance(clip, VideoClip):
        raise InputError("clip", found=clip.kind, expected="a video")
    media = view.shown(segments[1]).clips()
    match segments[5:]:
        case ["timestamps"]:
            return Response(await _read(lambda: media.table(clip)), media_type="application/json")
        case ["video"]:
            made = await _read(lambda: media.video(clip))
            if made is None:
                return Response(status_code=202, headers={"Retry-After": str(_RETRY_S)})
            return video_file(request, made[0], {"Playback-Lead": repr(made[1])})
        case ["frame", pts] if "as_shown" not in request.query_params:
            content = await _read(lambda: _frame(media, item, clip, pts))
            return Response(content, media_type="image/jpeg")
    raise InputError("address", found="/".join(segments[5:])[:40], expected="timestamps, video or frame/TIMESTAMP")


def _item(asked: Asked) -> tuple[Item, int]:
    """The item and the number of its medium in an address …/media/ITEM/NUMBER/…"""
    name, number = [*asked.segments[3:5], "", ""][:2]
    position = asked.state.index.item_position(name)
    item = items_at(asked.view.store, asked.state.index, [position])[position]
    if not number.isdecimal() or len(number) > 4 or int(number) >= len(item.media):
        raise InputError("medium", found=number[:20], expected=f"its number, below {len(item.media)}")
    return item, int(number)


def _frame(media: ItemMedia, item: Item, clip: VideoClip, pts: str) -> bytes:
    from proctor_web.video import ShownItem

    stamp = int(pts) if len(pts) <= len(str(_LEAST)) and pts.lstrip("-").isdecimal() else _MOST
    if not _LEAST <= stamp < _MOST:
        raise InputError("frame", found=pts[:40], expected="a timestamp of the clip's table")
    return media.frame(ShownItem(item.id, item.media), clip, stamp, as_shown=False)


async def _read(read: Callable[[], T]) -> T:
    """Reads in the threads that decode."""
    from proctor.media import MediaLibrary

    return await asyncio.get_running_loop().run_in_executor(MediaLibrary.workers(), read)
