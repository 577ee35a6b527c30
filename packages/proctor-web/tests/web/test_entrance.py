"""Logging in and out, invitations, sessions: who comes in, for how long, and who does not."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from itsdangerous import Signer
from sqlalchemy import func, select

from proctor.core import InputError
from proctor_web import schema
from proctor_web.accounts import Changed, add_account, disable, find_account, invite, set_role, take_up
from proctor_web.review import ReviewSite
from proctor_web.trail import first_fault
from tests.support.web_site import PASSWORD, browser, clock_of, csrf_of, entered, join, log_in, site


def changed(review: ReviewSite) -> Changed:
    return Changed(None, review.now())


def invited_anna(review: ReviewSite) -> str:
    """Anna has an account; returns the invitation."""
    with review.writing() as connection:
        return invite(connection, add_account(connection, "Anna", "reviewer", "en", changed(review)), changed(review))


def test_from_invitation_to_the_first_page_and_out_again(review: ReviewSite) -> None:
    token = invited_anna(review)
    client = browser(review)
    form = client.get(f"/invitation/{token}")
    assert "Your account name is anna." in form.text
    data = {"csrf": csrf_of(form), "password": PASSWORD, "again": PASSWORD}
    answer = client.post(f"/invitation/{token}", data=data)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    home = client.get("/")
    assert home.status_code == 200
    assert "no items to read" in home.text
    out = client.post("/logout", data={"csrf": csrf_of(home)})
    assert (out.status_code, out.headers["location"]) == (303, "/login")
    assert client.get("/").headers["location"] == "/login"
    assert log_in(client, " ANNA ").headers["location"] == "/"
    with review.reading() as connection:
        actions = list(connection.execute(select(schema.trail.c.action).order_by(schema.trail.c.id)).scalars())
        assert actions == ["add account", "invite", "set password"]
        assert first_fault(connection) is None


def test_an_invitation_serves_once(review: ReviewSite) -> None:
    token = invited_anna(review)
    client = browser(review)
    data = {"csrf": csrf_of(client.get(f"/invitation/{token}")), "password": PASSWORD, "again": PASSWORD}
    assert client.post(f"/invitation/{token}", data=data).status_code == 303
    thief = browser(review)
    again = thief.get(f"/invitation/{token}")
    assert again.status_code == 404
    assert "already been used" in again.text
    data = {"csrf": csrf_of(again), "password": "another kettle 8", "again": "another kettle 8"}
    assert thief.post(f"/invitation/{token}", data=data).status_code == 404
    assert log_in(thief, "anna", "another kettle 8").status_code == 401
    assert log_in(thief, "anna").status_code == 303


def test_of_two_that_take_up_one_invitation_one_succeeds(review: ReviewSite) -> None:
    token = invited_anna(review)
    with review.writing() as connection:
        assert take_up(connection, token, "first", review.now()) is not None
        assert take_up(connection, token, "second", review.now()) is None
        assert find_account(connection, "anna")["password"] == "first"


def test_an_invitation_ends_after_a_week_and_with_the_next_one(review: ReviewSite) -> None:
    first = invited_anna(review)
    with review.writing() as connection:
        second = invite(connection, find_account(connection, "anna"), changed(review))
    client = browser(review)
    assert client.get(f"/invitation/{first}").status_code == 404
    assert client.get(f"/invitation/{second}").status_code == 200
    clock_of(review).pass_by(days=7, seconds=1)
    assert client.get(f"/invitation/{second}").status_code == 404


def test_an_invitation_of_a_disabled_account_opens_nothing(review: ReviewSite) -> None:
    token = invited_anna(review)
    with review.writing() as connection:
        disable(connection, find_account(connection, "anna"), changed(review))
    assert browser(review).get(f"/invitation/{token}").status_code == 404


BAD = {
    "short": ("kettle", "kettle", "at least 12"),
    "the name": ("annaANNAanna", "annaANNAanna", "must not contain the name"),
    "repeats": ("aaaaaaaabbbb", "aaaaaaaabbbb", "five different"),
    "long": ("kettle7" * 40, "kettle7" * 40, "at most 200"),
    "differ": (PASSWORD, PASSWORD + "!", "differ"),
}


@pytest.mark.parametrize(("password", "again", "told"), BAD.values(), ids=BAD)
def test_a_bad_password_is_refused_and_the_invitation_stays(
    review: ReviewSite, password: str, again: str, told: str
) -> None:
    token = invited_anna(review)
    client = browser(review)
    data = {"csrf": csrf_of(client.get(f"/invitation/{token}")), "password": password, "again": again}
    answer = client.post(f"/invitation/{token}", data=data)
    assert answer.status_code == 422
    assert told in answer.text
    assert password not in answer.text
    assert client.get(f"/invitation/{token}").status_code == 200


def test_an_account_without_a_password_lets_nobody_in(review: ReviewSite) -> None:
    invited_anna(review)
    for password in ("", " ", "None"):
        assert log_in(browser(review), "anna", password).status_code in {401, 422}


def test_the_database_holds_no_secret_of_link_or_cookie_or_password(review: ReviewSite) -> None:
    token = invited_anna(review)
    client = browser(review)
    data = {"csrf": csrf_of(client.get(f"/invitation/{token}")), "password": PASSWORD, "again": PASSWORD}
    client.post(f"/invitation/{token}", data=data)
    secret = Signer(review.key, salt="session").unsign(client.cookies["proctor"]).decode()
    with review.writing() as connection:
        kept = b"".join(one.read_bytes() for one in review.folder.iterdir() if one.name.startswith("review.sqlite"))
        assert connection.execute(select(func.count()).select_from(schema.sessions)).scalar() == 1
    assert b"anna" in kept
    for one in (token, secret, PASSWORD):
        assert one.encode() not in kept


def test_a_session_ends_when_nobody_uses_it(review: ReviewSite) -> None:
    client = entered(review, "anna")
    for _ in range(3):
        clock_of(review).pass_by(hours=7, minutes=59)
        assert client.get("/").status_code == 200
    clock_of(review).pass_by(hours=8)
    assert client.get("/").status_code == 303


def test_a_session_ends_after_a_week_of_use(review: ReviewSite) -> None:
    client = entered(review, "anna")
    for _ in range(7 * 24 // 6):
        assert client.get("/").status_code == 200
        clock_of(review).pass_by(hours=6)
    assert client.get("/").status_code == 303


def test_logging_out_ends_the_session_for_a_copy_of_the_cookie_too(review: ReviewSite) -> None:
    client = entered(review, "anna")
    copy = dict(client.cookies)
    client.post("/logout", data={"csrf": csrf_of(client.get("/"))})
    client.cookies.update(copy)
    assert client.get("/").status_code == 303


def test_logging_in_makes_a_new_session_whatever_cookie_came(review: ReviewSite) -> None:
    """Session fixation: a cookie that an attacker planted, his own valid one even, is not what anna is known by."""
    eve = entered(review, "eve")
    planted = eve.cookies["proctor"]
    join(review, "anna")
    victim = browser(review)
    victim.cookies.set("proctor", planted, domain="review.test")
    home = victim.get("/")
    data = {"csrf": csrf_of(home), "name": "anna", "password": PASSWORD}
    assert victim.post("/login", data=data).status_code == 303
    fresh = [cookie.value for cookie in victim.cookies.jar if cookie.name == "proctor"]
    assert planted not in fresh[-1:]
    attacker = browser(review)
    attacker.cookies.set("proctor", planted, domain="review.test")
    assert attacker.get("/").status_code == 303, "the planted session has ended"


@pytest.mark.parametrize("by", ["disabled", "role", "password"])
def test_what_changes_an_account_ends_its_sessions(review: ReviewSite, by: str) -> None:
    client = entered(review, "anna")
    with review.writing() as connection:
        anna = find_account(connection, "anna")
        if by == "disabled":
            disable(connection, anna, changed(review))
        elif by == "role":
            set_role(connection, anna, "participant", changed(review))
        else:
            take_up(connection, invite(connection, anna, changed(review)), "x", review.now())
    assert client.get("/").headers["location"] == "/login"


def test_a_disabled_account_is_told_what_a_wrong_password_is_told(review: ReviewSite) -> None:
    join(review, "anna")
    with review.writing() as connection:
        disable(connection, find_account(connection, "anna"), changed(review))
    answers = [
        log_in(browser(review), "anna"),
        log_in(browser(review), "anna", "wrong kettle 7"),
        log_in(browser(review), "nobody", "wrong kettle 7"),
        log_in(browser(review), "no \0 name!", "wrong kettle 7"),
    ]
    texts = {re.sub(r'(csrf[^"]*" (?:content|value)=|X-CSRF-Token": )"[^"]+"', "", one.text) for one in answers}
    assert {one.status_code for one in answers} == {401}
    assert len(texts) == 1
    assert "Name or password is wrong." in texts.pop()


FORGED = ["", "x", "x.y", "a" * 5000, "\u00e4", "../../etc/passwd", "1.2.3"]


@pytest.mark.parametrize("cookie", FORGED)
def test_a_forged_cookie_is_nobody(review: ReviewSite, cookie: str) -> None:
    join(review, "anna")
    client = browser(review)
    answer = client.get("/", headers={b"cookie": f"proctor={cookie}".encode()})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")


def test_a_secret_signed_with_another_key_or_for_another_purpose_is_nobody(review: ReviewSite) -> None:
    client = entered(review, "anna")
    secret = Signer(review.key, salt="session").unsign(client.cookies["proctor"]).decode()
    for signed in (
        Signer("another key", salt="session").sign(secret),
        Signer(review.key, salt="form").sign(secret),
        secret.encode(),
    ):
        stranger = browser(review)
        assert stranger.get("/", headers={b"cookie": b"proctor=" + signed}).status_code == 303
    assert client.get("/").status_code == 200


def test_after_login_the_page_that_was_wanted_opens(review: ReviewSite) -> None:
    join(review, "anna")
    client = browser(review)
    wanted = client.get("/study/first%20round/next?all=1")
    assert wanted.status_code in {303, 404}
    answer = log_in(client, "anna", next="/item/7?all=1")
    assert answer.headers["location"] == "/item/7?all=1"


ELSEWHERE = [
    "//evil.example", "https://evil.example/", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)",
    "/a\r\nSet-Cookie: planted=1", "evil.example", "http:evil", "/\t/evil.example", "//", "/ü", "/" + "a" * 2000,
]  # fmt: skip


@pytest.mark.parametrize("target", ELSEWHERE)
def test_after_login_nobody_is_led_elsewhere(review: ReviewSite, target: str) -> None:
    join(review, "anna")
    client = browser(review)
    assert "evil" not in client.get("/login", params={"next": target}).text
    answer = log_in(client, "anna", next=target)
    if answer.status_code != 422:  # longer than a field may be
        assert answer.headers["location"] == "/"
        assert "planted" not in answer.headers.get("set-cookie", "")
        assert client.get("/login", params={"next": target}).headers["location"] == "/"


def test_the_language_is_the_accounts_and_before_login_the_browsers(review: ReviewSite) -> None:
    client = entered(review, "anna")
    assert "Your studies" in client.get("/").text
    answer = client.post("/language", data={"csrf": csrf_of(client.get("/")), "language": "de"})
    assert answer.status_code == 303
    assert 'lang="de"' in (page := client.get("/").text)
    assert "Ihre Studien" in page
    assert client.post("/language", data={"csrf": csrf_of(client.get("/")), "language": "../en"}).status_code == 422
    assert "Anmelden" in browser(review).get("/login", headers={"accept-language": "de-CH, en"}).text


@pytest.mark.parametrize("name", ["", " ", "a b", "<b>", "a'--", "a\x00", "x" * 81, "../a", "{{7*7}}"])
def test_a_name_is_letters_and_digits(review: ReviewSite, name: str) -> None:
    with pytest.raises(InputError, match="letters, digits and"), review.writing() as connection:
        add_account(connection, name, "reviewer", "en", changed(review))


def test_one_name_is_one_account_however_it_is_written(review: ReviewSite) -> None:
    join(review, "J\u00f6rg")
    with pytest.raises(InputError, match="which there is already"), review.writing() as connection:
        add_account(connection, "jO\u0308RG", "organiser", "en", changed(review))


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_of_eight_that_add_one_name_at_once_one_succeeds(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = None if store == "sqlite" else request.getfixturevalue("postgres_url")
    review = site(tmp_path, store=url)
    together = Barrier(8)

    def add(number: int) -> bool:
        together.wait(60)
        try:
            with review.writing() as connection:
                add_account(connection, "zoe", "reviewer", "en", changed(review))
        except InputError as error:
            return "which there is already" not in str(error)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(8))) == 1
    with review.reading() as connection:
        assert first_fault(connection) is None
        assert connection.execute(select(func.count()).select_from(schema.trail)).scalar() == 1
    review.engine.dispose()


def test_a_role_that_is_none_is_refused(review: ReviewSite) -> None:
    with pytest.raises(InputError, match="found 'root', expected one of organiser"), review.writing() as connection:
        add_account(connection, "eve", "root", "en", changed(review))
