"""A view follows a store that others write, changes nothing in it, and shows nothing to strangers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import ACCURACY, Answer, Benchmark, InputError, Item, Reference, Score, Status, UsageError, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.runs import Store
from proctor_web import Listening, open_view
from proctor_web.view.overview import board_of
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor as program
from tests.support.report_store import a_store
from tests.support.view_site import opened


def answer(item: str, value: float) -> tuple[Answer, list[Score]]:
    return Answer(item_id=item, text="Answer: A", parsed="A"), [Score(item_id=item, metric="accuracy", value=value)]


def test_a_run_is_followed_while_it_is_asked(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    run = store.start_run("toy", "newcomer", "video", {})
    clock = [100.0]
    with opened(tmp_path / "toy.db") as (view, client):
        watch = view.view.watch
        watch._clock = lambda: clock[0]

        def now() -> dict[str, Any]:
            watch.look()
            rows = client.get("/b/toy?format=json").json()["runs"]
            return next(row for row in rows if row["system"] == "newcomer")

        first = client.get("/live?b=toy").json()
        assert now()["settled"] == 0
        with store.owning([run]):
            assert now()["working"]
            for number in range(10):
                clock[0] += 1.0
                store.write(run, [answer(f"q{number:03d}", 1.0), answer(f"q{number + 16:03d}", 0.0)])
                row = now()
                assert row["settled"] == 2 * (number + 1)
            assert row["answers_per_s"] == pytest.approx(2.0)
            assert row["left_s"] == pytest.approx((48 - 20) / 2.0)
            live = client.get("/live?b=toy").json()
            assert (live["running"], live["settled"] - first["settled"]) == (1, 20)
            assert live["version"] > first["version"]
            assert "1 run running" in client.get("/b/toy").text
            assert "running, less than 1 min left" in client.get("/b/toy?part=runs").text
        assert not now()["working"]
        assert now()["left_s"] is None
        assert client.get("/b/toy/answers?system=newcomer&result=right&format=json").json()["answers"] == 10


def test_the_newest_answers_are_those_that_came_in_while_it_was_watched(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    run = store.start_run("toy", "newcomer", "video", {})
    with opened(tmp_path / "toy.db") as (view, client):
        watch = view.view.watch

        def newest() -> list[tuple[str, str]]:
            watch.look()
            found = client.get("/b/toy?format=json").json()["newest"]
            assert {row["system"] for row in found} <= {"newcomer"}
            return [(row["item"], row["state"]) for row in found]

        with store.owning([run]):
            assert newest() == [], "what was there before is not new"
            assert "Answers appear here as they come in." in client.get("/b/toy").text
            failed = Answer(item_id="q005", status=Status.FAILED, reason="HTTP 500")
            store.write(run, [answer("q001", 1.0), answer("q000", 0.0), (failed, [])])
            assert newest() == [("q001", "right"), ("q000", "wrong")], "a failed one is no answer: it is asked again"
            assert newest() == [("q001", "right"), ("q000", "wrong")]
            store.write(run, [answer("q005", 1.0)])
            store.add_scores(run, [Score(item_id="q000", metric="accuracy", value=1.0)])
            assert newest() == [("q005", "right"), ("q001", "right"), ("q000", "right")], "a new score is no new answer"
            store.write(run, [answer(f"q{number:03d}", 0.0) for number in range(10, 22)])
            assert newest() == [(f"q{number:03d}", "wrong") for number in range(21, 13, -1)], "eight are kept"
            part = client.get("/b/toy?part=newest").text
            assert part.count("<tr data-row>") == 8
            assert 'href="/b/toy/answers/q021/newcomer/video/0"' in part
            store.write(run, [(failed.model_copy(update={"item_id": "q021"}), [])])
            newest()
            store.write(run, [answer("q021", 1.0)])
            assert newest()[:2] == [("q021", "right"), ("q020", "wrong")], "one that came again is listed once"
            other = store.start_run("toy", "imported", "video", {})
            store.write(other, [answer("q030", 1.0)])
            watch.look()
            first = client.get("/b/toy?format=json").json()["newest"][0]
            assert (first["item"], first["system"]) == ("q030", "imported"), "all answers of a new run are new"


def test_figures_wait_until_a_run_ends(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    run = store.start_run("toy", "newcomer", "video", {})
    with opened(tmp_path / "toy.db") as (view, _):
        watch, shown = view.view.watch, view.view
        with store.owning([run]):
            watch.look()
            first = board_of(shown, shown.state("toy"), 60)
            store.write(run, [answer("q000", 1.0)])
            watch.look()
            again = board_of(shown, shown.state("toy"))
            assert again == first, "not computed again while it runs"
            assert not again.stale
        watch.look()
        assert board_of(shown, shown.state("toy")).stale
        last = board_of(shown, shown.state("toy"), 60)
        assert not last.stale
        assert "newcomer" in last.value.html


def test_what_can_wait_begins_when_the_first_page_was_sent(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    with opened(tmp_path / "toy.db") as (view, client):
        desk, began = view.view.desk, list[bool]()
        assert desk.get("figures", 1, lambda: began.append(view.view.first_sent.is_set())) is None
        assert client.get("/live?b=toy").status_code == client.get("/static/view.css").status_code == 200
        assert not view.view.first_sent.is_set(), "neither of these is a page"
        assert client.get("/b/toy").status_code == 200
        assert view.view.first_sent.is_set()
        assert desk.get("figures", 1, lambda: None, 60) is not None
        assert began == [True]
    with opened(tmp_path / "toy.db") as (view, _):
        waited = view.view.desk.get("figures", 1, lambda: 7, 60)
        assert waited is not None
        assert waited.value == 7, "who waits is not kept waiting for a page"


def test_what_can_wait_lets_pages_go_first(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    with opened(tmp_path / "toy.db") as (site, _):
        view, began = site.view, list[bool]()
        view.most_wait_s = 600  # however slow the machine is
        assert view.desk.get("figures", 1, lambda: began.append(True)) is None
        for _ in range(2):
            view.page_asked()
        view.page_sent()
        assert view.first_sent.is_set()
        view.wait_for_quiet(1.0)  # longer than the quiet that is waited for
        assert began == [], "somebody waits for the second page"
        view.page_sent()
        view.wait_for_quiet()
        for _ in range(600):
            if began:
                break
            time.sleep(0.1)
        assert began == [True]


def test_a_store_that_is_away_leaves_the_last_state(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    with opened(tmp_path / "toy.db") as (view, client):
        (tmp_path / "toy.db").rename(tmp_path / "moved.db")
        view.view.store._engine.dispose()
        view.view.watch.look()
        fault = client.get("/live?b=toy").json()["fault"]
        assert "toy.db" in fault
        assert "The store can't be read now, what is shown is the last state:" in client.get("/b/toy").text
        (tmp_path / "moved.db").rename(tmp_path / "toy.db")
        view.view.watch.look()
        assert client.get("/live?b=toy").json()["fault"] == ""
        assert "47 / 48" in client.get("/b/toy").text


def test_looking_changes_no_byte(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    before = hashlib.sha256((tmp_path / "toy.db").read_bytes()).hexdigest()
    with opened(tmp_path / "toy.db") as (_, client):
        for address in ("/b/toy", "/b/toy/answers?q=clip", "/b/toy/compare", "/b/toy/items", "/r/1"):
            assert client.get(address).status_code == 200
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            assert client.request(method, "/b/toy").status_code == 405, method
    assert hashlib.sha256((tmp_path / "toy.db").read_bytes()).hexdigest() == before


def test_an_empty_store_says_how_to_begin(tmp_path: Path) -> None:
    Store(tmp_path / "new.db").close()
    with opened(tmp_path / "new.db") as (view, client):
        assert "No answer yet." in client.get("/").text
        a_store(tmp_path).close()
        store = Store(tmp_path / "new.db")
        store.add_benchmark(benchmark(tmp_path))
        view.view.watch.look()
        page = client.get("/").text
        assert "No answer yet." in page
        assert "proctor run clips" in page
        for address in ("/b/clips/answers", "/b/clips/compare", "/b/clips/items"):
            assert client.get(address).status_code == 200, address


# -- who may look


def test_without_the_token_nothing_is_shown(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    with opened(tmp_path / "toy.db", ask_token=True) as (view, client):
        assert len(view.token) >= 32
        for address in ("/", "/b/toy", "/live", "/static/view.css", "/static/shared/tokens.css", "/b/toy?format=json",
                        "/b/toy/answers?token=", "/b/toy?token=wrong", f"/b/toy?token={view.token[:-1]}", "/nope"):  # fmt: skip
            for cookies in ({}, {"proctor-view": "wrong"}, {"proctor-view": ""}):
                answer = client.get(address, headers={"cookie": "; ".join(f"{k}={v}" for k, v in cookies.items())})
                assert answer.status_code == 401, address
                assert "toy" not in answer.text
        came = client.get(f"/b/toy/answers?result=wrong&token={view.token}")
        assert came.status_code == 303
        assert came.headers["location"] == "/b/toy/answers?result=wrong", "the token leaves the address"
        cookie = came.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert client.get("/b/toy").status_code == 200
        assert view.token not in client.get("/b/toy").text
        away = client.get(f"http://view.test//evil.test/?token={view.token}", headers={"cookie": ""})
        assert away.headers.get("location", "/").startswith("/evil.test/") or away.status_code == 200


def test_only_its_own_names_are_answered(client: Any) -> None:
    assert client.get("/b/toy", headers={"host": "evil.test"}).status_code == 400
    answer = client.get("/b/toy")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"


def test_another_address_needs_encryption_and_a_token(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    with pytest.raises(UsageError, match="--tls-cert and --tls-key, or an SSH tunnel to"):
        open_view(tmp_path / "toy.db", Listening("0.0.0.0", 0))
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("x")
    there = Listening("0.0.0.0", 0, tmp_path / "cert.pem", tmp_path / "key.pem")
    made = open_view(tmp_path / "toy.db", there)
    assert made.token
    assert made.address(8443) == f"https://0.0.0.0:8443/?token={made.token}"
    made.view.close()
    here = open_view(tmp_path / "toy.db")
    assert here.token == ""
    assert here.address(80) == "http://127.0.0.1:80/"
    here.view.close()


def test_a_command_without_a_store_is_one_line(tmp_path: Path) -> None:
    done = program("view", tmp_path / "none.db")
    assert done.returncode == 1
    assert done.stderr.strip() == f"proctor: {tmp_path / 'none.db'}: found no such file, expected a store"
    a_store(tmp_path).close()
    done = program("view", tmp_path / "toy.db", "--media", tmp_path / "nowhere")
    assert "found no such folder, expected the folder of the benchmark's media" in done.stderr


# -- what was shown


def benchmark(media: Path) -> Benchmark:
    items = tuple(
        Item(
            id=f"clip/{name}",
            group=name,
            question=f"Is {name} so?",
            answer=BinaryFormat(),
            media=(VideoClip(source="a.mp4", start=start, end=start + 2.0),),
            reference=Reference(answer=True),
        )
        for name, start in (("one", 0.0), ("two", 1.0))
    )
    return Benchmark("clips", "Clips", items, (ACCURACY,), "accuracy", media_root=media)


def test_the_frames_are_the_ones_that_the_model_got(tmp_path: Path) -> None:
    media = tmp_path / "media"
    media.mkdir()
    write_clock_video(media / "a.mp4", ClockVideo(times_ms=range(0, 5000, 100), rate=10, keyint=10))
    with FaultyServer("Answer: yes") as server:
        how: dict[str, Any] = {"model": "m", "base_url": server.url, "conditions": ("video", "text-only")}
        store = Store(tmp_path / "clips.db")
        proctor.run(benchmark(media), store=store, cache=tmp_path / "cache", **how)
        sent = json.dumps([request.body for request in server.requests])
    store.close()
    page_of = "/b/clips/answers/clip%2Fone/m/video/0"
    with opened(tmp_path / "clips.db", media=media) as (_, client):
        page = client.get(page_of).text
        pictures = re.findall(r'<a href="([^"]+)" data-frame>', page)
        assert len(pictures) >= 2
        for address in pictures:
            picture = client.get(address)
            assert picture.status_code == 200
            assert picture.headers["content-type"] == "image/jpeg"
            prefix = address.rpartition("/")[2]
            assert hashlib.sha256(picture.content).hexdigest().startswith(prefix)
            assert base64.b64encode(picture.content).decode() in sent, "the very bytes of the request"
        shown = client.get("/b/clips/shown/clip%2Fone/m/video/0").json()
        assert shown == {
            "same": True,
            "count": len(pictures),
            "said": f"made again, and the same: all {len(pictures)} have the recorded SHA-256",
        }
        assert "As it was sent: the recorded hash confirms these words." in page
        assert "Is one so?" in page
        blind = client.get("/b/clips/answers/clip%2Fone/m/text-only/0").text
        assert "data-frame>" not in blind
        assert "Nothing was shown: the question alone." in blind
    write_clock_video(media / "a.mp4", ClockVideo(times_ms=range(0, 5000, 200), rate=5, keyint=10))
    with opened(tmp_path / "clips.db", media=media) as (_, client):
        changed = [client.get(address).status_code for address in pictures]
        assert 404 in changed, "a picture that is not the one that was shown is not shown"
        said = client.get("/b/clips/shown/clip%2Fone/m/video/0")
        assert said.status_code == 404 or not said.json()["same"]
    with opened(tmp_path / "clips.db", media=tmp_path) as (_, client):
        assert client.get(pictures[0]).status_code == 404
        assert client.get(page_of).status_code == 200, "the page needs no media"


def test_a_clip_is_played_as_the_benchmark_has_it(tmp_path: Path) -> None:
    media = tmp_path / "media"
    media.mkdir()
    write_clock_video(media / "a.mp4", ClockVideo(times_ms=range(0, 5000, 100), rate=10, keyint=10))
    with FaultyServer("Answer: yes") as server:
        how: dict[str, Any] = {"model": "m", "base_url": server.url, "conditions": ("video", "black")}
        store = Store(tmp_path / "clips.db")
        proctor.run(benchmark(media), store=store, cache=tmp_path / "cache", **how)
    store.close()
    with opened(tmp_path / "clips.db", media=media) as (_, client):
        page = client.get("/b/clips/answers/clip%2Ftwo/m/video/0").text
        (href,) = re.findall(r'<a href="([^"]+)">Play the clip</a>', page)
        assert href == "/b/clips/clip/clip%2Ftwo/m/video/0"
        player = client.get(href).text
        (address,) = re.findall(r'data-media="([^"]+)"', player)
        assert "no model was shown this" in player
        assert 'data-do="shown"' not in player, "what the model got stands beside its answer"
        given = client.get(f"{href}?format=json").json()["times"]
        (events,) = re.findall(r'data-events="([^"]*)"', player)
        assert [float(one) for one in events.split()] == given
        table = client.get(f"{address}/timestamps").json()
        assert (table["start"], table["end"], len(table["steps"])) == (1.0, 3.0, 49)
        assert table["plays"]
        assert all(table["start"] <= time < table["end"] for time in given), "both by the item's clock"
        pts = int(table["first"]) + sum(table["steps"][:10])
        picture = client.get(f"{address}/frame/{pts}")
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/jpeg")
        for _ in range(600):  # it is made playable in another thread
            video = client.get(f"{address}/video", headers={"range": "bytes=0-99"})
            if video.status_code != 202:
                break
        assert (video.status_code, len(video.content)) == (206, 100)
        assert float(video.headers["playback-lead"]) >= 0
        assert client.request("HEAD", f"{address}/video").status_code == 200
        assert client.get(f"{address}/video", headers={"range": "bytes=5-1,9-"}).status_code == 416
        wrong = ("/timestamps/x", "/video/..%2F..%2Fetc", "/frame/x", "/frame/-", "/frame/7", f"/frame/{10**30}", "/frame/²",
                 f"/frame/{pts}?as_shown=true", "", "/nothing")  # fmt: skip
        for rest in wrong:
            assert client.get(address + rest).status_code == 404, rest
        for other in ("clip%2Ftwo/1", "clip%2Ftwo/x", "clip%2Ftwo/²", "nobody/0", "clip%2Ftwo"):
            assert client.get(f"/b/clips/media/{other}/timestamps").status_code == 404, other
        assert client.get("/b/clips/clip/clip%2Ftwo/m/video/9").status_code == 404
        blind = client.get("/b/clips/clip/clip%2Ftwo/m/black/0").text
        assert "no model was shown this" in blind
    (media / "a.mp4").unlink()
    with opened(tmp_path / "clips.db", media=media) as (_, client):
        assert client.get(href).status_code == 200
        assert client.get(f"{address}/timestamps").status_code == 404


def test_media_that_nobody_knows_are_named(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    with pytest.raises(InputError, match="found no such folder, expected the folder of the benchmark's media"):
        open_view(tmp_path / "toy.db", media=tmp_path / "nowhere")
