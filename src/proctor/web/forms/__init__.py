"""Forms: what is asked about an item, what must be there before a reading is sealed, and when two readings agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.core import InputError, one_of
from proctor.web.forms.base import BoxAt, Form, FormModel, Said, boxes_matched
from proctor.web.forms.marks import BoxesForm, MomentsForm, OrderForm, PresenceForm
from proctor.web.forms.texts import (
    CHECKS,
    PairwiseBody,
    PairwiseForm,
    QuestionBody,
    QuestionForm,
    QuestionText,
    RatedDimension,
    RatingBody,
    RatingForm,
    SaidEvent,
)

FORMS: Mapping[str, Form[Any, Any]] = {
    form.name: form
    for form in (QuestionForm(), OrderForm(), PresenceForm(), BoxesForm(), MomentsForm(), RatingForm(), PairwiseForm())
}
"""The forms by name."""


def form_named(name: str) -> Form[Any, Any]:
    """A form. Raises `InputError` that lists them."""
    if name not in FORMS:
        raise InputError("form", found=repr(name)[:80], expected=one_of(list(FORMS), name))
    return FORMS[name]


__all__ = [
    "CHECKS", "FORMS", "BoxAt", "Form", "FormModel", "PairwiseBody", "QuestionBody", "QuestionText", "RatedDimension",
    "RatingBody", "Said", "SaidEvent", "boxes_matched", "form_named",
]  # fmt: skip
