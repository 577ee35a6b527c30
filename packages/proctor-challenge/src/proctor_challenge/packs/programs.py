"""The programs of packs, which run on the other platform: they find the answers there, score them by the code that
scores submissions here, and write aggregates."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from proctor import core
from proctor.api import audit, import_answers, results
from proctor.runs import parsed_answer
from proctor.shell import import_single
from proctor_challenge.admission import checked_submission
from proctor_challenge.challenge import SealedPart
from proctor_challenge.scoring import Entrant, score_entrant
from proctor_challenge.settings import ChallengeSettings, Phase

SUCCEEDED = "Succeeded"
"""The status of a completed job."""

PREDICTIONS = "predictions.json"
"""The list of all jobs in an evaluation's input."""

IDS_FILE = "ids.json"
"""The question of each case, in the ground truth."""

ANSWER = "answer.json"
"""The output of an algorithm."""

PART_FILE = "part.json"
"""The file beside a pack's questions that says how they are read and scored."""

RATINGS_FILE = "ratings.csv"
"""People's ratings, in the folder of a phase whose benchmark compares scorers with people."""

MAX_KEY = 36
"""The maximum length of a column's key and title on Codabench."""

STATUSES = ("readable", "unreadable", "not_submitted", "refused", "timed_out", "error", "abstained")
"""The outcomes of answers. Each answer has one."""

DIGITS = "PROCTOR_PACK_DIGITS"
"""The environment variable with the number of digits, for checks of a pack."""

_NAME = "submission"
_DRAWS = 2000
_MAX_TEXT = 2**16  # characters of an answer, as the gateway takes them
_NOT_ANSWERS = ("metadata", "metadata.yaml", "__MACOSX")


@dataclass(frozen=True)
class GrandChallengeSocket:
    """An input or output of an algorithm. `kind` is the platform's name of its type."""

    title: str
    slug: str
    kind: Literal["Anything", "MP4 file"]
    relative_path: str

    @property
    def description(self) -> dict[str, object]:
        """The socket as the platform describes it to an evaluation."""
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


class PhaseSockets(NamedTuple):
    """The sockets of a phase."""

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


class PackedPart(core.FrozenModel):
    """The questions of a phase in a pack. `settings` are those of a challenge with this one phase and paths beside this
    file; `fingerprint` is the hash of the questions with their references."""

    settings: ChallengeSettings
    fingerprint: str

    @property
    def phase(self) -> Phase:
        """The only phase."""
        return self.settings.phases[0]


@dataclass(frozen=True)
class PackFigure:
    """One aggregate. `ascending` means that lower is better; `aside` scores bounds of other figures and counts, which
    are not ranked."""

    name: str
    title: str
    value: float | None
    ascending: bool = False
    aside: bool = False

    @property
    def key(self) -> str:
        """The name as platforms accept it: at most 36 characters, the same for the same name.

        >>> PackFigure("accuracy", "Accuracy", 0.5).key
        'accuracy'
        """
        if len(self.name) <= MAX_KEY:
            return self.name
        return f"{self.name[:27]}_{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"


def read_part(folder: Path) -> PackedPart:
    """The questions of a pack. Raises `InputError` when they were changed."""
    part = core.read_model(folder / PART_FILE, PackedPart, "the questions of a pack")
    check_part(part, folder)
    return part


def check_part(part: PackedPart, folder: Path) -> None:
    """Raises `InputError` when the questions in a folder are not those that were packed."""
    if packed_hash(SealedPart(folder, part.settings), part.phase) != part.fingerprint:
        raise core.InputError(folder, found="other questions or references", expected="those that were packed")


def packed_hash(sealed: SealedPart, phase: Phase) -> str:
    """The hash of the questions with their references, and of people's ratings if there are some."""
    ratings = ratings_of(sealed, phase)
    known = hashlib.sha256(core.input_bytes(ratings)).hexdigest() if ratings.is_file() else ""
    return core.content_hash([sealed.benchmark(phase.name).fingerprint, known])


def ratings_of(sealed: SealedPart, phase: Phase) -> Path:
    """The file with people's ratings, if there are some."""
    return sealed.folder / (phase.sealed or phase.questions) / RATINGS_FILE


