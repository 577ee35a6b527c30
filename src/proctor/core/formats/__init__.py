"""Answer formats: how an answer is asked for, read, checked and matched.

Parsed values are plain JSON: choice "B", ordering ["B", "A"], binary true, count 3, percentage 40.0,
classes ["clip"], timestamps [65.0] and intervals [[65.0, 80.0]] (seconds), pattern "2/3", free text "…", ratings {"accuracy": 0.5}.
"""

from typing import Annotated

from pydantic import Field

from proctor.core.formats.base import Format, StrictFormat, bare
from proctor.core.formats.choice import MOST_OPTIONS, ChoiceFormat, option_letters
from proctor.core.formats.classes import ClassesFormat
from proctor.core.formats.free import FreeTextFormat, RatingsFormat
from proctor.core.formats.intervals import IntervalsFormat, extents
from proctor.core.formats.numbers import BinaryFormat, CountFormat, PercentageFormat
from proctor.core.formats.ordering import OrderingFormat
from proctor.core.formats.overlap import covered, iou, matching
from proctor.core.formats.pattern import PatternFormat
from proctor.core.formats.quantity import QuantityFormat
from proctor.core.formats.timestamps import TimestampsFormat

__all__ = [
    "MOST_OPTIONS", "AnswerFormat", "BinaryFormat", "ChoiceFormat", "ClassesFormat", "CountFormat", "Format",
    "FreeTextFormat", "IntervalsFormat", "OrderingFormat", "PatternFormat", "PercentageFormat", "QuantityFormat",
    "RatingsFormat", "StrictFormat", "TimestampsFormat", "bare", "covered", "extents", "iou", "matching",
    "option_letters",
]  # fmt: skip

AnswerFormat = Annotated[
    ChoiceFormat
    | OrderingFormat
    | BinaryFormat
    | CountFormat
    | PercentageFormat
    | ClassesFormat
    | TimestampsFormat
    | IntervalsFormat
    | QuantityFormat
    | PatternFormat
    | FreeTextFormat
    | RatingsFormat,
    Field(discriminator="kind"),
]
