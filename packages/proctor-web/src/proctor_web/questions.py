"""Questions that experts write: how guessable a text is, and adding it to a study."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import Connection, func, insert, select

from proctor.audits.items import TextCues, text_cues
from proctor.core import Item, Reference, kept_text, validated
from proctor.core.formats import ChoiceFormat, option_letters
from proctor_build.pipeline import (
    KEY_STANDS_OUT,
    BrokenRule,
    DraftQuestion,
    ProcedureEvent,
    QuestionsSettings,
    broken_rule,
    stands_out,
)
from proctor_web.forms import QuestionBody, QuestionText
from proctor_web.progress import read_version
from proctor_web.readings import IncompleteError
from proctor_web.schema import accounts, assignments, studies, study_items, versions
from proctor_web.settings import StudyPlan
from proctor_web.studies import append_work, deal
from proctor_web.trail import record


@dataclass(frozen=True)
class Guessability:
    """How guessable a question is: the rules of construction that it breaks (words that no picture shows, the answer in
    the stem, a key that stands out), and for choices the cues in the text alone."""

    faults: tuple[BrokenRule, ...]
    cues: TextCues | None


def guessability(connection: Connection, item: int, body: QuestionBody, text: QuestionText) -> Guessability:
    """How guessable the text is if it replaces the item's own, beside the study's other questions. An incomplete text has
    no cues."""
    if text.faults:
        return Guessability((), None)
    faults = _faults(body, text)
    if not text.options:
        return Guessability(faults, None)
    row = connection.execute(
        select(study_items.c.study, study_items.c.group_name).where(study_items.c.id == item)
    ).one()
    query = (
        select(study_items.c.id, study_items.c.group_name, versions.c.body)
        .select_from(study_items)
        .join(versions, versions.c.id == read_version(study_items.c.id))
        .where(study_items.c.study == row.study, study_items.c.id != item)
        .order_by(study_items.c.id)
    )
    others = [(str(one.id), one.group_name, QuestionBody.model_validate(one.body)) for one in connection.execute(query)]
    beside = [_choice(name, group, other) for name, group, other in others if other.options]
    return Guessability(faults, text_cues(_choice(str(item), row.group_name, text), beside))


def _choice(name: str, group: str, text: QuestionText) -> Item:
    letters = option_letters(len(text.options))
    return Item(
        id=name,
        group=group,
        question=text.stem,
        answer=ChoiceFormat(),
        options=text.options,
        reference=Reference(answer=letters[text.key or 0]),
    )


def _faults(body: QuestionBody, text: QuestionText) -> tuple[BrokenRule, ...]:
    """The rules of construction that the text breaks, given the events that are known."""
    events = [
        ProcedureEvent(
            id=str(number), source="s", start=one.start, end=max(one.end, one.start + 1), action=one.text or "-"
        )
        for number, one in enumerate(body.events)
    ]
    draft = DraftQuestion(
        id="q",
        source="s",
        start=0,
        end=1,
        type="t",
        kind="mcq" if text.options else "free",
        text=text.stem,
        options=text.options,
        key=text.key if text.options else None,
        answer="" if text.options else text.answer,
        groundtruth=text.explanation if events and text.explanation else "-",
    )
    rules = QuestionsSettings(options=min(10, max(2, len(text.options))))
    broken = broken_rule(draft, events, rules)
    stands = bool(text.options) and text.key is not None and stands_out(text.options, text.key)
    return tuple(rule for rule in (broken, BrokenRule(KEY_STANDS_OUT) if stands else None) if rule is not None)


# -- new questions

_WRITTEN = "written"


def write_question(
    connection: Connection, author: int, item: int, text: dict[str, JsonValue], why: str, at: datetime
) -> int:
    """Adds a question about the media of another item to its study, deals it to readers other than its author, and
    returns the new item's id. Raises `IncompleteError` for an incomplete question, and `InputError` for an invalid
    one."""
    written = validated(QuestionText, text, None, "question")
    if written.faults:
        raise IncompleteError(written.faults)
    body = validated(QuestionBody, written.model_dump(), None, "question")
    query = (
        select(study_items, studies.c.name, studies.c.settings)
        .join(studies, studies.c.id == study_items.c.study)
        .where(study_items.c.id == item)
        .with_for_update(of=studies)  # its items are counted
    )
    row = connection.execute(query).mappings().one()
    count = select(func.count()).where(study_items.c.study == row["study"])
    position = int(connection.execute(count).scalar_one())
    values = {"study": row["study"], "group_name": row["group_name"], "media": row["media"], "position": position}
    insertion = insert(study_items).values(key=f"{_WRITTEN}-{position + 1}", **values).returning(study_items.c.id)
    new = int(connection.execute(insertion).scalar_one())
    why = kept_text(why).strip()
    dumped = body.model_dump(mode="json", exclude_defaults=True)
    version = {"item": new, "number": 1, "body": dumped, "author": author, "created": at.isoformat()}
    connection.execute(insert(versions).values(**version, why=f"{_WRITTEN}: {why}" if why else _WRITTEN))
    plan = StudyPlan.model_validate(row["settings"]["plan"])
    _deal(connection, new, author, plan, row["study"])
    record(connection, at, author, "write", f"item {new}", {"study": row["name"], "beside": item})
    return new


def _deal(connection: Connection, item: int, author: int, plan: StudyPlan, study: int) -> None:
    """Deals one item to the plan's people except its author; to fewer readers where there are not enough."""
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
        select(accounts.c.name, func.count())
        .join(assignments, assignments.c.account == accounts.c.id)
        .join(study_items, study_items.c.id == assignments.c.item)
        .where(study_items.c.study == study, assignments.c.role == "reader")
        .group_by(accounts.c.name)
    )
    load: dict[str, int] = dict(iter(connection.execute(query)))
    dealt = deal(others, [str(item)], load=load)
    for role, work in (("reader", dealt.readers), ("adjudicator", dealt.adjudicators)):
        for name, keys in work.items():
            append_work(connection, ids[name], [item] * len(keys), role)
