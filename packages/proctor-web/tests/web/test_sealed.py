"""The sealed rule under random work of several people: at no moment does anybody see what another said too early.

Every payload and comment holds a canary that names its author, item and version. A model of the rule in plain Python,
which knows nothing of the database's view, says which canaries each person may see.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, func, insert, select

from proctor.core import InputError
from proctor_web import schema
from proctor_web.progress import SETTLED, my_studies, next_item
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
from proctor_web.visibility import others_readings, visible_readings
from tests.support.web_study import ACCEPT, NOW, QUESTION, REJECT, accounts_of, new_items, review, study_of

PEOPLE = ("anna", "ben", "cleo", "olga", "paul", "rita")
CANARY = re.compile(r"canary-(\w+)-(\d)-(\d+)")

STEPS = st.tuples(
    st.sampled_from(PEOPLE),
    st.integers(0, 1),
    st.sampled_from(["draft", "seal accept", "seal reject", "seal reject", "settle", "edit", "join"]),
)


@dataclass
class World:
    """A review with two items, and who has said what."""

    engine: Engine
    items: list[int] = field(default_factory=list)
    who: dict[str, int] = field(default_factory=dict)
    said: set[tuple[str, int, int]] = field(default_factory=set)
    sealed: set[tuple[str, int, int]] = field(default_factory=set)
    readers: dict[int, set[str]] = field(default_factory=lambda: {0: {"anna", "ben"}, 1: {"anna", "ben"}})

    def __post_init__(self) -> None:
        ids = study_of(self.engine, new_items(2))
        self.items = [ids["q000"], ids["q001"]]
        with self.engine.begin() as connection:
            self.who = accounts_of(connection)

    def number(self, item: int) -> int:
        """The version that is read now."""
        query = select(func.max(schema.versions.c.number)).where(
            schema.versions.c.item == self.items[item], schema.versions.c.why != SETTLED
        )
        with self.engine.begin() as connection:
            return int(connection.execute(query).scalar_one())

    def act(self, person: str, item: int, action: str) -> None:
        """One step; what is not allowed is refused, and changes nothing."""
        number = self.number(item)
        key, account, target = (person, item, number), self.who[person], self.items[item]
        canary = f"canary-{person}-{item}-{number}"
        payload: dict[str, Any] = (ACCEPT if "accept" in action else REJECT) | {"reason": canary}
        try:
            with self.engine.begin() as connection:
                if action == "edit":
                    edit_item(connection, account, target, QUESTION | {"stem": f"And now {number}?"}, "why", NOW)
                    return
                if action == "join":
                    if person in {"rita", "paul"} and person not in self.readers[item]:
                        new = {"item": target, "account": account, "position": 99, "role": "reader"}
                        connection.execute(insert(schema.assignments).values(**new))
                        self.readers[item].add(person)
                    return
                if action == "settle":
                    adjudicate(connection, account, target, number, payload, canary, NOW)
                    return
                mine = None
                if person in self.readers[item]:
                    mine = my_reading(connection, account, open_item(connection, account, target).version)
                save = Save(number, mine.revision if mine else 0, payload, canary)
                (save_draft if action == "draft" else seal)(connection, account, target, save, NOW)
        except (NotAssignedError, ConflictError, IncompleteError, InputError):
            return
        self.said.add(key)
        if action != "draft":
            self.sealed.add(key)

    def allowed(self, person: str) -> set[tuple[str, int, int]]:
        """The readings that a person may see, by the rule's own words."""
        own = {key for key in self.said if key[0] == person}
        if person == "paul":  # a participant
            return own
        found = set(own)
        for author, item, number in self.sealed:
            if all((reader, item, number) in self.sealed for reader in self.readers[item]):
                sealed_too = (person, item, number) in self.sealed
                if sealed_too or person in {"olga", "cleo"}:
                    found.add((author, item, number))
        return found

    def shown(self) -> dict[str, set[tuple[str, int, int]]]:
        """Of each person the canaries in the readings that the view shows."""
        view, names = visible_readings, {number: name for name, number in self.who.items()}
        query = select(view.c.viewer, schema.readings.c.payload, schema.readings.c.comment).join(
            schema.readings, view.c.reading == schema.readings.c.id
        )
        found: dict[str, set[tuple[str, int, int]]] = {name: set() for name in PEOPLE}
        with self.engine.begin() as connection:
            for viewer, *said in connection.execute(query):
                found[names[viewer]] |= canaries(str(said))
        return found

    def told(self, person: str) -> set[tuple[str, int, int]]:
        """The canaries in all that the room's functions tell a person."""
        account = self.who[person]
        with self.engine.begin() as connection:
            texts = [str(my_studies(connection, account)), str(next_item(connection, account, "s"))]
            for item in self.items:
                try:
                    opened = open_item(connection, account, item)
                except NotAssignedError:
                    continue
                texts += [str(opened), str(my_reading(connection, account, opened.version))]
                texts.append(str(others_readings(connection, account, opened.version)))
                settled = settlement(connection, account, opened.version)
                texts.append("" if settled is None or settled.pseudonym else str(settled))
        return canaries(" ".join(texts))


def canaries(text: str) -> set[tuple[str, int, int]]:
    return {(hit[1], int(hit[2]), int(hit[3])) for hit in CANARY.finditer(text)}


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=8, max_size=20))
def test_nobody_ever_sees_too_much(steps: list[tuple[str, int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(review(Path(folder) / "review.sqlite"))
        try:
            for step in steps:
                world.act(*step)
                shown = world.shown()
                assert shown == {person: world.allowed(person) for person in PEOPLE}, step
                for person in {step[0], "anna"}:
                    told, allowed = world.told(person), world.allowed(person)
                    assert told <= allowed, f"{person} was told {told - allowed} after {step}"
            with world.engine.begin() as connection:
                assert first_fault(connection) is None
        finally:
            world.engine.dispose()


def test_the_whole_way_is_walked_by_the_test_itself(tmp_path: Path) -> None:
    """The steps above reach the states that matter: both readings open to the readers, the adjudicator, the
    organiser."""
    world = World(review(tmp_path / "review.sqlite"))
    for step in (("anna", 0, "seal accept"), ("ben", 0, "seal reject")):
        world.act(*step)
    both = {("anna", 0, 1), ("ben", 0, 1)}
    assert world.told("anna") == world.told("cleo") == world.shown()["olga"] == both
    world.act("rita", 0, "join")
    assert world.told("cleo") == world.told("rita") == world.shown()["olga"] == set()
    world.act("rita", 0, "seal reject")
    assert world.told("rita") == both | {("rita", 0, 1)}
    world.act("olga", 0, "edit")
    world.act("anna", 0, "seal accept")
    assert ("anna", 0, 2) not in world.shown()["ben"] | world.told("ben")
    world.engine.dispose()
