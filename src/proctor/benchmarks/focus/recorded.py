"""A submission's answers: late and missing ones are there, as such."""

from __future__ import annotations

from pathlib import Path

from proctor.benchmarks.focus.native import NativeResponse, read_responses
from proctor.core import (
    NO_ANSWER,
    Answer,
    Benchmark,
    InputError,
    Item,
    ParseError,
    RecordedAnswers,
    Status,
    Timing,
)
from proctor.core.formats import FreeTextFormat

__all__ = ["read_recorded"]


def read_recorded(path: Path, benchmark: Benchmark) -> RecordedAnswers:
    """One answer to every question of the benchmark, in its order.

    Slower than the track's budget: `timed_out`. Not in the file, or `null` there: an answer without
    text whose reason is `NO_ANSWER`. Not in its format: unreadable, with the problem. Raises `InputError` for two answers to one
    question and for an answer to a question that the benchmark does not have.
    """
    responses = {response.qID: response for response in read_responses(path)}
    unknown = sorted(responses.keys() - {item.id for item in benchmark.items})
    if unknown:
        raise InputError(
            path, found=f"an answer to {unknown[0]}", expected="answers to the benchmark's questions alone"
        )
    answers = tuple(
        _answer(item, responses.get(item.id), benchmark.budget_s or float("inf")) for item in benchmark.items
    )
    return RecordedAnswers(
        answers=answers,
        settings={"recorded": "FOCUS responses", "budget_s": benchmark.budget_s},
        notes=_notes(benchmark.items, answers, responses),
    )


def _answer(item: Item, response: NativeResponse | None, budget_s: float) -> Answer:
    if response is None or response.content is None:
        return Answer(item_id=item.id, reason=NO_ANSWER, problem=NO_ANSWER)
    timing = None if response.latency is None else Timing(model_s=response.latency)
    answer = Answer(item_id=item.id, text=response.content, timing=timing)
    if response.latency is not None and response.latency > budget_s:
        late = f"took {response.latency:.1f} s of {budget_s:g} s"
        return answer.model_copy(update={"status": Status.TIMED_OUT, "reason": late})
    try:
        return answer.model_copy(update={"parsed": item.answer.parse(response.content, item.options)})
    except ParseError as error:
        return answer.model_copy(update={"problem": str(error)})


def _notes(
    items: tuple[Item, ...], answers: tuple[Answer, ...], responses: dict[str, NativeResponse]
) -> tuple[str, ...]:
    late = [answer.item_id for answer in answers if answer.status is Status.TIMED_OUT]
    missing = [answer.item_id for answer in answers if answer.reason == NO_ANSWER]
    unreadable = [answer.item_id for answer in answers if answer.problem and answer.reason != NO_ANSWER]
    judged = [item.id for item in items if isinstance(item.answer, FreeTextFormat)]
    unmeasured = [response.qID for response in responses.values() if response.latency is None]
    lines = (
        ("came late and are wrong", late),
        ("have no answer and are wrong", missing),
        ("can't be read and are wrong", unreadable),
        ("have no latency, so that nobody knows whether they came in time", unmeasured),
        ("are free text, which no code marks", judged),
    )
    return tuple(f"{len(ids)} of {len(items)} questions {text}" for text, ids in lines if ids)
