"""The forms of replies that several methods ask for."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

__all__ = ["LabelList", "OrderReply", "Reply"]


def _listed(value: object) -> object:
    """`D > B > A` (also joined by commas, arrows or spaces) as a list, alone or as a list's only entry."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        return [label for label in re.split(r"\s*(?:->|[>→,;])\s*|\s+", value.strip()) if label]
    return value


LabelList = Annotated[list[str], BeforeValidator(_listed)]
"""Labels in an order, as a list or as one text."""


class Reply(BaseModel):
    """The root of the forms: what a model says beside what it was asked is left aside."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, str_strip_whitespace=True)


class OrderReply(Reply):
    """The pictures in the order in which they were taken, and why."""

    rationale: str = Field(description="Why the order is this one: for each picture what is seen and done.")
    order: LabelList = Field(description="The labels of all pictures, each once, from first to last.")
