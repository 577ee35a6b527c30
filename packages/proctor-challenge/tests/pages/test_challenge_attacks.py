"""Attacks on every route of a challenge: what people typed before, what comes in an address or a field, and requests
without a token. A route that is added later is attacked as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from sqlalchemy import inspect
from starlette.testclient import TestClient

from proctor_challenge import pages, uploads
from proctor_challenge.admission import Admission
from proctor_challenge.pages.site import ChallengeSite
from proctor_challenge.submissions import submissions_of
from proctor_challenge.teams import withdraw_team
from proctor_web.trail import first_fault
from tests.support.challenge_site import HIDDEN, challenge_site, handed, logged_in, team_of_two
from tests.support.web_attack import TEXTS, Way, ways
from tests.support.web_site import browser, csrf_of, join
from tests.web.test_attacks_routes import UNREADABLE, asked, check

pytestmark = pytest.mark.usefixtures("without_threads")

PUBLIC = {
    *("/", "/phase/{name}/files/{path:path}", "/terms", "/receipt-key.txt", "/phase/{name}", "/board/{name}"),
    "/prizes/{name}",
}
UPLOADS = {"/phase/{name}/{kind}", "/phase/{name}/description"}
LOCATIONS = {"name": HIDDEN, "kind": "file"}
WAYS = ways(pages)


def at(way: Way, **values: str) -> str:
    """Its path, for the hidden phase and the first team or submission."""
    return way.at(**(LOCATIONS | values))


def ready(site: ChallengeSite) -> ChallengeSite:
    """A team with a submission, an organiser, and somebody without a team."""
    team_of_two(site, "Hand Surgeons", "anna")
    join(site, "olga", "organiser")
    join(site, "eve", "participant")
    assert handed(logged_in(site, "anna"), b"first").status_code == 303
    return site


@pytest.fixture(scope="module", autouse=True)
def _unchecked() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uploads, "check_upload", lambda *_: Admission())
        yield


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChallengeSite]:
    made = ready(challenge_site(tmp_path_factory.mktemp("challenge")))
    yield made
    made.engine.dispose()


@pytest.fixture(scope="module")
def people(site: ChallengeSite) -> Iterator[dict[str, TestClient]]:
    with ExitStack() as kept:
        yield {name: kept.enter_context(logged_in(site, name)) for name in ("anna", "olga", "eve")}


def test_every_route_is_found() -> None:
    known = {way.path for way in WAYS}
    assert {"/team", "/phase/{name}/{kind}", "/submission/{number}", "/organise/teams"} <= known


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_comes_in_any_part_of_an_address_or_field_stays_a_text(
    site: ChallengeSite, people: dict[str, TestClient], text: str
) -> None:
    """By who may send it; nothing that they may do is left undone afterwards."""
    encoded = text.encode(errors="surrogatepass")
    quoted = "".join(f"%{byte:02x}" for byte in encoded)
    for name in ("eve", "olga"):
        client = people[name]
        headers = {"x-csrf-token": csrf_of(client.get("/"))}
        for way in WAYS:
            for row in way.locations if len(text) < 1_000 else ():
                check(asked(client, way.method, at(way, **{row: quoted}), headers=headers), (way, row))
            for field in way.query:
                given = {field: encoded.decode("latin-1")}
                check(asked(client, way.method, at(way), params=given, headers=headers), (way, field))
            for field in way.fields:
                body: dict[str, Any] = dict.fromkeys(way.fields, "1") | {field: encoded}
                check(asked(client, way.method, at(way), data=body, headers=headers), (way, field))
    with site.challenge.writing() as connection:
        withdraw_team(connection, site.challenge, None, 1, undo=True)  # any text is a reason to disqualify it
        assert first_fault(connection) is None
    assert inspect(site.engine).has_table("submissions")


def test_a_forms_texts_and_its_files_name_stay_texts(tmp_path: Path) -> None:
    site = ready(challenge_site(tmp_path, {"scored: 1\n": "scored: 20\n", "attempted: 3": "attempted: 60"}))
    client = logged_in(site, "anna")
    for text in (text for name, text in TEXTS.items() if name not in {"surrogates", "header"}):
        sent = handed(client, text.encode(), phase="training", name=text[:200], name_=text, description=text[:9_000])
        check(sent, text)
        if sent.status_code == 303:
            check(client.get(sent.headers["location"]), text)
    check(client.get("/submissions"), "all")
    with site.reading() as connection:
        rows = submissions_of(connection, 1)
    assert len(rows) > 5
    assert all(len(one["upload"]) == 64 and "/" not in one["suffix"] for one in rows)
    names = {one.name for one in site.challenge.uploads.iterdir()}
    assert names == {one["upload"] for one in rows}
    site.engine.dispose()


def test_every_change_needs_the_token_of_the_session(people: dict[str, TestClient]) -> None:
    for name, client in people.items():
        for way in WAYS:
            if way.unsafe:
                body = dict.fromkeys(way.fields, "1")
                answers = [
                    client.request(way.method, at(way), data=body),
                    client.request(way.method, at(way), json=body),
                ]
                if way.path in UPLOADS:
                    answers = [client.post(at(way), data=body, files={"upload": ("a", b"1")})]
                for answer in answers:
                    allowed = {403} if name == "anna" or way.path not in UPLOADS else {403, 404}
                    assert answer.status_code in allowed, (name, way, answer.status_code)


def test_a_stranger_sees_what_is_public_alone(site: ChallengeSite) -> None:
    client = browser(site)
    headers = {"x-csrf-token": csrf_of(client.get("/login"))}
    for way in WAYS:
        answer = client.request(way.method, at(way), headers=headers if way.unsafe else {})
        if way.path in PUBLIC:
            assert answer.status_code in {200, 404}, way
        else:
            assert answer.status_code in {303, 401}, (way, answer.status_code)
            assert answer.headers.get("location", "/login").startswith("/login"), way


def test_what_is_the_organisers_is_not_there_for_teams(people: dict[str, TestClient]) -> None:
    for name in ("anna", "eve"):
        headers = {"x-csrf-token": csrf_of(people[name].get("/"))}
        for way in WAYS:
            if way.path.startswith("/organise") or way.path.endswith(("/disqualify", "/reinstate")):
                said = dict.fromkeys(way.fields, "1") if way.unsafe else None
                answer: httpx2.Response = people[name].request(way.method, at(way), headers=headers, data=said)
                assert answer.status_code in {404, 422}, (name, way, answer.status_code)


def test_postgresql_is_asked_nothing_that_it_can_not_read(tmp_path: Path, postgres_url: str) -> None:
    site = ready(challenge_site(tmp_path, store=postgres_url))
    with ExitStack() as kept:
        kept.callback(site.engine.dispose)
        for name in ("eve", "olga"):
            client = kept.enter_context(logged_in(site, name))
            headers = {"x-csrf-token": csrf_of(client.get("/"))}
            for way in WAYS:
                for text in UNREADABLE:
                    for row in way.locations:
                        path = at(way, **{row: quote(text)})
                        check(asked(client, way.method, path, headers=headers), (way, row, text))
                    for field in way.query:
                        check(
                            asked(client, way.method, at(way), params={field: text}, headers=headers),
                            (way, field, text),
                        )
                    for field in way.fields:
                        body = dict.fromkeys(way.fields, "1") | {field: text}
                        check(asked(client, way.method, at(way), data=body, headers=headers), (way, field, text))
