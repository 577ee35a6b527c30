"""Who may see which reading: none of others before all readers of the item have sealed theirs.

People always see their own readings. Once every assigned reader has sealed a reading of a version, its readings are
visible to those readers, the item's adjudicators, and organisers. Participants and the public see no others.

The rule is a view in the database (`visible_readings`): every query that shows a reading joins it. Figures and exports
take `sealed_of_study`, pages `others_readings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from pydantic import JsonValue
from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, select

from proctor_web.progress import all_sealed
from proctor_web.schema import accounts, assignments, readings, studies, study_items, versions

visible_readings = sa.table("visible_readings", sa.column("viewer", sa.Integer), sa.column("reading", sa.Integer))
"""Which account (`viewer`) may see which reading. Every query that shows a reading joins it, with the viewer's id:

    select(readings).join(visible_readings, visible_readings.c.reading == readings.c.id).where(
        visible_readings.c.viewer == visitor.account
    )
"""

VISIBLE_READINGS_SQL = """
create view visible_readings as
select accounts.id as viewer, readings.id as reading
from readings
join versions on versions.id = readings.version
join accounts on accounts.id = readings.account or (
  readings.sealed is not null
  and accounts.role not in ('participant', 'public')
  and exists (
    select 1 from assignments where assignments.item = versions.item and assignments.role = 'reader'
  )
  and not exists (
    select 1 from assignments
    left join readings due
      on due.version = versions.id and due.account = assignments.account and due.sealed is not null
    where assignments.item = versions.item and assignments.role = 'reader' and due.id is null
  )
  and (
    accounts.role = 'organiser'
    or exists (
      select 1 from readings mine
      where mine.version = versions.id and mine.account = accounts.id and mine.sealed is not null
    )
    or exists (
      select 1 from assignments
      where assignments.item = versions.item and assignments.account = accounts.id and assignments.role = 'adjudicator'
    )
  )
)
"""


@dataclass(frozen=True)
class VisibleReading:
    """A sealed reading by an assigned reader, who is shown by pseudonym."""

    account: int
    pseudonym: str
    payload: dict[str, JsonValue]
    comment: str


def others_readings(connection: Connection, viewer: int, version: int) -> list[VisibleReading]:
    """The sealed readings of a version by its assigned readers, including the viewer's, by pseudonym. Empty unless all
    readers have sealed and the viewer may see all readings (see `visible_readings`)."""
    rows = connection.execute(_visible(), {"viewer": viewer, "version": version}).all()
    if not rows or len(rows) < rows[0].readers:
        return []
    return [VisibleReading(row.account, row.pseudonym, row.payload, row.comment) for row in rows]


@cache
def _visible() -> Select[Any]:
    other = assignments.alias("other")
    return (
        select(
            readings.c.account,
            accounts.c.pseudonym,
            readings.c.payload,
            readings.c.comment,
            select(func.count(other.c.id))
            .where(other.c.item == versions.c.item, other.c.role == "reader")
            .scalar_subquery()
            .label("readers"),
        )
        .join(visible_readings, visible_readings.c.reading == readings.c.id)
        .join(accounts, accounts.c.id == readings.c.account)
        .join(versions, versions.c.id == readings.c.version)
        .join(
            assignments,
            (assignments.c.item == versions.c.item)
            & (assignments.c.account == readings.c.account)
            & (assignments.c.role == "reader"),
        )
        .where(
            visible_readings.c.viewer == bindparam("viewer"),
            readings.c.version == bindparam("version"),
            readings.c.sealed.is_not(None),
        )
        .where(all_sealed(versions.c.item))
        .order_by(accounts.c.pseudonym)
    )


def sealed_of_study(viewer: int, study: str, *columns: ColumnElement[Any]) -> Select[Any]:
    """Query for columns of the sealed readings of a study that a person may see (see `visible_readings`), by item,
    version and pseudonym."""
    return (
        select(*columns)
        .select_from(readings)
        .join(visible_readings, visible_readings.c.reading == readings.c.id)
        .join(versions, versions.c.id == readings.c.version)
        .join(study_items, study_items.c.id == versions.c.item)
        .join(studies, studies.c.id == study_items.c.study)
        .join(accounts, accounts.c.id == readings.c.account)
        .where(visible_readings.c.viewer == viewer, studies.c.name == study, readings.c.sealed.is_not(None))
        .order_by(study_items.c.position, versions.c.number, accounts.c.pseudonym)
    )
