"""The sockets of a Grand Challenge phase: a question and its video in, an answer out. What a pack says of a file of answers: aggregates alone, from the code that marks submissions here. What runs on the other platform: it finds answers where that puts them, marks them, and writes aggregates."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from proctor.api import audit, import_answers, results
from proctor.challenges.boards import Figures
from proctor.challenges.challenge import SealedPart
from proctor.challenges.marking import Entrant, mark_entrant
from proctor.challenges.settings import ChallengeSettings, Phase
from proctor.core import (
    Answer,
    InputError,
    Item,
    ProctorError,
    RecordedAnswers,
    Status,
    content_hash,
    count_of,
    input_bytes,
    read_json,
    read_model,
    reader_of,
    unique_keys,
    validated,
    write_whole,
)
from proctor.runs import import_answers as import_recorded
from proctor.runs import parsed_answer

SUCCEEDED = "Succeeded"
"""The status of a job that ended well."""

PREDICTIONS = "predictions.json"
"""In an evaluation's input: all jobs."""

IDS_FILE = "ids.json"
"""In the ground truth: the question of each case."""

ANSWER = "answer.json"
"""Where an algorithm writes its answer: as the template algorithm does."""


@dataclass(frozen=True)
class GrandChallengeSocket:
    """An input or output. `kind` is the platform's name of its type."""

    title: str
    slug: str
    kind: Literal["Anything", "MP4 file"]
    relative_path: str

    @property
    def told(self) -> dict[str, object]:
        """As the platform tells it to an evaluation."""
        is_json = self.kind == "Anything"
        return {
            "slug": self.slug,
            "relative_path": self.relative_path,
            "is_image_kind": False,
            "is_panimg_kind": False,
            "is_dicom_image_kind": False,
            "is_json_kind": is_json,
            "is_file_kind": not is_json,
        }


@dataclass(frozen=True)
class PhaseSockets:
    """Those of a phase."""

    question: GrandChallengeSocket
    video: GrandChallengeSocket
    answer: GrandChallengeSocket


def sockets_of(benchmark: str) -> PhaseSockets:
    """The sockets of a benchmark's phases.

    >>> sockets_of("lamps").question.relative_path
    'lamps-question.json'
    """
    named = benchmark.replace("_", "-")
    return PhaseSockets(
        GrandChallengeSocket(f"{named} question", f"{named}-question", "Anything", f"{named}-question.json"),
        GrandChallengeSocket(f"{named} video", f"{named}-video", "MP4 file", f"{named}-video.mp4"),
        GrandChallengeSocket(f"{named} answer", f"{named}-answer", "Anything", ANSWER),
    )


PART_FILE = "part.json"
"""The file beside the questions of a pack: how they are read and marked."""

RATINGS_FILE = "ratings.csv"
"""People's ratings, in the folder of a phase whose benchmark has scorers marked against them."""

LONGEST_KEY = 36
"""Characters of a column's key and title on Codabench."""

STATUSES = ("readable", "unreadable", "not_submitted", "refused", "timed_out", "error")
"""How answers ended, each counted once."""

_NAME = "submission"
_DRAWS = 2000


class PackedPart(BaseModel):
    """The questions of a phase as a pack carries them: `settings` are those of a challenge of this one phase, with
    paths beside this file; `fingerprint` is the hash of the questions with their references."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: ChallengeSettings
    fingerprint: str

    @property
    def phase(self) -> Phase:
        """The one phase."""
        return self.settings.phases[0]


@dataclass(frozen=True)
class PackFigure:
    """One aggregate. `value` is None where there is none; `ascending`: lower is better; `aside`: it bounds another
    figure or counts something, and ranks nobody."""

    name: str
    title: str
    value: float | None
    ascending: bool = False
    aside: bool = False

    @property
    def key(self) -> str:
        """The name as platforms take it: at most 36 characters, the same for the same name.

        >>> PackFigure("accuracy", "Accuracy", 0.5).key
        'accuracy'
        """
        if len(self.name) <= LONGEST_KEY:
            return self.name
        return f"{self.name[:27]}_{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"


def read_part(folder: Path) -> PackedPart:
    """A pack's questions. Raises `InputError` where they are not those that were packed."""
    part = read_model(folder / PART_FILE, PackedPart, "the questions of a pack")
    check_part(part, folder)
    return part


def check_part(part: PackedPart, folder: Path) -> None:
    """Raises `InputError` where the questions in a folder are not those that were packed."""
    if packed_hash(SealedPart(folder, part.settings), part.phase) != part.fingerprint:
        raise InputError(folder, found="other questions or references", expected="those that were packed")


