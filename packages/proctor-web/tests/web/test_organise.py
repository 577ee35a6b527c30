"""A whole study over the pages, and the organiser's own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor_web.review import ReviewSite
from proctor_web.trail import first_fault
from tests.support.web_people import ROLES, Person, items
from tests.support.web_site import site
from tests.support.web_study import ACCEPT, ALL_CHECKS, QUESTION, REJECT


@pytest.fixture(params=["sqlite", "postgresql"])
def review(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ReviewSite]:
    made = site(tmp_path, store=None if request.param == "sqlite" else request.getfixturevalue("postgres_url"))
    yield made
    made.engine.dispose()


@pytest.fixture
def people(review: ReviewSite) -> dict[str, Person]:
    return {name: Person(review, name) for name in ROLES}


def test_thirty_items_go_from_draft_to_consensus_and_the_export_has_all_readings(
    review: ReviewSite, people: dict[str, Person]
) -> None:
    """Ben rejects every fifth item; Cleo settles those, one of them by an edit."""
    ids = items(review, 30)
    assert "nothing to settle yet" in people["cleo"].client.get("/").text, "nothing was read yet"
    for name in ("anna", "ben"):
        person, count = people[name], 0
        while (location := person.next()) != "/":
            item = int(location.rpartition("/")[2])
            rejects = name == "ben" and ids.index(item) % 5 == 0
            payload: dict[str, Any] = REJECT if rejects else ACCEPT
            assert person.client.get(location).status_code == 200
            assert person.save(item, payload, seconds=3).json() == {"revision": 1}
            assert person.save(item, payload, "seal", revision=1, seconds=4).status_code == 200
            count += 1
        assert count == 30
        assert "all submitted" in person.client.get("/").text
    cleo, settled = people["cleo"], 0
    while (location := cleo.next()) != "/":
        item = int(location.rpartition("/")[2])
        edited = {"decision": "edit", "checks": ALL_CHECKS, "reason": "clearer", "edited": QUESTION | {"stem": "Now?"}}
        payload = edited if item == ids[0] else ACCEPT
        assert cleo.save(item, payload, "adjudicate", comment="looked again").status_code == 200
        settled += 1
    assert settled == 6
    olga = people["olga"].client
    rows = [json.loads(line) for line in olga.get("/export/s/readings.jsonl").text.splitlines()]
    assert len(rows) == 60
    assert len({(row["item"], row["reader"]) for row in rows}) == 60
    assert {row["seconds"] for row in rows} == {7.0}
    consensus = [json.loads(line) for line in olga.get("/export/s/consensus.jsonl").text.splitlines()]
    assert [row["by"] == "agreed" for row in consensus].count(True) == 24
    assert consensus[0]["body"]["stem"] == "Now?"
    page = olga.get("/organise/study/s").text
    assert "Read by all: 30 of 30" in page
    assert "24 agreed, 6 adjudicated, 0 waiting" in page
    decision = re.search(r'<th scope="row">decision</th>\s*<td class="n">30</td>\s*<td class="n">([\d.]+)', page)
    assert decision is not None
    assert decision[1] == "80.0"
    assert "24 items settled by agreement, 6 by adjudication" in olga.get("/export/s/datasheet.md").text
    with review.reading() as connection:
        assert first_fault(connection) is None
    trail = "".join(olga.get("/organise/trail" + more).text for more in ("", "?before=100"))
    assert re.search(r"<td>automatic</td>\s*<td>agree</td>", trail), "nobody at a shell agreed"
    assert not re.search(r"<td>command line</td>\s*<td>agree</td>", trail)


def test_an_organiser_changes_an_item_and_everybody_reads_it_again(
    review: ReviewSite, people: dict[str, Person]
) -> None:
    (item,) = items(review)
    people["anna"].save(item, ACCEPT, "seal")
    olga, body = people["olga"], json.dumps(QUESTION | {"stem": "And then?"})
    assert people["anna"].next() == "/"
    form = {"csrf": olga.csrf, "body": body, "why": "a typing error"}
    assert olga.client.post(f"/organise/item/{item}", data=form).status_code == 303
    assert people["anna"].next() == f"/item/{item}"
    page = olga.client.get(f"/organise/item/{item}").text
    assert "Version 2" in page
    assert "a typing error" in page
    for wrong, said in (
        ("{", "line 1, column 2"),
        ("[]", "no object"),
        (json.dumps({"stem": "?"}), "a stem with two or more"),
    ):
        refused = olga.client.post(f"/organise/item/{item}", data=form | {"body": wrong})
        assert refused.status_code == 422, wrong
        assert said in refused.text
    assert olga.client.post(f"/organise/item/{item}", data=form | {"csrf": "x"}).status_code == 403
    assert olga.client.post("/organise/item/99", data=form).status_code == 404
    assert (
        people["anna"].client.post(f"/organise/item/{item}", data=form | {"csrf": people["anna"].csrf}).status_code
        == 404
    )


def test_pages_of_a_study_without_readings_say_so(review: ReviewSite, people: dict[str, Person]) -> None:
    items(review)
    olga = people["olga"].client
    assert "Nothing yet." in olga.get("/organise/study/s").text
    assert "Read by all: 0 of 1" in olga.get("/organise/").text
    assert olga.get("/organise/study/none").status_code == 404
    assert olga.get("/export/none/readings.csv").status_code == 404
    assert olga.get("/export/s/readings.csv").text.startswith("study,form,item")
