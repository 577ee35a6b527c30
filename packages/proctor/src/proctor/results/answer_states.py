"""How answers ended, and what they can be filtered by; and two runs crossed: the items that both have right, only one, or
none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, one_of


class AnswerState(StrEnum):
    """How one answer ended. `right` has the best value of its metric, `wrong` the worst, `partial` one between them;
    `abstained` is right where nothing else is, and then `right`. `cut_off` can't be read since the model's token limit
    ended it; `unreadable` can't be read for another reason.

    >>> AnswerState.NOT_ASKED.label
    'not asked'
    """

    RIGHT = "right"
    PARTIAL = "partial"
    WRONG = "wrong"
    ABSTAINED = "abstained"
    CUT_OFF = "cut_off"
    UNREADABLE = "unreadable"
    REFUSED = "refused"
    TIMED_OUT = "timed_out"
    ERROR = "error"
    NOT_SUBMITTED = "not_submitted"
    FAILED = "failed"
    UNSCORED = "unscored"
    NOT_ASKED = "not_asked"
    UNSUPPORTED = "unsupported"

    @property
    def label(self) -> str:
        """In words."""
        return self.value.replace("_", " ")


STATES = tuple(AnswerState)
CODE_OF = {state: code for code, state in enumerate(STATES)}
"""The number of each state in arrays."""

MISSING = "missing"

RESULTS: Mapping[str, tuple[AnswerState, ...]] = {
    "right": (AnswerState.RIGHT,),
    "partial": (AnswerState.PARTIAL,),
    "wrong": (
        AnswerState.WRONG,
        AnswerState.ABSTAINED,
        AnswerState.CUT_OFF,
        AnswerState.UNREADABLE,
        AnswerState.REFUSED,
        AnswerState.TIMED_OUT,
        AnswerState.ERROR,
        AnswerState.NOT_SUBMITTED,
    ),
    MISSING: (AnswerState.FAILED, AnswerState.UNSCORED, AnswerState.NOT_ASKED),
    **{
        state.value: (state,)
        for state in STATES
        if state.value not in {"right", "partial", "wrong"} and state is not AnswerState.UNSUPPORTED
    },
}
"""What answers can be filtered by: results (a system's own faults are wrong; what the infrastructure did, is not asked or
waits for a judge is missing), and each cause."""

SORTS = ("item", "system", "worst", "best")
"""The orders of answers: by item, by system, or by value."""

REPETITION_DIFFERENCES: Mapping[str, str] = {"answer": "answers differ", "result": "results differ"}
"""How an item's repetitions may differ, with words: not all the same answer; some right, partial or wrong and others another
of these."""

_WORDS = re.compile(r'"([^"]+)"|(\S+)')
_MOST_WORDS = 6


@dataclass(frozen=True)
class AnswerFilter:
    """Which answers are meant; what is empty does not restrict. `facets` are pairs of a facet and its value; all words
    of `text` (or phrases in quotes) must occur in the question, its options, its reference or the reply; `item` is one
    item; `differ` (one of `REPETITION_DIFFERENCES`) keeps items whose repetitions differ so. `with_unasked` keeps items that were not
    asked, which are left out unless `results` names them."""

    systems: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    facets: tuple[tuple[str, str], ...] = ()
    text: str = ""
    item: str = ""
    differ: str = ""
    with_unasked: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The words and phrases of `text`.

        >>> AnswerFilter(text='renal "left kidney"').words
        ('renal', 'left kidney')
        """
        found = [phrase or word for phrase, word in _WORDS.findall(self.text)]
        return tuple(dict.fromkeys(found))[:_MOST_WORDS]


Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Cells:
    """Two columns crossed, as masks of items: both right, only the first, only the second, neither; and the items that
    one of them lacks."""

    both: Mask
    only_a: Mask
    only_b: Mask
    neither: Mask
    lacking: Mask

    def named(self, name: str) -> Mask:
        """A cell by its name (`CELLS`). Raises `InputError` for another one."""
        if name not in CELLS:
            raise InputError("cell", found=repr(name), expected=one_of(CELLS, name))
        mask: Mask = getattr(self, name.replace("-", "_"))
        return mask


CELLS = ("only-a", "only-b", "both", "neither", "lacking")
"""The cells of two systems crossed, those that tell them apart first."""
