"""The pages of work: what a person sees, saves and seals, through the application."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select

from proctor_web import schema
from proctor_web.forms import FORMS
from proctor_web.review import ReviewSite
from tests.support.web_people import ROLES, Person, items
from tests.support.web_site import browser
from tests.support.web_study import ACCEPT, ALL_CHECKS, BODIES, QUESTION, READINGS, REJECT


@pytest.fixture
def people(review: ReviewSite) -> dict[str, Person]:
    return {name: Person(review, name) for name in ROLES}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_a_page_a_draft_a_seal_and_an_adjudication(
    review: ReviewSite, people: dict[str, Person], form: str
) -> None:
    (item,) = items(review, 1, form)
    one, other = READINGS[form]
    anna, ben, cleo = people["anna"], people["ben"], people["cleo"]
    assert anna.next() == f"/item/{item}"
    page = anna.client.get(f"/item/{item}")
    assert page.status_code == 200
    assert 'data-open="yes"' in page.text
    assert anna.save(item, one).json() == {"revision": 1}
    assert anna.save(item, one, "seal", revision=1, comment="seen").json() == {"next": "/"}
    again = anna.client.get(f"/item/{item}").text
    assert "Your reading is submitted." in again
    assert "Submitted readings" not in again
    assert ben.save(item, other, "seal").json() == {"next": "/"}
    sides = cleo.client.get(cleo.next()).text
    assert sides.count("data-take=") == 2
    assert "<q>seen</q>" in sides
    taken = FORMS[form].taken(FORMS[form].read_body(BODIES[form]), dict(one))
    assert cleo.save(item, taken, "adjudicate", comment="clear at 0:12").json() == {"next": "/"}
    for person in (anna, ben, cleo):
        settled = person.client.get(f"/item/{item}").text
        assert "clear at 0:12" in settled
        assert 'data-open="no"' in settled


def test_the_pages_of_everybody_else_are_not_there(review: ReviewSite, people: dict[str, Person]) -> None:
    (item,) = items(review)
    for name in ("rita", "olga", "cleo"):
        person = people[name]
        assert person.client.get(f"/item/{item}").status_code == 404
        for what in ("draft", "seal", "adjudicate", "new"):
            assert person.save(item, ACCEPT, what).status_code == 404, (name, what)
        assert person.post(f"/item/{item}/guess", {"text": QUESTION}).status_code == 404
        assert person.client.get(f"/item/{item}/new").status_code == 404
    assert people["anna"].client.get("/item/99").status_code == 404
    assert people["anna"].save(99, ACCEPT).status_code == 404
    assert people["anna"].next() != "/"
    assert people["rita"].next() == "/"
    participant = Person(review, "participant")
    assert participant.client.get(f"/item/{item}").status_code == 404


def test_an_old_window_is_told_and_changes_nothing(review: ReviewSite, people: dict[str, Person]) -> None:
    (item,) = items(review)
    anna = people["anna"]
    anna.save(item, ACCEPT)
    told = anna.save(item, REJECT)
    assert (told.status_code, told.json()["revision"]) == (409, 1)
    assert "another window" in told.json()["message"]
    assert anna.save(item, ACCEPT).json() == {"revision": 1}  # the same once more: an answer that was lost


def test_what_is_missing_is_said_in_the_readers_language(review: ReviewSite, people: dict[str, Person]) -> None:
    (item,) = items(review)
    anna = people["anna"]
    told = anna.save(item, {"decision": "reject", "checks": ALL_CHECKS}, "seal")
    assert told.status_code == 422
    assert told.json()["missing"] == ["the reason"]
    anna.client.post("/language", data={"csrf": anna.csrf, "language": "de"})
    assert anna.save(item, {"decision": "reject", "checks": ALL_CHECKS}, "seal").json()["missing"] == ["die Begründung"]
    wrong = anna.save(item, {"decision": "maybe"})
    assert wrong.status_code == 422
    assert "'accept', 'edit' or 'reject'" in wrong.json()["missing"][0]
    assert anna.post(f"/item/{item}/draft", {"version": 1}).status_code == 422


@pytest.mark.parametrize("form", FORMS)
def test_every_lack_of_every_form_has_words(form: str) -> None:
    from proctor_web.strings import text

    chosen = FORMS[form]
    body = chosen.read_body(BODIES[form])
    for payload in ({}, {"nothing": True} if form in ("presence", "boxes", "moments") else {}):
        for name in chosen.missing(body, chosen.read(body, payload)):
            assert text("de", f"missing.{name}")


def test_a_change_needs_the_pages_token(review: ReviewSite, people: dict[str, Person]) -> None:
    (item,) = items(review)
    anna = people["anna"]
    value = {"version": 1, "revision": 0, "payload": {}}
    assert anna.client.post(f"/item/{item}/draft", json=value).status_code == 403
    assert browser(review).post(f"/item/{item}/draft", json=value).status_code in {401, 403}


def test_a_page_of_another_account_changes_nothing(review: ReviewSite, people: dict[str, Person]) -> None:
    """Ben logged in in Anna's browser: her page, whatever token it found, is not his."""
    (item,) = items(review)
    anna, ben = people["anna"], people["ben"]
    value = {"version": 1, "revision": 0, "payload": ACCEPT}
    account = {name: re.search(r'data-account="(\d+)"', who.client.get("/").text) for name, who in people.items()}
    headers = {"x-csrf-token": ben.csrf, "x-account": account["anna"][1] if account["anna"] else ""}
    for what in ("draft", "seal", "adjudicate", "new"):
        assert ben.client.post(f"/item/{item}/{what}", json=value, headers=headers).status_code == 403
    assert anna.client.post(
        f"/item/{item}/draft", json=value, headers=headers | {"x-csrf-token": anna.csrf}
    ).json() == {"revision": 1}


