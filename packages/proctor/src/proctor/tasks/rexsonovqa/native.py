"""ReXSonoVQA's own files: questions per video, the video metadata, and the authors' recorded results.

Each model saw the options in another order. An answer's letter is mapped to the option's text in the model's order, and
that text to the letter of this benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from proctor import core
from proctor.core.formats import ChoiceFormat, option_letters
from proctor.judges import CONTRADICTION_FLAG, ErrorType, Verdict, verdict_scores
from proctor.models import rejection

KINDS = ("mcq", "free")
METADATA = "video_metadata_new.json"
_RESULT = re.compile(r"(?P<scored>score_)?pred_(?P<blind>blind_)?(?P<video>.+)\.json")
_OPTION_LINE = re.compile(r"^\s*([A-Z])[.)]\s*(.*\S)\s*$")
_MARK = re.compile(r"^\s*\[(?:MCQ|FREE)\]\s*")

Model = TypeVar("Model", bound=BaseModel)


class _Native(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class NativeQuestion(_Native):
    """One question as published; times are seconds of the trimmed video."""

    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    groundtruth: str
    time_start: float = Field(ge=0)
    time_end: float
    keep: bool = True
    question_type: str
    option_pool: str = ""
    """Only in a repaired copy: the pool from which the options come; they are already shuffled."""
    split: str = ""
    """Only in an exported project: the part that the question belongs to."""


class _Inference(_Native):
    raw_response: str = ""
    latency_ms: float | None = Field(default=None, ge=0)
    success: bool = True
    error_message: str | None = ""


class NativeResult(NativeQuestion):
    """One recorded answer; `question` and `answer` have the options in this model's order."""

    model_prediction: str = ""
    inference_metadata: _Inference = _Inference()
    eval_score: int | None = None
    judge_explanation: str = ""
    judge_error_type: str = ""

    @property
    def kind(self) -> str:
        """ "mcq" or "free", by the question's prefix."""
        return "mcq" if self.question.lstrip().startswith("[MCQ]") else "free"


@dataclass(frozen=True, slots=True)
class ResultFile:
    """One file of results: `scored` by the authors' evaluation script, `blind` if from their script without the video."""

    path: Path
    video: str
    scored: bool
    blind: bool


class _Roi(_Native):
    x_prop: float
    y_prop: float
    w_prop: float
    h_prop: float


class NativeVideo(_Native):
    """The source of a video; the trimmed video is `start_time` to `end_time` of it. Only an exported project states its
    `category` and its `group` (a patient, a teacher)."""

    youtube_url: str
    start_time: float  # may be slightly negative, by the authors' alignment
    end_time: float
    roi: _Roi
    category: str = ""
    group: str = ""

    @property
    def seconds(self) -> float:
        return self.end_time - self.start_time


def read_metadata(data: Path) -> dict[str, NativeVideo]:
    """The video metadata by video name."""
    file = data / METADATA
    raw = core.read_json(file, "the benchmark's published files")
    if not isinstance(raw, dict) or not raw:
        raise core.InputError(file, found=type(raw).__name__, expected="an object with one entry per video")
    videos = {}
    for name, entry in raw.items():
        video = core.validated(NativeVideo, entry, file, f"video {name!r}")
        if video.end_time <= video.start_time:
            location, expected = (
                core.FileLocation(file, f"video {name!r}"),
                f"a time after start_time {video.start_time}",
            )
            raise location.error(f"{video.end_time}", expected, field="end_time")
        videos[name] = video
    return videos


def metadata_for(video: str, metadata: dict[str, NativeVideo], file: Path) -> tuple[str, NativeVideo]:
    """The name in the metadata of a question file's video, and the metadata.

    One published name differs (a suffix `_CC`): without an exact match, names are compared without white space,
    underscores and that suffix.
    """
    if video in metadata:
        return video, metadata[video]
    alike = [name for name in metadata if _plain_name(name) == _plain_name(video)]
    if len(alike) != 1:
        raise core.InputError(
            file, found=f"questions on video {video!r}", expected="its entry in video_metadata_new.json"
        )
    return alike[0], metadata[alike[0]]


def read_questions(data: Path, kind: str) -> Iterator[tuple[Path, str, list[NativeQuestion]]]:
    """(file, video name, questions) for each file of one kind, by name; none where the benchmark has only questions of the
    other kind. Raises `InputError` where it has none at all."""
    for file in _json_files(data / "benchmark_questions" / kind, kinds_in(data)):
        yield file, file.stem, _entries(NativeQuestion, file)


