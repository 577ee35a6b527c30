"""Readings: drafts, seals, differences and what settles them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, insert, select

from proctor.core import InputError, generator
from proctor_web import schema
from proctor_web.forms import FORMS
from proctor_web.progress import my_studies, next_item
from proctor_web.readings import (
    ConflictError,
    IncompleteError,
    NotAssignedError,
    Save,
    adjudicate,
    edit_item,
    my_reading,
    open_item,
    save_draft,
    seal,
    settlement,
)
from proctor_web.trail import first_fault
from proctor_web.visibility import others_readings
from tests.support.web_study import (
    ACCEPT,
    ALL_CHECKS,
    NOW,
    QUESTION,
    READINGS,
    REJECT,
    accounts_of,
    new_items,
    review,
    study_of,
)


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    url = str(tmp_path / "review.sqlite") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    opened = review(url)
    yield opened
    opened.dispose()


class Desk:
    """One item on everybody's desk."""

    def __init__(self, engine: Engine, form: str = "question") -> None:
        self.engine = engine
        self.item = study_of(engine, new_items(1, form), form)["q000"]
        with engine.begin() as connection:
            self.who = accounts_of(connection)

    def save(self, name: str, payload: dict[str, Any], revision: int = 0, version: int = 1, **more: Any) -> Any:
        with self.engine.begin() as connection:
            save = Save(version, revision, payload, **more)
            return save_draft(connection, self.who[name], self.item, save, NOW)

    def seal(self, name: str, payload: dict[str, Any], revision: int = 0, version: int = 1, **more: Any) -> Any:
        with self.engine.begin() as connection:
            return seal(connection, self.who[name], self.item, Save(version, revision, payload, **more), NOW)

    def settle(self, name: str, payload: dict[str, Any], reason: str = "seen again", version: int = 1) -> None:
        with self.engine.begin() as connection:
            adjudicate(connection, self.who[name], self.item, version, payload, reason, NOW)

    def ask(self, function: Any, *arguments: Any) -> Any:
        with self.engine.begin() as connection:
            return function(connection, *arguments)

    def version(self, name: str = "anna") -> int:
        return int(self.ask(open_item, self.who[name], self.item).version)

    def seen(self, name: str) -> list[str]:
        return [one.pseudonym for one in self.ask(others_readings, self.who[name], self.version())]

    def settled(self, name: str) -> Any:
        return self.ask(settlement, self.who[name], self.version())


def test_a_draft_is_kept_by_revision(engine: Engine) -> None:
    desk = Desk(engine)
    assert desk.save("anna", {"decision": "accept"}, seconds=12).revision == 1
    kept = desk.save("anna", ACCEPT, 1, seconds=8.5, comment=" looks right ")
    assert (kept.revision, kept.seconds, kept.comment) == (2, 20.5, "looks right")
    assert desk.ask(my_reading, desk.who["anna"], desk.version()) == kept


def test_an_old_window_does_not_overwrite_a_newer_one(engine: Engine) -> None:
    desk = Desk(engine)
    desk.save("anna", {"decision": "accept"})
    desk.save("anna", {"decision": "reject"}, 1)
    with pytest.raises(ConflictError, match="another window has saved since") as caught:
        desk.save("anna", {"decision": "edit"}, 1)
    assert caught.value.reading is not None
    assert caught.value.reading.payload == {"decision": "reject"}
    with pytest.raises(ConflictError):
        desk.seal("anna", ACCEPT, 0)
    assert desk.ask(my_reading, desk.who["anna"], desk.version()).payload == {"decision": "reject"}


def test_a_save_that_is_sent_twice_counts_once(engine: Engine) -> None:
    desk = Desk(engine)
    first = desk.save("anna", ACCEPT, 0, seconds=5)
    assert desk.save("anna", ACCEPT, 0, seconds=5) == first
    sealed = desk.seal("anna", ACCEPT, 1, seconds=2)
    assert desk.seal("anna", ACCEPT, 1, seconds=2) == sealed
    assert (sealed.revision, sealed.seconds) == (2, 7)


def test_a_page_goes_on_from_a_save_of_its_own_whose_acknowledgement_was_lost(engine: Engine) -> None:
    desk = Desk(engine)
    desk.save("anna", {"decision": "accept"}, seconds=5, page="p", number=1)  # nobody heard of it
    kept = desk.save("anna", REJECT, 0, seconds=8, page="p", number=2)  # 5 of these seconds are there already
    assert (kept.revision, kept.seconds, kept.payload) == (2, 8, REJECT)
    assert desk.ask(my_reading, desk.who["anna"], desk.version()) == kept
    with pytest.raises(ConflictError, match="a later save of the same page came first"):
        desk.save("anna", ACCEPT, 0, seconds=6, page="p", number=1)
    assert desk.save("anna", REJECT, 0, seconds=8, page="p", number=2) == kept  # the same once more
    with pytest.raises(ConflictError, match="another window"):
        desk.save("anna", ACCEPT, 0, page="q", number=3)
    assert desk.save("anna", ACCEPT, 2, seconds=1, page="p", number=3).seconds == 9
    assert desk.save("anna", REJECT, 3, page="q", number=1).revision == 4
    with pytest.raises(ConflictError, match="another window"):
        desk.save("anna", ACCEPT, 3, page="p", number=4)
    sealed = desk.seal("anna", ACCEPT, 3, page="q", number=2)
    assert desk.seal("anna", ACCEPT, 3, page="q", number=3) == sealed


