"""Work in a real browser: from login to seal without a mouse, and through a lost connection without a loss."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select, update

from proctor.core import VideoClip
from proctor_web import schema
from proctor_web.readings import Save, save_draft
from proctor_web.review import ReviewSite
from proctor_web.routes.work import shortcut_keys
from tests.support.chromium import Page
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.web_keys import press, until, write
from tests.support.web_study import BODIES, NOW, REJECT, accounts_of
from tests.support.web_work import log_in, sealed, walk

NEXT = "location.pathname !== '{0}' && (location.pathname === '/' || document.querySelector('[data-ready=yes]'))"


async def leave(page: Page) -> None:
    """Presses the key that seals, and waits for what comes next."""
    here = await page.evaluate("location.pathname")
    await press(page, "s")
    await until(page, NEXT.format(here))


def test_a_question_is_reviewed_from_login_to_seal_in_five_keys(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)  # Tab, Enter, Enter
        await press(page, "a")
        await leave(page)  # s
        await press(page, "a", "3")  # a check fails
        await press(page, "r")  # reject: the cursor is where the reason is written
        await write(page, "the first option can't be wrong")
        await press(page, "Escape")
        await leave(page)

    page = walk(review, "question", steps)
    assert page.complaints == []
    (first, one), (second, other) = sealed(review)
    assert (first, one["decision"], second, other["decision"]) == ("anna", "accept", "anna", "reject")
    assert other["checks"] == {"pictures": True, "one_right": True, "distractors": False, "clinical": True}
    assert other["reason"] == "the first option can't be wrong"
    assert all(address.startswith(("http://127.0.0.1", "data:")) for address in page.requests)


def test_a_question_is_edited_by_keys_while_its_guessability_stands_beside_it(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        await until(page, "document.querySelector('.living')?.textContent.includes('the longest option')")
        await press(page, "a", "e")
        await page.evaluate("document.activeElement.select()")
        await write(page, "What does the narrator do?")
        await until(page, "document.querySelector('.living').textContent.includes('narrat')")
        await press(page, "Escape")
        await page.evaluate("document.querySelector('#reason').focus()")
        await write(page, "clearer")
        await press(page, "Enter", modifiers=2)
        await until(page, "location.pathname === '/'")

    page = walk(review, "question", steps, count=1)
    assert page.complaints == []
    ((_, one),) = sealed(review)
    edited = one["edited"]
    assert isinstance(edited, dict)
    assert edited["stem"] == "What does the narrator do?"
    assert edited["key"] == 0
    assert len(edited["options"]) == 3


@pytest.mark.parametrize(
    ("form", "keys", "payload"),
    [
        ("presence", "120", {"nothing": True}),
        ("rating", "2d", {"scores": {"correct": 2.0, "tone": 0.5}}),
        ("rating", "2fb", {"scores": {"correct": 2.0, "tone": 0.0}}),  # the last level corrected downwards
        ("pairwise", "3", {"choice": "tie"}),
        ("choice", "12", {"choice": "reject"}),
    ],
)
def test_other_forms_are_sealed_by_keys(review: ReviewSite, form: str, keys: str, payload: dict[str, object]) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        await press(page, *keys)
        await leave(page)

    page = walk(review, form, steps, count=1)
    assert page.complaints == []
    assert sealed(review) == [("anna", payload)]


SHOWN = """JSON.stringify([...document.querySelectorAll("[data-rated]")].map((one) =>
    [...one.querySelectorAll("label")].map((each) => each.textContent.trim().replace(/\\s+/, " "))))"""


@pytest.mark.parametrize(
    ("language", "levels", "keys", "shown"),
    [
        ("en", (0, 1, 2), "012", ["0 0", "1 1", "2 2"]),
        ("de", (0, 1, 2), "012", ["0 0", "1 1", "2 2"]),
        ("en", (1, 2, 3, 4, 5), "12345", ["1 1", "2 2", "3 3", "4 4", "5 5"]),
        ("en", (1, 3), "13", ["1 1", "3 3"]),
        ("de", (0, 0.5, 1), "bdf", ["0 b", "0.5 d", "1 f"]),
        ("en", (-1, 0, 1), "bdf", ["-1 b", "0 d", "1 f"]),
        ("en", tuple(range(1, 11)), "bdfghpqtvx", [f"{level} {key}" for level, key in enumerate("bdfghpqtvx", 1)]),
    ],
)
def test_a_digit_is_the_key_of_its_own_level_alone(
    review: ReviewSite,
    monkeypatch: pytest.MonkeyPatch,
    language: str,
    levels: tuple[float, ...],
    keys: str,
    shown: list[str],
) -> None:
    scales = [{"name": f"scale {key}", "levels": levels} for key in keys]
    monkeypatch.setitem(BODIES["rating"], "dimensions", scales)

    async def steps(page: Page, url: str) -> None:
        with review.engine.begin() as connection:
            connection.execute(update(schema.accounts).values(language=language))
        await log_in(page, url)
        assert await page.evaluate("document.documentElement.lang") == language
        assert json.loads(await page.evaluate(SHOWN)) == [shown] * len(keys)
        for key in keys:
            strange = [one for one in "0123456789" if one not in keys]
            await press(page, *strange, key)  # a digit that is no level's does nothing
        await leave(page)

    page = walk(review, "rating", steps, count=1)
    assert page.complaints == []
    pressed = dict(zip((scale["name"] for scale in scales), map(float, levels), strict=True))
    assert sealed(review) == [("anna", {"scores": pressed})]


@pytest.mark.parametrize(
    ("labels", "given", "keys"),
    [
        (("grade 2", "grade 1"), {}, ["2", "1"]),  # the key is the grade, not its position
        (("0", "1", "2"), {"nothing": True}, ["b", "d", "f"]),  # 0 is the key of "nothing"
        (("T1a", "T1b"), {}, ["b", "d"]),
        (("clip", "stent 12"), {}, ["b", "d"]),
        (("b", "clip"), {}, ["1", "2"]),
        (("A", "B", "D"), {"positions": True}, ["f", "g", "h"]),  # no digit beside a position, no other frame's letter
        (("1", "2"), {"positions": True}, ["1", "2"]),
        (tuple(map(chr, range(65, 91))), {}, [*"123456789", *[""] * 17]),
    ],
)
def test_no_key_is_the_name_of_another_choice(labels: tuple[str, ...], given: dict[str, bool], keys: list[str]) -> None:
    assert shortcut_keys(labels, **given) == keys


def test_frames_are_ordered_by_keys_and_cited(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        await press(page, "f", "d", "Backspace", "f", "d")  # the last frame follows by itself
        located = "[...document.querySelectorAll('[data-ordered] figcaption')].map((one) => one.textContent)"
        said = [" ".join(one.split()) for one in await page.evaluate(located)]
        assert said == ["f b position 1 ⤢", "d a position 2 ⤢", "g c position 3 ⤢"]
        await page.evaluate("document.querySelector('.sentence textarea').focus()")
        await write(page, "b shows the start.")
        await press(page, "Tab", "Tab", "Enter")  # cites b
        await page.evaluate("document.activeElement.blur()")
        await leave(page)

    walk(review, "order", steps, count=1)
    assert sealed(review) == [
        ("anna", {"order": ["b", "a", "c"], "rationale": [{"text": "b shows the start.", "frames": ["b"]}]})
    ]


def test_a_lost_connection_loses_nothing_and_says_so(review: ReviewSite) -> None:
    status = "document.querySelector('[data-status]').textContent"

    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        await press(page, "a")
        await until(page, f"{status} === 'Saved.'")
        offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        await page.call("Network.emulateNetworkConditions", offline=True, **offline)
        await press(page, "r")
        await write(page, "written in the lift")
        await until(page, f"{status}.startsWith('No connection.')")
        await press(page, "Escape", "s")
        await until(page, f"{status}.includes('will be submitted')")
        assert sealed(review) == []
        await page.call("Network.emulateNetworkConditions", offline=False, **offline)
        await until(page, "location.pathname === '/'")

    walk(review, "question", steps, count=1)
    ((_, one),) = sealed(review)
    assert (one["decision"], one["reason"]) == ("reject", "written in the lift")


def test_what_was_not_sent_is_there_again_after_the_page_was_closed(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        here = await page.evaluate("location.pathname")
        await page.evaluate("window.fetch = () => Promise.reject(new TypeError('no network'))")
        await press(page, "a")
        await until(page, "document.querySelector('[data-status]').textContent.startsWith('No connection.')")
        await page.open("about:blank")
        with review.reading() as connection:
            assert connection.execute(select(schema.readings.c.id)).all() == []
        await page.open(url + here)
        await until(page, "document.querySelector('[name=decision]:checked')?.value === 'accept'")
        await until(page, "document.querySelector('[data-status]').textContent === 'Saved.'")
        await leave(page)

    walk(review, "question", steps, count=1)
    ((_, one),) = sealed(review)
    assert one["decision"] == "accept"


def test_another_window_that_saved_is_not_overwritten(review: ReviewSite) -> None:
    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        item = int((await page.evaluate("location.pathname")).rpartition("/")[2])
        with review.writing() as connection:
            save_draft(connection, accounts_of(connection)["anna"], item, Save(1, 0, REJECT), NOW)
        await press(page, "a")
        await until(page, "document.querySelector('[data-missing]').textContent.includes('another window')")
        with review.reading() as connection:
            kept = connection.execute(select(schema.readings.c.payload["decision"].as_string())).scalar_one()
        assert kept == "reject"

    walk(review, "question", steps, count=1)


def test_an_adjudicator_takes_one_side_by_key(review: ReviewSite) -> None:
    from proctor_web.readings import seal
    from tests.support.web_study import ACCEPT

    async def steps(page: Page, url: str) -> None:
        with review.writing() as connection:
            who = accounts_of(connection)
            item = connection.execute(select(schema.study_items.c.id)).scalar_one()
            for name, payload in (("anna", ACCEPT), ("ben", REJECT)):
                seal(connection, who[name], item, Save(1, 0, payload), NOW)
        await log_in(page, url, "cleo")
        reject = "document.querySelector('[data-take*=reject]').dataset.key"
        await press(page, await page.evaluate(reject), modifiers=8)
        await press(page, "c")
        await write(page, "two options are right")
        await press(page, "Escape")
        await leave(page)

    page = walk(review, "question", steps, count=1)
    assert page.complaints == []
    with review.reading() as connection:
        (settled,) = connection.execute(select(schema.consensus)).mappings().all()
    assert settled["payload"]["decision"] == "reject"
    assert settled["reason"] == "two options are right"


def test_a_new_question_starts_from_a_moment_of_the_video(review: ReviewSite) -> None:
    write_clock_video(review.media / "v.mp4", ClockVideo([40 * number for number in range(30)]))
    clip = (VideoClip(source="v.mp4"),)

    async def steps(page: Page, url: str) -> None:
        await log_in(page, url)
        await press(page, "w")
        await until(page, "location.pathname.endsWith('/new') && document.querySelector('[data-ready=yes]')")
        await until(page, "document.querySelector('[data-player] [data-part=clock]').textContent")
        await press(page, ".", ".", ".")  # three frames on
        await until(page, "document.querySelector('[data-part=clock]').textContent.endsWith('0.120')")
        await press(page, "t")
        await until(page, "document.querySelector('#moment').value === '0.120'")
        for number, text in enumerate(("What is cut?", "a vessel", "a nerve")):
            await page.evaluate(f"document.querySelectorAll('#stem, .option input[type=text]')[{number}].focus()")
            await write(page, text)
        await press(page, "Escape")
        await page.evaluate("document.querySelector('[name=key]').click()")
        await press(page, "s")
        await until(page, "!location.pathname.endsWith('/new') && document.querySelector('[data-ready=yes]')")

    page = walk(review, "question", steps, count=1, media=clip)
    assert page.complaints == []
    with review.reading() as connection:
        query = select(schema.versions.c.body).where(schema.versions.c.why == "written")
        body = connection.execute(query).scalar_one()
    assert (body["stem"], body["options"], body["key"]) == ("What is cut?", ["a vessel", "a nerve"], 0)
    assert body["moment"] == 0.12
