"""Attacks on every route that there is: what people typed before, what comes in an address, a field or a header, ids of
others, and nobody's requests. A route that is added later is attacked as well."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from sqlalchemy import inspect
from starlette.testclient import TestClient

from proctor_web.forms import FORMS
from proctor_web.review import ReviewSite
from proctor_web.sessions import session_cookie
from proctor_web.trail import first_fault
from tests.support.web_attack import PEOPLE, TEXTS, MarkupEye, Way, hostile_review, markup_faults, ways
from tests.support.web_site import browser, csrf_of, join, log_in, site

pytestmark = pytest.mark.usefixtures("without_threads")

OPEN = {"/login", "/logout", "/invitation/{token}"}
"""What is there for who is not logged in."""

ORGANISERS = ("/organise", "/export")

BENIGN: dict[str, Any] = {"payload": {}, "text": {}} | {
    "name": "rita",
    "password": "brown kettle 7",
    "again": "brown kettle 7",
    "language": "en",
    "next": "/",
}
IDS = range(1, len(FORMS) + 1)


@pytest.fixture(scope="module")
def review(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewSite]:
    """Shared by the tests of this file, which all are refused."""
    made = hostile_review(tmp_path_factory.mktemp("review"))
    yield made
    made.engine.dispose()


@pytest.fixture(scope="module")
def people(review: ReviewSite) -> Iterator[dict[str, TestClient]]:
    with ExitStack() as kept:  # entered, a browser needs no new thread for each request
        yield {name: kept.enter_context(come_in(review, name)) for name in PEOPLE}


def asked(client: TestClient, method: str, path: str, **more: Any) -> httpx2.Response | None:
    """The answer; None where not even the client can write such a request."""
    try:
        return client.request(method, path, **more)
    except (UnicodeError, httpx2.InvalidURL):
        return None


def check(answer: httpx2.Response | None, what: object) -> None:
    """Nothing broke, and nothing that came in or was stored became part of the page."""
    if answer is None:
        return
    assert answer.status_code < 500, (what, answer.text[:300])
    assert "unsafe" not in answer.headers["content-security-policy"], what
    assert answer.headers["x-content-type-options"] == "nosniff", what
    assert not re.search(r"proctor=1(;|$)", answer.headers.get("set-cookie", "")), what
    if answer.headers.get("content-type", "").startswith("text/html"):
        assert markup_faults(answer.text) == [], what
    location = answer.headers.get("location", "/")
    assert location.startswith("/"), what
    assert not location.startswith(("//", "/\\")), what
    assert "Traceback" not in answer.text, what
    assert "sqlalchemy" not in answer.text.lower(), what


KNOWN = {"item_id": [str(number) for number in IDS], "name": list(FORMS), "what": ["readings"], "form": ["csv"]}


def paths(way: Way) -> list[str]:
    """Its path for every item, or every study."""
    known = {row: KNOWN.get(row, ["1"]) for row in way.locations}
    return [
        way.at(**{row: values[number % len(values)] for row, values in known.items()})
        for number in range(max(map(len, known.values()), default=1))
    ]


def as_json(body: object) -> dict[str, Any]:
    """As a script sends it, with halves of characters in it as well."""
    return {"content": json.dumps(body), "headers": {"content-type": "application/json"}}


def both_ways(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """As a form sends it, and as a script does."""
    return {"data": body}, {"json": body}


def test_every_route_is_found() -> None:
    known = {way.path for way in ways()}
    assert {"/", "/login", "/logout", "/invitation/{token}", "/language"} <= known


def test_the_eye_sees_what_it_should() -> None:
    page = '<p onclick="x"><script>1</script><a href="javascript:1">1337</a><img src=//e><base href="/"><p style=x>'
    assert len(MarkupEye(page).faults) == 7
    plain = '<script src="/static/htmx.js"></script><a href="/item/1">&lt;script&gt;</a><link rel=icon href="data:,">'
    assert MarkupEye(plain).faults == []


@pytest.mark.parametrize("name", ["anna", "cleo", "olga"])
def test_stored_texts_stay_texts_on_every_page(people: dict[str, TestClient], name: str) -> None:
    for way in ways():
        if way.method == "GET":
            for path in paths(way):
                check(asked(people[name], "GET", path), path)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_comes_in_any_part_of_an_address_or_field_stays_a_text(
    review: ReviewSite, people: dict[str, TestClient], text: str
) -> None:
    encoded = text.encode(errors="surrogatepass")
    for name, theirs in (("anna", False), ("olga", True)):
        client = people[name]
        token = csrf_of(client.get("/"))
        for way in ways():
            if way.path == "/logout" or way.path.startswith(ORGANISERS) != theirs:
                continue
            headers = {"x-csrf-token": token} if way.unsafe else {}
            for row in way.locations if len(text) < 1_000 else ():
                quoted = "".join(f"%{byte:02x}" for byte in encoded)
                for written in (quoted, text):
                    check(asked(client, way.method, way.at(**{row: written}), headers=headers), (way, row))
            for field in way.query:
                answer = asked(client, way.method, way.at(), params={field: encoded.decode("latin-1")}, headers=headers)
                check(answer, (way, field))
            for field in way.fields:
                body: dict[str, Any] = {one: BENIGN.get(one, "1") for one in way.fields}
                sent = as_json(body | {field: text}) if way.by_script else {"data": body | {field: encoded}}
                sent["headers"] = sent.get("headers", {}) | headers
                check(asked(client, way.method, way.at(), **sent), (way, field))
            client = again(review, people, name)
            token = csrf_of(client.get("/"))
    assert inspect(review.engine).has_table("readings")
    with review.reading() as connection:
        assert first_fault(connection) is None


def again(review: ReviewSite, people: dict[str, TestClient], name: str) -> TestClient:
    """The same browser, or a new one where an attack has logged it in as somebody else."""
    known = session_cookie(review)
    if people[name].cookies.get(known) != people[name].headers["x-test-session"]:
        people[name] = come_in(review, name)
    return people[name]


def come_in(review: ReviewSite, name: str) -> TestClient:
    """A browser in which somebody is logged in, and which remembers by which session."""
    client = browser(review)
    assert log_in(client, name).status_code == 303
    client.headers["x-test-session"] = client.cookies[session_cookie(review)]
    return client


HEADERS = [
    "accept", "accept-language", "content-type", "cookie", "forwarded", "host", "hx-request", "if-none-match", "origin",
    "range", "referer", "sec-fetch-site", "transfer-encoding", "x-csrf-token", "x-forwarded-for", "x-forwarded-host",
    "x-http-method-override", "x-original-url",
]  # fmt: skip
VALUES = [
    b"<script>alert(1)</script>", b"{{7*191}}", b"\x80\xff", b"http://[::1", b"bytes=0-0,1-1,2-2", b"' or 1=1 --",
    b"multipart/form-data; boundary=\x80", b"multipart/form-data", b"text/html;q=x,*/*;q=-1", b"x" * 4_000, b"",
    b"application/json; charset=utf-7", b'W/""', b"DELETE", b"/organise/", b"proctor=x; proctor-form=y",
]  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_no_header_breaks_anything_or_comes_back(
    people: dict[str, TestClient], review: ReviewSite, header: str
) -> None:
    token = csrf_of(people["anna"].get("/")).encode()
    for value in VALUES:
        for method, path in (("GET", "/"), ("POST", "/language"), ("GET", "/static/proctor.css")):
            given = {
                b"x-csrf-token": token,
                b"content-type": b"application/x-www-form-urlencoded",
                header.encode(): value,
            }
            check(asked(people["anna"], method, path, headers=given, content=b"language=en"), (header, value, path))
            again(review, people, "anna")


def test_nobody_sees_more_than_the_entrance(review: ReviewSite) -> None:
    client = browser(review)
    for way in ways():
        if way.path in OPEN:
            continue
        for path in paths(way):
            answer = client.request(way.method, path)
            assert answer.status_code in {303, 401, 403, 404, 405, 422}, path
            if answer.status_code == 303:
                assert answer.headers["location"].startswith("/login"), path
            assert "alert" not in re.sub(r"<title>.*?</title>|<header.*?</header>", "", answer.text, flags=re.DOTALL)


def without_tokens(answer: httpx2.Response) -> tuple[int, str]:
    """What can be told apart, without the tokens, which differ anyway, and the address that was asked for."""
    text = re.sub(r'(csrf[^"]*" (?:content|value)=|X-CSRF-Token": )"[^"]+"', "", answer.text)
    return answer.status_code, text


@pytest.mark.parametrize("name", ["rita", "paul"])
def test_others_items_and_items_that_are_not_there_are_one(people: dict[str, TestClient], name: str) -> None:
    """Rita has no item; who guesses ids learns nothing, not even which there are."""
    client = people[name]
    token = {"x-csrf-token": csrf_of(client.get("/"))}
    for way in ways():
        if not any("item" in row for row in way.locations):
            continue
        body = {field: BENIGN.get(field, "1") for field in way.fields}
        for sent in both_ways(body):
            answers = [
                client.request(way.method, way.at(**dict.fromkeys(way.locations, str(number))), headers=token, **sent)
                for number in (*IDS, 999_999)
            ]
            assert {one.status_code for one in answers} <= {404, 405, 422}, way
            assert len({without_tokens(one) for one in answers}) == 1, way


@pytest.mark.parametrize("name", ["anna", "cleo", "paul", "rita"])
def test_what_is_the_organisers_is_not_there_for_others(people: dict[str, TestClient], name: str) -> None:
    client = people[name]
    token = {"x-csrf-token": csrf_of(client.get("/"))}
    for way in ways():
        if way.path.startswith(ORGANISERS):
            for path in paths(way):
                answer = client.request(way.method, path, headers=token, data={"csrf": token["x-csrf-token"]})
                assert answer.status_code in {404, 405, 422}, (way, answer.status_code)
                assert "alert" not in re.sub(
                    r"<title>.*?</title>|<header.*?</header>", "", answer.text, flags=re.DOTALL
                )


def test_every_change_needs_the_token_of_the_session(people: dict[str, TestClient]) -> None:
    for name in ("anna", "olga"):
        for way in ways():
            if not way.unsafe:
                continue
            for path in paths(way)[:1]:
                body = {field: BENIGN.get(field, "1") for field in way.fields}
                for sent in both_ways(body):
                    answer = people[name].request(way.method, path, **sent)
                    assert answer.status_code == 403, (name, way)


UNREADABLE = ["\x00", "a\x00b", str(2**31), str(2**62), str(2**63), "9" * 40, "-1"]
"""What PostgreSQL takes for no text and no whole number of its own."""


def test_postgresql_is_asked_nothing_that_it_can_not_read(tmp_path: Path, postgres_url: str) -> None:
    review = site(tmp_path, store=postgres_url)
    with ExitStack() as kept:
        kept.callback(review.engine.dispose)
        for name, theirs in (("anna", False), ("olga", True)):
            join(review, name, PEOPLE[name])
            client = kept.enter_context(come_in(review, name))
            headers = {"x-csrf-token": csrf_of(client.get("/"))}
            for way in ways():
                if way.path == "/logout" or way.path.startswith(ORGANISERS) != theirs:
                    continue
                for text in UNREADABLE:
                    for row in way.locations:
                        path = way.at(**{row: quote(text)})
                        check(client.request(way.method, path, headers=headers), (way, row, text))
                    for field in way.query:
                        path = way.at(**{row: KNOWN.get(row, ["1"])[0] for row in way.locations})
                        answer = client.request(way.method, path, params={field: text}, headers=headers)
                        check(answer, (way, field, text))
