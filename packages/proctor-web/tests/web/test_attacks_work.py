"""Attacks on the pages of work: who may do what with an item, and requests that no page sends."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select

from proctor_web import schema
from proctor_web.forms import FORMS
from tests.support.web_attack import PEOPLE, STORED, TEXTS, MarkupEye, review_of_all_forms, ways
from tests.support.web_site import browser, csrf_of, log_in
from tests.support.web_study import READINGS


class Site:
    """A review with a browser for each person."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.review, self.who = review_of_all_forms(folder)
        self.browsers = {name: stack.enter_context(browser(self.review)) for name in PEOPLE}
        self.tokens = {}
        for name, client in self.browsers.items():
            assert log_in(client, name).status_code == 303
            self.tokens[name] = csrf_of(client.get("/"))

    def post(self, name: str, path: str, body: object) -> httpx2.Response:
        """As a page's script sends it."""
        content = body if isinstance(body, bytes) else json.dumps(body)
        headers = {"content-type": "application/json", "x-csrf-token": self.tokens[name]}
        return self.browsers[name].post(path, content=content, headers=headers)

    def readings(self) -> list[Any]:
        with self.review.reading() as connection:
            return list(connection.execute(select(schema.readings).order_by(schema.readings.c.id)).mappings())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        made = Site(tmp_path, stack)
        yield made
        made.review.engine.dispose()


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Shared by tests all of whose requests are refused."""
    with ExitStack() as stack:
        made = Site(tmp_path_factory.mktemp("untouched"), stack)
        yield made
        made.review.engine.dispose()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Shared by tests that look at answers, whatever was kept before."""
    with ExitStack() as stack:
        made = Site(tmp_path_factory.mktemp("shared"), stack)
        yield made
        made.review.engine.dispose()


def save(payload: object, revision: int = 0, **more: object) -> dict[str, object]:
    return {"version": 1, "revision": revision, "payload": payload, **more}


NOT_THEIRS = [
    ("cleo", "draft"), ("cleo", "seal"), ("anna", "adjudicate"), ("olga", "draft"), ("olga", "seal"),
    ("olga", "adjudicate"), ("olga", "guess"), ("paul", "draft"), ("rita", "seal"), ("rita", "new"), ("paul", "new"),
    ("cleo", "adjudicate"), ("cleo", "guess"), ("cleo", "new"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "act"), NOT_THEIRS)
def test_what_is_not_ones_part_is_not_there(untouched: Site, name: str, act: str) -> None:
    """Readers do not adjudicate, adjudicators do not read, and do nothing before all have sealed; others do nothing."""
    body = {"text": {"stem": "x"}} if act == "guess" else save(READINGS["question"][0], comment="mine")
    assert untouched.post(name, f"/item/1/{act}", body).status_code == 404
    assert untouched.readings() == []
    with untouched.review.reading() as connection:
        assert connection.execute(select(func.count()).select_from(schema.consensus)).scalar() == 0
        assert connection.execute(select(func.count()).select_from(schema.study_items)).scalar() == len(FORMS)


@pytest.mark.parametrize("act", ["draft", "seal"])
def test_a_sealed_reading_stays_whatever_is_sent(site: Site, act: str) -> None:
    first, second = READINGS["question"]
    assert site.post("anna", "/item/1/seal", save(first)).status_code == 200
    before = site.readings()
    for revision in (0, 1, 2):
        assert site.post("anna", f"/item/1/{act}", save(second, revision)).status_code == 409
    for more in ({"sealed": None}, {"account": 2}, {"item": 2}, {"id": 1}):
        assert site.post("anna", f"/item/1/{act}", save(second, 1, **more)).status_code == 422
    assert site.readings() == before


def test_nobody_writes_in_anothers_name(site: Site) -> None:
    body = save(READINGS["question"][0])
    for more in ({"account": site.who["ben"]}, {"reader": "ben"}, {"name": "ben"}):
        assert site.post("anna", "/item/1/draft", body | more).status_code == 422
    assert site.post("anna", f"/item/1/draft?account={site.who['ben']}", body).status_code == 200
    assert [row["account"] for row in site.readings()] == [site.who["anna"]]


