"""Any answer format: the union of all, told apart by `kind`."""

from typing import Annotated

from pydantic import Field

from proctor.core.formats.binary import BinaryFormat
from proctor.core.formats.boxes import BoxesFormat, PointFormat
from proctor.core.formats.choice import ChoiceFormat
from proctor.core.formats.classes import ClassesFormat
from proctor.core.formats.free import FreeTextFormat, RatingsFormat
from proctor.core.formats.intervals import IntervalsFormat
from proctor.core.formats.numbers import CountFormat, PercentageFormat
from proctor.core.formats.opinions import PreferenceFormat, ScaleFormat
from proctor.core.formats.ordering import OrderingFormat
from proctor.core.formats.pattern import PatternFormat
from proctor.core.formats.quantity import QuantityFormat
from proctor.core.formats.selections import ChoicesFormat, ShortTextFormat
from proctor.core.formats.timestamps import TimestampsFormat

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
    | BoxesFormat
    | PointFormat
    | ChoicesFormat
    | ShortTextFormat
    | ScaleFormat
    | PreferenceFormat
    | PatternFormat
    | FreeTextFormat
    | RatingsFormat,
    Field(discriminator="kind"),
]
