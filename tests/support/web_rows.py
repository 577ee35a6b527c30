"""A small review in a database, row by row: two readers, an adjudicator, an organiser and a participant."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, Table, insert, select, update

from proctor_web import schema
from proctor_web.visibility import visible_readings

AT = "2026-11-23T08:00:00+00:00"
PEOPLE = {
    "anna": "reviewer",
    "ben": "reviewer",
    "cleo": "adjudicator",
    "olga": "organiser",
    "paul": "participant",
    "rita": "reviewer",
}


def add(connection: Connection, table: Table, **values: object) -> int:
    """Adds a row; returns its id."""
    return int(connection.execute(insert(table).values(**values).returning(table.c.id)).scalar_one())


def people(connection: Connection) -> dict[str, int]:
    """Accounts by name."""
    same = {"password": "", "language": "en", "created": AT}
    return {
        name: add(connection, schema.accounts, name=name, pseudonym=f"R{number}", role=role, **same)
        for number, (name, role) in enumerate(PEOPLE.items())
    }


def one_item(connection: Connection, who: dict[str, int]) -> tuple[int, int]:
    """An item that Anna and Ben read and Cleo adjudicates: its id and its first version's."""
    study = add(connection, schema.studies, name="s", form="question", settings={})
    item = add(connection, schema.study_items, study=study, key="q1", group_name="v1", media=[], position=0)
    version = add(connection, schema.versions, item=item, number=1, body={"stem": "?"}, created=AT, why="imported")
    for name, role in (("anna", "reader"), ("ben", "reader"), ("cleo", "adjudicator")):
        add(connection, schema.assignments, item=item, account=who[name], position=0, role=role)
    return item, version


def read(connection: Connection, version: int, account: int, *, sealed: bool) -> int:
    """A reading, sealed or a draft."""
    values = {"version": version, "account": account, "payload": {"verdict": "accept"}, "saved": AT}
    return add(connection, schema.readings, **values, sealed=AT if sealed else None)


def seal(engine: Engine, reading: int) -> None:
    with engine.begin() as connection:
        connection.execute(update(schema.readings).where(schema.readings.c.id == reading).values(sealed=AT))


def seen_by(engine: Engine, who: dict[str, int]) -> dict[str, set[int]]:
    """Of each person the readings that the view shows."""
    view = visible_readings.c
    with engine.begin() as connection:
        return {
            name: set(connection.execute(select(view.reading).where(view.viewer == account)).scalars())
            for name, account in who.items()
        }