def kinds_in(data: Path) -> tuple[str, ...]:
    """The kinds of questions that have a file."""
    return tuple(kind for kind in KINDS if any((data / "benchmark_questions" / kind).glob("*.json")))


def result_files(tree: Path) -> list[ResultFile]:
    """One model's files of results in the folder and its subfolders: scored ones first, then by name. Raises `InputError`
    where there are none."""
    if not tree.is_dir():
        what = "a file" if tree.is_file() else "no such folder"
        expected = f"the folder of one model's recorded results{'' if tree.is_file() else core.near_path(tree)}"
        raise core.InputError(tree, found=what, expected=expected)
    found = [
        ResultFile(file, match["video"], bool(match["scored"]), bool(match["blind"]))
        for file in sorted([*tree.glob("*.json"), *tree.glob("*/*.json")])
        if (match := _RESULT.fullmatch(file.name))
    ]
    if not found:
        raise core.InputError(
            tree,
            found="no score_pred_*.json and no pred_*.json",
            expected="one file of results per video, here or one folder down (mcq, final_scores_all_free …)",
        )
    return sorted(found, key=lambda result_file: not result_file.scored)


def read_results(file: Path) -> list[NativeResult]:
    """The recorded answers in one file."""
    return _entries(NativeResult, file)


def split_options(question: str) -> tuple[str, list[str]]:
    """The stem without its prefix, and the texts of the options A, B, C … that follow it line by line.

    >>> split_options("[MCQ] Which plane?\\nA. Sagittal\\nB. Axial")
    ('Which plane?', ['Sagittal', 'Axial'])
    """
    stem: list[str] = []
    options: list[str] = []
    for line in question.splitlines():
        match = _OPTION_LINE.match(line)
        if match and ord(match[1]) - ord("A") == len(options):
            options.append(match[2])
        elif options:
            options[-1] += f" {line.strip()}"
        else:
            stem.append(line)
    return _MARK.sub("", "\n".join(stem)).strip(), [option.strip() for option in options]


def options_at(question: str) -> int:
    """The index of the first option's line; the number of lines where there are no options.

    >>> options_at("[MCQ] Which plane?\\nA. Sagittal\\nB. Axial")
    1
    """
    lines = question.splitlines()
    begins = (number for number, line in enumerate(lines) if (hit := _OPTION_LINE.match(line)) and hit[1] == "A")
    return next(begins, len(lines))


def item_id(video: str, kind: str, number: int) -> str:
    """The id of a video's question, numbered from 1 in its file.

    >>> item_id("Renal_Ultrasound", "mcq", 4)
    'Renal_Ultrasound/mcq-04'
    """
    return f"{video}/{kind}-{number:02d}"


def _json_files(folder: Path, kinds: Sequence[str]) -> list[Path]:
    if kinds and folder.name not in kinds:
        return []
    if not folder.is_dir():
        raise core.InputError(folder, found="no such folder", expected="a folder with one JSON file per video")
    files = sorted(folder.glob("*.json"))
    if not files:
        raise core.InputError(folder, found="no JSON file", expected="one JSON file per video")
    return files


def _entries(model: type[Model], file: Path) -> list[Model]:
    raw = core.read_json(file, "the benchmark's published files")
    if not isinstance(raw, list):
        raise core.InputError(file, found=type(raw).__name__, expected="a list of questions")
    return [core.validated(model, entry, file, f"item {number}") for number, entry in enumerate(raw, start=1)]


def _plain_name(name: str) -> str:
    return re.sub(r"[\s_]+", "", name.removesuffix("_CC")).casefold()


JUDGE = "gemini-3-pro-preview"
"""The judge in the authors' evaluation script; the recorded files do not name it."""

_KIND_NAMES = {"mcq": "choice questions", "free": "free responses"}
_JUDGE_FAILED = "Evaluation Failed"  # written by their script, with a score of 0, when the judge's call fails


@dataclass
class _Found:
    answers: list[core.Answer] = field(default_factory=list)
    judgements: list[core.Judgement] = field(default_factory=list)
    scores: list[core.Score] = field(default_factory=list)
    read_differently: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    unscored: list[str] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)