class Window:
    """A page as it is from outside: it knows what it loaded, what it said, and what was acknowledged."""

    def __init__(self, desk: Desk, name: str) -> None:
        kept = desk.ask(my_reading, desk.who["anna"], desk.version())
        self.name, self.number, self.revision = name, 0, 0 if kept is None else kept.revision
        self.knows = {"" if kept is None else kept.comment}
        self.stopped = False

    def send(self) -> dict[str, Any]:
        self.number += 1
        comment = f"{self.name} {self.number}"
        self.knows.add(comment)
        return {"revision": self.revision, "comment": comment, "page": self.name, "number": self.number}


@pytest.mark.parametrize("seed", range(12))
def test_no_page_overwrites_what_it_does_not_know_and_none_is_stopped_by_itself(tmp_path: Path, seed: int) -> None:
    """Two windows over a line that loses, delays and repeats: whatever is replaced was known to the page that replaces
    it, nothing older comes back, and a page is refused only where the other one saved after what it knows."""
    engine = review(tmp_path / "review.sqlite")
    desk, rng = Desk(engine), generator(seed, "windows")
    windows = [Window(desk, "a"), Window(desk, "b")]
    late: list[tuple[Window, dict[str, Any]]] = []
    kept, by = "", ""
    for step in range(60):
        one = int(rng.integers(2))
        if windows[one].stopped or rng.random() < 0.1:
            windows[one] = Window(desk, f"{'ab'[one]}{step}")
        page = windows[one]
        again = bool(late) and rng.random() < 0.3
        page, sent = late.pop(int(rng.integers(len(late)))) if again else (page, page.send())
        if not again and rng.random() < 0.3:
            late.append((page, sent))
            continue
        try:
            answer = desk.save("anna", {}, **sent)
        except ConflictError:
            assert kept not in page.knows or sent["number"] < page.number or by != page.name
            page.stopped = page.stopped or not again
            continue
        if answer.comment != kept:
            assert kept in page.knows
            assert by != page.name or sent["number"] > int(kept.split()[1])
        kept, by = answer.comment, page.name
        if not again and rng.random() < 0.6:  # acknowledged
            page.revision = answer.revision
            page.knows.add(kept)
        elif rng.random() < 0.3:
            late.append((page, sent))
    engine.dispose()


def test_what_is_sealed_stays(engine: Engine) -> None:
    desk = Desk(engine)
    desk.seal("anna", ACCEPT)
    for change in (desk.save, desk.seal):
        with pytest.raises(ConflictError, match="sealed"):
            change("anna", REJECT, 1)


def test_an_incomplete_reading_is_not_sealed(engine: Engine) -> None:
    desk = Desk(engine)
    with pytest.raises(IncompleteError) as caught:
        desk.seal("anna", {"decision": "reject", "checks": ALL_CHECKS})
    assert caught.value.missing == ("question.reason",)
    assert desk.ask(my_reading, desk.who["anna"], desk.version()) is None


def test_what_is_not_mine_is_not_there(engine: Engine) -> None:
    desk = Desk(engine)
    for name in ("rita", "paul", "olga", "cleo"):
        for act in (desk.save, desk.seal):
            with pytest.raises(NotAssignedError):
                act(name, ACCEPT)
        with pytest.raises(NotAssignedError):
            desk.settle(name, ACCEPT)
    desk.item += 99
    with pytest.raises(NotAssignedError):
        desk.save("anna", ACCEPT)


@pytest.mark.parametrize("form", FORMS)
def test_readings_that_agree_are_the_consensus(tmp_path: Path, form: str) -> None:
    engine = review(tmp_path / "review.sqlite")
    desk = Desk(engine, form)
    same = READINGS[form][0]
    desk.seal("anna", same)
    assert desk.settled("anna") is None
    desk.seal("ben", same)
    assert (desk.settled("anna").pseudonym, desk.settled("anna").reason) == (None, "")
    with engine.begin() as connection:
        assert next_item(connection, desk.who["cleo"], "s") is None
        assert first_fault(connection) is None
    engine.dispose()


