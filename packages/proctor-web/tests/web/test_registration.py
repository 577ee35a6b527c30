"""Accounts that people make themselves, where a site lets them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from proctor_web import schema
from proctor_web.sessions import BY_ADDRESS
from proctor_web.site import Site
from proctor_web.trail import pseudonym_of
from tests.support.web_open import open_site
from tests.support.web_site import PASSWORD, browser, csrf_of, log_in


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = open_site(tmp_path)
    yield made
    made.engine.dispose()


def register(client: TestClient, name: str, password: str = PASSWORD, again: str = PASSWORD) -> httpx2.Response:
    csrf = csrf_of(client.get("/register"))
    return client.post("/register", data={"csrf": csrf, "name": name, "password": password, "again": again})


def test_who_registers_is_logged_in_as_a_newcomer(site: Site) -> None:
    client = browser(site)
    assert "/register" in client.get("/login").text
    answer = register(client, " Anna ")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert client.get("/").text == "anna participant"
    assert client.get("/register").headers["location"] == "/"
    assert log_in(browser(site), "anna").status_code == 303
    with site.reading() as connection:
        query = select(schema.trail.c.action, schema.trail.c.person).order_by(schema.trail.c.id)
        actions = [tuple(row) for row in connection.execute(query)]
        anna = pseudonym_of(connection, 1)
    assert actions == [("add account", anna), ("set password", anna)], "by themselves, and not from the shell"


REFUSED = {
    "a name that is none": (("a b", PASSWORD, PASSWORD), 422, "A name has letters"),
    "a short password": (("anna", "short", "short"), 422, "at least 12 characters"),
    "two passwords": (("anna", PASSWORD, PASSWORD + "x"), 422, "The two passwords differ"),
    "a name that is taken": (("ben", PASSWORD, PASSWORD), 409, "An account with this name already exists"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_told_in_the_form(site: Site, case: str) -> None:
    given, status, told = REFUSED[case]
    register(browser(site), "ben")
    answer = register(browser(site), *given)
    assert (answer.status_code, told in answer.text) == (status, True)
    with site.reading() as connection:
        assert connection.execute(select(schema.accounts.c.name)).scalars().all() == ["ben"]


def test_nobody_takes_an_account_over_or_a_role_along(site: Site) -> None:
    register(browser(site), "olga")
    client = browser(site)
    csrf = csrf_of(client.get("/register"))
    said = {"csrf": csrf, "name": "OLGA", "password": "another kettle 7", "again": "another kettle 7"}
    assert client.post("/register", data=said).status_code == 409
    assert log_in(browser(site), "olga").status_code == 303
    said |= {"name": "eve", "role": "organiser"}
    assert client.post("/register", data=said).status_code == 303
    assert client.get("/").text == "eve participant"


def test_an_address_makes_so_many_accounts_and_then_waits(site: Site) -> None:
    with site.writing() as connection:
        row = {"address": "192.0.2.1", "at": schema.utc_text(site.now()), "ok": 0}
        connection.execute(schema.logins.insert(), [row | {"name_hash": f"new {i}"} for i in range(BY_ADDRESS - 1)])
    assert register(browser(site), "anna").status_code == 303
    assert register(browser(site), "ben").status_code == 429
    assert register(browser(site, address="192.0.2.2"), "ben").status_code == 303


def test_a_closed_site_has_no_such_page(tmp_path: Path) -> None:
    closed = open_site(tmp_path, registers=False)
    client = browser(closed)
    login = client.get("/login")
    assert "/register" not in login.text
    assert client.get("/register").status_code == 404
    said = {"csrf": csrf_of(login), "name": "eve", "password": PASSWORD, "again": PASSWORD}
    assert client.post("/register", data=said).status_code == 404
    closed.engine.dispose()


@pytest.mark.parametrize("name", ["\uff21nna", "\u1d2cnna", "anna\u00aa"], ids=["full width", "modifier", "ordinal"])
def test_names_that_unicode_takes_for_the_same_are_one(site: Site, name: str) -> None:
    register(browser(site), "anna")
    register(browser(site), "annaa")
    assert register(browser(site), name).status_code == 409
    assert log_in(browser(site), name).status_code == 303, "its owner may write it so, too"
