"""The media of an item over HTTP: who gets them, which bytes, and what comes of ranges and paths that nobody means."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from httpx2 import Response
from itsdangerous import Signer
from PIL import Image as PillowImage
from sqlalchemy import update

from proctor.core import Image, Item, Region, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, MediaSettings, Picture, pictures_at
from proctor_web.app import create_app
from proctor_web.schema import studies, study_items
from proctor_web.sessions import session_cookie, start_session
from proctor_web.video import ItemMedia, ShownItem
from tests.support.clock_video import ClockVideo, read_clock, write_clock_video
from tests.support.web_player import review_app
from tests.support.web_rows import one_item, people
from tests.support.web_site import site

TIMES = range(1200, 3200, 40)
LOWER = Region(x=0.0, y=0.5, width=1.0, height=0.5)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> MediaLibrary:
    root = tmp_path_factory.mktemp("videos")
    write_clock_video(root / "liver.mkv", ClockVideo(TIMES, b_frames=2))
    (root / "not.mp4").write_bytes(b"no video")
    (root.parent / "secret.mp4").write_bytes(b"elsewhere")
    still = MediaLibrary(root, cache_dir=root / "cache").unscaled()
    (root / "still.jpg").write_bytes(still.jpegs([Picture("liver.mkv", 0.4)])[0])
    settings = MediaSettings(max_side=96, overlay="absolute")
    return MediaLibrary(root, settings, cache_dir=root / "cache")


@pytest.fixture(scope="module")
def client(library: MediaLibrary, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    clip, part = VideoClip(source="liver.mkv", start=0.4, end=1.6), VideoClip(source="liver.mkv", region=LOWER)
    items = {
        1: ShownItem("one", (clip, Image(source="still.jpg"), part)),
        2: ShownItem("black", (clip,), condition="black"),
        3: ShownItem("blind", (clip,), condition="text-only"),
        4: ShownItem("broken", (VideoClip(source="not.mp4"), VideoClip(source="gone.mp4"))),
        5: ShownItem("outside", (VideoClip(source="../secret.mp4"), VideoClip(source="/etc/passwd"))),
    }
    library.playback("liver.mkv")
    with TestClient(review_app(tmp_path_factory.mktemp("review"), ItemMedia(library), items)) as client:
        wait = client.get("/media/1/0/video")
        while wait.status_code == 202:
            assert wait.headers["retry-after"] == "2"
            wait = client.get("/media/1/0/video")
        yield client


@pytest.fixture(scope="module")
def whole(client: TestClient) -> bytes:
    return client.get("/media/1/0/video").content


def ranged(client: TestClient, asked: str) -> Response:
    return client.get("/media/1/0/video", headers={"Range": asked})


def test_the_table_says_when_each_picture_is(client: TestClient, library: MediaLibrary) -> None:
    answer = client.get("/media/1/0/timestamps")
    assert answer.headers["cache-control"] == "no-store"
    table = answer.json()
    index = library.index("liver.mkv")
    stamps = [int(table["first"])]
    for step in table["steps"]:
        stamps.append(stamps[-1] + step)
    assert stamps == list(TIMES) == index.pts.tolist()
    assert [stamps[position] for position in table["keys"]] == index.keys.tolist()
    assert table["time_base"] == [1, 1000]
    assert (table["origin"], table["start"], table["end"]) == (0.0, 0.4, 1.6)
    assert (table["width"], table["height"], table["region"], table["plays"]) == (192, 96, None, True)
    assert table["sha256"] == library.identity("liver.mkv")
    assert client.get("/media/1/2/timestamps").json()["region"] == json.loads(LOWER.model_dump_json())


@pytest.mark.parametrize("position", [0, 7, 8, 49])
def test_a_picture_is_the_one_with_this_timestamp_as_large_as_the_file(client: TestClient, position: int) -> None:
    answer = client.get(f"/media/1/0/frame/{TIMES[position]}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
    assert answer.headers["cache-control"] == "no-store"
    assert read_clock(answer.content) == position


def test_as_shown_are_the_very_bytes_that_a_system_gets(client: TestClient, library: MediaLibrary) -> None:
    item = Item(
        id="one", group="g", question="q", answer=BinaryFormat(), media=(VideoClip(source="liver.mkv", start=0.4, end=1.6),)
    )  # fmt: skip
    stamp = TIMES[20]
    for number, condition in ((1, "video"), (2, "black")):
        (expected,) = pictures_at(item, condition, library, [0.8])
        assert client.get(f"/media/{number}/0/frame/{stamp}?as_shown=true").content == expected.jpeg
    black = client.get(f"/media/2/0/frame/{stamp}").content  # a reviewer sees what there is
    assert read_clock(black) == 20
    assert client.get(f"/media/3/0/frame/{stamp}?as_shown=true").status_code == 404
    assert client.get(f"/media/3/0/frame/{stamp}").status_code == 200


def test_a_region_is_all_that_is_shown_of_a_picture(client: TestClient, library: MediaLibrary) -> None:
    shown = client.get(f"/media/1/2/frame/{TIMES[5]}").content
    assert shown == library.unscaled(painted=False).jpegs([Picture("liver.mkv", 0.2, LOWER)])[0]


def test_outside_of_a_region_the_video_that_is_played_is_black(client: TestClient, tmp_path: Path) -> None:
    while (played := client.get("/media/1/2/video")).status_code == 202:
        pass
    (tmp_path / "played.mp4").write_bytes(played.content)
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    index = library.index("played.mp4")
    assert [round(index.seconds(int(pts)) * 1000) for pts in index.pts] == [time - TIMES[0] for time in TIMES]
    for jpeg in library.unscaled().jpegs([Picture("played.mp4", 0.0), Picture("played.mp4", 1.0)]):
        pixels = np.asarray(PillowImage.open(io.BytesIO(jpeg)).convert("L"))
        middle = pixels.shape[0] // 2
        assert pixels[: middle - 8].max() < 24
        assert pixels[middle + 8 :].max() > 60
    assert client.get("/media/1/0/video").content != played.content


def test_pictures_by_time_and_still_images(client: TestClient) -> None:
    assert read_clock(client.get("/media/1/0/picture?time=0.439").content) == 10
    assert read_clock(client.get("/media/1/1/picture").content) == 10
    for wrong in ("/media/1/0/picture", "/media/1/1/picture?time=1", "/media/1/1/timestamps", "/media/1/1/video"):
        assert client.get(wrong).status_code == 404
    for wrong in ("nan", "inf", "-1", "1e9", "x"):
        assert client.get(f"/media/1/0/picture?time={wrong}").status_code == 422


@pytest.mark.parametrize("pts", ["1201", "0", "-1", "99999", str(2**62), str(-(2**63))])
def test_a_timestamp_that_no_picture_has_is_not_there(client: TestClient, pts: str) -> None:
    assert client.get(f"/media/1/0/frame/{pts}").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/media/9/0/video", "/media/1/3/video", "/media/1/999/timestamps", "/media/9/0/frame/1200",
        "/media/4/0/timestamps", "/media/4/0/frame/0", "/media/4/1/timestamps", "/media/5/0/timestamps",
        "/media/5/1/timestamps", "/media/5/0/frame/0", "/media/5/1/picture?time=0", "/media/1/0/../../../etc/passwd",
        "/media/1/0/video/../../../../secret.mp4", "/media/1/0/%2e%2e/%2e%2e/secret.mp4", "/media/..%2f1/0/video/x",
        "/media/1/0/frame/..%2f..%2fsecret.mp4", "/static/../app.py", "/static/..%2fvideo.py",
        "/static/%2e%2e/video.py", "/static//etc/passwd",
    ],
)  # fmt: skip
def test_what_is_not_there_or_lies_elsewhere(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in {404, 422}
    assert b"elsewhere" not in answer.content
    assert b"root:" not in answer.content


@pytest.mark.parametrize("number", ["-1", "1000", "1e3", "9" * 5000, "%00", "0x1", "1;2"])
def test_numbers_that_are_none(client: TestClient, number: str) -> None:
    assert client.get(f"/media/1/{number}/video").status_code in {404, 422}
    assert client.get(f"/media/1/0/frame/{number if number != '1000' else '1e3'}").status_code in {404, 422}


def test_media_are_for_those_who_read_the_item_and_for_organisers(library: MediaLibrary, tmp_path: Path) -> None:
    review = site(tmp_path)
    with review.writing() as connection:
        who = people(connection)
        item, _ = one_item(connection, who)
        media = [VideoClip(source="liver.mkv").model_dump(mode="json")]
        connection.execute(update(study_items).values(media=media))
        tokens = {name: start_session(connection, account, review.now()) for name, account in who.items()}
    app = create_app(review)
    app.state.item_media = ItemMedia(library)
    paths = [f"/media/{item}/0/{what}" for what in ("timestamps", "frame/1200", "picture?time=1", "video")]
    answers = {}
    for name in [*who, "nobody"]:
        cookie = Signer(review.key, salt="session").sign(tokens.get(name, "")).decode()
        client = TestClient(app, base_url="http://review.test", cookies={session_cookie(review): cookie})
        answers[name] = [client.get(path).status_code for path in paths]
        assert client.get(paths[0]).headers["cache-control"] == "no-store"
    allowed, refused = [200] * 4, [404] * 4
    assert answers == {
        "anna": allowed, "ben": allowed, "cleo": allowed, "olga": allowed, "paul": refused, "rita": refused,
        "nobody": [401] * 4,
    }  # fmt: skip


def test_as_shown_is_under_the_condition_of_the_study(library: MediaLibrary, tmp_path: Path) -> None:
    review = site(tmp_path)
    with review.writing() as connection:
        who = people(connection)
        item, _ = one_item(connection, who)
        connection.execute(update(study_items).values(media=[VideoClip(source="liver.mkv").model_dump(mode="json")]))
        connection.execute(update(studies).values(settings={"condition": "black"}))
        token = start_session(connection, who["anna"], review.now())
    app = create_app(review)
    app.state.item_media = ItemMedia(library)
    cookie = Signer(review.key, salt="session").sign(token).decode()
    client = TestClient(app, base_url="http://review.test", cookies={session_cookie(review): cookie})
    plain, shown = (client.get(f"/media/{item}/0/frame/1200{more}").content for more in ("", "?as_shown=true"))
    assert read_clock(plain) == 0
    with PillowImage.open(io.BytesIO(shown)) as black:
        assert black.convert("L").getextrema() == (0, 0)


def test_a_server_that_stops_waits_for_no_video(
    library: MediaLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, asked = threading.Event(), []

    def slow(source: str, region: Region | None) -> Path:
        asked.append(source)
        go_on.wait()
        return tmp_path

    monkeypatch.setattr("proctor_web.video._PATIENCE_S", 0.0)
    monkeypatch.setattr(library, "playback", slow)
    media = ItemMedia(library)
    clips = [VideoClip(source=f"{name}.mp4") for name in "abca"]
    assert [media.video(clip) for clip in clips] == [None] * 4
    makers = [thread for thread in threading.enumerate() if thread.name == "playback"]
    assert makers
    assert all(thread.daemon for thread in makers)
    go_on.set()
    for thread in makers:
        thread.join()
    assert sorted(asked) == ["a.mp4", "b.mp4", "c.mp4"]  # each once, though two asked for a


def test_a_broken_video_is_not_there_however_often_it_is_asked_for(client: TestClient) -> None:
    for _ in range(2):
        answer = client.get("/media/4/0/video")
        while answer.status_code == 202:
            answer = client.get("/media/4/0/video")
        assert answer.status_code == 404
        assert b"not.mp4" not in answer.content


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("bytes=0-", 0, None), ("bytes=0-0", 0, 1), ("bytes=100-199", 100, 200), ("bytes=5-999999999999", 5, None)],
)
def test_one_range(client: TestClient, whole: bytes, asked: str, first: int, last: int | None) -> None:
    answer = ranged(client, asked)
    end = len(whole) if last is None else last
    assert (answer.status_code, answer.content) == (206, whole[first:end])
    assert answer.headers["content-range"] == f"bytes {first}-{end - 1}/{len(whole)}"
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == ("video/mp4", "no-store")


def test_the_end_of_a_video(client: TestClient, whole: bytes) -> None:
    assert ranged(client, "bytes=-10").content == whole[-10:]
    assert ranged(client, "bytes=-99999999").content == whole
    assert ranged(client, f"bytes={len(whole) - 1}-").content == whole[-1:]


@pytest.mark.parametrize(
    "asked",
    [
        "bytes=0-0,1-1", "bytes=0-," + ",".join("0-" for _ in range(5000)), "bytes=0-9,5-14", "bytes=9-0",
        "bytes=-0", "bytes=--1", "bytes=-", "bytes=", "bytes=5", "bytes=a-b", "bytes=1-2-3", "bytes=+1-2",
        "bytes=0x0-0x9", "bytes=1_0-2_0", "bytes=999999999-", "bytes=99999999999999999999-", "bytes= 0-1",
        "bytes=0 -1", "BYTES=0-1", "items=0-1", "0-1", "", "bytes=0-99999999999999999999", "bytes=1e3-",
    ],
)  # fmt: skip
def test_ranges_that_are_refused(client: TestClient, whole: bytes, asked: str) -> None:
    answer = ranged(client, asked)
    assert (answer.status_code, answer.content) == (416, b"")
    assert answer.headers["content-range"] == f"bytes */{len(whole)}"
    assert answer.headers["cache-control"] == "no-store"


def test_digits_of_other_scripts_are_no_range(client: TestClient) -> None:
    answer = client.get("/media/1/0/video", headers={b"Range": "bytes=٠-٩".encode()})
    assert answer.status_code == 416


def test_a_head_tells_the_size_alone(client: TestClient, whole: bytes) -> None:
    answer = client.head("/media/1/0/video")
    assert (answer.status_code, answer.content) == (200, b"")
    assert (answer.headers["content-length"], answer.headers["accept-ranges"]) == (str(len(whole)), "bytes")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_media_are_only_read(client: TestClient, method: str) -> None:
    assert client.request(method, "/media/1/0/video").status_code == 405
