"""What runs on the other platform: it finds answers where that puts them, marks them, and writes aggregates."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from proctor.challenges.packs.figures import figures_of, read_part, shown
from proctor.challenges.packs.sockets import IDS_FILE, PREDICTIONS, SUCCEEDED, PhaseSockets, sockets_of
from proctor.challenges.sealed import SealedPart
from proctor.core import (
    Answer,
    InputError,
    Item,
    ProctorError,
    RecordedAnswers,
    Status,
    count_of,
    read_json,
    unique_keys,
    validated,
    write_whole,
)
from proctor.runs import parsed_answer

DIGITS = "PROCTOR_PACK_DIGITS"
"""The variable by which who checks a pack sees more digits than it shows."""

_MOST_TEXT = 2**16  # characters of an answer, as the gateway takes them
_NOT_ANSWERS = ("metadata", "metadata.yaml", "__MACOSX")


def run_scorer(score: Callable[..., None], *arguments: str) -> None:
    """Runs a scorer as a program: what is wrong with the answers is one line and the exit code 1."""
    try:
        score(*map(Path, arguments))
    except ProctorError as error:
        sys.stderr.write(f"proctor: {error}\n")
        sys.exit(1)


def score_codabench(given: Path, out: Path) -> None:
    """Codabench's scoring step: `given` holds the submission in `res` and the references in `ref`; the scores go to
    `scores.json` in `out`."""
    part = read_part(given / "ref")
    found = figures_of(given / "ref", part.settings, part.phase, _only_file(given / "res"))
    _write(out / "scores.json", shown(found, _digits(part.phase.results.digits)))


def evaluate_grand_challenge(given: Path, out: Path, truth: Path) -> None:
    """Grand Challenge's evaluation: `given` holds `predictions.json` and each job's outputs, `truth` the references;
    the metrics go to `metrics.json` in `out`, aggregates alone."""
    part = read_part(truth)
    ids = _Cases.validate_python(read_json(truth / IDS_FILE, "the cases of a pack"))
    jobs = list(_jobs(given / PREDICTIONS))
    items = {item.id: item for item in SealedPart(truth, part.settings).benchmark(part.phase.name).items}
    sockets = sockets_of(part.settings.benchmark)
    answers: dict[str, Answer] = {}
    for job in jobs:
        case = job.case(sockets)
        if case not in ids or case in answers:
            what = "a second time" if case in answers else "which is not in the ground truth"
            place, expected = f"job {job.pk}", "each case of the archive once"
            raise InputError(given / PREDICTIONS, place, found=f"the case {case[:40]!r} {what}", expected=expected)
        answers[case] = job.answer(given, sockets, items[ids[case]])
    if len(answers) < len(ids):
        lacking = f"{len(answers)} of {count_of(len(ids), 'case')}"
        raise InputError(given / PREDICTIONS, found=lacking, expected="all of them: is the archive whole?")
    found = figures_of(truth, part.settings, part.phase, RecordedAnswers(tuple(answers.values())))
    aggregates = shown(found, _digits(part.phase.results.digits)) | _seconds(jobs)
    _write(out / "metrics.json", {"aggregates": aggregates, "results": []})


class _SocketValue(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    socket: dict[str, JsonValue]
    value: JsonValue = None


class _Job(BaseModel):
    """One algorithm job, as the platform tells it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pk: UUID
    inputs: tuple[_SocketValue, ...]
    status: str = SUCCEEDED
    exec_duration: timedelta | None = None
    invoke_duration: timedelta | None = None

    def case(self, sockets: PhaseSockets) -> str:
        """The id of its question; "" where it has none."""
        for one in self.inputs:
            if one.socket.get("slug") == sockets.question.slug and isinstance(one.value, dict):
                return str(one.value.get("id", ""))
        return ""

    def answer(self, given: Path, sockets: PhaseSockets, item: Item) -> Answer:
        """What came of it: a text, or an error that counts as wrong."""
        if self.status != SUCCEEDED:
            return Answer(item_id=item.id, status=Status.ERROR, reason=f"the job ended as {self.status[:40]}")
        file = given / str(self.pk) / "output" / sockets.answer.relative_path
        try:
            said = read_json(file, "an answer", pairs=unique_keys)
        except InputError:
            said = None
        text = said.get("answer") if isinstance(said, dict) else said
        if not isinstance(text, str) or len(text) > _MOST_TEXT:
            return Answer(item_id=item.id, status=Status.ERROR, reason="the output is no answer")
        return parsed_answer(item, Answer(item_id=item.id, text=text))


_Cases = TypeAdapter(dict[str, str])


def _jobs(file: Path) -> Iterator[_Job]:
    given = read_json(file, "the platform's jobs")
    if not isinstance(given, list):
        raise InputError(file, found=type(given).__name__, expected="a list of jobs")
    for number, one in enumerate(given, start=1):
        yield validated(_Job, one, file, f"job {number}")


def _seconds(jobs: Sequence[_Job]) -> dict[str, float]:
    """How long a question took on average; nothing where the platform did not measure it."""
    taken = [one.invoke_duration or one.exec_duration for one in jobs]
    known = [one.total_seconds() for one in taken if one is not None]
    return {"seconds_mean": round(sum(known) / len(known), 1)} if known else {}


def _only_file(folder: Path) -> Path:
    """The one file of a submission. What the platform and archivers add is not looked at."""
    files = [one for one in sorted(_files(folder, folder)) if not one.name.startswith(".")]
    if len(files) != 1:
        raise InputError("the submission", found=f"{len(files)} files", expected="an archive with one file of answers")
    return files[0]


def _files(folder: Path, top: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        if entry.name in _NOT_ANSWERS and folder == top:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), top)
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


def _digits(declared: int) -> int:
    return int(os.environ.get(DIGITS, declared))


def _write(file: Path, content: dict[str, Any]) -> None:
    write_whole(file, json.dumps(content, indent=1, allow_nan=False) + "\n")
