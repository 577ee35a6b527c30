"""Predictions of the task as recorded answers."""

from __future__ import annotations

from pathlib import Path

from proctor.benchmarks.clinicalskillqa.native import NativePrediction, read_predictions
from proctor.core import NO_ANSWER, Answer, Benchmark, InputError, Item, RecordedAnswers

__all__ = ["read_recorded", "spelled"]


def spelled(order: tuple[str, ...], labels: tuple[str, ...]) -> tuple[str, ...]:
    """The order with known labels in their own case, as `OrderingFormat` reads them.

    >>> spelled(("b", "x", "A"), ("A", "B"))
    ('B', 'x', 'A')
    """
    known = {label.casefold(): label for label in labels}
    return tuple(known.get(label.casefold(), label) for label in order)


def read_recorded(path: Path, benchmark: Benchmark) -> RecordedAnswers:
    """One answer to every item of the benchmark, in its order; the rationale stands in its `extra`.

    An item without a prediction gets an answer whose reason is `NO_ANSWER`; an empty order is unreadable. Raises
    `InputError` for a prediction for an item that the benchmark does not have.
    """
    predictions = read_predictions(path)
    unknown = sorted(predictions.keys() - {item.id for item in benchmark.items})
    if unknown:
        raise InputError(
            path, f"item {unknown[0]!r}", found="an unknown item", expected="the benchmark's items alone"
        )
    answers = tuple(_answer(item, predictions.get(item.id)) for item in benchmark.items)
    missing = sum(answer.reason == NO_ANSWER for answer in answers)
    notes = (f"{missing} of {len(answers)} items have no answer and are wrong",) if missing else ()
    return RecordedAnswers(answers=answers, settings={"recorded": "ClinicalSkillQA predictions"}, notes=notes)


def _answer(item: Item, prediction: NativePrediction | None) -> Answer:
    if prediction is None:
        return Answer(item_id=item.id, reason=NO_ANSWER, problem=NO_ANSWER)
    text = " > ".join(prediction.order)
    extra = {"rationale": prediction.rationale} if "rationale" in prediction.model_fields_set else {}
    if not prediction.order:
        return Answer(item_id=item.id, problem="expected an order, found ''", extra={**extra})
    labels = item.answer.labels if item.answer.kind == "ordering" else ()
    parsed = list(spelled(prediction.order, labels))
    return Answer(item_id=item.id, text=text, parsed=[*parsed], extra={**extra})
