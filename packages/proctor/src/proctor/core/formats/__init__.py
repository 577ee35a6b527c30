"""Answer formats: instructions, parsing, validation and matching of answers.

Parsed values are plain JSON: choice "B", ordering ["B", "A"], binary true, count 3, percentage 40.0,
classes ["clip"], timestamps [65.0] and intervals [[65.0, 80.0]] (seconds), pattern "2/3", free text "…", ratings
{"accuracy": 0.5}.
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.core.formats.abstention import (
        ABSTAINED_WORD,
        abstains,
        abstention_instruction,
        declines,
        is_abstention,
    )
    from proctor.core.formats.any_format import EVERY_KIND, AnswerFormat, format_of_kind
    from proctor.core.formats.base import Format, StrictFormat, bare
    from proctor.core.formats.binary import BinaryFormat
    from proctor.core.formats.boxes import BoxesFormat, PointFormat
    from proctor.core.formats.choice import MOST_OPTIONS, ChoiceFormat, option_letters
    from proctor.core.formats.classes import ClassesFormat
    from proctor.core.formats.confidence import (
        CONFIDENCE_FIELD,
        CONFIDENCE_LINE,
        read_confidence,
        token_confidence,
        without_confidence,
    )
    from proctor.core.formats.free import FreeTextFormat, RatingsFormat
    from proctor.core.formats.intervals import IntervalsFormat, extents
    from proctor.core.formats.numbers import CountFormat, PercentageFormat
    from proctor.core.formats.opinions import PreferenceFormat, ScaleFormat
    from proctor.core.formats.ordering import OrderingFormat
    from proctor.core.formats.overlap import covered, iou, matching
    from proctor.core.formats.pattern import PatternFormat
    from proctor.core.formats.quantity import QuantityFormat
    from proctor.core.formats.rationales import rationale_in
    from proctor.core.formats.reply import declared_answers, gives_up, json_values
    from proctor.core.formats.selections import ChoicesFormat, ShortTextFormat, jaccard, word_f1
    from proctor.core.formats.thoughts import has_thoughts, is_cut_thought, without_thoughts
    from proctor.core.formats.timestamps import TimestampsFormat
    from proctor.core.formats.unseen import sees_nothing
else:
    export_lazily(__name__)

__all__ = [
    "ABSTAINED_WORD", "CONFIDENCE_FIELD", "CONFIDENCE_LINE", "EVERY_KIND", "MOST_OPTIONS", "AnswerFormat",
    "BinaryFormat", "BoxesFormat", "ChoiceFormat", "ChoicesFormat", "ClassesFormat", "CountFormat", "Format",
    "FreeTextFormat", "IntervalsFormat", "OrderingFormat", "PatternFormat", "PercentageFormat", "PointFormat",
    "PreferenceFormat", "QuantityFormat", "RatingsFormat", "ScaleFormat", "ShortTextFormat", "StrictFormat",
    "TimestampsFormat", "abstains", "abstention_instruction", "bare", "covered", "declared_answers", "declines",
    "extents", "format_of_kind", "gives_up", "has_thoughts", "iou", "is_abstention", "is_cut_thought",
    "jaccard", "json_values", "matching", "option_letters", "rationale_in", "read_confidence", "sees_nothing",
    "token_confidence", "without_confidence", "without_thoughts", "word_f1",
]  # fmt: skip
