"""The first page of people with work, and where an item stands: what waits comes first, and says how much it is."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from proctor.core import InputError
from proctor_web.forms import FORMS
from proctor_web.progress import position_in_work
from proctor_web.readings import Save, seal
from proctor_web.review import ReviewSite
from proctor_web.settings import StudyPlan, StudySettings
from proctor_web.studies import add_study, deal_study, import_items
from tests.support.web_people import Person, items
from tests.support.web_site import browser, join, log_in
from tests.support.web_study import ACCEPT, REJECT, accounts_of, new_items

PEOPLE = {"anna": "reviewer", "ben": "reviewer", "cleo": "adjudicator", "olga": "organiser"}


@pytest.fixture
def studies(review: ReviewSite) -> dict[str, int]:
    """Two studies, the second added first: their ids; Anna and Ben read four items in each, Cleo adjudicates."""
    for name, role in PEOPLE.items():
        join(review, name, role)
    plan = StudyPlan(readers=("anna", "ben"), adjudicators=("cleo",))
    found = {}
    with review.writing() as connection:
        for name, position in (("answers", 1), ("questions", 0)):
            intro = "Please read <b>all</b>.\n\n Then\nask."
            settings = StudySettings(name=name, title=name.title(), intro=intro, form="question", items="x", plan=plan)
            found[name] = add_study(connection, settings, review.now(), position)
            import_items(connection, found[name], new_items(4), review.now())
            deal_study(connection, found[name], plan, review.now())
    return found


def read(review: ReviewSite, name: str, study: str, count: int, seconds: float = 60.0) -> None:
    person = browser(review)
    log_in(person, name)
    for _ in range(count):
        item = int(person.get(f"/study/{study}/next").headers["location"].rpartition("/")[2])
        with review.writing() as connection:
            said = REJECT if name == "ben" else ACCEPT
            seal(connection, accounts_of(connection)[name], item, Save(1, 0, dict(said), "", seconds), review.now())


def home(review: ReviewSite, name: str) -> str:
    client: TestClient = browser(review)
    log_in(client, name)
    return str(client.get("/").text)


def buttons(page: str) -> list[tuple[bool, str]]:
    """Whether each study's button is the primary one, and its word."""
    found = re.findall(r'<a class="button( first)?" href="/study/[^"]+"[^>]*>([^<]+)</a>', page)
    return [(bool(first), word) for first, word in found]


def test_work_stands_in_the_order_of_the_file_with_one_primary_button(
    review: ReviewSite, studies: dict[str, int]
) -> None:
    page = home(review, "anna")
    assert re.findall(r"<h2[^>]*>(\w+)</h2>", page) == ["Questions", "Answers"]
    assert buttons(page) == [(True, "Start"), (False, "Start")]
    assert "<p>Please read &lt;b&gt;all&lt;/b&gt;.</p>\n<p>Then ask.</p>" in page
    assert "min left" not in page, "nothing was measured yet"
    read(review, "anna", "questions", 2)
    assert "min left" not in home(review, "anna"), "two are too few"
    read(review, "anna", "questions", 1)
    page = home(review, "anna")
    assert buttons(page) == [(True, "Continue"), (False, "Start")]
    assert "3 of 4 submitted · about 60 s each, 1 min left" in page
    assert "about 60 s each, 4 min left" in home(review, "ben")


def test_what_is_done_is_one_line_below_what_waits(review: ReviewSite, studies: dict[str, int]) -> None:
    read(review, "anna", "questions", 4)
    page = home(review, "anna")
    assert re.findall(r"<h2[^>]*>(\w+)</h2>", page) == ["Answers"]
    assert buttons(page) == [(True, "Start")]
    assert "Nothing waits in: Questions (all submitted, thank you)." in page
    page = home(review, "cleo")
    assert buttons(page) == []
    assert "Nothing waits in: Questions (nothing to settle yet), Answers (nothing to settle yet)." in page
    read(review, "anna", "answers", 4)
    read(review, "ben", "answers", 1)
    page = home(review, "cleo")
    assert re.findall(r"<h2[^>]*>(\w+)</h2>", page) == ["Answers"]
    assert "1 item on which readings differ waits for you" in page
    assert "Items appear here once an organiser assigns them" in home(review, "olga")


