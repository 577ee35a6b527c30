"""What holds for every request: tokens against forged changes, headers, sizes, names of the host, and no detail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import Request
from starlette.testclient import TestClient

from proctor_web.accounts import find_account
from proctor_web.app import MOST_BYTES, create_app
from proctor_web.review import ReviewSite
from proctor_web.schema import ROLES
from tests.support.web_attack import ways
from tests.support.web_site import browser, csrf_of, entered, join, log_in, site

LANGUAGE = {"language": "de"}


def test_a_change_needs_the_token_of_ones_own_session(review: ReviewSite) -> None:
    anna, ben = entered(review, "anna"), entered(review, "ben")
    own, others = csrf_of(anna.get("/")), csrf_of(ben.get("/"))
    form = csrf_of(browser(review).get("/login"))
    for token in (None, "", "x", others, form, own[:-1], own + "x", "\u00e4" * 43):
        data = LANGUAGE if token is None else LANGUAGE | {"csrf": token}
        assert anna.post("/language", data=data).status_code == 403
    for header in ("", "x", others):
        assert anna.post("/language", data=LANGUAGE, headers={"x-csrf-token": header}).status_code == 403
    assert "Your studies" in anna.get("/").text
    assert anna.post("/language", data=LANGUAGE, headers={"x-csrf-token": own}).status_code == 303
    assert anna.post("/language", data={"language": "en", "csrf": own}).status_code == 303


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_no_unsafe_method_goes_without_a_token(review: ReviewSite, method: str) -> None:
    """Of whatever address: those that take the method answer 403, the others have no such method."""
    client = entered(review, "anna")
    for path in {way.at() for way in ways()}:
        answer = client.request(method, path)
        assert answer.status_code in {403, 405}, path


def test_the_old_token_ends_with_its_session(review: ReviewSite) -> None:
    client = entered(review, "anna")
    old = csrf_of(client.get("/"))
    client.post("/logout", data={"csrf": old})
    log_in(client, "anna")
    assert client.post("/language", data=LANGUAGE | {"csrf": old}).status_code == 403


def test_logging_in_needs_a_token_as_well(review: ReviewSite) -> None:
    """Else another site could log somebody in as somebody else, whose work would then be his."""
    join(review, "anna")
    client = browser(review)
    data = {"name": "anna", "password": "brown kettle 7"}
    assert client.post("/login", data=data).status_code == 403
    token = csrf_of(client.get("/login"))
    assert browser(review).post("/login", data=data | {"csrf": token}).status_code == 403, "the cookie is missing"
    assert client.post("/login", data=data | {"csrf": token}).status_code == 303


FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://review.test.evil.example"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=lambda headers: "-".join(headers.values()))
def test_a_change_from_another_origin_is_refused_even_with_the_token(
    review: ReviewSite, headers: dict[str, str]
) -> None:
    client = entered(review, "anna")
    data = LANGUAGE | {"csrf": csrf_of(client.get("/"))}
    assert client.post("/language", data=data, headers=headers).status_code == 403
    own = {"origin": "http://review.test", "sec-fetch-site": "same-origin"}
    assert client.post("/language", data=data, headers=own).status_code == 303


def test_a_token_in_the_address_or_in_json_is_none(review: ReviewSite) -> None:
    client = entered(review, "anna")
    token = csrf_of(client.get("/"))
    assert client.post("/language", params={"csrf": token}, data=LANGUAGE).status_code == 403
    assert client.post("/language", json=LANGUAGE | {"csrf": token}).status_code == 403


def test_no_change_is_made_by_get(review: ReviewSite) -> None:
    client = entered(review, "anna")
    assert client.get("/logout").status_code == 405
    assert client.get("/").status_code == 200


PAGES = ["/", "/login", "/invitation/x", "/nothing", "/static/proctor.css", "/static/none.css"]


@pytest.mark.parametrize("path", PAGES)
def test_every_answer_carries_the_headers(review: ReviewSite, path: str) -> None:
    headers = entered(review, "anna").get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    # The next request, such as for a style sheet, names the page that it came from, and a proxy logs it.
    assert headers["referrer-policy"] == ("strict-origin" if "invitation" in path else "same-origin")
    assert headers["cache-control"] == ("no-cache" if path.startswith("/static/") else "no-store")
    assert "server" not in headers


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(review: ReviewSite, tmp_path: Path) -> None:
    join(review, "anna")
    plain = log_in(browser(review), "anna").headers["set-cookie"].lower()
    assert plain.startswith("proctor=")
    assert "; httponly" in plain
    assert "samesite=lax" in plain
    assert "domain=" not in plain
    (tmp_path / "tls").mkdir()
    secure = site(tmp_path / "tls", tls=True)
    join(secure, "anna")
    answer = log_in(browser(secure), "anna")
    assert answer.headers["set-cookie"].startswith("__Host-proctor=")
    assert "; secure" in answer.headers["set-cookie"].lower()
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    secure.engine.dispose()


HOSTS = ["evil.example", "review.test.evil.example", "evil.example:80", "", "review.test@evil.example"]


@pytest.mark.parametrize("host", HOSTS)
def test_under_another_name_nothing_is_served(review: ReviewSite, host: str) -> None:
    answer = browser(review).get("/login", headers={"host": host})
    assert answer.status_code == 400
    assert "csrf" not in answer.text


def test_forwarded_names_and_addresses_change_nothing(review: ReviewSite) -> None:
    headers = {"x-forwarded-host": "evil.example", "forwarded": "host=evil.example", "x-original-url": "/organise/"}
    answer = browser(review).get("/", headers=headers)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert "evil" not in answer.text


def test_large_bodies_are_refused_by_what_they_say_and_by_what_comes(review: ReviewSite) -> None:
    client = entered(review, "anna")
    token = {"x-csrf-token": csrf_of(client.get("/"))}
    refused = client.post("/language", content=b"x" * (MOST_BYTES + 1), headers=token | {"accept-language": "de"})
    assert (refused.status_code, "höchstens 976 KiB" in refused.text) == (413, True)

    def unending() -> Iterator[bytes]:
        for _ in range(MOST_BYTES // 50_000 + 2):
            yield b"language=" + b"x" * 50_000

    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/language", content=unending(), headers=token | kind).status_code == 413
    assert client.post("/login", content=unending(), headers=kind).status_code == 413
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("length", ["-1", "1e3", "x", "9" * 30])
def test_a_length_that_is_none_is_refused(review: ReviewSite, length: str) -> None:
    headers = {"content-length": length, "content-type": "application/x-www-form-urlencoded"}
    assert browser(review).post("/login", content=b"a=b", headers=headers).status_code == 413


def test_a_body_with_two_lengths_is_refused_and_its_connection_closed(review: ReviewSite) -> None:
    """RFC 9112, 6.1: what one program takes for the end of the body is the start of a second request for another."""
    headers = {
        "content-length": "3",
        "transfer-encoding": "chunked",
        "content-type": "application/x-www-form-urlencoded",
    }
    answer = browser(review).post("/login", content=b"a=b", headers=headers)
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")


TRAVERSAL = [
    "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/%2e%2e%2f%2e%2e%2fpyproject.toml",
    "/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/..\\app.py", "/static/..%5capp.py", "/static/%00",
    "/static/", "/static", "/static/../../../../../../../../etc/passwd", "/templates/base.html", "/review.key",
]  # fmt: skip


@pytest.mark.parametrize("path", TRAVERSAL)
def test_static_files_are_those_of_their_folder(review: ReviewSite, path: str) -> None:
    answer = browser(review).get(path)
    assert answer.status_code in {303, 404}
    assert "import" not in answer.text
    assert "root:" not in answer.text
    assert review.key not in answer.text


def test_what_no_route_can_read_is_answered_without_repeating_it(review: ReviewSite) -> None:
    client = entered(review, "anna")
    script = "<script>alert(1)</script>"
    answer = client.post("/language", data={"csrf": csrf_of(client.get("/")), "language": script})
    assert answer.status_code == 422
    assert "alert" not in answer.text
    for path in (f"/{script}", f"/login?next={script}", f"/invitation/{script}"):
        assert "<script>alert" not in client.get(path).text


SCRIPTS = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "{% debug %}", "' or 1=1 --"]


@pytest.mark.parametrize("text", SCRIPTS)
def test_what_is_typed_at_the_entrance_comes_back_as_text_or_not_at_all(review: ReviewSite, text: str) -> None:
    join(review, "anna")
    for answer in (
        log_in(browser(review), text, text),
        log_in(browser(review), "anna", text, next=text),
        browser(review).get("/login", params={"next": f"/{text}"}),
        browser(review).get(f"/invitation/{text}"),
        browser(review).get("/", headers={"accept-language": text}),
    ):
        assert answer.status_code in {200, 303, 401, 404}
        assert text not in answer.text or not set(text) & set("<\"'")
        assert ">49<" not in answer.text
        assert 'value="49"' not in answer.text


def test_a_title_is_text(review: ReviewSite) -> None:
    hostile = site(review.folder)
    object.__setattr__(hostile, "title", "<script>alert(1)</script>{{7*7}}")
    page = browser(hostile).get("/login").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}" in page
    hostile.engine.dispose()


def test_no_page_has_script_or_style_of_its_own(review: ReviewSite) -> None:
    """The policy would refuse it: what is inline would not work, or would be an attack."""
    templates = Path(create_app.__code__.co_filename).parent / "templates"
    files = sorted(templates.rglob("*.html"))
    assert len(files) >= 5
    for file in files:
        text = file.read_text(encoding="utf-8").lower()
        assert "<style" not in text, file
        assert " style=" not in text, file
        assert "javascript:" not in text, file
        assert "|safe" not in text.replace(" ", ""), file
        assert "hx-on" not in text, file
        for line in text.splitlines():
            assert "<script" not in line or ("src=" in line and "></script>" in line), (file, line)
            assert not any(f" on{event}=" in line for event in ("click", "load", "error", "input", "submit")), file


def test_what_breaks_tells_no_detail_and_still_carries_the_headers(review: ReviewSite) -> None:
    app = create_app(review)

    @app.get("/broken")
    def broken(request: Request) -> None:
        raise RuntimeError(f"the key is {review.key}")

    answer = TestClient(app, base_url="http://review.test", raise_server_exceptions=False).get("/broken")
    assert answer.status_code == 500
    assert review.key not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("role", ROLES)
def test_nothing_that_is_sent_along_changes_ones_role(review: ReviewSite, role: str) -> None:
    client = entered(review, "anna", "participant")
    token = csrf_of(client.get("/"))
    client.post("/language", data={"csrf": token, "language": "en", "role": role, "account": "1"})
    client.post("/login", data={"csrf": token, "name": "anna", "password": "brown kettle 7", "role": role})
    with review.reading() as connection:
        assert find_account(connection, "anna")["role"] == "participant"


def test_a_request_by_script_is_told_to_log_in_and_not_led_to_a_form(review: ReviewSite) -> None:
    client = browser(review)
    answer = client.get("/", headers={"hx-request": "true"})
    assert (answer.status_code, answer.headers["hx-redirect"]) == (401, "/login")
    assert client.get("/", headers={"accept": "application/json"}).status_code == 401