def test_readings_that_differ_wait_for_the_adjudicator(engine: Engine) -> None:
    desk = Desk(engine)
    desk.seal("anna", ACCEPT)
    with pytest.raises(NotAssignedError):  # not yet: Ben has not sealed
        desk.ask(open_item, desk.who["cleo"], desk.item)
    assert (desk.seen("anna"), desk.seen("ben"), desk.seen("olga")) == ([], [], [])
    desk.seal("ben", REJECT, comment="see 0:12")
    assert desk.ask(next_item, desk.who["cleo"], "s") == desk.item
    both = desk.ask(others_readings, desk.who["cleo"], desk.version("cleo"))
    assert [(one.pseudonym, one.payload["decision"], one.comment) for one in both] == [
        ("R0", "accept", ""),
        ("R1", "reject", "see 0:12"),
    ]
    with pytest.raises(IncompleteError) as caught:
        desk.settle("cleo", ACCEPT, reason=" ")
    assert caught.value.missing == ("adjudication.reason",)
    desk.settle("cleo", REJECT)
    desk.settle("cleo", REJECT)  # sent twice
    with pytest.raises(ConflictError, match="settled"):
        desk.settle("cleo", ACCEPT)
    assert (desk.settled("anna").pseudonym, desk.settled("anna").reason) == ("R2", "seen again")
    assert desk.settled("rita") is None
    (cases,) = desk.ask(my_studies, desk.who["cleo"])
    assert (cases.to_settle, cases.settled, cases.done) == (0, 1, True)


def test_a_settled_edit_is_a_version_of_its_own_and_nobody_reads_again(engine: Engine) -> None:
    desk = Desk(engine)
    edited = QUESTION | {"stem": "And now?"}
    desk.seal("anna", ACCEPT)
    desk.seal("ben", REJECT)
    desk.settle("cleo", {"decision": "edit", "checks": ALL_CHECKS, "reason": "clearer", "edited": edited})
    with engine.begin() as connection:
        query = select(schema.versions).where(schema.versions.c.item == desk.item).order_by(schema.versions.c.number)
        _, second = connection.execute(query).mappings().all()
        assert (second["body"]["stem"], second["why"], second["author"]) == ("And now?", "consensus", desk.who["cleo"])
        assert next_item(connection, desk.who["anna"], "s") is None
    assert desk.ask(open_item, desk.who["anna"], desk.item).number == 1


def test_editing_makes_a_new_version_and_unseals_nothing(engine: Engine) -> None:
    desk = Desk(engine)
    desk.seal("anna", ACCEPT)
    assert desk.ask(edit_item, desk.who["olga"], desk.item, QUESTION | {"stem": "Now?"}, "a typing error", NOW) == 2
    with pytest.raises(ConflictError, match="version 2 of the item came meanwhile"):
        desk.seal("ben", ACCEPT, version=1)
    assert desk.ask(next_item, desk.who["anna"], "s") == desk.item
    desk.seal("ben", REJECT, version=2)
    assert (desk.seen("ben"), desk.seen("anna")) == ([], [])
    desk.seal("anna", ACCEPT, version=2)
    assert desk.seen("ben") == ["R0", "R1"]
    with engine.begin() as connection:
        sealed = select(func.count()).where(schema.readings.c.sealed.is_not(None))
        assert connection.execute(sealed).scalar() == 3


def test_an_edit_needs_a_reason_and_a_whole_question(engine: Engine) -> None:
    desk = Desk(engine)
    with pytest.raises(InputError, match="expected why the item is changed"):
        desk.ask(edit_item, desk.who["olga"], desk.item, QUESTION, "", NOW)
    with pytest.raises(InputError, match="a stem with two or more different options"):
        desk.ask(edit_item, desk.who["olga"], desk.item, QUESTION | {"key": None}, "why", NOW)


def test_a_gold_item_is_never_settled(engine: Engine) -> None:
    items = study_of(engine, new_items(2, gold=1), gold_share=0.5)
    with engine.begin() as connection:
        who = accounts_of(connection)
        for name in ("anna", "ben"):
            seal(connection, who[name], items["q002"], Save(1, 0, REJECT), NOW)
        assert connection.execute(select(func.count()).select_from(schema.consensus)).scalar() == 0
        assert next_item(connection, who["cleo"], "s") is None


@pytest.mark.parametrize("late", [ACCEPT, REJECT])
def test_a_reader_who_comes_after_the_consensus_changes_nothing(engine: Engine, late: dict[str, Any]) -> None:
    desk = Desk(engine)
    desk.seal("anna", ACCEPT)
    desk.seal("ben", ACCEPT)
    with engine.begin() as connection:
        new = {"item": desk.item, "account": desk.who["rita"], "position": 9, "role": "reader"}
        connection.execute(insert(schema.assignments).values(**new))
    assert desk.settled("anna") is None  # Rita has not read yet
    desk.seal("rita", late)
    assert desk.settled("rita").payload["decision"] == "accept"
    assert desk.ask(next_item, desk.who["cleo"], "s") is None