def read_recorded(path: Path, benchmark: core.Benchmark) -> core.RecordedAnswers:
    """All recorded answers of one model in the authors' files (see `result_files`), with the judge's judgements and
    scores where the files are scored.

    An answer that is there both scored and unscored is read once. Raises `InputError` for an answer to an unknown
    question, two answers to one question, other options than the item's, and a key that contradicts the benchmark's.
    """
    by_key = {_key(item): item for item in benchmark.items}
    taken: dict[str, tuple[ResultFile, NativeResult, str]] = {}
    files = result_files(path)
    for file in files:
        for number, result in enumerate(read_results(file.path), start=1):
            location = f"item {number}"
            stem, _ = split_options(result.question)
            item = by_key.get((file.video, result.kind, stem, result.time_start, result.time_end))
            if item is None:
                found_text = f"a question not in the benchmark: {stem[:60]!r}"
                raise core.InputError(file.path, location, found=found_text, expected="questions of the same release")
            if item.id in taken:
                _same_answer(taken[item.id], (file, result, location), item.id)
            else:
                taken[item.id] = file, result, location
    found = _Found()
    for item in benchmark.items:
        if item.id in taken:
            file, result, location = taken[item.id]
            _take(found, item, result, core.FileLocation(file.path, location), scored=file.scored)
    kinds = {result.kind for _, result, _ in taken.values()}
    asked = [item for item in benchmark.items if _kind(item) in kinds]
    judged: dict[str, JsonValue] = {"judge": JUDGE} if any(file.scored for file in files) else {}
    return core.RecordedAnswers(
        answers=tuple(found.answers),
        judgements=tuple(found.judgements),
        scores=tuple(found.scores),
        settings={"recorded": "ReXSonoVQA results tree", **judged},
        notes=_notes(found, len(asked) - len(taken), kinds, {item.id for item in benchmark.counted()}),
        condition=_condition(files),
    )


def _same_answer(
    first: tuple[ResultFile, NativeResult, str], second: tuple[ResultFile, NativeResult, str], item: str
) -> None:
    """Raises `InputError` unless one of the two is the unscored version of the other."""
    (file, result, _), (other, again, location) = first, second
    same = (result.question, result.model_prediction) == (again.question, again.model_prediction)
    if not same or file.scored == other.scored or file.blind != other.blind:
        found = f"a second answer to {item} (the first is in {file.path})"
        raise core.InputError(
            other.path, location, found=found, expected="one answer a question, of one model under one condition"
        )


def _condition(files: Sequence[ResultFile]) -> str:
    blind = [file for file in files if file.blind]
    if blind and len(blind) < len(files):
        found, expected = "answers without the video among others", "a folder of one condition alone"
        raise core.InputError(blind[0].path, found=found, expected=expected)
    return "text-only" if blind else ""


def _key(item: core.Item) -> tuple[str, str, str, float, float]:
    start, end = item.tags["time_start"], item.tags["time_end"]
    return item.media[0].source, _kind(item), item.question, float(str(start)), float(str(end))


def _kind(item: core.Item) -> str:
    return "mcq" if item.options else "free"


def _take(found: _Found, item: core.Item, result: NativeResult, location: core.FileLocation, *, scored: bool) -> None:
    _, options = split_options(result.question)
    answer = _answer(item, result, options, location)
    found.answers.append(answer)
    if answer.status is core.Status.FAILED:
        found.failed.append(item.id)
        return
    if answer.status is not core.Status.ANSWERED:
        found.errors.append(item.id)
        if not item.options and scored:
            found.scores.extend(verdict_scores(0, ErrorType.BOTH, item_id=item.id, scorer=JUDGE))
        return
    if item.options:
        recorded_right = result.eval_score
        right = item.reference is not None and answer.parsed == item.reference.answer
        if recorded_right is not None and bool(recorded_right) != right:
            found.read_differently.append(item.id)
        return
    if scored:
        _judged(found, item, result, location)
    else:
        found.unscored.append(item.id)


def _answer(item: core.Item, result: NativeResult, options: list[str], location: core.FileLocation) -> core.Answer:
    meta = result.inference_metadata
    answer = core.Answer(
        item_id=item.id,
        text=meta.raw_response or result.model_prediction,
        timing=None if meta.latency_ms is None else core.Timing(model_s=meta.latency_ms / 1000),
        extra={"recorded_prediction": result.model_prediction},
    )
    if not meta.success:
        reason = " ".join((meta.error_message or "the recorded call failed").split())
        kind = rejection(reason)
        status = core.Status.FAILED
        if isinstance(kind, core.RefusalError):
            status = core.Status.REFUSED
        elif isinstance(kind, core.SystemFaultError):
            status = core.Status.ERROR
        return answer.model_copy(update={"status": status, "reason": reason})
    try:
        parsed = (
            _choice(item, result, options, answer.text, location) if item.options else item.answer.parse(answer.text)
        )
    except core.ParseError as error:
        return answer.model_copy(update={"problem": str(error)})
    shown: dict[str, JsonValue] = {"options_shown": [*options]} if item.options else {}
    return answer.model_copy(update={"parsed": parsed, "extra": answer.extra | shown})