def figures_of(
    folder: Path, settings: ChallengeSettings, phase: Phase, given: Path | core.RecordedAnswers
) -> list[PackFigure]:
    """The figures of answers, of a file of answers, or, for a benchmark with ratings, of a file of a scorer's scores.
    The first figure ranks. No judge is asked, since that needs a network. Raises `InputError` for an unreadable
    file."""
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        changed = {"answers": f"sqlite:///{scratch}/{{phase}}.sqlite", "judge": None, "baselines": ()}
        sealed = SealedPart(folder, settings.model_copy(update=changed))
        if settings.benchmark in core.RATING_READERS.names():
            if isinstance(given, core.RecordedAnswers):
                expected = "a file of scores: answers are rated here"
                raise core.InputError(folder, "answers", found="answers", expected=expected)
            return _agreement(sealed, phase, given)
        return _scores(sealed, phase, given)


def _scores(sealed: SealedPart, phase: Phase, given: Path | core.RecordedAnswers) -> list[PackFigure]:
    store, benchmark, condition = sealed.store_at(phase.name), sealed.benchmark(phase.name), phase.condition
    if isinstance(given, core.RecordedAnswers):
        with sealed.store(phase.name) as opened:  # scored below
            import_single(opened, benchmark, given, _NAME, condition)
    else:
        settings, data = sealed.settings, sealed.folder / (phase.sealed or phase.questions)
        checked_submission(settings.benchmark, settings.track, data, phase.budget, given)
        import_answers(benchmark, given, name=_NAME, condition=condition, store=store, submission=True)
    own = score_entrant(sealed, phase.name, Entrant(_NAME))
    found = []
    for board in own.boards:
        title = board.name.capitalize()
        found.append(PackFigure(board.name, f"{title} board", board.mean, not board.higher_is_better))
        found += [
            PackFigure(f"{board.name}_{part}", f"{title}, {part}", getattr(board, part), aside=True)
            for part in ("low", "high", "questions")
        ]
    rows = results(store, benchmark.name, systems=[_NAME], conditions=[condition], draws=_DRAWS).data
    by_name = {row.metric: row for row in sorted(rows.rows, key=lambda row: row.value is not None)}
    for name in dict.fromkeys(row.metric for row in rows.rows):
        metric = rows.card.metric(name)
        found.append(PackFigure(name, metric.label, by_name[name].value, not metric.higher_is_better))
    counts = (PackFigure(name, name.replace("_", " "), own.statuses.get(name, 0), aside=True) for name in STATUSES)
    return [*found, *counts]


def _agreement(sealed: SealedPart, phase: Phase, file: Path) -> list[PackFigure]:
    """A scorer's agreement with people, under the keys of the benchmark's organisers."""
    from proctor.audits import OFFICIAL_AUDITS, CorrelationSettings
    from proctor.audits import audit as audit_of

    store, benchmark = sealed.store_at(phase.name), sealed.benchmark(phase.name)
    import_answers(benchmark, ratings_of(sealed, phase), store=store)
    import_answers(benchmark, file, scorer=_NAME, store=store)
    compared = audit(store, benchmark=benchmark.name).data
    found = audit_of(compared.table, compared.metrics[0], CorrelationSettings(draws=0))
    figures = OFFICIAL_AUDITS.get(sealed.settings.benchmark)(found)
    whole = [name for name in figures if name.endswith("-ALL-mean")]
    named = [*whole, *(name for name in figures if name not in whole)]
    return [PackFigure(name, name, figures[name], aside=not name.startswith("ALL-")) for name in named]


def shown(figures: list[PackFigure], digits: int) -> dict[str, float]:
    """The figures that have a value, rounded, by key."""
    return {figure.key: round(float(figure.value), digits) for figure in figures if figure.value is not None}


def run_scorer(score: Callable[..., None], *arguments: str) -> None:
    """Runs a scorer as a program. An error is one line and the exit code 1."""
    try:
        score(*map(Path, arguments))
    except core.ProctorError as error:
        sys.stderr.write(f"proctor: {error}\n")
        sys.exit(1)


def score_codabench(given: Path, out: Path) -> None:
    """Codabench's scoring step. `given` holds the submission in `res` and the references in `ref`; `scores.json` is
    written into `out`."""
    part = read_part(given / "ref")
    found = figures_of(given / "ref", part.settings, part.phase, _only_file(given / "res"))
    _write(out / "scores.json", shown(found, _digits(part.phase.results.digits)))


