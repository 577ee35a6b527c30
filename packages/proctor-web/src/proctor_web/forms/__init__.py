"""The forms of studies, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.core import InputError, one_of
from proctor_web.forms.base import BoxAt, Form, FormModel, ReadingValues, boxes_matched
from proctor_web.forms.marks import ORDER, BoxesForm, ChoiceBody, ChoiceForm, MomentsForm, OrderForm, PresenceForm
from proctor_web.forms.rationale import AS_RECORDED, SENTENCES, WHOLE_ORDER, RationaleBody, RationaleForm
from proctor_web.forms.texts import (
    CHECKS,
    PairwiseBody,
    PairwiseForm,
    QuestionBody,
    QuestionEvent,
    QuestionForm,
    QuestionText,
    RatedDimension,
    RatingBody,
    RatingForm,
)

FORMS: Mapping[str, Form[Any, Any]] = {
    form.name: form
    for form in (
        QuestionForm(),
        OrderForm(),
        RationaleForm(),
        PresenceForm(),
        BoxesForm(),
        ChoiceForm(),
        MomentsForm(),
        RatingForm(),
        PairwiseForm(),
    )
}


def form_named(name: str) -> Form[Any, Any]:
    """The form with this name. Raises `InputError` with all names."""
    if name not in FORMS:
        raise InputError("form", found=repr(name)[:80], expected=one_of(list(FORMS), name))
    return FORMS[name]


__all__ = [
    "AS_RECORDED", "CHECKS", "FORMS", "ORDER", "SENTENCES", "WHOLE_ORDER", "BoxAt", "ChoiceBody", "Form", "FormModel", "PairwiseBody", "QuestionBody",
    "QuestionEvent", "QuestionText", "RatedDimension", "RatingBody", "RationaleBody", "ReadingValues",
    "boxes_matched", "form_named",
]  # fmt: skip