def _choice(
    item: core.Item, result: NativeResult, options: list[str], text: str, location: core.FileLocation
) -> JsonValue:
    if sorted(options) != sorted(item.options):
        expected = f"the options of {item.id} in any order"
        raise location.error("other options than the benchmark's", expected, field="question")
    letters = option_letters(len(options))
    if result.answer not in letters:
        raise location.error(repr(result.answer), f"one of {', '.join(letters)}", field="answer")
    to_item = {letters[shown]: letters[item.options.index(text)] for shown, text in enumerate(options)}
    if item.reference is not None and to_item[result.answer] != item.reference.answer:
        found = f"the key {options[letters.index(result.answer)]!r}"
        raise location.error(found, "the benchmark's key", field="answer")
    letter = ChoiceFormat().parse(text, options)
    return to_item[str(letter)]


def _judged(found: _Found, item: core.Item, result: NativeResult, location: core.FileLocation) -> None:
    if result.eval_score is None or result.judge_explanation.startswith(_JUDGE_FAILED):
        found.unjudged.append(item.id)
        return
    try:
        verdict = Verdict.model_validate(
            {
                "score": result.eval_score,
                "error_type": result.judge_error_type or "none",
                "explanation": result.judge_explanation,
            }
        )
    except ValidationError as error:
        raise core.refusal(location.file, f"{location.location}, judge's verdict", error) from error
    reference = item.reference.answer if item.reference else None
    content: dict[str, JsonValue] = {
        "judge": JUDGE,
        "question": item.question,
        "reference": reference,
        "answer": result.model_prediction,
        "reply": verdict.model_dump(mode="json"),
    }
    judgement = core.Judgement(
        key=core.content_hash(content),
        judge=JUDGE,
        item_id=item.id,
        reply=verdict.model_dump(mode="json"),
        flags=(CONTRADICTION_FLAG,) if verdict.contradicts_itself else (),
    )
    found.judgements.append(judgement)
    found.scores.extend(
        verdict_scores(verdict.score, verdict.error_type, item_id=item.id, scorer=JUDGE, judgement_key=judgement.key)
    )
    if verdict.contradicts_itself:
        found.contradictions.append(item.id)


def _notes(found: _Found, missing: int, kinds: set[str], counted: set[str]) -> tuple[str, ...]:
    notes = [_note(*line, counted) for line in _lines(found) if line[-1]]
    if found.unscored:
        are = "is" if len(found.unscored) == 1 else "are"
        notes.append(f"{core.count_of(len(found.unscored), 'free response')} {are} not scored yet (proctor score)")
    notes += [f"no {_KIND_NAMES[kind]} here" for kind in KINDS if kind not in kinds]
    if missing:
        has = "has" if missing == 1 else "have"
        notes.append(f"{core.count_of(missing, 'question')} {has} no recorded answer")
    return tuple(notes)


def _lines(found: _Found) -> list[tuple[str, str, list[str]]]:
    """What there is to know of recorded answers: in the singular, in the plural, and of which items."""
    return [
        (
            "recorded call failed, for a reason that may be the server's; it has no score",
            "recorded calls failed, for reasons that may be the server's; they have no score",
            found.failed,
        ),
        (
            "recorded call was rejected for its content; it is wrong",
            "recorded calls were rejected for their content; they are wrong",
            found.errors,
        ),
        (
            "recorded score of a choice is not ours (the last declared answer counts)",
            "recorded scores of choices are not ours (the last declared answer counts)",
            found.read_differently,
        ),
        (
            "answer has no score, since the recorded judge's call failed",
            "answers have no score, since the recorded judge's call failed",
            found.unjudged,
        ),
        (
            "judge rating is inconsistent; it is kept as given",
            "judge ratings are inconsistent; they are kept as given",
            found.contradictions,
        ),
    ]


def _note(one: str, several: str, ids: list[str], counted: set[str]) -> str:
    inside = [item for item in ids if item in counted]
    beside = len(ids) - len(inside)
    text = one if (len(inside) or beside) == 1 else several
    if not inside:
        return f"{beside} {text}, in items that do not count"
    more = f"; {beside} more in items that do not count" if beside else ""
    return f"{len(inside)} {text}: {', '.join(inside)}{more}"
