"""The living item: how guessable a question is while somebody writes it, beside the study's other questions."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from proctor.audits.items import TextCues, text_cues
from proctor.construction.pipeline import (
    KEY_STANDS_OUT,
    DraftQuestion,
    ProcedureEvent,
    QuestionsSettings,
    broken_rule,
    stands_out,
)
from proctor.core import Item, Reference
from proctor.core.formats import ChoiceFormat, option_letters
from proctor.web.forms import QuestionBody, QuestionText
from proctor.web.schema import study_items, versions
from proctor.web.studies import read_version


@dataclass(frozen=True)
class Guessability:
    """What is known of a text at once: `faults` by rule (words that no picture shows, the answer in the stem, a key
    that stands out), and for choices the cues of text alone."""

    faults: tuple[str, ...]
    cues: TextCues | None


def guessability(connection: Connection, item: int, body: QuestionBody, text: QuestionText) -> Guessability:
    """How guessable the text is in place of the item's own. Raises nothing for a text that is not whole yet: it has no
    cues until it is."""
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


def _faults(body: QuestionBody, text: QuestionText) -> tuple[str, ...]:
    """The rules of construction, by the events that are known."""
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
    return tuple(one for one in (broken, KEY_STANDS_OUT if stands else "") if one)
