"""The answer that a text is, to an item: its value, an abstention, or what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.core import formats
from proctor.core.errors import ParseError
from proctor.core.records import CONFIDENCE, Answer, Status

if TYPE_CHECKING:
    from proctor.core.item import Item


def read_answer(item: Item, answer: Answer) -> Answer:
    """The answer with its text read by the item's format: `parsed` is its value, the status is `abstained` for an
    abstention in the declared form, or `problem` says what was expected and found. An answer with another status, or with
    a value, stays as it is. A confidence that was asked for is no part of the text.

    >>> from proctor.core import Item
    >>> from proctor.core.formats import BinaryFormat
    >>> item = Item(id="q1", group="v1", question="Is a clip visible?", answer=BinaryFormat())
    >>> read_answer(item, Answer(item_id="q1", text="Answer: UNANSWERABLE")).status
    <Status.ABSTAINED: 'abstained'>
    """
    if answer.status is not Status.ANSWERED or answer.parsed is not None:
        return answer
    text = formats.without_confidence(answer.text) if CONFIDENCE in answer.extra else answer.text
    if formats.abstains(text, item.answer, item.options):
        return answer.model_copy(update={"status": Status.ABSTAINED})
    try:
        return answer.model_copy(update={"parsed": item.answer.parse(text, item.options)})
    except ParseError as error:
        return answer.model_copy(update={"problem": str(error)})
