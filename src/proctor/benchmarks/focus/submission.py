"""From a run's answers to a file that can be handed in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.benchmarks.focus.native import NativeResponse, write_answer, write_native
from proctor.core import NO_ANSWER, Answer, InputError, Status

__all__ = ["SUBMISSIONS", "write_submission"]

SUBMISSIONS = ("answer", "responses")


def write_submission(form: str, answers: Sequence[Answer], file: Path) -> int:
    """Writes `answer.json` ("answer": contents alone) or `responses.json` ("responses": with latencies where they were
    measured), in the order of the answers, and returns how many.

    The content is what the system said, word for word. Answers that failed, and those that a submission lacked, are left
    out: nothing is made up. Raises `InputError` where the file can't be written.
    """
    given = [
        NativeResponse(qID=one.item_id, content=one.text, latency=one.timing.model_s)
        if one.timing
        else NativeResponse(qID=one.item_id, content=one.text)
        for one in answers
        if one.status is not Status.FAILED and one.reason != NO_ANSWER
    ]
    try:
        if form == "answer":
            write_answer(file, given)
        else:
            write_native(file, given)
    except OSError as error:
        raise InputError(file, found=error.strerror or str(error), expected="a place to write to") from error
    return len(given)