def test_a_page_says_where_its_item_stands(review: ReviewSite) -> None:
    anna, ben = (Person(review, name) for name in ("anna", "ben"))
    cleo = Person(review, "cleo")
    items(review, 4)
    with review.reading() as connection:
        who = accounts_of(connection)
    location = anna.next()
    page = anna.client.get(location).text
    assert "1 of 4 · video" in page
    after = re.search(r'href="/item/(\d+)" aria-label="Item after"', page)
    assert after is not None
    assert "Item before" not in page
    second = anna.client.get(f"/item/{after[1]}").text
    assert "2 of 4 · video" in second
    assert f'href="{location}" aria-label="Item before"' in second
    for person, said in ((anna, ACCEPT), (ben, REJECT)):
        assert person.save(int(after[1]), said, "seal").status_code == 200
    with review.reading() as connection:
        found = position_in_work(connection, who["cleo"], "s", int(after[1]))
    assert (found.number, found.total, found.before, found.after) == (1, 1, None, None), (
        "what others settle is not counted"
    )
    assert "1 of 1 · video" in cleo.client.get(f"/item/{after[1]}").text


def test_levels_of_a_rating_have_words() -> None:
    form = FORMS["rating"]
    dimension = {"name": "correct", "levels": [0, 1, 2], "labels": ["wrong", "partly", "right"]}
    body = form.read_body({"question": "?", "answer": "!", "dimensions": [dimension]})
    assert [body.dimensions[0].word(level) for level in (0, 1, 2)] == ["wrong", "partly", "right"]
    with pytest.raises(InputError, match="a label for each of the 3 levels is expected, not 2"):
        form.read_body({"question": "?", "answer": "!", "dimensions": [dimension | {"labels": ["wrong", "right"]}]})
    plain = form.read_body({"question": "?", "answer": "!", "dimensions": [{"name": "correct", "levels": [0, 1]}]})
    assert plain.dimensions[0].word(0) == ""


def test_organisers_see_names_and_others_pseudonyms(review: ReviewSite) -> None:
    anna, ben, cleo, olga = (Person(review, name) for name in ("anna", "ben", "cleo", "olga"))
    (item,) = items(review)
    for person, said in ((anna, ACCEPT), (ben, REJECT)):
        assert person.save(item, said, "seal").status_code == 200
    for path in ("/organise/study/s", f"/organise/item/{item}"):
        page = olga.client.get(path).text
        assert re.search(r"\banna\b.{0,40}R-", page, re.DOTALL), path
    for person in (anna, ben, cleo):
        shown = person.client.get(f"/item/{item}").text
        others = {"anna", "ben", "cleo"} - {
            next(n for n, p in (("anna", anna), ("ben", ben), ("cleo", cleo)) if p is person)
        }
        assert [name for name in others if re.search(rf"\b{name}\b", shown)] == []
        letters = re.findall(r"<h3>Reader ([A-Z]) <span class=\"note\">R-\w{6}</span></h3>", shown)
        assert letters == (["A", "B"] if person is cleo else ["A"])


def test_the_trail_leaves_saved_drafts_out_until_they_are_asked_for(review: ReviewSite) -> None:
    anna, olga = Person(review, "anna"), Person(review, "olga")
    (item,) = items(review, readings=1, readers=("anna",), adjudicators=())
    assert anna.save(item, {"decision": "accept"}).status_code == 200
    assert anna.save(item, ACCEPT, "seal", revision=1).status_code == 200
    page = olga.client.get("/organise/trail").text
    assert ("save draft" in page, "<td>submit</td>" in page) == (False, True)
    assert "save draft" in olga.client.get("/organise/trail?drafts=true").text