def test_hostile_texts_are_shown_as_texts(review: ReviewSite, people: dict[str, Person]) -> None:
    (item,) = items(review)
    script = '<script>alert("x")</script>\'{{ 7*7 }}'
    edited = QUESTION | {"stem": script, "options": [script, "b"]}
    payload = {"decision": "edit", "checks": ALL_CHECKS, "reason": script, "edited": edited}
    people["anna"].save(item, payload, "seal", comment=script)
    people["ben"].save(item, REJECT, "seal", comment=script)
    for name in ("anna", "ben", "cleo"):
        page = people[name].client.get(f"/item/{item}").text
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page
        assert not re.search(r"=(?:'|\")?[^>]*<script", page)


def test_how_guessable_a_text_is_comes_as_a_fragment(review: ReviewSite, people: dict[str, Person]) -> None:
    items(review, 3)
    anna = people["anna"]
    item = int(anna.next().rpartition("/")[2])
    whole = anna.post(f"/item/{item}/guess", {"text": QUESTION | {"explanation": ""}})
    assert whole.status_code == 200
    assert "Picked by a rule: the longest option." in whole.text
    assert "Too few other questions (2)" in whole.text
    assert "<html" not in whole.text
    half = anna.post(f"/item/{item}/guess", {"text": {"stem": "What"}})
    assert half.text.strip() == "", "nothing to say yet"
    forbidden = anna.post(f"/item/{item}/guess", {"text": QUESTION | {"stem": "What does the narrator say?"}})
    assert "Speaks of sound, which no picture shows: does the narrator say" in forbidden.text
    anna.client.post("/language", data={"csrf": anna.csrf, "language": "de"})
    german = anna.post(f"/item/{item}/guess", {"text": QUESTION | {"stem": "What does the narrator say?"}}).text
    assert "Spricht von Ton, den kein Bild zeigt: does the narrator say" in german
    assert "Von einer Regel gewählt: die längste Option." in german
    assert anna.post(f"/item/{item}/guess", {"text": {"stem": ["x"]}}).status_code == 422


def test_a_new_question_is_read_by_others(review: ReviewSite, people: dict[str, Person]) -> None:
    (item,) = items(review)
    anna, ben = people["anna"], people["ben"]
    assert anna.client.get(f"/item/{item}/new").status_code == 200
    new = QUESTION | {
        "stem": "What is cut?",
        "labels": ["anticipation"],
        "relevance": "safety",
        "tolerance": 2.0,
        "moment": 1.5,
    }
    assert anna.save(item, new, "new", comment="from a case").json() == {"next": f"/item/{item}"}
    with review.reading() as connection:
        query = select(schema.versions).where(schema.versions.c.item != item)
        (version,) = connection.execute(query).mappings().all()
        assert (version["body"]["stem"], version["body"]["labels"]) == ("What is cut?", ["anticipation"])
        assert version["why"] == "written: from a case"
    number = version["item"]
    assert anna.client.get(f"/item/{number}").status_code == 404  # nobody reads their own
    page = ben.client.get(f"/item/{number}").text
    assert all(part in page for part in ("anticipation", "safety", 'data-seek="1.5"'))
    ben.save(number, ACCEPT, "seal")
    anna.client.post("/language", data={"csrf": anna.csrf, "language": "de"})
    assert anna.save(item, QUESTION | {"key": 9}, "new").json()["missing"] == ["welche Option richtig ist"]
