"""Two physicians on a recorded order and its sentences: blind to the order first, then keep, correct or remove; what they
differ on goes to an adjudicator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sklearn.metrics import cohen_kappa_score
from sqlalchemy import Engine, select
from starlette.testclient import TestClient

from proctor.core import InputError, VideoClip
from proctor_web import schema
from proctor_web.agreement import agreement_tables, study_agreement
from proctor_web.export import consensus_rows, reading_rows
from proctor_web.forms import AS_RECORDED, FORMS, WHOLE_ORDER
from proctor_web.forms import ORDER as ORDER_OF_TWO
from proctor_web.readings import IncompleteError, Save, adjudicate, save_draft, seal
from proctor_web.review import ReviewSite
from proctor_web.settings import StudySettings
from proctor_web.sources import NewItem
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.web_site import browser, csrf_of, join, log_in
from tests.support.web_study import BODIES, NOW, READINGS, accounts_of, study_of
from tests.support.web_study import review as new_review

FORM = FORMS["rationale"]
BODY: dict[str, Any] = BODIES["rationale"]
ORDER: dict[str, Any] = {"order": ["B", "C", "A"], "ordered": True}
KEPT = {name: {"verdict": "keep"} for name in ("s1", "s2")}
SECRETS = ("hand is free", "Pads lie", "B → C → A", "not visible", "Dark.", "0.4", "1.2")
"""Texts that say something of the recorded order."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = new_review(tmp_path / "review.sqlite")
    yield opened
    opened.dispose()


def corrected(text: str = "C is dark.", *frames: str) -> dict[str, Any]:
    return KEPT | {"s2": {"verdict": "correct", "text": text, "frames": [*frames]}}


