"""Work that passes from one reader to others, when somebody leaves a study or falls behind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, select

from proctor.core import content_hash
from proctor.web.schema import accounts, assignments, studies, study_items
from proctor.web.settings import StudyPlan
from proctor.web.studies import my_work
from proctor.web.trail import record


@dataclass(frozen=True)
class ReassignmentTally:
    """How many items went to other readers, how many gold items were taken away, and how many `stay` because every
    other reader of the plan has them already."""

    passed_on: int
    gold: int
    stay: int


def reassign(connection: Connection, study: str, account: int, plan: StudyPlan, at: datetime) -> ReassignmentTally:
    """Gives what a reader has not sealed to the other readers of the plan who do not have it, to those with the least
    work first, of equals by a draw. What is sealed stays, and so do drafts, which nobody else ever sees."""
    row = connection.execute(select(studies.c.id).where(studies.c.name == study)).one()
    left = [one.item for one in my_work(connection, account, row.id) if one.role == "reader" and not one.done]
    gold = set(connection.execute(select(study_items.c.id).where(study_items.c.gold.is_not(None))).scalars())
    active = select(accounts.c.name, accounts.c.id).where(accounts.c.disabled.is_(None), accounts.c.id != account)
    others = {one.name: int(one.id) for one in connection.execute(active) if one.name in plan.readers}
    load = {number: sum(not one.done for one in my_work(connection, number, row.id)) for number in others.values()}
    tally = {"passed_on": 0, "gold": 0, "stay": 0}
    for item in left:
        mine = (assignments.c.item == item) & (assignments.c.account == account)
        have = set(connection.execute(select(assignments.c.account).where(assignments.c.item == item)).scalars())
        free = sorted(
            (one for one in others.items() if one[1] not in have),
            key=lambda one: (load[one[1]], content_hash([plan.seed, "reassign", item, one[0]])),
        )
        if item in gold:
            connection.execute(delete(assignments).where(mine))
            tally["gold"] += 1
        elif free:
            connection.execute(delete(assignments).where(mine))
            _append(connection, item, free[0][1])
            load[free[0][1]] += 1
            tally["passed_on"] += 1
        else:
            tally["stay"] += 1
    if tally["passed_on"] or tally["gold"]:
        record(connection, at, None, "reassign", f"account {account}", {"study": study, **tally})
    return ReassignmentTally(**tally)


def _append(connection: Connection, item: int, account: int) -> None:
    last = connection.execute(select(func.max(assignments.c.position)).where(assignments.c.account == account)).scalar()
    position = 0 if last is None else last + 1
    connection.execute(insert(assignments).values(item=item, account=account, position=position, role="reader"))
