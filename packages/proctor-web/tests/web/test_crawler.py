"""A crawler logged in as each role follows every link and tries every address, with ids of others: nobody sees a word
of a reading that is sealed to them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from proctor_web.review import ReviewSite
from tests.support.web_people import ROLES, Person, items
from tests.support.web_study import ALL_CHECKS, QUESTION

CANARY = re.compile(r"canary-(\w+)-(\d+)")
_LINKS = re.compile(r"(?:href|src|action|data-guess)=\"(/[^\"#]*)\"")
_MOST_ITEM = 8
_OTHERS = ("media/{0}/0/video", "media/{0}/0/timestamps", "item/{0}", "item/{0}/new", "organise/item/{0}")
_NAMED = (
    "/", "/organise/", "/organise/study/s", "/organise/study/other", "/study/s/next", "/study/other/next",
    *(f"/export/s/{what}.{form}" for what in ("readings", "consensus") for form in ("jsonl", "csv", "parquet")),
    "/export/s/datasheet.md", "/export/other/readings.jsonl", "/export/s/trail.jsonl", "/item/0", "/item/-1", "/item/1e0",
)  # fmt: skip


def reject(name: str, item: int) -> dict[str, Any]:
    """A reading with a canary in every text that it has."""
    canary = f"canary-{name}-{item}"
    edited = QUESTION | {"stem": canary, "explanation": canary, "options": [canary, f"{canary}-b"]}
    return {"decision": "edit", "checks": ALL_CHECKS, "reason": canary, "edited": edited}


def crawled(person: Person) -> tuple[set[str], str]:
    """All addresses that answered, and everything that they said."""
    ahead = [*_NAMED, *(f"/{path.format(item)}" for item in range(_MOST_ITEM) for path in _OTHERS)]
    seen: set[str] = set()
    answered, texts = set(), []
    while ahead:
        path = ahead.pop()
        if path in seen or path.startswith(("/static/", "/logout")):
            continue
        seen.add(path)
        answer = person.client.get(path)
        texts.append(f"{dict(answer.headers)} {answer.content.decode('utf-8', 'replace')}")
        assert answer.status_code in {200, 202, 303, 401, 404, 405, 422}, (path, answer.status_code)
        if answer.status_code == 200:
            answered.add(path)
        ahead += [found.replace("&amp;", "&") for found in _LINKS.findall(answer.text)]
        ahead += [answer.headers["location"]] if answer.status_code == 303 else []
    for item in range(_MOST_ITEM):
        for what in ("draft", "seal", "adjudicate", "new", "guess"):
            for value in ({"text": QUESTION}, {"version": 1, "revision": 7, "payload": {"decision": "accept"}}):
                answer = person.post(f"/item/{item}/{what}", value)
                texts.append(answer.text)
                assert answer.status_code in {200, 404, 409, 422}, (what, answer.status_code)
    return answered, " ".join(texts)


def canaries(text: str) -> set[tuple[str, int]]:
    return {(hit[1], int(hit[2])) for hit in CANARY.finditer(text)}


@pytest.fixture
def people(review: ReviewSite) -> dict[str, Person]:
    return {name: Person(review, name) for name in (*ROLES, "annotator", "participant", "public")}


def test_nobody_sees_a_word_of_a_sealed_reading(review: ReviewSite, people: dict[str, Person]) -> None:
    """Of four items one is complete, one is sealed by Anna, one is a draft of hers, one of Ben's."""
    complete, annas, draft, bens = items(review, 4)
    for name in ("anna", "ben"):
        sealed = people[name].save(complete, reject(name, complete), "seal", comment=f"canary-{name}-{complete}")
        assert sealed.status_code == 200, sealed.text
    assert people["anna"].save(annas, reject("anna", annas), "seal", comment=f"canary-anna-{annas}").status_code == 200
    assert people["anna"].save(draft, reject("anna", draft), comment=f"canary-anna-{draft}").status_code == 200
    assert people["ben"].save(bens, reject("ben", bens), comment=f"canary-ben-{bens}").status_code == 200
    both = {("anna", complete), ("ben", complete)}
    allowed = {
        "anna": both | {("anna", annas), ("anna", draft)},
        "ben": both | {("ben", bens)},
        "cleo": both,
        "olga": both,
    }
    for name, person in people.items():
        answered, said = crawled(person)
        assert canaries(said) == allowed.get(name, set()), name
        if name == "olga":
            assert {
                "/organise/",
                "/organise/study/s",
                "/export/s/readings.parquet",
                f"/organise/item/{annas}",
            } <= answered
        else:
            assert not any(path.startswith(("/organise", "/export")) for path in answered), name
        if name in {"rita", "annotator", "participant", "public"}:
            assert answered == {"/"}, name


def test_a_stranger_sees_the_login_alone(review: ReviewSite, people: dict[str, Person]) -> None:
    from tests.support.web_site import browser

    (item,) = items(review)
    people["anna"].save(item, reject("anna", item), "seal")
    client = browser(review)
    for path in (*_NAMED, f"/item/{item}", f"/organise/item/{item}"):
        answer = client.get(path)
        assert answer.status_code in {303, 404}, path
        assert answer.headers.get("location", "/login").startswith("/login")
        assert not canaries(answer.text)
