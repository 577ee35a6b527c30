"""A file of video, whole or one range of its bytes."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response

_ONE_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))")


def video_file(request: Request, path: Path, headers: dict[str, str]) -> Response:
    """The file, or the requested range of it. Several ranges, malformed ranges, and ranges outside the file are
    answered with 416: no browser's player sends them."""
    state = path.stat()
    requested = request.headers.get("range")
    if requested is not None and not _within(requested, state.st_size):
        return Response(status_code=416, headers={"Content-Range": f"bytes */{state.st_size}"})
    return FileResponse(path, headers=headers, media_type="video/mp4", stat_result=state)


def _within(requested: str, size: int) -> bool:
    found = _ONE_RANGE.fullmatch(requested)
    if found is None:
        return False
    first, last, tail = found.groups()
    if tail is not None:
        return int(tail) > 0
    return int(first) < size and (not last or int(last) >= int(first))
