"""ReXSonoVQA's own files: questions per video, the video metadata, recorded results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from proctor.core import InputError, read_json, validated

KINDS = ("mcq", "free")
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


class _Inference(_Native):
    raw_response: str = ""
    latency_ms: float | None = Field(default=None, ge=0)
    success: bool = True
    error_message: str | None = ""


class NativeResult(NativeQuestion):
    """One recorded answer; `question` and `answer` show the options as this model got them."""

    model_prediction: str = ""
    inference_metadata: _Inference = _Inference()
    eval_score: int | None = None
    judge_explanation: str = ""
    judge_error_type: str = ""

    @property
    def kind(self) -> str:
        """ "mcq" or "free", by the mark at the question's start."""
        return "mcq" if self.question.lstrip().startswith("[MCQ]") else "free"


@dataclass(frozen=True, slots=True)
class ResultFile:
    """One file of results: `scored` by the authors' evaluation script, `blind` where their script without the
    video wrote the answers."""

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
    """Where a video comes from; `start_time` to `end_time` of it is the trimmed video."""

    youtube_url: str
    start_time: float  # may lie just before 0 where the authors' alignment put it there
    end_time: float
    roi: _Roi

    @property
    def seconds(self) -> float:
        """The length of the trimmed video."""
        return self.end_time - self.start_time


def read_metadata(data: Path) -> dict[str, NativeVideo]:
    """The video metadata by video name."""
    file = data / "video_metadata_new.json"
    raw = read_json(file, "the benchmark's published files")
    if not isinstance(raw, dict) or not raw:
        raise InputError(file, found=type(raw).__name__, expected="an object with one entry per video")
    videos = {}
    for name, entry in raw.items():
        video = validated(NativeVideo, entry, file, f"video {name!r}")
        if video.end_time <= video.start_time:
            raise InputError(
                file,
                f"video {name!r}, field 'end_time'",
                found=f"{video.end_time}",
                expected=f"a time after start_time {video.start_time}",
            )
        videos[name] = video
    return videos


def metadata_for(video: str, metadata: dict[str, NativeVideo], file: Path) -> NativeVideo:
    """The metadata of a question file's video.

    One published name differs (a suffix `_CC`), so names are compared without white space, underscores
    and that suffix where no exact one is found.
    """
    if video in metadata:
        return metadata[video]
    alike = [name for name in metadata if _plain_name(name) == _plain_name(video)]
    if len(alike) != 1:
        raise InputError(file, found=f"questions on video {video!r}", expected="its entry in video_metadata_new.json")
    return metadata[alike[0]]


def read_questions(data: Path, kind: str) -> Iterator[tuple[Path, str, list[NativeQuestion]]]:
    """(file, video name, questions) for each file of one kind, by name."""
    folder = data / "benchmark_questions" / kind
    for file in _json_files(folder):
        yield file, file.stem, _entries(NativeQuestion, file)


def result_files(tree: Path) -> list[ResultFile]:
    """One model's files of results in the folder or in folders of it, whatever those are called: scored ones
    first, each by name. Raises `InputError` where there are none."""
    if not tree.is_dir():
        raise InputError(tree, found="no such folder", expected="one model's recorded results")
    found = [
        ResultFile(file, match["video"], bool(match["scored"]), bool(match["blind"]))
        for file in sorted([*tree.glob("*.json"), *tree.glob("*/*.json")])
        if (match := _RESULT.fullmatch(file.name))
    ]
    if not found:
        raise InputError(
            tree,
            found="no score_pred_*.json and no pred_*.json",
            expected="one file of results per video, here or one folder down (mcq, final_scores_all_free …)",
        )
    return sorted(found, key=lambda one: not one.scored)


def read_results(file: Path) -> list[NativeResult]:
    """The recorded answers in one file."""
    return _entries(NativeResult, file)


def split_options(question: str) -> tuple[str, list[str]]:
    """The stem without its mark, and the texts of the options A, B, C … that follow it line by line.

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


def _json_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(folder, found="no such folder", expected="a folder with one JSON file per video")
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InputError(folder, found="no JSON file", expected="one JSON file per video")
    return files


def _entries(model: type[Model], file: Path) -> list[Model]:
    raw = read_json(file, "the benchmark's published files")
    if not isinstance(raw, list):
        raise InputError(file, found=type(raw).__name__, expected="a list of questions")
    return [validated(model, entry, file, f"item {number}") for number, entry in enumerate(raw, start=1)]


def _plain_name(name: str) -> str:
    return re.sub(r"[\s_]+", "", name.removesuffix("_CC")).casefold()