def evaluate_grand_challenge(given: Path, out: Path, truth: Path) -> None:
    """Grand Challenge's evaluation. `given` holds `predictions.json` and each job's outputs, `truth` the references;
    `metrics.json` is written into `out`, with aggregates only."""
    part = read_part(truth)
    ids = _Cases.validate_python(core.read_json(truth / IDS_FILE, "the cases of a pack"))
    jobs = list(_jobs(given / PREDICTIONS))
    items = {item.id: item for item in SealedPart(truth, part.settings).benchmark(part.phase.name).items}
    sockets = sockets_of(part.settings.benchmark)
    answers: dict[str, core.Answer] = {}
    for job in jobs:
        case = job.case(sockets)
        if case not in ids or case in answers:
            what = "a second time" if case in answers else "which is not in the ground truth"
            location, expected = f"job {job.pk}", "each case of the archive once"
            raise core.InputError(
                given / PREDICTIONS, location, found=f"the case {case[:40]!r} {what}", expected=expected
            )
        answers[case] = job.answer(given, sockets, items[ids[case]])
    if len(answers) < len(ids):
        lacking = f"{len(answers)} of {core.count_of(len(ids), 'case')}"
        raise core.InputError(given / PREDICTIONS, found=lacking, expected="all of them: is the archive whole?")
    found = figures_of(truth, part.settings, part.phase, core.RecordedAnswers(tuple(answers.values())))
    aggregates = shown(found, _digits(part.phase.results.digits)) | _seconds(jobs)
    _write(out / "metrics.json", {"aggregates": aggregates, "results": []})


class _SocketValue(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    socket: dict[str, JsonValue]
    value: JsonValue = None


class _Job(BaseModel):
    """One algorithm job, as the platform describes it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pk: UUID
    inputs: tuple[_SocketValue, ...]
    status: str = SUCCEEDED
    exec_duration: timedelta | None = None
    invoke_duration: timedelta | None = None

    def case(self, sockets: PhaseSockets) -> str:
        """The id of its question; "" for none."""
        for socket_value in self.inputs:
            if socket_value.socket.get("slug") == sockets.question.slug and isinstance(socket_value.value, dict):
                return str(socket_value.value.get("id", ""))
        return ""

    def answer(self, given: Path, sockets: PhaseSockets, item: core.Item) -> core.Answer:
        """The answer of the job. A failed job is an error, which counts as wrong."""
        if self.status != SUCCEEDED:
            return core.Answer(item_id=item.id, status=core.Status.ERROR, reason=f"the job ended as {self.status[:40]}")
        file = given / str(self.pk) / "output" / sockets.answer.relative_path
        try:
            output = core.read_json(file, "an answer", pairs=core.unique_keys)
        except core.InputError:
            output = None
        text = output.get("answer") if isinstance(output, dict) else output
        if not isinstance(text, str) or len(text) > _MAX_TEXT:
            return core.Answer(item_id=item.id, status=core.Status.ERROR, reason="the output is no answer")
        return parsed_answer(item, core.Answer(item_id=item.id, text=text))


_Cases = TypeAdapter(dict[str, str])


def _jobs(file: Path) -> Iterator[_Job]:
    given = core.read_json(file, "the platform's jobs")
    if not isinstance(given, list):
        raise core.InputError(file, found=type(given).__name__, expected="a list of jobs")
    for number, one in enumerate(given, start=1):
        yield core.validated(_Job, one, file, f"job {number}")


def _seconds(jobs: Sequence[_Job]) -> dict[str, float]:
    """The mean time of a question, if the platform measured it."""
    taken = [job.invoke_duration or job.exec_duration for job in jobs]
    known = [duration.total_seconds() for duration in taken if duration is not None]
    return {"seconds_mean": round(sum(known) / len(known), 1)} if known else {}


def _only_file(folder: Path) -> Path:
    """The one file of a submission, apart from what the platform and archivers add. Links are not followed."""
    files = [
        file
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink() and not file.name.startswith(".")
        if file.relative_to(folder).parts[0] not in _NOT_ANSWERS
    ]
    if len(files) != 1:
        raise core.InputError(
            "the submission", found=f"{len(files)} files", expected="an archive with one file of answers"
        )
    return files[0]


def _digits(declared: int) -> int:
    return int(os.environ.get(DIGITS, declared))


def _write(file: Path, content: dict[str, Any]) -> None:
    core.write_whole(file, json.dumps(content, indent=1, allow_nan=False) + "\n")
