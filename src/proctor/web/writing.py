"""New questions that experts write themselves: items of their own, read by others."""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import Connection, func, insert, select

from proctor.core import kept_text, validated
from proctor.web.dealing import deal
from proctor.web.forms import QuestionBody, QuestionText
from proctor.web.schema import accounts, assignments, studies, study_items, versions
from proctor.web.settings import StudyPlan
from proctor.web.trail import record

WRITTEN = "written"


def write_question(
    connection: Connection, author: int, item: int, text: dict[str, JsonValue], why: str, at: datetime
) -> int:
    """Adds a question about the media of another item to its study, and deals it to readers other than its author.
    Returns the new item's id. Raises `InputError` for a text that is no whole question."""
    said = validated(QuestionText, text, None, "question")
    body = validated(QuestionBody, said.model_dump(), None, "question")
    query = (
        select(study_items, studies.c.name, studies.c.settings)
        .join(studies, studies.c.id == study_items.c.study)
        .where(study_items.c.id == item)
        .with_for_update()
    )
    row = connection.execute(query).mappings().one()
    count = select(func.count()).where(study_items.c.study == row["study"])
    position = int(connection.execute(count).scalar_one())
    values = {"study": row["study"], "group_name": row["group_name"], "media": row["media"], "position": position}
    made = connection.execute(insert(study_items).values(key=f"{WRITTEN}-{position + 1}", **values))
    new = int(made.inserted_primary_key[0])  # type: ignore[index]
    why = kept_text(why).strip()
    dumped = body.model_dump(mode="json", exclude_defaults=True)
    version = {"item": new, "number": 1, "body": dumped, "author": author, "created": at.isoformat()}
    connection.execute(insert(versions).values(**version, why=f"{WRITTEN}: {why}" if why else WRITTEN))
    plan = StudyPlan.model_validate(row["settings"]["plan"])
    _deal(connection, new, author, plan, row["study"])
    record(connection, at, author, "write", f"item {new}", {"study": row["name"], "beside": item})
    return new


def _deal(connection: Connection, item: int, author: int, plan: StudyPlan, study: int) -> None:
    """Deals one item to the plan's people but its author; to fewer readers where there are not enough."""
    people = connection.execute(
        select(accounts.c.name, accounts.c.id).where(
            accounts.c.name.in_((*plan.readers, *plan.adjudicators)), accounts.c.disabled.is_(None)
        )
    )
    ids = {row.name: row.id for row in people if row.id != author}
    readers = tuple(name for name in plan.readers if name in ids)
    if not readers:
        return
    others = plan.model_copy(
        update={
            "readers": readers,
            "readings": min(plan.readings, len(readers)),
            "adjudicators": tuple(name for name in plan.adjudicators if name in ids),
            "overlap": 1.0,
            "gold_share": 0.0,
        }
    )
    query = (
        select(assignments.c.account, func.count().label("number"))
        .join(study_items, study_items.c.id == assignments.c.item)
        .where(study_items.c.study == study, assignments.c.role == "reader")
        .group_by(assignments.c.account)
    )
    load = {row.account: row.number for row in connection.execute(query)}
    dealt = deal(others, [str(item)], load={name: load.get(ids[name], 0) for name in readers})
    for role, work in (("reader", dealt.readers), ("adjudicator", dealt.adjudicators)):
        for name in (name for name, some in work.items() if some):
            last = select(func.max(assignments.c.position)).where(assignments.c.account == ids[name])
            position = connection.execute(last).scalar()
            place = 0 if position is None else position + 1
            connection.execute(insert(assignments).values(item=item, account=ids[name], position=place, role=role))
