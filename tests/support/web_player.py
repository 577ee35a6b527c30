"""Clock videos of every kind, and a page that plays them, served as the review serves its own: under the same
policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import av
from fastapi import FastAPI, HTTPException, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from proctor_web.app import create_app
from proctor_web.pages import FOLDER
from proctor_web.routes.media import shown_item
from proctor_web.strings import text
from proctor_web.video import ItemMedia, ShownItem
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.web_site import site

FILM_RATE = 60_000 / 1001


def clock_kinds(pictures: int = 90) -> dict[str, tuple[str, ClockVideo]]:
    """Videos by what is special about each: the file's name and how it is made."""
    even = [40 * k for k in range(pictures)]
    uneven = [40 * k + 9 * (k % 3) + 260 * (k // 20) for k in range(pictures)]
    film = [round(1000 * k / FILM_RATE) for k in range(pictures)]
    return {
        "constant rate": ("constant.mp4", ClockVideo(even)),
        "variable rate": ("variable.mp4", ClockVideo(uneven, keyint=30)),
        "B-frames": ("b-frames.mp4", ClockVideo(even, b_frames=3, keyint=24)),
        "B-frames, Matroska": ("b-frames.mkv", ClockVideo(even, b_frames=3, keyint=24)),
        "start offset": ("offset.mkv", ClockVideo([1200 + time for time in uneven], b_frames=2)),
        "start offset, TS": ("offset.ts", ClockVideo(even, b_frames=2)),
        "sound begins first": ("sound.mp4", ClockVideo([80 + time for time in even], b_frames=2, audio_s=1.0)),
        "59.94 a second": ("film.mp4", ClockVideo(film, b_frames=2, rate=60)),
        "turned by 90": ("turned.mp4", ClockVideo(uneven, b_frames=2, rotation=90)),
        "turned by 270": ("other-way.mp4", ClockVideo(even, rotation=-90)),
        "edit list": ("edited.mp4", ClockVideo(even, b_frames=3, keyint=24)),
        "VP9": ("vp9.webm", ClockVideo(uneven, codec="libvpx-vp9")),
        "re-encoded": ("mpeg4.avi", ClockVideo(even, codec="mpeg4", b_frames=2)),
        "re-encoded, turned": ("mpeg4-turned.mp4", ClockVideo(uneven, codec="mpeg4", rotation=90)),
    }


def write_clock_kinds(folder: Path, kinds: Sequence[str] | None = None, pictures: int = 90) -> dict[str, Path]:
    """Writes them (None: all)."""
    known = clock_kinds(pictures)
    written = {}
    for kind in known if kinds is None else kinds:
        name, video = known[kind]
        written[kind] = write_clock_video(folder / name, video)
        if kind == "edit list":
            _hide_first(written[kind], seconds=1.5)
    return written


def _hide_first(path: Path, *, seconds: float) -> None:
    """Leaves all packets where they are, and begins in the middle of a group by an edit list, as phones cut videos."""
    whole = path.rename(path.with_stem("whole"))
    with av.open(str(whole)) as source, av.open(str(path), "w") as target:
        stream = source.streams.video[0]
        copy = target.add_stream_from_template(stream)
        assert stream.time_base is not None
        shift = round(seconds / stream.time_base)
        for packet in source.demux(stream):
            if packet.pts is not None and packet.dts is not None:
                packet.pts, packet.dts, packet.stream = packet.pts - shift, packet.dts - shift, copy
                target.mux(packet)
    whole.unlink()


def review_app(folder: Path, media: ItemMedia, items: Mapping[int, ShownItem], body: str = "") -> FastAPI:
    """The review's application, in which anybody may see these items' media, with a page for each of them: its player,
    and `body`."""
    app = create_app(replace(site(folder), hosts=("127.0.0.1", "testserver")))
    app.state.item_media = media

    def item(item_id: int) -> ShownItem:
        if item_id not in items:
            raise HTTPException(404)
        return items[item_id]

    app.dependency_overrides[shown_item] = item

    @app.get("/player/{item_id}")
    def page(item_id: int) -> Response:
        return HTMLResponse(_page().render(item_id=item_id, body=body, t=partial(text, "en")))

    return app


@cache
def _page() -> Template:
    pages = Environment(loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined)
    return pages.from_string(
        """{% import "player.html" as video %}<!doctype html><html lang="en"><head><title>A player</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/proctor.css">{{ video.files() }}</head>
<body><main>{{ video.player(t, item_id, 0, [0.5, 2.0]) }}{{ body|safe }}</main></body></html>"""
    )