def packed_hash(sealed: SealedPart, phase: Phase) -> str:
    """The hash of all that marks: the questions with their references, and people's ratings where there are some."""
    ratings = ratings_of(sealed, phase)
    known = hashlib.sha256(input_bytes(ratings)).hexdigest() if ratings.is_file() else ""
    return content_hash([sealed.benchmark(phase.name).fingerprint, known])


def ratings_of(sealed: SealedPart, phase: Phase) -> Path:
    """Where people's ratings lie, if there are some."""
    return sealed.folder / (phase.sealed or phase.questions) / RATINGS_FILE


def figures_of(
    folder: Path, settings: ChallengeSettings, phase: Phase, given: Path | RecordedAnswers
) -> list[PackFigure]:
    """The figures of answers, or of a file of answers, or of one with a scorer's scores where the benchmark has
    ratings; the first ranks. A judge is not asked: it would need a network. Raises `InputError` for a file that can't
    be read."""
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        changed = {"answers": f"sqlite:///{scratch}/{{phase}}.sqlite", "judge": None, "baselines": ()}
        sealed = SealedPart(folder, settings.model_copy(update=changed))
        if reader_of(settings.benchmark, settings.track).ratings:
            if isinstance(given, RecordedAnswers):
                raise InputError(
                    folder, "answers", found="answers", expected="a file of scores: answers are rated here"
                )
            return _agreement(sealed, phase, given)
        return _marked(sealed, phase, given)


def _marked(sealed: SealedPart, phase: Phase, given: Path | RecordedAnswers) -> list[PackFigure]:
    store, benchmark = sealed.store_at(phase.name), sealed.benchmark(phase.name)
    if isinstance(given, RecordedAnswers):
        with sealed.store(phase.name) as opened:
            how: dict[str, Any] = {"name": _NAME, "condition": phase.condition, "scorers": ()}  # marked below
            asyncio.run(import_recorded(opened, benchmark, given, **how))
    else:
        import_answers(benchmark, given, name=_NAME, condition=phase.condition, store=store)
    told = mark_entrant(sealed, phase.name, Entrant(_NAME))
    found = [*_boards(told)]
    rows = results(store, benchmark.name, systems=[_NAME], conditions=[phase.condition], draws=_DRAWS).data
    by_name = {row.metric: row for row in sorted(rows.rows, key=lambda one: one.value is not None)}
    for name in dict.fromkeys(row.metric for row in rows.rows):
        declared = rows.card.metric(name)
        found.append(PackFigure(name, declared.label, by_name[name].value, not declared.higher_is_better))
    return [
        *found,
        *(PackFigure(name, name.replace("_", " "), told.statuses.get(name, 0), aside=True) for name in STATUSES),
    ]


def _boards(figures: Figures) -> Iterator[PackFigure]:
    for one in figures.boards:
        title = one.name.capitalize()
        yield PackFigure(one.name, f"{title} board", one.mean, not one.higher_is_better)
        yield PackFigure(f"{one.name}_low", f"{title}, low", one.low, aside=True)
        yield PackFigure(f"{one.name}_high", f"{title}, high", one.high, aside=True)
        yield PackFigure(f"{one.name}_questions", f"{title}, questions", one.questions, aside=True)


def _agreement(sealed: SealedPart, phase: Phase, file: Path) -> list[PackFigure]:
    """A scorer's agreement with people, under the organisers' own keys."""
    from proctor.audits import CorrelationSettings
    from proctor.audits import audit as audit_of

    store, benchmark = sealed.store_at(phase.name), sealed.benchmark(phase.name)
    import_answers(benchmark, ratings_of(sealed, phase), store=store)
    import_answers(benchmark, file, scorer=_NAME, store=store)
    compared = audit(store, benchmark=benchmark.name).data
    found = audit_of(compared.table, compared.metrics[0], CorrelationSettings(draws=0))
    figures = reader_of(sealed.settings.benchmark, sealed.settings.track).official_audit(found)
    whole = [name for name in figures if name.endswith("-ALL-mean")]
    named = [*whole, *(name for name in figures if name not in whole)]
    return [PackFigure(name, name, figures[name], aside=not name.startswith("ALL-")) for name in named]


def shown(figures: list[PackFigure], digits: int) -> dict[str, float]:
    """The figures that there are, rounded, by key."""
    return {one.key: round(float(one.value), digits) for one in figures if one.value is not None}


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