RAW = {
    "nothing": b"",
    "half": b"[",
    "null": b"null",
    "list": b"[1]",
    "deep": b"[" * 100_000,
    "deep object": b'{"version":1,"revision":0,"payload":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001,
    "NaN": b'{"version":NaN,"revision":0,"payload":{},"seconds":NaN}',
    "infinite": b'{"version":1,"revision":0,"payload":{},"seconds":1e999}',
    "huge": b'{"version":' + b"9" * 5_000 + b',"revision":0,"payload":{},"text":{}}',
    "large": b'{"version":1,"revision":99999999999999999999999999,"payload":{}}',
    "bytes": b"\xff\xfe{}",
    "half a character": b'{"version":1,"revision":0,"payload":{"reason":"\\ud800","\\ud800":1},"comment":"\\ud800"}',
    "NUL": b'{"version":1,"revision":0,"payload":{"reason":"\\u0000"},"comment":"\\u0000","text":{"stem":"\\u0000"}}',
    "twice": b'{"version":2,"version":1,"revision":0,"payload":{},"payload":{"decision":"accept"}}',
    "proto": b'{"version":1,"revision":0,"payload":{"__proto__":{"decision":"accept"},"constructor":1}}',
    "class": b'{"version":1,"revision":0,"payload":{"__class__":"os.system","py/object":"os.system"}}',
}


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW)
def test_json_that_no_page_sends_breaks_nothing(shared: Site, raw: bytes) -> None:
    for way in ways():
        if way.unsafe and way.by_script:
            for name in ("anna", "olga"):
                answer = shared.post(name, way.at(), raw)
                assert answer.status_code < 500, way
                assert "Traceback" not in answer.text
                assert "pydantic" not in answer.text
    for row in shared.readings():
        assert "\x00" not in json.dumps(row["payload"], ensure_ascii=False) + row["comment"]


def test_a_save_that_is_too_large_is_refused(untouched: Site) -> None:
    assert untouched.post("anna", "/item/1/draft", save({"reason": "x" * 1_100_000})).status_code == 413
    assert untouched.post("anna", "/item/1/draft", save({"reason": "x" * 10_001})).status_code == 422
    assert untouched.post("anna", "/item/1/draft", save({}, comment="x" * 10_001)).status_code == 422
    assert untouched.readings() == []


def test_a_new_question_is_a_text_to_those_who_read_it(site: Site) -> None:
    text = {"stem": STORED, "options": [f"a {STORED}", "b"], "key": 0, "explanation": STORED, "labels": ["x"]}
    assert site.post("anna", "/item/1/new", save(text, comment=STORED)).json() == {"next": "/item/1"}
    new = len(FORMS) + 1
    page = site.browsers["ben"].get(f"/item/{new}")
    assert page.status_code == 200
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    assert MarkupEye(page.text).faults == []
    assert site.browsers["anna"].get(f"/item/{new}").status_code == 404, "who wrote it does not read it"


INJECTED: list[dict[str, object]] = [
    {"former": []}, {"events": []}, {"flags": []}, {"type": "x"}, {"id": 1}, {"gold": {}}, {"media": []},
]  # fmt: skip


@pytest.mark.parametrize("more", INJECTED, ids=lambda more: next(iter(more)))
def test_a_new_question_brings_only_what_people_may_write(untouched: Site, more: dict[str, object]) -> None:
    text = {"stem": "Why?", "options": ["a", "b"], "key": 0, **more}
    answer = untouched.post("anna", "/item/1/new", save(text))
    assert answer.status_code == 422
    assert "pydantic" not in answer.text
    assert untouched.browsers["ben"].get(f"/item/{len(FORMS) + 1}").status_code == 404


def test_a_question_that_lacks_something_is_refused_in_words(untouched: Site) -> None:
    for text, told in (({}, "stem"), ({"stem": "Why?", "options": ["a"]}, "two or more different options")):
        answer = untouched.post("anna", "/item/1/new", save(text))
        assert answer.status_code == 422
        assert told in answer.text
        assert "pydantic" not in answer.text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_how_guessable_a_hostile_text_is_is_no_markup(shared: Site, text: str) -> None:
    some = text[:900]
    for body in ({"stem": some, "options": [f"{some}1", f"{some}2"], "key": 1}, {"stem": some, "answer": some}):
        answer = shared.post("anna", "/item/1/guess", {"text": body})
        assert answer.status_code == 200
        assert MarkupEye(answer.text).faults == []


FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1+1", '=HYPERLINK("http://evil.example")']


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_an_export_is_a_formula(site: Site, text: str) -> None:
    first, second = READINGS["question"]
    for name, payload in (("anna", first), ("ben", second)):
        assert site.post(name, "/item/1/seal", save(payload, comment=text)).status_code == 200
    reason = save(first, comment=text)
    assert site.post("cleo", "/item/1/adjudicate", reason).status_code == 200
    for what in ("readings", "consensus"):
        answer = site.browsers["olga"].get(f"/export/question/{what}.csv")
        assert answer.headers["content-type"].startswith("text/csv")
        assert answer.headers["content-disposition"].startswith("attachment")
        cells = [cell for row in csv.reader(answer.text.splitlines()) for cell in row]
        assert any(text.strip()[1:] in cell for cell in cells), cells
        assert [cell for cell in cells if cell[:1] in {"=", "+", "-", "@", "\t", "\r"}] == []