class Desk:
    """One item, by name of the person."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        (self.item,) = study_of(engine, [NewItem("k1", "v1", (), dict(BODY))], "rationale").values()
        with engine.begin() as connection:
            self.who = accounts_of(connection)
        self.revisions: dict[str, int] = {}

    def save(self, name: str, **payload: Any) -> None:
        self._do(save_draft, name, payload)

    def seal(self, name: str, **payload: Any) -> None:
        self._do(seal, name, payload)

    def _do(self, act: Any, name: str, payload: dict[str, Any]) -> None:
        with self.engine.begin() as connection:
            revision = self.revisions.get(name, 0)
            done = act(connection, self.who[name], self.item, Save(1, revision, payload), NOW)
            self.revisions[name] = done.revision

    def settle(self, reason: str = "seen again", **payload: Any) -> None:
        with self.engine.begin() as connection:
            adjudicate(connection, self.who["cleo"], self.item, 1, payload, reason, NOW)

    def consensus(self) -> list[dict[str, Any]]:
        with self.engine.begin() as connection:
            return consensus_rows(connection, self.who["olga"], "s")


def lacks(act: Any, name: str, **payload: Any) -> tuple[str, ...]:
    with pytest.raises(IncompleteError) as error:
        act(name, **payload)
    return error.value.missing


def test_sentences_come_after_the_order_and_the_order_stays(engine: Engine) -> None:
    desk = Desk(engine)
    assert lacks(desk.save, "anna", sentences=KEPT) == ("rationale.first",)
    assert lacks(desk.save, "anna", order=["B"], ordered=True) == ("rationale.order",)
    assert lacks(desk.save, "anna", order=["B", "C", "A"], unclear=True, ordered=True) == ("rationale.order",)
    desk.save("anna", order=["B"])
    assert lacks(desk.seal, "anna", order=["B", "C", "A"]) == ("rationale.first",)
    desk.save("anna", **ORDER)
    assert lacks(desk.save, "anna", order=["A", "B", "C"], ordered=True) == ("rationale.fixed",)
    assert lacks(desk.save, "anna", order=["B", "C", "A"]) == ("rationale.fixed",)
    assert lacks(desk.save, "anna", unclear=True, ordered=True) == ("rationale.fixed",)
    assert lacks(desk.seal, "anna", **ORDER) == ("rationale.sentences",)
    desk.seal("anna", **ORDER, sentences=KEPT)
    with engine.begin() as connection:
        actions = list(connection.execute(select(schema.trail.c.action).order_by(schema.trail.c.id)).scalars())
    assert actions[-4:] == ["save draft", "submit order", "save draft", "seal"], (
        "when the order was submitted is on record"
    )


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        (corrected("", "C"), ["rationale.text"]),
        (corrected("C is dark."), ["rationale.citation"]),  # the citations of the old sentence are not inherited
        (corrected("C is dark, A is not.", "C"), ["rationale.named"]),
        (corrected("C shows what D shows.", "C"), ["rationale.named"]),
        (corrected("A comes before C.", "A", "C"), ["rationale.contradicts"]),
        (corrected("C comes before A.", "A", "C"), []),
        (corrected("A pad is dark.", "C"), []),
        ({"s1": {"verdict": "remove"}}, ["rationale.sentences"]),
    ],
)
def test_what_a_correction_needs(said: dict[str, Any], missing: list[str]) -> None:
    body = FORM.read_body(BODY)
    assert FORM.missing(body, FORM.read(body, ORDER | {"sentences": said})) == missing
    assert FORM.unsettled(body, FORM.read(body, {"accepted": True, "sentences": said})) == missing
    assert FORM.unsettled(body, FORM.read(body, {"accepted": False, "sentences": said})) == []


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"order": ["D"]}, "order: found 'D'"),
        ({"sentences": {"s9": {"verdict": "keep"}}}, "sentence: found 's9'"),
        ({"sentences": {"s1": {"verdict": "correct", "frames": ["Z"]}}}, "citation: found 'Z'"),
        ({"sentences": {"s1": {"verdict": "maybe"}}}, "verdict"),
    ],
)
def test_a_payload_that_does_not_fit_is_told(payload: dict[str, Any], message: str) -> None:
    body = FORM.read_body(BODY)
    with pytest.raises(InputError, match=message):
        FORM.read(body, payload)


@pytest.mark.parametrize(
    "change",
    [
        {"recorded": ["A", "B"]},
        {"recorded": ["A", "B", "D"]},
        {"frames": [{"id": "A"}, {"id": "A"}], "recorded": ["A", "A"]},
        {"sentences": [{"id": "s1", "text": "x", "frames": ["Z"]}]},
        {"sentences": [{"id": "s1", "text": "x"}, {"id": "s1", "text": "y"}]},
    ],
)
def test_an_item_that_does_not_fit_is_told(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="expected"):
        FORM.read_body(BODY | change)


OTHER: dict[str, Any] = {"order": ["C", "B", "A"], "ordered": True}
UNCLEAR: dict[str, Any] = {"unclear": True, "ordered": True}


@pytest.mark.parametrize(
    ("one", "two", "settled"),
    [
        (ORDER, ORDER, {"accepted": True, "sentences": KEPT}),
        (OTHER, UNCLEAR, {"accepted": False}),  # nobody sees the recorded order: no question
        (OTHER, OTHER, {"accepted": False}),
        (ORDER, OTHER, None),
        (ORDER, UNCLEAR, None),
    ],
)
def test_what_is_settled_without_an_adjudicator(
    engine: Engine, one: dict[str, Any], two: dict[str, Any], settled: dict[str, Any] | None
) -> None:
    desk = Desk(engine)
    desk.seal("anna", **one, sentences=KEPT)
    desk.seal("ben", **two, sentences=KEPT)
    (row,) = desk.consensus()
    assert (row["by"], row["payload"]) == ("" if settled is None else "agreed", settled)


def test_an_adjudicator_settles_what_differs(engine: Engine) -> None:
    desk = Desk(engine)
    desk.seal("anna", **ORDER, sentences=KEPT)
    desk.seal("ben", **ORDER, sentences=corrected("C is dark.", "C"))
    (row,) = desk.consensus()
    assert (row["by"], row["payload"], row["reason"]) == ("", None, "")
    assert [one["reader"] for one in row["readings"]] == ["R0", "R1"]
    with pytest.raises(IncompleteError) as error:
        desk.settle(sentences=KEPT)
    assert error.value.missing == ("rationale.accepted",)
    desk.settle(accepted=True, sentences=corrected("C is dim.", "C"))
    (row,) = desk.consensus()
    assert row["payload"]["sentences"]["s2"] == {"verdict": "correct", "text": "C is dim.", "frames": ["C"]}
    assert (row["by"], row["body"]["origin"], row["current"]) == ("R2", "1", True)
    with engine.begin() as connection:
        assert {one["origin"] for one in reading_rows(connection, desk.who["olga"], "s")} == {"1"}


def test_an_adjudicators_page_begins_with_what_both_say() -> None:
    body = FORM.read_body(BODY)
    one, two = (FORM.read(body, payload) for payload in READINGS["rationale"])
    assert FORM.begun(body, [one, two]) == {"accepted": True, "sentences": {"s1": {"verdict": "keep"}}}
    other = FORM.read(body, {**OTHER, "sentences": KEPT})
    assert FORM.begun(body, [two, other]) == {"sentences": KEPT}
    assert FORM.taken(body, dict(OTHER)) == {"accepted": False, "sentences": {}}


def test_the_agreement_on_orders_by_hand(engine: Engine) -> None:
    """The same order in 2 of 4 items; pairs of frames: 3, 2 (one of three the other way round) and 3 of 3 agree, none
    where one says unclear; as recorded: yes/yes, yes/no, yes/no, no/no."""
    pairs = [(ORDER, ORDER), (ORDER, OTHER), (ORDER, UNCLEAR), (OTHER, OTHER)]
    items = [NewItem(f"k{number}", f"v{number}", (), dict(BODY)) for number in range(len(pairs))]
    ids = study_of(engine, items, "rationale")
    with engine.begin() as connection:
        who = accounts_of(connection)
        for (_key, item), pair in zip(sorted(ids.items()), pairs, strict=True):
            for name, order in zip(("anna", "ben"), pair, strict=True):
                seal(connection, who[name], item, Save(1, 0, order | {"sentences": KEPT}), NOW)
        found = study_agreement(connection, who["olga"], "s")
    by_name = {one.name: one for one in found.dimensions}
    whole, recorded = by_name[WHOLE_ORDER], by_name[AS_RECORDED]
    assert (whole.percent.value, whole.percent.n, whole.cohen, whole.ac1) == (0.5, 4, None, None)
    assert recorded.percent.value == 0.5
    assert recorded.cohen is not None
    assert recorded.cohen.value == pytest.approx((0.5 - 0.375) / (1 - 0.375))  # Anna 3 of 4 yes, Ben 1 of 4
    same = sum(ORDER["order"].index(a) < ORDER["order"].index(b) for a, b in combinations(OTHER["order"], 2))
    assert by_name[ORDER_OF_TWO].percent.value == pytest.approx((3 + same + 3) / 9)
    shown = agreement_tables(found)[0].texts
    assert {"the same order", "order as recorded, or not"} <= {row[0] for row in shown}


def test_the_agreement_on_sentences_is_that_of_scikit_learn(engine: Engine) -> None:
    verdicts = [("keep", "keep"), ("keep", "remove"), ("remove", "remove"), ("keep", "keep"), ("remove", "keep")]
    items = [NewItem(f"k{number}", f"v{number}", (), dict(BODY)) for number in range(len(verdicts))]
    ids = study_of(engine, items, "rationale")
    with engine.begin() as connection:
        who = accounts_of(connection)
        for (_key, item), pair in zip(sorted(ids.items()), verdicts, strict=True):
            for name, verdict in zip(("anna", "ben"), pair, strict=True):
                payload = ORDER | {"sentences": {one: {"verdict": verdict} for one in ("s1", "s2")}}
                seal(connection, who[name], item, Save(1, 0, payload), NOW)
        found = study_agreement(connection, who["olga"], "s")
    (sentences,) = [one for one in found.dimensions if one.name == "sentences"]
    a, b = zip(*[pair for pair in verdicts for _ in range(2)], strict=True)
    assert sentences.cohen is not None
    assert sentences.cohen.value == pytest.approx(cohen_kappa_score(a, b))
    assert sentences.percent.n == 10


# -- the page


@pytest.fixture
def clock(review: ReviewSite) -> VideoClip:
    write_clock_video(review.media / "clock.mp4", ClockVideo(range(0, 2400, 40)))
    return VideoClip(source="clock.mp4")


class Room:
    """An item of a video on its page, and people in their browsers."""

    def __init__(self, review: ReviewSite, clip: VideoClip) -> None:
        for name in ("anna", "ben", "cleo", "olga"):
            roles = {"cleo": "adjudicator", "olga": "organiser"}
            join(review, name, roles.get(name, "reviewer"), "de" if name == "ben" else "en")
        (self.item,) = study_of(review.engine, [NewItem("k1", "v1", (clip,), dict(BODY))], "rationale").values()
        self.review = review

    def enter(self, name: str) -> TestClient:
        client = browser(self.review)
        assert log_in(client, name).status_code == 303
        return client

    def page(self, client: TestClient) -> str:
        return str(client.get(f"/item/{self.item}").text)

    def post(self, client: TestClient, action: str, payload: dict[str, Any], revision: int = 0) -> httpx2.Response:
        headers = {"X-CSRF-Token": csrf_of(client.get("/"))}
        body = {"version": 1, "revision": revision, "payload": payload, "comment": "as seen"}
        return client.post(f"/item/{self.item}/{action}", json=body, headers=headers)


def test_the_page_says_nothing_of_the_order_before_it_is_submitted(review: ReviewSite, clock: VideoClip) -> None:
    room = Room(review, clock)
    anna = room.enter("anna")
    before = room.page(anna)
    assert [secret for secret in SECRETS if secret in before] == []
    assert before.count('data-frame="') == 3
    for path in ("timestamps", "video", "picture?time=0.4", "frame/0"):
        assert anna.get(f"/media/{room.item}/0/{path}").status_code == 404
    pictures = re.findall(r'src="(/media/[^"]+)"', before)
    assert pictures == [f"/media/{room.item}/labelled?frame={name}" for name in "ABC"]
    shown = [anna.get(path) for path in pictures]
    assert {one.headers["content-type"] for one in shown} == {"image/jpeg"}
    assert len({one.content for one in shown}) == 3
    for name in ("D", "", "x" * 81):
        assert anna.get(f"/media/{room.item}/labelled", params={"frame": name}).status_code in {404, 422}

    refused = room.post(anna, "draft", {"sentences": KEPT})
    assert refused.json()["missing"] == ["the order, before the sentences"]
    assert room.post(anna, "draft", ORDER).status_code == 200
    after = room.page(anna)
    assert [secret for secret in SECRETS[:5] if secret not in after] == []
    assert 'data-order"' not in after
    fixed = room.post(anna, "draft", OTHER, 1)
    assert fixed.json()["missing"] == ["the order as you submitted it, which is final"]
    ben = room.enter("ben")
    assert [secret for secret in SECRETS if secret in room.page(ben)] == []  # Anna's step is hers alone
    told = room.post(ben, "draft", {"sentences": KEPT}).json()["missing"]
    assert told == ["die Reihenfolge, vor den Sätzen"]
    assert room.post(anna, "seal", ORDER | {"sentences": KEPT}, 1).status_code == 200
    assert [secret for secret in SECRETS if secret in room.page(ben)] == []


def test_an_adjudicator_sees_both_readings_and_what_is_recorded(review: ReviewSite, clock: VideoClip) -> None:
    room = Room(review, clock)
    cleo = room.enter("cleo")
    for name, said in (("anna", ORDER), ("ben", OTHER)):
        assert cleo.get(f"/item/{room.item}").status_code == 404
        assert room.post(room.enter(name), "seal", said | {"sentences": KEPT}).status_code == 200
    page = room.page(cleo)
    assert "C → B → A" in page
    assert page.count("Recorded order") >= 1
    assert page.count('data-take="') == 2
    done = room.post(cleo, "adjudicate", {"accepted": False})
    assert done.json() == {"next": "/"}
    olga = room.enter("olga")
    assert "It is rejected" in olga.get(f"/organise/item/{room.item}").text


def test_frames_of_the_form_order_have_no_time_in_their_address(review: ReviewSite, clock: VideoClip) -> None:
    for name in ("anna", "ben", "cleo"):
        join(review, name, "adjudicator" if name == "cleo" else "reviewer")
    body: dict[str, Any] = {"frames": [{"id": "a", "time": 1.2}, {"id": "b", "time": 0.4}], "rationale": False}
    (item,) = study_of(review.engine, [NewItem("k1", "v1", (clock,), body)], "order").values()
    client = browser(review)
    log_in(client, "anna")
    page = client.get(f"/item/{item}").text
    assert "time=" not in page
    assert client.get(f"/media/{item}/labelled?frame=a").status_code == 200
    assert client.get(f"/media/{item}/0/timestamps").status_code == 404


def test_a_study_of_a_project_names_its_form() -> None:
    with pytest.raises(
        ValueError, match="found the form 'order', expected one of question, rationale, presence, choice"
    ):
        StudySettings(name="s", form="order", project="p")
    with pytest.raises(ValueError, match="a project is expected with a stage"):
        StudySettings(name="s", form="order", items="i.jsonl", stage="tracks")
